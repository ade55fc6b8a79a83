"""Append to a session's log: the only way in which a session is written.

Each line is written whole and flushed to the kernel; the end of a run is synced to the disk. If the disk is full or the
folder cannot be written, the events stay in memory, the failure is reported once, and `move_to` writes all of them to
another place.

Other programs truncate files (log rotation, `> file`), delete them, replace them, or write an older state into them. A
compressed copy in memory, a twentieth of the lines, holds what the file should have, up to the limit `copy`. The file
is written again in its place within a second of being truncated. `close` compares it with the copy, and checks that it
is still at its path; one that was deleted or replaced is written again from the open file, which has no name any more.
What is beyond the copy and no longer in the file is lost: the session says how many events, and so does `lost`.
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
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jaxprof.base import __version__
from jaxprof.base.errors import StorageError, system_words
from jaxprof.base.files import private_folder, refuse_folder, write_all
from jaxprof.base.limits import COPY
from jaxprof.base.redaction import LineScrubber, redact_words, scrub, without_secret
from jaxprof.base.units import counted
from jaxprof.events import Event, Header, LogLine, RunClosed, RunPlanned, SessionClosed, WarningRaised
from jaxprof.session.files import EXTENSION, add_own
from jaxprof.session.lines import encode_header, encode_line

if TYPE_CHECKING:
    from jaxprof.events import ClosureChange, CompileReason

    Change = TypeVar("Change", ClosureChange, CompileReason)

FILE_MODE = 0o600  # a session has what the program printed
_TEXTS = ("error", "traceback", "message", "advice", "note")
"""Fields of events that hold words of the program: the text of an error."""
_NO_VALUES = ("shape", "dtype", "weak_type", "sharding")
"""Kinds of reasons with types, in place of values of the program."""
_STRING = r"""(?s:'[^'\\]*+(?:\\.[^'\\]*+)*'?|"[^"\\]*+(?:\\.[^"\\]*+)*"?)"""
_NAMED_VALUE = rf"""(((?<!\w)\w++|{_STRING})\s*+[:=]\s*+)?({_STRING}|(?<=[:=\s])[-+]?\d[\d.]*+(?![\w\[]))"""
"""A string or a number in an argument of a function, with its name if it has one."""
_PART_BYTES = 1 << 20  # of the log in memory at once
EVENTS_LOST = "events_lost"
"""Code of the warning in a session that lacks events."""
_CHECK_SECONDS = 1.0
"""Shortest time between checks of the file's size. On some network file systems a check takes a millisecond."""
_PLAIN_BYTES = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags of `os.open`: not inherited by children, and on Windows without translated line ends."""


def new_header(environment: dict[str, Any] | None = None, command: list[str] | None = None) -> Header:
    """Return the header of a session that begins now, in this process."""
    return Header(
        jaxprof=__version__,
        session=secrets.token_hex(6),
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        host=socket.gethostname(),
        command=redact_words(sys.argv if command is None else command),
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


class _Written:
    """What was written to a file, whole lines: how much, with its checksum, a compressed copy of its beginning, and
    the last lines, if the copy reached its limit before: they say how runs and the session ended."""

    def __init__(self) -> None:
        self.bytes = self.lines = self.checksum = 0
        self.copied_lines = 0
        self.last: deque[bytes] = deque()
        self._last_bytes = self._last_lines = 0
        self._most = COPY.most
        self._packer = zlib.compressobj(1)
        self._packed: list[bytes] = []
        self._packed_bytes = 0

    def add(self, data: bytes) -> None:
        """Add whole lines."""
        lines = data.count(b"\n")
        if self.is_copied and self._packed_bytes < self._most:
            if piece := self._packer.compress(data):  # often nothing: the packer has a buffer
                self._packed.append(piece)
                self._packed_bytes += len(piece)
            self.copied_lines += lines
        else:
            self.last.append(data)
            self._last_bytes += len(data)
            self._last_lines += lines
            while self._last_bytes > _PART_BYTES and len(self.last) > 1:
                left_out = self.last.popleft()
                self._last_bytes -= len(left_out)
                self._last_lines -= left_out.count(b"\n")
        self.bytes += len(data)
        self.lines += lines
        self.checksum = zlib.crc32(data, self.checksum)

    @property
    def is_copied(self) -> bool:
        """Whether all of it is in the copy."""
        return self.copied_lines == self.lines

    @property
    def missing_lines(self) -> int:
        """Number of lines that are neither in the copy nor among the last ones."""
        return self.lines - self.copied_lines - self._last_lines

    def copy(self) -> Iterator[bytes]:
        unpacker = zlib.decompressobj()
        for piece in (*self._packed, self._packer.copy().flush()):
            rest = piece
            while rest:
                yield unpacker.decompress(rest, _PART_BYTES)
                rest = unpacker.unconsumed_tail


class LogWriter:
    """The one writer of a session file. `path=None` keeps the session in memory only.

    `failure` is None, or the StorageError since which events are kept in memory instead. `changed` says, after `close`,
    what had happened to the file (`x.jaxprof was deleted while it was written; all of it was written again`), and is
    empty if nothing had; `path` is then where the file is now. `is_displaced`: another file has taken its path. `lost`:
    number of events that were in the file and are no longer anywhere.
    """

    def __init__(self, header: Header, path: Path | None, *, replace_existing: bool = False, own: bool = False) -> None:
        """Create the file. Raises StorageError if it exists (unless it may be replaced). `own`: it holds what this
        machine measures, and nothing of a file (`session.files`).

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
        self.lost = 0
        self._file = -1
        self._written = _Written()
        """What is in the file, unless another process changes it."""
        self._check_due = time.monotonic() + _CHECK_SECONDS
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
            return {"text": self._scrubber.scrub(f"{event.run} {event.stream}", event.text)}
        kept: dict[str, Any] = {name: scrub(text) for name in _TEXTS if (text := getattr(event, name, ""))}
        if isinstance(event, RunPlanned):
            kept["spec"] = replace(
                event.spec,
                parameters={
                    name: without_secret(name, value) if isinstance(value, str) else value
                    for name, value in event.spec.parameters.items()
                },
                arguments=tuple(map(_redact_argument, event.spec.arguments)),
                argv=tuple(redact_words(event.spec.argv)),
            )
        if isinstance(event, WarningRaised):
            texts = {name: scrub(value) for name, value in event.values.items() if isinstance(value, str)}
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
        fresh = LogWriter(self.header, path)
        content, lost = self._content()
        skipped = fresh._written.bytes  # the header
        for part in content if fresh.failure is None else ():
            fresh._write(part[skipped:])
            skipped = 0
        if fresh.failure is not None:
            fresh._give_up()
            raise fresh.failure
        self._give_up()
        self.path, self.failure, self.lost = path, None, lost
        self._file, self._written = fresh._file, fresh._written
        self._kept = []

    def close(self) -> None:
        """Close the file, after checking it; later events are kept in memory. A file that was changed is written again
        where it was, or beside that path if another file is there: see `changed`. If that fails: see `failure`."""
        if self._file >= 0 and self.failure is None:
            self._restore()
        if self.failure is not None:  # for `move_to`
            content, self.lost = self._content()
            self._kept = list(content)
        elif self._own and self._file >= 0:
            digest = hashlib.sha256()
            for part in _parts(self._file, self._written.bytes):
                digest.update(part)
            add_own(digest.hexdigest())
        self._release()

    def _release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _give_up(self) -> None:
        """Close the file, and delete it if a full disk has left nothing of it."""
        self._release()
        if self.failure is not None and self.path is not None and not self._written.bytes:
            with contextlib.suppress(OSError):
                if not self.path.stat().st_size:
                    self.path.unlink()

    def _restore(self) -> None:
        """Write the file again if it is not at its path any more."""
        assert self.path is not None
        what = self._what_happened(self.path)
        moved = self._path_after_rename() if what else None
        if not what or moved is not None:
            if not self._is_intact():
                self._write_again()
            if moved is not None:
                self.changed = f"{self.path} was renamed while it was written" + (self.changed and f"; {self.changed}")
                self.path = moved
            return
        path_before = self.path
        stem = path_before.name.removesuffix(EXTENSION)
        others = (path_before.with_name(f"{stem}-{number}{EXTENSION}") for number in count(2))
        for path in (path_before, next(other for other in others if not other.exists())):
            try:
                self.move_to(path)
            except StorageError as error:
                failure = error
            else:
                self.changed = self._account(path_before, what)
                self.is_displaced = path != path_before
                return
        self.failure = StorageError(f"{path_before} {what} while it was written. {failure.what}", failure.hint)

    def _size(self) -> int:
        """Return the size of the file; -1 if it cannot be read, as of one that was deleted on a network file system."""
        try:
            return os.fstat(self._file).st_size
        except OSError:
            return -1

    def _is_intact(self) -> bool:
        """Return whether the file has what was written to it. What is no longer in the copy is compared by size only.
        After a failure the beginning of a line may follow, which could not be removed."""
        written, size = self._written, self._size()
        if size < written.bytes or (size > written.bytes and self.failure is None):
            return False
        checksum = 0
        try:
            for part in _parts(self._file, written.bytes) if written.is_copied else ():
                checksum = zlib.crc32(part, checksum)
        except OSError:
            return False
        return not written.is_copied or checksum == written.checksum

    def _write_again(self) -> None:
        """Write the file again, in its place, because another process has changed it: what the copy has."""
        what = "was truncated" if self._size() < self._written.bytes else "was changed"
        content, lost = self._content()
        fresh = _Written()
        try:
            os.ftruncate(self._file, 0)
            for part in content:
                write_all(self._file, part)
                fresh.add(part)
        except OSError as error:
            self._fail(error)  # `_content` still has it all
            return
        self._written, self.lost = fresh, lost
        assert self.path is not None
        self.changed = self._account(self.path, f"{what} by another process")

    def _account(self, path: Path, what: str) -> str:
        """Return what happened to the file, and what became of its content."""
        again = f"{counted(self.lost, 'event')} of it are lost" if self.lost else "all of it was written again"
        return f"{path} {what} while it was written; {again}"

    def _what_happened(self, path: Path) -> str:
        """Return why the file at `path` is not the one that is written; empty if it is."""
        try:
            there, ours = path.stat(), os.fstat(self._file)
        except (FileNotFoundError, NotADirectoryError):
            return "was deleted"
        except OSError as error:
            return f"could not be read ({system_words(error)})"
        return "" if os.path.samestat(there, ours) else "was replaced by another file"

    def _path_after_rename(self) -> Path | None:
        """Return where the whole file is now, if only its name in its folder changed (visible on Linux only)."""
        try:
            linked = Path(os.readlink(f"/proc/self/fd/{self._file}"))
        except OSError:
            return None
        assert self.path is not None
        is_beside = linked.suffix == EXTENSION and linked.parent == self.path.parent.resolve()
        return linked if is_beside and not self.path.exists() and not self._what_happened(linked) else None

    def _open(self, path: Path, replace_existing: bool) -> None:
        """Open and lock the file. Raises UsageError if it is a folder, StorageError if it exists or is written by
        another; else sets `failure`."""
        refuse_folder(path)
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
        if self._file >= 0 and self.failure is None and time.monotonic() >= self._check_due:
            began = time.monotonic()
            if self._size() not in (self._written.bytes, -1):
                self._write_again()
            now = time.monotonic()
            # Writing it again takes a small share of the time, where it is truncated again and again.
            self._check_due = now + max(_CHECK_SECONDS, (now - began) / 0.05)
        if self._file < 0 or self.failure is not None:
            self._kept.append(data)
            return
        try:
            write_all(self._file, data)
        except OSError as error:
            with contextlib.suppress(OSError):  # half a line that a full disk left
                os.ftruncate(self._file, self._written.bytes)
            self._kept.append(data)
            self._fail(error)
            return
        self._written.add(data)

    def _fail(self, error: OSError) -> None:
        self.failure = StorageError(
            f"the session cannot be written to {self.path}: {system_words(error)}",
            "It goes on in memory, and is written to another folder at its end, if one has room.",
        )

    def _content(self) -> tuple[Iterator[bytes], int]:
        """Return everything that was appended, in whole lines, with the number of events that are lost: what is in the
        file, or in the copy if another process has changed the file; then what is in neither."""
        written, lost = self._written, self.lost
        if self._file < 0 or not written.bytes:
            return iter(self._kept), lost
        if self._is_intact():
            return chain(_lines(_parts(self._file, written.bytes)), self._kept), lost
        gap: list[bytes] = []
        if written.missing_lines:
            lost += written.missing_lines
            message = f"{counted(lost, 'event')} are missing: another process changed the file while it was written"
            gap = [encode_line(WarningRaised(code=EVENTS_LOST, message=message))]
        return chain(_lines(written.copy()), gap, tuple(written.last), self._kept), lost


def _lines(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the parts so that each ends with a line."""
    rest = b""
    for part in parts:
        whole, end, rest = (rest + part).rpartition(b"\n")
        if end:
            yield whole + end


def _parts(file: int, size: int) -> Iterator[bytes]:
    at = 0
    while at < size:
        os.lseek(file, at, os.SEEK_SET)
        part = os.read(file, min(_PART_BYTES, size - at))
        if not part:
            break
        at += len(part)
        yield part


def _redact_argument(spec: str) -> str:
    """Return an argument that a user wrote, `token='X'`, `{'token': 'X', 'w': f32[8]}`: an array is no secret."""
    return re.sub(_NAMED_VALUE, lambda match: f"{match[1] or ''}{without_secret(match[2] or '', match[3])}", spec)


def _without_secret(change: Change) -> Change:
    before, now = (without_secret(change.name, text) for text in (change.before, change.now))
    return replace(change, before=before, now=now)
