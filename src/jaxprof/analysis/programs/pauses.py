"""Pauses in which a program could not run: each one once, whether it was seen from outside, from within, or both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jaxprof.events import ProgramStopped
from jaxprof.light_dataclass import dataclass
from jaxprof.units import seconds

SIGNAL, UNKNOWN, SUSPENDED = "signal", "unknown", "suspended"
CAUSES: Final = (SIGNAL, UNKNOWN, SUSPENDED)
"""Causes of a pause. `signal`: SIGSTOP, ctrl+z or the like. `unknown`: the whole process was paused by a signal that
also paused its recorder, or with its container. `suspended`: the machine slept."""
_CAUSES: Final = {"state": SIGNAL, "standstill": UNKNOWN, "clock": SUSPENDED}
LEAST_SECONDS: Final = 0.2
"""Shortest pause reported in seconds: twice the interval between two looks at a process."""
_UNSURE_SECONDS: Final = 0.1
"""Uncertainty of the begin and end of a pause."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause in which the program could not run."""

    began_seconds: float
    """Seconds since the program began, by a clock that a suspended machine does not advance."""
    seconds: float
    cause: str
    """One of `CAUSES`."""


def pause_times(stops: Sequence[Pause]) -> str:
    """Return text such as `2.00 s after it began`, or `3 times, first 2.00 s after it began`."""
    first = f"{seconds(stops[0].began_seconds)} after it began"
    return first if len(stops) == 1 else f"{len(stops)} times, first {first}"


def without_doubted(seen: Sequence[ProgramStopped], recorder_ran: Sequence[float]) -> list[ProgramStopped]:
    """Return the pauses without those that only the program's own sampler noticed, while the recording process, which
    saw no signal, ran at one of these monotonic times in their middle.

    All threads can then be blocked in the system: a driver that maps the memory of a GPU keeps the process from mapping
    any other (1.2 s for the 60 GiB that JAX takes first on an H100).
    """
    signals = [event for event in seen if _CAUSES.get(event.found_by) == SIGNAL]

    def is_sure(event: ProgramStopped) -> bool:
        began, ended = event.began_seconds, event.began_seconds + event.seconds
        ran = any(began + _UNSURE_SECONDS < at < ended - _UNSURE_SECONDS for at in recorder_ran)
        signalled = any(one.began_seconds < ended and began < one.began_seconds + one.seconds for one in signals)
        return event.found_by != "standstill" or signalled or not ran

    return list(filter(is_sure, seen))


def pauses(seen: Sequence[ProgramStopped], began_seconds: float) -> tuple[Pause, ...]:
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
    return tuple(stop for stop in found if stop.seconds >= LEAST_SECONDS)
