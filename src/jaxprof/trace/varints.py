"""Protobuf varints and fields, for many records at once.

A trace holds a million small messages of the same few fields. Reading them one by one costs microseconds each in
Python; here one NumPy step reads the same field of all of them, so the cost is that of a few traversals of arrays. Wire
format: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10
PADDING = 16
"""Number of zero bytes that must follow the data, so that a varint at its very end can be read without a check."""


class TruncatedError(ValueError):
    """Raised if a message claims to be longer than the data."""


def padded(data: bytes | bytearray) -> Bytes:
    """Return `data` as an array, followed by `PADDING` zero bytes."""
    raw = np.empty(len(data) + PADDING, np.uint8)
    raw[: len(data)] = np.frombuffer(data, np.uint8)
    raw[len(data) :] = 0
    return raw


def varints(data: Bytes, at: Positions) -> tuple[NDArray[np.uint64], Positions]:
    """Return the varints that begin at `at`, and the positions after them. Both have the shape of `at`."""
    byte = data[at]
    values = (byte & 0x7F).astype(np.uint64)
    after = at + 1
    pending = np.flatnonzero(byte >= 0x80)  # most numbers of a profile are one byte long
    for shift in range(7, 7 * LONGEST_VARINT, 7):
        if not len(pending):
            break
        byte = data[after[pending]]
        values[pending] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        after[pending] += 1
        pending = pending[byte >= 0x80]
    return values, after


def varint(data: Bytes, at: int) -> tuple[int, int]:
    """Return the varint at `at`, and the position after it."""
    value, shift = 0, 0
    while True:
        byte = int(data[at])
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift >= 7 * LONGEST_VARINT:
            raise TruncatedError("a number has no end")


def fields(data: Bytes, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the fields of the message in `data[begin:end]`: number, wire type, and start and end of the content.

    The content of a varint field is the varint itself. Raises TruncatedError.
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
        elif kind == FIXED64:
            after = at + 8
        elif kind == FIXED32:
            after = at + 4
        else:
            raise TruncatedError(f"wire type {kind} at byte {at}")
        if after > end or number == 0:
            raise TruncatedError(f"a field at byte {at} is longer than the message around it")
        yield number, kind, at, after
        at = after


def fields_before_cut(data: Bytes, begin: int, end: int) -> Iterator[tuple[int, int, int, int, bool]]:
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
