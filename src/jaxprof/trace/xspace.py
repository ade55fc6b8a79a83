"""The XSpace protobuf that JAX's profiler writes (`*.xplane.pb`): planes, lines, events, and their metadata.

Planes, lines and metadata are indexed first, in one scan that skips the events; a line's events are decoded on request,
all at once, into columns. A profile holds a million small messages of the same few fields: one NumPy step reads the
same field of all of them. Field numbers are those of tsl/profiler/protobuf/xplane.proto. The file is only read, never
written.
"""

from __future__ import annotations

import mmap
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from jaxprof.base.errors import FileRefusedError, HloError, system_words
from jaxprof.base.limits import LINES, NAMES, PLANES, Limit
from jaxprof.base.values import frozen
from jaxprof.hlo.text.wire import DELIMITED, LONGEST_VARINT, Blob, Message, TruncatedError, fields, varint

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]
PADDING = 32
"""Number of zero bytes that follow the file in memory, so that a number at its very end can be read without a check."""
Value = int | float | str | bytes

PLANE_NAME, PLANE_LINES, PLANE_EVENT_METADATA, PLANE_STAT_METADATA, PLANE_STATS = 2, 3, 4, 5, 6
_WHAT = {
    PLANE_LINES: "the rest of its events, and all names",
    PLANE_EVENT_METADATA: "the names of some events",
    PLANE_STAT_METADATA: "the names of some statistics",
}
"""What is lost if a plane is truncated in that field; fields come in the order of their numbers."""
STAT_ID, STAT_DOUBLE, STAT_UINT64, STAT_INT64, STAT_STRING, STAT_BYTES, STAT_REFERENCE = 1, 2, 3, 4, 5, 6, 7


HEAD = 32
"""Upper bound of the bytes of a field's tag and length, and of a number that begins at the last byte of a part."""
_PART = 1 << 20
"""Bytes of a file that are read at once."""


