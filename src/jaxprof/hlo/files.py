"""From a file, or its bytes, to modules: HLO text or proto, also compressed; anything else is named and refused."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jaxprof.hlo import parse, proto
from jaxprof.hlo.errors import HloError

if TYPE_CHECKING:
    import os

    from jaxprof.hlo.model import Module

_MAGIC: Final[tuple[tuple[bytes, str], ...]] = (
    (b"ML\xefR", "MLIR bytecode (StableHLO, most likely)"),
    (b"BC\xc0\xde", "LLVM bitcode"),
    (b"\x7fELF", "an ELF binary"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\x89PNG", "a PNG picture"),
    (b"%PDF", "a PDF document"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
)
_GZIP: Final = b"\x1f\x8b"
_LARGEST: Final = 4 << 30
"""Bytes that a compressed file may hold: a small file that never ends is refused."""


def load(path: str | os.PathLike[str]) -> list[Module]:
    """The modules in the file at `path`. Raises HloError where it cannot be read, or is not HLO."""
    try:
        return from_bytes(_read(path))
    except HloError as error:
        raise HloError(f"{path}: {error.what}", error.mend) from None


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise HloError(error.strerror or str(error)) from None


def from_bytes(data: bytes) -> list[Module]:
    """The modules in `data`: HLO text in UTF-8 or UTF-16, an HloProto or HloModuleProto, each also under gzip."""
    if data.startswith(_GZIP):
        data = _decompressed(data)
    if not data:
        raise HloError("the file is empty")
    for magic, what in _MAGIC:
        if data.startswith(magic):
            raise HloError(f"this is {what}, not HLO", "Give HLO text or an HLO proto.")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return parse.modules(data.decode("utf-16", "replace"))
    if controls := _control_characters(data):
        try:
            return [proto.module(data)]
        except HloError as error:
            if controls > 16:
                mend = "Give HLO text, an HloProto or an HloModuleProto."
                raise HloError(f"this is a binary file and no HLO proto: {error.what}", mend) from None
    text = data.decode("utf-8-sig", "replace")
    del data  # as much memory again as the text
    return parse.modules(text)


def _control_characters(data: bytes) -> int:
    """How many of the first octets no text has. A proto always has some; a text with a damaged spot has few."""
    return sum(octet < 9 or 13 < octet < 27 or 27 < octet < 32 for octet in data[:4096])


def _decompressed(data: bytes) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    try:
        found = stream.decompress(data, _LARGEST)
    except zlib.error as error:
        raise HloError(f"the gzip archive is broken: {error}") from None
    if stream.unconsumed_tail:
        raise HloError(f"the gzip archive holds more than {_LARGEST >> 30} GiB")
    if not stream.eof:
        raise HloError("the gzip archive is cut off", "Copy the file again.")
    return found
