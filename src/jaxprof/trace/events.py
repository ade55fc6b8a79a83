"""Events of a line, decoded into columns on request: one NumPy step reads the same field of all of them.

Values are integers in any encoding, texts, and the HLO op that each event belongs to: on GPUs and CPUs an event's own
statistics name its op; on TPUs the metadata of its name do.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from jaxprof.base.limits import EVENTS
from jaxprof.base.values import frozen
from jaxprof.hlo.text.wire import DELIMITED, VARINT, TruncatedError, fields, to_signed, varint
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
    Bytes,
    Plane,
    Positions,
    varints,
    words,
)

EVENT_METADATA_ID, EVENT_OFFSET_PS, EVENT_DURATION_PS, EVENT_STATS = 1, 2, 3, 4
STAT_TAG = (EVENT_STATS << 3) | DELIMITED
TEXT_TAG = (STAT_STRING << 3) | DELIMITED
BYTES_TAG = (STAT_BYTES << 3) | DELIMITED
_BLOCK = 1 << 14
"""Events that are decoded at once: temporary arrays then stay in the cache, and in memory that is already mapped."""
_HEAD, _PLAIN_BITS, _PLAIN = np.uint64(0xFF_FFFF_80FF), np.uint64(0x80FF_80FF), np.uint64(STAT_ID << 19 | STAT_TAG)
"""Of a statistic's first word, TAG LENGTH 08 ID VALUE_TAG: what those of one name and sort have in common, and what all
have whose length and id take one byte."""


_INTEGER = re.compile(r"-?\d{1,18}")
_ABSENT, _NUMBER, _REFERENCE, _TEXT = range(4)
_TEXTS = -(1 << 62)
"""Number of the first text. No id and no count is as small."""


@frozen
class StatColumn:
    """One statistic of every event of a line: absent, a number, a text, or a reference into the plane's names."""

    plane: Plane
    number: Ints
    """Integers as they are; references as the id of a name; texts as `_TEXTS` and their index in `Space.texts`."""
    sort: NDArray[np.uint8]

    @staticmethod
    def absent(plane: Plane, count: int) -> StatColumn:
        """Return a column of so many events of which none has the statistic. It takes no memory, and is read-only."""
        return StatColumn(plane, np.broadcast_to(np.int64(0), count), np.broadcast_to(np.uint8(_ABSENT), count))

    def read(self, data: Bytes, rows: Ints, tag: int, at: Positions, end: Positions) -> None:
        """Set the values of these rows, which follow the `tag` at `at` and end before `end`."""
        values, content = varints(data, at + 1)
        numbers = values.view(np.int64)
        sort = _REFERENCE if tag == STAT_REFERENCE << 3 else _TEXT if tag in (TEXT_TAG, BYTES_TAG) else _NUMBER
        if sort == _TEXT:
            bounds = zip(content.tolist(), _behind(content, values, end).tolist(), strict=True)
            numbers[:] = [_TEXTS + self.plane.space.number_of_text(*each) for each in bounds]
        # A slice is written faster than rows one by one.
        where = slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] == len(rows) - 1 else rows
        self.number[where], self.sort[where] = numbers, sort

    @property
    def present(self) -> Flags:
        """Which events have the statistic."""
        present: Flags = self.sort != _ABSENT
        return present

    def text(self, row: int) -> str:
        """Return the value of one event as text; empty if it has none."""
        number, sort = int(self.number[row]), self.sort[row]
        if sort == _TEXT:
            return self.plane.space.texts[number - _TEXTS]
        if sort == _REFERENCE:
            return self.plane.stat_names.get(number, "")
        return str(number) if sort == _NUMBER else ""

    def integers(self, default: int) -> Ints:
        """Return the values as integers; integers written as text are read too."""
        values = np.where(self.sort == _NUMBER, self.number, default)
        rows = np.flatnonzero(self.sort > _NUMBER)
        which = distinct(self.number[rows])[1]
        texts = map(self.text, rows[_examples(which)].tolist())
        found = [int(text) if _INTEGER.fullmatch(text) else default for text in texts]
        values[rows] = np.array(found, np.int64)[which]
        return values

    def texts(self) -> TextColumn | None:
        """Return the values as a column of texts; None if no event has one."""
        rows = np.flatnonzero(self.sort)
        if not len(rows):
            return None
        which = distinct(self.number[rows])[1]
        index = np.full(len(self.sort), ABSENT, np.int64)
        index[rows] = which
        return TextColumn([self.text(row) for row in rows[_examples(which)].tolist()], index)


