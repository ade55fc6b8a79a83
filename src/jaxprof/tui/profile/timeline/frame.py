"""A range of time on a timeline: a row column by column, its busy share, and the totals of a lane by name.

The cost of a row grows with the columns and the logarithm of the row. A column's height is the share of its time in
which something ran; its kind is the one that took most of that time. Intervals that are wide enough carry their name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxprof.tui.profile.timeline.browse import TimeWindow
from jaxprof.tui.profile.timeline.lanes import Busy, DrawnLane, Ints, LaneRow

NAMED_COLUMNS = 4
"""An interval of fewer columns carries no name."""
_NOTHING = -1


@dataclass(frozen=True, slots=True)
class Named:
    """An interval that is wide enough for its name: columns `first` to `last`, the last exclusive."""

    first: int
    last: int
    begins: bool
    """Whether the start of the interval is in view."""
    label: int
    kind: int


@dataclass(frozen=True, slots=True)
class Columns:
    """A row in a window, column by column."""

    kind: NDArray[np.int64]
    """Index of the kind in each column, -1 where nothing ran."""
    height: NDArray[np.float64]
    """Share of the column that was busy, 0..1."""
    gap: NDArray[np.bool_]
    """Whether nothing ran in a column between the row's first and last interval."""
    hit: NDArray[np.bool_]
    """Whether a column holds a match of the search."""
    named: Sequence[Named]


def edges(window: TimeWindow, width: int) -> Ints:
    """The borders of `width` columns."""
    return window.start + (np.arange(width + 1, dtype=np.int64) * window.span) // width


def columns_of(lane: DrawnLane, row: LaneRow, window: TimeWindow, width: int, hits: Busy | None = None) -> Columns:
    """The part of `row` that is in `window`, in `width` columns."""
    borders = edges(window, width)
    if row.values is not None:
        return _counted(row, borders)
    kinds = list(row.busy)
    busy = np.stack([np.diff(row.busy[kind].until(borders)) for kind in kinds]) if kinds else np.zeros((1, width))
    total = busy.sum(axis=0)
    length = np.maximum(np.diff(borders), 1) * row.capacity
    kind = np.where(total > 0, np.array(kinds or [0])[busy.argmax(axis=0)], _NOTHING)
    inside = (borders[1:] > row.starts[0]) & (borders[:-1] < row.ends[-1]) if len(row.starts) else total > 0
    matched = np.diff(hits.until(borders)) > 0 if hits is not None else np.zeros(width, np.bool_)
    return Columns(
        kind=kind,
        height=np.minimum(total / length, 1.0),
        gap=(total == 0) & inside,
        hit=matched,
        named=_named(lane, row, window, width) if row.capacity == 1 else (),
    )


def _counted(row: LaneRow, borders: Ints) -> Columns:
    """The columns of a counter: the highest value in each column as a share of its highest value of all."""
    assert row.values is not None
    first = np.maximum(np.searchsorted(row.starts, borders[:-1], "right") - 1, 0)
    last = np.searchsorted(row.starts, borders[1:], "left")
    # The maximum of each piece: every other border is an end for reduceat, which gives an empty piece its first value.
    pieces = np.stack([first, last], axis=1).ravel()
    high = np.maximum.reduceat(np.append(row.values, -np.inf), pieces)[::2]
    there = borders[1:] > row.starts[0]
    top = max(float(row.values.max()), 1e-300)
    height = np.where(there, np.clip(high / top, 0.0, 1.0), 0.0)
    kind = next(iter(row.busy))
    nothing = np.zeros(len(height), np.bool_)
    return Columns(np.where(there, kind, _NOTHING), height, nothing, nothing, ())


