"""Fold the readings of devices, so that a session of days holds as many of them as one of some minutes.

Only readings alike are folded: of a device that is busy, or is not, with the same limits and the same reasons for
throttling. The mean over a busy and an idle time would be a clock that the device never had. What one of them does not
know, the others do not know either.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from jaxprof.events import CaptureWindow, DeviceReading

BUSY = 0.2
"""Utilisation from which the clock is that of a device at work; an idle device saves power."""
MOST_READINGS = 2_000
"""Most readings of a device that a session holds, half of them as they were written."""
_MEANS = ("utilisation", "power_watts", "clock_hertz", "load_average")
_MAXIMA = ("memory_used_bytes", "temperature_celsius", "ecc_errors")


def folded(
    readings: Iterable[DeviceReading], part_of: Callable[[DeviceReading], float] = lambda _: 0.0
) -> list[DeviceReading]:
    """Return one reading for all that are alike and have the same `part_of` the time, in order of time."""
    groups: dict[Hashable, list[DeviceReading]] = {}
    for each in readings:
        groups.setdefault((part_of(each), *_likeness(each)), []).append(each)
    return sorted(map(_as_one, groups.values()), key=lambda each: each.monotonic_seconds)


def thinned(readings: Sequence[DeviceReading], windows: Sequence[CaptureWindow]) -> list[DeviceReading]:
    """Return the readings of one device with the older half folded over spans of time of one length, which grows as
    they become too many. Those during capture `windows` stay, for the timelines, unless they are too many."""
    half, windows = MOST_READINGS // 2, sorted(windows, key=lambda window: window.monotonic_seconds)
    old, recent = readings[:-half], readings[-half:]
    switched = [window.monotonic_seconds for window in windows]
    span = old[-1].monotonic_seconds - old[0].monotonic_seconds
    length = 2.0 ** math.ceil(math.log2(max(1.0, span) / (half / 2)))

    def part_of(reading: DeviceReading) -> float:
        before = bisect(switched, reading.monotonic_seconds)
        captured = before and windows[before - 1].state == "began" and length <= span
        return -reading.monotonic_seconds if captured else reading.monotonic_seconds // length

    while len(made := folded(old, part_of)) > (most := half * 3 // 4) and length <= span:
        length *= 4
    return made[-most:] + list(recent)  # no device has so many kinds of readings, but a file may have


def _likeness(reading: DeviceReading) -> tuple[Hashable, ...]:
    unknown = (getattr(reading, name) is None for name in (*_MEANS, *_MAXIMA))
    limits = reading.memory_limit_bytes, reading.power_limit_watts, reading.clock_limit_hertz
    shares = (reading.utilisation or 0.0) >= BUSY, len(reading.core_utilisation)
    return (reading.device, reading.run, reading.fault, *reading.throttle_reasons, *unknown, *limits, *shares)


def _as_one(readings: Sequence[DeviceReading]) -> DeviceReading:
    last = readings[-1]
    if len(readings) == 1:
        return last
    counts = [max(1, each.count) for each in readings]

    def mean(values: Iterable[float]) -> float:
        return float(f"{sum(value * count for value, count in zip(values, counts, strict=True)) / sum(counts):.6g}")

    known = {name: [getattr(each, name) for each in readings] for name in (*_MEANS, *_MAXIMA)}
    figures: dict[str, Any] = {name: mean(known[name]) for name in _MEANS if getattr(last, name) is not None}
    figures |= {name: max(known[name]) for name in _MAXIMA if getattr(last, name) is not None}
    cores = [mean(core) for core in zip(*(each.core_utilisation for each in readings), strict=True)]
    return replace(last, count=sum(counts), core_utilisation=cores, **figures)
