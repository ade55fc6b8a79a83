"""The XSpace protobuf that JAX's profiler writes (`*.xplane.pb`): planes, lines, events, and their metadata.

An index first: planes, lines and metadata are found in one pass that jumps over the events; a line's events are decoded
when they are asked for, all at once, into columns. The field numbers are those of tsl/profiler/protobuf/xplane.proto.
The file is only read, never written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jaxprof.errors import FileRefusedError
from jaxprof.trace.varints import (
    DELIMITED,
    FIXED64,
    PADDING,
    VARINT,
    Bytes,
    Positions,
    TruncatedError,
    fields,
    padded,
    signed,
    varint,
    varints,
)
from jaxprof.trace.walk import Chain

Blob = bytes | bytearray
Value = int | float | str | bytes

SPACE_PLANES, SPACE_ERRORS, SPACE_WARNINGS, SPACE_HOSTS = 1, 2, 3, 4
PLANE_NAME, PLANE_LINES, PLANE_EVENT_METADATA, PLANE_STAT_METADATA, PLANE_STATS = 2, 3, 4, 5, 6
LINE_ID, LINE_NAME, LINE_TIMESTAMP_NS, LINE_EVENTS, LINE_DISPLAY_NAME = 1, 2, 3, 4, 11
EVENT_METADATA_ID, EVENT_OFFSET_PS, EVENT_DURATION_PS, EVENT_STATS = 1, 2, 3, 4
STAT_ID, STAT_DOUBLE, STAT_UINT64, STAT_INT64, STAT_STRING, STAT_BYTES, STAT_REFERENCE = 1, 2, 3, 4, 5, 6, 7
_EVENT_TAG = (LINE_EVENTS << 3) | DELIMITED
_STAT_TAG = (EVENT_STATS << 3) | DELIMITED
_PLANE_NAME = re.compile(r"/|#|Task Environment$")
"""How planes are called: `/host:CPU`, `/device:GPU:0`, `#Chip0#...`."""
_BLOCK = 1 << 14
"""Events that are decoded at once: what is needed on the way then stays in the cache, and in memory that is there."""
_MOST_STATS = 64
"""Statistics of one event that are looked at: more than any profiler writes."""


@dataclass(frozen=True, slots=True)
class EventMetadata:
    """What events of one name share. `stats` is where on TPU and GPU the HLO's own facts are."""

    id: int
    name: str
    display_name: str
    stats: dict[str, Value]


@dataclass(frozen=True, slots=True)
class StatColumn:
    """One statistic of every event of a line: absent, a number, or a reference into the plane's names."""

    present: NDArray[np.bool_]
    number: NDArray[np.int64]
    """Integers as they are; references as the id of a name; text as where it lies in the file (`text_end` behind)."""
    text_end: NDArray[np.int64]
    """0 where the value is no text of its own."""
    is_reference: NDArray[np.bool_]
    blob: Blob
    """The file, in which texts lie."""


