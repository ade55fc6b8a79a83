"""Where the time of a compile went: the stages with their share, and the tree of XLA's phases and passes below.

A node's self time is what none of its children covers. Stages are sums of self times, so they add up to the compile;
where several threads worked at once they add up to more than the clock showed, and the title says both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content

from jaxprof.safe_text import columns, safe
from jaxprof.tui.widgets.drawing import bar, cell
from jaxprof.tui.widgets.picture import Lines
from jaxprof.tui.widgets.row_list import RowList
from jaxprof.units import integer, percent, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

OPEN_FROM = 0.1
"""A node with at least this share of the compile is open at first."""
DEEPEST = 64
STAGES_SHORT, STAGES_TALL = 7, 16
"""Lines for stages on a low and on a high terminal."""


@dataclass(frozen=True, slots=True)
class PassNode:
    """A phase or pass."""

    path: tuple[int, ...]
    name: str
    stage: str
    seconds: float
    self_seconds: float
    count: int
    children: tuple[PassNode, ...]

    def walk(self) -> Iterator[PassNode]:
        """This node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def tree_of(data: Mapping[str, Any], path: tuple[int, ...] = ()) -> PassNode:
    """The tree of a log, of which anything may be missing."""

    def number(name: str) -> float:
        value = data.get(name)
        return float(value) if isinstance(value, int | float) else 0.0

    below = data.get("children")
    inside = [child for child in below if isinstance(child, dict)] if isinstance(below, list) else []
    return PassNode(
        path=path,
        name=str(data.get("name", "")),
        stage=str(data.get("stage") or "other"),
        seconds=number("seconds"),
        self_seconds=number("self_seconds"),
        count=int(number("count")),
        children=tuple(tree_of(child, (*path, at)) for at, child in enumerate(inside)) if len(path) < DEEPEST else (),
    )


def stages_of(root: PassNode) -> list[tuple[str, float, int]]:
    """Stage, self time and passes of each stage, the longest first."""
    found: dict[str, tuple[float, int]] = {}
    for node in root.walk():
        time, count = found.get(node.stage, (0.0, 0))
        found[node.stage] = time + node.self_seconds, count + node.count
    return sorted(((stage, *rest) for stage, rest in found.items() if rest[0] > 0), key=lambda row: -row[1])


def stage_lines(root: PassNode, width: int, most: int) -> list[Content]:
    """A bar for each stage; the shortest of more than `most` together."""
    rows = stages_of(root)
    whole = sum(time for _, time, _ in rows)
    if len(rows) > most:
        rest = rows[most - 1 :]
        rows = [*rows[: most - 1], (f"{len(rest)} others", sum(time for _, time, _ in rest), 0)]
    if not whole:
        return [Content.styled("No phase of this compile took any time.", "$text-muted")]
    room = max(4, width - 19 - 9 - 9)
    return [
        Content.assemble(
            cell(stage, 18), " ", cell(seconds(time), 8, "bold", right=True),
            cell(percent(time / whole) if time >= whole / 1000 else "< 0.1 %", 8, "$text-muted", right=True), "  ",
            bar(time / max(row[1] for row in rows), room, "$phase-compile"),
        )
        for stage, time, _ in rows
    ]  # fmt: skip


