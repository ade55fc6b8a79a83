"""The totals of a range of time: how busy and idle each lane was, and which names took most of it.

The cost grows with the intervals in the range, by one pass over each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from jaxprof.analysis.lanes.kinds import COUNTED_LANES
from jaxprof.analysis.lanes.rows import LaneGroup, LaneRow, Lanes, covered, united


@dataclass(frozen=True, slots=True)
class NameTotal:
    """The intervals of one name in a range."""

    name: str
    kind: int
    """Index in `KINDS`."""
    count: int
    self_ns: int
    """Time within the range, without that of intervals nested inside."""


@dataclass(frozen=True, slots=True)
class LaneTotals:
    """The totals of a lane in a range."""

    lane: int
    """Index in `Lanes.lanes`."""
    span_ns: int
    busy_ns: int
    """Time in which anything ran; for several threads, their sum."""
    threads: int
    count: int
    """Intervals that are at least partly in the range."""
    names: tuple[NameTotal, ...]
    """The longest first."""
    left_out: int | None = 0
    """As `LaneGroup.left_out`, of the whole timeline: `count` and `names` are without them."""

    @property
    def busy_share(self) -> float | None:
        """Busy share of the range, 0..1; for several threads, their mean. None where intervals may lack."""
        return None if self.left_out is None else self.busy_ns / max(1, self.span_ns * self.threads)

    @property
    def idle_ns(self) -> int | None:
        """Time in which nothing ran; for several threads, their sum. None where intervals may lack."""
        return None if self.left_out is None else self.span_ns * self.threads - self.busy_ns


@dataclass(frozen=True, slots=True)
class DeviceTotals:
    """A device in a range, whatever the number of its streams or threads."""

    device: str
    span_ns: int
    busy_ns: int | None
    """Time in which any of them ran something; None where intervals are left out."""

    @property
    def busy_share(self) -> float | None:
        """Busy share of the range, 0..1."""
        return None if self.busy_ns is None else self.busy_ns / max(1, self.span_ns)

    @property
    def idle_ns(self) -> int | None:
        """Time in which none of them ran anything."""
        return None if self.busy_ns is None else self.span_ns - self.busy_ns


@dataclass(frozen=True, slots=True)
class RangeTotals:
    """The totals of all lanes in a range."""

    begin: int
    end: int
    lanes: tuple[LaneTotals, ...]
    """In the order of the timeline, without counters."""

    @property
    def span_ns(self) -> int:
        """Length of the range."""
        return self.end - self.begin

    def of(self, lane: int) -> LaneTotals | None:
        """The totals of a lane; None for a counter."""
        return next((found for found in self.lanes if found.lane == lane), None)

    def kernels(self, lanes: Lanes, device: str) -> tuple[NameTotal, ...]:
        """What ran on a device, over all of its lanes that hold each kernel once, the longest first."""
        there = [found for found in self.lanes if lanes.lanes[found.lane].device == device]
        return _merged(
            total for found in there if lanes.lanes[found.lane].kind in COUNTED_LANES for total in found.names
        )


def range_totals(lanes: Lanes, begin: int, end: int) -> RangeTotals:
    """The totals from `begin` to `end` (nanoseconds) of every lane that is not a counter."""
    return RangeTotals(
        begin,
        end,
        tuple(totals(at, lane, begin, end) for at, lane in enumerate(lanes.lanes) if lane.summary.values is None),
    )


def device_totals(lanes: Lanes, begin: int, end: int) -> tuple[DeviceTotals, ...]:
    """The totals of each device from `begin` to `end`, over all of its lanes that hold each kernel once."""
    found = []
    for device in dict.fromkeys(lane.device for lane in lanes.lanes if lane.kind in COUNTED_LANES):
        own = [lane for lane in lanes.lanes if lane.device == device and lane.kind in COUNTED_LANES]
        rows = [row for lane in own for row in lane.rows if row.level == 0]
        parts = [(row.starts[part], row.ends[part]) for row in rows for part in [row.inside(begin, end)]]
        starts, ends = (np.concatenate(column) for column in zip(*parts, strict=True))
        busy = 0
        if len(starts):
            order = np.argsort(starts, kind="stable")
            starts, ends = united(starts[order], ends[order])
            busy = int((np.minimum(ends, end) - np.maximum(starts, begin)).sum())
        whole = all(lane.left_out == 0 for lane in own)
        found.append(DeviceTotals(device, end - begin, busy if whole else None))
    return tuple(found)


def totals(at: int, lane: LaneGroup, begin: int, end: int) -> LaneTotals:
    """The totals of lane number `at` in a range."""
    took, counts = np.zeros(len(lane.labels)), np.zeros(len(lane.labels), np.int64)
    for number, row in enumerate(lane.rows):
        part = row.inside(begin, end)
        if part.start == part.stop:
            continue
        label = row.label[part]
        counts += np.bincount(label, minlength=len(counts))
        took += np.bincount(label, weights=row.own[part], minlength=len(took))
        for index in {part.start, part.stop - 1}:
            took[row.label[index]] += _own_within(lane.rows, number, index, begin, end) - row.own[index]
    names = _merged(
        NameTotal(lane.labels[label][0], lane.kind_of_label[label], int(counts[label]), round(float(took[label])))
        for label in np.flatnonzero(counts).tolist()
    )
    threads = sum(row.level == 0 for row in lane.rows)
    busy = lane.active.between(begin, end)
    return LaneTotals(at, end - begin, busy, threads, int(counts.sum()), names, lane.left_out)


def _own_within(rows: Sequence[LaneRow], number: int, index: int, begin: int, end: int) -> float:
    """The self time of one interval within a range, which may begin or end inside of it."""
    row = rows[number]
    start, stop = max(int(row.starts[index]), begin), min(int(row.ends[index]), end)
    below = rows[number + 1] if number + 1 < len(rows) and rows[number + 1].level == row.level + 1 else None
    if below is None:
        return stop - start
    part = below.inside(start, stop)
    edges = np.array([[start], [stop]], np.int64)
    return stop - start - int(covered(below.starts[part], below.ends[part], *edges)[0])


def _merged(totals: Iterable[NameTotal]) -> tuple[NameTotal, ...]:
    """One for each name, the longest first."""
    by_name: dict[str, NameTotal] = {}
    for total in totals:
        known = by_name.get(total.name)
        if known is not None:
            total = NameTotal(total.name, known.kind, known.count + total.count, known.self_ns + total.self_ns)
        by_name[total.name] = total
    return tuple(sorted(by_name.values(), key=lambda total: (-total.self_ns, total.name)))
