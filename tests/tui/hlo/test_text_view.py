"""The text view: what a line looks like, navigation, searches, hostile and very large texts."""

from contextlib import asynccontextmanager
from typing import ClassVar

import pytest
from textual.app import App
from textual.binding import BindingType

from jaxprof.hlo.text.parse import modules
from jaxprof.tui.hlo.modules import Document, HloDocument
from jaxprof.tui.hlo.stage_side import CodeView, StageSide, colour_line
from jaxprof.tui.kit.dialogs import Choose
from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.shell.actions import open_menu
from jaxprof.tui.theme import variables
from tables import rows
from tui.fakes import until
from tui.hlo_texts import HLO, large_hlo

LINES = HLO.split("\n")


def line_of(start, lines=LINES):
    return next(number for number, line in enumerate(lines) if line.strip().startswith(start))


class Viewer(App[None]):
    """The pane alone, with the menu."""

    BINDINGS: ClassVar[list[BindingType]] = [("m", "menu", "Menu")]
    AUTO_FOCUS = "#code"
    CSS = "#text-box, CodeView { height: 1fr; } #origin-box { display: none; }"

    def __init__(self, document):
        super().__init__()
        self.shown = document

    def get_theme_variable_defaults(self):
        return variables()

    def compose(self):
        yield StageSide()

    def on_mount(self):
        side = self.query_one(StageSide)
        side.show_document(self.shown)
        side.view.focus()

    def action_menu(self):
        open_menu(self)


def hlo_document(text=HLO):
    return HloDocument(modules(text))


@asynccontextmanager
async def viewing(document, size=(80, 24)):
    app = Viewer(document)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield pilot, app.query_one(CodeView)


def text_at(view, y):
    return view.render_line(y).text


async def test_lines_fit_the_view_and_hostile_text_is_harmless():
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
        view.show(Document("x" * 100 + "middle" + "y" * 10_000 + "end"))
        assert text_at(view, 0).endswith("xxx…"), "what goes on beyond the edge is marked"
        await pilot.press(*["shift+right"] * 3)
        assert text_at(view, 0)[3:].startswith("…xxx")
        assert "xxxmiddleyyy" in text_at(view, 0)


@pytest.mark.parametrize(
    ("line", "styles"),
    [
        (
            "  ROOT %dot.1 = f32[8,4]{1,0:T(8,128)} dot(%a, b), lhs_contracting_dims={1}, "
            'metadata={op_name="jit(f)/dot"} // x',
            """
                bold $code-keyword    ROOT
                $code-name            %dot.1
                $code-name            %a
                $phase-lower          f32[8,4]
                $code-comment         {1,0:T(8,128)}
                bold $code-name       dot
                $code-keyword         lhs_contracting_dims
                $code-keyword         op_name
                $code-number          1
                $code-string          "jit(f)/dot"
                $code-comment italic  // x
            """,
        ),
        (
            "    %0 = stablehlo.add %arg0, %arg1 : tensor<8x4xf32> loc(#loc3)",
            """
                bold $code-name  stablehlo.add
                $code-name       %0
                $code-name       %arg0
                $phase-lower     tensor<8x4xf32>
            """,
        ),
        (
            "    b:f32[3] = pjit[name=f] a 2.0:f32[]",
            """
                $phase-lower     f32[3]
                bold $code-name  pjit
                $code-keyword    name
            """,
        ),
    ],
)
def test_words_have_their_colours(line, styles):
    found = colour_line(line)
    assert found.plain == line
    drawn = {(str(span.style), line[span.start : span.end]) for span in found.spans}
    assert {(style, word) for style, word in rows(styles)} <= drawn


async def test_the_ways_through_hlo_and_the_copy():
    async with viewing(hlo_document()) as (pilot, view):
        tanh, grad, dot = (line_of(f"%{name} =") for name in ("tanh_fusion", "grad_fusion", "dot.1"))
        header = line_of("%fused_tanh (")
        view.go(tanh)
        for keys, line in (("enter enter", header), ("m comma", tanh)):
            await pilot.press(*keys.split())
            await until(pilot, lambda line=line: view.cursor == line)
        view.go(grad)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(view.app.screen, Choose))
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: view.cursor == dot)

        view.go(grad)
        await pilot.press("y")
        assert view.app.clipboard == LINES[grad].strip()


# -- searching --------------------------------------------------------------------------------------------------------


async def searched(pilot, text):
    pane = pilot.app.query_one(StageSide)
    await pilot.press("slash", *text)
    await until(pilot, lambda: pane.hits is not None)
    return pane.count


async def test_a_search_counts_wraps_and_refuses_a_broken_expression():
    async with viewing(hlo_document()) as (pilot, view):
        pane = pilot.app.query_one(StageSide)
        assert await searched(pilot, "TANH") == "none", "capitals mean capitals"
        await pilot.press("escape")
        assert await searched(pilot, "kind=kLoop") == "1 of 2"
        hits = [line_of("%tanh_fusion ="), line_of("%grad_fusion =")]
        assert view.cursor == hits[0]
        await pilot.press("enter")
        for key, at in (("n", 1), ("n", 0), ("N", 1)):
            await pilot.press(key)
            assert (view.cursor, pane.count) == (hits[at], f"{at + 1} of 2")
        await pilot.press("slash", "escape")
        assert not pane.query_one(FilterLine).display
        await pilot.press("slash", *"a(b")
        await pilot.pause()
        assert pane.count.startswith("not a regular expression")
        assert view.cursor == hits[1]


async def test_a_search_that_is_given_up_stops():
    async with viewing(Document(large_hlo(800, 98))) as (pilot, _):
        await pilot.press("slash", *"mul", "escape")
        await until(pilot, lambda: not any(w.is_running for w in pilot.app.workers if w.group == "search"))
        assert pilot.app.query_one(StageSide).hits is None
