"""A grid of the steps of all processes of a job, in the columns of a screen, and the cells that stand out.

A column holds the same range of iterations of the loop on all processes, so no clocks are compared. If no process
numbered its iterations, a column is a span of time since the loop of each process began. The length of a step is exact
where iterations were timed. What a step consists of is an estimate from samples, and its own work is known from the CPU
clock of the main thread, if there is one. This module makes arrays only; other modules draw them.

Sample windows have times and iterations have numbers: `LoopTrace` brings both to one axis, the iteration number.
Processes are aligned by these numbers. If a counter is not that of the others, or was restored from a checkpoint, one
number may mean several steps: a notice says so.

A job whose processes work together waits in each step for the process with the most work of its own. Time that a
process takes beyond the median of all processes (with two processes, beyond the other) is lost to the others. For
values from stack samples, a difference that so few samples could show by chance counts as none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from jaxprof.analysis.programs import COMPILE, PARTS, part_key
from jaxprof.analysis.programs.steps import iteration_series
from jaxprof.base.values import frozen
from jaxprof.events import SourceLocation, StepsCounted, StepsTaken
from jaxprof.jobs.figures import PARTS_OF_ITS_OWN, Array, LoopWindows, processes_named

_CONTIGUOUS = 2.0
"""Largest distance of two windows' beginnings, over the first's loop time, at which it extends to the next."""


@frozen
class LoopTrace:
    """The hot loop of one process. Intervals are arrays of begin and end, without overlaps, in order."""

    unit: Literal["step", "time"]
    """Unit of the axis: iterations of the loop, or seconds since the loop began."""
    iterations: Array
    """Intervals of the timed iterations; entry i holds `counts[i]` iterations, which took `seconds[i]` together."""
    counts: Array
    seconds: Array
    windows: LoopWindows
    spans: Array
    """Intervals of the sample windows; windows before the first numbered iteration or after the last have no length."""
    numbered_by: str = ""
    """Variable of the program that numbers the iterations; empty if they are counted from the first one seen."""

    @property
    def extent(self) -> tuple[float, float] | None:
        """Begin and end of the loop on the axis; None if it is empty."""
        span = self.iterations if self.unit == "step" else self.spans
        return (float(span[0, 0]), float(span[-1, 1])) if len(span) else None


def trace_of(
    where: SourceLocation | None,
    windows: LoopWindows,
    taken: Sequence[StepsTaken],
    counted: Iterable[StepsCounted],
) -> LoopTrace | None:
    """Return the trace of the loop at `where`, by its numbered iterations if there are any; None without a loop."""
    starts, lengths = windows.began_seconds, windows.seconds
    to_next = np.append(np.diff(starts), np.inf)
    ends = starts + np.where(to_next <= _CONTIGUOUS * lengths, to_next, np.minimum(lengths, to_next))
    times = np.stack([starts, ends], axis=1)
    series = iteration_series(taken, where)
    if series is not None:
        entries = []
        for event in series.events:
            took = np.asarray(event.seconds, dtype="f8")
            each = np.asarray(event.counts or np.ones(len(took)), dtype="f8")
            # by entry: number of the first iteration, iterations, monotonic begin, seconds
            first = event.first + np.cumsum(each) - each
            entries.append((first, each, event.began_seconds + np.cumsum(took) - took, took))
        begins, counts, began, seconds = map(np.concatenate, zip(*entries, strict=True))
        axis = np.stack([begins, begins + counts], axis=1)
        clock = np.maximum.accumulate(np.stack([began, began + seconds], axis=1).ravel())
        spans = np.interp(times, clock, axis.ravel())
        return LoopTrace("step", axis, counts, seconds, windows, spans, series.events[0].numbered_by)
    if not len(windows):
        return None
    origin = times[0, 0]
    timed = sorted(
        (max(0.0, event.monotonic_seconds - event.seconds - origin), event.seconds, event.count)
        for event in counted
        if where is not None and event.where == where and event.count > 0 and event.seconds > 0
    )
    begins, seconds, counts = np.asarray(timed, dtype="f8").reshape(-1, 3).T
    bounds = np.maximum.accumulate(np.stack([begins, begins + seconds], axis=1).ravel()).reshape(-1, 2)
    return LoopTrace("time", bounds, counts, seconds, windows, times - origin)


_FEW_STEPS = 3.0
"""Largest difference, in iterations, between the numbers of processes that count alike."""


STEP = "step"
OWN = "own"
OWN_PARTS = (*PARTS_OF_ITS_OWN, COMPILE)
"""Parts of a step in which a process works itself; else the device computes, or it waits for others."""
PARTS_OF = {OWN: OWN_PARTS, STEP: (), **{part: (part,) for part in PARTS}}
"""Values that a grid can show, with their parts of a step: a process's own work, the whole step, or one part."""
PART_COLUMNS = {part: f"{part_key(part)}_seconds" for part in PARTS}
"""The column of each part of the loop in the tables of a roll-up."""
WORKED = "worked_seconds"
"""The column of all own parts together."""
MOST_BLOCKS = 1 << 9
"""Most blocks of a process in a roll-up."""
LEAST_COVERED = 0.5
"""Smallest share of a column's steps that sample windows must cover; with less, the parts are unknown."""
RATIOS = (1.05, 1.1, 1.25, 1.5, 2.0)
"""Bounds of the levels, as multiples of the usual step: of the median process, or of the other one if there are two."""
UNKNOWN = -1
_BY_CHANCE = 2.0
"""Standard errors below which a cell counts as equal to what it is compared with."""


