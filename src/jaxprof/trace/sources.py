"""Read a profile from disk: the `.xplane.pb` that JAX writes, under any name. Files are never written."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from jaxprof.errors import FileRefusedError, system_words
from jaxprof.files import open_regular, unpacked
from jaxprof.limits import FILE
from jaxprof.trace.folders import choose, xplanes_in
from jaxprof.trace.lanes import lanes_of
from jaxprof.trace.model import Trace
from jaxprof.trace.xspace import PADDING, parse_xspace

_GZIP: Final = b"\x1f\x8b"
_CHUNK: Final = 1 << 22
_READ: Final = 0.1
"""Assumed share of reading from disk in the work on a file."""


def read_profile(path: Path) -> Trace:
    """Return the trace of the newest recording at `path`. Raises FileRefusedError."""
    return read_file(choose(path).path)


def _within(advance: Callable[[float], None], before: float, share: float, done: float) -> None:
    """Report the progress of a part that begins at `before` and is a `share` of the whole."""
    advance(before + share * done)


def read_file(path: Path, advance: Callable[[float], None] = lambda share: None) -> Trace:
    """Return the trace in one file of any name. `advance` is called regularly with the share that is done, and may
    raise. Raises FileRefusedError."""
    try:
        with open_regular(path) as opened:
            size = os.fstat(opened.fileno()).st_size
            if size > FILE.most:
                raise FileRefusedError(f"{path} has {FILE.words}", f"Record fewer steps. {FILE.hint}")
            raw = bytearray(size + PADDING)
            size = _filled(opened, memoryview(raw)[:size], partial(_within, advance, 0.0, _READ))
    except OSError as error:
        raise FileRefusedError(f"{path} cannot be read: {system_words(error)}") from error
    problem, length = "", size
    if raw.startswith(_GZIP):
        raw, problem = _unpacked(raw[:size], path)
        advance(_READ)
        length = len(raw)
        raw += bytes(PADDING)
    if raw[:64].lstrip().startswith((b"{", b"[")):
        raise _not_json(path)
    trace = lanes_of(parse_xspace(raw, str(path), length), partial(_within, advance, _READ, 1 - _READ))
    trace.bytes = size
    if problem:
        trace.problems.append(problem)
    return trace


def _not_json(path: Path) -> FileRefusedError:
    """Refuse a Chrome trace, and name the profile that JAX wrote beside it, if it is there."""
    host = path.name.partition(".trace.json")[0]
    try:
        beside = sorted(xplanes_in(path.absolute().parent), key=lambda file: not file.name.startswith(host))
    except OSError:  # a folder that may be entered, but not listed
        beside = []
    return FileRefusedError(
        f"{path} is JSON: jaxprof does not read Chrome traces",
        f"Open {beside[0]}, which is beside it."
        if beside and "trace.json" in path.name
        else "A profile is the .xplane.pb that JAX writes beside a .trace.json.gz.",
    )


def _filled(opened: BinaryIO, room: memoryview, advance: Callable[[float], None]) -> int:
    """Read until the buffer is full or the file ends, and return the number of bytes."""
    at = 0
    while at < len(room) and (read := opened.readinto(room[at : at + _CHUNK])):  # type: ignore[attr-defined]
        at += read
        advance(at / len(room))
    return at


def _unpacked(raw: bytearray, path: Path) -> tuple[bytearray, str]:
    """Return the content of a gzip file, as far as it can be read, and what is wrong with it. Raises
    FileRefusedError."""
    content = bytearray()
    try:
        for piece in unpacked(raw, str(path)):
            content += piece
    except zlib.error as error:
        return content, f"{path} is damaged as a gzip file: {error}"
    except EOFError:
        return content, f"{path} is truncated: the gzip file has no end"
    return content, ""
