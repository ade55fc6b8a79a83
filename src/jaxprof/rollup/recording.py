"""The roll-up of a session that is being recorded, rewritten as it grows.

It has a thread and a fold of its own, so that no event of the recording waits for it, and it belongs to the process
that records: the program's own process has no part in it. A roll-up is a convenience: if one cannot be written, the
session has everything.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jaxprof.events import Event, Header
from jaxprof.rollup.job import has_extra
from jaxprof.session import Session
from jaxprof.session.log.job_folder import JobMember
from jaxprof.session_names import process_number

FIRST_SECONDS: Final = 10.0
"""After so long a roll-up is written for the first time. The session of a shorter program is read as fast."""
_GROWTH: Final = 1.5
_LONGEST_SECONDS: Final = 300.0
_COST: Final = 0.005
"""Share of one processor that writing may take, over the pause that follows."""
_FAILURES: Final = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
)
"""Of a file system, of Arrow, of damaged or surprising events."""


class RollUpRecorder:
    """Writes the roll-up of one process of a job, from the events of its session."""

    def __init__(self, header: Header, path: Path, first_seconds: float = FIRST_SECONDS) -> None:
        """`path`: of the session, in the folder of its job. Raises ValueError if no session of a job has that name."""
        index = process_number(path.name)
        if index is None:
            raise ValueError(f"{path.name} is not the session of a process")
        self.written = 0
        """How often it was."""
        self.failure: Exception | None = None
        """Why it could not be written the last time; None if it was."""
        self._index, self._path, self._session = index, path, Session(header)
        self._first_seconds = first_seconds
        self._arrived: deque[Sequence[Event]] = deque()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="jaxprof-rollup", daemon=True)
        self._thread.start()

    def listen(self, events: Sequence[Event]) -> None:
        """Take the events that were recorded last. It only keeps them, since the session's lock is held meanwhile."""
        self._arrived.append(events)

    def close(self) -> None:
        """Write it for the last time, once the session is closed; not at all if the program was short."""
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        pause = self._first_seconds
        while not self._over.wait(pause):
            pause = max(min(_GROWTH * pause, _LONGEST_SECONDS), self._write() / _COST)
        if self.written:
            self._write()

    def _write(self) -> float:
        """Returns the processor time that it took, in seconds."""
        began = time.thread_time()
        try:
            from jaxprof.rollup.files import build, write

            began = time.thread_time()  # what is imported is imported once
            status = self._path.stat()  # before its events are taken: what is in the file by now is in the roll-up
            while self._arrived:
                self._session.extend(self._arrived.popleft())
            member = JobMember(self._index, self._path, self._session, not self._session.complete)
            write(self._path.parent, self._index, build(member, status.st_size, status.st_mtime_ns)[0])
            self.failure = None
        except _FAILURES as error:  # a full disk, or a fault of ours, is no reason to disturb the recording
            self.failure = error
        self.written += 1
        return time.thread_time() - began


def roll_up_recorder(header: Header, path: Path) -> RollUpRecorder | None:
    """What writes the roll-up of the session at `path`; None without the extra `query`, and for other sessions."""
    return RollUpRecorder(header, path) if has_extra() and process_number(path.name) is not None else None