class Line:
    """One row of a plane: a thread of the host, a stream of a device, or a derived row."""

    def __init__(self, plane: Plane, begin: int, end: int) -> None:
        self.plane = plane
        self._data = plane.space.data
        self.id = 0
        self.name = ""
        self.display_name = ""
        self.timestamp_ns = 0
        self._scan(begin, end)

    def _scan(self, begin: int, end: int) -> None:
        """Reads the line's own fields; events are only jumped over: their bytes are looked at when they are wanted."""
        data, blob = self._data, self.plane.space.blob
        starts: list[Positions] = [np.zeros(0, np.int64)]
        chain: Chain | None = None
        at = begin
        while at < end:
            if blob[at] == _EVENT_TAG:
                chain = chain or Chain(data, blob, at, end, _EVENT_TAG)
                found, at = chain.run(at)
                starts += found
                continue
            number, kind, content, after = next(fields(data, at, end))
            if kind == VARINT:
                value = signed(varint(data, content)[0])
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
            at = after
        self._starts: Positions = np.concatenate(starts)

    def __len__(self) -> int:
        return len(self._starts)

    @cached_property
    def _columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Positions, Positions]:
        """Metadata ids, offsets and durations in ps, where each event's statistics begin, and where it ends.

        The profiler writes the three numbers in order and leaves a zero out; any other order is read one by one.
        """
        count = len(self._starts)
        columns = tuple(np.zeros(count, np.int64) for _ in range(5))
        for begin in range(0, count, _BLOCK):
            block = slice(begin, begin + _BLOCK)
            for column, values in zip(columns, self._numbers(self._starts[block]), strict=True):
                column[block] = values
        return columns[0], columns[1], columns[2], columns[3], columns[4]

    def _numbers(self, starts: Positions) -> tuple[Positions, ...]:
        """The five columns of `_columns`, of the events that begin there."""
        data = self._data
        lengths, at = varints(data, starts + 1)
        end = _behind(at, lengths, np.full(len(at), len(data) - PADDING))
        found = []
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
            found.append(values)
        odd = np.flatnonzero((at < end) & (data[at] != _STAT_TAG))
        for index in odd.tolist():
            self._read_alone(int(starts[index]), index, found, at, end)
        return (*found, at, end)

    def _read_alone(self, start: int, index: int, found: list[Positions], at: Positions, end: Positions) -> None:
        """An event whose fields come in another order, or with fields that we do not know."""
        data = self._data
        _, begin = varint(data, start + 1)
        first_stat = int(end[index])
        for number, kind, content, after in fields(data, begin, int(end[index])):
            if kind == VARINT and number in (EVENT_METADATA_ID, EVENT_OFFSET_PS, EVENT_DURATION_PS):
                found[number - 1][index] = signed(varint(data, content)[0])
            elif number == EVENT_STATS:
                first_stat = min(first_stat, begin)
            begin = after
        at[index] = first_stat

    @property
    def metadata_ids(self) -> NDArray[np.int64]:
        """Of each event, in the order of the file."""
        return self._columns[0]

    @property
    def starts_ps(self) -> NDArray[np.int64]:
        """When each event began, in picoseconds on the line's clock, from the line's `timestamp_ns`."""
        return self._columns[1]

    @property
    def durations_ps(self) -> NDArray[np.int64]:
        """How long each took, in picoseconds."""
        return self._columns[2]

    def stats(self, wanted: Mapping[int, str], only: NDArray[np.bool_] | None = None) -> dict[str, StatColumn]:
        """The statistics with these metadata ids (id → name), a column each over all events of the line.

        Events where `only` is False are not looked at, and have none.
        """
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
        there = (position < end) & (data[position] == _STAT_TAG)
        rows = np.flatnonzero(there if only is None else there & only)
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
        """Takes the statistics of these events, which begin at `at` and end before `until`, into the columns."""
        data = self._data
        for number in range(1, _MOST_STATS + 1):
            if not len(rows):
                break
            lengths, inside = varints(data, at + 1)
            after = _behind(inside, lengths, until)
            self._one_stat(columns, wanted, rows, inside, after)
            more = (after < until) & (data[after] == _STAT_TAG)
            if number >= len(wanted):  # what has all that is wanted is done with
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
        """Takes one statistic of each of `rows` (bounds `inside`, `after`) into its column, where it is wanted."""
        data = self._data
        ids, value_at = varints(data, inside + 1)
        sound = (data[inside] == STAT_ID << 3) & (value_at < after)
        for wanted_id, name in wanted.items():
            chosen = np.flatnonzero(sound & (ids == np.uint64(wanted_id)))
            if not len(chosen):
                continue
            column, at, row = columns[name], value_at[chosen], rows[chosen]
            tags = data[at]
            values, content = varints(data, at + 1)
            column.present[row] = True
            column.number[row] = values.view(np.int64)
            column.is_reference[row] = tags == (STAT_REFERENCE << 3)
            textual = (tags == ((STAT_STRING << 3) | DELIMITED)) | (tags == ((STAT_BYTES << 3) | DELIMITED))
            column.number[row[textual]] = content[textual]
            column.text_end[row[textual]] = _behind(content[textual], values[textual], after[chosen[textual]])


