"""Open files from outside: regular files only, and no more of them than the limits allow. Split what arrives in blocks
into lines. Write files whole.

A named pipe would be waited for, and a device read, for ever.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import select
import stat
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from jaxprof.base.errors import FileRefusedError, StorageError, UsageError, system_words
from jaxprof.base.limits import FILE, UNPACKED

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_PIECE = 1 << 24  # bytes of an archive that are unpacked at once
_LARGEST_SOURCE = 1 << 24  # bytes; what is larger was not written by a person
MOST_SOURCES = 200
"""Number of source files whose digest a run keeps."""
_INSTALLED = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3\.\d+[/\\]|^<frozen "
    r"|[/\\]jaxprof[/\\](?:engine|measure|program|recorder)[/\\]"
)
"""Files of installed packages, of Python itself, and of jaxprof where it compiles or records."""
_EXAMPLES = re.compile(r"[/\\]jaxprof[/\\]workloads[/\\]catalogue[/\\]")
PARTIAL = ".partial"
PRIVATE = 0o600


@lru_cache(maxsize=4096)
def is_own(file: str) -> bool:
    """Return whether the source file is the user's rather than an installed package's. A notebook cell is the user's;
    so are the workloads of jaxprof, whose lines are what there is to see of them."""
    return _INSTALLED.search(file) is None or _EXAMPLES.search(file) is not None


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open the file at `path` for reading. Never waits for anybody. Raises OSError, also if it is no regular file."""
    _refuse_others(os.stat(path))  # opening a device may already have an effect
    descriptor = os.open(path, _FLAGS)
    try:
        _refuse_others(os.fstat(descriptor))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _refuse_others(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        what = next((word for holds, word in _KINDS if holds(status.st_mode)), "something else")
        raise OSError(errno.EINVAL, f"it is {what}, not a regular file")


def read_source(path: str | os.PathLike[str]) -> tuple[bytes, str]:
    """Return a source file's content and SHA-256 in hex; both empty if it is unreadable, or too large for source."""
    import hashlib

    try:
        with open_regular(path) as file:
            content = file.read(_LARGEST_SOURCE + 1)
    except (OSError, ValueError):
        return b"", ""
    return (content, hashlib.sha256(content).hexdigest()) if len(content) <= _LARGEST_SOURCE else (b"", "")


def digests_of_sources(names: Iterable[str], began_seconds: float) -> dict[str, str]:
    """Return the digests of the Python files among `names`, by path. A file that was changed after `began_seconds`
    (Unix time) is left out, because it may not be what ran."""
    digests: dict[str, str] = {}
    for name in sorted({name for name in names if name.endswith(".py")})[:MOST_SOURCES]:
        with contextlib.suppress(OSError, ValueError):
            if os.stat(name).st_mtime <= began_seconds and (digest := read_source(name)[1]):
                digests[name] = digest
    return digests


def with_home(path: str | os.PathLike[str]) -> Path:
    """Return the path with the home folder for a leading `~` or `~user`. For a user that does not exist the path stays
    as it is, and names no file; `Path.expanduser` would raise a RuntimeError."""
    return Path(os.path.expanduser(path))


def private_folder(path: Path) -> None:
    """Make a folder for its owner alone, and missing ones above, which `mkdir` would open to all. Raises OSError."""
    if not path.is_dir():
        if path.parent != path:
            private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


@contextlib.contextmanager
def replace_file(path: Path, mode: int = 0o666, *, only_regular: bool = False) -> Iterator[Path]:
    """Yield a new file beside `path`, which replaces it at the end. After an error, such as a full disk, the former
    file is still there, and nothing else. What is no regular file (`/dev/stdout`) is written in place.

    `only_regular`: for a folder that somebody else may have filled. What is no regular file is then refused with an
    OSError, and a link is replaced, not followed. The new file has a name that cannot have been taken before, in a
    folder that others write to, and the `mode` as far as the user's umask allows.
    """
    if path.exists() and not path.is_file():
        if only_regular:  # a named pipe that somebody put there would be waited for
            _refuse_others(path.stat())
        yield path
        return
    target = path if only_regular else Path(os.path.realpath(path))
    fresh = target.with_name(f".{target.name[:50]}.{os.urandom(4).hex()}{PARTIAL}")
    try:
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        yield fresh
        fresh.replace(target)
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)


