"""Append to a session's log: the only way in which a session is written.

Each line is written whole and flushed to the kernel; the end of a run is synced to the disk. If the disk is full or the
folder cannot be written, the events stay in memory, the failure is reported once, and `move_to` writes all of them to
another place. `close` checks that the file holds what was written; a file that was deleted, cut or replaced meanwhile
is written again, from a second copy that has no name.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from jaxprof.errors import StorageError, system_words
from jaxprof.events import Event, Header, LogLine, RunClosed, SessionClosed
from jaxprof.files import private_folder
from jaxprof.redaction import REDACTED, LineScrubber, is_secret_name, redacted, scrubbed
from jaxprof.session.log.codec import encode_header, encode_line
from jaxprof.session_names import EXTENSION
from jaxprof.version import __version__

if TYPE_CHECKING:
    from jaxprof.events import ClosureChange

FILE_MODE = 0o600
_TEXTS = ("error", "traceback", "message", "advice", "note", "reason")
"""Fields of events that hold words of the program: the text of an error, or values of variables in a reason."""
_PART_BYTES = 1 << 20
_PLAIN_BYTES = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags of `os.open`: not inherited by children, and on Windows without translated line ends."""


def new_header(environment: dict[str, Any] | None = None, command: list[str] | None = None) -> Header:
    """Return the header of a session that begins now, in this process."""
    return Header(
        jaxprof=__version__,
        session=secrets.token_hex(6),
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        host=socket.gethostname(),
        command=redacted(sys.argv if command is None else command),
        environment=environment or {},
        wall_seconds=time.time(),
        monotonic_seconds=time.monotonic(),
    )


