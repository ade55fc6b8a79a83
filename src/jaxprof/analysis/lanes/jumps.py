"""Jump targets in a row of a timeline: its next idle time, and its longest intervals.

An idle time lies between two intervals of a row; time before the first and after the last interval does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxprof.analysis.lanes.rows import Ints, LaneRow
from jaxprof.trace.intervals import Coverage


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of a row: an interval, or an idle time between two."""

    begin: int
    end: int
    rank: int = 0
    """Rank among the pieces of its kind by length, from 1 for the longest; 0 if they were not compared."""
    of: int = 0
    """Number of pieces of its kind in the row; 0 if they were not counted."""


def idle_stretches(row: LaneRow) -> tuple[Ints, Ints]:
    """Return the begins and ends of the idle times between the first and the last interval."""
    ran = Coverage.of(row.starts, row.ends)
    return ran.ends[:-1], ran.starts[1:]


def idle_around(row: LaneRow, time: int) -> tuple[int | None, int | None]:
    """Return where the idle time at `time` begins and ends; None before the first interval, or after the last one."""
    after = int(np.searchsorted(row.starts, time, "right"))
    begin = int(row.ends[:after].max()) if after else None
    return begin, int(row.starts[after]) if after < len(row.starts) else None


def next_idle(row: LaneRow, time: int, step: int, least: int) -> Stretch | None:
    """Return the next idle time of at least `least` nanoseconds; None if there is none. With `step` > 0 it is the first
    that begins after `time`, otherwise the last that begins before."""
    begins, ends = idle_stretches(row)
    long = np.flatnonzero(ends - begins >= least)
    at = int(np.searchsorted(begins[long], time, "right" if step > 0 else "left")) - (step < 0)
    if not 0 <= at < len(long):
        return None
    return Stretch(int(begins[long[at]]), int(ends[long[at]]))


def longest_idle(row: LaneRow, before: Stretch | None = None) -> Stretch | None:
    """Return the longest idle time; with `before`, the one that follows it in order of length."""
    return _longest(*idle_stretches(row), before)


def longest_interval(row: LaneRow, before: Stretch | None = None) -> Stretch | None:
    """Return the longest interval; with `before`, the one that follows it in order. A counter is ordered by value."""
    return _longest(row.starts, row.ends, before, row.values)


def _longest(begins: Ints, ends: Ints, before: Stretch | None, values: object = None) -> Stretch | None:
    """Return the piece with the largest length (or value) after `before`; of equal pieces, the earlier.

    After the shortest piece comes the longest again. One pass for each key press: sorting a million pieces takes twenty
    times as long.
    """
    if not len(begins):
        return None
    sizes = ends - begins if values is None else np.asarray(values)
    remaining = np.ones(len(begins), np.bool_)
    if before is not None and before.rank < len(begins):
        previous_size = sizes[np.flatnonzero((begins == before.begin) & (ends == before.end))[0]]
        remaining = (sizes < previous_size) | ((sizes == previous_size) & (begins > before.begin))
    candidates = np.flatnonzero(remaining)
    at = int(candidates[sizes[candidates].argmax()])
    return Stretch(int(begins[at]), int(ends[at]), len(begins) - len(candidates) + 1, len(begins))
