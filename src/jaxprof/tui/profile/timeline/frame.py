"""A window of a timeline: a row column by column, and its busy share.

The cost of a row grows with the columns and the logarithm of the row. A column's height is the share of its time in
which something ran; its kind is the one that took most of that time. Intervals that are wide enough carry their name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxprof.analysis.lanes.rows import Busy, Ints, LaneGroup, LaneRow
from jaxprof.tui.axis_window import AxisWindow

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


def edges(window: AxisWindow, width: int) -> Ints:
    """The borders of `width` columns."""
    return window.start + (np.arange(width + 1, dtype=np.int64) * window.span) // width


def columns_of(lane: LaneGroup, row: LaneRow, window: AxisWindow, width: int, hits: Busy | None = None) -> Columns:
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


def _named(lane: LaneGroup, row: LaneRow, window: AxisWindow, width: int) -> list[Named]:
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


def busy_share(row: LaneRow, window: AxisWindow) -> float:
    """Share of the window in which the row was busy; for several threads, their mean."""
    borders = np.array([window.start, window.end], np.int64)
    busy = sum(int(np.diff(of_kind.until(borders))[0]) for of_kind in row.busy.values())
    return busy / max(1, window.span * row.capacity)
