"""Where the time of a compilation went: the stages with their shares, and the tree of XLA's phases and passes below.

A node's self time is the time that no child covers. Stages are sums of self times, so they add up to the compilation;
if several threads worked at once, they add up to more than the wall time, and the title shows both.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING

from textual.containers import Container, Vertical
from textual.content import Content

from jaxprof.analysis.measured import seconds_of_threads, stage_times
from jaxprof.text import columns
from jaxprof.tui.kit.drawing import bar, cell
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.table_columns import Drawing, TableColumn, in_order
from jaxprof.tui.kit.table_view import Heading, TreeView
from jaxprof.units import integer, percent_or_less, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.events import PassTimes


OPEN_FROM = 0.1
"""A node with at least this share of the compile is open at first."""
DEEPEST = 64
STAGES = 8
"""Most stages shown."""


Path = tuple[int, ...]
"""The place of a phase or pass in the tree: the index of each node on the way to it."""


def _walk(node: PassTimes, path: Path = ()) -> Iterator[tuple[Path, PassTimes]]:
    """Yield a node and all nodes below it, with their paths, down to the depth `DEEPEST`."""
    yield path, node
    if len(path) < DEEPEST:
        for at, child in enumerate(node.children):
            yield from _walk(child, (*path, at))


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


class PassTree(TreeView["PassTimes"], keys="passes"):
    """The phases and passes; a node with children can be opened."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("phase or pass", self._pass, 34, weight=4, most=64),
                TableColumn("stage", lambda node: node.stage, 12, weight=1, most=18, priority=1, style="$text-muted"),
                TableColumn("times", lambda node: integer(node.count) if node.count > 1 else "", 5, right=True,
                       style="$text-muted"),
                TableColumn("total", lambda node: seconds(node.seconds), 8, right=True),
                TableColumn("self", lambda node: seconds(node.self_seconds), 8, right=True, style="bold", gap=2),
                TableColumn("", self._bar, 6, weight=3),
            ),
            id=id,
        )  # fmt: skip
        self.words = ""
        """Text shown in place of the tree."""
        self._root: PassTimes | None = None
        self._paths: dict[int, Path] = {}
        """The path of each node, by its id."""
        self._flat = False

    def show(self, root: PassTimes | None) -> None:
        """Show another tree, opened where most of the time was spent."""
        self._root, nodes = root, list(_walk(root)) if root is not None else []
        self._paths = {id(node): path for path, node in nodes}
        self.opened = {path for path, node in nodes if node.seconds >= nodes[0][1].seconds * OPEN_FROM}
        self.opened_at_first = frozenset(self.opened)
        self.show_rows({(): root} if root is not None else {})
        self.move_to(0)

    @property
    def empty_text(self) -> str:
        return self.words

    @property
    def order_in_words(self) -> str:
        """The order of the rows in words, for the frame."""
        return "by self time" if self._flat else "in order of execution"

    def arranged(self) -> dict[Hashable, PassTimes | Heading]:
        if not self._flat or self._root is None:
            return super().arranged()
        nodes = [node for _, node in _walk(self._root) if node.self_seconds > 0]
        return {self._paths[id(node)]: node for node in in_order(nodes, lambda node: -node.self_seconds)}

    def inside(self, key: Hashable, row: PassTimes) -> Mapping[Hashable, PassTimes]:
        return (
            {} if self._flat else {self._paths[id(child)]: child for child in row.children if id(child) in self._paths}
        )

    def _pass(self, node: PassTimes) -> Drawing:
        def draw(width: int) -> Content:
            path = self._paths[id(node)]
            depth = 0 if self._flat else len(path)
            indent = " " * min(depth, max(0, width // 3)) + self.mark_of(path) + " "
            return indent + cell(node.name, max(1, width - columns(indent)), "bold" if node.children else "")

        return draw

    def _bar(self, node: PassTimes) -> Drawing:
        whole = self._root.seconds if self._root is not None else 0.0
        return lambda width: bar(node.self_seconds / whole if whole else None, width, "$phase-compile")

    def action_sort(self) -> None:
        self._flat = not self._flat
        self.rearrange()
        self.move_to(0)
        self.post_message(self.Highlighted(self, 0))

    def action_choose(self) -> None:
        self.action_open()


class CompilePane(Guarded, Container):
    """The stages and the tree of a compile."""

    def compose(self) -> ComposeResult:
        with Vertical(id="stage-box", classes="box") as box:
            box.border_title = "Stages"
            yield Lines(id="stages")
        with Vertical(id="pass-box", classes="box") as box:
            box.border_title = "Phases and passes"
            yield PassTree(id="passes")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._data: object = None

    def show(self, data: PassTimes | None, words: str) -> None:
        """Show the tree of a log, or `words` that explain why there is none."""
        box, tree = self.query_one("#stage-box"), self.query_one(PassTree)
        box.display, tree.words = data is not None, words
        if data is not self._data or data is None:
            self._data = data
            tree.show(data)
            tree.refresh()
        if data is not None:
            self.query_one("#stages", Lines).show(id(data), lambda width: stage_lines(data, width))
            worked = seconds_of_threads(data)
            parallel = f" · {seconds(worked)} of all threads" if worked > data.seconds * 1.02 else ""
            box.border_subtitle = Content(f"{seconds(data.seconds)}{parallel}")
        self._show_order()

    def on_row_list_highlighted(self) -> None:
        self._show_order()

    def _show_order(self) -> None:
        self.query_one("#pass-box").border_subtitle = Content(self.query_one(PassTree).order_in_words)
