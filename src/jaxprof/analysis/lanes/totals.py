"""Totals of the lanes of a timeline in a range: how busy and idle each lane was, and which names took most of the time.

They cost one pass over the intervals in the range.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from jaxprof.analysis.lanes.kinds import COUNTED_LANES
from jaxprof.analysis.lanes.rows import LaneGroup, Lanes
from jaxprof.trace.intervals import Coverage


@dataclass(frozen=True, slots=True)
class NameTotal:
    """The intervals of one name in a range."""

    name: str
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


def range_totals(lanes: Lanes, begin: int, end: int) -> dict[int, LaneTotals]:
    """Return the totals from `begin` to `end` (nanoseconds) of every lane that is not a counter, by its number, in the
    order of the timeline."""
    return {at: _totals(at, lane, begin, end) for at, lane in enumerate(lanes.lanes) if lane.summary.values is None}


def kernels_on(lanes: Lanes, device: str, totals: Iterable[LaneTotals]) -> tuple[NameTotal, ...]:
    """Return what ran on a device, over all lanes that hold each kernel once, longest time first."""
    held = [found for found in totals if lanes.lanes[found.lane].kind in COUNTED_LANES]
    return _merged(total for found in held if lanes.lanes[found.lane].device == device for total in found.names)


def _totals(at: int, lane: LaneGroup, begin: int, end: int) -> LaneTotals:
    took, counts = np.zeros(len(lane.labels)), np.zeros(len(lane.labels), np.int64)
    nests = lane.kind != "stream"  # kernels of one stream may overlap without one holding the other
    for row, below in zip(lane.rows, [*lane.rows[1:], None], strict=True):
        part = row.inside(begin, end)
        starts, ends, label = np.maximum(row.starts[part], begin), np.minimum(row.ends[part], end), row.label[part]
        own = ends - starts
        if nests and below is not None and below.level == row.level + 1:
            nested = below.inside(begin, end)
            own = own - Coverage(below.starts[nested], below.ends[nested]).within(starts, ends)
        counts += np.bincount(label, minlength=len(counts))
        took += np.bincount(label, weights=own, minlength=len(took))
    names = _merged(
        NameTotal(lane.labels[label][0], int(counts[label]), round(float(took[label])))
        for label in np.flatnonzero(counts).tolist()
    )
    threads = sum(row.level == 0 for row in lane.rows)
    busy = lane.active.between(begin, end)
    return LaneTotals(at, end - begin, busy, threads, int(counts.sum()), names, lane.left_out)


def _merged(totals: Iterable[NameTotal]) -> tuple[NameTotal, ...]:
    """Merge the totals of equal names, longest time first."""
    by_name: dict[str, NameTotal] = {}
    for total in totals:
        known = by_name.get(total.name, NameTotal(total.name, 0, 0))
        by_name[total.name] = NameTotal(total.name, known.count + total.count, known.self_ns + total.self_ns)
    return tuple(sorted(by_name.values(), key=lambda total: (-total.self_ns, total.name)))