def _named(lane: DrawnLane, row: LaneRow, window: TimeWindow, width: int) -> list[Named]:
    first = max(0, int(np.searchsorted(row.starts, window.start, "right")) - 1)
    last = int(np.searchsorted(row.starts, window.end, "left"))
    starts, ends = row.starts[first:last], row.ends[first:last]
    least = window.span * NAMED_COLUMNS // width
    named = []
    for index in np.flatnonzero(ends - starts >= max(1, least)).tolist():
        start, end = int(starts[index]), int(ends[index])
        begin = max(0, -(-(start - window.start) * width // window.span))
        stop = min(width, window.column_of(end, width))
        if stop - begin >= NAMED_COLUMNS:
            label = int(row.label[first + index])
            named.append(Named(begin, stop, start >= window.start, label, lane.kind_of_label[label]))
    return named


def busy_share(row: LaneRow, window: TimeWindow) -> float:
    """Share of the window in which the row was busy; for several threads, their mean."""
    borders = np.array([window.start, window.end], np.int64)
    busy = sum(int(np.diff(of_kind.until(borders))[0]) for of_kind in row.busy.values())
    return busy / max(1, window.span * row.capacity)


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
class RangeTotals:
    """The totals of a lane in a range."""

    span_ns: int
    busy_ns: int
    """Time in which anything ran; for several threads, their sum."""
    threads: int
    count: int
    """Intervals that are at least partly in the range."""
    names: tuple[NameTotal, ...]
    """The longest first."""

    @property
    def busy_share(self) -> float:
        """Busy share of the range, 0..1; for several threads, their mean."""
        return self.busy_ns / max(1, self.span_ns * self.threads)


def totals(lane: DrawnLane, begin: int, end: int) -> RangeTotals:
    """The totals of a lane from `begin` to `end` (nanoseconds); self times add up to the time that it was busy."""
    took: dict[int, int] = {}
    counts: dict[int, int] = {}
    busy = count = 0
    for number, row in enumerate(lane.rows):
        inside = _inside(row, begin, end)
        if not len(inside):
            continue
        starts, ends = np.maximum(row.starts[inside], begin), np.minimum(row.ends[inside], end)
        own = ends - starts
        if row.level == 0:
            busy += int(own.sum())
        below = lane.rows[number + 1] if number + 1 < len(lane.rows) else None
        if below is not None and below.level == row.level + 1:
            own = own - _covered(below, starts, ends)
        count += len(inside)
        labels, which = np.unique(row.label[inside], return_inverse=True)
        for label, seconds, times in zip(
            labels.tolist(), np.bincount(which, weights=own).tolist(), np.bincount(which).tolist(), strict=True
        ):
            took[label] = took.get(label, 0) + round(seconds)
            counts[label] = counts.get(label, 0) + times
    by_name: dict[str, NameTotal] = {}
    for label, time in took.items():
        name = lane.labels[label][0]
        total = by_name.get(name, NameTotal(name, lane.kind_of_label[label], 0, 0))
        by_name[name] = NameTotal(name, total.kind, total.count + counts[label], total.self_ns + time)
    threads = sum(row.level == 0 for row in lane.rows)
    names = tuple(sorted(by_name.values(), key=lambda total: -total.self_ns))
    return RangeTotals(end - begin, busy, threads, count, names)


def _inside(row: LaneRow, begin: int, end: int) -> Ints:
    """The intervals of a row that are at least partly in a range. They do not overlap, so their ends ascend as well."""
    first = int(np.searchsorted(row.ends, begin, "right"))
    last = int(np.searchsorted(row.starts, end, "left"))
    return np.arange(first, max(first, last))


def _covered(row: LaneRow, starts: Ints, ends: Ints) -> Ints:
    """How much of each window the intervals of a row cover, in nanoseconds."""
    before = np.concatenate([[0], np.cumsum(row.ends - row.starts)])

    def until(times: Ints) -> Ints:
        begun = np.searchsorted(row.starts, times, "right")
        last = np.maximum(begun - 1, 0)
        covered: Ints = np.where(
            begun > 0, before[last] + np.clip(times - row.starts[last], 0, row.ends[last] - row.starts[last]), 0
        )
        return covered

    return until(ends) - until(starts)
