"""What varies in the arguments of a function, from its signatures and from the reasons of the ledger."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import program_events as made
from golden import figures_text, held_cases
from jaxprof.analysis.programs.functions import (
    Padding,
    Signatures,
    array_type,
    changed_arguments,
    first_change,
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


def test_many_values_of_a_static_argument_are_counted_and_what_does_not_vary_is_not_named():
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


def test_an_argument_whose_dtype_changed_is_not_one_whose_shape_did():
    said = ["shape of x: f32[4] → f32[3]; dtype of w: f32[2] → bf16[2]", "shape of x: weak f32[3] → f32[9]"]
    (shaped,), (typed,) = changed_arguments("shape", said), changed_arguments("dtype", said)
    assert (shaped.name, shaped.summary, typed.name, typed.summary) == ("x", "f32[3..9]", "w", "f32[2], bf16[2]")


@pytest.mark.parametrize("words", ["", "structure: x new", "static argument n: 3 → 4", "argument x: a → b", "; ; →"])
def test_other_words_change_no_array(words):
    assert changed_arguments("shape", [words]) == changed_arguments("dtype", [words]) == ()


ONE_KIND = {
    "shape": ["shape of p['w']: f32[4] → f32[3]; dtype of q: f32[1] → bf16[1]", "shape of p['w']: f32[3] → f32[2]"],
    "dtype": ["dtype of a: f32[1] → bf16[1]; dtype of b: f32[1] → bf16[1]; and 110 more differences"] * 2,
    "sharding": ["sharding of x: not committed → cpu:1", "sharding of x: A → B"],
    "weak_type": ["weak type of s: weak f32[] → f32[]", "weak type of s: f32[] → weak f32[]"],
    "config": ["config jax_enable_x64: False → True", "config jax_default_matmul_precision: None → highest"],
    "static_argument": ["static argument self: Model → another Model"] * 2,
}


def test_several_reasons_of_one_kind_name_what_changed():
    """The signature of a large tree is cut, so that what changed need not stand in it."""
    told = {}
    for code, said in ONE_KIND.items():
        signature = [made.leaf("first", "f32[7]")]
        rows = [made.compiled(reason_code=code, reason=words, signature=signature) for words in said]
        (function,) = made.result(made.compiled(signature=signature), *rows).functions
        told[code] = figures_text(*(one.text for one in function.reasons if one.code == code))
    held_cases("changed_arguments.txt", told)


def test_reasons_of_older_sessions_are_told_as_they_were_written_and_named_by_signatures():
    said = ["argument 0: f32[4] → f32[8]", "argument 0: f32[8] → f32[9]"]
    signatures = [[made.leaf("0", f"f32[{size}]")] for size in (4, 8, 9)]
    rows = [
        made.compiled(reason_code="shape", reason=words, signature=signature)
        for words, signature in zip(said, signatures[1:], strict=True)
    ]
    (one,) = made.result(made.compiled(signature=signatures[0]), rows[0]).functions
    (several,) = made.result(made.compiled(signature=signatures[0]), *rows).functions
    assert one.reason("shape").text == said[0]
    assert several.reason("shape").text == "shape of argument 0 varies: f32[4..9]"


def test_the_first_change_stands_for_all_where_there_is_little_room():
    assert first_change("shape of b['x']: f32[4] → f32[8]; shape of b['y']: f32[4] → f32[8]") == (
        "shape f32[4] → f32[8] and 1 more"
    )
    assert first_change("static argument n: 3 → 4") == "static argument 3 → 4"
    assert first_change("new function object each time: jit at a.py:3") == ""
