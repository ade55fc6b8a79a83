"""Where the events of a line begin: a chain in which each one's length says where the next one is.

A chain can only be followed link by link, and half a million links take a quarter of a second in Python. So the line is
walked from many places at once, a NumPy step for all of them. Where a walk may begin is found by trying: the tag of an
event is also that of a statistic in an event, so that a walk which begins at any such tag comes to the event's end, and
there to the next event. Nothing is believed: a walk counts only where the one before it ends at its very begin, and
what no walk covers is followed link by link.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from jaxprof.trace.varints import Bytes, Positions, TruncatedError, varint

_CHUNK: Final = 1 << 15
"""Bytes between two walks."""
_WINDOW: Final = 256
"""Bytes in which a tag to begin at is looked for."""
_HOPS: Final = 24
"""Links after which a walk that began inside of an event is among events: more than an event has statistics."""
_FEWEST: Final = 4
"""Walks that are worth a NumPy step."""


class Chain:
    """The events in `data[begin:end]`, each a field of one `tag`; other fields may be between them."""

    def __init__(self, data: Bytes, blob: bytes | bytearray, begin: int, end: int, tag: int) -> None:
        """`blob` is the same data, in a form of which single bytes are read fast."""
        self._data, self._blob, self._end, self._tag = data, blob, end, tag
        self._walks: dict[int, tuple[Positions, int]] = {}
        """By where it begins: the events of a walk, and where it ended."""
        if end - begin > _FEWEST * _CHUNK:
            self._walk_all(begin)

    def run(self, at: int) -> tuple[list[Positions], int]:
        """The begins of the events that follow each other from `at` on, in pieces, and where something else comes.

        Raises TruncatedError where an event reaches over the end.
        """
        blob, end, tag = self._blob, self._end, self._tag
        pieces: list[Positions] = []
        single: list[int] = []
        while at < end and blob[at] == tag:
            walk = self._walks.get(at)
            if walk is not None and len(walk[0]):
                pieces += [np.array(single, np.int64), walk[0]]
                single, at = [], walk[1]
                continue
            single.append(at)
            length = blob[at + 1]
            if length < 0x80:
                at += 2 + length
            else:
                length, at = varint(self._data, at + 1)
                at += length
        if at > end:
            raise TruncatedError(f"an event is longer than its line, which ends at byte {end}")
        return [*pieces, np.array(single, np.int64)], at

    def _walk_all(self, begin: int) -> None:
        first = np.arange(begin + _CHUNK, self._end - _CHUNK, _CHUNK)
        tags = self._data[first[:, None] + np.arange(_WINDOW)] == self._tag
        starts = (first + tags.argmax(axis=1))[tags.any(axis=1)]
        for _ in range(_HOPS):
            starts, ahead = self._next(starts)
            starts = starts[ahead]
        starts = np.unique(starts)
        if len(starts) < _FEWEST:
            return
        stops = np.concatenate([starts[1:], [self._end]])
        at, lanes = starts.copy(), np.arange(len(starts))
        found: list[tuple[NDArray[np.int64], Positions]] = []
        ends = starts.copy()
        while len(lanes) >= _FEWEST:
            here = at[lanes]
            after, ahead = self._next(here)
            found.append((lanes[ahead], here[ahead]))
            at[lanes[ahead]] = after[ahead]
            ends[lanes] = at[lanes]
            lanes = lanes[ahead & (at[lanes] < stops[lanes])]
        lane_of = np.concatenate([lane for lane, _ in found])
        places = np.concatenate([place for _, place in found])
        order = np.argsort(lane_of, kind="stable")
        borders = np.searchsorted(lane_of[order], np.arange(len(starts) + 1))
        places = places[order]
        for lane, start in enumerate(starts.tolist()):
            self._walks[start] = (places[borders[lane] : borders[lane + 1]], int(ends[lane]))

    def _next(self, at: Positions) -> tuple[Positions, NDArray[np.bool_]]:
        """One link further from each place, and where there was one of the ordinary kind: the tag, a length of one or
        two bytes, within the line."""
        data = self._data
        at = np.minimum(at, self._end)
        low, high = data[at + 1].astype(np.int64), data[at + 2].astype(np.int64)
        short = low < 0x80
        after = at + np.where(short, low + 2, (low & 0x7F) + (high << 7) + 3)
        ahead = (at < self._end) & (data[at] == self._tag) & (short | (high < 0x80)) & (after <= self._end)
        return np.where(ahead, after, at), ahead
