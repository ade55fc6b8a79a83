"""Columns as data: which are there at a width, how wide they are, and what a line of them shows."""

from __future__ import annotations

from jaxprof.tui.kit.table_columns import Span, TableColumn, header_line, in_order, placed, row_line

NAME = TableColumn[str]("name", lambda row: row, 4, weight=1)
SIZE = TableColumn[str]("size", lambda row: str(len(row)), 4, right=True, sort=len)
HOST = TableColumn[str]("host", lambda row: "box", 6, priority=1)
NOTE = TableColumn[str]("note", lambda row: "-", 3, priority=2)
ALL = (NAME, NOTE, HOST, SIZE)


def there(width: int) -> list[str]:
    return [one.column.title for one in placed(ALL, width)]


def test_columns_appear_by_priority_and_keep_their_order() -> None:
    assert there(16) == ["name", "size"]
    assert there(17) == ["name", "host", "size"]
    assert there(20) == ["name", "host", "size"]
    assert there(21) == ["name", "note", "host", "size"]


def test_a_line_fills_the_width_and_is_never_wider() -> None:
    for width in range(3, 90):
        layout = placed(ALL, width)
        header, row = header_line(layout), row_line("a\x1b[31mlong name of many letters", layout, width)
        assert header.cell_length == row.cell_length
        assert row.cell_length == width or width < 10
        assert "\x1b" not in row.plain


def test_spare_width_is_shared_by_weight_up_to_the_most() -> None:
    wide = (TableColumn[str]("a", str, 5, weight=3, most=8), TableColumn[str]("b", str, 5, weight=1))
    assert [one.width for one in placed(wide, 1 + 5 + 1 + 5 + 4)] == [8, 6]
    assert [one.width for one in placed(wide, 1 + 5 + 1 + 5 + 20)] == [8, 22]


def test_a_cell_that_spans_takes_what_is_left() -> None:
    spanning = (TableColumn[str]("name", str, 8), TableColumn[str]("why", lambda row: Span((row, "$error")), 3), SIZE)
    line = row_line("out of memory", placed(spanning, 30), 30)
    assert line.plain.rstrip() == " out of … out of memory"
    assert "13" not in line.plain


def test_an_arrow_shows_what_the_rows_are_sorted_by() -> None:
    layout = placed((TableColumn[str]("name", str, 8), TableColumn[str]("size", len_text, 8, right=True)), 30)
    assert header_line(layout, layout[0].column).plain == " name ▾       size"
    assert header_line(layout, layout[1].column, backwards=True).plain == " name       ▴ size"


def len_text(row: str) -> str:
    return str(len(row))


def test_unknown_comes_last_in_both_directions() -> None:
    rows = [3, None, 1, 2]
    assert in_order(rows, lambda row: row) == [1, 2, 3, None]
    assert in_order(rows, lambda row: row, backwards=True) == [3, 2, 1, None]
