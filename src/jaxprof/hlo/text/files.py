"""Read HLO text from a file: text or proto, also compressed; anything else is named and refused."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from jaxprof.base.errors import FileRefusedError, HloError, system_words
from jaxprof.base.files import open_regular, read_whole, unpacked
from jaxprof.hlo.text import proto
from jaxprof.hlo.text.parse import begins_like_hlo

if TYPE_CHECKING:
    import os

_MAGIC: tuple[tuple[bytes, str], ...] = (
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
_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_HEAD_BYTES = 1 << 16


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the HLO text in the file at `path`, in UTF-8 or UTF-16, also packed by gzip; an HloProto or HloModuleProto
    is written out as text. Raises HloError if the file cannot be read, or is neither; whether a text is HLO shows only
    when it is parsed."""
    try:
        return _text_of(read_whole(path))
    except OSError as error:
        raise HloError(f"{path}: {system_words(error)}") from None
    except FileRefusedError as error:
        raise HloError(f"{path}: {error.what}", error.hint) from None


def _text_of(data: bytes) -> str:
    if data.startswith(_GZIP):
        data = _decompressed(data)
    if not data:
        raise HloError("the file is empty")
    for magic, what in _MAGIC:
        if data.startswith(magic):
            raise HloError(f"this is {what}, not HLO", "Give HLO text or an HLO proto.")
    if data.startswith(_UTF_16):
        return data.decode("utf-16", "replace")
    # Of the bytes that cannot occur in text a proto always has some, and a damaged text has few.
    if controls := sum(octet < 9 or 13 < octet < 27 or 27 < octet < 32 for octet in data[:4096]):
        try:
            return proto.text(data)
        except proto.BeyondLimitError:
            raise
        except HloError as error:
            if controls > 16:
                hint = "Give HLO text, an HloProto or an HloModuleProto."
                raise HloError(f"this is a binary file, but not an HLO proto: {error.what}", hint) from None
    return data.decode("utf-8-sig", "replace")


def holds_hlo(path: str | os.PathLike[str]) -> bool:
    """Return whether the file at `path` is HLO, judged by its beginning: a text with a `HloModule` line, or the proto
    of a module. The cost does not depend on its size. False if it cannot be read."""
    try:
        with open_regular(path) as opened:
            head = opened.read(_HEAD_BYTES)
    except OSError:
        return False
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD_BYTES)
        except zlib.error:
            return False
    if head.startswith(_UTF_16):
        head = head.decode("utf-16", "replace").encode()
    return begins_like_hlo(head)


def _decompressed(data: bytes) -> bytes:
    try:
        return b"".join(unpacked(data, "the gzip archive"))
    except zlib.error as error:
        raise HloError(f"the gzip archive is damaged: {error}") from None
    except EOFError:
        raise HloError("the gzip archive is truncated", "Copy the file again.") from None
    except FileRefusedError as error:
        raise HloError(error.what, error.hint) from None
