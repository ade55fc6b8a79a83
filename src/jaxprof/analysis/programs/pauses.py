"""The pauses of a program, in which its process could not run, and the figures without them: a pause is no work of a
line, no part of an iteration, and no import.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from jaxprof.base.units import seconds
from jaxprof.base.values import frozen
from jaxprof.events import STOP_UNSURE_SECONDS, ProgramSampled, ProgramStopped, StepsTaken

SIGNAL, UNKNOWN, SUSPENDED, CAPTURE = "signal", "unknown", "suspended", "capture"
"""Causes of a pause. `signal`: SIGSTOP, ctrl+z or the like. `unknown`: the whole process was paused by a signal that
also paused its recorder, or with its container. `suspended`: the machine slept. `capture`: the profiler held the
program."""
_CAUSES = {"state": SIGNAL, "standstill": UNKNOWN, "clock": SUSPENDED, "capture": CAPTURE}
LEAST_SECONDS = 2 * STOP_UNSURE_SECONDS
"""Shortest pause reported."""
LEAST_LEFT_SECONDS = 2 * STOP_UNSURE_SECONDS
"""What is left of an iteration without a pause is known to this."""


@frozen
class Pause:
    """A pause in which the program could not run."""

    began_seconds: float
    """Seconds since the program began, by a clock that a suspended machine does not advance."""
    seconds: float
    cause: str
    """`SIGNAL`, `UNKNOWN`, `SUSPENDED` or `CAPTURE`."""


def pause_times(pauses: Sequence[Pause]) -> str:
    """Return text such as `2.00 s after it began`, or `3 times, first 2.00 s after it began`."""
    first = f"{seconds(pauses[0].began_seconds)} after it began"
    return first if len(pauses) == 1 else f"{len(pauses)} times, first {first}"


def without_doubted(seen: Sequence[ProgramStopped]) -> list[ProgramStopped]:
    """Return the pauses without those that only the program's own sampler noticed, while the recording process, which
    saw no signal, ran in their middle.

    All threads can then be blocked in the system: a driver that maps the memory of a GPU keeps the process from mapping
    any other (1.2 s for the 60 GiB that JAX takes first on an H100).
    """
    signals = [(one.began_seconds, one.began_seconds + one.seconds) for one in seen if one.found_by == "state"]

    def is_sure(one: ProgramStopped) -> bool:
        signalled = _overlap(signals, one.began_seconds, one.began_seconds + one.seconds) > 0
        return one.found_by != "standstill" or signalled or not one.recorder_ran

    return list(filter(is_sure, seen))


def merge_pauses(seen: Sequence[ProgramStopped], began_seconds: float) -> tuple[Pause, ...]:
    """Return the pauses of at least `LEAST_SECONDS` in order of time.

    `began_seconds` is the monotonic time at which the program began. If a pause was found in two ways, the one with a
    known cause counts; overlapping pauses are merged. Time in which other processes only had the processor is not a
    pause.
    """
    merged: list[tuple[float, float, str]] = []
    awake = [event for event in seen if event.found_by not in ("clock", "pressure") and event.seconds > 0]
    for event in sorted(awake, key=lambda event: event.began_seconds):
        began, ended = event.began_seconds, event.began_seconds + event.seconds
        cause = _CAUSES.get(event.found_by, UNKNOWN)
        if not merged or began >= merged[-1][1]:
            merged.append((began, ended, cause))
            continue
        first, last, known = merged[-1]
        if known == cause:
            merged[-1] = (first, max(last, ended), cause)
        elif cause == SIGNAL:
            merged[-1] = (began, ended, cause)
    merged += [
        (event.began_seconds, event.began_seconds + event.seconds, SUSPENDED)
        for event in seen
        if event.found_by == "clock"
    ]
    found = [Pause(max(0.0, began - began_seconds), ended - began, cause) for began, ended, cause in sorted(merged)]
    return tuple(pause for pause in found if pause.seconds >= LEAST_SECONDS)


def with_pauses(
    sampled: Sequence[ProgramSampled],
    pauses: Sequence[tuple[float, float]],
    doubted: Iterable[ProgramStopped],
    began_seconds: float,
) -> Iterator[ProgramSampled]:
    """Yield the sample windows with the time of the `pauses` (monotonic begin and end) as their state `paused`, and as
    a last window the pauses since then. The program's own sampler does not always recognise a pause: beside a busy
    machine it takes it for the time of others, and before it starts all time counts as import.

    `doubted`: pauses of the sampler's that were none. `began_seconds`: monotonic time at which the program began.
    """
    until = began_seconds
    for window in sampled:
        began, until = window.began_seconds, window.monotonic_seconds
        states = dict(window.states)
        noted = states.pop("paused", 0.0)
        noted -= sum(event.seconds for event in doubted if began <= event.began_seconds < until)
        paused = _overlap(pauses, began, until)
        if paused and not window.samples and list(states) == ["import"]:
            states["import"] = max(0.0, states["import"] - paused)
        paused = max(noted, min(paused, until - began - sum(states.values())))
        if paused > 0:
            states["paused"] = paused
        yield window if states == window.states else replace(window, states=states)
    last = max((ended for _, ended in pauses), default=until)
    if paused := _overlap(pauses, until, last):
        yield ProgramSampled(began_seconds=until, monotonic_seconds=last, samples=0, states={"paused": paused})


def _overlap(spans: Iterable[tuple[float, float]], began: float, ended: float) -> float:
    return sum(max(0.0, min(ended, last) - max(began, first)) for first, last in spans)


def without_pauses(taken: Sequence[StepsTaken], pauses: Sequence[tuple[float, float]]) -> list[StepsTaken]:
    """Return the iterations without the `pauses` (monotonic begin and end) of the process, each of which lies in one of
    them. If next to nothing of one is left, it was not timed."""
    rest = list(taken)
    for began, ended in pauses:
        rest = [part for event in rest for part in _without(event, began, ended)]
    return rest


def _without(event: StepsTaken, began: float, ended: float) -> Iterator[StepsTaken]:
    """Yield the event, as up to three if one of its entries holds the pause."""
    middle = (began + ended) / 2  # no iteration ends in a pause, whose begin and end are not known as exactly
    if not event.began_seconds < middle <= event.ended_seconds:
        yield event
        return
    ends = list(accumulate(event.seconds, initial=event.began_seconds))[1:]
    at = min(bisect_left(ends, middle), len(ends) - 1)
    counts = event.counts or [1] * len(event.seconds)
    left = event.seconds[at] - (ended - began)
    for first, last in ((0, at), (at, at + 1), (at + 1, len(ends))):
        seconds = [left] if first == at else event.seconds[first:last]
        if seconds and min(seconds) >= (LEAST_LEFT_SECONDS if first == at else 0.0):
            yield replace(
                event,
                first=event.first + sum(counts[:first]),
                began_seconds=ends[first] - event.seconds[first],
                seconds=seconds,
                counts=event.counts[first:last],
            )
