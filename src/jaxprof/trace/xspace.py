"""The XSpace protobuf that JAX's profiler writes (`*.xplane.pb`): planes, lines, events, and their metadata.

An index first: planes, lines and metadata are found in one pass that jumps over the events; a line's events are decoded
when they are asked for, all at once, into columns. The field numbers are those of tsl/profiler/protobuf/xplane.proto.
The file is only read, never written.
"""

from __future__ import annotations

import mmap
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

Value = int | float | str | bytes

SPACE_PLANES, SPACE_ERRORS, SPACE_WARNINGS, SPACE_HOSTS = 1, 2, 3, 4
PLANE_NAME, PLANE_LINES, PLANE_EVENT_METADATA, PLANE_STAT_METADATA, PLANE_STATS = 2, 3, 4, 5, 6
LINE_ID, LINE_NAME, LINE_TIMESTAMP_NS, LINE_EVENTS, LINE_DISPLAY_NAME = 1, 2, 3, 4, 11
EVENT_METADATA_ID, EVENT_OFFSET_PS, EVENT_DURATION_PS, EVENT_STATS = 1, 2, 3, 4
STAT_ID, STAT_DOUBLE, STAT_UINT64, STAT_INT64, STAT_STRING, STAT_BYTES, STAT_REFERENCE = 1, 2, 3, 4, 5, 6, 7
_EVENT_TAG = (LINE_EVENTS << 3) | DELIMITED
_STAT_TAG = (EVENT_STATS << 3) | DELIMITED
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
    blob: bytes | mmap.mmap
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
        self._first_event = self._events_end = begin
        self._scan(begin, end)

    def _scan(self, begin: int, end: int) -> None:
        """Reads the line's own fields; the run of events is jumped over, and found again by `_bounds`."""
        data = self._data
        starts: list[int] = []
        at = begin
        blob = self.plane.space.blob
        while at < end:
            if blob[at] == _EVENT_TAG:
                starts.append(at)
                length = blob[at + 1]
                at += 2
                if length >= 0x80:
                    length, at = varint(data, at - 1)
                at += length
                if at > end:
                    raise TruncatedError(f"an event at byte {starts[-1]} is longer than its line")
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
        self._starts: Positions = np.array(starts, np.int64)

    def __len__(self) -> int:
        return len(self._starts)

    @cached_property
    def _columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Positions, Positions]:
        """Metadata ids, offsets and durations in ps, where each event's statistics begin, and where it ends.

        The profiler writes the three numbers in order and leaves a zero out; any other order is read one by one.
        """
        data = self._data
        lengths, at = varints(data, self._starts + 1)
        end = at + lengths.astype(np.int64)
        found = []
        for number in (EVENT_METADATA_ID, EVENT_OFFSET_PS, EVENT_DURATION_PS):
            there = (data[at] == (number << 3)) & (at < end)
            values = np.zeros(len(at), np.int64)
            if there.any():
                read, after = varints(data, at[there] + 1)
                values[there] = read.astype(np.int64)
                at = at.copy()
                at[there] = after
            found.append(values)
        odd = np.flatnonzero((at < end) & (data[at] != _STAT_TAG))
        for index in odd.tolist():
            self._read_alone(index, found, at, end)
        return found[0], found[1], found[2], at, end

    def _read_alone(self, index: int, found: list[NDArray[np.int64]], at: Positions, end: Positions) -> None:
        """An event whose fields come in another order, or with fields that we do not know."""
        data, begin = self._data, int(self._starts[index]) + 1
        _, begin = varint(data, begin)
        first_stat = int(end[index])
        for number, kind, content, _ in fields(data, begin, int(end[index])):
            if kind == VARINT and number in (EVENT_METADATA_ID, EVENT_OFFSET_PS, EVENT_DURATION_PS):
                found[number - 1][index] = signed(varint(data, content)[0])
            elif number == EVENT_STATS:
                first_stat = min(first_stat, content - 2)
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

    def stats(self, wanted: Mapping[int, str]) -> dict[str, StatColumn]:
        """The statistics with these metadata ids (id → name), a column each over all events of the line."""
        data = self._data
        _, _, _, position, end = self._columns
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
        rows = np.flatnonzero((position < end) & (data[position] == _STAT_TAG))
        at = position[rows]
        for _ in range(_MOST_STATS):
            if not len(rows):
                break
            lengths, inside = varints(data, at + 1)
            after = inside + lengths.astype(np.int64)
            self._one_stat(columns, wanted, rows, inside, after)
            more = (after < end[rows]) & (data[after] == _STAT_TAG)
            rows, at = rows[more], after[more]
        return columns

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
            column.text_end[row[textual]] = content[textual] + values[textual].astype(np.int64)


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
        """The plane's own statistics, e.g. `clock_rate`, `memory_bandwidth` of a GPU."""
        return self.space.stats(self._stats, self.stat_names)

    @cached_property
    def event_metadata(self) -> dict[int, EventMetadata]:
        """By id. On old GPU files the id is the program id."""
        found = {}
        for begin, end in self._event_metadata:
            key, value = self.space.map_entry((begin, end))
            if value:
                found[key] = self.space.metadata(key, value, self.stat_names)
        return found

    def stat_ids(self, *names: str) -> dict[int, str]:
        """The ids under which this plane writes statistics of these names."""
        return {key: name for key, name in self.stat_names.items() if name in names}


@dataclass
class Space:
    """A whole file. `problems` says what could not be read of it."""

    data: Bytes
    blob: bytes | mmap.mmap
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
        raw = path.read_bytes()
    except OSError as error:
        raise FileRefusedError(f"{path} cannot be read: {error.strerror or error}") from error
    return parse_xspace(raw, str(path))


def parse_xspace(raw: bytes, name: str) -> Space:
    """As `read_xspace`, of bytes that are there already; `name` is for messages."""
    if not raw:
        raise FileRefusedError(f"{name} is empty (0 bytes)", "The profiler did not finish writing it: record it again.")
    data = padded(raw)
    space = Space(data, raw)
    end = len(raw)
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
    return space
