"""Write the roll-up of a session while it is recorded, again and again as the session grows.

It is written by a thread with a fold of its own, so that no event of the recording waits for it. The thread runs in the
process that records, not in that of the program. If a roll-up cannot be written, nothing is lost: the session has
everything.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from jaxprof.events import Event, Header
from jaxprof.jobs.folder import has_extra
from jaxprof.session import Session
from jaxprof.session.files import process_number

FIRST_SECONDS = 10.0
"""Time until the first roll-up. The session of a shorter program can be read as fast as a roll-up."""
_COST = 0.005
"""Most of one processor that writing may take, as a share of the pause that follows."""


class RollUpRecorder:
    """Writes the roll-up of one process of a job, from the events of its session."""

    def __init__(self, header: Header, path: Path, index: int, first_seconds: float = FIRST_SECONDS) -> None:
        """Begin to write the roll-up of the session at `path`, of process `index`, in the folder of its job."""
        self.written = 0
        """Number of times that a write was tried."""
        self.failure: Exception | None = None
        """Why the last write failed; None if it did not."""
        self._index, self._path, self._session = index, path, Session(header)
        self._session.desert(deserted=False)
        self._first_seconds = first_seconds
        self._arrived: deque[Sequence[Event]] = deque()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="jaxprof-rollup", daemon=True)
        self._thread.start()

    def listen(self, events: Sequence[Event]) -> None:
        """Queue the events that were recorded last. The caller holds the session's lock, so nothing else is done."""
        self._arrived.append(events)

    def close(self) -> None:
        """Write the roll-up for the last time, after the session was closed; not at all if the program was short."""
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        pause = self._first_seconds
        while not self._over.wait(pause):
            pause = max(min(1.5 * pause, 300.0), self._write() / _COST)
        if self.written:
            self._write()

    def _write(self) -> float:
        """Write the roll-up. Returns the processor time that it took, in seconds."""
        began = time.thread_time()
        try:
            from jaxprof.jobs.job import ProcessFile
            from jaxprof.rollup.making import build, write

            began = time.thread_time()  # the import does not count, because it happens once
            status = self._path.stat()  # before the events are taken: the roll-up has all that this size covers
            while self._arrived:
                self._session.extend(self._arrived.popleft())
            file = ProcessFile(
                self._path, self._session, index=self._index, bytes=status.st_size, modified_ns=status.st_mtime_ns
            )
            write(self._path.parent, self._index, build(file))
            self.failure = None
        except Exception as error:  # noqa: BLE001  neither a full disk nor a bug here may disturb the recording
            self.failure = error
        self.written += 1
        return time.thread_time() - began


def roll_up_recorder(header: Header, path: Path) -> RollUpRecorder | None:
    """Return a recorder of the roll-up of a session; None without the extra `query`, and without a job."""
    index = process_number(path.name)
    return RollUpRecorder(header, path, index) if index is not None and has_extra() else None
