"""Times inside times: the passes of a compilation, or the lines of a program under the loops that led to them.

A node's self time is the time that nothing inside it covers. The bars stand below the node that they are part of, one
after the other, as in a flame graph with one row a frame. The nodes also form one list, the longest self time first; a
filter lists the nodes that it leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.text import columns
from jaxprof.tui.kit.drawing import cell, stacked
from jaxprof.tui.kit.table_columns import Drawing, TableColumn
from jaxprof.tui.kit.table_view import Heading, TreeView
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
    """One row per node; a node with others inside can be opened."""

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
        self._of_path: dict[Path, TimeNode] = {}
        self._paths: dict[int, Path] = {}
        """The path of each node, by its id."""
        self._begins: dict[int, float] = {}
        self._flat = False

    def show(self, root: TimeNode | None, *, same: bool = False) -> None:
        """Show a tree, opened where most of the time was spent; `same`: the tree in view has grown."""
        nodes = list(_walk(root)) if root is not None else []
        self._of_path = {path: node for path, node, _ in nodes}
        self._paths = {id(node): path for path, node, _ in nodes}
        self._begins = {id(node): at for _, node, at in nodes}
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
        """The order of the rows in words, for the frame."""
        return "by self time" if self._flat else "nested"

    def arranged(self) -> dict[Hashable, TimeNode | Heading]:
        if not self._flat and not self._words:
            return super().arranged()
        rows = [
            (path, node)
            for path, node in self._of_path.items()
            if self._has_words(node) and (node.self_seconds > 0 or not self._flat)
        ]
        rows.sort(key=lambda row: -(row[1].self_seconds if self._flat else row[1].seconds))
        return dict(rows)

    def inside(self, key: Hashable, row: TimeNode) -> Mapping[Hashable, TimeNode]:
        if self._flat or self._words:
            return {}
        return {self._paths[id(inner)]: inner for inner in row.inside if id(inner) in self._paths}

    def _indented(self, node: TimeNode) -> Drawing:
        path = self._paths[id(node)]

        def draw(width: int) -> Content:
            depth = 0 if self._flat or self._words else len(path)
            indent = " " * min(depth, max(0, width // 3)) + self.mark_of(path) + " "
            return indent + cell(node.name, max(1, width - columns(indent)), "bold" if node.inside else "")

        return draw

    def haystack(self, row: TimeNode) -> str:
        return f"{row.name} {row.note}"

    def _share(self, node: TimeNode) -> str:
        return percent_or_less(node.seconds / self._whole) if self._whole else ""

    def _bar(self, node: TimeNode) -> Drawing:
        began = 0.0 if self._flat or self._words else self._begins.get(id(node), 0.0)
        inside = node.seconds - node.self_seconds
        parts = ((began, " ", ""), (inside, "░", "$quiet"), (node.self_seconds, "█", node.style))
        return lambda width: stacked(parts, self._whole or 1.0, width)

    def action_sort(self) -> None:
        self._flat = not self._flat
        self.rearrange()
        self.move_to(0)
        self.post_message(self.Sorted())

    def action_choose(self) -> None:
        """Open or close the row; report a row without others inside."""
        if self.can_open(self.current):
            self.action_open()
        else:
            super().action_choose()