class PassTree(RowList):
    """The phases and passes; a node with others inside can be opened."""

    EMPTY = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "open", "Open", tooltip="Open or close this phase", id="passes.open"),
        Binding("right", "spread(1)", "Open it", show=False, tooltip="Open this phase", id="passes.right"),
        Binding("left", "spread(-1)", "Close it", show=False, tooltip="Close this phase, or go to what it is part of",
                id="passes.left"),
        Binding("z", "open_all", "Open all", tooltip="Open or close all", id="passes.open_all"),
        Binding("s", "sort", "Sort", tooltip="By total time, by self time as a flat list", id="passes.sort"),
    ]  # fmt: skip

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._root: PassNode | None = None
        self._by_path: dict[tuple[int, ...], PassNode] = {}
        self._open: set[tuple[int, ...]] = set()
        self._flat = False

    def show(self, root: PassNode | None) -> None:
        """Shows another tree, open where the time is."""
        self._root = root
        self._by_path = {node.path: node for node in root.walk()} if root is not None else {}
        least = root.seconds * OPEN_FROM if root is not None else 0.0
        self._open = {path for path, node in self._by_path.items() if node.seconds >= least}
        self._list()
        self.move_to(0)

    @property
    def order_in_words(self) -> str:
        """For the frame."""
        return "by self time" if self._flat else "as they ran inside each other"

    def _list(self) -> None:
        if self._root is None:
            self.set_keys([])
        elif self._flat:
            nodes = [node for node in self._by_path.values() if node.self_seconds > 0]
            self.set_keys([node.path for node in sorted(nodes, key=lambda node: -node.self_seconds)])
        else:
            self.set_keys(list(self._visible(self._root)))

    def _visible(self, node: PassNode) -> Iterator[tuple[int, ...]]:
        yield node.path
        if node.path in self._open:
            for child in node.children:
                yield from self._visible(child)

    @property
    def node(self) -> PassNode | None:
        """The one under the cursor."""
        return self._by_path.get(self.current) if isinstance(self.current, tuple) else None

    def draw_header(self, width: int) -> Content | None:
        if self._root is None:
            return None
        name, stage, graph = _widths(width)
        return Content.assemble(
            cell(" phase or pass", name), cell("stage", stage), cell("times", 6, right=True),
            cell("total", 9, right=True), cell("self", 9, right=True), " " * (graph + 2),
        )  # fmt: skip

    def draw_row(self, index: int, width: int) -> Content:
        key = self.keys[index]
        assert isinstance(key, tuple)
        assert self._root is not None
        node = self._by_path[key]
        name, stage, graph = _widths(width)
        depth = 0 if self._flat else len(node.path)
        mark = " " if self._flat or not node.children else "▾" if node.path in self._open else "▸"
        indent = " " + " " * min(depth, max(0, name // 3)) + mark + " "
        share = node.self_seconds / self._root.seconds if self._root.seconds else None
        return Content.assemble(
            indent, cell(node.name, max(1, name - columns(indent)), "bold" if node.children else ""),
            cell(node.stage, stage, "$text-muted"),
            cell(integer(node.count) if node.count > 1 else "", 6, "$text-muted", right=True),
            cell(seconds(node.seconds), 9, right=True), cell(seconds(node.self_seconds), 9, "bold", right=True), "  ",
            bar(share, graph, "$phase-compile"),
        )  # fmt: skip

    def action_open(self) -> None:
        """Opens or closes the node under the cursor."""
        node = self.node
        if node is not None and node.children and not self._flat:
            self._open ^= {node.path}
            self._list()

    def action_spread(self, step: int) -> None:
        """Opens it; closes it, or goes to what it is part of."""
        node = self.node
        if node is None or self._flat:
            return
        if step > 0:
            self._open |= {node.path}
            self._list()
        elif node.path in self._open and node.children:
            self._open -= {node.path}
            self._list()
        elif node.path:
            self.move_to_key(node.path[:-1])

    def action_open_all(self) -> None:
        """Everything open, or all closed but the first."""
        everything = {path for path, node in self._by_path.items() if node.children}
        self._open = {()} if everything <= self._open else everything
        self._list()

    def action_sort(self) -> None:
        """The tree, or a list by self time."""
        self._flat = not self._flat
        self._list()
        self.move_to(0)
        self.post_message(self.Highlighted(self, 0))

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        """A double click opens."""
        message.stop()
        self.action_open()


def _widths(width: int) -> tuple[int, int, int]:
    """Columns of name, stage and bar."""
    stage = 13 if width < 100 else 19
    graph = max(6, min(30, (width - stage - 26) // 3))
    return max(12, width - stage - 26 - graph), stage, graph


class CompilePane(Container):
    """The stages, and the tree."""

    def compose(self) -> ComposeResult:
        with Vertical(id="stage-box", classes="box") as box:
            box.border_title = "Stages"
            yield Lines(id="stages")
        with Vertical(id="pass-box", classes="box") as box:
            box.border_title = "Phases and passes"
            yield Lines(id="no-passes")
            yield PassTree(id="passes")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._data: object = None

    @property
    def _most(self) -> int:
        """Stages that there is room for."""
        return STAGES_SHORT if self.screen.size.height < 34 else STAGES_TALL

    def show(self, data: Mapping[str, Any] | None, words: str) -> None:
        """Shows the tree of a log; `words` say why there is none."""
        self.query_one("#stage-box").display = data is not None
        self.query_one("#passes").display = data is not None
        self.query_one("#no-passes", Lines).show(
            (data is None, words),
            lambda width: Content.styled(safe(words), "$text-muted").wrap(width) if data is None else (),
        )
        if data is self._data and data is not None:
            return
        self._data = data
        root = tree_of(data) if data is not None else None
        self.query_one(PassTree).show(root)
        if root is not None:
            self.query_one("#stages", Lines).show(id(data), lambda width: stage_lines(root, width, self._most))
            worked = sum(node.self_seconds for node in root.walk())
            parallel = f" · {seconds(worked)} of all threads" if worked > root.seconds * 1.02 else ""
            self.query_one("#stage-box").border_subtitle = Content(f"{seconds(root.seconds)}{parallel}")
        self._show_order()

    def on_row_list_highlighted(self) -> None:
        self._show_order()

    def _show_order(self) -> None:
        self.query_one("#pass-box").border_subtitle = Content(self.query_one(PassTree).order_in_words)
