from __future__ import annotations

from typing import Any

import pytest

import program_events as made
from jaxprof.results.programs.changes import changed_arguments, changed_names


def test_an_argument_whose_dtype_changed_is_not_one_whose_shape_did() -> None:
    said = ["argument x: f32[4] → f32[3]; argument w: f32[2] → bf16[2]", "argument x: f32[3] → f32[9]"]
    assert [(one.name, one.summary) for one in changed_arguments("shape", said)] == [("x", "f32[3..9]")]
    assert [(one.name, one.summary) for one in changed_arguments("dtype", said)] == [("w", "f32[2], bf16[2]")]


@pytest.mark.parametrize("words", ["", "argument x: new", "static argument n: 3 → 4", "argument x: a → b", "; ; →"])
def test_other_words_change_no_array(words: str) -> None:
    assert changed_arguments("shape", [words]) == changed_arguments("dtype", [words]) == ()


@pytest.mark.parametrize(
    ("code", "said", "text"),
    [
        (
            "shape",
            ["argument p['w']: f32[4] → f32[3]; argument q: f32[1] → bf16[1]", "argument p['w']: f32[3] → f32[2]"],
            "argument p['w']: shape varies (f32[2..4])",
        ),
        (
            "dtype",
            ["argument a: f32[1] → bf16[1]; argument b: f32[1] → bf16[1]; and 110 more differences"] * 2,
            "argument a: dtype varies (f32[1], bf16[1]); argument b: dtype varies (f32[1], bf16[1]) and more",
        ),
        (
            "sharding",
            ["argument x: other sharding: not committed → one device cpu:1", "argument x: other sharding: A → B"],
            "argument x: sharding varies",
        ),
        (
            "weak_type",
            ["argument s: weak type f32[] → f32[]", "argument s: f32[] → weak type f32[]"],
            "argument s: weak type comes and goes",
        ),
        (
            "config",
            ["config jax_enable_x64: False → True", "config jax_default_matmul_precision: None → highest"],
            "config jax_enable_x64, config jax_default_matmul_precision changed",
        ),
        (
            "static_argument",
            ["static argument self: Model → another Model"] * 2,
            "static argument self: Model → another Model",
        ),
    ],
)
def test_several_reasons_of_one_kind_name_what_changed(code: str, said: list[str], text: str) -> None:
    """The signature of a large tree is cut, so that what changed need not stand in it."""
    rows = [made.compiled(reason_code=code, reason=words, signature=signature()) for words in said]
    (function,) = made.result(made.compiled(signature=signature()), *rows).functions
    assert [one.text for one in function.reasons if one.code == code] == [text]


def signature() -> list[dict[str, Any]]:
    return [made.leaf("first", "f32[7]")]


def test_config_names_need_a_setting() -> None:
    assert changed_names("config", ["argument config x: f32[1] → f32[2]"]) == ()
    assert changed_names("structure", ["argument x: new"]) == ()
