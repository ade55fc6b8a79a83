"""The steps of all processes of a job beside each other, in the columns of a screen, and what stands out in them.

A column holds a range of passes of the loop, the same one on all processes, so that no clocks are compared. Where no
process numbered its passes, a column is a span of time since the loop of that process began. How long a step took is
exact where passes were timed; what it consists of is an estimate from samples, and how much of it is own work is known
from the CPU clock of the main thread, where there is one. Arrays only: drawing happens elsewhere.

Sample windows have times, passes have numbers: `LoopTrace` brings them together on one axis, the number of the pass.
Processes that number their passes by the same counter agree by number. Where they share a clock, on one host, the
moments at which equal numbers ended say whether that is so: a counter that one process has restored from a checkpoint,
or that was found one epoch later, is some passes off at every moment. Without a counter the clock decides, and on
different hosts the pattern of the ends, as for the collectives of captures (`arrivals`). That holds for processes which
work together; where the passes of two are at no constant distance, they do not, and their numbers stay as they are.

A job whose processes work together waits in each step for the one that has most work of its own. What a process takes
beyond the median of all (of two, beyond the other) is lost to the others. Where values rest on samples of the stack,
what so few samples would show by chance counts for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np

from jaxprof.analysis.arrivals import LEAST_INSTANCES, lay
from jaxprof.analysis.jobs.figures import (
    Array,
    LoopWindow,
    LoopWindows,
    ProcessFigures,
    process_figures,
    processes_named,
)
from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.programs.passes import PassSeries, pass_series
from jaxprof.analysis.programs.verdict import COMPILE, COPY, DATA, DISPATCH, HOST, PARTS
from jaxprof.events import SourceLocation, StepsCounted, StepsTaken
from jaxprof.session import Session
from jaxprof.session.log.job_folder import JobMember
from jaxprof.units import counted

_CONTIGUOUS = 2.0
"""A sample window reaches to the next one if that begins within so many times its own time in the loop."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """What follows one another on the axis of a trace; no two overlap."""

    begins: Array
    ends: Array


@dataclass(frozen=True, slots=True)
class LoopTrace:
    """The hot loop of one process."""

    index: int
    """Of the process."""
    unit: Literal["step", "time"]
    """What its axis counts: passes of the loop, or seconds since it began."""
    passes: Intervals
    """Timed passes, `counts` of them in each entry, which took `seconds` together."""
    counts: Array
    seconds: Array
    windows: LoopWindows
    spans: Intervals
    """Where the sample windows are; those before the first numbered pass, and after the last, have no length."""
    numbered_by: str = ""
    """The program's variable that numbers the passes; empty: they are counted from the first one that was seen."""

    def shifted(self, shift: int) -> LoopTrace:
        """The same with `shift` added to the numbers of its passes."""
        if not shift or self.unit != "step":
            return self
        passes, spans = (Intervals(each.begins + shift, each.ends + shift) for each in (self.passes, self.spans))
        return replace(self, passes=passes, spans=spans)

    def windows_between(self, first: float | None, last: float | None) -> int:
        """How many sample windows it has from `first` to `last` on its axis."""
        low, high = -np.inf if first is None else first, np.inf if last is None else last
        return int(((self.spans.ends > low) & (self.spans.begins <= high)).sum())


def loop_trace(member: JobMember[Session], figures: ProcessFigures | None = None) -> LoopTrace | None:
    """The hot loop of a process, from its session; None if nothing was seen of one. `figures`: those of the process,
    where they are known already."""
    program = next((run.program for run in member.session.programs if run.program is not None), None)
    if program is None:
        return None
    figures = figures if figures is not None else process_figures(member)
    where = figures.loop.where if figures.loop is not None else None
    return trace_of(member.index, where, figures.windows, program.passes, program.steps)


