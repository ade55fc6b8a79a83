"""Append to a session's log: the only way in which a session is written.

Each line is written whole and flushed to the kernel; the end of a run is synced to the disk. If the disk is full or the
folder cannot be written, the events stay in memory, the failure is reported once, and `move_to` writes all of them to
another place. `close` checks that the file is still at its path; one that was deleted or replaced meanwhile is written
again, from the open file, which has no name any more.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jaxprof.base.errors import StorageError, system_words
from jaxprof.base.files import private_folder, write_all
from jaxprof.base.redaction import LineScrubber, redacted, scrubbed, without_secret
from jaxprof.base.version import __version__
from jaxprof.events import Event, Header, LogLine, RunClosed, RunPlanned, SessionClosed, WarningRaised
from jaxprof.events.base import Scalar
from jaxprof.session.files import EXTENSION
from jaxprof.session.log.codec import encode_header, encode_line
from jaxprof.session.log.own import add_own

if TYPE_CHECKING:
    from jaxprof.events import ClosureChange, CompileReason

    Change = TypeVar("Change", ClosureChange, CompileReason)

FILE_MODE = 0o600
_TEXTS = ("error", "traceback", "message", "advice", "note")
"""Fields of events that hold words of the program: the text of an error."""
_NO_VALUES = ("shape", "dtype", "weak_type", "sharding")
"""Kinds of reasons with types, in place of values of the program."""
_STRING = r"""(?s:'(?:[^'\\]|\\.)*+'?|"(?:[^"\\]|\\.)*+"?)"""
_NAMED_VALUE = rf"""(((?<!\w)\w++|{_STRING})\s*+[:=]\s*+)?({_STRING}|(?<=[:=\s])[-+]?\d[\d.]*+(?![\w\[]))"""
"""A string or a number in an argument of a function, with its name if it has one."""
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

    def __init__(self, header: Header, path: Path | None, *, replace_existing: bool = False, own: bool = False) -> None:
        """Create the file. Raises StorageError if it exists (unless it may be replaced). `own`: it holds what this
        machine measures, and nothing of a file (`session.log.own`).

        If it cannot be written for another reason, nothing is raised: see `failure`.
        """
        self.header = header
        self.path = path
        self._own = own
        self.failure: StorageError | None = None
        self._seq = 0
        self._scrubber = LineScrubber()
        self._kept: list[bytes] = []
        """Lines that are not in the file: all of them without a file, else those since the failure."""
        self.changed = ""
        self.is_displaced = False
        self._file = -1
        self._end = 0
        """Number of bytes that are in the file."""
        if path is not None:
            self._open(path, replace_existing)
        self._write(encode_header(header))

    @property
    def kept_path(self) -> Path | None:
        """Where the session is; None if it could not be written."""
        return self.path if self.failure is None else None

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
        kept: dict[str, Any] = {name: scrubbed(text) for name in _TEXTS if (text := getattr(event, name, ""))}
        if isinstance(event, RunPlanned):
            kept["spec"] = replace(
                event.spec,
                parameters={name: _kept_value(name, value) for name, value in event.spec.parameters.items()},
                arguments=tuple(map(_kept_argument, event.spec.arguments)),
                argv=tuple(redacted(event.spec.argv)),
            )
        if isinstance(event, WarningRaised):
            texts = {name: scrubbed(value) for name, value in event.values.items() if isinstance(value, str)}
            kept["values"] = {**event.values, **texts}
        if closure := getattr(event, "closure", None):
            kept["closure"] = list(map(_without_secret, closure))
        if reasons := getattr(event, "reasons", None):
            kept["reasons"] = [each if each.kind in _NO_VALUES else _without_secret(each) for each in reasons]
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
        self._file, self._end = fresh._file, fresh._end
        self._kept = []

    def close(self) -> None:
        """Close the file, after checking it; later events are kept in memory. A file that was changed is written again
        where it was, or beside that path if another file is there: see `changed`. If that fails: see `failure`."""
        if self._file >= 0 and self.failure is None:
            self._restore()
        if self.failure is not None:  # for `move_to`
            self._kept = [self._content()]
        elif self._own and self._file >= 0:
            digest = hashlib.sha256()
            for part in _parts(self._file, self._end):
                digest.update(part)
            add_own(digest.hexdigest())
        self._release()

    def _release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _restore(self) -> None:
        """Write the file again if it is not at its path any more."""
        assert self.path is not None
        what = self._what_happened(self.path)
        if not what:
            if os.fstat(self._file).st_size != self._end:
                self.changed = f"{self.path} was changed by another process while it was written"
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
        """Return why the file at `path` is not the one that is written; empty if it is."""
        try:
            there, ours = path.stat(), os.fstat(self._file)
        except (FileNotFoundError, NotADirectoryError):
            return "was deleted"
        except OSError as error:
            return f"could not be read ({system_words(error)})"
        return "" if os.path.samestat(there, ours) else "was replaced by another file"

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
        """Open and lock the file. Raises StorageError if it exists, or if another process writes it; any other failure
        is kept in `failure`."""
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
            write_all(self._file, data)
        except OSError as error:
            with contextlib.suppress(OSError):  # half a line that a full disk left
                os.ftruncate(self._file, self._end)
            self._kept.append(data)
            self._fail(error)
            return
        self._end += len(data)

    def _fail(self, error: OSError) -> None:
        self.failure = StorageError(
            f"the session cannot be written to {self.path}: {system_words(error)}",
            "Measuring goes on in memory. Free some space and save it somewhere else, or it is lost at the end.",
        )

    def _content(self) -> bytes:
        """Return everything that was appended: what is in the file, then what is not."""
        written = b"".join(_parts(self._file, self._end)) if self._file >= 0 else b""
        return written + b"".join(self._kept)


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


def _free_place_beside(path: Path) -> Path:
    stem = path.name.removesuffix(EXTENSION)
    return next(place for number in count(2) if not (place := path.with_name(f"{stem}-{number}{EXTENSION}")).exists())


def _kept_value(name: str, value: Scalar) -> Scalar:
    return without_secret(name, value) if isinstance(value, str) else value


def _kept_argument(spec: str) -> str:
    """Return an argument that a user wrote, `token='X'`, `{'token': 'X', 'w': f32[8]}`: an array is no secret."""
    return re.sub(_NAMED_VALUE, lambda match: f"{match[1] or ''}{without_secret(match[2] or '', match[3])}", spec)


def _without_secret(change: Change) -> Change:
    before, now = (without_secret(change.name, text) for text in (change.before, change.now))
    return replace(change, before=before, now=now)
