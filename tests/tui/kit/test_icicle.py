"""The flame graph on a screen: zoom with keys and mouse, search, and what it says of the frame under the cursor."""

from __future__ import annotations

from jaxprof.analysis.flame import FlameGraph, StackFrame, WeightedStack, stacks_flame
from jaxprof.tui.kit.icicle import Icicle, IciclePane
from jaxprof.tui.program.line_profile import SourceLines
from tui import recorded
from tui.fakes import Walk, walking


def graph(*rows: tuple[str, float]) -> FlameGraph:
    stacks = [WeightedStack(tuple(map(StackFrame, path.split("/"))), seconds, 1) for path, seconds in rows]
    return stacks_flame(stacks, "measured", "scope")


def kernels() -> FlameGraph:
    """Two blocks, and a hundred kernels that are too small to be drawn one by one."""
    small = [(f"step/norm/small.{number}", 0.001) for number in range(100)]
    return graph(
        ("step/block_0/attention/dot.1", 5.0), ("step/block_0/mlp/dot.2", 3.0), ("step/block_1/dot.3", 2.0), *small
    )


async def drawn(walk: Walk) -> tuple[IciclePane, Icicle]:
    """The flame graph of `kernels`, in the place of a program's."""
    await walk.show(recorded.finished(), "program")
    await walk.press("m O")
    pane = walk.find(IciclePane)
    pane.show(kernels())
    await walk.pause()
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
    async with walking((100, 30)) as walk:
        pane, view = await drawn(walk)
        await walk.shows("▶all", "│block_0", "│attention")

        async def clicked(name: str) -> str:
            await walk.pilot.click(view, offset=column(view, name) if name else (1, 0))
            return top(view)

        assert await clicked("block_0") == "block_0"
        await walk.shows("all › step › block_0")
        assert [await clicked(name) for name in ("attention", "attention", "")] == ["attention", "block_0", "all"]

        _, view = await drawn(walk)
        await walk.press("down down down right", "self 0 ns · total 3.00 s · 30 % of all · 38 % of block_0")
        await walk.press("up down", "38 % of block_0")  # the way down is the way that the cursor came
        tops = []
        for keys in ("up enter", "down enter escape", "escape"):
            await walk.press(keys)
            tops.append(top(view))
        assert tops == ["block_0", "block_0", "all"]
        assert walk.app.current_mode == "program"

        _, view = await drawn(walk)
        cursor = lambda: view.browse.graph.tree.name_of(view.browse.cursor)  # noqa: E731
        await walk.press("/ 'dot", "/dot: 3 frames, together 10.0 s, 99 % of all")
        await walk.press("enter n")
        assert cursor() == "dot.1"
        await walk.press("n N N")
        assert cursor() == "dot.3"
        await walk.press("escape", gone="/dot")
        await walk.press("/ (", "not a regular expression")

        pane, view = await drawn(walk)
        await clicked("block_0")
        pane.show(graph(("other/x", 20.0), ("step/block_0/attention/dot.1", 6.0), ("step/block_0/mlp", 4.0)), same=True)
        await walk.shows("total 10.0 s")
        assert top(view) == "block_0"
        await walk.press("escape")
        assert top(view) == "all"

        _, view = await drawn(walk)
        view.go(view.browse.graph.tree.find(["step", "norm", "small.99"]))
        await walk.pause()
        assert cursor() == "small.99", "it zooms until the frame is drawn"

        await walk.show(recorded.finished(), "program")
        await walk.press("m O down down down down down enter")
        await walk.on(SourceLines)
