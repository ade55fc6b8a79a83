"""When a program did not run, and could not: each time once, whether it was seen from outside, from within, or both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jaxprof.events import ProgramStopped
from jaxprof.light_dataclass import dataclass

SIGNAL, UNKNOWN, SUSPENDED = "signal", "unknown", "suspended"
CAUSES: Final = (SIGNAL, UNKNOWN, SUSPENDED)
"""`signal`: SIGSTOP, ctrl+z or the like. `unknown`: the whole process stood still, by a signal that also stopped the
recording process, with its container, or in a debugger. `suspended`: the machine slept."""
_CAUSES: Final = {"state": SIGNAL, "standstill": UNKNOWN, "clock": SUSPENDED}
LEAST_SECONDS: Final = 0.2
"""Shorter ones are not worth a word: two looks at a process are half as far apart."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """A time in which the program did not run, and could not."""

    began_seconds: float
    """Since the program began, by a clock that a suspended machine does not advance."""
    seconds: float
    cause: str
    """One of `CAUSES`."""


def standstills(seen: Sequence[ProgramStopped], began_seconds: float) -> tuple[Standstill, ...]:
    """The stops of at least `LEAST_SECONDS`, in order of time. `began_seconds`: of the program, monotonic.

    Of a stop that was found in two ways, the one that knows the cause counts; times of two stops that overlap are one.
    Where others only had the processor, nothing stopped the program.
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
    found = [
        Standstill(max(0.0, began - began_seconds), ended - began, cause) for began, ended, cause in sorted(merged)
    ]
    return tuple(stop for stop in found if stop.seconds >= LEAST_SECONDS)
