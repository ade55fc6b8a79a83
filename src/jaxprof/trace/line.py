"""A row of a plane, and where its events begin; events are decoded on request, all at once or only some of them.

A thread of the host may have millions of events that name no HLO op, and most views need only those that do. A search
of the bytes finds the events with a certain statistic, without a walk over the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jaxprof.base.limits import EVENTS
from jaxprof.hlo.text.wire import DELIMITED, VARINT, Blob, TruncatedError, fields, signed, varint
from jaxprof.trace.events import BYTES_TAG, STAT_TAG, TEXT_TAG, Events
from jaxprof.trace.model import Flags
from jaxprof.trace.xspace import (
    STAT_DOUBLE,
    STAT_ID,
    STAT_INT64,
    STAT_REFERENCE,
    STAT_UINT64,
    Bytes,
    Plane,
    Positions,
    varints,
)

LINE_ID, LINE_NAME, LINE_TIMESTAMP_NS, LINE_EVENTS, LINE_DISPLAY_NAME = 1, 2, 3, 4, 11
_EVENT_TAG = (LINE_EVENTS << 3) | DELIMITED
_PIECE = 1 << 18
"""Bytes that are searched at once."""
_VALUE_TAGS = np.zeros(256, np.bool_)
"""Tags with which the value of a statistic may begin."""
_VALUE_TAGS[[STAT_DOUBLE << 3 | 1, STAT_UINT64 << 3, STAT_INT64 << 3, TEXT_TAG, BYTES_TAG, STAT_REFERENCE << 3]] = True
_CHUNK = 1 << 13
"""Bytes between the starts of two walks, unless the line needs more than `_MOST_WALKS`."""
_MOST_WALKS = 1 << 15
"""Most walks. Their numbers fit into 16 bits, and 16-bit numbers are sorted by radix."""
_WINDOW = 256
"""Number of bytes in which a tag to begin at is searched."""
_HOPS = 24
"""Links after which a walk that began inside an event has reached whole events: more than an event has statistics."""
_FEWEST = 4
"""Fewest walks that are worth a NumPy step."""


class PlaneLine:
    """One row of a plane: a thread of the host, a stream of a device, or a derived row."""

    def __init__(self, plane: Plane, begin: int, end: int) -> None:
        self.plane = plane
        self._data = plane.space.data
        self.id = 0
        self.name = ""
        self.display_name = ""
        self.timestamp_ns = 0
        self.damage = ""
        """Damage that was found; the events before it are kept. Empty if there is none."""
        self._bounds = (begin, end)
        self._begin = self._head(begin, end)
        """Offset of the first event; that of the line's end if it has none."""
        if self.name and self.timestamp_ns:
            return
        _ = self._starts  # the line's name may come after its events

    def _head(self, begin: int, end: int) -> int:
        """Read the fields before the first event, and return where the events begin."""
        data, at = self._data, begin
        while at < end and data[at] != _EVENT_TAG:
            at = self._field(at, end)
        return at

    def _field(self, at: int, end: int) -> int:
        """Read one of the line's own fields, and return its end. Raises TruncatedError."""
        blob = self.plane.space.blob
        number, kind, content, after = next(fields(blob, at, end))
        if kind == VARINT:
            value = signed(varint(blob, content)[0])
            if number == LINE_ID:
                self.id = value
            elif number == LINE_TIMESTAMP_NS:
                self.timestamp_ns = value
        elif kind == DELIMITED and number in (LINE_NAME, LINE_DISPLAY_NAME):
            text = self.plane.space.text(content, after)
            if number == LINE_NAME:
                self.name = text
            else:
                self.display_name = text
        return after

    @cached_property
    def _starts(self) -> Positions:
        """Offset of each event in the file. Events are skipped here; their bytes are read on request."""
        data, blob, end = self._data, self.plane.space.blob, self._bounds[1]
        starts: list[Positions] = [np.zeros(0, np.int64)]
        at = self._begin
        if at >= end:
            return starts[0]
        walks = walks_in(data, at, end)
        try:
            while at < end:
                if data[at] != _EVENT_TAG:
                    at = self._field(at, end)
                    continue
                pieces, at = follow(blob, at, end, walks)
                starts += pieces
                if at < end and data[at] == _EVENT_TAG:
                    raise TruncatedError(f"an event is longer than its line, which ends at byte {end}")
        except (TruncatedError, IndexError) as error:
            self.damage = str(error)
        event_starts = np.concatenate(starts)
        self.plane.space.count(EVENTS, len(event_starts))
        return event_starts

    @property
    def has_events(self) -> bool:
        """Whether there is any event; known without a walk over them."""
        return self._begin < self._bounds[1]

    def __len__(self) -> int:
        return len(self._starts)

    @cached_property
    def events(self) -> Events:
        """All events."""
        return Events(self.plane, self._starts)

    def some(self, rows: Positions) -> Events:
        """Return some events, by their numbers in ascending order."""
        return Events(self.plane, self._starts[rows])

    def rows_with(self, *names: str) -> Positions:
        """Return the numbers of the events that may have one of these statistics: all that have one, and a few in which
        the same bytes mean something else."""
        begin, end, wanted = self._begin, self._bounds[1], self.plane.stat_ids(*names)
        is_wanted = np.zeros(max(wanted, default=-1) + 2, np.bool_)
        is_wanted[list(wanted)] = True
        pieces = range(begin, end, _PIECE) if wanted else ()
        per_piece = [self._stats_in(piece, min(piece + _PIECE, end), is_wanted) for piece in pieces]
        places = np.concatenate([np.zeros(0, np.int64), *per_piece])
        if not len(places):
            return places
        rows = np.searchsorted(self._starts, places, side="right") - 1
        return rows[(rows >= 0) & (np.diff(rows, prepend=-1) > 0)]

    def _stats_in(self, begin: int, end: int, is_wanted: Flags) -> Positions:
        """Return the positions at which a wanted statistic may begin: TAG LENGTH, then 08 ID TAG and the value."""
        data = self._data
        at = begin + np.flatnonzero(data[begin:end] == STAT_ID << 3)
        at = at[is_wanted[np.minimum(data[at + 1], len(is_wanted) - 1)]] if len(is_wanted) <= 129 else at
        at = at[(data[at - 2] == STAT_TAG) | (data[at - 3] == STAT_TAG)]
        ids, behind = varints(data, at + 1)
        there = is_wanted[np.minimum(ids, len(is_wanted) - 1).astype(np.int64)] & _VALUE_TAGS[data[behind]]
        at, behind = at[there], behind[there]
        whole = data[behind] & 7 != VARINT
        stops = varints(data, behind + 1)[1]
        # A number ends where the statistic does if the statistic's length is one byte, as it is for numbers.
        fits: Positions = at[whole | (at + data[at - 1] == stops)]
        return fits


