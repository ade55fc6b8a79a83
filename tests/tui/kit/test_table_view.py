"""The table: sorting, filtering, and drawing only what shows something else."""

from __future__ import annotations

from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.content import Content

from jaxprof.tui.kit.table_columns import TableColumn
from jaxprof.tui.kit.table_view import TableView


class Numbers(TableView[tuple[str, int | None]]):
    """Names and numbers; a row without a name is a heading."""

    UNSORTED = "as given"
    EMPTY = "Nothing here."

    def __init__(self) -> None:
        super().__init__(
            (
                TableColumn("name", lambda row: row[0], 6, weight=1, sort=lambda row: row[0]),
                TableColumn(
                    "number", lambda row: "-" if row[1] is None else str(row[1]), 8, right=True, sort=lambda row: row[1]
                ),
                TableColumn("twice", lambda row: str(2 * (row[1] or 0)), 8, priority=1),
            )
        )

    def whole_line(self, row: tuple[str, int | None], width: int) -> Content | None:
        return None if row[0] else Content("a heading")


class Shown(App[None]):
    def compose(self) -> ComposeResult:
        yield Numbers()


ROWS: dict[Any, tuple[str, int | None]] = {"c": ("c", 2), "a": ("a", None), "b": ("b", 10)}


def lines(table: Numbers) -> list[str]:
    return [table.render_line(y).text.rstrip() for y in range(len(table.keys) + 1)]


async def test_rows_are_sorted_by_each_column_in_turn_and_by_a_click_on_its_title() -> None:
    app = Shown()
    async with app.run_test(size=(40, 10)) as pilot:
        table = app.query_one(Numbers)
        table.show_rows(ROWS)
        seen = [("".join(map(str, table.keys)), table.order_in_words)]
        for _ in range(3):
            table.action_sort_by_next()
            seen.append(("".join(map(str, table.keys)), table.order_in_words))
        assert seen == [("cab", ""), ("cba", "by number ▾"), ("abc", "by name ▾"), ("cab", "")]
        await pilot.click(Numbers, offset=(2, 0))
        assert "".join(map(str, table.keys)) == "abc"
        await pilot.click(Numbers, offset=(2, 0))
        assert "".join(map(str, table.keys)) == "cba"
        assert table.order_in_words == "by name ▴"
        assert lines(table)[0].startswith(" name ▴")


async def test_a_filter_counts_what_it_hides_and_looks_at_what_is_shown() -> None:
    app = Shown()
    async with app.run_test(size=(40, 10)):
        table = app.query_one(Numbers)
        table.show_rows(ROWS)
        table.set_filter("10")
        assert (table.keys, table.hidden) == (["b"], 2)
        table.set_filter("nothing of it")
        assert table.keys == []
        assert lines(table)[0].strip() == "Nothing here."
        table.set_filter("")
        assert (len(table.keys), table.hidden) == (3, 0)


async def test_only_what_shows_something_else_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Shown()
    async with app.run_test(size=(24, 10)) as pilot:
        table = app.query_one(Numbers)
        table.show_rows(ROWS)
        await pilot.pause()
        drawn: list[Any] = []
        monkeypatch.setattr(table, "refresh", lambda *regions, **rest: drawn.append(regions))
        table.show_rows(dict(ROWS))
        assert drawn == []
        table.show_rows({**ROWS, "b": ("b", 11)})
        assert [(region.x, region.y, region.width, region.height) for (region,) in drawn] == [(16, 3, 8, 1)]
        drawn.clear()
        table.show_rows({**ROWS, "b": ("d", 12)})
        assert [(region.x, region.y, region.width, region.height) for (region,) in drawn] == [(0, 3, 24, 1)]


async def test_the_cursor_does_not_stand_on_a_heading() -> None:
    app = Shown()
    async with app.run_test(size=(40, 10)) as pilot:
        table = app.query_one(Numbers)
        table.show_rows({"heading": ("", None), **ROWS})
        table.focus()
        await pilot.pause()
        assert table.current == "c"
        await pilot.press("up")
        assert table.current == "c"
        assert lines(table)[1] == "a heading"


async def test_a_narrow_terminal_has_fewer_columns() -> None:
    app = Shown()
    async with app.run_test(size=(40, 10)) as pilot:
        table = app.query_one(Numbers)
        table.show_rows(ROWS)
        await pilot.pause()
        assert "twice" in lines(table)[0]
        await pilot.resize_terminal(24, 10)
        await pilot.pause()
        assert "twice" not in lines(table)[0]
        assert "number" in lines(table)[0]


async def test_columns_scroll_sideways_beside_the_first_one() -> None:
    app = Shown()
    async with app.run_test(size=(24, 10)) as pilot:
        table = app.query_one(Numbers)
        table.show_rows(ROWS)
        table.focus()
        await pilot.pause()
        assert lines(table)[0].split() == ["name", "›", "number"]
        await pilot.press(">")
        assert lines(table)[0].split() == ["name", "‹", "twice"]
        assert lines(table)[3].split() == ["b", "20"]
        await pilot.press(">")
        assert lines(table)[0].split() == ["name", "‹", "twice"]  # the last column stays in view
        await pilot.press("<", "<")
        assert lines(table)[0].split() == ["name", "›", "number"]
        await pilot.resize_terminal(40, 10)
        await pilot.pause()
        assert lines(table)[0].split() == ["name", "number", "twice"]


class Told(Numbers):
    """Each row tells its number in words, a word a line."""

    UNFOLDS = True

    def below(self, index: int, width: int) -> list[Content]:
        _, number = self._lines[self.key_at(index)]
        return [Content(f"  line {line}") for line in range(1, (number or 0) + 1)]


class Telling(App[None]):
    def compose(self) -> ComposeResult:
        yield Told()


async def test_all_rows_are_told_whole_where_there_is_room_else_the_one_under_the_cursor() -> None:
    app = Telling()
    async with app.run_test(size=(24, 16)) as pilot:
        table = app.query_one(Told)
        table.show_rows({"c": ("c", 2), "a": ("a", None), "b": ("b", 3), "d": ("d", 1)})
        table.focus()
        await pilot.pause()
        drawn = [table.render_line(y).text.split()[0:2] for y in range(11)]
        assert drawn[1:] == [["c", "2"], ["line", "1"], ["line", "2"], ["a", "-"], ["b", "3"], ["line", "1"],
                             ["line", "2"], ["line", "3"], ["d", "1"], ["line", "1"]]  # fmt: skip
        await pilot.click(Told, offset=(3, 7))  # a line below is a line of its row
        assert table.current == "b"
        await pilot.resize_terminal(24, 8)
        await pilot.pause()
        heights = [table.render_line(y).text.split()[0] for y in range(8)]
        assert heights == ["name", "c", "a", "b", "line", "line", "line", "d"]
        await pilot.press("home")
        assert [table.render_line(y).text.split()[0] for y in range(7)] == ["name", "c", "line", "line", "a", "b", "d"]
        await pilot.resize_terminal(24, 5)
        await pilot.press("end", "up")
        await pilot.pause()
        assert [table.render_line(y).text.split()[0] for y in range(5)] == ["name", "b", "line", "line", "line"]
