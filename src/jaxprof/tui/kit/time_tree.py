"""Times inside times: the passes of a compilation, or the lines of a program, also under the loops that led to them.

A node's self time is the time that nothing inside it covers. The bars stand below the node that they are part of, one
after the other, as in a flame graph with one row a frame. A filter lists the nodes that it leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.text import columns
from jaxprof.tui.kit.drawing import cell, stacked
from jaxprof.tui.kit.guard import HIDDEN
from jaxprof.tui.kit.row_list import Heading, TreeView
from jaxprof.tui.kit.table_columns import Drawing, TableColumn
from jaxprof.units import integer, percent_or_less, seconds

if TYPE_CHECKING:
    from jaxprof.events import SourceLocation

OPEN_FROM = 0.1
"""A node with at least this share of the whole is open at first."""
DEEPEST = 200


@dataclass(frozen=True, slots=True)
class TimeNode:
    """One node with all inside it."""

    name: str
    seconds: float
    self_seconds: float
    count: int
    inside: tuple[TimeNode, ...]
    note: str
    """The stage of a pass, or the place of a line."""
    style: str = "$phase-compile"
    where: SourceLocation | None = None


Path = tuple[tuple[str, int], ...]
"""The names on the way to a node; of several nodes with one name beside each other, each has its number."""


def _walk(node: TimeNode, path: Path = (), at: float = 0.0) -> Iterator[tuple[Path, TimeNode, float]]:
    """Yield a node and all nodes inside it, down to the depth `DEEPEST`: each with its path, and where its bar begins,
    in seconds."""
    yield path, node, at
    named: Counter[str] = Counter()
    for inner in node.inside if len(path) < DEEPEST else ():
        named[inner.name] += 1
        yield from _walk(inner, (*path, (inner.name, named[inner.name])), at)
        at += inner.seconds


class TimeTree(TreeView[TimeNode], keys="time_tree"):
    """One row per node; a node with others inside can be opened. There may be several trees of the same times."""

    def __init__(self, what: str, note: str, *, id: str | None = None) -> None:
        """`what` is the title of the names, `note` that of the notes."""
        super().__init__(
            (
                TableColumn(what, self._indented, 34, weight=4, most=64),
                TableColumn(note, lambda node: node.note, 12, weight=1, most=24, priority=1, style="$text-muted",
                       cut="start"),
                TableColumn("times", lambda node: integer(node.count) if node.count > 1 else "", 5, right=True,
                       style="$text-muted"),
                TableColumn("total", lambda node: seconds(node.seconds), 8, right=True),
                TableColumn("of all", self._share, 6, right=True, style="$text-muted"),
                TableColumn("self", lambda node: seconds(node.self_seconds), 8, right=True, style="bold", gap=2),
                TableColumn("", self._bar, 6, weight=3),
            ),
            id=id,
        )  # fmt: skip
        self._trees: Mapping[str, TimeNode] = {}
        self._tree_name = ""
        """Name of the tree that is shown."""
        self._of_path: dict[Path, TimeNode] = {}
        self._placed_at: dict[int, tuple[Path, float]] = {}
        """The path of each node, and where its bar begins, by the node's id."""

    def show(self, trees: Mapping[str, TimeNode], *, same: bool = False) -> None:
        """Show the first of these trees, by name; `same`: the tree in view has grown."""
        self._trees = trees
        self._show_tree(self._tree_name if same and self._tree_name in trees else next(iter(trees), ""), same=same)

    def _show_tree(self, name: str, *, same: bool = False) -> None:
        """Show a tree, opened where most of the time was spent."""
        self._tree_name, root = name, self._trees.get(name)
        nodes = list(_walk(root)) if root is not None else []
        self._of_path = {path: node for path, node, _ in nodes}
        self._placed_at = {id(node): (path, at) for path, node, at in nodes}
        if not same or not self.opened:
            self.opened = {path for path, node in self._of_path.items() if node.seconds >= self._whole * OPEN_FROM}
            self.opened_at_first = frozenset(self.opened)
        self.show_rows({(): root} if root is not None else {})
        if not same:
            self.move_to(0)
        self.refresh()

    @property
    def _whole(self) -> float:
        return self._of_path[()].seconds if self._of_path else 0.0

    @property
    def order_in_words(self) -> str:
        return self._tree_name

    @property
    def whole_in_words(self) -> str:
        """The time of all of it; empty without any."""
        return seconds(self._whole) if self._whole else ""

    def arranged(self) -> dict[Hashable, TimeNode | Heading]:
        if not self._words:
            return super().arranged()
        longest_first = sorted(self._of_path.items(), key=lambda row: -row[1].seconds)
        return {path: node for path, node in longest_first if self._has_words(node)}

    def inside(self, key: Hashable, row: TimeNode) -> Mapping[Hashable, TimeNode]:
        shown = () if self._words else row.inside
        return {self._placed_at[id(inner)][0]: inner for inner in shown if id(inner) in self._placed_at}

    def _indented(self, node: TimeNode) -> Drawing:
        path, _ = self._placed_at[id(node)]

        def draw(width: int) -> Content:
            depth = 0 if self._words else len(path)
            indent = " " * min(depth, max(0, width // 3)) + self.mark_of(path) + " "
            return indent + cell(node.name, max(1, width - columns(indent)), "bold" if node.inside else "")

        return draw

    def haystack(self, row: TimeNode) -> str:
        return f"{row.name} {row.note} {row.where.text if row.where is not None else ''}"

    def _share(self, node: TimeNode) -> str:
        return percent_or_less(node.seconds / self._whole) if self._whole else ""

    def _bar(self, node: TimeNode) -> Drawing:
        began = 0.0 if self._words else self._placed_at[id(node)][1]
        inside = node.seconds - node.self_seconds
        parts = ((began, " ", ""), (inside, "░", "$quiet"), (node.self_seconds, "█", node.style))
        return lambda width: stacked(parts, self._whole or 1.0, width)

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Hide the change to another tree if there is none."""
        return HIDDEN if action == "sort" and len(self._trees) < 2 else super().why_not(action, parameters)

    def action_sort(self) -> None:
        names = list(self._trees)
        self._show_tree(names[(names.index(self._tree_name) + 1) % len(names)])
        self.post_message(self.Sorted())

    def action_choose(self) -> None:
        """Report a row with a line of the source; open or close another one."""
        row = self.current_row
        if row is not None and row.where is not None and row.where.line is not None:
            super().action_choose()
        else:
            self.action_open()
