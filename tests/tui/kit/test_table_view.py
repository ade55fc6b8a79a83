"""The table: sorting, filtering, and drawing only what shows something else."""

from __future__ import annotations

from typing import Any

import pytest
from textual.app import App, ComposeResult

from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import TableColumn
from jaxprof.tui.kit.table_view import TableView, TextRow
from tui.fakes import until


class Numbers(TableView[tuple[str, int | None]]):
    """Names and numbers."""

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


class Shown(App[None]):
    def compose(self) -> ComposeResult:
        yield Numbers()


ROWS: dict[Any, tuple[str, int | None]] = {"c": ("c", 2), "a": ("a", None), "b": ("b", 10)}


def lines(table: Numbers) -> list[str]:
    return [table.render_line(y).text.rstrip() for y in range(len(table.keys) + 1)]


async def test_rows_are_sorted_filtered_and_narrowed_and_the_cursor_skips_headings() -> None:
    app = Shown()
    async with app.run_test(size=(40, 10)) as pilot:
        table = app.query_one(Numbers)
        table.show_rows({"heading": TextRow("a heading"), **ROWS})
        table.focus()
        await pilot.pause()
        assert table.current == "c"
        await pilot.press("up")
        assert table.current == "c"
        assert lines(table)[1] == "a heading"

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

        table = app.query_one(Numbers)
        table.show_rows(ROWS)
        table.set_filter("10")
        assert (table.keys, table.hidden) == (["b"], 2)
        table.set_filter("nothing of it")
        assert table.keys == []
        assert lines(table)[0].strip().startswith("Nothing matches the filter")
        table.set_filter("")
        assert (len(table.keys), table.hidden) == (3, 0)

        table = app.query_one(Numbers)
        table.show_rows(ROWS)
        await pilot.pause()
        assert "twice" in lines(table)[0]
        await pilot.resize_terminal(24, 10)
        await until(pilot, lambda: "twice" not in lines(table)[0])
        assert "number" in lines(table)[0]
        table.set_filter("nothing of it")
        said = [table.render_line(y).text.strip() for y in range(3)]
        assert " ".join(said).strip() == "Nothing matches the filter. Esc clears it.", "no word is cut off"


async def test_a_cursor_on_the_first_row_stays_there_only_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Shown()
    async with app.run_test(size=(40, 10)):
        table = app.query_one(Numbers)
        table.show_rows(ROWS)
        table.show_rows({"new": ("new", 1), **ROWS})
        assert table.current == "c"
        monkeypatch.setattr(Numbers, "STAYS_ON_TOP", True)
        table.move_to(0)
        table.show_rows({"newer": ("newer", 1), **ROWS})
        assert table.current == "newer"
        table.move_to(1)
        table.show_rows(ROWS)
        assert table.current == "c"


async def test_a_row_is_chosen_by_its_action_and_by_a_double_click_and_marked_by_a_click_on_its_box() -> None:
    asked: list[tuple[str, int]] = []

    class Asked(Shown):
        def on_row_list_chosen(self, message: RowList.Chosen) -> None:
            asked.append(("chosen", message.index))

        def on_row_list_marked(self, message: RowList.Marked) -> None:
            asked.append(("marked", message.index))

    app = Asked()
    async with app.run_test(size=(40, 10)) as pilot:
        table = app.query_one(Numbers)
        table.show_rows(ROWS)
        await pilot.click(Numbers, offset=(2, 2))
        assert asked == []
        table.MARKS = True  # type: ignore[misc]
        await pilot.click(Numbers, offset=(2, 3))
        await pilot.click(Numbers, offset=(9, 3), times=2)
        table.action_choose()
        await pilot.pause()
        assert asked == [("marked", 2), ("chosen", 2), ("chosen", 2)]


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


async def test_columns_scroll_sideways_beside_the_first_one() -> None:
    app = Shown()
    async with app.run_test(size=(24, 10)) as pilot:
        table = app.query_one(Numbers)
        table.show_rows(ROWS)
        table.focus()
        await pilot.pause()
        assert lines(table)[0].split() == ["name", "›", "number"]
        await pilot.press("shift+right")
        assert lines(table)[0].split() == ["name", "‹", "twice"]
        assert lines(table)[3].split() == ["b", "20"]
        await pilot.press("shift+right")
        assert lines(table)[0].split() == ["name", "‹", "twice"]  # the last column stays in view
        await pilot.press("shift+left", "shift+left")
        assert lines(table)[0].split() == ["name", "›", "number"]
        await pilot.resize_terminal(40, 10)
        await until(pilot, lambda: lines(table)[0].split() == ["name", "number", "twice"])
