"""Events of a line, decoded into columns on request: one NumPy step reads the same field of all of them.

Values are integers in any encoding, texts, and the HLO op that each event belongs to: on GPUs and CPUs an event's own
statistics name its op; on TPUs the metadata of its name do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jaxprof.frozen import frozen
from jaxprof.hlo.read.wire import DELIMITED, VARINT, Blob, fields, signed, varint
from jaxprof.trace.intervals import distinct
from jaxprof.trace.model import (
    ABSENT,
    NO_OP,
    PROGRAM_MASK,
    Flags,
    Ints,
    Lane,
    Op,
    OpNumbers,
    TextColumn,
)
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


@frozen
class StatColumn:
    """One statistic of every event of a line: absent, a number, or a reference into the plane's names."""

    present: Flags
    number: Ints
    """Integers as they are; references as the id of a name; text as its position in the file (`text_end` is its
    end)."""
    text_end: Ints
    """End of a text in the file; 0 if the value is not such a text."""
    is_reference: Flags
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
    def _columns(self) -> tuple[Ints, Ints, Ints, Positions, Positions]:
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
    def metadata_ids(self) -> Ints:
        """Metadata id of each event, in file order."""
        return self._columns[0]

    @property
    def starts_ps(self) -> Ints:
        """Start of each event in picoseconds on the line's clock, from the line's `timestamp_ns`."""
        return self._columns[1]

    @property
    def durations_ps(self) -> Ints:
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
        rows: Ints,
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
        rows: Ints,
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


_INTEGER = re.compile(r"-?\d{1,18}")


def _examples(which: Ints) -> Ints:
    """Return one index of each number in `which`, which holds all numbers from 0 on."""
    rows = np.zeros(int(which.max()) + 1 if len(which) else 0, np.int64)
    rows[which] = np.arange(len(which))
    return rows


def _keys(column: StatColumn | None, rows: Ints) -> Ints:
    """Return numbers that are equal if the statistics are equal: references and integers unchanged, texts by their
    hash."""
    if column is None:
        return np.zeros(len(rows), np.int64)
    numbers = column.number[rows].copy()
    textual = np.flatnonzero(column.text_end[rows])
    if len(textual):
        blob = column.blob
        at, end = column.number[rows], column.text_end[rows]
        numbers[textual] = [hash(bytes(blob[at[index] : end[index]])) for index in textual.tolist()]
    return numbers


def text_at(plane: Plane, column: StatColumn | None, row: int) -> str:
    """Return the statistic of one event as text; empty if it has none."""
    if column is None or not column.present[row]:
        return ""
    if column.text_end[row]:
        return plane.space.text(int(column.number[row]), int(column.text_end[row]))
    if column.is_reference[row]:
        return plane.stat_names.get(int(column.number[row]), "")
    return str(int(column.number[row]))


def integers(plane: Plane, column: StatColumn, default: int) -> Ints:
    """Return a column of integers; integers written as text are read too."""
    values = np.where(column.present & (column.text_end == 0) & ~column.is_reference, column.number, default)
    for row in np.flatnonzero(column.present & ((column.text_end > 0) | column.is_reference)).tolist():
        text = text_at(plane, column, row)
        values[row] = int(text) if _INTEGER.fullmatch(text) else default
    return values


def text_column(plane: Plane, column: StatColumn | None) -> TextColumn | None:
    """Return a column of texts; None if no event has one."""
    if column is None or not column.present.any():
        return None
    rows = np.flatnonzero(column.present)
    which = distinct(_keys(column, rows))[1]
    first = _examples(which)
    index = np.full(len(column.present), ABSENT, np.int64)
    index[rows] = which
    return TextColumn([text_at(plane, column, row) for row in rows[first].tolist()], index)


def ops_of_events(plane: Plane, columns: dict[str, StatColumn], lane: Lane, ops: OpNumbers) -> None:
    """Set the ops of a GPU's or CPU's events, which their own statistics name."""
    correlation = columns.get("correlation_id")
    if correlation is not None and correlation.present.any():
        lane.correlation = integers(plane, correlation, ABSENT)
    op, module, program = columns.get("hlo_op"), columns.get("hlo_module"), columns.get("program_id")
    if op is None or not op.present.any():
        return
    if (execution := columns.get("run_id")) is not None:
        lane.execution = integers(plane, execution, 0)
    rows = np.flatnonzero(op.present)
    which = distinct(_keys(op, rows))[1]
    for column in (module, program):
        if column is not None:
            different, more = distinct(_keys(column, rows))
            which = distinct(which * len(different) + more)[1]
    first = _examples(which)
    numbers = np.empty(len(first), np.int64)
    for index, example in enumerate(rows[first].tolist()):
        name = text_at(plane, op, example)
        if not name:
            numbers[index] = NO_OP
            continue
        identity = text_at(plane, program, example)
        op_of_row = Op(
            module=text_at(plane, module, example),
            program=int(identity) & PROGRAM_MASK if _INTEGER.fullmatch(identity) else None,
            name=name,
        )
        numbers[index] = ops.setdefault(op_of_row, len(ops))
    lane.op_of[rows] = numbers[which]


def use_own_clock(plane: Plane, events: Events, lane: Lane) -> tuple[Ints, Ints] | None:
    """Set a TPU lane's times to the device's own clock; the event's times are converted to the host's clock, which
    drifts.

    The lane is moved as a whole, so it lines up with the host's lanes and its intervals still nest. Returns the starts
    and ends as they were, in order, and the correction of each; None if there is no own clock.
    """
    columns = events.stats(plane.stat_ids("device_duration_ps", "device_offset_ps"))
    duration, offset = columns.get("device_duration_ps"), columns.get("device_offset_ps")
    if not len(lane) or duration is None or offset is None or not (duration.present & offset.present).all():
        return None
    shift = int(np.median(lane.starts - offset.number))
    converted = np.concatenate([lane.starts, lane.ends])
    lane.starts, lane.durations = offset.number + shift, duration.number
    order = np.argsort(converted, kind="stable")
    return converted[order], (np.concatenate([lane.starts, lane.ends]) - converted)[order]


def follow_clock(lane: Lane, clock: tuple[Ints, Ints]) -> None:
    """Correct the times of a TPU's events that lack the device's own clock like those of the ops around them."""
    starts, ends = (times + np.interp(times, *clock).astype(np.int64) for times in (lane.starts, lane.ends))
    lane.starts, lane.durations = starts, np.maximum(ends - starts, 0)


def ops_of_metadata(plane: Plane, events: Events, lane: Lane, modules: dict[int, str], ops: OpNumbers) -> None:
    """Set the ops of a TPU's events, whose metadata names the op, its program, and its cost."""
    ids, which = distinct(events.metadata_ids)
    numbers: Ints = np.full(len(ids), NO_OP, np.int64)
    for index, key in enumerate(ids.tolist()):
        metadata = plane.event_metadata.get(key)
        program = metadata.stats.get("program_id") if metadata is not None else None
        if metadata is None or not isinstance(program, int):
            continue
        identity = program & PROGRAM_MASK
        name = (lane.kind != "async" and metadata.display_name) or _instruction(metadata.name)
        numbers[index] = ops.setdefault(Op(modules.get(identity, ""), identity, name), len(ops))
    lane.op_of[:] = numbers[which]


def _instruction(line: str) -> str:
    """Return the name in a line of HLO: `copy-start.2` for `%copy-start.2 = (...) copy-start(...)`."""
    return line.lstrip("%").split(" ", 1)[0]
