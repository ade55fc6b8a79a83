"""The log of a program that records itself: its recorder's events are stamped, numbered and written as they arrive.

Each process of a job writes its own file. JAX is asked which process it is only if its distributed runtime was
initialised, because the question starts a backend; before that, the launcher has usually set environment variables.

Several threads write to it. A forked child writes nothing, because the file is its parent's. Once the file cannot be
written (a full disk), events are dropped: a program that runs for days must not fill its memory with its own record.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from jaxprof.errors import StorageError
from jaxprof.events import Event, Header, RunClosed, RunFinished, RunPlanned, SessionClosed
from jaxprof.job_process import JobProcess
from jaxprof.job_process import job_process as job_process_of_launcher
from jaxprof.session.log import LogWriter
from jaxprof.session.texts import in_pieces
from jaxprof.session_names import EXTENSION

PROGRAM_RUN = "r1"
"""The run of the program itself. Other runs of its recorder (a measured function) come after it."""


class ProgramLog:
    """One file. `emit` may be called from any thread, and raises nothing."""

    def __init__(self, header: Header, path: Path, *, replace_existing: bool = False) -> None:
        """Create the file. Raises StorageError if it already exists (unless `replace_existing`) or is not writable."""
        self._writer = LogWriter(header, path, replace_existing=replace_existing)
        if self._writer.failure is not None:
            raise StorageError(self._writer.failure.what, "Give another path.")
        self._lock = threading.RLock()  # a signal handler of the program may interrupt a write of ours, and compile
        self._owner = os.getpid()
        self._ids: dict[str, str] = {"": PROGRAM_RUN}
        self._open: dict[str, RunPlanned] = {}
        self._finished: dict[str, RunFinished] = {}

    @property
    def path(self) -> Path:
        """The file. `close` may have put it elsewhere: see `changed`."""
        assert self._writer.path is not None
        return self._writer.path

    @property
    def changed(self) -> str:
        """What had happened to the file while it was written, known after `close`; empty: nothing."""
        return self._writer.changed

    @property
    def failure(self) -> StorageError | None:
        """Why writing has stopped; None while it works."""
        return self._writer.failure

    def emit(self, event: Event) -> None:
        """Write `event`. An event without a run belongs to the program's run; a run of another name gets a number."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            run = self._ids.setdefault(event.run, f"r{len(self._ids) + 1}")
            event = replace(event, run=run, monotonic_seconds=event.monotonic_seconds or time.monotonic())
            for part in in_pieces(event):
                self._append(part)

    def close(self, finished: RunFinished, wall_seconds: float) -> None:
        """Write the program's last event, then close every run and the file."""
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
        workload=plan.spec.workload,
        variant=plan.spec.variant,
        device=plan.spec.device,
        status=finished.status,
        error=finished.error,
        advice=finished.advice,
        wall_seconds=wall_seconds if run == PROGRAM_RUN else None,
    )


def job_process(environment: Mapping[str, str] = os.environ) -> JobProcess:
    """From JAX's distributed runtime if initialised, else from the launcher's variables, else the only process."""
    told = job_process_of_launcher(environment)
    jax = sys.modules.get("jax")
    if jax is not None and jax.distributed.is_initialized():
        return replace(told, index=jax.process_index(), count=jax.process_count())
    return told


def file_for(path: Path, process: JobProcess) -> Path:
    """`path` with its extension, and with the index if there are several processes: `run.process3.jaxprof`."""
    path = path if path.suffix else path.with_suffix(EXTENSION)
    return path if process.count == 1 else path.with_name(f"{path.stem}.process{process.index}{path.suffix}")


def file_of_its_own(path: Path, host: str) -> Path:
    """Another name beside `path`, which another process of the program writes: with this process's host and id."""
    return path.with_name(f"{path.stem}.{host}-{os.getpid()}{path.suffix}")
