"""Devices of a job that are held back by their temperature or power, while the others are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from jaxprof.analysis.jobs.clocks import DeviceClock
from jaxprof.analysis.jobs.figures import ProcessFigures
from jaxprof.analysis.jobs.finding import JobFinding
from jaxprof.analysis.programs.verdict import DEVICE
from jaxprof.units import scaled

SLOWER: Final = 0.10
"""By how much its clock is below the others' median."""
ACTIVE: Final = 0.5
"""Share of its readings in which a reason was active: a reason now and then does not hold a clock down."""
_ADVICE: Final = (
    "Look at the cooling, the power limit and the neighbours of that device. The others wait for it in each collective."
)


def throttled(processes: Sequence[ProcessFigures]) -> Iterator[JobFinding]:
    """The devices whose clock is lower than that of the others, with the reason that they report for it."""
    seen: dict[tuple[str, str], tuple[ProcessFigures, DeviceClock]] = {}
    for process in processes:
        for clock in process.clocks:
            seen.setdefault((process.host, clock.device), (process, clock))  # processes of a host see the same ones
    for key, (process, clock) in seen.items():
        others = [other.hertz for at, (_, other) in seen.items() if at != key]
        if not others or clock.hertz >= (1 - SLOWER) * median(others) or clock.throttled < ACTIVE:
            continue
        message = (
            f"{clock.device} on {process.host} is throttled ({', '.join(clock.reasons)}): its clock is at "
            f"{scaled(clock.hertz)}Hz, that of the others at {scaled(median(others))}Hz"
        )
        yield JobFinding("throttled-device", process.index, message, _ADVICE, DEVICE)