def _behind(at: Positions, lengths: NDArray[np.uint64], limit: Positions) -> Positions:
    """Where contents of these lengths end; a damaged length ends where what holds it does."""
    found: Positions = at + np.minimum(lengths, np.maximum(limit - at, 0).astype(np.uint64)).astype(np.int64)
    return found


class Plane:
    """One source of events: the host, a device, or a collection of metadata."""

    def __init__(self, space: Space, begin: int, end: int) -> None:
        self.space = space
        self.name = ""
        self._lines: list[tuple[int, int]] = []
        self._event_metadata: list[tuple[int, int]] = []
        stat_metadata: list[tuple[int, int]] = []
        stats: list[tuple[int, int]] = []
        for number, kind, content, after in fields(space.data, begin, end):
            if kind != DELIMITED:
                continue
            if number == PLANE_NAME:
                self.name = space.text(content, after)
            elif number == PLANE_LINES:
                self._lines.append((content, after))
            elif number == PLANE_EVENT_METADATA:
                self._event_metadata.append((content, after))
            elif number == PLANE_STAT_METADATA:
                stat_metadata.append((content, after))
            elif number == PLANE_STATS:
                stats.append((content, after))
        self.stat_names = {key: space.name_of(value) for key, value in map(space.map_entry, stat_metadata) if value}
        self._stats = stats

    def readable_lines(self) -> tuple[list[Line], list[str]]:
        """The plane's lines, their events not yet decoded, and what is wrong with those that are damaged."""
        found, problems = [], []
        for begin, end in self._lines:
            try:
                found.append(Line(self, begin, end))
            except (TruncatedError, IndexError) as error:
                problems.append(str(error))
        return found, problems

    @cached_property
    def stats(self) -> dict[str, Value]:
        """The plane's own statistics, e.g. `clock_rate`, `memory_bandwidth` of a GPU; none where they are damaged."""
        try:
            return self.space.stats(self._stats, self.stat_names)
        except (TruncatedError, IndexError, ValueError) as error:
            self.space.problems.append(f"{self.name}: its properties cannot be read: {error}")
            return {}

    @cached_property
    def event_metadata(self) -> dict[int, EventMetadata]:
        """By id. On old GPU files the id is the program id. A damaged one is left out, and named in `problems`."""
        found = {}
        for begin, end in self._event_metadata:
            try:
                key, value = self.space.map_entry((begin, end))
                if value:
                    found[key] = self.space.metadata(key, value, self.stat_names)
            except (TruncatedError, IndexError) as error:
                self.space.problems.append(f"{self.name}: the name of some events cannot be read: {error}")
        return found

    def stat_ids(self, *names: str) -> dict[int, str]:
        """The ids under which this plane writes statistics of these names."""
        return {key: name for key, name in self.stat_names.items() if name in names}


