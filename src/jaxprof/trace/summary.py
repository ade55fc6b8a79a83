"""Turn a recorded profile into the events of a run: what was captured, the kernel times, the steps, the timeline.

`summarise`, the entry point after a capture, reads the file that the profiler wrote and yields events without sequence
numbers or times, which the pipe stamps. It needs no jax.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from statistics import median

from jaxprof.events import (
    CaptureTaken,
    CompilePasses,
    Event,
    KernelLaunch,
    KernelsMeasured,
    KernelTimes,
    StepsMeasured,
    TextRecorded,
    TrustReported,
)
from jaxprof.trace.launch import launches_of, transfers_of
from jaxprof.trace.model import PS, Op, Trace
from jaxprof.trace.ops import OpTime, op_times, unattributed_seconds
from jaxprof.trace.passes import compile_tree
from jaxprof.trace.sources import read_profile
from jaxprof.trace.steps import Steps, steps_of
from jaxprof.trace.timeline import INTERVALS_KEPT, timeline_text
from jaxprof.trace.trust import trust_rows

TIMELINE = "timeline"
"""Name of the timeline's text."""
VIEWS = ("kernels", "steps", "compile", "memory", "trust", TIMELINE)
"""Everything that can be derived from a profile."""


def summarise(
    path: Path,
    kind: str,
    run: str = "",
    calls: int | None = None,
    *,
    seconds_of_calls: Sequence[float] = (),
    timed_seconds: float | None = None,
    kept: str = "",
) -> Iterator[Event]:
    """Yield the events of the profile at `path`, for the run with the id `run`.

    `path` is a file, or the folder that the profiler wrote to. `kind` is that of `CaptureTaken`; `calls` and
    `seconds_of_calls` are what the capture measured itself; `timed_seconds` is the earlier time of a call without the
    profiler; `kept` is the path of the kept raw file, empty if it is not kept. Raises FileRefusedError for a file that
    is empty or not a profile.
    """
    trace = read_profile(path)
    yield from events_of(
        trace, kind, run, calls=calls, seconds_of_calls=seconds_of_calls, timed_seconds=timed_seconds, path=kept
    )


def events_of(
    trace: Trace,
    kind: str,
    run: str = "",
    *,
    calls: int | None = None,
    seconds_of_calls: Sequence[float] = (),
    timed_seconds: float | None = None,
    path: str = "",
    table: list[OpTime] | None = None,
    views: Collection[str] = VIEWS,
) -> Iterator[Event]:
    """Yield the events of `summarise` for a trace that is already read; `table` replaces the rows of the table of
    kernels.

    Only what `views` need is derived: a table of kernels does without the millions of events on the host's threads.
    """
    wanted = frozenset(views)
    whole = bool(wanted & {"steps", "trust", "timeline", "compile"})
    span = trace.span_ps if whole else None
    wall_seconds = (span[1] - span[0]) * PS if span is not None else None
    seconds_with = median(seconds_of_calls) if seconds_of_calls else None
    yield CaptureTaken(
        run=run,
        kind=kind,
        platform=trace.platform,
        calls=calls,
        seconds_with=seconds_with,
        wall_seconds=wall_seconds,
        events=trace.events if whole else None,
        bytes=sum(trace.sizes.values()) or None,
        path=path,
    )
    if kind != "compile" and "kernels" in wanted:
        yield KernelsMeasured(
            run=run,
            kind=kind,
            calls=calls,
            rows=kernel_rows(trace, op_times(trace) if table is None else table),
            transfers=transfers_of(trace),
            unattributed_seconds=unattributed_seconds(trace),
        )
    steps = steps_of(trace) if kind != "compile" and wanted & {"steps", "trust", "timeline"} else None
    if steps is not None and steps.rows:
        yield StepsMeasured(run=run, found_by=steps.found_by, steps=steps.rows, devices=steps.devices)
    tree = compile_tree(trace) if wanted & {"compile", "trust"} else None
    if tree is not None and kind in ("compile", "imported") and "compile" in wanted:
        yield CompilePasses(run=run, tree=tree)
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
        yield TrustReported(run=run, kind=kind, rows=rows)
    if has_timeline and trace.lanes:
        yield TextRecorded(run=run, name=TIMELINE, text=timeline_text(trace))


def kernel_rows(trace: Trace, table: list[OpTime]) -> list[KernelTimes]:
    """Return the table of ops as the rows of `KernelsMeasured`."""
    launches = launches_of(trace)
    numbers = {op: index for index, op in enumerate(trace.ops)}
    guessed = {
        (lane.device, number)
        for lane in trace.op_lanes()
        if lane.guessed is not None
        for number in set(lane.op_of[lane.guessed].tolist())
    }
    return [_row(row, numbers[row.op], launches, guessed) for row in table]


def _row(
    row: OpTime, number: int, launches: dict[tuple[str, int], KernelLaunch], guessed: set[tuple[str, int]]
) -> KernelTimes:
    return KernelTimes(
        module=row.op.module,
        program=_program(row.op),
        name=row.op.name,
        device=row.device,
        count=row.count,
        total_seconds=row.total_seconds,
        self_seconds=row.self_seconds,
        wall_seconds=row.wall_seconds,
        median_seconds=row.median_seconds,
        minimum_seconds=row.minimum_seconds,
        maximum_seconds=row.maximum_seconds,
        kernels=tuple(row.kernels),
        launch=launches.get((row.device, number)),
        uncertain=(row.device, number) in guessed,
    )


def _program(op: Op) -> str | None:
    return None if op.program is None else str(op.program)


def _busy_share(steps: Steps | None, seconds_of_calls: Sequence[float]) -> float | None:
    """Return device time over the time of all calls, for a capture of nothing else; the mean over several devices.

    Total over total: a call that the machine delayed counts in both, while a median leaves it out.
    """
    if steps is None or not steps.rows or not sum(seconds_of_calls):
        return None
    return (steps.inside_seconds + steps.outside_seconds) / len(steps.devices) / sum(seconds_of_calls)
