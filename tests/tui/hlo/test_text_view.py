"""The text view: what a line looks like, navigation, folds, searches, hostile and very large texts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.pilot import Pilot

from jaxprof.hlo.read.lexer import Language
from jaxprof.hlo.read.parse import modules
from jaxprof.tui.hlo.code_view import CodeView
from jaxprof.tui.hlo.document import Document, Folds, HloNavigation, TextNavigation
from jaxprof.tui.hlo.stage_side import TextPane
from jaxprof.tui.hlo.text_search import Hits, matches, pieces
from jaxprof.tui.kit.filter import compiled
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


async def test_lines_are_as_wide_as_the_view_and_hostile_text_is_not_obeyed():
    async with viewing(Document("first\nsecond\n")) as (pilot, view):
        assert text_at(view, 0) == "1▸ first" + " " * 72
        assert text_at(view, 1) == "2  second" + " " * 71
        assert text_at(view, 2).strip() == ""
        await pilot.press("down")
        assert [text_at(view, 0)[:4], text_at(view, 1)[:4]] == ["1  f", "2▸ s"]
        view.show(Document("[b]bold[/x] \x1b[31mred\x1b[0m \u202egnp\ttab\r\n\x07bell \x9b2J 漢字"))
        assert "[b]bold[/x] ␛[31mred␛[0m \\u202egnp tab␍" in text_at(view, 0)
        assert "␇bell \\x9b2J 漢字" in text_at(view, 1)
        assert view.render_line(1).cell_length == 80


async def test_the_ways_through_hlo_folds_and_the_copy():
    async with viewing(hlo_document()) as (pilot, view):
        tanh, grad, dot = (line_of(f"%{name} =") for name in ("tanh_fusion", "grad_fusion", "dot.1"))
        header = line_of("%fused_tanh (")
        view.go(tanh)
        for keys, line in (("enter", header), ("m comma", tanh), ("m full_stop", header)):
            await pilot.press(*keys.split())
            assert view.cursor == line
        view.go(grad)
        await pilot.press("right", "right", "right")
        assert view.chosen_name == "dot.1"
        await pilot.press("enter")
        assert view.cursor == dot

        for start, user in ((grad, line_of("ROOT %tuple.1")), (header, tanh), (dot, dot)):
            view.go(start)
            await pilot.press("m", "u")
            assert view.cursor == user
        await pilot.pause()
        app: Any = view.app
        assert [(one.name, one.lines) for one in app.asked] == [("dot.1", [tanh, grad])]
        await pilot.press("y")
        assert app.clipboard == LINES[dot].strip()

        view.go(header + 2)
        await pilot.press("m", "z")
        assert view.cursor == header
        row = header - round(view.scroll_y)
        assert f"{header + 1}+" in text_at(view, row)
        assert "…" in text_at(view, row)
        assert text_at(view, row + 1).lstrip().startswith(str(header + 8))
        view.go(header + 3)
        assert text_at(view, header + 1 - round(view.scroll_y)).lstrip().startswith(str(header + 2))
        await pilot.press("m", "Z")
        assert sum("+" in text_at(view, y)[:5] for y in range(24)) == 4


async def test_stablehlo_has_ways_by_its_notation():
    document = Document(STABLEHLO, Language.STABLEHLO)
    document.navigation = TextNavigation(document.source, Language.STABLEHLO)
    lines = STABLEHLO.split("\n")
    total, dot, tanh = (
        line_of(start, lines) for start in ("func.func private @total", "%0 = stablehlo.dot", "%1 = stablehlo.tanh")
    )
    async with viewing(document) as (pilot, view):
        for start, keys, end in (
            ("%2 = call", "enter", total),
            ("%1 = stablehlo.tanh", "enter", dot),
            ("%0 = stablehlo.dot", "m u", tanh),
            ("%0 = stablehlo.reduce", "right right enter", total),  # an argument of this function, not of main
        ):
            view.go(line_of(start, lines))
            await pilot.press(*keys.split())
            assert view.cursor == end


# -- searching --------------------------------------------------------------------------------------------------------


async def searched(pilot: Pilot[Any], text: str) -> str:
    """What is said of a search, once it is over."""
    pane = pilot.app.query_one(TextPane)
    await pilot.press("slash", *text)
    await until(pilot, lambda: pane.hits is not None and pane.hits.over)
    return pane.count.plain


async def test_a_search_counts_wraps_and_refuses_a_broken_expression():
    async with viewing(hlo_document()) as (pilot, view):
        pane = pilot.app.query_one(TextPane)
        assert await searched(pilot, "TANH") == "none", "capitals mean capitals"
        await pilot.press("escape")
        assert await searched(pilot, "kind=kLoop") == "1 of 2"
        hits = [line_of("%tanh_fusion ="), line_of("%grad_fusion =")]
        assert view.cursor == hits[0]
        await pilot.press("enter")
        for key, at in (("n", 1), ("n", 0), ("N", 1)):
            await pilot.press(key)
            assert (view.cursor, pane.count.plain) == (hits[at], f"{at + 1} of 2")
        await pilot.press("slash", "escape")
        assert not pane.searching
        await pilot.press("slash", *"a(b")
        await pilot.pause()
        assert pane.count.plain.startswith("not a regular expression")
        assert view.cursor == hits[1]


async def test_a_search_that_is_given_up_stops():
    async with viewing(Document(large_hlo(2000, 98))) as (pilot, _):
        await pilot.press("slash", *"mul", "escape")
        await until(pilot, lambda: not any(w.is_running for w in pilot.app.workers if w.group == "search"))
        assert pilot.app.query_one(TextPane).hits is None


@given(st.text("ab\n", max_size=300), st.integers(0, 300))
def test_pieces_cover_the_text_once_and_end_with_lines(text, start):
    start = min(start, len(text))
    found = list(pieces(text, start))
    covered = sorted(found)
    assert "".join(text[begin:end] for begin, end in covered) == text
    hits = Hits(compiled("ab"), start)
    for piece in found:
        hits.take(matches(text, hits.pattern, piece))
    hits.finish()
    split = 1 if text[max(0, start - 1) : start + 1] == "ab" and start else 0
    assert len(hits.offsets) == len(re.findall("ab", text)) - split


# -- folds and details -----------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=8))
def test_folds_show_each_line_in_one_row_and_swallow_those_inside(lengths):
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
    assert folds.folded((0, at + 1)).blocks == ((0, at + 1),)


def test_a_short_document_has_the_same_lines_without_their_details():
    document = Document(
        'ENTRY e {\n  a = f32[] constant(1), metadata={op_name="metadata={x}"}\n  b = f32[] negate(a)\n}'
    )
    whole = [document.line(number) for number in range(4)]
    for short, line in ((True, "  a = f32[] constant(1)"), (False, whole[1])):
        document.short = short
        assert [document.line(number) for number in range(4)] == [whole[0], line, *whole[2:]]
