"""From a recorded profile to the events of a run: what was captured, the kernel times, the steps, the timeline.

The one entrance for a capture pass: `summarise` reads the file that the profiler wrote and yields events without
sequence numbers or times, which the pipe stamps. It needs no jax.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxprof.events import (
    CaptureTaken,
    CompilePasses,
    Event,
    KernelsMeasured,
    StepsMeasured,
    TextRecorded,
    TrustReported,
)
from jaxprof.trace.launch import launches_of, transfers_of
from jaxprof.trace.model import Lane, Op, Trace
from jaxprof.trace.ops import PS, OpTime, op_times, unattributed_seconds
from jaxprof.trace.passes import compile_tree
from jaxprof.trace.sources import read_profile
from jaxprof.trace.steps import Steps, steps_of
from jaxprof.trace.timeline import INTERVALS_KEPT, timeline_text
from jaxprof.trace.trust import trust_rows

TIMELINE = "timeline"
"""The name of the timeline's text."""


def summarise(
    path: Path,
    kind: str,
    run: str = "",
    calls: int | None = None,
    *,
    seconds_with: float | None = None,
    kept: bool = False,
) -> Iterator[Event]:
    """The events of the profile at `path`, for the run of that id.

    `path` is a file, or the folder that the profiler was told to write to. `kind` is that of `CaptureTaken`; `calls`
    and `seconds_with` are what the capture pass knows of itself; `kept` says that the raw file stays where it is.
    Raises FileRefusedError for a file that is empty or no profile.
    """
    trace = read_profile(path)
    yield from events_of(trace, kind, run, calls=calls, seconds_with=seconds_with, path=str(path) if kept else "")


def events_of(
    trace: Trace,
    kind: str,
    run: str = "",
    *,
    calls: int | None = None,
    seconds_with: float | None = None,
    path: str = "",
    table: list[OpTime] | None = None,
) -> Iterator[Event]:
    """As `summarise`, of a trace that was read; with these rows for the table of kernels instead of all."""
    span = trace.span_ps
    wall_seconds = (span[1] - span[0]) * PS if span is not None else None
    yield CaptureTaken(
        run=run,
        kind=kind,
        platform=trace.platform,
        calls=calls,
        seconds_with=seconds_with,
        wall_seconds=wall_seconds,
        events=trace.events,
        bytes=sum(trace.sizes.values()) or None,
        path=path,
    )
    steps = None
    if kind != "compile":
        yield KernelsMeasured(
            run=run,
            kind=kind,
            calls=calls,
            rows=kernel_rows(trace, op_times(trace) if table is None else table),
            transfers=transfers_of(trace),
            unattributed_seconds=unattributed_seconds(trace),
        )
        steps = steps_of(trace)
        if steps.rows:
            yield StepsMeasured(run=run, found_by=steps.found_by, steps=steps.rows)
    tree = compile_tree(trace)
    if tree is not None and kind in ("compile", "imported"):
        yield CompilePasses(run=run, tree=tree)
    left_out = max(0, sum(len(lane) for lane in trace.lanes) - INTERVALS_KEPT)
    yield TrustReported(
        run=run,
        kind=kind,
        rows=trust_rows(
            trace,
            kind,
            steps,
            None if tree is None else float(tree["seconds"]),
            intervals_left_out=left_out if kind != "compile" else 0,
            busy_share=_busy_share(steps, calls, seconds_with),
        ),
    )
    if trace.lanes and kind != "compile":
        yield TextRecorded(run=run, name=TIMELINE, text=timeline_text(trace))


def kernel_rows(trace: Trace, table: list[OpTime]) -> list[dict[str, Any]]:
    """The table of ops as the rows of `KernelsMeasured`. `launch` and `uncertain` are there where they say something.

    A program's id is text: it may be larger than what JSON's readers hold in a number.
    """
    launches = launches_of(trace)
    numbers = {op: index for index, op in enumerate(trace.ops)}
    guessed = _guessed(trace)
    return [_row(row, numbers[row.op], launches, guessed) for row in table]


def _row(
    row: OpTime, number: int, launches: dict[tuple[str, int], dict[str, Any]], guessed: set[tuple[str, int]]
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "module": row.op.module,
        "program": _program(row.op),
        "name": row.op.name,
        "device": row.device,
        "count": row.count,
        "total_seconds": row.total_seconds,
        "self_seconds": row.self_seconds,
        "wall_seconds": row.wall_seconds,
        "median_seconds": row.median_seconds,
        "minimum_seconds": row.minimum_seconds,
        "maximum_seconds": row.maximum_seconds,
        "kernels": list(row.kernels),
    }
    if (row.device, number) in launches:
        found["launch"] = launches[row.device, number]
    if (row.device, number) in guessed:
        found["uncertain"] = True
    return found


def _program(op: Op) -> str | None:
    return None if op.program is None else str(op.program)


def _guessed(trace: Trace) -> set[tuple[str, int]]:
    def of(lane: Lane) -> set[tuple[str, int]]:
        return set() if lane.guessed is None else {(lane.device, op) for op in set(lane.op_of[lane.guessed].tolist())}

    return set().union(*map(of, trace.op_lanes()))


def _busy_share(steps: Steps | None, calls: int | None, seconds_with: float | None) -> float | None:
    """Device time a call over the time a call, of a capture of steady calls."""
    if steps is None or not calls or not seconds_with or not steps.rows:
        return None
    return (steps.inside_seconds + steps.outside_seconds) / calls / seconds_with
