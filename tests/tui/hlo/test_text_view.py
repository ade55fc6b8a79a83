"""The text view: what a line looks like, navigation, folds, searches, hostile and very large texts."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.pilot import Pilot

from jaxprof.hlo.read.lexer import Language
from jaxprof.hlo.read.parse import modules
from jaxprof.tui.hlo.code_view import CodeView
from jaxprof.tui.hlo.document import Document, HloNavigation, TextNavigation
from jaxprof.tui.hlo.stage_side import TextPane
from jaxprof.tui.menu import open_menu
from jaxprof.tui.theme import VARIABLES
from tui.fakes import until
from tui.hlo_texts import HLO, STABLEHLO, large_hlo

LINES = HLO.split("\n")


def line_of(start: str, lines: list[str] = LINES) -> int:
    return next(number for number, line in enumerate(lines) if line.strip().startswith(start))


class Viewer(App[None]):
    """The pane alone, with the menu."""

    BINDINGS: ClassVar[list[BindingType]] = [("m", "menu", "Menu")]
    CSS = """
    TextPane, TextView { height: 1fr; }
    .text-view--chosen { text-style: reverse; } .text-view--hit { text-style: underline; }
    .text-view--name { color: red; } .text-view--shape { color: green; } .text-view--opcode { color: blue; }
    """

    def __init__(self, document: Document) -> None:
        super().__init__()
        self.shown = document
        self.asked: list[CodeView.ManyUsers] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return VARIABLES

    def compose(self) -> ComposeResult:
        yield TextPane()

    def on_mount(self) -> None:
        pane = self.query_one(TextPane)
        pane.show(self.shown)
        pane.view.focus()

    def action_menu(self) -> None:
        open_menu(self)

    def on_code_view_many_users(self, message: CodeView.ManyUsers) -> None:
        self.asked.append(message)


def hlo_document(text: str = HLO) -> Document:
    found = modules(text)
    return Document(text, Language.HLO, HloNavigation(found))


@asynccontextmanager
async def viewing(document: Document, size: tuple[int, int] = (80, 24)) -> AsyncIterator[tuple[Pilot[Any], CodeView]]:
    app = Viewer(document)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield pilot, app.query_one(CodeView)


def text_at(view: CodeView, y: int) -> str:
    return view.render_line(y).text


async def test_a_line_is_its_number_and_its_text_as_wide_as_the_view() -> None:
    async with viewing(Document("first\nsecond\n")) as (pilot, view):
        assert text_at(view, 0) == "1▸ first" + " " * 72
        assert text_at(view, 1) == "2  second" + " " * 71
        assert text_at(view, 2).strip() == ""
        await pilot.press("down")
        assert text_at(view, 0).startswith("1  first")
        assert text_at(view, 1).startswith("2▸ second")


async def test_hostile_text_is_shown_and_not_obeyed() -> None:
    text = "[b]bold[/x] \x1b[31mred\x1b[0m \u202egnp\ttab\r\n\x07bell \x9b2J 漢字"
    async with viewing(Document(text)) as (_, view):
        first, second = text_at(view, 0), text_at(view, 1)
        assert "[b]bold[/x] ␛[31mred␛[0m \\u202egnp tab␍" in first
        assert "␇bell \\x9b2J 漢字" in second
        assert view.render_line(1).cell_length == 80


async def test_a_million_lines_are_there_at_once_and_scroll_smoothly() -> None:
    text = large_hlo(10_000, 98)
    assert text.count("\n") >= 1_000_000 - 1
    began = time.process_time()
    document = hlo_document(text)
    async with viewing(document, (120, 40)) as (pilot, view):
        assert time.process_time() - began < 3.0  # half a second on a machine of its own
        began = time.process_time()
        for page in range(40):
            view.scroll_to(y=20_000 * page + 7, animate=False)
            for y in range(40):
                view.render_line(y)
        assert (time.process_time() - began) / 40 < 0.06  # 5 to 12 ms
        await pilot.press("end")
        assert view.cursor == document.line_count - 1
        assert any(text_at(view, y).startswith("1000001▸ }") for y in range(40))


async def test_the_ways_through_hlo_folds_and_the_copy() -> None:
    async with viewing(hlo_document()) as (pilot, view):
        start = line_of("%tanh_fusion =")
        view.go(start)
        await pilot.press("enter")
        assert LINES[view.cursor].startswith("%fused_tanh (")
        await pilot.press("m", "comma")
        assert view.cursor == start
        await pilot.press("m", "full_stop")
        assert LINES[view.cursor].startswith("%fused_tanh (")

        view.go(line_of("%grad_fusion ="))
        await pilot.press("right", "right", "right")
        assert view.chosen_name == "dot.1"
        await pilot.press("enter")
        assert view.cursor == line_of("%dot.1 =")

        view.go(line_of("%grad_fusion ="))
        await pilot.press("m", "u")
        assert view.cursor == line_of("ROOT %tuple.1")
        view.go(line_of("%dot.1 ="))
        await pilot.press("m", "u")
        await pilot.pause()
        app = view.app
        assert isinstance(app, Viewer)
        assert [(one.name, one.lines) for one in app.asked] == [
            ("dot.1", [line_of("%tanh_fusion ="), line_of("%grad_fusion =")])
        ]

        view.go(line_of("%fused_tanh ("))
        await pilot.press("m", "u")
        assert view.cursor == line_of("%tanh_fusion =")

        view.go(line_of("%dot.1 ="))
        await pilot.press("y")
        assert view.app.clipboard == LINES[line_of("%dot.1 =")].strip()

        header = line_of("%fused_tanh (")
        view.go(header + 2)
        await pilot.press("m", "z")
        assert view.cursor == header
        row = header - round(view.scroll_y)
        assert f"{header + 1}+" in text_at(view, row)
        assert "… 6 lines" in view.render_line(row).text or "…" in view.render_line(row).text
        assert text_at(view, row + 1).lstrip().startswith(str(header + 8))
        view.go(header + 3)
        assert text_at(view, header + 1 - round(view.scroll_y)).lstrip().startswith(str(header + 2))
        await pilot.press("m", "Z")
        rows = [text_at(view, y) for y in range(24)]
        assert sum("+" in row[:5] for row in rows) == 4


async def test_stablehlo_has_ways_by_its_notation() -> None:
    document = Document(STABLEHLO, Language.STABLEHLO)
    document.navigation = TextNavigation(document.source, Language.STABLEHLO)
    lines = STABLEHLO.split("\n")
    async with viewing(document) as (pilot, view):
        view.go(line_of("%2 = call", lines))
        await pilot.press("enter")
        assert lines[view.cursor].startswith("  func.func private @total")
        view.go(line_of("%1 = stablehlo.tanh", lines))
        await pilot.press("enter")
        assert view.cursor == line_of("%0 = stablehlo.dot_general", lines)
        await pilot.press("m", "u")
        assert view.cursor == line_of("%1 = stablehlo.tanh", lines)
        view.go(line_of("%0 = stablehlo.reduce", lines))
        await pilot.press("right", "right", "enter")
        assert lines[view.cursor].startswith("  func.func private @total"), "an argument of this function, not of main"


# -- searching --------------------------------------------------------------------------------------------------------


async def searched(pilot: Pilot[Any], text: str) -> TextPane:
    pane = pilot.app.query_one(TextPane)
    await pilot.press("slash", *text)
    await until(pilot, lambda: pane.hits is not None and pane.hits.over)
    return pane


def count(pilot: Pilot[Any]) -> str:
    return pilot.app.query_one(TextPane).count.plain


async def test_a_search_counts_wraps_and_refuses_a_broken_expression() -> None:
    async with viewing(hlo_document()) as (pilot, view):
        await searched(pilot, "TANH")
        assert count(pilot) == "none", "capitals mean capitals"
        await pilot.press("escape")
        await searched(pilot, "kind=kLoop")
        assert count(pilot) == "1 of 2"
        assert view.cursor == line_of("%tanh_fusion =")
        await pilot.press("enter", "n")
        assert view.cursor == line_of("%grad_fusion =")
        assert count(pilot) == "2 of 2"
        await pilot.press("n")
        assert view.cursor == line_of("%tanh_fusion =")
        await pilot.press("N")
        assert view.cursor == line_of("%grad_fusion =")
        await pilot.press("slash", "escape")
        assert not pilot.app.query_one(TextPane).searching
        await pilot.press("slash", *"a(b")
        await pilot.pause()
        assert count(pilot).startswith("not a regular expression")
        assert view.cursor == line_of("%grad_fusion =")


async def test_a_search_that_is_given_up_stops() -> None:
    async with viewing(Document(large_hlo(2000, 98))) as (pilot, _):
        pane = pilot.app.query_one(TextPane)
        await pilot.press("slash", *"mul")
        await pilot.press("escape")
        await until(pilot, lambda: not any(w.is_running for w in pilot.app.workers if w.group == "search"))
        assert pane.hits is None
