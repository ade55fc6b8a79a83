"""Lists: columns as data, the table that sorts, filters and draws only what changed, claims that share free lines."""

import re
from contextlib import asynccontextmanager
from itertools import islice

import pytest
from textual.app import App

from jaxprof.facts import column
from jaxprof.report import Table
from jaxprof.tui.kit.row_list import Heading, RowList
from jaxprof.tui.kit.table_columns import Span, TableColumn, header_line, lay_out, row_line, table_lines
from jaxprof.tui.kit.text_lists import Claim, ClaimList
from tui import hlo_texts
from tui.fakes import screen_text, until, walking

NAME = TableColumn[str]("name", lambda row: row, 4, weight=1)
SIZE = TableColumn[str]("size", lambda row: str(len(row)), 4, right=True, sort=len)
HOST = TableColumn[str]("host", lambda row: "box", 6, priority=1)
NOTE = TableColumn[str]("note", lambda row: "-", 3, priority=2)
ALL = (NAME, NOTE, HOST, SIZE)


def test_a_line_fills_the_width_and_is_never_wider():
    for width in range(3, 90):
        layout = lay_out(ALL, width)
        header, row = header_line(layout), row_line("a\x1b[31mlong name of many letters", layout, width)
        assert header.cell_length == row.cell_length
        assert row.cell_length == width or width < 10
        assert "\x1b" not in row.plain


def test_first_row_of_a_table_without_titles_is_no_heading():
    for title, styles in (("name", ["bold $primary", "", "", "$text-muted"]), ("", ["", "", "$text-muted"])):
        lines = table_lines(Table((column(title, str),), ("a", "b"), notes=("a note",)), 40)
        assert [str(line.spans[0].style) if line.spans else "" for line in lines] == styles


def test_spanning_cell_takes_the_width_that_is_left():
    why = TableColumn[str]("why", lambda row: Span((row, "$error")), 3)
    layout = lay_out((TableColumn[str]("name", str, 8), why, SIZE), 30)
    assert row_line("out of memory", layout, 30).plain.rstrip() == " out of … out of memory"
    layout = lay_out((TableColumn[str]("name", str, 8), TableColumn[str]("size", str, 8, right=True)), 30)
    assert header_line(layout, layout[0].column).plain == " name ▾       size"
    assert header_line(layout, layout[1].column, backwards=True).plain == " name       ▴ size"


class Numbers(RowList[tuple[str, int | None]]):
    UNSORTED = "as given"
    EMPTY = "Nothing here."

    def __init__(self):
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
    def __init__(self):
        super().__init__()
        self.asked = []

    def compose(self):
        yield Numbers()

    def on_row_list_chosen(self, message):
        self.asked.append(message.index)


ROWS = {"c": ("c", 2), "a": ("a", None), "b": ("b", 10)}


@asynccontextmanager
async def showing(width=40):
    app = Shown()
    async with app.run_test(size=(width, 10)) as pilot:
        table = app.query_one(Numbers)
        table.show_rows(ROWS)
        table.focus()
        await pilot.pause()
        yield pilot, app, table


def lines(table):
    return [table.render_line(y).text.rstrip() for y in range(len(table.keys) + 1)]


async def test_cursor_skips_headings_of_sorted_and_filtered_rows():
    async with showing() as (pilot, _, table):
        table.show_rows({"heading": Heading("a heading"), **ROWS})
        await pilot.press("up")
        assert table.current == "c"
        assert lines(table)[1] == "a heading"

        table.show_rows(ROWS)
        seen = [("".join(table.keys), table.order_in_words)]
        for _ in range(3):
            table.action_sort_by_next()
            seen.append(("".join(table.keys), table.order_in_words))
        for _ in range(2):
            await pilot.click(Numbers, offset=(2, 0))
            seen.append(("".join(table.keys), lines(table)[0].split("  ")[0].strip()))
        assert seen == [
            ("cab", ""), ("cba", "by number ▾"), ("abc", "by name ▾"), ("cab", ""), ("abc", "name ▾"), ("cba", "name ▴")
        ]  # fmt: skip

        table.set_filter("10")
        assert (table.keys, table.hidden) == (["b"], 2)
        table.show_rows({**ROWS, "B": ("B", 10)})
        for text in ("b 10", "10 B"):
            table.set_filter(text)
            assert table.keys == ["b", "B"]
        table.show_rows(ROWS)
        table.set_filter("")
        assert (len(table.keys), table.hidden) == (3, 0)
        assert "twice" in lines(table)[0]
        await pilot.resize_terminal(24, 10)
        await until(pilot, lambda: "twice" not in lines(table)[0])
        assert "number" in lines(table)[0]
        table.set_filter("nothing of it")
        said = [table.render_line(y).text.strip() for y in range(3)]
        assert " ".join(said).strip() == "Nothing matches the filter. Esc clears it.", "no word is cut off"


