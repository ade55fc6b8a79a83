"""Which pass of one process's loop is which of another's.

Processes that number their passes by the same counter agree by number. Where they share a clock, on one host, the
moments at which equal numbers ended say whether that is so: a counter that one process has restored from a checkpoint,
or that was found one epoch later, is some passes off at every moment. Without a counter the clock decides, and on
different hosts the pattern of the ends, as for the collectives of captures (`arrivals`). That holds for processes which
work together; where the passes of two are at no constant distance, they do not, and their numbers stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from jaxprof.analysis.arrivals import LEAST_INSTANCES, lay
from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.programs.passes import PassSeries
from jaxprof.session import Session
from jaxprof.session.log.job_folder import JobMember
from jaxprof.units import counted

Array: TypeAlias = "np.ndarray[Any, Any]"
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
    uncertain_steps: float | None
    """Median distance, in passes, of the ends that should be at the same moment; None where they were not compared."""
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
    itself = StepAlignment(first.index, 0, "number" if first.series.numbered_by else "nothing", None)
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
                return StepAlignment(other.index, 0, "number", spread)
            if spread <= _STEADY_STEPS:
                shift = round(middle)
                why = (
                    f"its {name} is {abs(shift)} {'behind' if shift > 0 else 'ahead of'} that of process {first.index}"
                    if numbered
                    else "its passes have no number that both count"
                )
                notice = f"{told} is laid beside the others by the clock: {why}"
                return StepAlignment(other.index, shift, "clock", spread, notice)
    if numbered:
        return StepAlignment(other.index, 0, "number", None)
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
        return StepAlignment(other.index, 0, "nothing", None, notice)
    places, _, residue = fit
    shift = int(ends[0][0][max(0, -places)] - ends[1][0][max(0, places)])
    steps = residue / max(1e-9, float(np.median(np.diff(ends[0][1]))))
    notice = (
        f"{told} is laid beside the others by the pattern of its steps' ends, which fits to {steps:.2f} steps: "
        "they have no number that all count"
    )
    return StepAlignment(other.index, shift, "pattern", steps, notice)


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
    rows = [(entry.number + entry.count - 1, entry.began_seconds + entry.seconds) for entry in series.entries()]
    table = np.asarray(rows, dtype="f8")
    return table[:, 0], np.maximum.accumulate(table[:, 1])


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
