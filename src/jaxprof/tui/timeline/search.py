"""Searching a timeline by name. An expression is tried on the labels, of which there are few, not on the intervals."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from jaxprof.tui.timeline.lanes import Busy, Ints, Lane, Lanes, Row


@dataclass(frozen=True, slots=True)
class Found:
    """Every interval whose name, or whose op's name, matches; in order of their start."""

    starts: Ints
    lane: Ints
    row: Ints
    index: Ints
    busy: dict[tuple[int, int], Busy]
    """The matches of each row, and of each lane's summary as row -1."""

    def __len__(self) -> int:
        return len(self.starts)

    def following(self, time: int, step: int) -> int | None:
        """Which match comes after `time`, or before it, going on at the other end; None where there is none."""
        if not len(self):
            return None
        if step > 0:
            return int(np.searchsorted(self.starts, time, "right")) % len(self)
        return (int(np.searchsorted(self.starts, time, "left")) - 1) % len(self)


def search(lanes: Lanes, pattern: re.Pattern[str]) -> Found:
    """The matches of an expression in all lanes."""
    starts, places, busy = [], [], {}
    for at, lane in enumerate(lanes.lanes):
        wanted = np.array([_matches(lanes, name, op, pattern) for name, op in lane.labels], np.bool_)
        if not wanted.any():
            continue
        for number, row in enumerate(lane.rows):
            found = np.flatnonzero(wanted[row.label])
            if len(found):
                starts.append(row.starts[found])
                places.append(np.stack([np.full(len(found), at), np.full(len(found), number), found]))
                busy[at, number] = Busy.of(row.starts[found], row.ends[found])
        _summarise(lane, at, wanted, busy)
    if not starts:
        nothing = np.zeros(0, np.int64)
        return Found(nothing, nothing, nothing, nothing, {})
    begun, place = np.concatenate(starts), np.concatenate(places, axis=1)
    order = np.argsort(begun, kind="stable")
    return Found(begun[order], place[0][order], place[1][order], place[2][order], busy)


def _matches(lanes: Lanes, name: str, op: int | None, pattern: re.Pattern[str]) -> bool:
    return bool(pattern.search(name) or (op is not None and pattern.search(lanes.ops[op].name)))


def _summarise(lane: Lane, at: int, wanted: np.ndarray, busy: dict[tuple[int, int], Busy]) -> None:
    """A closed lane shows matches at any depth."""
    rows: list[Row] = list(lane.rows)
    starts = np.concatenate([row.starts[wanted[row.label]] for row in rows])
    ends = np.concatenate([row.ends[wanted[row.label]] for row in rows])
    busy[at, -1] = Busy.of(starts, ends)