class FileBytes:
    """The bytes of a file at the positions that they have in it; only those parts take memory that were asked
    for and not given back. A file that is mapped instead would end the process if somebody truncates it."""

    def __init__(self, file: BinaryIO, size: int, name: str) -> None:
        """Keep `file` open as long as this lives; `name` is for messages. Raises OSError if there is no room for it."""
        self._file, self._name = file, name
        weakref.finalize(self, file.close)
        private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
        self.blob = mmap.mmap(-1, size + PADDING, **private)
        self._room = memoryview(self.blob)[:size]
        self._loaded = bytearray(size // _PART + 1)

    def read(self, size: int) -> bytes:
        """Return the first bytes, or all if there are fewer. Raises FileRefusedError."""
        self.load(0, size)
        return bytes(self._room[:size])

    def load(self, begin: int, end: int) -> None:
        """Read what is not there between two positions. Raises FileRefusedError."""
        for part in range(begin // _PART, min((end - 1) // _PART + 1, len(self._loaded))):
            if not self._loaded[part]:
                try:
                    self._file.seek(part * _PART)
                    self._file.readinto(self._room[part * _PART : (part + 1) * _PART])  # type: ignore[attr-defined]
                except OSError as error:
                    raise FileRefusedError(f"{self._name} cannot be read: {system_words(error)}") from error
                self._loaded[part] = True

    def release(self, begin: int, end: int) -> None:
        """Give back the memory of whole parts between two positions."""
        first, last = -(-begin // _PART), end // _PART
        if first < last and hasattr(mmap, "MADV_DONTNEED"):
            self.blob.madvise(mmap.MADV_DONTNEED, first * _PART, (last - first) * _PART)
            self._loaded[first:last] = bytes(last - first)


@frozen
class EventMetadata:
    """Facts that events of one name share. On TPU and GPU, `stats` holds facts of the HLO."""

    name: str
    display_name: str
    stats: dict[str, Value]


def words(data: Bytes) -> NDArray[np.uint64]:
    """Return the eight bytes from each position on as a number, without a copy. To read one takes as long as to read
    eight single bytes, because it is not aligned."""
    return np.ndarray((len(data) - 7,), "<u8", data, 0, (1,))


_TOPS, _ONES = np.uint64(0x8080808080808080), np.uint64(0x0101010101010101)
_HALVES = ((0x007F007F007F007F, 7, 1), (0x00003FFF00003FFF, 14, 2), (0x0FFFFFFF, 28, 4))
"""Each step moves every second group of bits beside the one before it: groups of 7, then of 14, then of 28 bits."""


def varints(data: Bytes, at: Positions) -> tuple[NDArray[np.uint64], Positions]:
    """Return the varints that begin at `at`, and the positions after them. Both have the shape of `at`.

    `data` ends with `PADDING` more bytes.
    """
    byte = data[at]
    if byte.max(initial=0) < 0x80:  # most numbers of a profile are one byte long
        return byte.astype(np.uint64), at + 1
    values = words(data)[at]
    ends = ~values & _TOPS
    bits = ends ^ (ends - np.uint64(1))  # all bits up to the end of the number, or all of them
    values &= bits & ~_TOPS
    for mask, width, gap in _HALVES:
        values = values & np.uint64(mask) | values >> np.uint64(gap) & np.uint64(mask << width)
    after: Positions = at + ((bits & _ONES) * _ONES >> np.uint64(56)).astype(np.int64)
    pending = np.flatnonzero(ends == 0)
    for shift in range(56, 7 * LONGEST_VARINT, 7):  # of negative numbers
        byte = data[after[pending]]
        values[pending] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        after[pending] += 1
        pending = pending[byte >= 0x80]
    return values, after


def fields_before_cut(data: Blob, begin: int, end: int) -> Iterator[tuple[int, int, int, int, bool]]:
    """Yield fields as `fields` does, for a message that may have lost its end; the last field gives the part that is
    there.

    The fifth value says whether the field is complete. Raises TruncatedError if even the field's head is missing.
    """
    at = begin
    try:
        for number, kind, content, after in fields(data, begin, end):
            yield number, kind, content, after, True
            at = after
    except TruncatedError:
        key, content = varint(data, at)
        if not key >> 3 or key & 7 != DELIMITED:
            raise
        length, content = varint(data, content)
        if not content < end < content + length:
            raise
        yield key >> 3, DELIMITED, content, end, False


def stats_of(messages: Iterable[Message], names: Mapping[int, str]) -> dict[str, Value]:
    """Return XStats by name, with references resolved; those without a name or a value are left out."""
    values: dict[str, Value] = {}
    for stat in messages:
        name, value = names.get(stat.number(STAT_ID), ""), _value(stat, names)
        if name and value is not None:
            values[name] = value
    return values


def _value(stat: Message, names: Mapping[int, str]) -> Value | None:
    if STAT_DOUBLE in stat:
        return next(iter(stat.floats(STAT_DOUBLE, "d")), None)
    if STAT_UINT64 in stat:
        return stat.number(STAT_UINT64) % (1 << 64)
    if STAT_INT64 in stat:
        return stat.number(STAT_INT64)
    if STAT_STRING in stat:
        return stat.text(STAT_STRING)
    if STAT_BYTES in stat:
        return stat.octets(STAT_BYTES)
    return names.get(stat.number(STAT_REFERENCE), "") if STAT_REFERENCE in stat else None


class Plane:
    """One source of events: the host, a device, or a collection of metadata."""

    def __init__(self, space: Space, begin: int, end: int) -> None:
        """Read the file from `begin` to `end`; the last bytes may be missing."""
        self.space = space
        self.size = end - begin
        """Size in the file, in bytes."""
        self.name = ""
        self.cut = ""
        """What the plane lacks, if it was truncated or is damaged; else empty."""
        self.lines: list[tuple[int, int]] = []
        """Bounds of each line."""
        self._event_metadata: list[tuple[int, int]] = []
        stat_metadata: list[tuple[int, int]] = []
        stats: list[tuple[int, int]] = []
        kept = {
            PLANE_LINES: self.lines,
            PLANE_EVENT_METADATA: self._event_metadata,
            PLANE_STAT_METADATA: stat_metadata,
            PLANE_STATS: stats,
        }
        space.load(begin, begin + HEAD)
        try:
            for number, kind, content, after, whole in fields_before_cut(space.blob, begin, end):
                space.load(after, after + HEAD)
                if not whole:
                    self.cut = _WHAT.get(number, "its end")
                if kind == DELIMITED and number == PLANE_NAME and whole:
                    self.name = space.text(content, after)
                elif kind == DELIMITED and number in kept and (whole or number == PLANE_LINES):
                    space.count(LINES if number == PLANE_LINES else NAMES)
                    kept[number].append((content, after))
        except (TruncatedError, IndexError):
            self.cut = "its end"
        self.stat_names: dict[int, str] = {}
        for bounds in stat_metadata:
            try:
                entry = space.message(bounds)
                if 2 in entry:
                    self.stat_names[entry.number(1)] = entry.message(2).text(2)
            except HloError:
                self.cut = self.cut or "the name of a statistic"
        self._stats = stats

    @property
    def holds_something(self) -> bool:
        """Whether the plane has lines or metadata."""
        return bool(self.lines or self._event_metadata)

    @property
    def lost_names(self) -> bool:
        """Whether the plane has events without names, because the names came after the truncation."""
        return bool(self.cut and self.lines and not self._event_metadata)

    @cached_property
    def stats(self) -> dict[str, Value]:
        """Statistics of the plane, e.g. `clock_rate`, `memory_bandwidth` of a GPU; empty if they are damaged."""
        try:
            return stats_of(map(self.space.message, self._stats), self.stat_names)
        except HloError as error:
            self.space.problems.append(f"{self.name}: its properties cannot be read: {error}")
            return {}

    def event_name(self, key: int) -> str:
        """Return the name of events with this metadata; its number if it has none."""
        event = self.event_metadata.get(key)
        return (event.display_name or event.name) if event is not None else f"event {key}"

    @cached_property
    def event_metadata(self) -> dict[int, EventMetadata]:
        """Event metadata by id, which in old GPU files is the program id. Damaged metadata is left out and named in
        `problems`."""
        by_id = {}
        for bounds in self._event_metadata:
            try:
                entry = self.space.message(bounds)
                if 2 not in entry:
                    continue
                key, value = entry.number(1), entry.message(2)
                stats = stats_of(value.messages(5), self.stat_names)
                by_id[key] = EventMetadata(value.text(2), value.text(4), stats)
            except HloError as error:
                self.space.problems.append(f"{self.name}: the name of some events cannot be read: {error}")
        return by_id

    def flags_of(self, test: Callable[[str], object]) -> NDArray[np.bool_]:
        """Return which metadata ids have events with a name that passes the test; the last flag is False, for all
        higher ids."""
        ids = [key for key in self.event_metadata if 0 <= key < NAMES.most and test(self.event_name(key))]
        flags = np.zeros(max(ids, default=-1) + 2, np.bool_)
        flags[ids] = True
        return flags

    def stat_ids(self, *names: str) -> dict[int, str]:
        """Return the ids under which this plane writes statistics of these names."""
        return {key: name for key, name in self.stat_names.items() if name in names}


SPACE_PLANES, SPACE_ERRORS, SPACE_WARNINGS, SPACE_HOSTS = 1, 2, 3, 4
_PLANE_NAME = re.compile(r"/|#|Task Environment$")
"""Beginnings of plane names: `/host:CPU`, `/device:GPU:0`, `#Chip0#...`."""


@dataclass
class Space:
    """A whole file, and what was counted and could not be read of it."""

    blob: Blob
    file: FileBytes | None = None
    """The file whose parts `blob` has; None if all of it is there."""
    planes: list[Plane] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Descriptions of what could not be read."""
    texts: list[str] = field(default_factory=list)
    """Texts in the statistics of events, each once."""
    _texts: dict[bytes, int] = field(default_factory=dict)
    _left: dict[str, int] = field(default_factory=dict)

    @cached_property
    def data(self) -> Bytes:
        """The file in a form that gives many bytes at once, as `blob` gives single ones."""
        return np.frombuffer(self.blob, np.uint8)

    def load(self, begin: int, end: int) -> None:
        """See to it that the bytes between two positions are in `blob`. Raises FileRefusedError."""
        if self.file is not None:
            self.file.load(begin, end)

    def release(self, begin: int, end: int) -> None:
        """Give back the memory between two positions, until it is loaded again."""
        if self.file is not None:
            self.file.release(begin, end)

    def count(self, limit: Limit, more: int = 1) -> None:
        """Count items of one kind. Raises FileRefusedError beyond the limit."""
        left = self._left.get(limit.name)
        self._left[limit.name] = left = (limit.most if left is None else left) - more
        if left < 0:
            raise FileRefusedError(f"the profile has {limit.words}", f"Record fewer steps. {limit.hint}")

    def text(self, begin: int, end: int) -> str:
        """Return the UTF-8 text between two positions."""
        self.load(begin, end)
        return bytes(self.blob[begin:end]).decode("utf-8", "replace")

    def number_of_text(self, begin: int, end: int) -> int:
        """Return the index in `texts` of the text between two positions."""
        number = self._texts.setdefault(content := bytes(self.blob[begin:end]), len(self.texts))
        if number == len(self.texts):
            self.texts.append(content.decode("utf-8", "replace"))
        return number

    def message(self, bounds: tuple[int, int]) -> Message:
        """Return the message between two positions. Raises HloError if it is damaged."""
        self.load(*bounds)
        return Message(bytes(self.blob[slice(*bounds)]))


def parse_xspace(raw: bytes | FileBytes, name: str) -> Space:
    """Return the index of an XSpace; `name` is for messages. Raises FileRefusedError if it is empty or no XSpace.

    A truncated file gives its whole planes, and says so in `problems`.
    """
    space = Space(raw + bytes(PADDING)) if isinstance(raw, bytes) else Space(raw.blob, raw)
    end = len(space.blob) - PADDING
    if not end:
        raise FileRefusedError(f"{name} is empty (0 bytes)", "The profiler did not finish writing it: record it again.")
    at = 0
    space.load(0, HEAD)
    try:
        for number, kind, content, after, whole in fields_before_cut(space.blob, 0, end):
            space.load(after, after + HEAD)
            if kind != DELIMITED or number > SPACE_HOSTS:
                raise TruncatedError(f"field {number} is not a field of an XSpace")
            space.count(PLANES)
            if number == SPACE_PLANES:
                plane = Plane(space, content, after)
                if not whole:
                    plane.cut = plane.cut or "its end"
                if plane.cut and not (_PLANE_NAME.match(plane.name) and plane.holds_something):
                    raise TruncatedError("nothing is left of a plane")
                space.planes.append(plane)
                if plane.cut:
                    space.problems.append(f"{plane.name} is truncated or damaged: it lacks {plane.cut}")
            elif whole and number != SPACE_HOSTS:
                (space.errors if number == SPACE_ERRORS else space.warnings).append(space.text(content, after))
            if not whole:
                raise TruncatedError("what comes next is longer than the file")
            at = after
    except (TruncatedError, IndexError) as error:
        if not any(plane.name for plane in space.planes):
            raise FileRefusedError(
                f"{name} is not an XSpace profile, or it is damaged: {error}",
                "It should be the `.xplane.pb` that jax.profiler writes under plugins/profile/<run>/.",
            ) from error
        space.problems.append(f"the file is damaged or truncated after byte {at} of {end}: {error}")
    if not any(_PLANE_NAME.match(plane.name) for plane in space.planes):
        raise FileRefusedError(
            f"{name} is an XSpace, but has no plane of JAX's profiler",
            "Another tool may have written it. It should be the `.xplane.pb` under plugins/profile/<run>/.",
        )
    return space
