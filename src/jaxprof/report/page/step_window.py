"""The timeline of one typical step, small enough to stand in a page."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import chain
from statistics import median_low
from typing import Any, Final

from jaxprof.analysis.timeline import TEXT_NAME, Timeline, TimelineLane, read_timeline
from jaxprof.errors import FileRefusedError
from jaxprof.events import StepsMeasured
from jaxprof.report.page.elements import Charts, paragraph
from jaxprof.session import Run, Session
from jaxprof.units import integer, seconds

INTERVALS_KEPT: Final = 20_000
"""Intervals that a page draws; of more, the shortest are left out."""


@dataclass(frozen=True, slots=True)
class StepWindow:
    """A range of a timeline, in nanoseconds."""

    title: str
    start: int
    end: int


def step_timeline(charts: Charts, session: Session, run: Run) -> Iterator[str]:
    """The timeline of a step of this run; nothing for a run without one."""
    try:
        stored = session.text(run.id, TEXT_NAME)
        timeline = read_timeline(stored) if stored else None
    except FileRefusedError as error:
        yield paragraph(f"timeline: {error.what}", "note")
        return
    if timeline is None or not timeline.intervals:
        return
    window = typical_step(timeline, run.steps)
    lanes, left = _lanes(timeline, window)
    if not lanes:  # nothing that was kept of the profile lies in that step
        window = typical_step(timeline, None)
        lanes, left = _lanes(timeline, window)
    notes = [f"the {integer(left)} shortest intervals are left out"] if left else []
    notes += [f"{integer(timeline.left_out)} short intervals of the profile were not kept"] if timeline.left_out else []
    caption = "; ".join([f"{window.title}, {seconds((window.end - window.start) / 1e9)}", *notes])
    yield charts.figure("timeline", caption, {"span": window.end - window.start, "lanes": lanes})


def typical_step(timeline: Timeline, steps: StepsMeasured | None) -> StepWindow:
    """The complete step of median length on the first device that has one; else the whole timeline."""
    rows = [step for step in (steps.steps if steps is not None else []) if step.complete and step.to_next]
    rows = [step for step in rows if step.device == rows[0].device and step.seconds > 0]
    if rows:
        length = median_low(step.seconds for step in rows)
        step = next(step for step in rows if step.seconds == length)
        start = round(step.start_seconds * 1e9)
        several = f", the median one of {integer(len(rows))}" if len(rows) > 1 else ""
        return StepWindow(
            f"step {step.name} on {step.device}{several}", start, start + max(1, round(step.seconds * 1e9))
        )
    filled = [lane for lane in timeline.lanes if lane.starts]
    end = max(start + took for lane in filled for start, took in zip(lane.starts, lane.durations, strict=True))
    begin = min(lane.starts[0] for lane in filled)
    return StepWindow("the whole recording", begin, max(end, begin + 1))


def _lanes(timeline: Timeline, window: StepWindow) -> tuple[list[dict[str, Any]], int]:
    """The lanes with intervals in the window, and how many of these were left out."""
    inside = [(lane, _inside(lane, window)) for lane in timeline.lanes]
    total = sum(len(rows) for _, rows in inside)
    least = 0
    if total > INTERVALS_KEPT:
        every = chain.from_iterable((lane.durations[row] for row in rows) for lane, rows in inside)
        least = min(nlargest(INTERVALS_KEPT, every))
    lanes, kept_of_all = [], 0
    for lane, rows in inside:
        kept = [row for row in rows if lane.durations[row] >= least]
        kept_of_all += len(kept)
        if kept:
            lanes.append(_lane(lane, kept, window))
    return lanes, total - kept_of_all


def _inside(lane: TimelineLane, window: StepWindow) -> Sequence[int]:
    """The intervals that have a part in the window. One that began before it may be far back, so all are looked at."""
    last = bisect_left(lane.starts, window.end)
    return [row for row in range(last) if lane.starts[row] + lane.durations[row] > window.start]


def _lane(lane: TimelineLane, rows: Sequence[int], window: StepWindow) -> dict[str, Any]:
    labels = list(dict.fromkeys(lane.labels[lane.label_of[row]][0] for row in rows))
    number_of = {name: number for number, name in enumerate(labels)}
    return {
        "device": lane.device,
        "name": lane.name,
        "names": labels,
        "name_of": [number_of[lane.labels[lane.label_of[row]][0]] for row in rows],
        "starts": [lane.starts[row] - window.start for row in rows],
        "durations": [lane.durations[row] for row in rows],
    }