def lock_as_writer(file: int) -> None:
    """Lock the file as being written. Raises BlockingIOError if another process holds the lock. Windows has no lock: no
    program is recorded there, and a profile becomes a session in seconds."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class LogWriter:
    """The one writer of a session file. `path=None` keeps the session in memory only.

    `failure` is None, or the StorageError since which events are kept in memory instead. `changed` says, after `close`,
    what had happened to the file (`x.jaxprof was deleted while it was written; all of it was written again`), and is
    empty if nothing had; `path` is then where the file is now. `is_displaced`: another file has taken its path.
    """

    def __init__(self, header: Header, path: Path | None, *, replace_existing: bool = False) -> None:
        """Create the file. Raises StorageError if it exists (unless it may be replaced).

        If it cannot be written for another reason, nothing is raised: see `failure`.
        """
        self.header = header
        self.path = path
        self.failure: StorageError | None = None
        self._seq = 0
        self._scrubber = LineScrubber()
        self._kept: list[bytes] = []
        """Lines that are not in the file: all of them without a file, else those since the failure."""
        self.changed = ""
        self.is_displaced = False
        self._file = -1
        self._end = 0
        self._checksum = 0
        """CRC-32 of the `_end` bytes that are in the file."""
        self._copy: IO[bytes] | None = None
        """Copy of the same bytes in a file without a name, unbuffered, so that a forked child has nothing to flush."""
        if path is not None:
            self._open(path, replace_existing)
        self._write(encode_header(header))

    def append(self, event: Event) -> Event:
        """Number `event`, leave out what looks like a secret in its texts, write it, and return it as it is in the log.
        A full disk raises nothing."""
        self._seq += 1
        stamped = replace(event, seq=self._seq, **self._without_secrets(event))
        self._write(encode_line(stamped))
        if isinstance(event, RunClosed | SessionClosed):
            self.sync()
        return stamped

    def _without_secrets(self, event: Event) -> dict[str, Any]:
        """Return the texts that a program wrote itself, as a session may keep them."""
        if isinstance(event, LogLine):
            return {"text": self._scrubber.scrubbed(f"{event.run} {event.stream}", event.text)}
        texts = {name: getattr(event, name, None) for name in _TEXTS}
        kept: dict[str, Any] = {name: scrubbed(text) for name, text in texts.items() if isinstance(text, str) and text}
        if closure := getattr(event, "closure", None):
            kept["closure"] = list(map(_without_secret, closure))
        return kept

    def sync(self) -> None:
        """Wait until everything written is on the disk."""
        if self._file >= 0:
            with contextlib.suppress(OSError):  # a file system without fsync: nothing better can be done
                os.fsync(self._file)

    def move_to(self, path: Path) -> None:
        """Continue in another file that holds everything so far. Raises StorageError if that cannot be written."""
        content = self._content()
        fresh = LogWriter(self.header, path)
        if fresh.failure is None:
            fresh._write(content[fresh._end :])
        if fresh.failure is not None:
            fresh._release()
            raise fresh.failure
        self._release()
        self.path, self.failure = path, None
        self._file, self._end, self._checksum, self._copy = fresh._file, fresh._end, fresh._checksum, fresh._copy
        self._kept = []

    def close(self) -> None:
        """Close the file, after checking it; later events are kept in memory. A file that was changed is written again
        where it was, or beside that path if another file is there: see `changed`. If that fails: see `failure`."""
        if self._file >= 0 and self.failure is None:
            self._restore()
        if self.failure is not None:  # for `move_to`
            self._kept, self._end = [self._content()], 0
        self._release()

    def _release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._drop_copy()

    def _restore(self) -> None:
        """Restore the file at `path` if it does not hold what was written."""
        assert self.path is not None
        what = self._what_happened(self.path)
        if not what:
            return
        if moved := self._renamed_to():
            self.path, self.changed = moved, f"{self.path} was renamed while it was written"
            return
        place_before = self.path
        for place in (place_before, _free_place_beside(place_before)):
            try:
                self.move_to(place)
            except StorageError as error:
                failure = error
            else:
                self.changed = f"{place_before} {what} while it was written; all of it was written again"
                self.is_displaced = place != place_before
                return
        self.failure = StorageError(f"{place_before} {what} while it was written. {failure.what}", failure.hint)

    def _what_happened(self, path: Path) -> str:
        """Compare the file at `path` with what was written; return the difference, empty if they are the same."""
        try:
            there, ours = path.stat(), os.fstat(self._file)
        except (FileNotFoundError, NotADirectoryError):
            return "was deleted"
        except OSError as error:
            return f"could not be read ({system_words(error)})"
        if not os.path.samestat(there, ours):
            return "was replaced by another file"
        if there.st_size < self._end:
            return self._cleared("was cut")
        return "" if _checksum(self._file, there.st_size) == self._checksum else self._cleared("was overwritten")

    def _cleared(self, what: str) -> str:
        """Remove the damaged file, so that it can be written again at its path, and return `what`."""
        with contextlib.suppress(OSError):
            self.path.unlink()  # type: ignore[union-attr]
        return what

    def _renamed_to(self) -> Path | None:
        """Return where the whole file is now, if only its name in its folder changed (visible on Linux only)."""
        try:
            place = Path(os.readlink(f"/proc/self/fd/{self._file}"))
        except OSError:
            return None
        assert self.path is not None
        is_beside = place.suffix == EXTENSION and place.parent == self.path.parent.resolve()
        return place if is_beside and not self.path.exists() and not self._what_happened(place) else None

    def _open(self, path: Path, replace_existing: bool) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | _PLAIN_BYTES | (0 if replace_existing else os.O_EXCL)
        try:
            private_folder(path.parent)
        except OSError as error:
            self._fail(error)
            return
        try:
            self._file = os.open(path, flags, FILE_MODE)
            lock_as_writer(self._file)
            if replace_existing:
                os.ftruncate(self._file, 0)
                path.chmod(FILE_MODE)
            with contextlib.suppress(OSError):  # without a copy, only what is in the file can be written again
                self._copy = tempfile.TemporaryFile(buffering=0, dir=path.parent)  # noqa: SIM115
        except FileExistsError:
            raise StorageError(f"{path} already exists", "Give another name, or --force to replace it.") from None
        except BlockingIOError:
            self._release()
            raise StorageError(f"{path} is being written by another jaxprof", "Give another name.") from None
        except OSError as error:
            self._fail(error)

    def _write(self, data: bytes) -> None:
        if self._file < 0 or self.failure is not None:
            self._kept.append(data)
            return
        try:
            try:
                _write_all(self._file, data)
            except OSError:
                if not self._drop_copy():
                    raise
                self._take_back()
                _write_all(self._file, data)
        except OSError as error:
            self._take_back()
            self._kept.append(data)
            self._fail(error)
            return
        self._end += len(data)
        self._checksum = zlib.crc32(data, self._checksum)
        if self._copy is not None:
            try:
                _write_all(self._copy.fileno(), data)
            except OSError:
                self._drop_copy()

    def _take_back(self) -> None:
        """Remove half a line that a full disk left, so that the file stays whole."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, self._end)

    def _drop_copy(self) -> bool:
        """Free the room of the copy; return whether there was one."""
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.close()
        return copy is not None

    def _fail(self, error: OSError) -> None:
        self.failure = StorageError(
            f"the session cannot be written to {self.path}: {system_words(error)}",
            "Measuring goes on in memory. Free some space and save it somewhere else, or it is lost at the end.",
        )

    def _content(self) -> bytes:
        """Return everything that was appended: what is in the file, then what is not."""
        source = self._copy.fileno() if self._copy is not None else self._file
        written = b"".join(_parts(source, self._end)) if source >= 0 else b""
        return written + b"".join(self._kept)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _parts(file: int, size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes of the file, in parts."""
    at = 0
    while at < size:
        os.lseek(file, at, os.SEEK_SET)
        part = os.read(file, min(_PART_BYTES, size - at))
        if not part:
            break
        at += len(part)
        yield part


def _checksum(file: int, size: int) -> int:
    total = 0
    for part in _parts(file, size):
        total = zlib.crc32(part, total)
    return total


def _free_place_beside(path: Path) -> Path:
    stem = path.name.removesuffix(EXTENSION)
    return next(place for number in count(2) if not (place := path.with_name(f"{stem}-{number}{EXTENSION}")).exists())


def _without_secret(change: ClosureChange) -> ClosureChange:
    if is_secret_name(change.name):
        return replace(change, before=REDACTED, now=REDACTED)
    return replace(change, before=scrubbed(change.before), now=scrubbed(change.now))
