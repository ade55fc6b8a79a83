"""Where the time of a compile went: XLA's phases and passes as a tree, with self times.

The host's threads record nested intervals. One compile moves between threads (Python waits for the compiler's pool,
which waits for the code generator's), so a thread's outermost interval is hung below the shortest one that it lies in
of another thread's compile. Seconds are of threads: where several work at once, children add up to more than their
parent took, whose self time is what no child covers.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from jaxprof.trace.intervals import union
from jaxprof.trace.model import Lane, Trace
from jaxprof.trace.stages import OTHER, stage_of

PS: Final = 1e-12
_ROOT = re.compile(r"backend_compile|XlaCompile|Client::Compile\b|CompileAndLoad|CompileAheadOfTime|TpuCompile")
_MODULE_SUFFIX = re.compile(r" \([^()]*\)$")
_DEEPEST: Final = 64


@dataclass(slots=True, eq=False)
class _Span:
    """One interval of one thread, and those within it in order of their start."""

    name: str
    start: int
    end: int
    children: list[_Span] = field(default_factory=list)
    parallel: list[_Span] = field(default_factory=list)
    """Of other threads."""


def compile_tree(trace: Trace) -> dict[str, Any] | None:
    """The tree as JSON: name, stage, seconds, self_seconds, count, children. None where nothing was compiled."""
    threads = [_nested(lane) for lane in trace.lanes if lane.kind == "host" and lane.device.endswith("host")]
    compiles = [sorted(_outermost(tops), key=lambda span: span.start) for tops in threads]
    roots = [span for found in compiles for span in found]
    if not roots:
        return None
    for number, tops in enumerate(threads):
        waiting = [found for other, found in enumerate(compiles) if other != number and found]
        for top in tops:
            around = _shortest_around(top, waiting)
            if around is not None:
                around.parallel.append(top)
    inside = {id(span) for root in roots for span in _below(root)}
    kept = [root for root in roots if id(root) not in inside]
    starts = np.array([root.start for root in kept], np.int64)
    ends = np.array([root.end for root in kept], np.int64)
    return {
        "name": "compile",
        "stage": "compile",
        "seconds": union(starts, ends - starts) * PS,
        "self_seconds": 0.0,
        "count": len(kept),
        "children": _merged(kept, "compile", 0),
    }


def stage_seconds(tree: dict[str, Any]) -> dict[str, float]:
    """Self seconds of each stage that took any, the longest first."""
    found: dict[str, float] = {}
    pending = [tree]
    while pending:
        node = pending.pop()
        found[node["stage"]] = found.get(node["stage"], 0.0) + node["self_seconds"]
        pending += node["children"]
    return {stage: seconds for stage, seconds in sorted(found.items(), key=lambda item: -item[1]) if seconds > 0}


def _nested(lane: Lane) -> list[_Span]:
    """The outermost spans of a thread."""
    order = np.lexsort((-lane.durations, lane.starts))
    tops: list[_Span] = []
    open_spans: list[_Span] = []
    columns = zip(lane.starts[order].tolist(), lane.ends[order].tolist(), lane.name_of[order].tolist(), strict=True)
    for start, end, name in columns:
        while open_spans and start >= open_spans[-1].end:
            open_spans.pop()
        span = _Span(lane.names[name], start, min(end, open_spans[-1].end) if open_spans else end)
        (open_spans[-1].children if open_spans else tops).append(span)
        if len(open_spans) < _DEEPEST:
            open_spans.append(span)
    return tops


def _outermost(spans: Sequence[_Span]) -> Iterator[_Span]:
    """The spans in these trees that are compiles, each without those within it."""
    pending = list(spans)
    while pending:
        span = pending.pop()
        if _ROOT.search(span.name):
            yield span
        else:
            pending += span.children


def _shortest_around(top: _Span, threads: Sequence[list[_Span]]) -> _Span | None:
    """The shortest span of those threads that lasts longer than `top` and holds it; never one without a duration."""
    best: _Span | None = None
    if top.end <= top.start:
        return None
    for tops in threads:
        level = tops
        while level:
            at = bisect_right(level, top.start, key=lambda span: span.start) - 1
            if at < 0 or level[at].end < top.end:
                break
            found, level = level[at], level[at].children
            length = found.end - found.start
            if length > top.end - top.start and (best is None or length < best.end - best.start):
                best = found
    return best


def _below(root: _Span) -> Iterator[_Span]:
    pending = [*root.children, *root.parallel]
    while pending:
        span = pending.pop()
        yield span
        pending += span.children
        pending += span.parallel


def _merged(spans: Sequence[_Span], around: str, depth: int) -> list[dict[str, Any]]:
    """Nodes for these siblings: those of one name make one node, and their children are siblings in turn."""
    groups: dict[str, list[_Span]] = {}
    for span in spans:
        groups.setdefault(_MODULE_SUFFIX.sub("", span.name), []).append(span)
    nodes = []
    for name, same in groups.items():
        stage = stage_of(name, around)
        children = [child for span in same for child in (*span.children, *span.parallel)]
        nodes.append(
            {
                "name": name,
                "stage": stage,
                "seconds": sum(span.end - span.start for span in same) * PS,
                "self_seconds": sum(map(_self_time, same)) * PS,
                "count": len(same),
                "children": _merged(children, stage if stage != OTHER else around, depth + 1)
                if depth < _DEEPEST
                else [],
            }
        )
    return sorted(nodes, key=lambda node: -float(node["seconds"]))


def _self_time(span: _Span) -> int:
    """What no child covers, of this thread or another."""
    covered, reached = 0, span.start
    for child in sorted((*span.children, *span.parallel), key=lambda one: one.start):
        begin, end = max(child.start, reached), min(child.end, span.end)
        if end > begin:
            covered += end - begin
            reached = end
    return span.end - span.start - covered
