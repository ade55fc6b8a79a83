"""Append to a session's log: the only way in which a session is written.

Each line is written whole and flushed to the kernel; the end of a run is synced to the disk. If the disk is full or the
folder cannot be written, the events stay in memory, the failure is reported once, and `move_to` writes all of them to
another place.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jaxprof.errors import StorageError
from jaxprof.events import Event, Header, RunClosed, SessionClosed
from jaxprof.session.log.codec import encode_header, encode_line
from jaxprof.version import __version__

FILE_MODE = 0o600
_PLAIN_BYTES = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Not inherited by children, and on Windows without translated line ends."""


def new_header(environment: dict[str, Any] | None = None, command: list[str] | None = None) -> Header:
    """The header of a session that begins now, in this process."""
    return Header(
        jaxprof=__version__,
        session=secrets.token_hex(6),
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        host=socket.gethostname(),
        command=list(sys.argv) if command is None else command,
        environment=environment or {},
        wall_seconds=time.time(),
        monotonic_seconds=time.monotonic(),
    )


def _lock(file: int) -> None:
    """Lock the file as being written. Raises BlockingIOError if another process holds the lock. Windows has no lock: no
    program is recorded there, and a profile becomes a session in seconds."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class LogWriter:
    """The one writer of a session file. `path=None` keeps the session in memory only.

    `failure` is None, or the StorageError since which events are kept in memory instead.
    """

    def __init__(self, header: Header, path: Path | None, *, replace_existing: bool = False) -> None:
        """Create the file. Raises StorageError if it exists (unless it may be replaced).

        If it cannot be written for another reason, nothing is raised: see `failure`.
        """
        self.header = header
        self.path = path
        self.failure: StorageError | None = None
        self._seq = 0
        self._kept: list[bytes] = []
        """The lines that are not in the file: all of them without a file, else those since the failure."""
        self._file = -1
        self._end = 0
        if path is not None:
            self._open(path, replace_existing)
        self._write(encode_header(header))

    def append(self, event: Event) -> Event:
        """Number `event`, write it, and return it as it is in the log. A full disk raises nothing."""
        self._seq += 1
        stamped = replace(event, seq=self._seq)
        self._write(encode_line(stamped))
        if isinstance(event, RunClosed | SessionClosed):
            self.sync()
        return stamped

    def sync(self) -> None:
        """Wait until everything written is on the disk."""
        if self._file >= 0:
            with contextlib.suppress(OSError):  # a file system without fsync: nothing better can be done
                os.fsync(self._file)

    def move_to(self, path: Path) -> None:
        """Continue in another file that holds everything so far. Raises StorageError if that cannot be written."""
        before = self._lines_so_far()
        fresh = LogWriter(self.header, path)
        if fresh.failure is None:
            fresh._write(b"".join(before[1:]))
        if fresh.failure is not None:
            fresh.close()
            raise fresh.failure
        self.close()
        self.path, self.failure = path, None
        self._file, self._end, self._kept = fresh._file, fresh._end, []

    def close(self) -> None:
        """Close the file; later events are kept in memory."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self, path: Path, replace_existing: bool) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | _PLAIN_BYTES | (0 if replace_existing else os.O_EXCL)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            self._fail(error)
            return
        try:
            self._file = os.open(path, flags, FILE_MODE)
            _lock(self._file)
            if replace_existing:
                os.ftruncate(self._file, 0)
                path.chmod(FILE_MODE)
        except FileExistsError:
            raise StorageError(f"{path} already exists", "Give another name, or --force to replace it.") from None
        except BlockingIOError:
            self.close()
            raise StorageError(f"{path} is being written by another jaxprof", "Give another name.") from None
        except OSError as error:
            self._fail(error)

    def _write(self, data: bytes) -> None:
        if self._file < 0 or self.failure is not None:
            self._kept.append(data)
            return
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._file, view) :]
            self._end += len(data)
        except OSError as error:
            with contextlib.suppress(OSError):  # half a line on a full disk: take it back, so that the file stays whole
                os.ftruncate(self._file, self._end)
            self._kept.append(data)
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.failure = StorageError(
            f"the session cannot be written to {self.path}: {error.strerror or error}",
            "Measuring goes on in memory. Free some space and save it somewhere else, or it is lost at the end.",
        )

    def _lines_so_far(self) -> list[bytes]:
        lines: list[bytes] = []
        if self.path is not None and self._end:
            with contextlib.suppress(OSError):
                lines = self.path.read_bytes()[: self._end].splitlines(keepends=True)
        return lines + self._kept
