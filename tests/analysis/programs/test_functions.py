"""What varies in the arguments of a function, from its signatures and from the reasons of the ledger."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import program_events as made
from golden import figures_text, held_cases
from jaxprof.analysis.programs.functions import (
    Padding,
    Signatures,
    argument_changes,
    array_type,
)


def taken(*rows):
    return Signatures([made.compiled(signature=row) for row in rows])


def summaries(*types, static=False):
    return [one.summary for one in taken(*([made.leaf("x", type_, static=static)] for type_ in types)).variations()]


@pytest.mark.parametrize(
    ("types", "summary"),
    [
        (("f32[4]", "f32[3]"), "f32[4], f32[3]"),
        (("f32[4,128]", "f32[3,128]", "f32[9,128]"), "f32[3..9,128]"),
        (("f32[4]", "bf16[4]", "f16[4]"), "f32|bf16|f16[4]"),
        (("f32[4]", "f32[4,1]", "f32[4,1,1]"), "f32 of 1 to 3 dimensions"),
        (("f32[]", "f32[1]", "what is this"), "f32[], f32[1], what is this"),
        (("key<fry>[1]", "key<fry>[2]", "key<fry>[3]"), "key<fry>[1..3]"),
    ],
)
def test_what_varies_in_one_phrase(types, summary):
    assert summaries(*types) == [summary]


def test_many_static_values_are_counted():
    assert summaries(*map(str, range(12)), static=True) == ["0, 1, 2, … (12 values)"]
    assert summaries("f32[4]", "f32[4]") == []


def test_padding_counts_the_powers_of_two_that_are_left():
    rows = [[made.leaf("x", f"f32[{size},128]"), made.leaf("y", f"i32[{size}]")] for size in range(1, 413)]
    assert taken(*rows).padding() == Padding(shapes=412, buckets=10, smallest=1, largest=412)


@pytest.mark.parametrize("types", [("f32[4]", "f32[4,1]"), ("f32[4]", "f16[4]"), ("f32[4]",), ("3", "4")])
def test_what_padding_cannot_mend_has_none(types):
    assert taken(*([made.leaf("x", type_)] for type_ in types)).padding() is None


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5000)), min_size=1, max_size=40))
def test_buckets_are_never_more_than_shapes(sizes):
    found = taken(*([made.leaf("x", f"f32[{first},{second}]")] for first, second in sizes)).padding()
    if len(set(sizes)) == 1:
        assert found is None
    else:
        assert 1 <= found.buckets <= found.shapes == len(set(sizes))


@given(st.text("f32b[],<>é 9", max_size=20))
def test_any_text_is_an_array_or_none(text):
    found = array_type(text)
    assert found is None or found.dtype in text
    assert array_type(f"f32[{'9' * 5000}]") is None


def rows_of(code, *reasons):
    return [made.compiled(reason_code=code, reasons=each) for each in reasons]


def test_changed_dtype_is_no_changed_shape():
    dtype = made.reason("dtype", "w", "f32[2]", "bf16[2]")
    said = [made.reason("shape", "x", "f32[4]", "f32[3]"), dtype], [made.reason("shape", "x", "weak f32[3]", "f32[9]")]
    rows = rows_of("shape", *said)
    (shaped,), (typed,) = argument_changes("shape", rows), argument_changes("dtype", rows)
    assert shaped.name == "x"
    assert shaped.summary == "f32[3..9]"
    assert typed.name == "w"
    assert typed.summary == "f32[2], bf16[2]"


def test_other_reasons_change_no_array():
    others = [made.reason(kind, "x", "f32[1]", "f32[2]") for kind in ("added", "static_argument", "of a newer version")]
    rows = rows_of("shape", [], others)
    assert argument_changes("shape", rows) == argument_changes("dtype", rows) == ()


MORE = made.reason("more", more=110)
ONE_KIND = {
    "shape": [
        [made.reason("shape", "p['w']", "f32[4]", "f32[3]"), made.reason("dtype", "q", "f32[1]", "bf16[1]")],
        [made.reason("shape", "p['w']", "f32[3]", "f32[2]")],
    ],
    "dtype": [[*(made.reason("dtype", name, "f32[1]", "bf16[1]") for name in "ab"), MORE]] * 2,
    "sharding": [[made.reason("sharding", "x", "", "cpu:1")], [made.reason("sharding", "x", "A", "B")]],
    "weak_type": [
        [made.reason("weak_type", "s", "weak f32[]", "f32[]")],
        [made.reason("weak_type", "s", "f32[]", "weak f32[]")],
    ],
    "config": [
        [made.reason("config", "jax_enable_x64", "False", "True")],
        [made.reason("config", "jax_default_matmul_precision", "None", "highest")],
    ],
    "static_argument": [[made.reason("static_argument", "self", "Model", "Model")]] * 2,
}


def test_several_reasons_of_one_kind_name_what_changed():
    """The signature of a large tree is cut, so that what changed need not stand in it."""
    told = {}
    for code, said in ONE_KIND.items():
        signature = [made.leaf("first", "f32[7]")]
        rows = [made.compiled(reason_code=code, reasons=reasons, signature=signature) for reasons in said]
        (function,) = made.result(made.compiled(signature=signature), *rows).functions
        told[code] = figures_text(*(one.text for one in function.reasons if one.code == code))
    held_cases("changed_arguments.txt", told)