def trace_of(
    index: int,
    where: SourceLocation | None,
    windows: Iterable[LoopWindow],
    passes: Sequence[StepsTaken],
    counted: Iterable[StepsCounted],
) -> LoopTrace | None:
    """The trace of the loop at `where`: along its numbered passes, if there are any."""
    windows = LoopWindows.of(windows)
    times = _times(windows)
    series = pass_series(passes, where)
    if series is not None:
        begins, counts, began, seconds = _columns(series)
        axis = Intervals(begins, begins + counts)
        clock = np.maximum.accumulate(np.stack([began, began + seconds], axis=1).ravel())
        places = np.interp(times, clock, np.stack([axis.begins, axis.ends], axis=1).ravel())
        spans = Intervals(places[:, 0], places[:, 1])
        return LoopTrace(index, "step", axis, counts, seconds, windows, spans, series.stretches[0].numbered_by)
    if not len(windows):
        return None
    timed = sorted(
        (max(0.0, event.monotonic_seconds - event.seconds - times[0, 0]), event.seconds, event.count)
        for event in counted
        if where is not None and event.where == where and event.count > 0 and event.seconds > 0
    )
    table = np.asarray(timed, dtype="f8").reshape(-1, 3)
    bounds = np.maximum.accumulate(np.stack([table[:, 0], table[:, 0] + table[:, 1]], axis=1).ravel()).reshape(-1, 2)
    places = times - times[0, 0]
    return LoopTrace(
        index,
        "time",
        Intervals(bounds[:, 0], bounds[:, 1]),
        table[:, 2],
        table[:, 1],
        windows,
        Intervals(places[:, 0], places[:, 1]),
    )


def _times(windows: LoopWindows) -> Array:
    """W x 2: begin and end of each window."""
    begins, lengths = windows.began_seconds, windows.seconds
    to_next = np.append(np.diff(begins), np.inf)
    ends = begins + np.where(to_next <= _CONTIGUOUS * lengths, to_next, np.minimum(lengths, to_next))
    return np.stack([begins, ends], axis=1)


def _columns(series: PassSeries) -> tuple[Array, Array, Array, Array]:
    """By entry: number of its first pass, passes, monotonic begin, seconds."""
    firsts, counts, begins, seconds = [], [], [], []
    for event in series.stretches:
        took = np.asarray(event.seconds, dtype="f8")
        each = np.asarray(event.counts or np.ones(len(took)), dtype="f8")
        firsts.append(event.first + np.cumsum(each) - each)
        counts.append(each)
        begins.append(event.began_seconds + np.cumsum(took) - took)
        seconds.append(took)
    return np.concatenate(firsts), np.concatenate(counts), np.concatenate(begins), np.concatenate(seconds)


FEW_STEPS: Final = 3.0
"""By so many passes the ends of equal numbers may differ."""
_STEADY_STEPS: Final = 1.0
"""Of processes that work together, the distance stays within so many passes, half of the time."""
_LEAST_ENDS: Final = 10
_SAME_CLOCK_SECONDS: Final = 2.0
"""By so much the start of two processes' monotonic clocks may differ on one host: the wall clock is corrected."""
_MOST_ENDS: Final = 2000
_MOST_NOTICES: Final = 3


@dataclass(frozen=True, slots=True)
class ProcessPasses:
    """The passes of one process of a job."""

    index: int
    host: str
    clock_seconds: float
    """Unix time at which its monotonic clock showed 0: of one boot of one host it is the same."""
    series: PassSeries


@dataclass(frozen=True, slots=True)
class StepAlignment:
    """How the passes of one process lie beside those of the first one."""

    index: int
    shift: int
    """Number of a pass on the first process, less its number on this one."""
    by: Literal["number", "clock", "pattern", "nothing"]
    notice: str = ""
    """What is to be said of it; empty where the numbers agree."""


def passes_of(member: JobMember[Session]) -> ProcessPasses | None:
    """The passes of one process, from its session; None if none was timed."""
    run = next(iter(member.session.programs), None)
    series = program_result(member.session, run.id).passes if run is not None else None
    header = member.session.header
    clock = header.wall_seconds - header.monotonic_seconds
    return ProcessPasses(member.index, header.host, clock, series) if series is not None else None


