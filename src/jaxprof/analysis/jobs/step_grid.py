"""The steps of all processes of a job beside each other, as many as a screen has columns for.

A column holds a range of passes of the loop, the same one on all processes, so that no clocks are compared. Where no
process numbered its passes, a column is a span of time since the loop of that process began. How long a step took is
exact where passes were timed; what it consists of is an estimate from samples, and how much of it is own work is known
from the CPU clock of the main thread, where there is one. Arrays only: drawing, and the choice of
what is conspicuous, happen elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from jaxprof.analysis.jobs.loop_trace import Intervals, LoopTrace, loop_trace
from jaxprof.analysis.jobs.step_alignment import alignment_notices, alignments, passes_of
from jaxprof.analysis.programs.verdict import COMPILE, COPY, DATA, DISPATCH, HOST, PARTS
from jaxprof.session import Session
from jaxprof.session.log.job_folder import RecordedJob

Array: TypeAlias = "np.ndarray[Any, Any]"
STEP: Final = "step"
OWN: Final = "own"
OWN_PARTS: Final = (DATA, HOST, DISPATCH, COPY, COMPILE)
"""What a process does itself in a step; for the rest of it the device computes, or the process waits for the others."""
PARTS_OF: Final = {OWN: OWN_PARTS, **{part: (part,) for part in PARTS}}
LEAST_COVERED: Final = 0.5
"""Of the steps in a column that a process was seen in: with fewer of them in sample windows, its parts are unknown."""
VALUES: Final = (OWN, STEP, *PARTS)
"""What a grid can show: a process's own work in a step, the whole step, or one of its parts."""


@dataclass(frozen=True, slots=True)
class StepGrid:
    """R processes by C columns."""

    processes: tuple[int, ...]
    """Their indices, a row each; those that recorded no loop too."""
    first_steps: Array
    """Number of the first step in each column; in seconds since the loop began where `unit` is `time`."""
    steps: Array
    """Steps in each column, or seconds."""
    seconds: Array
    """R x C: mean seconds a step; where `unit` is `time`, parts are in seconds a second of the loop. NaN: unknown."""
    samples: Array
    """R x C: samples of the stack that a value rests on; NaN for whole steps, which do not rest on any."""
    step_seconds: Array
    """R x C: seconds a step of what the row is compared with, or 1 where `seconds` are a second. NaN: unknown."""
    unit: Literal["step", "time"]
    values_of: str
    """One of `VALUES`."""
    numbered_by: str = ""
    """The program's variable that numbers the steps; empty: each process counts from the first that was seen of it."""
    notices: tuple[str, ...] = field(default=())
    """What could not be put beside the rest."""

    @property
    def ratio(self) -> Array:
        """R x C: how many times as long the step of what a process is compared with would take with this process's
        value in place of its own: for whole steps, the one value over the other. NaN: unknown, or nobody to compare
        with. Compared is with the median process; of two, with the other one."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = 1 + (self.seconds - usual_of(self.seconds)) / self.step_seconds
        return np.where(np.isfinite(ratio), ratio, np.nan)


def step_grid(
    job: RecordedJob[Session],
    columns: int = 100,
    first: float | None = None,
    last: float | None = None,
    values_of: str = OWN,
) -> StepGrid:
    """The steps `first` to `last` of a job, by default all, from the sessions of its processes. Raises KeyError for
    `values_of` that a grid cannot show."""
    laid = alignments([passes for member in job.members if (passes := passes_of(member)) is not None])
    shifts = {each.index: each.shift for each in laid}
    traces = [
        trace.shifted(shifts.get(trace.index, 0)) for member in job.members if (trace := loop_trace(member)) is not None
    ]
    grid = grid_of_traces(traces, [member.index for member in job.members], columns, first, last, values_of)
    return replace(grid, notices=(*grid.notices, *alignment_notices(laid)))


@dataclass(frozen=True, slots=True)
class ColumnSums:
    """What is in each column of each process, R x C: of timed passes, and of the sample windows."""

    seconds: Array
    """Of the timed passes."""
    counts: Array
    """How many passes these are."""
    part_seconds: Array
    """What goes to the values that are shown, in the sample windows."""
    window_seconds: Array
    """All parts in the windows."""
    samples: Array
    covered: Array
    """How much of the column the windows are, in its unit."""

    @classmethod
    def nothing(cls, rows: int, columns: int) -> ColumnSums:
        """Of processes of which nothing is known yet."""
        return cls(*(np.zeros((rows, columns)) for _ in range(6)))


def grid_of_traces(
    traces: Sequence[LoopTrace],
    indices: Sequence[int],
    columns: int,
    first: float | None = None,
    last: float | None = None,
    values_of: str = OWN,
) -> StepGrid:
    """The grid of these loops, with a row for each of the `indices`. Raises KeyError as `step_grid` does."""
    parts = parts_of(values_of)
    unit = common_unit([trace.unit for trace in traces])
    used = [trace for trace in traces if trace.unit == unit]
    edges = column_edges(extent_of(used), columns, first, last, whole=unit == "step")
    rows = {index: row for row, index in enumerate(indices)}
    sums = ColumnSums.nothing(len(rows), len(edges) - 1)
    for trace in used:
        add_trace(sums, rows[trace.index], trace, edges, parts)
    names = {trace.numbered_by for trace in used}
    left_out = [trace.index for trace in traces if trace.unit != unit]
    return assembled(indices, edges, sums, unit, values_of, names, left_out)


def parts_of(values_of: str) -> tuple[str, ...]:
    """The parts of a step that are shown; none for whole steps. Raises KeyError for what a grid cannot show."""
    return () if values_of == STEP else PARTS_OF[values_of]


def add_trace(sums: ColumnSums, row: int, trace: LoopTrace, edges: Array, parts: Sequence[str]) -> None:
    """What is in the columns of one process."""
    sums.seconds[row], sums.counts[row] = in_columns(trace.passes, edges, trace.seconds, trace.counts)
    if parts and len(trace.samples):
        seen = _spent(trace, parts)
        whole = np.sum(list(trace.parts.values()), axis=0)
        width = trace.windows.ends - trace.windows.begins
        found = in_columns(trace.windows, edges, seen, whole, trace.samples, width)
        sums.part_seconds[row], sums.window_seconds[row], sums.samples[row], sums.covered[row] = found


def _spent(trace: LoopTrace, parts: Sequence[str]) -> Array:
    """Seconds of each window that went to some parts: to all of a process's own by its clock, where it has one."""
    by_samples: Array = np.sum([trace.parts[part] for part in parts], axis=0)
    if tuple(parts) != OWN_PARTS:
        return by_samples
    by_clock = trace.own_seconds + trace.parts[COMPILE]
    return np.where(np.isnan(by_clock), by_samples, by_clock)


