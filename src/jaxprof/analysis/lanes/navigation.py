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

from jaxprof.analysis.lanes.rows import Busy, Ints, LaneRow, Lanes
from jaxprof.trace.intervals import Coverage, joined

Stretch = tuple[int, int]
"""Begin and end of an idle time of a row, between two intervals."""


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
    ran = Coverage.of(row.starts, row.ends)
    begins, ends = ran.ends[:-1], ran.starts[1:]
    if not len(begins):
        return None
    sizes = ends - begins
    remaining = np.ones(len(begins), np.bool_)
    if before is not None and (begins == before[0]).any():
        size = before[1] - before[0]
        remaining = (sizes < size) | ((sizes == size) & (begins > before[0]))
    candidates = np.flatnonzero(remaining) if remaining.any() else np.arange(len(begins))
    at = int(candidates[sizes[candidates].argmax()])
    return int(begins[at]), int(ends[at])


@dataclass(frozen=True, slots=True)
class End:
    """An interval in a row of a lane: a match of a search, or one end of a link."""

    lane: int
    row: int
    index: int


@dataclass(frozen=True, slots=True)
class Matches:
    """All intervals that match by their own name or that of their op, in order of their start."""

    starts: Ints
    ends: Ints
    places: Ints
    """Where each match is: the three numbers of its `End`."""
    busy: dict[tuple[int, int], Busy]
    """Matches of each row, and of each lane's summary as row -1."""

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def median_ns(self) -> float:
        """Median length in nanoseconds; NaN without matches."""
        return float(np.median(self.ends - self.starts))

    def end(self, number: int) -> End:
        """Return where a match is."""
        return End(*self.places[number].tolist())


def search(lanes: Lanes, pattern: re.Pattern[str]) -> Matches:
    """Return the matches of an expression in all lanes."""
    found: list[tuple[Ints, Ints, Ints]] = []
    busy: dict[tuple[int, int], Busy] = {}
    for at, lane in enumerate(lanes.lanes):
        wanted = np.array([_is_match(lanes, *label, pattern) for label in lane.labels], np.bool_)
        hits = [np.flatnonzero(wanted[row.label]) for row in lane.rows]
        of_lane = [
            (row.starts[hit], row.ends[hit], np.stack([np.full_like(hit, at), np.full_like(hit, number), hit], 1))
            for number, (row, hit) in enumerate(zip(lane.rows, hits, strict=True))
        ]
        busy |= {(at, number): Busy.of(*row[:2]) for number, row in enumerate(of_lane) if len(row[0])}
        if wanted.any():
            busy[at, -1] = Busy.of(*(joined(row[side] for row in of_lane) for side in (0, 1)))
        found += of_lane
    starts, ends = (joined(row[side] for row in found) for side in (0, 1))
    order = np.argsort(starts, kind="stable")
    places = np.concatenate([np.zeros((0, 3), np.int64), *(row[2] for row in found)])
    return Matches(starts[order], ends[order], places[order], busy)


def _is_match(lanes: Lanes, name: str, op: int | None, pattern: re.Pattern[str]) -> bool:
    return bool(pattern.search(name) or (op is not None and pattern.search(lanes.ops[op].name)))


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