def alignments(processes: Sequence[ProcessPasses]) -> tuple[StepAlignment, ...]:
    """How the passes of each process lie beside those of the first one, in their order."""
    if not processes:
        return ()
    first = processes[0]
    itself = StepAlignment(first.index, 0, "number" if first.series.numbered_by else "nothing")
    return (itself, *(_aligned(first, other) for other in processes[1:]))


def alignment_notices(laid: Sequence[StepAlignment]) -> tuple[str, ...]:
    """What is to be said of them, of the first few."""
    told = [each.notice for each in laid if each.notice]
    more = len(told) - _MOST_NOTICES
    return (
        *told[:_MOST_NOTICES],
        *([f"the same holds for {counted(more, 'more process', 'more processes')}"] if more > 0 else []),
    )


def _aligned(first: ProcessPasses, other: ProcessPasses) -> StepAlignment:
    name = first.series.numbered_by
    numbered = bool(name) and name == other.series.numbered_by
    same_clock = first.host == other.host and abs(first.clock_seconds - other.clock_seconds) < _SAME_CLOCK_SECONDS
    told = f"process {other.index}"
    if same_clock:
        distance = _distance(first.series, other.series)
        if distance is not None:
            middle, spread = distance
            if numbered and abs(middle) <= FEW_STEPS:
                return StepAlignment(other.index, 0, "number")
            if spread <= _STEADY_STEPS:
                shift = round(middle)
                why = (
                    f"its {name} is {abs(shift)} {'behind' if shift > 0 else 'ahead of'} that of process {first.index}"
                    if numbered
                    else "its passes have no number that both count"
                )
                notice = f"{told} is laid beside the others by the clock: {why}"
                return StepAlignment(other.index, shift, "clock", notice)
    if numbered:
        return StepAlignment(other.index, 0, "number")
    return _by_pattern(first, other, same_clock=same_clock)


def _by_pattern(first: ProcessPasses, other: ProcessPasses, *, same_clock: bool) -> StepAlignment:
    told = f"process {other.index}"
    ends = [_single(each) for each in (first, other)]
    fit = None
    if not same_clock and min(len(moments) for _, moments in ends) >= LEAST_INSTANCES:
        fit = lay(ends[0][1], ends[1][1], same_clock=False)
    if fit is None:
        notice = (
            f"the steps of {told} are counted from the first one seen: which step of the others each is, is unknown"
        )
        return StepAlignment(other.index, 0, "nothing", notice)
    places, _, residue = fit
    shift = int(ends[0][0][max(0, -places)] - ends[1][0][max(0, places)])
    steps = residue / max(1e-9, float(np.median(np.diff(ends[0][1]))))
    notice = (
        f"{told} is laid beside the others by the pattern of its steps' ends, which fits to {steps:.2f} steps: "
        "they have no number that all count"
    )
    return StepAlignment(other.index, shift, "pattern", notice)


def _distance(first: PassSeries, other: PassSeries) -> tuple[float, float] | None:
    """By how many passes the numbers of `first` are ahead at the ends of those of `other`: the median, and the median
    distance from it. None if too few of them are in the time in which both were timed."""
    numbers, moments = _ends(first)
    theirs, at = _ends(other)
    common = (at >= moments[0]) & (at <= moments[-1])
    if common.sum() < _LEAST_ENDS:
        return None
    ahead = np.interp(at[common], moments, numbers) - theirs[common]
    middle = float(np.median(ahead))
    return middle, float(np.median(np.abs(ahead - middle)))


def _ends(series: PassSeries) -> tuple[Array, Array]:
    """By entry: the number of its last pass, and when that ended, by the monotonic clock."""
    numbers, counts, began, seconds = _columns(series)
    return numbers + counts - 1, np.maximum.accumulate(began + seconds)


