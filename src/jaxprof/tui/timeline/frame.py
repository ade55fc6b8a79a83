"""One row of a timeline in a window, column by column. The cost grows with the columns and the logarithm of the row.

A column's height is the share of its time in which something ran; its kind is the one that took most of it. Intervals
that are wide enough have their name written on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxprof.tui.timeline.lanes import Busy, Ints, Lane, Row
from jaxprof.tui.timeline.window import Window

NAMED_COLUMNS = 4
"""An interval of fewer columns does not have its name written on it."""
_NOTHING = -1


@dataclass(frozen=True, slots=True)
class Named:
    """An interval that is wide enough for its name: columns `first` to `last`, the last exclusive."""

    first: int
    last: int
    begins: bool
    """Whether its begin is in view."""
    label: int
    kind: int


@dataclass(frozen=True, slots=True)
class Columns:
    """A row in a window."""

    kind: NDArray[np.int64]
    """Index of the kind in each column, -1 where nothing ran."""
    height: NDArray[np.float64]
    """Share of the column that was busy, 0..1."""
    gap: NDArray[np.bool_]
    """Nothing ran here, between the row's first and its last interval."""
    hit: NDArray[np.bool_]
    """Something that was searched for is here."""
    named: Sequence[Named]


def edges(window: Window, width: int) -> Ints:
    """The borders of `width` columns."""
    return window.start + (np.arange(width + 1, dtype=np.int64) * window.span) // width


def columns_of(lane: Lane, row: Row, window: Window, width: int, hits: Busy | None = None) -> Columns:
    """What of `row` is in `window`, in `width` columns."""
    borders = edges(window, width)
    kinds = list(row.busy)
    busy = np.stack([np.diff(row.busy[kind].until(borders)) for kind in kinds]) if kinds else np.zeros((1, width))
    total = busy.sum(axis=0)
    length = np.maximum(np.diff(borders), 1) * row.capacity
    kind = np.where(total > 0, np.array(kinds or [0])[busy.argmax(axis=0)], _NOTHING)
    inside = (borders[1:] > row.starts[0]) & (borders[:-1] < row.ends[-1]) if len(row.starts) else total > 0
    found = np.diff(hits.until(borders)) > 0 if hits is not None else np.zeros(width, np.bool_)
    return Columns(
        kind=kind,
        height=np.minimum(total / length, 1.0),
        gap=(total == 0) & inside,
        hit=found,
        named=_named(lane, row, window, width) if row.capacity == 1 else (),
    )


def _named(lane: Lane, row: Row, window: Window, width: int) -> list[Named]:
    first = max(0, int(np.searchsorted(row.starts, window.start, "right")) - 1)
    last = int(np.searchsorted(row.starts, window.end, "left"))
    starts, ends = row.starts[first:last], row.ends[first:last]
    least = window.span * NAMED_COLUMNS // width
    found = []
    for index in np.flatnonzero(ends - starts >= max(1, least)).tolist():
        start, end = int(starts[index]), int(ends[index])
        begin = max(0, -(-(start - window.start) * width // window.span))
        stop = min(width, window.column_of(end, width))
        if stop - begin >= NAMED_COLUMNS:
            label = int(row.label[first + index])
            found.append(Named(begin, stop, start >= window.start, label, lane.kind_of_label[label]))
    return found


def busy_share(row: Row, window: Window) -> float:
    """Share of the window in which the row was busy; of several threads their mean."""
    borders = np.array([window.start, window.end], np.int64)
    busy = sum(int(np.diff(one.until(borders))[0]) for one in row.busy.values())
    return busy / max(1, window.span * row.capacity)