@dataclass
class Space:
    """A whole file. `problems` says what could not be read of it."""

    data: Bytes
    blob: Blob
    planes: list[Plane] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def text(self, begin: int, end: int) -> str:
        """The UTF-8 text between two positions."""
        return bytes(self.blob[begin:end]).decode("utf-8", "replace")

    def map_entry(self, bounds: tuple[int, int]) -> tuple[int, tuple[int, int] | None]:
        """Key and value bounds of one entry of a map<int64, message>."""
        key, value = 0, None
        for number, kind, content, after in fields(self.data, *bounds):
            if number == 1 and kind == VARINT:
                key = signed(varint(self.data, content)[0])
            elif number == 2 and kind == DELIMITED:
                value = (content, after)
        return key, value

    def name_of(self, bounds: tuple[int, int]) -> str:
        """The name in an XStatMetadata."""
        for number, kind, content, after in fields(self.data, *bounds):
            if number == 2 and kind == DELIMITED:
                return self.text(content, after)
        return ""

    def metadata(self, key: int, bounds: tuple[int, int], stat_names: Mapping[int, str]) -> EventMetadata:
        """An XEventMetadata; a name that is bytes of a proto stays out of the way."""
        name = display_name = ""
        stats: list[tuple[int, int]] = []
        for number, kind, content, after in fields(self.data, *bounds):
            if kind != DELIMITED:
                continue
            if number == 2:
                name = self.text(content, after)
            elif number == 4:
                display_name = self.text(content, after)
            elif number == 5:
                stats.append((content, after))
        return EventMetadata(key, name, display_name, self.stats(stats, stat_names))

    def stats(self, bounds: list[tuple[int, int]], names: Mapping[int, str]) -> dict[str, Value]:
        """XStats as a dict by name; references are resolved."""
        found: dict[str, Value] = {}
        for begin, end in bounds:
            name = ""
            value: Value | None = None
            for number, kind, content, after in fields(self.data, begin, end):
                if number == STAT_ID and kind == VARINT:
                    name = names.get(signed(varint(self.data, content)[0]), "")
                elif kind == FIXED64 and number == STAT_DOUBLE:
                    value = float(np.frombuffer(bytes(self.blob[content:after]), "<f8")[0])
                elif kind == VARINT:
                    raw = varint(self.data, content)[0]
                    value = (
                        names.get(raw, "")
                        if number == STAT_REFERENCE
                        else raw
                        if number == STAT_UINT64
                        else signed(raw)
                    )
                elif kind == DELIMITED:
                    value = bytes(self.blob[content:after]) if number == STAT_BYTES else self.text(content, after)
            if name and value is not None:
                found[name] = value
        return found


def read_xspace(path: Path) -> Space:
    """The index of the file at `path`. Raises FileRefusedError where it is empty or no XSpace.

    A file that was cut off gives the planes that are whole, and says so in `problems`.
    """
    try:
        return parse_xspace(path.read_bytes(), str(path))
    except OSError as error:
        raise FileRefusedError(f"{path} cannot be read: {error.strerror or error}") from error


def parse_xspace(raw: Blob, name: str, size: int | None = None) -> Space:
    """As `read_xspace`, of bytes that are there already; `name` is for messages.

    With a `size`, `raw` is longer than that by `PADDING` zero bytes, and need not be copied.
    """
    end = len(raw) if size is None else size
    if not end:
        raise FileRefusedError(f"{name} is empty (0 bytes)", "The profiler did not finish writing it: record it again.")
    data = padded(raw) if size is None else np.frombuffer(raw, np.uint8)
    space = Space(data, raw)
    at = 0
    try:
        for number, kind, content, after in fields(data, 0, end):
            at = after
            if kind != DELIMITED or number > SPACE_HOSTS:
                raise TruncatedError(f"field {number} is none of an XSpace")
            if number == SPACE_PLANES:
                space.planes.append(Plane(space, content, after))
            elif number == SPACE_HOSTS:
                space.hosts.append(space.text(content, after))
            else:
                (space.errors if number == SPACE_ERRORS else space.warnings).append(space.text(content, after))
    except (TruncatedError, IndexError) as error:
        if not any(plane.name for plane in space.planes):
            raise FileRefusedError(
                f"{name} is not an XSpace profile, or it is damaged: {error}",
                "It should be the `.xplane.pb` that jax.profiler writes under plugins/profile/<run>/.",
            ) from error
        space.problems.append(f"the file is damaged or cut off after byte {at} of {end}: {error}")
    if not any(_PLANE_NAME.match(plane.name) for plane in space.planes):
        raise FileRefusedError(
            f"{name} has the form of an XSpace, but no plane of JAX's profiler",
            "It may be another tool's. It should be the `.xplane.pb` under plugins/profile/<run>/.",
        )
    return space
