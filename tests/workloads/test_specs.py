"""Argument specs: what is understood, what is made of it, and what is refused."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jaxprof.errors import UsageError
from jaxprof.workloads.function import make
from jaxprof.workloads.specs import parse
from tables import rows


def made(text, seed=0, **parameters):
    (value,) = make([parse(text)], parameters, np.random.default_rng(seed))
    return value


def test_an_array_has_its_dtype_and_shape():
    for text, dtype, shape in rows("""
        f32[1024,10]       float32        (1024, 10)
        float32[8]         float32        (8,)
        bf16[8,128]        bfloat16       (8, 128)
        f8e4m3fn[4]        float8_e4m3fn  (4,)
        f16[2]             float16        (2,)
        i32[10]            int32          (10,)
        s8[10]             int8           (10,)
        uint8[10]          uint8          (10,)
        c64[4,2]           complex64      (4, 2)
        pred[7]            bool           (7,)
        f32[]              float32        ()
        f32 [ 2 , 3 ]      float32        (2, 3)
        f32[0,3]           float32        (0, 3)
        f32[1e2,]          float32        (100,)
        f32[1_000]         float32        (1000,)
        f32[n,2]           float32        (5, 2)
    """):
        array = made(text, n=5)
        assert (np.asarray(array).dtype.name, str(np.shape(array))) == (dtype, shape)
        assert parse(text).bytes({"n": 5}) == np.asarray(array).nbytes
        np.testing.assert_array_equal(np.asarray(made(text, n=5)), np.asarray(array))


def test_a_key_is_a_typed_key_of_the_seed():
    key = made("key")
    assert jax.random.uniform(key) == jax.random.uniform(made("key"))
    assert jax.random.uniform(key) != jax.random.uniform(made("key", seed=1))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("None", None),
        ("'relu'", "relu"),
        ('"it\'s [a], (word)"', "it's [a], (word)"),
        ("()", ()),
        ("(3,)", (3,)),
        ("[1, 2.5, (True, None)]", [1, 2.5, (True, None)]),
        ("{'a': 1, b: {}, 3: [],}", {"a": 1, "b": {}, 3: []}),
        ("[-1e-3, 1e+2]", [-1e-3, 100.0]),
    ],
)
def test_what_is_nested_is_written_as_in_python(text, value):
    assert made(text) == value
    assert type(made(text)) is type(value)


class Moments(NamedTuple):
    count: Any
    mu: Any


def test_a_tree_has_its_arrays_and_named_tuples_in_place():
    text = f"({{'w': f32[n,2]}}, {__name__}:Moments(count=i32[], mu=[bf16[4]]))"
    params, moments = made(text, n=3)
    assert params["w"].shape == (3, 2)
    assert isinstance(moments, Moments)
    assert (moments.count.dtype, moments.mu[0].shape) == (np.int32, (4,))
    assert parse(text).names == ("n",)
    assert parse(text).bytes({"n": 3}) == 24 + 4 + 8


@pytest.mark.parametrize(
    ("path", "what"),
    [("os:system", "not a named tuple"), ("builtins:tuple", "not a named tuple"), ("no.such:Thing", "no class")],
)
def test_nothing_but_named_tuples_is_made_by_name(path, what):
    with pytest.raises(UsageError, match=what):
        made(f"{path}(command='true')")


def test_an_argument_can_be_given_by_name_and_keys_by_shape():
    assert (parse("rate = f32[2]").keyword, parse("rate=f32[2]").shape) == ("rate", (2,))
    assert made("key[3]").shape == (3,)
    assert str(jax.random.key_impl(made("key<rbg>"))) == "rbg"
    with pytest.raises(UsageError, match="nonsense"):
        made("key<nonsense>")


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        *rows("""
            f32         no shape                f32[]
            float32     no shape                float32[8,128]
            flot32[3]   unknown dtype 'flot32'  float32
            zzzzzz[3]   unknown dtype           Known: f16
            f32[3,,4]   '' is not a size        whole number
            f32[-1]     '-1' is not a size      whole number
            f32[nan]    no parameter 'nan'      Or write a number
        """),
        *(
            (text, "cannot read", "{'w': f32[8,4], 'b': f32[4]}")
            for text in (
                "f32[3",
                "[3",
                "{f32[3]}",
                "(f32[3] f32[4])",
                "'relu",
                "a:B(f32[3])",
                "[" * 5000,
                "",
                "x[3][4]",
            )
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_way_to_write_it(text, what, hint):
    with pytest.raises(UsageError) as refused:
        made(text)
    assert what in refused.value.what
    assert hint in refused.value.hint


@given(st.text(alphabet="f32key[](){}<>'\",:=.n -_8ü", max_size=20))
@example("({})")
@example("(3)")
@example("( x = 2 )")
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(UsageError):
        assert parse(text).text == text.strip()
