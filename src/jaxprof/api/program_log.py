"""The log of a program that records itself: what its recorder says, stamped, numbered and written as it comes.

Several threads write into it. A forked child writes nothing: the file is its parent's. Once the file cannot be written
any more (a full disk) nothing is kept: a program that runs for days must not fill its memory with its own record.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

from jaxprof.errors import StorageError
from jaxprof.events import Event, Header, RunClosed, RunFinished, RunPlanned, SessionClosed, TextRecorded
from jaxprof.session.texts import split
from jaxprof.store import LogWriter

PROGRAM_RUN = "r1"
"""The run of the program itself; those that its recorder makes besides (a measured function) come after it."""


class ProgramLog:
    """One file. `emit` may be called from any thread, and raises nothing."""

    def __init__(self, header: Header, path: Path, *, replace_existing: bool = False) -> None:
        """Creates the file. Raises StorageError where it is there already (unless `replace_existing`) or cannot be
        written."""
        self.path = path
        self._writer = LogWriter(header, path, replace_existing=replace_existing)
        if self._writer.failure is not None:
            raise StorageError(self._writer.failure.what, "Give another path.")
        self._lock = threading.RLock()  # a signal handler of the program may interrupt a line of ours, and compile
        self._owner = os.getpid()
        self._ids: dict[str, str] = {"": PROGRAM_RUN}
        self._open: dict[str, RunPlanned] = {}
        self._finished: dict[str, RunFinished] = {}

    @property
    def failure(self) -> StorageError | None:
        """Why nothing is written any more, if so."""
        return self._writer.failure

    def emit(self, event: Event) -> None:
        """Writes `event`. One without a run belongs to the program's; a run of another name gets a number."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            run = self._ids.setdefault(event.run, f"r{len(self._ids) + 1}")
            event = replace(event, run=run, monotonic_seconds=event.monotonic_seconds or time.monotonic())
            if isinstance(event, TextRecorded) and event.text:
                for part in split(event.name, event.text, run, event.monotonic_seconds):
                    self._append(part)
            else:
                self._append(event)

    def close(self, finished: RunFinished, wall_seconds: float) -> None:
        """The program's last word, then the closing of every run and of the file."""
        with self._lock:
            self.emit(finished)
            for run, plan in list(self._open.items()):
                self._append(_closing(run, plan, self._finished.get(run, finished), wall_seconds))
            self._append(SessionClosed(monotonic_seconds=time.monotonic()))
            self._writer.close()

    def _append(self, event: Event) -> None:
        match event:
            case RunPlanned():
                self._open[event.run] = event
            case RunFinished():
                self._finished[event.run] = event
            case RunClosed():
                self._open.pop(event.run, None)
        if self._writer.failure is None:
            self._writer.append(event)


def _closing(run: str, plan: RunPlanned, finished: RunFinished, wall_seconds: float) -> RunClosed:
    return RunClosed(
        run=run,
        monotonic_seconds=time.monotonic(),
        workload=plan.workload,
        variant=plan.variant,
        device=plan.device,
        status=finished.status,
        error=finished.error,
        advice=finished.advice,
        wall_seconds=wall_seconds if run == PROGRAM_RUN else None,
    )
