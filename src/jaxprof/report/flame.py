"""Rows of the flame graph of a run: for people a tree in which small frames are added up; for programs every frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from jaxprof.analysis.flame import PICOSECONDS, FlameFrame, FlameGraph, StackFrame, run_flame
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


def _share_of(row: FlameRow, whole: FlameFrame | None) -> float | None:
    return row.frame.total / whole.total if whole is not None and whole.total else None


def _seconds(amount: int, row: FlameRow) -> float | None:
    return amount / PICOSECONDS if row.graph.basis != "bytes" else None


def _bytes(amount: int, row: FlameRow) -> int | None:
    return amount if row.graph.basis == "bytes" else None


FLAME: Final[tuple[Fact[FlameRow], ...]] = (
    Fact("path", LIST, "The names on the way to the frame, the outermost first", at("frame.path")),
    Fact("share", SHARE, "Share of everything, in 0..1", lambda row: _share_of(row, row.graph.root), "of all"),
    Fact("share_of_parent", SHARE, "Share of what it is directly inside",
         lambda row: _share_of(row, row.frame.above), "of parent"),
    Fact("seconds", SECONDS, "Time of the frame with all inside it", lambda row: _seconds(row.frame.total, row)),
    Fact("self_seconds", SECONDS, "Time of the frame without the frames inside it",
         lambda row: _seconds(row.frame.own, row)),
    Fact("bytes", BYTES, "Bytes of the frame with all inside it", lambda row: _bytes(row.frame.total, row)),
    Fact("self_bytes", BYTES, "Bytes of the frame without the frames inside it",
         lambda row: _bytes(row.frame.own, row)),
    column("total", lambda row: row.graph.text(row.frame.total), right=True),
    column("self", lambda row: row.graph.text(row.frame.own) if row.frame.own else None, right=True),
    Fact("count", COUNT, "How often it ran",
         lambda row: (row.frame.count or None) if row.graph.by == "scope" else None, "times"),
    column("frame", lambda row: "  " * row.depth + row.frame.at.name, widest=90),
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
    return graph if graph is not None and graph.root.total else None


def graph_rows(graph: FlameGraph) -> Iterator[FlameRow]:
    """Yield every frame, the largest first."""
    frames = sorted(graph.frames[1:], key=lambda frame: -frame.total)
    return (FlameRow(graph, frame, 0) for frame in frames)


def graph_lines(graph: FlameGraph) -> Iterator[str]:
    """Yield the tree as text, without small frames."""
    notes = tuple(filter(None, (graph.title, graph.remark)))
    return text_lines(Table(FLAME, list(_tree_rows(graph)), notes=notes))


def _tree_rows(graph: FlameGraph) -> Iterator[FlameRow]:
    """Yield the frames of the tree, a parent before its children; the small frames inside a frame are one row."""
    least = max(1, round(_LEAST_SHARE_SHOWN * graph.root.total))
    pending = [FlameRow(graph, graph.root, 0)]
    while pending:
        row = pending.pop()
        yield row
        inside = row.frame.inside
        large = sum(frame.total >= least for frame in inside)
        large += large + 1 == len(inside)  # a single small frame is shown by its name
        rows = [FlameRow(graph, frame, row.depth + 1) for frame in inside[:large]]
        if rest := sum(frame.total for frame in inside[large:]):
            smaller = FlameFrame(StackFrame(f"{len(inside) - large} smaller"), row.frame, total=rest)
            rows.append(FlameRow(graph, smaller, row.depth + 1))
        pending += reversed(rows)
