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

from jaxprof.errors import FileRefusedError
from jaxprof.trace.line import STAT_BYTES, STAT_DOUBLE, STAT_ID, STAT_REFERENCE, STAT_UINT64, Blob, Line
from jaxprof.trace.varints import (
    DELIMITED,
    FIXED64,
    VARINT,
    Bytes,
    TruncatedError,
    fields,
    padded,
    signed,
    varint,
)

Value = int | float | str | bytes

SPACE_PLANES, SPACE_ERRORS, SPACE_WARNINGS, SPACE_HOSTS = 1, 2, 3, 4
PLANE_NAME, PLANE_LINES, PLANE_EVENT_METADATA, PLANE_STAT_METADATA, PLANE_STATS = 2, 3, 4, 5, 6
_PLANE_NAME = re.compile(r"/|#|Task Environment$")
"""How planes are called: `/host:CPU`, `/device:GPU:0`, `#Chip0#...`."""


@dataclass(frozen=True, slots=True)
class EventMetadata:
    """What events of one name share. `stats` is where on TPU and GPU the HLO's own facts are."""

    id: int
    name: str
    display_name: str
    stats: dict[str, Value]


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
