"""Where to go in a row of a timeline: to its next idle stretch, and to the longest of what it has.

An idle stretch of a row is between two of its intervals; what is before the first and after the last is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxprof.analysis.lanes.rows import Ints, LaneRow, united


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of a row: an interval, or a time in which nothing ran."""

    begin: int
    end: int
    rank: int = 0
    """Its place among the pieces of its kind by length, from 1 for the longest; 0 where they were not compared."""
    of: int = 0
    """How many pieces of its kind the row has; 0 where they were not counted."""


def idle_stretches(row: LaneRow) -> tuple[Ints, Ints]:
    """Begins and ends of the times between the first and the last interval in which nothing ran."""
    starts, ends = united(row.starts, row.ends)
    return ends[:-1], starts[1:]


def idle_around(row: LaneRow, time: int) -> tuple[int | None, int | None]:
    """Where the idle stretch at a time begins and ends; None before the first interval, or after the last one."""
    after = int(np.searchsorted(row.starts, time, "right"))
    begin = int(row.ends[:after].max()) if after else None
    return begin, int(row.starts[after]) if after < len(row.starts) else None


def next_idle(row: LaneRow, time: int, step: int, least: int) -> Stretch | None:
    """The first idle stretch that begins after `time` (`step` > 0), or the last that begins before it, and that lasts
    at least `least` nanoseconds; None without one."""
    begins, ends = idle_stretches(row)
    long = np.flatnonzero(ends - begins >= least)
    at = int(np.searchsorted(begins[long], time, "right" if step > 0 else "left")) - (step < 0)
    if not 0 <= at < len(long):
        return None
    return Stretch(int(begins[long[at]]), int(ends[long[at]]))


def longest_idle(row: LaneRow, before: Stretch | None = None) -> Stretch | None:
    """The longest idle stretch; with `before`, the longest of those that come after it in that order."""
    return _longest(*idle_stretches(row), before)


def longest_interval(row: LaneRow, before: Stretch | None = None) -> Stretch | None:
    """The longest interval; with `before`, the longest of those that come after it. Of a counter, its highest
    value."""
    return _longest(row.starts, row.ends, before, row.values)


def _longest(begins: Ints, ends: Ints, before: Stretch | None, values: object = None) -> Stretch | None:
    """The piece with the greatest length, or value, after `before`, the earlier of two that are equal; from the
    shortest back to the longest. One pass for each press of a key: sorting a million takes twenty times as long."""
    if not len(begins):
        return None
    sizes = ends - begins if values is None else np.asarray(values)
    left = np.ones(len(begins), np.bool_)
    if before is not None and before.rank < len(begins):
        own = sizes[np.flatnonzero((begins == before.begin) & (ends == before.end))[0]]
        left = (sizes < own) | ((sizes == own) & (begins > before.begin))
    which = np.flatnonzero(left)
    at = int(which[sizes[which].argmax()])
    return Stretch(int(begins[at]), int(ends[at]), len(begins) - len(which) + 1, len(begins))
