"""Folded blocks of a document, and its lines without details."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jaxprof.tui.hlo.document import Document, Folds

# -- folds ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=8))
def test_folds_show_each_line_in_one_row(lengths: list[tuple[int, int]]) -> None:
    blocks, at = [], 0
    for gap, length in lengths:
        blocks.append((at + gap, at + gap + length))
        at += gap + length + 1
    folds = Folds(blocks)
    hidden = {line for first, last in folds.blocks for line in range(first + 1, last + 1)}
    shown = [line for line in range(at + 3) if line not in hidden]
    assert folds.hidden == len(hidden)
    assert [folds.line(row) for row in range(len(shown))] == shown
    assert [folds.row(line) for line in shown] == list(range(len(shown)))
    for first, last in folds.blocks:
        assert {folds.row(line) for line in range(first, last + 1)} == {folds.row(first)}
        assert folds.block(last) == (first, last)
        assert first in folds


def test_a_fold_swallows_those_inside_it() -> None:
    assert Folds([(2, 4), (8, 9)]).folded((1, 6)).blocks == ((1, 6), (8, 9))


# -- details ----------------------------------------------------------------------------------------------------------


def test_a_short_document_has_the_same_lines_without_their_details() -> None:
    document = Document(
        'ENTRY e {\n  a = f32[] constant(1), metadata={op_name="metadata={x}"}\n  b = f32[] negate(a)\n}'
    )
    whole = [document.line(number) for number in range(4)]
    document.short = True
    assert [document.line(number) for number in range(4)] == [whole[0], "  a = f32[] constant(1)", *whole[2:]]
    document.short = False
    assert [document.line(number) for number in range(4)] == whole