async def test_cursor_stays_on_the_first_row_only_if_wanted(monkeypatch):
    async with showing() as (_, _, table):
        table.show_rows({"new": ("new", 1), **ROWS})
        assert table.current == "c"
        monkeypatch.setattr(Numbers, "STAYS_ON_TOP", True)
        table.move_to(0)
        table.show_rows({"newer": ("newer", 1), **ROWS})
        assert table.current == "newer"
        table.move_to(1)
        table.show_rows(ROWS)
        assert table.current == "c"


async def test_a_row_is_chosen_by_its_action_and_by_a_double_click():
    async with showing() as (pilot, app, table):
        await pilot.click(Numbers, offset=(2, 2))
        assert app.asked == []
        await pilot.click(Numbers, offset=(9, 3), times=2)
        table.action_choose()
        await pilot.pause()
        assert app.asked == [2, 2]


async def test_only_what_shows_something_else_is_drawn_again(monkeypatch):
    async with showing(24) as (_, _, table):
        drawn = []
        assert screen_text(table.app)
        monkeypatch.setattr(table, "refresh", lambda *regions, **rest: drawn.extend(map(tuple, regions)))
        table.show_rows(dict(ROWS))
        assert drawn == []
        table.show_rows({**ROWS, "b": ("b", 11)})
        table.show_rows({**ROWS, "b": ("d", 12)})
        assert drawn == [(0, 3, 24, 1)] * 2
        table.empty = "a\x1b[31m name"
        table.show_rows({})
        assert "\x1b" not in "".join(table.render_line(y).text for y in range(2))


@pytest.mark.usefixtures("small_catalogue")
async def test_key_bar_names_the_arrows_of_the_screen():
    async with walking() as walk:
        await walk.show(hlo_texts.program_tape(), "profile", view="memory")
        await walk.shows("m, then . goes to the next change")
        assert "← Earlier  → Later" in walk.text.splitlines()[-1]


class Claims(App[None]):
    def compose(self):
        yield ClaimList()


async def test_claims_that_do_not_all_fit_share_the_free_lines():
    app = Claims()
    async with app.run_test(size=(40, 9)) as pilot:
        claims = app.query_one(ClaimList)
        claims.show(Claim(f"{name} takes most of the wall time of it", fix=f"mend {name}") for name in "abc")
        await pilot.pause()
        text = screen_text(app)
        assert [text.count(f"mend {name}") for name in "abc"] == [1, 1, 1]
        for height, shown in ((7, ["mend a", "mend b"]), (6, ["mend a"])):
            await pilot.resize_terminal(40, height)
            await pilot.pause()
            said = screen_text(app).split("\n")
            assert [line.strip() for line in said if "mend" in line] == shown
        assert [line.strip()[0] for line in said if line.endswith("…")] == ["b", "c"], "what is left out is marked"


async def test_lines_below_a_row_wrap_again_without_a_scrollbar():
    app = Claims()
    words = iter(f"w{number:03d}" for number in range(400))
    async with app.run_test(size=(51, 40)) as pilot:
        claims = app.query_one(ClaimList)
        claims.show(Claim(" ".join(islice(words, 14)), fix=" ".join(islice(words, 20))) for _ in range(4))
        await pilot.pause()
        await pilot.resize_terminal(51, 10)  # for a moment more lines than fit, so with a scrollbar
        await pilot.pause()
        assert not claims.show_vertical_scrollbar
        seen = re.findall(r"w\d{3}", screen_text(app))
        assert len(seen) == len(set(seen)), "no word is at the end of one line and at the start of the next"
