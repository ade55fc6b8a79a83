"""Decode protocol buffers without a schema: enough to read a known message by its field numbers.

The encoding is https://protobuf.dev/programming-guides/encoding. Numbers and text are read on request.
"""

from __future__ import annotations

import struct
from typing import Final

from jaxprof.errors import HloError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT: Final = 10


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for _ in range(_LONGEST_VARINT):
        octet = data[at]
        at += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value, at
        shift += 7
    raise ValueError


def signed(value: int) -> int:
    """Convert an int64 field; negative numbers are written as their two's complement."""
    return value - (1 << 64) if value >= 1 << 63 else value


class Message:
    """One message: for each field number its values, in order. Absent fields have their default."""

    __slots__ = ("_fields",)

    def __init__(self, data: bytes) -> None:
        """Decode `data`. Raises HloError if it is not a well-formed message."""
        self._fields: dict[int, list[int | bytes]] = {}
        at, end = 0, len(data)
        try:
            while at < end:
                key, at = _varint(data, at)
                kind = key & 7
                value: int | bytes
                if kind == _VARINT:
                    value, at = _varint(data, at)
                else:
                    if kind == _BYTES:
                        size, at = _varint(data, at)
                    elif kind in (_FIXED64, _FIXED32):
                        size = 8 if kind == _FIXED64 else 4
                    else:
                        raise ValueError
                    value = data[at : at + size]
                    at += size
                if at > end or not key >> 3:
                    raise ValueError
                self._fields.setdefault(key >> 3, []).append(value)
        except (ValueError, IndexError):
            raise HloError("the protobuf is broken or truncated", "Write the file anew, or use the HLO text.") from None

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def count(self, number: int) -> int:
        """Return how many values the field has."""
        return len(self._fields.get(number, ()))

    def number(self, number: int) -> int:
        """Return the last value of an integer, enumeration or bool field."""
        value = self._fields.get(number, [0])[-1]
        return signed(value) if isinstance(value, int) else 0

    def numbers(self, number: int) -> list[int]:
        """Return all values of a repeated integer field, packed or not."""
        numbers: list[int] = []
        for value in self._fields.get(number, ()):
            if isinstance(value, int):
                numbers.append(signed(value))
                continue
            at = 0
            try:
                while at < len(value):
                    item, at = _varint(value, at)
                    numbers.append(signed(item))
            except (ValueError, IndexError):
                raise HloError("the protobuf is broken: a packed list of numbers ends too soon") from None
        return numbers

    def floats(self, number: int, code: str) -> list[float]:
        """Return all values of a repeated field of fixed size; `code` is its `struct` format (`f`, `d`)."""
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
