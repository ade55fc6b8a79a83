"""Events of a line, decoded into columns on request: one NumPy step reads the same field of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jaxprof.hlo.read.wire import DELIMITED, VARINT, Blob, fields, signed, varint
from jaxprof.trace.xspace import (
    PADDING,
    STAT_BYTES,
    STAT_ID,
    STAT_REFERENCE,
    STAT_STRING,
    Plane,
    Positions,
    varints,
)

EVENT_METADATA_ID, EVENT_OFFSET_PS, EVENT_DURATION_PS, EVENT_STATS = 1, 2, 3, 4
STAT_TAG = (EVENT_STATS << 3) | DELIMITED
TEXT_TAG = (STAT_STRING << 3) | DELIMITED
BYTES_TAG = (STAT_BYTES << 3) | DELIMITED
_BLOCK = 1 << 14
"""Events that are decoded at once: temporary arrays then stay in the cache, and in memory that is already mapped."""
_MOST_STATS = 64
"""Most statistics that are read of one event: more than any profiler writes."""


@dataclass(frozen=True, slots=True)
class StatColumn:
    """One statistic of every event of a line: absent, a number, or a reference into the plane's names."""

    present: NDArray[np.bool_]
    number: NDArray[np.int64]
    """Integers as they are; references as the id of a name; text as its position in the file (`text_end` is its
    end)."""
    text_end: NDArray[np.int64]
    """End of a text in the file; 0 if the value is not such a text."""
    is_reference: NDArray[np.bool_]
    blob: Blob
    """The file, which holds the texts."""


