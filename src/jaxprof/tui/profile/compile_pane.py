"""Where the time of a compilation went: the stages with their shares, and the tree of XLA's phases and passes below.

A node's self time is the time that no child covers. Stages are sums of self times, so they add up to the compilation;
if several threads worked at once, they add up to more than the wall time, and the title shows both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Container, Vertical
from textual.content import Content

from jaxprof.analysis.measured import stage_times
from jaxprof.tui.kit.drawing import bar, cell
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.time_tree import DEEPEST, TimeNode, TimeTree
from jaxprof.units import percent_or_less, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.events import PassTimes


STAGES = 8
"""Most stages shown."""


def stage_lines(tree: PassTimes, width: int) -> list[Content]:
    """Return a bar for each stage; if there are very many, the shortest ones share one bar."""
    rows = [(times.stage, times.seconds) for times in stage_times(tree)]
    whole = sum(time for _, time in rows)
    if len(rows) > STAGES:
        rest = rows[STAGES - 1 :]
        rows = [*rows[: STAGES - 1], (f"{len(rest)} others", sum(time for _, time in rest))]
    if not whole:
        return [Content.styled("No phase of this compile took any time.", "$text-muted")]
    room = max(4, width - 19 - 9 - 9)
    return [
        Content.assemble(
            cell(stage, 18), " ", cell(seconds(time), 8, "bold", right=True),
            cell(percent_or_less(time / whole), 8, "$text-muted", right=True), "  ",
            bar(time / max(row[1] for row in rows), room, "$phase-compile"),
        )
        for stage, time in rows
    ]  # fmt: skip


def tree_of(node: PassTimes, depth: int = 0) -> TimeNode:
    """Return a phase or pass with those inside it."""
    inside = tuple(tree_of(child, depth + 1) for child in node.children) if depth < DEEPEST else ()
    return TimeNode(node.name, node.seconds, node.self_seconds, node.count, inside, node.stage)


class CompilePane(Guarded, Container):
    """The stages and the tree of a compile."""

    _data: object = None

    def compose(self) -> ComposeResult:
        with Vertical(id="stage-box", classes="box") as box:
            box.border_title = "Stages"
            yield Lines(id="stages")
        with Vertical(id="pass-box", classes="box") as box:
            box.border_title = "Phases and passes"
            yield TimeTree("phase or pass", "stage", id="passes")

    def show(self, data: PassTimes | None, words: str) -> None:
        """Show the tree of a log, or `words` that explain why there is none."""
        box, tree = self.query_one("#stage-box"), self.query_one(TimeTree)
        box.display, tree.empty = data is not None, words
        if data is not self._data or data is None:
            self._data = data
            tree.show(tree_of(data) if data is not None else None)
        if data is not None:
            self.query_one("#stages", Lines).show(id(data), lambda width: stage_lines(data, width))
            worked = sum(times.seconds for times in stage_times(data))
            parallel = f" · {seconds(worked)} of all threads" if worked > data.seconds * 1.02 else ""
            box.border_subtitle = Content(f"{seconds(data.seconds)}{parallel}")
        self._show_order()

    def on_table_view_sorted(self) -> None:
        self._show_order()

    def _show_order(self) -> None:
        order = self.query_one(TimeTree).order_in_words if self._data is not None else ""
        self.query_one("#pass-box").border_subtitle = Content(order)