def _single(process: ProcessPasses) -> tuple[Array, Array]:
    """Numbers and ends, in Unix time, of the last passes without a gap that were timed one by one."""
    rows: list[tuple[int, float]] = []
    for entry in process.series.entries():
        if entry.count > 1 or (rows and rows[-1][0] != entry.number - 1):
            rows = []
        if entry.count == 1:
            rows.append((entry.number, process.clock_seconds + entry.began_seconds + entry.seconds))
    table = np.asarray(rows[-_MOST_ENDS:], dtype="f8").reshape(-1, 2)
    return table[:, 0], table[:, 1]


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
    """The grid of these loops, with a row for each of the `indices`. Raises KeyError for
    `values_of` that a grid cannot show."""
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
    if parts and len(trace.windows):
        seen = _spent(trace, parts)
        width = trace.spans.ends - trace.spans.begins
        found = in_columns(trace.spans, edges, seen, trace.windows.parts.sum(axis=1), trace.windows.samples, width)
        sums.part_seconds[row], sums.window_seconds[row], sums.samples[row], sums.covered[row] = found


def _spent(trace: LoopTrace, parts: Sequence[str]) -> Array:
    """Seconds of each window that went to some parts: to all of a process's own by its clock, where it has one."""
    by_samples: Array = np.sum([trace.windows.part(part) for part in parts], axis=0)
    if tuple(parts) != OWN_PARTS:
        return by_samples
    by_clock = trace.windows.own_seconds + trace.windows.part(COMPILE)
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
    notices = [f"{processes_named(left_out)} cannot be put beside the others: only some numbered their steps"]
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
    spans = [trace.passes if trace.unit == "step" else trace.spans for trace in traces]
    known = [span for span in spans if len(span.begins)]
    return (
        (min(float(each.begins[0]) for each in known), max(float(each.ends[-1]) for each in known)) if known else None
    )


RATIOS: Final = (1.05, 1.1, 1.25, 1.5, 2.0)
"""Bounds of the levels, as multiples of the usual step: of the median process, or of two, of the other one."""
UNKNOWN: Final = -1
_BY_CHANCE: Final = 2.0
"""Standard errors below which a cell is not told from what it is compared with."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A grid, and what stands out in it; all R x C, NaN where unknown."""

    grid: StepGrid
    usual_seconds: Array
    """What each value is compared with, as `usual_of` has it."""
    ratio: Array
    """As `StepGrid.ratio`."""
    error_seconds: Array
    """The standard error of `grid.seconds`, or of two of their difference, from the number of samples; 0 where values
    rest on none."""
    levels: Array
    """0 at the usual value, below it, or where so few samples do not tell; 1 from a ratio of `RATIOS[0]` on, and so on
    up to the number of `RATIOS`; `UNKNOWN` where the value is unknown."""


def standing(grid: StepGrid) -> Standing:
    """How far above the others each process is in each column."""
    usual, ratio = usual_of(grid.seconds), grid.ratio
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip(grid.seconds / grid.step_seconds, 0.0, 1.0)
        error = np.sqrt(share * (1 - share) / grid.samples) * grid.step_seconds
        error = np.where(np.isnan(grid.samples) & ~np.isnan(grid.seconds), 0.0, error)
        of_two = np.sum(~np.isnan(grid.seconds), axis=0) == 2
        error = np.where(of_two, np.sqrt(np.nansum(error**2, axis=0)), error)
        certain = grid.seconds - usual > _BY_CHANCE * error
    levels = np.searchsorted(RATIOS, np.nan_to_num(ratio, nan=1.0), side="right").astype("i1")
    levels[~certain] = 0
    levels[np.isnan(grid.seconds)] = UNKNOWN
    return Standing(grid, usual, ratio, error, levels)


def lost_seconds(seen: Standing) -> dict[int, float]:
    """By process: by how many seconds it is above the median process (of two, above the other one), over all
    columns in which others are known; only processes for which that is more than chance.

    The bound grows with the number of processes, as the largest of so many would by chance: `sqrt(2 ln R) + 1` standard
    errors.
    """
    grid = seen.grid
    weights = np.where(np.isnan(seen.usual_seconds), 0, grid.steps)
    total = np.nansum((grid.seconds - seen.usual_seconds) * weights, axis=1)
    error = np.sqrt(np.nansum((seen.error_seconds * weights) ** 2, axis=1))
    bound = math.sqrt(2 * math.log(max(2, len(grid.processes)))) + 1
    return {
        index: float(lost)
        for index, lost, within in zip(grid.processes, total, error, strict=True)
        if lost > bound * within
    }
