"""Rows of the flame graph of a run: for people a tree in which small frames are added up; for programs every frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from jaxprof.analysis.flame import PICOSECONDS, ROOT, FlameFrame, FlameGraph, run_flame
from jaxprof.analysis.profile import is_whole
from jaxprof.analysis.run_result import IMPORTED
from jaxprof.facts import Fact, at, column
from jaxprof.facts.units import BYTES, COUNT, LIST, SECONDS, SHARE, TEXT, TRUTH
from jaxprof.report.renderers import Table, text_lines
from jaxprof.session import Run, Session

_LEAST_SHARE_SHOWN: Final = 0.005
"""The text adds up frames with a smaller share of the whole graph."""


@dataclass(frozen=True, slots=True)
class FlameRow:
    """One frame of a graph, or the sum of several small ones inside the same frame."""

    graph: FlameGraph
    frame: FlameFrame
    depth: int


def _share_of_parent(row: FlameRow) -> float | None:
    tree = row.graph.tree
    parent = tree.around(row.frame)
    whole = tree.totals[parent] if parent is not None else 0
    return tree.total_of(row.frame) / whole if whole else None


def _count(row: FlameRow) -> int | None:
    counted = row.graph.by == "scope" and not row.frame.size
    return (row.graph.tree.counts[row.frame.node] or None) if counted else None


def _amount(row: FlameRow, *, own: bool) -> int:
    return row.graph.tree.own_of(row.frame) if own else row.graph.tree.total_of(row.frame)


def _seconds(row: FlameRow, *, own: bool = False) -> float | None:
    return _amount(row, own=own) / PICOSECONDS if row.graph.basis != "bytes" else None


def _bytes(row: FlameRow, *, own: bool = False) -> int | None:
    return _amount(row, own=own) if row.graph.basis == "bytes" else None


FLAME: Final[tuple[Fact[FlameRow], ...]] = (
    Fact("path", LIST, "The names on the way to the frame, the outermost first",
         lambda row: [row.graph.tree.names[node] for node in row.graph.tree.path(row.frame.node)]),
    Fact("share", SHARE, "Share of everything, in 0..1", lambda row: row.graph.tree.share_of(row.frame), "of all"),
    Fact("share_of_parent", SHARE, "Share of what it is directly inside", _share_of_parent, "of parent"),
    Fact("seconds", SECONDS, "Time of the frame with all inside it", _seconds),
    Fact("self_seconds", SECONDS, "Time of the frame without the frames inside it", partial(_seconds, own=True)),
    Fact("bytes", BYTES, "Bytes of the frame with all inside it", _bytes),
    Fact("self_bytes", BYTES, "Bytes of the frame without the frames inside it", partial(_bytes, own=True)),
    column("total", lambda row: row.graph.text(_amount(row, own=False)), right=True),
    column("self", lambda row: row.graph.text(own) if (own := _amount(row, own=True)) else None, right=True),
    Fact("count", COUNT, "How often it ran", _count, "times"),
    column("frame", lambda row: "  " * row.depth + row.graph.tree.name_of(row.frame), widest=90),
)  # fmt: skip
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
        if large < len(inside) and _amount(rest, own=False):
            rows.append(rest)
        pending += reversed(rows)