def refuse_folder(out: Path, example: str = "session.jaxprof") -> None:
    """Raises UsageError if `out` is a folder in place of a file such as `example`."""
    if out.is_dir():
        raise UsageError(f"{out} is a directory", f"Name a file in it: {out / example}")


@contextlib.contextmanager
def write_whole(out: Path) -> Iterator[Path]:
    """Yield what `replace_file` does for a file that the user named. Raises StorageError if it cannot be written."""
    try:
        with replace_file(out) as file:
            yield file
    except OSError as error:
        raise StorageError(f"{out} cannot be written: {system_words(error)}", "Name another place.") from error


def write_pieces(out: Path, pieces: Iterable[str]) -> None:
    """Write a text to a file that the user named, compressed if its name ends with `.gz`. Raises StorageError."""
    import gzip

    with write_whole(out) as whole, whole.open("wb") as raw:
        packed = gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0) if out.suffix == ".gz" else raw
        with packed as file:
            file.writelines(piece.encode() for piece in pieces)


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a regular file. Raises OSError, and FileRefusedError beyond the limit `file`."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size  # `read` allocates all that it may read; sizes in /proc are 0
        data = file.read(FILE.most + 1) if not 0 < size <= FILE.most else file.read(size + 1)
    if len(data) > FILE.most:
        raise FileRefusedError(f"{os.fspath(path)} has {FILE.words}", FILE.hint)
    return data


def unpack(data: bytes | bytearray | memoryview, what: str, wbits: int = 31) -> Iterator[bytes]:
    """Yield what `data`, compressed by gzip (or zlib, with `wbits=15`), unpacks to; `what` is for the error.

    Raises FileRefusedError beyond the limit `unpacked`, zlib.error where the data is damaged, and EOFError where it is
    truncated: after the pieces that can be read.
    """
    stream = zlib.decompressobj(wbits)
    rest, left = memoryview(data), UNPACKED.most
    while not stream.eof:
        taken = stream.unconsumed_tail or rest[:_PIECE]
        if not stream.unconsumed_tail:
            rest = rest[_PIECE:]
        if not len(taken):
            raise EOFError("the compressed data is truncated")
        piece = stream.decompress(taken, min(_PIECE, left + 1))
        if len(piece) > left:
            raise FileRefusedError(f"{what} unpacks to {UNPACKED.words}", UNPACKED.hint)
        left -= len(piece)
        if piece:
            yield piece


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data` as soon as the descriptor takes it; it may be non-blocking. Raises OSError."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


class LineBuffer:
    """Collects the pieces of a line until its end arrives, in time linear in what arrives, however long a line is."""

    def __init__(self, longest: int, *, cut: bool = False) -> None:
        """Leave out a line of more than `longest` bytes; with `cut`, return what has arrived of it as a line."""
        self._longest, self._cut = longest, cut
        self._pieces: list[bytes] = []
        self._size = 0
        self._skipping = False
        self._left_out = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes, without their line breaks."""
        lines = data.split(b"\n")
        rest = lines.pop()  # not `*lines, rest =`: that copies the list, of millions where a file is empty lines
        if lines:
            lines[0] = self._take_line(lines[0])
            if self._skipping:
                del lines[0]
                self._skipping = False
            if not self._cut and len(max(lines, key=len, default=b"")) > self._longest:
                whole = [line for line in lines if len(line) <= self._longest]
                self._left_out += len(lines) - len(whole)
                lines = whole
        if not self._skipping:
            self._pieces.append(rest)
            self._size += len(rest)
        if self._size > self._longest:
            if self._cut:
                lines.append(self._take_line(b""))
            else:
                self._pieces, self._size, self._skipping = [], 0, True
                self._left_out += 1
        return lines

    def end(self) -> bytes:
        """Return the beginning of a line that has no end."""
        return self._take_line(b"")

    def take_left_out(self) -> int:
        """Return how many lines were left out since the last call."""
        left_out, self._left_out = self._left_out, 0
        return left_out

    def _take_line(self, last: bytes) -> bytes:
        line = b"".join((*self._pieces, last))
        self._pieces, self._size = [], 0
        return line
