"""Totals of the lanes of a timeline in a range: how busy and idle each lane was, and which names took most of the time.

They cost one pass over the intervals in the range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from jaxprof.analysis.lanes.kinds import COUNTED_LANES
from jaxprof.analysis.lanes.rows import LaneGroup, LaneRow, Lanes
from jaxprof.trace.intervals import Coverage


@dataclass(frozen=True, slots=True)
class NameTotal:
    """The intervals of one name in a range."""

    name: str
    kind: int
    """Index in `KINDS`."""
    count: int
    self_ns: int
    """Nanoseconds within the range, without intervals nested inside."""


@dataclass(frozen=True, slots=True)
class LaneTotals:
    """Totals of a lane in a range."""

    lane: int
    """Index in `Lanes.lanes`."""
    span_ns: int
    busy_ns: int
    """Nanoseconds in which anything ran, summed over threads."""
    threads: int
    count: int
    """Number of intervals that are at least partly in the range."""
    names: tuple[NameTotal, ...]
    """Names, longest time first."""
    left_out: int | None = 0
    """`LaneGroup.left_out` for the whole timeline; `count` and `names` are without these intervals."""

    @property
    def busy_share(self) -> float | None:
        """Busy share of the range, from 0 to 1, as the mean over threads. None if intervals may be missing."""
        return None if self.left_out is None else self.busy_ns / max(1, self.span_ns * self.threads)

    @property
    def idle_ns(self) -> int | None:
        """Nanoseconds in which nothing ran, summed over threads. None if intervals may be missing."""
        return None if self.left_out is None else self.span_ns * self.threads - self.busy_ns


@dataclass(frozen=True, slots=True)
class RangeTotals:
    """Totals of all lanes in a range."""

    begin: int
    end: int
    lanes: tuple[LaneTotals, ...]
    """Lanes in the order of the timeline, without counters."""

    @property
    def span_ns(self) -> int:
        """Length of the range in nanoseconds."""
        return self.end - self.begin

    def of(self, lane: int) -> LaneTotals | None:
        """Return the totals of a lane; None for a counter."""
        return next((found for found in self.lanes if found.lane == lane), None)

    def kernels(self, lanes: Lanes, device: str) -> tuple[NameTotal, ...]:
        """Return what ran on a device, over all lanes that hold each kernel once, longest time first."""
        there = [found for found in self.lanes if lanes.lanes[found.lane].device == device]
        return _merged(
            total for found in there if lanes.lanes[found.lane].kind in COUNTED_LANES for total in found.names
        )


def range_totals(lanes: Lanes, begin: int, end: int) -> RangeTotals:
    """Return the totals from `begin` to `end` (nanoseconds) of every lane that is not a counter."""
    return RangeTotals(
        begin,
        end,
        tuple(totals(at, lane, begin, end) for at, lane in enumerate(lanes.lanes) if lane.summary.values is None),
    )


def totals(at: int, lane: LaneGroup, begin: int, end: int) -> LaneTotals:
    """Return the totals of lane number `at` in a range."""
    took, counts = np.zeros(len(lane.labels)), np.zeros(len(lane.labels), np.int64)
    for number, row in enumerate(lane.rows):
        inside = row.inside(begin, end)
        if inside.start == inside.stop:
            continue
        label = row.label[inside]
        counts += np.bincount(label, minlength=len(counts))
        took += np.bincount(label, weights=row.own[inside], minlength=len(took))
        for index in {inside.start, inside.stop - 1}:
            took[row.label[index]] += _self_time_within(lane.rows, number, index, begin, end) - row.own[index]
    names = _merged(
        NameTotal(lane.labels[label][0], lane.kind_of_label[label], int(counts[label]), round(float(took[label])))
        for label in np.flatnonzero(counts).tolist()
    )
    threads = sum(row.level == 0 for row in lane.rows)
    busy = lane.active.between(begin, end)
    return LaneTotals(at, end - begin, busy, threads, int(counts.sum()), names, lane.left_out)


def _self_time_within(rows: Sequence[LaneRow], number: int, index: int, begin: int, end: int) -> float:
    """Return the self time of one interval within a range, which may begin or end inside the interval."""
    row = rows[number]
    start, stop = max(int(row.starts[index]), begin), min(int(row.ends[index]), end)
    below = rows[number + 1] if number + 1 < len(rows) and rows[number + 1].level == row.level + 1 else None
    if below is None:
        return stop - start
    part = below.inside(start, stop)
    edges = np.array([[start], [stop]], np.int64)
    return stop - start - int(Coverage(below.starts[part], below.ends[part]).within(*edges)[0])


def _merged(totals: Iterable[NameTotal]) -> tuple[NameTotal, ...]:
    """Merge the totals of equal names, longest time first."""
    by_name: dict[str, NameTotal] = {}
    for total in totals:
        known = by_name.get(total.name)
        if known is not None:
            total = NameTotal(total.name, known.kind, known.count + total.count, known.self_ns + total.self_ns)
        by_name[total.name] = total
    return tuple(sorted(by_name.values(), key=lambda total: (-total.self_ns, total.name)))
