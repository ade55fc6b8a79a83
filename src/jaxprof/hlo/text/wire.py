"""Decode protocol buffers without a schema: enough to read a known message by its field numbers.

The encoding is https://protobuf.dev/programming-guides/encoding. Numbers and text are read on request.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator

from jaxprof.base.errors import HloError

Blob = bytes | bytearray | mmap.mmap
VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10


class TruncatedError(ValueError):
    """Raised if a message claims to be longer than the data."""


def varint(data: Blob, at: int) -> tuple[int, int]:
    """Return the varint at `at`, and the position after it. Raises TruncatedError, and IndexError past the end."""
    value = data[at]
    if value < 0x80:
        return value, at + 1  # most numbers are one byte long
    value &= 0x7F
    for octets in range(1, LONGEST_VARINT):
        octet = data[at + octets]
        value |= (octet & 0x7F) << 7 * octets
        if octet < 0x80:
            return value, at + octets + 1
    raise TruncatedError("a number has no end")


def fields(data: Blob, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the fields of the message in `data[begin:end]`: number, wire type, and start and end of the content.

    The content of a varint field is the varint itself. Raises TruncatedError, and IndexError past the end.
    """
    at = begin
    while at < end:
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == DELIMITED:
            length, at = varint(data, at)
            after = at + length
        elif kind == VARINT:
            _, after = varint(data, at)
        elif kind in (FIXED64, FIXED32):
            after = at + (8 if kind == FIXED64 else 4)
        else:
            raise TruncatedError(f"wire type {kind} at byte {at}")
        if after > end or number == 0:
            raise TruncatedError(f"a field at byte {at} is longer than the message around it")
        yield number, kind, at, after
        at = after


def to_signed(value: int) -> int:
    """Convert an int64 field; negative numbers are written as their two's complement."""
    return value - (1 << 64) if value >= 1 << 63 else value


class Message:
    """One message: for each field number its values, in order. Absent fields have their default."""

    __slots__ = ("_fields",)

    def __init__(self, data: bytes) -> None:
        """Decode `data`. Raises HloError if it is not a well-formed message."""
        self._fields: dict[int, list[int | bytes]] = {}
        try:
            for number, kind, at, after in fields(data, 0, len(data)):
                value = varint(data, at)[0] if kind == VARINT else data[at:after]
                self._fields.setdefault(number, []).append(value)
        except (TruncatedError, IndexError):
            raise HloError("the protobuf is broken or truncated", "Write the file anew, or use the HLO text.") from None

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def count(self, number: int) -> int:
        """Return how many values the field has."""
        return len(self._fields.get(number, ()))

    def number(self, number: int) -> int:
        """Return the last value of an integer, enumeration or bool field."""
        value = self._fields.get(number, [0])[-1]
        return to_signed(value) if isinstance(value, int) else 0

    def numbers(self, number: int) -> list[int]:
        """Return all values of a repeated integer field, packed or not."""
        numbers: list[int] = []
        for value in self._fields.get(number, ()):
            if isinstance(value, int):
                numbers.append(to_signed(value))
                continue
            at = 0
            try:
                while at < len(value):
                    item, at = varint(value, at)
                    numbers.append(to_signed(item))
            except (ValueError, IndexError):
                raise HloError("the protobuf is broken: a packed list of numbers ends too soon") from None
        return numbers

    def floats(self, number: int, code: str) -> list[float]:
        """Return all values of a repeated field of fixed size, or of bytes that hold such values; `code` is their
        `struct` format (`f`, `d`, `H`)."""
        data = b"".join(self.all_octets(number))
        size = struct.calcsize(code)
        return list(struct.unpack(f"<{len(data) // size}{code}", data[: len(data) // size * size]))

    def octets(self, number: int) -> bytes:
        value = self._fields.get(number, [b""])[-1]
        return value if isinstance(value, bytes) else b""

    def text(self, number: int) -> str:
        """Return a string field. Bytes that are not UTF-8 become U+FFFD."""
        return self.octets(number).decode("utf-8", "replace")

    def all_octets(self, number: int) -> list[bytes]:
        """Return all values of a repeated string, bytes or message field."""
        return [value for value in self._fields.get(number, ()) if isinstance(value, bytes)]

    def texts(self, number: int) -> list[str]:
        return [value.decode("utf-8", "replace") for value in self.all_octets(number)]

    def message(self, number: int) -> Message:
        """Return a message field; the empty message if it is absent. Raises HloError if it is malformed."""
        return Message(self.octets(number))

    def messages(self, number: int) -> list[Message]:
        return [Message(value) for value in self.all_octets(number)]
