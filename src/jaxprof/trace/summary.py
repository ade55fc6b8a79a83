"""Turn a recorded profile into the events of a run: what was captured, the kernel times, the steps, the timeline.

The events have neither sequence numbers nor times, which the pipe stamps. No jax is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from statistics import median

from jaxprof.events import (
    CaptureTaken,
    CompilePasses,
    Event,
    KernelsMeasured,
    KernelTimes,
    StepsMeasured,
    TextRecorded,
    TrustReported,
)
from jaxprof.trace.launch import transfers_of
from jaxprof.trace.model import PS, Trace
from jaxprof.trace.ops import op_times, unattributed_seconds
from jaxprof.trace.passes import compile_tree
from jaxprof.trace.steps import Steps, steps_of
from jaxprof.trace.timeline import INTERVALS_KEPT, timeline_text
from jaxprof.trace.trust import trust_rows

TIMELINE = "timeline"
"""Name of the timeline's text."""
VIEWS = ("kernels", "steps", "compile", "memory", "trust", TIMELINE)
"""Everything that can be derived from a profile."""


def events_of(
    trace: Trace,
    kind: str,
    *,
    calls: int | None = None,
    seconds_of_calls: Sequence[float] = (),
    timed_seconds: float | None = None,
    path: str = "",
    table: list[KernelTimes] | None = None,
    views: Collection[str] = VIEWS,
) -> Iterator[Event]:
    """Yield the events of a profile.

    `kind` is that of `CaptureTaken`; `calls` and `seconds_of_calls` are what the capture measured itself;
    `timed_seconds` is the earlier time of a call without the profiler; `path` is that of the kept raw file, empty if it
    is not kept; `table` replaces the rows of the table of kernels. Only what `views` need is derived: a table of
    kernels does without the millions of events on the host's threads.
    """
    wanted = frozenset(views)
    whole = bool(wanted & {"steps", "trust", "timeline", "compile"})
    span = trace.span_ps if whole else None
    wall_seconds = (span[1] - span[0]) * PS if span is not None else None
    seconds_with = median(seconds_of_calls) if seconds_of_calls else None
    yield CaptureTaken(
        kind=kind,
        platform=trace.platform,
        calls=calls,
        seconds_with=seconds_with,
        wall_seconds=wall_seconds,
        events=trace.events if whole else None,
        bytes=trace.bytes or None,
        path=path,
    )
    if kind != "compile" and "kernels" in wanted:
        yield KernelsMeasured(
            kind=kind,
            calls=calls,
            rows=op_times(trace) if table is None else table,
            transfers=transfers_of(trace),
            unattributed_seconds=unattributed_seconds(trace),
        )
    steps = steps_of(trace) if kind != "compile" and wanted & {"steps", "trust", "timeline"} else None
    if steps is not None and steps.rows:
        yield StepsMeasured(found_by=steps.found_by, steps=steps.rows, devices=steps.devices)
    tree = compile_tree(trace) if wanted & {"compile", "trust"} else None
    if tree is not None and kind in ("compile", "imported") and "compile" in wanted:
        yield CompilePasses(tree=tree)
    has_timeline = "timeline" in wanted and kind != "compile"
    if "trust" in wanted:
        rows = trust_rows(
            trace,
            kind,
            steps,
            None if tree is None else tree.seconds,
            intervals_left_out=max(0, sum(map(len, trace.lanes)) - INTERVALS_KEPT) if has_timeline else 0,
            busy_share=_busy_share(steps, seconds_of_calls),
            seconds_with=seconds_with,
            timed_seconds=timed_seconds,
        )
        yield TrustReported(kind=kind, rows=rows)
    if has_timeline and trace.lanes:
        yield TextRecorded(name=TIMELINE, text=timeline_text(trace))


def _busy_share(steps: Steps | None, seconds_of_calls: Sequence[float]) -> float | None:
    """Return device time over the time of all calls, for a capture of nothing else; the mean over several devices.

    Total over total: a call that the machine delayed counts in both, while a median leaves it out.
    """
    if steps is None or not steps.rows or not sum(seconds_of_calls):
        return None
    return (steps.inside_seconds + steps.outside_seconds) / len(steps.devices) / sum(seconds_of_calls)
