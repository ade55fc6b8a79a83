"""The hot loop of one process along its passes: how long each took, and what its time went to there.

Sample windows have times, passes have numbers. They are brought together on one axis, the number of the pass, here and
nowhere else; so what reads a trace needs neither clocks nor sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from jaxprof.analysis.jobs.figures import ProcessFigures, process_figures
from jaxprof.analysis.jobs.loop_windows import Array, LoopWindow, LoopWindows
from jaxprof.analysis.programs.verdict import PARTS
from jaxprof.events import SourceLocation, StepsCounted, StepsTaken
from jaxprof.session import Session
from jaxprof.session.log.job_folder import JobMember

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
    windows: Intervals
    """Sample windows; those before the first numbered pass, and after the last, have no length."""
    began_seconds: Array
    """When each window began; monotonic."""
    loop_seconds: Array
    """Spent in the loop in each window, first compilations included."""
    own_seconds: Array
    """In which the main thread worked itself, in each window; NaN where that is not known."""
    first_steps: Array
    """Number of the first step that began in each window, as the program counts; NaN where it is not known."""
    samples: Array
    """Of the stack, in the loop, in each window."""
    parts: Mapping[str, Array]
    """Seconds of each window that went to each of `PARTS`."""
    numbered_by: str = ""
    """The program's variable that numbers the passes; empty: they are counted from the first one that was seen."""

    def shifted(self, shift: int) -> LoopTrace:
        """The same with `shift` added to the numbers of its passes."""
        if not shift or self.unit != "step":
            return self
        passes, windows = (Intervals(each.begins + shift, each.ends + shift) for each in (self.passes, self.windows))
        return replace(self, passes=passes, windows=windows)

    def windows_between(self, first: float | None, last: float | None) -> int:
        """How many sample windows it has from `first` to `last` on its axis."""
        low, high = -np.inf if first is None else first, np.inf if last is None else last
        return int(((self.windows.ends > low) & (self.windows.begins <= high)).sum())


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
    taken = _of_loop(passes, where)
    if taken:
        begins, counts, began, seconds = _numbered(taken)
        axis = Intervals(begins, begins + counts)
        clock = np.maximum.accumulate(np.stack([began, began + seconds], axis=1).ravel())
        places = np.interp(times, clock, np.stack([axis.begins, axis.ends], axis=1).ravel())
        return _trace(index, "step", axis, counts, seconds, windows, places, taken[0].numbered_by)
    if not len(windows):
        return None
    spans = sorted(
        (max(0.0, event.monotonic_seconds - event.seconds - times[0, 0]), event.seconds, event.count)
        for event in counted
        if where is not None and event.where == where and event.count > 0 and event.seconds > 0
    )
    table = np.asarray(spans, dtype="f8").reshape(-1, 3)
    bounds = np.maximum.accumulate(np.stack([table[:, 0], table[:, 0] + table[:, 1]], axis=1).ravel()).reshape(-1, 2)
    return _trace(
        index, "time", Intervals(bounds[:, 0], bounds[:, 1]), table[:, 2], table[:, 1], windows, times - times[0, 0], ""
    )


def _trace(
    index: int,
    unit: Literal["step", "time"],
    axis: Intervals,
    counts: Array,
    seconds: Array,
    windows: LoopWindows,
    places: Array,
    numbered_by: str,
) -> LoopTrace:
    held = Intervals(places[:, 0], places[:, 1])
    return LoopTrace(
        index=index,
        unit=unit,
        passes=axis,
        counts=counts,
        seconds=seconds,
        windows=held,
        began_seconds=windows.began_seconds,
        loop_seconds=windows.seconds,
        own_seconds=windows.own_seconds,
        first_steps=windows.first_steps,
        samples=windows.samples,
        parts={part: windows.part(part) for part in PARTS},
        numbered_by=numbered_by,
    )


def _times(windows: LoopWindows) -> Array:
    """W x 2: begin and end of each window."""
    begins, lengths = windows.began_seconds, windows.seconds
    to_next = np.append(np.diff(begins), np.inf)
    ends = begins + np.where(to_next <= _CONTIGUOUS * lengths, to_next, np.minimum(lengths, to_next))
    return np.stack([begins, ends], axis=1)


def _of_loop(passes: Sequence[StepsTaken], where: SourceLocation | None) -> list[StepsTaken]:
    """Those of that loop; if there are none, of the loop that took most time."""
    by_loop: dict[SourceLocation, list[StepsTaken]] = {}
    for event in passes:
        by_loop.setdefault(event.where, []).append(event)
    if where in by_loop:
        return by_loop[where]
    return max(by_loop.values(), key=lambda events: sum(sum(event.seconds) for event in events), default=[])


def _numbered(taken: Sequence[StepsTaken]) -> tuple[Array, Array, Array, Array]:
    """By entry: number of its first pass, passes, monotonic begin, seconds. A counter that begins anew, as that of the
    batches does in each epoch, goes on where it was."""
    firsts, counts, begins, seconds = [], [], [], []
    reached, shift = None, 0
    for event in sorted(taken, key=lambda event: event.began_seconds):
        took = np.asarray(event.seconds, dtype="f8")
        each = np.asarray(event.counts or np.ones(len(took)), dtype="f8")
        if reached is not None and event.first + shift < reached:
            shift = reached - event.first
        number = event.first + shift
        firsts.append(number + np.cumsum(each) - each)
        counts.append(each)
        begins.append(event.began_seconds + np.cumsum(took) - took)
        seconds.append(took)
        reached = number + int(each.sum())
    whole: tuple[Array, Array, Array, Array] = (
        np.concatenate(firsts), np.concatenate(counts), np.concatenate(begins), np.concatenate(seconds)
    )  # fmt: skip
    return whole
