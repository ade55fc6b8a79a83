"""At which clock the devices of a job run: one that is held back by its temperature or power makes all others wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from jaxprof.events import DeviceReading

LEAST_READINGS: Final = 5
"""Readings of a busy device, half a second apart: fewer may be one moment."""
BUSY: Final = 0.2
"""Utilisation from which on the clock is that of a device at work; an idle one saves power."""


@dataclass(frozen=True, slots=True)
class DeviceClock:
    """One device while it was busy."""

    device: str
    hertz: float
    """The median."""
    readings: int
    throttled: float
    """Share of the readings with a reason for throttling."""
    reasons: tuple[str, ...]
    """The reasons, those that were read most often first."""


def device_clocks(readings: Mapping[str, Iterable[DeviceReading]]) -> tuple[DeviceClock, ...]:
    """The clocks of the devices that were read often enough while they were busy. CPUs report no reasons, and are left
    out."""
    return tuple(_clocks(readings))


def _clocks(readings: Mapping[str, Iterable[DeviceReading]]) -> Iterator[DeviceClock]:
    for device, every in readings.items():
        if device.startswith("cpu:"):
            continue
        busy = [each for each in every if each.utilisation is not None and each.utilisation >= BUSY]
        known = [(each.clock_hertz, each.throttle_reasons) for each in busy if each.clock_hertz]
        if len(known) < LEAST_READINGS:
            continue
        yield DeviceClock(
            device,
            median(hertz for hertz, _ in known),
            len(known),
            sum(1 for _, reasons in known if reasons) / len(known),
            _most_often(reasons for _, reasons in known),
        )


def _most_often(each: Iterable[Sequence[str]]) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    for reasons in each:
        for reason in reasons:
            counts[reason] = counts.get(reason, 0) + 1
    return tuple(sorted(counts, key=lambda reason: -counts[reason]))
