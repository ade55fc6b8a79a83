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

from jaxprof.base.values import frozen
from jaxprof.hlo.text.wire import DELIMITED, VARINT, fields, to_signed, varint
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


_INTEGER = re.compile(r"-?\d{1,18}")


@frozen
class StatColumn:
    """One statistic of every event of a line: absent, a number, or a reference into the plane's names."""

    plane: Plane
    present: Flags
    number: Ints
    """Integers as they are; references as the id of a name; text as its position in the file (`text_end` is its
    end)."""
    text_end: Ints
    """End of a text in the file; 0 if the value is not such a text."""
    is_reference: Flags

    def text(self, row: int) -> str:
        """Return the value of one event as text; empty if it has none."""
        number = int(self.number[row])
        if self.text_end[row]:
            return self.plane.space.text(number, int(self.text_end[row]))
        if self.is_reference[row]:
            return self.plane.stat_names.get(number, "")
        return str(number) if self.present[row] else ""

    def integers(self, default: int) -> Ints:
        """Return the values as integers; integers written as text are read too."""
        values = np.where(self.present & (self.text_end == 0) & ~self.is_reference, self.number, default)
        for row in np.flatnonzero((self.text_end > 0) | self.is_reference).tolist():
            text = self.text(row)
            values[row] = int(text) if _INTEGER.fullmatch(text) else default
        return values

    def texts(self) -> TextColumn | None:
        """Return the values as a column of texts; None if no event has one."""
        rows = np.flatnonzero(self.present)
        if not len(rows):
            return None
        which = distinct(self.keys(rows))[1]
        index = np.full(len(self.present), ABSENT, np.int64)
        index[rows] = which
        return TextColumn([self.text(row) for row in rows[_examples(which)].tolist()], index)

    def keys(self, rows: Ints) -> Ints:
        """Return numbers that are equal if the values are equal: references and integers unchanged, texts by their
        hash."""
        numbers, blob = self.number[rows].copy(), self.plane.space.blob
        textual = np.flatnonzero(self.text_end[rows])
        if len(textual):
            at, end = self.number[rows], self.text_end[rows]
            numbers[textual] = [hash(bytes(blob[at[index] : end[index]])) for index in textual.tolist()]
        return numbers


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
                columns[number - 1][index] = to_signed(varint(blob, content)[0])
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

    def stats(self, *names: str) -> dict[str, StatColumn]:
        """Return the statistics of these names, one column each over all of these events."""
        _, _, _, position, end = self._columns
        wanted, count = self.plane.stat_ids(*names), len(self._starts)
        columns: dict[str, StatColumn] = {}
        for name in names:
            present, is_reference = np.zeros((2, count), np.bool_)
            number, text_end = np.zeros((2, count), np.int64)
            columns[name] = StatColumn(self.plane, present, number, text_end, is_reference)
        rows = np.flatnonzero((position < end) & (self._data[position] == STAT_TAG) & bool(wanted))
        for begin in range(0, len(rows), _BLOCK):
            block = rows[begin : begin + _BLOCK]
            self._read_stats({key: columns[name] for key, name in wanted.items()}, block, position[block], end[block])
        return columns

    def _read_stats(self, wanted: Mapping[int, StatColumn], rows: Ints, at: Positions, until: Positions) -> None:
        """Read the statistics of these events, between `at` and `until`, into the columns of their ids."""
        data = self._data
        # More than any profiler writes for one event.
        for number in range(1, 64 + 1):
            if not len(rows):
                break
            lengths, inside = varints(data, at + 1)
            after = _behind(inside, lengths, until)
            self._one_stat(wanted, rows, inside, after)
            more = (after < until) & (data[after] == STAT_TAG)
            if number >= len(wanted):  # an event with all wanted statistics is finished
                found = np.add.reduce([column.present[rows] for column in wanted.values()], dtype=np.int8)
                more &= found < len(wanted)
            if not more.all():
                rows, after, until = rows[more], after[more], until[more]
            at = after

    def _one_stat(self, wanted: Mapping[int, StatColumn], rows: Ints, inside: Positions, after: Positions) -> None:
        """Read one statistic of each of `rows` (bounds `inside`, `after`) into its column, if it is wanted."""
        data = self._data
        ids, value_at = varints(data, inside + 1)
        sound = (data[inside] == STAT_ID << 3) & (value_at < after)
        alike = bool((ids == ids[0]).all() and sound.all())  # the usual case: statistics come in one order
        for wanted_id in [int(ids[0])] if alike else np.unique(ids[sound]).tolist():
            if wanted_id not in wanted:
                continue
            column, at, row, end = wanted[wanted_id], value_at, rows, after
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


def _examples(which: Ints) -> Ints:
    """Return one index of each number in `which`, which holds all numbers from 0 on."""
    rows = np.zeros(int(which.max()) + 1 if len(which) else 0, np.int64)
    rows[which] = np.arange(len(which))
    return rows


def ops_of_events(columns: Mapping[str, StatColumn], lane: Lane, ops: OpNumbers) -> None:
    """Set the ops of a GPU's or CPU's events, which their own statistics name."""
    if columns["correlation_id"].present.any():
        lane.correlation = columns["correlation_id"].integers(ABSENT)
    op, module, program = (columns[name] for name in ("hlo_op", "hlo_module", "program_id"))
    rows = np.flatnonzero(op.present)
    if not len(rows):
        return
    lane.execution = columns["run_id"].integers(0)
    which = distinct(op.keys(rows))[1]
    for column in (module, program):
        different, more = distinct(column.keys(rows))
        which = distinct(which * len(different) + more)[1]
    examples = rows[_examples(which)].tolist()
    numbers = np.full(len(examples), NO_OP, np.int64)
    for index, example in enumerate(examples):
        if name := op.text(example):
            identity = program.text(example)
            number = int(identity) & PROGRAM_MASK if _INTEGER.fullmatch(identity) else None
            numbers[index] = ops.setdefault(Op(module.text(example), number, name), len(ops))
    lane.op_of[rows] = numbers[which]


def use_own_clock(events: Events, lane: Lane) -> tuple[Ints, Ints] | None:
    """Set a TPU lane's times to the device's own clock; the event's times are converted to the host's clock, which
    drifts.

    The lane is moved as a whole, so it lines up with the host's lanes and its intervals still nest. Returns the starts
    and ends as they were, in order, and the correction of each; None if there is no own clock.
    """
    duration, offset = events.stats("device_duration_ps", "device_offset_ps").values()
    if not len(lane) or not (duration.present & offset.present).all():
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
        # Without a display name, the name is a whole line of HLO: `%copy-start.2 = (...) copy-start(...)`.
        name = (lane.kind != "async" and metadata.display_name) or metadata.name.lstrip("%").split(" ", 1)[0]
        numbers[index] = ops.setdefault(Op(modules.get(identity, ""), identity, name), len(ops))
    lane.op_of[:] = numbers[which]