class Events:
    """Some events of a line as columns, in file order."""

    def __init__(self, plane: Plane, starts: Positions) -> None:
        """Take the events that begin at `starts` in the file."""
        self.plane = plane
        self._data = plane.space.data
        self._starts = starts

    def __len__(self) -> int:
        return len(self._starts)

    @cached_property
    def _columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Positions, Positions]:
        """Metadata ids, offsets and durations in ps, the start of each event's statistics, and its end.

        The profiler writes the three numbers in order and leaves a zero out; events in any other order are read one by
        one.
        """
        count = len(self._starts)
        columns = tuple(np.zeros(count, np.int64) for _ in range(5))
        for begin in range(0, count, _BLOCK):
            block = slice(begin, begin + _BLOCK)
            for column, values in zip(columns, self._numbers(self._starts[block]), strict=True):
                column[block] = values
        return columns[0], columns[1], columns[2], columns[3], columns[4]

    def _numbers(self, starts: Positions) -> tuple[Positions, ...]:
        """Return the five columns of `_columns` for the events that begin at `starts`."""
        data = self._data
        lengths, at = varints(data, starts + 1)
        end = _behind(at, lengths, np.full(len(at), len(data) - PADDING))
        columns = []
        for number in (EVENT_METADATA_ID, EVENT_OFFSET_PS, EVENT_DURATION_PS):
            there = (data[at] == (number << 3)) & (at < end)
            if there.all():
                read, at = varints(data, at + 1)
                values = read.view(np.int64)
            else:
                values = np.zeros(len(at), np.int64)
                read, after = varints(data, at[there] + 1)
                values[there] = read.view(np.int64)
                at = at.copy()
                at[there] = after
            columns.append(values)
        odd = np.flatnonzero((at < end) & (data[at] != STAT_TAG))
        for index in odd.tolist():
            self._read_alone(int(starts[index]), index, columns, at, end)
        return (*columns, at, end)

    def _read_alone(self, start: int, index: int, columns: list[Positions], at: Positions, end: Positions) -> None:
        """Read one event whose fields come in another order, or include unknown ones."""
        blob = self.plane.space.blob
        _, begin = varint(blob, start + 1)
        first_stat = int(end[index])
        for number, kind, content, after in fields(blob, begin, int(end[index])):
            if kind == VARINT and number in (EVENT_METADATA_ID, EVENT_OFFSET_PS, EVENT_DURATION_PS):
                columns[number - 1][index] = signed(varint(blob, content)[0])
            elif number == EVENT_STATS:
                first_stat = min(first_stat, begin)
            begin = after
        at[index] = first_stat

    @property
    def metadata_ids(self) -> NDArray[np.int64]:
        """Metadata id of each event, in file order."""
        return self._columns[0]

    @property
    def starts_ps(self) -> NDArray[np.int64]:
        """Start of each event in picoseconds on the line's clock, from the line's `timestamp_ns`."""
        return self._columns[1]

    @property
    def durations_ps(self) -> NDArray[np.int64]:
        """Duration of each event, in picoseconds."""
        return self._columns[2]

    def stats(self, wanted: Mapping[int, str]) -> dict[str, StatColumn]:
        """Return the statistics with these metadata ids (id → name), one column each over all of these events."""
        _, _, _, position, end = self._columns
        data = self._data
        count = len(self._starts)
        columns = {
            name: StatColumn(
                np.zeros(count, np.bool_),
                np.zeros(count, np.int64),
                np.zeros(count, np.int64),
                np.zeros(count, np.bool_),
                self.plane.space.blob,
            )
            for name in wanted.values()
        }
        if not wanted:
            return columns
        rows = np.flatnonzero((position < end) & (data[position] == STAT_TAG))
        for begin in range(0, len(rows), _BLOCK):
            block = rows[begin : begin + _BLOCK]
            self._read_stats(columns, wanted, block, position[block], end[block])
        return columns

    def _read_stats(
        self,
        columns: dict[str, StatColumn],
        wanted: Mapping[int, str],
        rows: NDArray[np.int64],
        at: Positions,
        until: Positions,
    ) -> None:
        """Read the statistics of these events, between `at` and `until`, into the columns."""
        data = self._data
        for number in range(1, _MOST_STATS + 1):
            if not len(rows):
                break
            lengths, inside = varints(data, at + 1)
            after = _behind(inside, lengths, until)
            self._one_stat(columns, wanted, rows, inside, after)
            more = (after < until) & (data[after] == STAT_TAG)
            if number >= len(wanted):  # an event with all wanted statistics is finished
                more &= np.add.reduce([column.present[rows] for column in columns.values()], dtype=np.int8) < len(
                    wanted
                )
            if not more.all():
                rows, after, until = rows[more], after[more], until[more]
            at = after

    def _one_stat(
        self,
        columns: dict[str, StatColumn],
        wanted: Mapping[int, str],
        rows: NDArray[np.int64],
        inside: Positions,
        after: Positions,
    ) -> None:
        """Read one statistic of each of `rows` (bounds `inside`, `after`) into its column, if it is wanted."""
        data = self._data
        ids, value_at = varints(data, inside + 1)
        sound = (data[inside] == STAT_ID << 3) & (value_at < after)
        alike = bool((ids == ids[0]).all() and sound.all())  # the usual case: statistics come in one order
        for wanted_id in [int(ids[0])] if alike else np.unique(ids[sound]).tolist():
            if wanted_id not in wanted:
                continue
            column, at, row, end = columns[wanted[wanted_id]], value_at, rows, after
            if not alike:
                chosen = np.flatnonzero(sound & (ids == np.uint64(wanted_id)))
                at, row, end = value_at[chosen], rows[chosen], after[chosen]
            tags = data[at]
            values, content = varints(data, at + 1)
            column.present[row] = True
            column.number[row] = values.view(np.int64)
            column.is_reference[row] = tags == (STAT_REFERENCE << 3)
            textual = np.flatnonzero((tags == TEXT_TAG) | (tags == BYTES_TAG))
            if len(textual):
                column.number[row[textual]] = content[textual]
                column.text_end[row[textual]] = _behind(content[textual], values[textual], end[textual])


def _behind(at: Positions, lengths: NDArray[np.uint64], limit: Positions) -> Positions:
    """Return where contents of these lengths end; a damaged length ends with the enclosing message."""
    behind: Positions = at + np.minimum(lengths, np.maximum(limit - at, 0).astype(np.uint64)).astype(np.int64)
    return behind