class Events:
    """Some events of a line as columns, in file order. They are added block by block: the bytes of a long line need not
    be in memory at once."""

    def __init__(self, plane: Plane, *names: str) -> None:
        """Read the statistics of these names, beside the three numbers of each event."""
        self.plane = plane
        self._data = plane.space.data
        self._names = plane.stat_ids(*names)
        # Columns as bytes that grow in place: pieces of them would be in memory twice, and leave holes when they go.
        self._numbers = (bytearray(), bytearray(), bytearray())
        self._stats = {name: (bytearray(), bytearray()) for name in names}

    def add(self, starts: Positions, left_out: Flags | None = None, with_stats: Events | None = None) -> Positions:
        """Add the events that begin at `starts` in the file, but those whose metadata id is flagged in `left_out`: the
        last flag is that of all higher ids. Those with statistics are also added to `with_stats`.

        Returns the indexes of the latter. Raises FileRefusedError.
        """
        found = [np.zeros(0, np.int64)]
        for begin in range(0, len(starts), _BLOCK):
            *columns, at, end = self._read_numbers(starts[begin : begin + _BLOCK], left_out)
            if with_stats is not None:
                rows = np.flatnonzero((at < end) & (self._data[at] == STAT_TAG))
                with_stats._append([column[rows] for column in columns], at[rows], end[rows])
                found.append(len(self) + rows)
            self.plane.space.count(EVENTS, len(at))  # once, also of those that are in both
            self._append(columns, at, end)
        return np.concatenate(found)

    def _append(self, columns: list[Ints], at: Positions, end: Positions) -> None:
        """Add a block of events with these numbers, whose statistics are between `at` and `end`."""
        before = len(self)
        for held, column in zip(self._numbers, columns, strict=True):
            held += column.data
        for name, stat in (self._read_stats(at, end) if self._names else {}).items():
            number, sort = self._stats[name]
            number += bytes(8 * before - len(number)) + stat.number.data
            sort += bytes(before - len(sort)) + stat.sort.data

    def __len__(self) -> int:
        return len(self._numbers[0]) // 8

    @property
    def metadata_ids(self) -> Ints:
        """Metadata id of each event, in file order."""
        return self._column(0)

    @property
    def starts_ps(self) -> Ints:
        """Start of each event in picoseconds on the line's clock, from the line's `timestamp_ns`."""
        return self._column(1)

    @property
    def durations_ps(self) -> Ints:
        """Duration of each event, in picoseconds."""
        return self._column(2)

    def _column(self, number: int) -> Ints:
        return np.frombuffer(self._numbers[number], np.int64)

    def stat(self, name: str) -> StatColumn:
        """Return the statistic of this name, which is one of those that are read. No events can be added afterwards."""
        number, sort = self._stats[name]
        if not sort:
            return StatColumn.absent(self.plane, len(self))
        number += bytes(8 * len(self) - len(number))
        sort += bytes(len(self) - len(sort))
        return StatColumn(self.plane, np.frombuffer(number, np.int64), np.frombuffer(sort, np.uint8))

    def _read_numbers(self, starts: Positions, left_out: Flags | None) -> tuple[Positions, ...]:
        """Return metadata ids, offsets and durations in ps of the events that begin at `starts`, where the statistics
        of each begin, and where it ends; without the events whose id is flagged in `left_out`.

        The profiler writes the three numbers in order and leaves a zero out; events in any other order are read one by
        one.
        """
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
            if left_out is not None and number == EVENT_METADATA_ID:  # before the rest is read of half of all events
                kept = ~(there & _flags_of(values, left_out))
                starts, at, end, columns = starts[kept], at[kept], end[kept], [values[kept]]
        odd = np.flatnonzero((at < end) & (data[at] != STAT_TAG))
        for index in odd.tolist():
            blob = self.plane.space.blob
            _, begin = varint(blob, int(starts[index]) + 1)
            first_stat = int(end[index])
            try:
                for field, kind, content, behind in fields(blob, begin, int(end[index])):
                    if kind == VARINT and field in (EVENT_METADATA_ID, EVENT_OFFSET_PS, EVENT_DURATION_PS):
                        columns[field - 1][index] = to_signed(varint(blob, content)[0])
                    elif field == EVENT_STATS:
                        first_stat = min(first_stat, begin)
                    begin = behind
            except TruncatedError:  # an impossible duration, for which a damaged event is left out
                columns[EVENT_DURATION_PS - 1][index], first_stat = -1, int(end[index])
            at[index] = first_stat
        if left_out is not None and (len(odd) or left_out[0]):  # an id that came late, or that is left out as a zero
            kept = ~_flags_of(columns[0], left_out)
            return tuple(column[kept] for column in (*columns, at, end))
        return (*columns, at, end)

    def _read_stats(self, at: Positions, until: Positions) -> dict[str, StatColumn]:
        """Return the statistics of a block of events, between `at` and `until`, by their names."""
        data, count = self._data, len(at)
        columns: dict[str, StatColumn] = {}
        rows = np.arange(count)
        for _ in range(64):  # more than any profiler writes for one event
            word = words(data)[at]
            more = (at < until) & (word & np.uint64(0xFF) == STAT_TAG)
            if len(columns) == len(self._names):  # an event with all of these statistics is finished
                more &= np.add.reduce([column.sort[rows] == _ABSENT for column in columns.values()]) > 0
            if not more.all():
                rows, at, until, word = rows[more], at[more], until[more], word[more]
            if not len(rows):
                break
            # Statistics of one id whose values have one tag: both, the rows, and where the values begin and end.
            # The usual case: most events have the same statistics, and these have lengths and ids of one byte.
            head = word[len(word) // 2] & _HEAD
            after: Positions = np.minimum(at + 2 + (word >> np.uint64(8) & np.uint64(0x7F)).view(np.int64), until)
            alike = (word & _HEAD == head) & (at + 4 < after) & (head & _PLAIN_BITS == _PLAIN)
            found = [(int(head) >> 24 & 0x7F, int(head) >> 32, rows, at + 4, after)]
            if not alike.all():
                same, other = np.flatnonzero(alike), np.flatnonzero(~alike)
                lengths, inside = varints(data, at[other] + 1)
                after[other] = _behind(inside, lengths, until[other])
                found = [(*found[0][:2], rows[same], at[same] + 4, after[same])] if len(same) else []
                # The others by id and tag.
                there, stops = rows[other], after[other]
                ids, values_at = varints(data, inside + 1)
                sound = np.flatnonzero((data[inside] == STAT_ID << 3) & (values_at < stops))
                heads, which = np.unique(ids[sound] << np.uint64(8) | data[values_at[sound]], return_inverse=True)
                chosen = [sound[which == index] for index in range(len(heads))]
                found += [
                    (key >> 8, key & 0xFF, there[each], values_at[each], stops[each])
                    for key, each in zip(heads.tolist(), chosen, strict=True)
                ]
            for number, tag, having, value_at, end in found:
                if (name := self._names.get(number)) is not None:
                    if name not in columns:
                        columns[name] = StatColumn(self.plane, np.zeros(count, np.int64), np.zeros(count, np.uint8))
                    columns[name].read(data, having, tag, value_at, end)
            at = after
        return columns


def _flags_of(ids: Ints, flags: Flags) -> Flags:
    """Return the flag of each id, the last one for all higher ids."""
    found: Flags = flags[np.minimum(ids.view(np.uint64), len(flags) - 1).astype(np.int64)]
    return found


def _behind(at: Positions, lengths: NDArray[np.uint64], limit: Positions) -> Positions:
    """Return where contents of these lengths end; a damaged length ends with the enclosing message."""
    behind: Positions = at + np.minimum(lengths, np.maximum(limit - at, 0).astype(np.uint64)).astype(np.int64)
    return behind


def _examples(which: Ints) -> Ints:
    """Return one index of each number in `which`, which holds all numbers from 0 on."""
    rows = np.zeros(int(which.max()) + 1 if len(which) else 0, np.int64)
    rows[which] = np.arange(len(which))
    return rows


def ops_of_events(events: Events, lane: Lane, ops: OpNumbers) -> None:
    """Set the ops of a GPU's or CPU's events, which their own statistics name."""
    correlation = events.stat("correlation_id")
    if correlation.present.any():
        lane.correlation = correlation.integers(ABSENT)
    op, module, program = (events.stat(name) for name in ("hlo_op", "hlo_module", "program_id"))
    rows = np.flatnonzero(op.present)
    if not len(rows):
        return
    lane.execution = events.stat("run_id").integers(0)
    which = distinct(op.number[rows])[1]
    for column in (module, program):
        different, more = distinct(column.number[rows])
        if len(different) > 1:
            which = distinct(which * len(different) + more)[1]
    examples = rows[_examples(which)].tolist()
    numbers = np.full(len(examples), NO_OP, np.int64)
    for index, example in enumerate(examples):
        if name := op.text(example):
            identity = program.text(example)
            number = int(identity) & PROGRAM_MASK if _INTEGER.fullmatch(identity) else None
            numbers[index] = ops.setdefault(Op(module.text(example), number, name), len(ops))
    lane.op_of[rows] = numbers[which]


OWN_CLOCK = ("device_duration_ps", "device_offset_ps")
"""Statistics with a TPU's own clock."""


def use_own_clock(events: Events, lane: Lane) -> tuple[Ints, Ints] | None:
    """Set a TPU lane's times to the device's own clock; the event's times are converted to the host's clock, which
    drifts.

    The lane is moved as a whole, so it lines up with the host's lanes and its intervals still nest. Returns the starts
    and ends as they were, in order, and the correction of each; None if there is no own clock.
    """
    duration, offset = (events.stat(name) for name in OWN_CLOCK)
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
