"""Read a session's log, whole or while another process writes it. A torn last line is not an error.

A listing of hundreds of sessions decodes only lines of some types, and skips the others.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Generic, TypeVar

from jaxprof.base.errors import FileRefusedError, missing_file, system_words
from jaxprof.base.files import LineBuffer, open_regular
from jaxprof.base.limits import LINE
from jaxprof.base.values import not_collecting
from jaxprof.events import Event, Header
from jaxprof.session.files import EXTENSION, note_of_copy
from jaxprof.session.log.codec import UnknownEvent, decode_header, decode_line, newer_minor

if TYPE_CHECKING:
    from jaxprof.session import Session

S = TypeVar("S", bound="Session")
BLOCK_BYTES = 4 << 20
"""Number of bytes of a file read at a time."""


def load(path: Path, kind: type[S]) -> S:
    """Return the session in the file at `path`, folded into a `kind` (`Session` or a subclass).

    Raises FileRefusedError if it is not a session.
    """
    follower = Follower(path, kind)
    with not_collecting():
        for _ in follower.take():  # not kept: a hundred thousand events in a list cost more than the fold itself
            pass
    follower.finish()
    follower.session.desert(deserted=follower.session.complete or not is_live(path))
    return follower.session


class Follower(Generic[S]):
    """Reads a session file as it grows: `poll` returns the new events, which are folded into `session` already."""

    def __init__(self, path: Path, kind: type[S]) -> None:
        """Read the header. Raises FileRefusedError if the file is not a session."""
        self.path = Path(path)
        self._lines = LineBuffer(LINE.most)
        self._offset: int | None = None
        """Position at which to go on after `rest`; None while the file is open."""
        self._file = _open(self.path)
        self._digest = hashlib.sha256()
        first = self._file.readline(LINE.most)
        self._digest.update(first)
        if not first.strip():
            self._file.close()
            raise FileRefusedError(
                f"{self.path} is empty", "A session file has at least a header line; nothing was recorded in this one."
            )
        try:
            header = decode_header(first, str(self.path))
        except FileRefusedError:
            self._file.close()
            raise
        self.session = kind(header)
        self.session.content = self._digest.hexdigest()
        if newer_minor(header):
            self.session.notice(
                f"written by jaxprof {header.jaxprof} with a newer schema: what this version does not know is left out"
            )

    def poll(self) -> list[Event]:
        return list(self.take())

    def take(self) -> Iterator[Event]:
        """Yield the events since the last call, each folded before it is yielded. Raises FileRefusedError if the file
        was closed by `rest` and cannot be opened again."""
        if self._file.closed and self._offset is not None:
            self._file = _open(self.path)
            self._file.seek(self._offset)
            self._offset = None
        while block := self._file.read(BLOCK_BYTES):
            self._digest.update(block)
            for line in self._lines.feed(block):
                if not line:  # fifty million empty lines are a file, too
                    continue
                try:
                    event = decode_line(line)
                except UnknownEvent as unknown:
                    self.session.notice(f"events of an unknown type were left out: {str(unknown)[:60] or 'no type'}")
                except ValueError:
                    if line.strip():
                        self.session.notice("damaged lines were left out")
                else:
                    self.session.apply(event)
                    yield event
            for _ in range(self._lines.take_left_out()):
                self.session.notice(f"lines of {LINE.words} were left out. {LINE.hint}")
            self.session.content = self._digest.hexdigest()

    def rest(self) -> None:
        """Close the file until the next call that reads, which goes on from here."""
        if not self._file.closed:
            self._offset = self._file.tell()
            self._file.close()

    def finish(self) -> None:
        """Close the file, and note a torn last line."""
        self._file.close()
        if self._lines.end().strip():
            self.session.notice("the last line is truncated; everything before it was read")


def _open(path: Path) -> BinaryIO:
    if path.is_dir():
        raise one_session_needed(path)
    try:
        return open_regular(path)
    except FileNotFoundError:
        raise missing_file(path) from None
    except OSError as error:
        raise FileRefusedError(f"{path} cannot be read: {system_words(error)}") from error


def one_session_needed(folder: Path) -> FileRefusedError:
    """Return the error for a folder, such as that of a job, in place of a session."""
    inside = sorted(folder.glob(f"*{EXTENSION}"))
    if inside and inside[0].name.startswith("process-"):
        all_of_it = "Of all processes: jaxprof open, explain and query."
        return FileRefusedError(
            f"{folder} is a job, and one session is needed",
            f"Name the session of one process: {inside[0]}. {all_of_it}",
        )
    hint = f"Did you mean {inside[0]}?" if inside else "Give a session file, or a folder that jax.profiler wrote to."
    return FileRefusedError(f"{folder} is a directory", hint)


def read_header(file: BinaryIO, name: str) -> Header:
    """Return the header of an open file. Raises FileRefusedError if it is not a session's."""
    return decode_header(file.readline(LINE.most), name)


def events_of(file: BinaryIO, types: tuple[str, ...]) -> Iterator[Event]:
    """Yield the events of these types in the rest of the file; unreadable lines are left out. Raises OSError."""
    # Read, and not mapped: a mapped file that another process truncates ends this one with SIGBUS.
    rest = b"\n"
    while block := file.read(BLOCK_BYTES):
        data = rest + block
        end = data.rfind(b"\n")
        for match in _lines(types).finditer(data):
            try:
                event = decode_line(match.group(1))
            except ValueError:
                continue
            if event.type in types:
                yield event
        rest = data[max(end, 0) :]
        if len(rest) > LINE.most:
            rest = b""  # without a line break before it, what follows of the line is no line


@cache
def _lines(types: tuple[str, ...]) -> re.Pattern[bytes]:
    names = "|".join(types).encode()
    # What another tool has written again (spaces, sorted keys) is decoded to know its type.
    return re.compile(rb'\n((?:\{"type":"(?:' + names + rb')"|(?!\{"type":")\s*\{)[^\n]*)(?=\n)')


_RUNNING_SECONDS = 300.0
"""The session of which a copy was fetched counts as being written if it had changed within this time before."""


def is_live(path: Path) -> bool:
    """Return whether a writer holds the file's lock now. A fetched file, which has the time of its original, counts as
    live if that had changed shortly before. On Windows, where sessions are not recorded, there is no such lock."""
    try:
        with suppress(ImportError), open_regular(path) as file:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        note = note_of_copy(path)
        return note is not None and note.stat().st_mtime - path.stat().st_mtime < _RUNNING_SECONDS
    except BlockingIOError:
        return True
    except OSError:
        return False
