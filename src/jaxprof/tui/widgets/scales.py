"""Axes: from values to places and back to round numbers, linear or logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_NICE = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """The values from `low` to `high`, laid out evenly, or evenly in their logarithm."""

    low: float
    high: float
    log: bool = False

    def place(self, value: float) -> float:
        """Where `value` lies, 0 at `low` and 1 at `high`; not cut off outside."""
        if self.log:
            if value <= 0:
                return -math.inf
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[float]:
        """At most `most` round values on the scale, ascending; for logarithms powers of ten, or 1, 2 and 5 of them."""
        if most < 1:
            return []
        return self._log_ticks(most) if self.log else self._linear_ticks(most)

    def _linear_ticks(self, most: int) -> list[float]:
        rough = (self.high - self.low) / max(1, most - 1)
        power = 10.0 ** math.floor(math.log10(rough))
        for nice in (*_NICE, 20.0, 50.0):
            step = nice * power
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last - first + 1 <= most:
                return [index * step for index in range(first, last + 1)]
        return []

    def _log_ticks(self, most: int) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for factors in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
            found = [f * 10.0**power for power in range(first, last + 1) for f in factors]
            kept = [value for value in found if self.low * 0.999 <= value <= self.high * 1.001]
            if len(kept) <= most:
                return kept
        every = math.ceil(len(kept) / most)
        return kept[::every]


def spanning(values: Iterable[float], *, log: bool = False, margin: float = 0.05, zero: bool = False) -> Scale:
    """The scale that shows all `values`, with `margin` of its length free at both ends; `zero` begins at 0.

    Values that a logarithmic scale cannot show (0 and below) are left out. Equal values get room around them.
    """
    shown = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    if not shown:
        return Scale(1.0, 10.0, log) if log else Scale(0.0, 1.0)
    low, high = min(shown), max(shown)
    if log:
        if high / low < 1.01:
            return Scale(low / 2, high * 2, True)
        room = (high / low) ** margin
        return Scale(low / room, high * room, True)
    if zero:
        low = min(0.0, low)
    if high - low <= abs(high) * 1e-9:
        spread = abs(high) * 0.1 or 1.0
        return Scale(low if zero else low - spread, high + spread)
    room = (high - low) * margin
    return Scale(low if zero else low - room, high + room)
