"""Search for intervals of a timeline: by name, by equal op, and from a launch on the host to its kernel and back.

An expression is matched against the labels, which are few, not against the intervals. A launch and its kernel share a
correlation id.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxprof.analysis.lanes.kinds import COUNTED_LANES
from jaxprof.analysis.lanes.rows import Busy, Ints, LaneGroup, Lanes

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Matches:
    """All intervals that match by their own name or that of their op, in order of their start."""

    starts: Ints
    ends: Ints
    lane: Ints
    row: Ints
    index: Ints
    busy: dict[tuple[int, int], Busy]
    """Matches of each row, and of each lane's summary as row -1."""

    def __len__(self) -> int:
        return len(self.starts)

    def following(self, time: int, step: int) -> int | None:
        """Return the index of the match after or before `time`, wrapping at the ends; None without matches."""
        if not len(self):
            return None
        if step > 0:
            return int(np.searchsorted(self.starts, time, "right")) % len(self)
        return (int(np.searchsorted(self.starts, time, "left")) - 1) % len(self)

    @property
    def median_ns(self) -> float:
        """Median length in nanoseconds. Raises ValueError without matches."""
        if not len(self):
            raise ValueError("no matches have no median")
        return float(np.median(self.ends - self.starts))

    def place_of(self, start: int, lane: int) -> int:
        """Return the index of the match that begins at `start`, the one in `lane` if several do."""
        first, last = (int(np.searchsorted(self.starts, start, side)) for side in ("left", "right"))
        return next((at for at in range(first, last) if self.lane[at] == lane), first)


def search(lanes: Lanes, pattern: re.Pattern[str]) -> Matches:
    """Return the matches of an expression in all lanes."""
    return _matches_with(
        lanes, lambda lane: np.array([_is_match(lanes, name, op, pattern) for name, op in lane.labels], np.bool_)
    )


def same(lanes: Lanes, of: LaneGroup, label: int) -> Matches:
    """Return the intervals of the same device, or host, with the same op as a label; without an op, with the same
    name."""
    name, op = of.labels[label]

    def wanted(lane: LaneGroup) -> Bools:
        if lane.device != of.device or (lane.kind in COUNTED_LANES) != (of.kind in COUNTED_LANES):
            return np.zeros(len(lane.labels), np.bool_)
        return np.array([(op is None or op == other) and (op is not None or name == named)
                         for named, other in lane.labels], np.bool_)  # fmt: skip

    return _matches_with(lanes, wanted)


def _matches_with(lanes: Lanes, wanted_of: Callable[[LaneGroup], Bools]) -> Matches:
    """Return the intervals that have a wanted label of their lane."""
    starts, ends, places, busy = [], [], [], {}
    for at, lane in enumerate(lanes.lanes):
        wanted = wanted_of(lane)
        if not wanted.any():
            continue
        for number, row in enumerate(lane.rows):
            hits = np.flatnonzero(wanted[row.label])
            if len(hits):
                starts.append(row.starts[hits])
                ends.append(row.ends[hits])
                places.append(np.stack([np.full(len(hits), at), np.full(len(hits), number), hits]))
                busy[at, number] = Busy.of(row.starts[hits], row.ends[hits])
        _summarise(lane, at, wanted, busy)
    if not starts:
        nothing = np.zeros(0, np.int64)
        return Matches(nothing, nothing, nothing, nothing, nothing, {})
    begun, over, place = np.concatenate(starts), np.concatenate(ends), np.concatenate(places, axis=1)
    order = np.argsort(begun, kind="stable")
    return Matches(begun[order], over[order], place[0][order], place[1][order], place[2][order], busy)


def _is_match(lanes: Lanes, name: str, op: int | None, pattern: re.Pattern[str]) -> bool:
    return bool(pattern.search(name) or (op is not None and pattern.search(lanes.ops[op].name)))


def _summarise(lane: LaneGroup, at: int, wanted: np.ndarray, busy: dict[tuple[int, int], Busy]) -> None:
    """Add the matches of a collapsed lane, which come from rows of any depth."""
    starts = np.concatenate([row.starts[wanted[row.label]] for row in lane.rows])
    ends = np.concatenate([row.ends[wanted[row.label]] for row in lane.rows])
    busy[at, -1] = Busy.of(starts, ends)


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link: an interval in a row of a lane."""

    lane: int
    row: int
    index: int


@dataclass(frozen=True, slots=True)
class Links:
    """The ends of all links, in order of their correlation id; all arrays have the same length."""

    correlation: Ints
    lane: Ints
    row: Ints
    index: Ints
    on_device: Ints

    @classmethod
    def of(cls, lanes: Lanes) -> Links:
        """Return the links of all rows."""
        parts = []
        for at, lane in enumerate(lanes.lanes):
            for number, row in enumerate(lane.rows):
                if row.correlation is None:
                    continue
                linked = np.flatnonzero(row.correlation >= 0)
                count = len(linked)
                parts.append(
                    (row.correlation[linked], np.full(count, at), np.full(count, number), linked,
                     np.full(count, int(lane.on_device)))
                )  # fmt: skip
        nothing = np.zeros(0, np.int64)
        columns = [np.concatenate([nothing, *column]) for column in zip(*parts, strict=True)] or [nothing] * 5
        order = np.argsort(columns[0], kind="stable")
        return cls(*(column[order] for column in columns))

    def other_end(self, lanes: Lanes, end: End) -> End | None:
        """Return the first kernel of a launch, or the launch of a kernel; None if there is none."""
        row = lanes.lanes[end.lane].rows[end.row]
        if row.correlation is None or row.correlation[end.index] < 0:
            return None
        wanted = row.correlation[end.index]
        low, high = (
            np.searchsorted(self.correlation, wanted, "left"),
            np.searchsorted(self.correlation, wanted, "right"),
        )
        here = int(lanes.lanes[end.lane].on_device)
        others = [n for n in range(int(low), int(high)) if self.on_device[n] != here]
        if not others:
            return None
        starts = [int(self._starts(lanes, n)) for n in others]
        first = others[int(np.argmin(starts))]
        return End(int(self.lane[first]), int(self.row[first]), int(self.index[first]))

    def _starts(self, lanes: Lanes, number: int) -> int:
        return int(lanes.lanes[int(self.lane[number])].rows[int(self.row[number])].starts[int(self.index[number])])