@dataclass(frozen=True, eq=False)
class StepGrid:
    """Values of R processes in C columns, and what stands out in them."""

    processes: tuple[int, ...]
    """Process index of each row; includes processes that recorded no loop."""
    first_steps: Array
    """Number of the first step in each column; if `unit` is `time`, seconds since the loop began."""
    steps: Array
    """Number of steps in each column, or its seconds."""
    seconds: Array
    """R x C: mean seconds per step; parts are in seconds per second of the loop if `unit` is `time`. NaN: unknown."""
    samples: Array
    """R x C: number of stack samples that a value rests on; NaN for whole steps, which rest on none."""
    step_seconds: Array
    """R x C: seconds per step that the row is compared with, or 1 where `seconds` are per second. NaN: unknown."""
    unit: Literal["step", "time"]
    values_of: str
    """One of `PARTS_OF`."""
    notices: tuple[str, ...] = field(default=())
    """What could not be aligned with the rest."""

    @cached_property
    def usual_seconds(self) -> Array:
        """R x C: what each value is compared with. NaN: no other process."""
        return usual_of(self.seconds)

    @cached_property
    def ratio(self) -> Array:
        """R x C: the compared step with this process's value in place of the usual one, relative to that step.

        For whole steps this is the ratio of both values. A process is compared with the median process, or with the
        other one if there are two. NaN: unknown, or no other process.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = 1 + (self.seconds - self.usual_seconds) / self.step_seconds
        return np.where(np.isfinite(ratio), ratio, np.nan)

    @cached_property
    def error_seconds(self) -> Array:
        """R x C: standard error of `seconds` (with two processes, of their difference) from the number of samples; 0
        where values rest on no samples."""
        known = ~np.isnan(self.seconds)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip(self.seconds / self.step_seconds, 0.0, 1.0)
            error = np.sqrt(share * (1 - share) / self.samples) * self.step_seconds
        error = np.where(np.isnan(self.samples) & known, 0.0, error)
        return np.where(known.sum(axis=0) == 2, np.sqrt(np.nansum(error**2, axis=0)), error)

    @cached_property
    def levels(self) -> Array:
        """R x C: 0 at or below the usual value, or where so few samples show no difference; 1 from a ratio of
        `RATIOS[0]`, and so on up to the length of `RATIOS`; `UNKNOWN` where the value is unknown."""
        certain = self.seconds - self.usual_seconds > _BY_CHANCE * self.error_seconds
        levels = np.searchsorted(RATIOS, np.nan_to_num(self.ratio, nan=1.0), side="right").astype("i1")
        levels[~certain] = 0
        levels[np.isnan(self.seconds)] = UNKNOWN
        return levels

    @property
    def lost_seconds(self) -> dict[int, float]:
        """Seconds of each process above the median process (with two, above the other one), over all columns.

        Columns in which no other process is known are left out, and so are processes whose excess may be chance. The
        bound grows with the number of processes, like the largest of that many values by chance: `sqrt(2 ln R) + 1`
        standard errors.
        """
        weights = np.where(np.isnan(self.usual_seconds), 0, self.steps)
        total = np.nansum((self.seconds - self.usual_seconds) * weights, axis=1)
        error = np.sqrt(np.nansum((self.error_seconds * weights) ** 2, axis=1))
        bound = math.sqrt(2 * math.log(max(2, len(self.processes)))) + 1
        return {
            index: float(lost)
            for index, lost, within in zip(self.processes, total, error, strict=True)
            if lost > bound * within
        }


def no_sums(rows: int, columns: int) -> Array:
    """Return sums over the timed iterations and the sample windows in each column of each process: 6 x R x C, all 0.

    They are: seconds of the timed iterations; their number; seconds in the sample windows that go to the values shown;
    seconds of all parts in these windows; their samples; and how much of the column they cover, in its unit.
    """
    return np.zeros((6, rows, columns))


def add_trace(sums: Array, row: int, trace: LoopTrace, edges: Array, parts: Sequence[str]) -> None:
    sums[:2, row : row + 1] = in_columns(trace.iterations, edges, trace.seconds, trace.counts)
    if parts and len(trace.windows):
        seen: Array = np.sum([trace.windows.part(part) for part in parts], axis=0)
        if tuple(parts) == OWN_PARTS:  # for all own parts together, the process's CPU clock decides if there is one
            by_clock = trace.windows.own_seconds + trace.windows.part(COMPILE)
            seen = np.where(np.isnan(by_clock), seen, by_clock)
        width = trace.spans[:, 1] - trace.spans[:, 0]
        whole = trace.windows.parts.sum(axis=1)
        sums[2:, row : row + 1] = in_columns(trace.spans, edges, seen, whole, trace.windows.samples, width)


def assemble_grid(
    indices: Sequence[int],
    edges: Array,
    sums: Array,
    unit: Literal["step", "time"],
    values_of: str,
    names: set[str],
    extents: Mapping[int, tuple[float, float]],
    left_out: Sequence[int],
) -> StepGrid:
    """Build the grid from the sums of its columns, as in `no_sums`; `names` are the variables that number the steps,
    and `extents` where the loop of each process begins and ends."""
    notices = []
    if left_out:
        who = processes_named(left_out)
        notices.append(f"{who} cannot be compared with the others: only some processes number their steps")
    if unit == "step" and extents:
        # Why one number may not mean the same step on all processes.
        if len(names) > 1:
            notices.append("the processes number their steps by different variables: one number may mean several steps")
        if len(extents) > 1 and "" in names:
            notices.append("steps are counted from the first one that was seen of each process")
        (first, (begin, end)), *others = extents.items()
        # A process that begins as far from the first one's number as it ends may have restored its counter.
        shifted = [
            (process, other_begin)
            for process, (other_begin, other_end) in others
            if abs(other_begin - begin) > _FEW_STEPS and abs((other_end - end) - (other_begin - begin)) <= _FEW_STEPS
        ]
        if shifted:
            process, other_begin = shifted[0]
            more = f" ({len(shifted) - 1} more begin elsewhere, too)" if len(shifted) > 1 else ""
            notices.append(
                f"process {process} counts from step {other_begin:.0f} and process {first} from {begin:.0f}{more}: "
                "whether one number means the same step is unknown; the steps are aligned by number"
            )
    by_step = unit == "step" or values_of == STEP
    seconds, counts, part_seconds, window_seconds, window_samples, covered = sums
    each = quotient(seconds, counts)
    samples = np.full(each.shape, np.nan)
    values = each
    if values_of != STEP:
        enough = covered >= LEAST_COVERED * (counts if unit == "step" else np.diff(edges))
        shares = np.where(enough, quotient(part_seconds, window_seconds), np.nan)
        values, samples = each * shares if by_step else shares, np.where(enough, window_samples, 0.0)
    return StepGrid(
        tuple(indices),
        edges[:-1],
        np.diff(edges),
        values,
        samples,
        usual_of(each) if by_step else np.ones(each.shape),
        unit,
        values_of,
        tuple(notices),
    )


def column_edges(extents: Collection[tuple[float, float]], columns: int, *, whole: bool) -> Array:
    """Return the C + 1 bounds of the columns, from where the first loop begins to where the last one ends: if `whole`,
    whole numbers of steps with at least one in each; otherwise seconds. There is no column without a loop."""
    kind = "i8" if whole else "f8"
    if not extents:
        return np.zeros(1, dtype=kind)
    low, high = min(begin for begin, _ in extents), max(end for _, end in extents)
    if high <= low or columns < 1:
        return np.asarray([low], dtype=kind)
    if not whole:
        return np.linspace(low, high, columns + 1)
    begin, steps = math.floor(low), math.ceil(high) - math.floor(low)
    count = min(columns, steps)
    return begin + np.arange(count + 1, dtype="i8") * steps // count


def in_columns(intervals: Array, edges: Array, *values: Array, rows: Array | int = 0, count: int = 1) -> list[Array]:
    """Return the sums of the values in each of C columns and `count` rows, R x C; `rows` has the row of each interval.
    An interval across a bound is divided by length; an interval without length is in no column."""
    columns = len(edges) - 1
    begins, ends = np.clip(intervals, edges[0], edges[-1]).T
    somewhere = np.flatnonzero(ends > begins)
    first = np.searchsorted(edges, begins[somewhere], side="right") - 1
    spanned = np.searchsorted(edges, ends[somewhere], side="left") - first
    part = np.repeat(somewhere, spanned)
    column = np.arange(len(part)) - np.repeat(np.cumsum(spanned) - spanned - first, spanned)
    inside = np.minimum(ends[part], edges[column + 1]) - np.maximum(begins[part], edges[column])
    share = inside / (intervals[:, 1] - intervals[:, 0])[part]
    cells = np.broadcast_to(rows, len(begins))[part] * columns + column
    return [np.bincount(cells, each[part] * share, count * columns).reshape(count, columns) for each in values]


def quotient(above: Array, below: Array) -> Array:
    """Divide two arrays; NaN where the divisor is 0."""
    ratio: Array = np.divide(above, below, out=np.full(np.shape(below), np.nan), where=below > 0)
    return ratio


def usual_of(values: Array) -> Array:
    """Return what each process is compared with, R x C. In each column this is the median of the known processes. With
    two processes it is the other one, because the median would halve the difference. NaN if fewer are known."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    median = np.full(values.shape[1], np.nan)
    if (count > 1).any():
        median[count > 1] = np.nanmedian(values[:, count > 1], axis=0)
    usual: Array = np.where(known & (count == 2), 2 * median - values, median)
    return usual