def common_unit(units: Sequence[str]) -> Literal["step", "time"]:
    """What the columns count: steps where most processes numbered theirs."""
    return "step" if 2 * sum(unit == "step" for unit in units) > len(units) else "time"


def assembled(
    indices: Sequence[int],
    edges: Array,
    sums: ColumnSums,
    unit: Literal["step", "time"],
    values_of: str,
    names: set[str],
    left_out: Sequence[int],
) -> StepGrid:
    """The grid of what is in the columns; `names`: of the variables that number the steps."""
    notices = [f"{_processes(left_out)} cannot be put beside the others: only some numbered their steps"]
    notices = notices if left_out else []
    if len(names) > 1:
        notices.append("the processes number their steps by different variables: one number may mean several steps")
    by_step = unit == "step" or values_of == STEP
    each = quotient(sums.seconds, sums.counts)
    samples = np.full(each.shape, np.nan)
    values = each
    if values_of != STEP:
        enough = sums.covered >= LEAST_COVERED * (sums.counts if unit == "step" else np.diff(edges))
        shares = np.where(enough, quotient(sums.part_seconds, sums.window_seconds), np.nan)
        values, samples = each * shares if by_step else shares, np.where(enough, sums.samples, 0.0)
    return StepGrid(
        tuple(indices),
        edges[:-1],
        np.diff(edges),
        values,
        samples,
        usual_of(each) if by_step else np.ones(each.shape),
        unit,
        values_of,
        next(iter(names)) if len(names) == 1 else "",
        tuple(notices),
    )


def column_edges(
    extent: tuple[float, float] | None, columns: int, first: float | None, last: float | None, *, whole: bool
) -> Array:
    """The C + 1 bounds of the columns: `whole` numbers of steps, at least one in each; else seconds. The step `last`
    belongs to the last column. Without an extent, or where nothing of it is wanted, there is no column."""
    kind = "i8" if whole else "f8"
    if extent is None:
        return np.zeros(1, dtype=kind)
    low = extent[0] if first is None else max(float(first), extent[0])
    high = extent[1] if last is None else min(float(last) + whole, extent[1])
    if high <= low or columns < 1:
        return np.asarray([low], dtype=kind)
    if not whole:
        return np.linspace(low, high, columns + 1)
    begin, steps = math.floor(low), math.ceil(high) - math.floor(low)
    count = min(columns, steps)
    return begin + np.arange(count + 1, dtype="i8") * steps // count


def in_columns(intervals: Intervals, edges: Array, *values: Array) -> list[Array]:
    """The sums of values in each column; what lies on the bound of two columns is divided by its length. What has no
    length is nowhere."""
    somewhere = intervals.ends > intervals.begins
    if not somewhere.any() or len(edges) < 2:
        return [np.zeros(len(edges) - 1) for _ in values]
    knots = np.stack([intervals.begins[somewhere], intervals.ends[somewhere]], axis=1).ravel()
    sums = []
    for each in values:
        up_to = np.cumsum(each[somewhere])
        reached = np.stack([up_to - each[somewhere], up_to], axis=1).ravel()
        sums.append(np.diff(np.interp(edges, knots, reached)))
    return sums


def quotient(above: Array, below: Array) -> Array:
    """NaN where there is nothing below."""
    found: Array = np.divide(above, below, out=np.full(np.shape(below), np.nan), where=below > 0)
    return found


def usual_of(values: Array) -> Array:
    """R x C: what a process is compared with. In each column that is the median over the processes that are known; of
    two it is the other one, because their median would halve what one is above it. NaN where fewer are known."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    median = np.full(values.shape[1], np.nan)
    if (count > 1).any():
        median[count > 1] = np.nanmedian(values[:, count > 1], axis=0)
    usual: Array = np.where(known & (count == 2), 2 * median - values, median)
    return usual


def extent_of(traces: Sequence[LoopTrace]) -> tuple[float, float] | None:
    """Where the first of these loops begins and the last one ends, in their unit; None if none has anything."""
    spans = [trace.passes if trace.unit == "step" else trace.windows for trace in traces]
    known = [span for span in spans if len(span.begins)]
    return (
        (min(float(each.begins[0]) for each in known), max(float(each.ends[-1]) for each in known)) if known else None
    )


def _processes(indices: Sequence[int]) -> str:
    named = ", ".join(map(str, indices[:8])) + (f" and {len(indices) - 8} more" if len(indices) > 8 else "")
    return f"{'process' if len(indices) == 1 else 'processes'} {named}"
