from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import program_events as made
from jaxprof.results.programs.signatures import Padding, Signatures, array_type


def taken(*rows: list[dict[str, object]]) -> Signatures:
    found = Signatures()
    for row in rows:
        found.take(made.compiled(signature=row))
    return found


def summaries(*types: str, static: bool = False) -> list[str]:
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
def test_what_varies_in_one_phrase(types: tuple[str, ...], summary: str) -> None:
    assert summaries(*types) == [summary]


def test_many_values_of_a_static_argument_are_counted() -> None:
    assert summaries(*map(str, range(12)), static=True) == ["0, 1, 2, … (12 values)"]


def test_what_does_not_vary_is_not_named() -> None:
    assert summaries("f32[4]", "f32[4]") == []


def test_padding_counts_the_powers_of_two_that_are_left() -> None:
    rows = [[made.leaf("x", f"f32[{size},128]"), made.leaf("y", f"i32[{size}]")] for size in range(1, 413)]
    assert taken(*rows).padding() == Padding(shapes=412, buckets=10, smallest=1, largest=412)


@pytest.mark.parametrize("types", [("f32[4]", "f32[4,1]"), ("f32[4]", "f16[4]"), ("f32[4]",), ("3", "4")])
def test_what_padding_cannot_mend_has_none(types: tuple[str, ...]) -> None:
    assert taken(*([made.leaf("x", type_)] for type_ in types)).padding() is None


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5000)), min_size=1, max_size=40))
def test_buckets_are_never_more_than_shapes(sizes: list[tuple[int, int]]) -> None:
    found = taken(*([made.leaf("x", f"f32[{first},{second}]")] for first, second in sizes)).padding()
    if len(set(sizes)) == 1:
        assert found is None
    else:
        assert found is not None
        assert 1 <= found.buckets <= found.shapes == len(set(sizes))


@given(st.text(max_size=20))
def test_any_text_is_an_array_or_none(text: str) -> None:
    found = array_type(text)
    assert found is None or found.dtype in text


def test_a_size_of_too_many_digits_is_none() -> None:
    assert array_type(f"f32[{'9' * 5000}]") is None
