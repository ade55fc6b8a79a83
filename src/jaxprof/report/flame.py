"""Rows of the flame graph of a run: for people a tree in which small frames are added up; for programs every frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from jaxprof.analysis.flame import PICOSECONDS, ROOT, FlameFrame, FlameGraph, run_flame
from jaxprof.analysis.profile import is_whole
from jaxprof.analysis.run_result import IMPORTED
from jaxprof.facts import Fact, at, column
from jaxprof.facts.units import BYTES, COUNT, LIST, SECONDS, SHARE, TEXT, TRUTH
from jaxprof.report.renderers import text_lines
from jaxprof.report.table import Table
from jaxprof.session import Run, Session

_LEAST_SHARE_SHOWN: Final = 0.005
"""The text adds up frames with a smaller share of the whole graph."""


@dataclass(frozen=True, slots=True)
class FlameRow:
    """One frame of a graph, or the sum of several small ones inside the same frame."""

    graph: FlameGraph
    frame: FlameFrame
    depth: int

    @property
    def name(self) -> str:
        return self.graph.tree.name_of(self.frame)

    @property
    def total(self) -> int:
        return self.graph.tree.total_of(self.frame)

    @property
    def own(self) -> int:
        return self.graph.tree.own_of(self.frame)

    @property
    def path(self) -> list[str]:
        """Names of the frames on the way from the root, without the root."""
        tree = self.graph.tree
        return [tree.names[node] for node in tree.path(self.frame.node)]

    @property
    def share(self) -> float:
        return self.graph.tree.share_of(self.frame)

    @property
    def share_of_parent(self) -> float | None:
        parent = self.graph.tree.around(self.frame)
        whole = self.graph.tree.totals[parent] if parent is not None else 0
        return self.total / whole if whole else None

    @property
    def count(self) -> int | None:
        counted = self.graph.by == "scope" and not self.frame.size
        return (self.graph.tree.counts[self.frame.node] or None) if counted else None


def _seconds(row: FlameRow, amount: int) -> float | None:
    return amount / PICOSECONDS if row.graph.basis != "bytes" else None


def _bytes(row: FlameRow, amount: int) -> int | None:
    return amount if row.graph.basis == "bytes" else None


FLAME: Final[tuple[Fact[FlameRow], ...]] = (
    Fact("path", LIST, "The names on the way to the frame, the outermost first"),
    Fact("share", SHARE, "Share of everything, in 0..1", title="of all"),
    Fact("share_of_parent", SHARE, "Share of what it is directly inside", title="of parent"),
    Fact("seconds", SECONDS, "Time of the frame with all inside it", lambda row: _seconds(row, row.total)),
    Fact("self_seconds", SECONDS, "Time of the frame without the frames inside it", lambda row: _seconds(row, row.own)),
    Fact("bytes", BYTES, "Bytes of the frame with all inside it", lambda row: _bytes(row, row.total)),
    Fact("self_bytes", BYTES, "Bytes of the frame without the frames inside it", lambda row: _bytes(row, row.own)),
    column("total", lambda row: row.graph.text(row.total), right=True),
    column("self", lambda row: row.graph.text(row.own) if row.own else None, right=True),
    Fact("count", COUNT, "How often it ran", title="times"),
    column("frame", lambda row: "  " * row.depth + row.name, widest=90),
)
GRAPH: Final[tuple[Fact[FlameGraph], ...]] = (
    Fact("amounts", TEXT, "What the amounts are: measured, sampled, least (a lower bound) or bytes", at("basis")),
    Fact("estimate", TRUTH, "Whether they are estimates", at("is_estimate")),
    Fact("unknown_kernels", COUNT, "Kernels in no frame, because their time or bytes are not known", at("unknown")),
)
"""Facts of the graph as a whole."""


def graph_of(session: Session, run: Run) -> FlameGraph | None:
    """Return the flame graph of a run; None if it has none, or if it is a program of a profile whose whole has one."""
    if run.plan.how == IMPORTED and not is_whole(run) and any(map(is_whole, session.runs.values())):
        return None
    graph = run_flame(session, run)
    return graph if graph is not None and graph.tree.total else None


def graph_rows(graph: FlameGraph) -> Iterator[FlameRow]:
    """Yield every frame, the largest first."""
    tree = graph.tree
    nodes = sorted(range(ROOT + 1, len(tree)), key=lambda node: -tree.totals[node])
    return (FlameRow(graph, FlameFrame(node), 0) for node in nodes)


def graph_lines(graph: FlameGraph) -> Iterator[str]:
    """Yield the tree as text, without small frames."""
    notes = tuple(filter(None, (graph.title, graph.remark)))
    return text_lines(Table(FLAME, list(_tree_rows(graph)), notes=notes))


def flame_rows(session: Session, run: Run) -> Iterator[FlameRow]:
    """Yield the frames of a run, the largest first; none if it has no graph."""
    graph = graph_of(session, run)
    return graph_rows(graph) if graph is not None else iter(())


def flame_lines(session: Session, run: Run) -> Iterator[str]:
    """Yield the flame graph of a run as text; nothing if it has no graph."""
    graph = graph_of(session, run)
    return graph_lines(graph) if graph is not None else iter(())


def _tree_rows(graph: FlameGraph) -> Iterator[FlameRow]:
    """Yield the frames of the tree, a parent before its children; the small frames inside a frame are one row."""
    tree = graph.tree
    least = max(1, round(_LEAST_SHARE_SHOWN * tree.total))
    pending = [FlameRow(graph, FlameFrame(ROOT), 0)]
    while pending:
        row = pending.pop()
        yield row
        if row.frame.size:
            continue
        inside = tree.inside(row.frame.node)
        large = next((place for place, node in enumerate(inside) if tree.totals[node] < least), len(inside))
        large += large + 1 == len(inside)  # a single small frame is shown by its name
        rows = [FlameRow(graph, FlameFrame(node), row.depth + 1) for node in inside[:large]]
        rest = FlameRow(graph, FlameFrame(row.frame.node, large, len(inside) - large), row.depth + 1)
        if large < len(inside) and rest.total:
            rows.append(rest)
        pending += reversed(rows)
