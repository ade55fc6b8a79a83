"""The flame graph on a screen: zoom with keys and mouse, search, and what it says of the frame under the cursor."""

from __future__ import annotations

from textual.pilot import Pilot

from jaxprof.analysis.flame import FlameGraph, StackFrame, WeightedStack, stacks_flame
from jaxprof.tui.kit.icicle import Icicle, IciclePane
from jaxprof.tui.program.screen import ProgramScreen
from tui import recorded
from tui.fakes import Stage, screen_text, until
from tui.program.test_program_screen import shown

SIZE = (100, 30)


def graph(*rows: tuple[str, float]) -> FlameGraph:
    stacks = [WeightedStack(tuple(map(StackFrame, path.split("/"))), seconds, 1) for path, seconds in rows]
    return stacks_flame(stacks, "measured", "scope")


def kernels() -> FlameGraph:
    """Two blocks, and a hundred kernels that are too small to be drawn one by one."""
    small = [(f"step/norm/small.{number}", 0.001) for number in range(100)]
    return graph(
        ("step/block_0/attention/dot.1", 5.0), ("step/block_0/mlp/dot.2", 3.0), ("step/block_1/dot.3", 2.0), *small
    )


async def drawn(stage: Stage, pilot: Pilot[object]) -> tuple[IciclePane, Icicle]:
    """The flame graph of `kernels`, in the place of a program's."""
    await shown(stage, pilot, recorded.finished())
    await pilot.press("m", "O")
    pane = stage.app.screen.query_one(IciclePane)
    pane.show(kernels())
    await pilot.pause()
    return pane, pane.view


def top(view: Icicle) -> str:
    assert view.browse is not None
    return view.browse.graph.tree.name_of(view.browse.top)


def column(view: Icicle, name: str) -> tuple[int, int]:
    """Where a frame with that name is drawn, in the widget."""
    assert view.browse is not None
    tree, high = view.browse.graph.tree, (view.size.height - 1) // len(view.browse.rows)
    for row, spans in enumerate(view.browse.rows):
        for span in spans:
            if span.frame is not None and tree.name_of(span.frame) == name:
                return span.begin, 1 + row * max(1, min(3, high))
    raise AssertionError(f"{name} is not drawn")


async def test_keys_clicks_searches_and_growth() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE) as pilot:
        _, view = await drawn(stage, pilot)
        await pilot.click(view, offset=column(view, "block_0"))
        assert top(view) == "block_0"
        assert "all › step › block_0" in screen_text(stage.app)
        await pilot.click(view, offset=column(view, "attention"))
        assert top(view) == "attention"
        await pilot.click(view, offset=column(view, "attention"))
        assert top(view) == "block_0"
        await pilot.click(view, offset=(1, 0))
        assert top(view) == "all"

        _, view = await drawn(stage, pilot)
        await pilot.press("down", "down", "down", "right")
        assert "self 0 ns · total 3.00 s · 30 % of all · 38 % of block_0" in screen_text(stage.app)
        await pilot.press("up", "down")
        assert "38 % of block_0" in screen_text(stage.app), "the way down is the way that the cursor came"
        await pilot.press("up", "enter")
        assert top(view) == "block_0"
        await pilot.press("down", "enter", "escape")
        assert top(view) == "block_0"
        await pilot.press("escape")
        assert top(view) == "all"
        assert isinstance(stage.app.screen, ProgramScreen)

        _, view = await drawn(stage, pilot)
        await pilot.press("slash", *"dot")
        await until(pilot, lambda: "/dot: 3 frames, together 10.0 s, 99 % of all" in screen_text(stage.app))
        await pilot.press("enter", "n")
        assert view.browse is not None
        assert view.browse.graph.tree.name_of(view.browse.cursor) == "dot.1"
        await pilot.press("n", "N", "N")
        assert view.browse.graph.tree.name_of(view.browse.cursor) == "dot.3"
        await pilot.press("escape")
        await until(pilot, lambda: "/dot" not in screen_text(stage.app))
        await pilot.press("slash", "left_parenthesis")
        await until(pilot, lambda: "not a regular expression" in screen_text(stage.app))

        pane, view = await drawn(stage, pilot)
        await pilot.click(view, offset=column(view, "block_0"))
        pane.show(graph(("other/x", 20.0), ("step/block_0/attention/dot.1", 6.0), ("step/block_0/mlp", 4.0)), same=True)
        await pilot.pause()
        assert top(view) == "block_0"
        assert "total 10.0 s" in screen_text(stage.app)
        await pilot.press("escape")
        assert top(view) == "all"

        _, view = await drawn(stage, pilot)
        view.go(view.browse.graph.tree.find(["step", "norm", "small.99"]) if view.browse else 0)
        await pilot.pause()
        assert view.browse is not None
        assert view.browse.graph.tree.name_of(view.browse.cursor) == "small.99", "it zooms until the frame is drawn"

        await drawn(stage, pilot)
        text = screen_text(stage.app)
        assert "▶all" in text
        assert "│block_0" in text
        assert "│attention" in text


async def test_enter_on_a_line_shows_its_source() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE) as pilot:
        await shown(stage, pilot, recorded.finished())
        await pilot.press("m", "O", *["down"] * 5, "enter")
        await until(pilot, lambda: type(stage.app.screen).__name__ == "SourceLines")
