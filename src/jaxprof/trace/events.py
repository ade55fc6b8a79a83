"""Events of a line, decoded into columns on request: one NumPy step reads the same field of all of them.

Values are integers in any encoding, texts, and the HLO op that each event belongs to: on GPUs and CPUs an event's own
statistics name its op; on TPUs the metadata of its name do.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxprof.base.limits import EVENTS
from jaxprof.base.values import frozen
from jaxprof.hlo.text.wire import DELIMITED, VARINT, Blob, TruncatedError, fields, to_signed, varint
from jaxprof.trace.intervals import distinct
from jaxprof.trace.model import ABSENT, NO_OP, PROGRAM_MASK, Flags, Ints, Lane, Op, OpNumbers, TextColumn
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
)

EVENT_METADATA_ID, EVENT_OFFSET_PS, EVENT_DURATION_PS, EVENT_STATS = 1, 2, 3, 4
STAT_TAG = (EVENT_STATS << 3) | DELIMITED
TEXT_TAG = (STAT_STRING << 3) | DELIMITED
BYTES_TAG = (STAT_BYTES << 3) | DELIMITED
_BLOCK = 1 << 14
"""Events that are decoded at once: temporary arrays then stay in the cache, and in memory that is already mapped."""
_LAYOUTS, _LONGEST = 32, 256
"""Most layouts of statistics that are looked for in a block, and the most bytes that the statistics of an event take in
one of them."""


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
        """Return a column of `count` events without the statistic. It takes no memory, and is read-only."""
        return StatColumn(plane, np.broadcast_to(np.int64(0), count), np.broadcast_to(np.uint8(_ABSENT), count))

    def part(self, begin: int, end: int) -> StatColumn:
        """Return the column of some events in a row, in the same memory."""
        return StatColumn(self.plane, self.number[begin:end], self.sort[begin:end])

    def read(self, data: Bytes, rows: Ints, tag: int, at: Positions, end: Positions) -> None:
        """Set the values of these rows, which follow the `tag` at `at` and end before `end`."""
        values, content = varints(data, at + 1)
        numbers = values.view(np.int64)
        if tag in (TEXT_TAG, BYTES_TAG):
            bounds = zip(content.tolist(), _behind(content, values, end).tolist(), strict=True)
            numbers[:] = [_TEXTS + self.plane.space.number_of_text(*each) for each in bounds]
        self.set(rows, tag, numbers)

    def set(self, rows: Ints, tag: int, numbers: Ints | Bytes) -> None:
        """Set the values of these rows, which follow the `tag`."""
        sort = _REFERENCE if tag == STAT_REFERENCE << 3 else _TEXT if tag in (TEXT_TAG, BYTES_TAG) else _NUMBER
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
        self._count = self._room = 0
        # Arrays, which NumPy puts in huge pages; bytes that grow in place have a page fault every 4 KiB.
        self._numbers = [np.zeros(0, np.int64)] * 3
        self._stats: dict[str, StatColumn] = {}

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
        before, self._count = self._count, self._count + len(at)
        if self._count > self._room:
            self._room = max(2 * self._room, self._count)
            self._numbers = [_grown(held, before, self._room) for held in self._numbers]
            for name, held in self._stats.items():
                number, sort = (_grown(column, before, self._room) for column in (held.number, held.sort))
                self._stats[name] = StatColumn(self.plane, number, sort)
        for numbers, column in zip(self._numbers, columns, strict=True):
            numbers[before : self._count] = column
        if self._names:
            self._read_stats(at, end, before)

    def __len__(self) -> int:
        return self._count

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
        return self._column(2)

    def _column(self, number: int) -> Ints:
        return self._numbers[number][: self._count]

    def stat(self, name: str) -> StatColumn:
        """Return the statistic of this name, which is one of those that are read."""
        if (held := self._stats.get(name)) is None:
            return StatColumn.absent(self.plane, len(self))
        return held.part(0, self._count)

    def _stat_of_block(self, number: int, before: int) -> StatColumn | None:
        """Return the part after `before` of the statistic with this id; None if it is not one of those that are
        read."""
        name = self._names.get(number)
        if name is None:
            return None
        if name not in self._stats:
            columns = np.zeros(self._room, np.int64), np.zeros(self._room, np.uint8)
            self._stats[name] = StatColumn(self.plane, *columns)
        return self._stats[name].part(before, self._count)

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
                kept = np.flatnonzero(~(there & _flags_of(values, left_out)))  # faster than flags
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
            kept = np.flatnonzero(~_flags_of(columns[0], left_out))
            return tuple(column[kept] for column in (*columns, at, end))
        return (*columns, at, end)

    def _read_stats(self, at: Positions, until: Positions, before: int) -> None:
        """Read the statistics of a block of events, between `at` and `until`. `before`: number of events before it."""
        rows = np.flatnonzero(at < until)
        for _ in range(_LAYOUTS if len(rows) > 1 else 0):
            alike = self._read_alike(rows, at, until, before)
            rows = rows[~alike]
            if not len(rows) or not alike.any():
                break
        at, until, data = at[rows], until[rows], self._data
        columns: dict[int, StatColumn] = {}
        for _ in range(64):  # more than any profiler writes for one event
            more = (at < until) & (data[at] == STAT_TAG)
            if len(columns) == len(self._names):  # an event with all of these statistics is finished
                more &= np.add.reduce([column.sort[rows] == _ABSENT for column in columns.values()]) > 0
            rows, at, until = rows[more], at[more], until[more]
            if not len(rows):
                break
            lengths, inside = varints(data, at + 1)
            after = _behind(inside, lengths, until)
            ids, values_at = varints(data, inside + 1)
            sound = np.flatnonzero((data[inside] == STAT_ID << 3) & (values_at < after))
            # Those of one id whose values have one tag are read at once.
            heads, which = np.unique(ids[sound] << np.uint64(8) | data[values_at[sound]], return_inverse=True)
            for index, key in enumerate(heads.tolist()):
                if (column := self._stat_of_block(key >> 8, before)) is not None:
                    columns[key >> 8] = column
                    each = sound[which == index]
                    column.read(data, rows[each], key & 0xFF, values_at[each], after[each])
            at = after

    def _read_alike(self, rows: Ints, at: Positions, until: Positions, before: int) -> Flags:
        """Read the statistics of those of these events that have the same ones as the middle one, in the same order
        and of the same lengths, as nearly all events of a profile have. Returns which they are."""
        example = rows[len(rows) // 2]
        begin, end = int(at[example]), int(until[example])
        size = end - begin
        width = size + 16 & ~7  # a number at the end can be read without a check
        alike: Flags = (until[rows] - at[rows] == size) & (at[rows] <= len(self._data) - width)
        layout = _layout(self.plane.space.blob, begin, end) if size <= _LONGEST and alike.any() else None
        if layout is None:
            return np.zeros(len(rows), np.bool_)
        # Copies of the bytes, which are beside each other, and fast to compare.
        copies = np.ndarray((len(self._data) - width + 1,), f"V{width}", self._data, 0, (1,))[at[rows[alike]]]
        mask = np.frombuffer(layout[0].ljust(width, b"\0"), np.uint64)
        expected = np.frombuffer(self._data[begin : begin + width].tobytes(), np.uint64) & mask
        wrong = np.zeros(len(copies), np.uint64)
        for word, bits, value in zip(copies.view(np.uint64).reshape(-1, width // 8).T, mask, expected, strict=True):
            if bits:
                wrong |= word & bits ^ value
        same = wrong == 0
        alike[alike] = same
        found, copied = rows[alike], (copies if same.all() else copies[same]).view(np.uint8).reshape(-1, width)
        for number, tag, value, after in layout[1] if len(found) else ():
            column = self._stat_of_block(number, before)
            if column is not None and tag in (TEXT_TAG, BYTES_TAG):  # a text is read by its place in the file
                column.read(self._data, found, tag, at[found] + value, at[found] + after)
            elif column is not None:
                column.set(found, tag, _varints_of_rows(copied, value + 1, after))
        return alike


def _varints_of_rows(table: Bytes, begin: int, end: int) -> Ints | Bytes:
    """Return the varint between two columns of each row; those that equal the one above, as ids of runs do, are read
    once."""
    if (first := table[:, begin]).max() < 0x80:
        return first
    count, width = table.shape
    # Eight bytes at a time: those before a short number make rows look new, and nothing more.
    places = {max(end - 8, 0), begin if end - begin > 8 else max(end - 8, 0)}
    parts = [np.ndarray((count,), "<u8", table, place, (width,)) for place in places]
    new = np.flatnonzero(np.logical_or.reduce([np.append(True, part[1:] != part[:-1]) for part in parts]))
    values: Ints = varints(table.reshape(-1), new * width + begin)[0].view(np.int64)
    return np.repeat(values, np.diff(new, append=count))


def _layout(blob: Blob, begin: int, end: int) -> tuple[bytes, list[tuple[int, int, int, int]]] | None:
    """Return of the statistics of one event which bytes do not belong to values (255, others 0), and for each its id,
    the tag of its value, and where that tag is and the value ends. None if there are other fields, or damage."""
    mask, stats, at = bytearray(end - begin), [], begin
    try:
        for field, kind, content, after in fields(blob, begin, end):
            key, value = varint(blob, content + 1)
            if field != EVENT_STATS or kind != DELIMITED or blob[content] != STAT_ID << 3 or value >= after:
                return None
            mask[at - begin : value + 1 - begin] = b"\xff" * (value + 1 - at)
            stats.append((key, blob[value], value - begin, after - begin))
            at = after
    except (TruncatedError, IndexError):
        return None
    return bytes(mask), stats


def _grown(column: NDArray[Any], count: int, room: int) -> NDArray[Any]:
    """Return the first values of a column in one with more room."""
    grown = np.zeros(room, column.dtype)
    grown[:count] = column[:count]
    return grown


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
