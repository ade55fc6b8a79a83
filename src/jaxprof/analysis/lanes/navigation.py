"""Ways through the lanes of a timeline: jumps in a row, and a search.

Jumps go to a row's longest idle times; time before its first interval and after its last is not
idle. A search is by the name of an interval or of its op, or from a launch on the host to its kernel and back, which
share a correlation id; an expression is matched against the labels, which are few, not against the intervals.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from jaxprof.analysis.lanes.rows import Busy, Ints, LaneGroup, LaneRow, Lanes
from jaxprof.trace.intervals import Coverage


@dataclass(frozen=True, slots=True)
class Stretch:
    """An idle time of a row, between two intervals."""

    begin: int
    end: int


def idle_stretches(row: LaneRow) -> tuple[Ints, Ints]:
    """Return the begins and ends of the idle times between the first and the last interval."""
    ran = Coverage.of(row.starts, row.ends)
    return ran.ends[:-1], ran.starts[1:]


def idle_around(row: LaneRow, time: int) -> tuple[int | None, int | None]:
    """Return where the idle time at `time` begins and ends; None before the first interval, or after the last one."""
    after = int(np.searchsorted(row.starts, time, "right"))
    begin = int(row.ends[:after].max()) if after else None
    return begin, int(row.starts[after]) if after < len(row.starts) else None


def longest_idle(row: LaneRow, before: Stretch | None = None) -> Stretch | None:
    """Return the longest idle time; with `before`, the one that follows it in order of length. Of equal ones, the
    earlier comes first; after the shortest comes the longest again.

    One pass for each key press: sorting a million idle times takes twenty times as long.
    """
    begins, ends = idle_stretches(row)
    if not len(begins):
        return None
    sizes = ends - begins
    remaining = np.ones(len(begins), np.bool_)
    if before is not None and (begins == before.begin).any():
        size = before.end - before.begin
        remaining = (sizes < size) | ((sizes == size) & (begins > before.begin))
    candidates = np.flatnonzero(remaining) if remaining.any() else np.arange(len(begins))
    at = int(candidates[sizes[candidates].argmax()])
    return Stretch(int(begins[at]), int(ends[at]))


@dataclass(frozen=True, slots=True)
class Matches:
    """All intervals that match by their own name or that of their op, in order of their start."""

    starts: Ints
    ends: Ints
    lane: Ints
    row: Ints
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


def search(lanes: Lanes, pattern: re.Pattern[str]) -> Matches:
    """Return the matches of an expression in all lanes."""
    starts, ends, places, busy = [], [], [], {}
    for at, lane in enumerate(lanes.lanes):
        wanted = np.array([_is_match(lanes, name, op, pattern) for name, op in lane.labels], np.bool_)
        if not wanted.any():
            continue
        for number, row in enumerate(lane.rows):
            hits = np.flatnonzero(wanted[row.label])
            if len(hits):
                starts.append(row.starts[hits])
                ends.append(row.ends[hits])
                places.append(np.stack([np.full(len(hits), at), np.full(len(hits), number)]))
                busy[at, number] = Busy.of(row.starts[hits], row.ends[hits])
        _summarise(lane, at, wanted, busy)
    if not starts:
        nothing = np.zeros(0, np.int64)
        return Matches(nothing, nothing, nothing, nothing, {})
    begun, over, place = np.concatenate(starts), np.concatenate(ends), np.concatenate(places, axis=1)
    order = np.argsort(begun, kind="stable")
    return Matches(begun[order], over[order], place[0][order], place[1][order], busy)


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


def other_end(lanes: Lanes, end: End) -> End | None:
    """Return the first kernel of a launch, or the launch of a kernel; None if there is none. One pass over the rows of
    the other side."""
    here = lanes.lanes[end.lane]
    correlation = here.rows[end.row].correlation
    if correlation is None or correlation[end.index] < 0:
        return None
    others = [
        (int(row.starts[index]), End(at, number, index))
        for at, lane in enumerate(lanes.lanes)
        if lane.on_device != here.on_device
        for number, row in enumerate(lane.rows)
        if row.correlation is not None
        for index in np.flatnonzero(row.correlation == correlation[end.index]).tolist()
    ]
    return min(others, key=itemgetter(0))[1] if others else None
