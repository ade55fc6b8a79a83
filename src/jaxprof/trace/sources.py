"""Reading a profile from disk: files are told by what is in them, not by their names. They are only read."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from jaxprof.errors import FileRefusedError
from jaxprof.trace.chrome import parse_chrome
from jaxprof.trace.folders import ProfileRun, choose
from jaxprof.trace.lanes import lanes_of
from jaxprof.trace.model import Trace
from jaxprof.trace.together import together
from jaxprof.trace.varints import PADDING
from jaxprof.trace.xspace import parse_xspace

LARGEST_BYTES: Final = 2 << 30
"""A larger profile is refused: its events do not fit into the memory of most machines."""
_GZIP: Final = b"\x1f\x8b"
_CHUNK: Final = 1 << 22


def read_profile(path: Path, run: str = "", hosts: Sequence[str] = ()) -> Trace:
    """The trace of what was chosen at `path`, hosts joined on one clock. Raises FileRefusedError and UsageError."""
    return read_chosen(choose(path, run, hosts))


def read_chosen(chosen: ProfileRun, check: Callable[[], None] = lambda: None) -> Trace:
    """The trace of a recording. `check` is called between the files, and may raise.

    Of several hosts, one that cannot be read is left out, and named in `problems`. Raises FileRefusedError.
    """
    traces: list[tuple[str, Trace]] = []
    problems: list[str] = []
    for one in chosen.hosts:
        check()
        try:
            traces.append((one.host, read_file(one.path)))
        except FileRefusedError as error:
            if len(chosen.hosts) == 1:
                raise
            problems.append(error.what)
    if not traces:
        raise FileRefusedError(f"no host's profile of run {chosen.name} can be read: {problems[0]}")
    trace = together(traces)
    trace.problems += problems
    return trace


def read_file(path: Path) -> Trace:
    """The trace in one file, whatever it is called. Raises FileRefusedError."""
    try:
        if not path.is_file():
            raise FileRefusedError(f"{path} is no file that can be read")
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            raise FileRefusedError(f"{path} is larger than {LARGEST_BYTES >> 30} GiB", "Record fewer steps.")
        raw = bytearray(size + PADDING)
        with path.open("rb") as opened:
            size = opened.readinto(memoryview(raw)[:size])
    except OSError as error:
        raise FileRefusedError(f"{path} cannot be read: {error.strerror or error}") from error
    problem, length = "", size
    if raw.startswith(_GZIP):
        raw, problem = _unpacked(raw[:size], path)
        length = len(raw)
        raw += bytes(PADDING)
    if raw[:64].lstrip().startswith((b"{", b"[")):
        trace = parse_chrome(raw[:length], str(path))
    else:
        trace = lanes_of(parse_xspace(raw, str(path), length))
    trace.sizes[str(path)] = size
    if problem:
        trace.problems.append(problem)
    return trace


def _unpacked(raw: bytearray, path: Path) -> tuple[bytearray, str]:
    """What is in a gzip file, as far as it goes, and what is wrong with it."""
    pieces: list[bytes] = []
    total = 0
    unpacker = zlib.decompressobj(wbits=31)
    data = memoryview(raw)
    try:
        while data and total <= LARGEST_BYTES:
            piece = unpacker.decompress(unpacker.unconsumed_tail or data[:_CHUNK], _CHUNK * 4)
            if not unpacker.unconsumed_tail:
                data = data[_CHUNK:]
            pieces.append(piece)
            total += len(piece)
            if unpacker.eof:
                break
    except (zlib.error, gzip.BadGzipFile) as error:
        return bytearray().join(pieces), f"{path} is damaged as a gzip file: {error}"
    if total > LARGEST_BYTES:
        raise FileRefusedError(f"{path} unpacks to more than {LARGEST_BYTES >> 30} GiB", "Record fewer steps.")
    return bytearray().join(pieces), "" if unpacker.eof else f"{path} is cut off: the gzip file has no end"