def readable_lines(plane: Plane) -> tuple[list[PlaneLine], list[str]]:
    """Return the plane's lines, with events not yet decoded, and what is wrong with the lines that are lost."""
    readable, problems = [], []
    for begin, end in plane.lines:
        try:
            readable.append(PlaneLine(plane, begin, end))
        except (TruncatedError, IndexError) as error:
            problems.append(str(error))
    return readable, problems


Walks = Mapping[int, tuple[Positions, int]]
"""Events that follow each other in a line, and where the last one ends, by where the first one begins."""


def follow(blob: Blob, at: int, end: int, walks: Walks) -> tuple[list[Positions], int]:
    """Return the starts of the events that follow each other from `at` on, in pieces, and where something else begins.

    An event begins at that place (its tag is there) only if the event reaches past the end. A walk counts only if the
    previous event ends exactly where it begins, and what no walk covers is followed event by event.
    """
    pieces: list[Positions] = []
    single: list[int] = []
    while at < end and blob[at] == _EVENT_TAG:
        walk = walks.get(at)
        if walk is not None and len(walk[0]):
            pieces += [np.array(single, np.int64), walk[0]]
            single, at = [], walk[1]
            continue
        try:
            length, after = varint(blob, at + 1)
        except TruncatedError:
            break
        if after + length > end:
            break
        single.append(at)
        at = after + length
    return [*pieces, np.array(single, np.int64)], at


def walks_in(data: Bytes, begin: int, end: int) -> Walks:
    """Walk over a long line from many places at once, one NumPy step for all of them.

    Events can only be followed one by one, and half a million of them take a quarter of a second in Python. Starting
    points are found by trying: an event's tag is also that of a statistic in an event, so a walk that begins at any
    such tag reaches the event's end, and there the next event.
    """
    if end - begin <= _FEWEST * _CHUNK:
        return {}
    chunk = max(_CHUNK, (end - begin) // _MOST_WALKS + 1)
    first = np.arange(begin + chunk, end - chunk, chunk)
    tags = data[first[:, None] + np.arange(_WINDOW)] == _EVENT_TAG
    starts = (first + tags.argmax(axis=1))[tags.any(axis=1)]
    for _ in range(_HOPS):
        starts, ahead = _next(data, starts, end)
        starts = starts[ahead]
    starts = np.unique(starts)
    if len(starts) < _FEWEST:
        return {}
    stops = np.concatenate([starts[1:], [end]])
    at, lanes = starts.copy(), np.arange(len(starts))
    walked: list[tuple[NDArray[np.uint16], Positions]] = []
    ends = starts.copy()
    while len(lanes) >= _FEWEST:
        here = at[lanes]
        after, ahead = _next(data, here, end)
        walked.append((lanes[ahead].astype(np.uint16), here[ahead]))
        at[lanes[ahead]] = after[ahead]
        ends[lanes] = at[lanes]
        lanes = lanes[ahead & (at[lanes] < stops[lanes])]
    lane_of = np.concatenate([lane for lane, _ in walked])
    places = np.concatenate([place for _, place in walked])
    places = places[np.argsort(lane_of, kind="stable")]
    borders = np.cumsum(np.bincount(lane_of, minlength=len(starts)))[:-1]
    return dict(zip(starts.tolist(), zip(np.split(places, borders), ends.tolist(), strict=True), strict=True))


def _next(data: Bytes, at: Positions, end: int) -> tuple[Positions, Flags]:
    """Return the next event from each position, and whether the event is ordinary: the tag, then a length of one or two
    bytes, within the line."""
    at = np.minimum(at, end)
    low, high = data[at + 1].astype(np.int64), data[at + 2].astype(np.int64)
    short = low < 0x80
    after = at + np.where(short, low + 2, (low & 0x7F) + (high << 7) + 3)
    ahead = (at < end) & (data[at] == _EVENT_TAG) & (short | (high < 0x80)) & (after <= end)
    return np.where(ahead, after, at), ahead
