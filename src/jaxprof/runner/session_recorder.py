"""Make a session, the only place that does: number events, write them, fold them, and pass them on in batches.

Whatever executes a run emits into it, from any thread. Events of runs that a child made itself (the programs of a
profile, a function measured inside a program) get ids of this session here. Devices are read while something runs on
them: power, clocks, throttling, other users.
"""

from __future__ import annotations

import math
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.base.errors import StorageError
from jaxprof.base.grouping import totals
from jaxprof.base.limits import OUTPUT
from jaxprof.events import (
    DeviceReading,
    Event,
    LogLine,
    RunClosed,
    RunFinished,
    RunPlanned,
    SessionClosed,
    TextChunk,
    WarningRaised,
)
from jaxprof.runner.interpreter import Interpreter
from jaxprof.session import LogWriter, Run, Session
from jaxprof.session.files import EXTENSION
from jaxprof.session.readings import folded

if TYPE_CHECKING:
    from jaxprof.jobs.process import JobProcess

BATCH_SECONDS = 0.05
"""Length of a batch of events: a screen gets one message, however many events came."""


Listener = Callable[[list[Event]], None]


class SessionRecorder:
    """Records the events of one session: writes, folds and passes them on."""

    def __init__(self, writer: LogWriter, listen: Listener) -> None:
        self.writer = writer
        self.session = Session(writer.header)
        """The recorder's own fold."""
        self.session.desert(deserted=False)
        self.lock = threading.RLock()
        """The only lock of a session; the scheduler takes it too, and recursively. `listen` is called while it is held:
        a listener must not wait for a thread that may emit."""
        self._listen = listen
        self._batch: list[Event] = []
        self._flushed_seconds = time.monotonic()
        self._count = 0
        self._is_closed = False
        """Whether the session is over: what a child that was ended then still brings, or its end, is no part of it."""
        self._output_bytes: dict[str, int] = {}
        """Bytes that the children of a run printed, by run id."""

    def new_id(self) -> str:
        with self.lock:
            self._count += 1
            return f"r{self._count}"

    def emit(self, event: Event) -> None:
        """Record an event, stamped now if it has no time; none once the session is closed."""
        with self.lock:
            if self._is_closed:
                return
            if not event.monotonic_seconds:
                event = replace(event, monotonic_seconds=time.monotonic())
            stamped = self.writer.append(event)
            self.session.apply(stamped)
            self._batch.append(stamped)

    def show(self, event: Event) -> None:
        """Pass an event on without keeping it."""
        with self.lock:
            self.session.apply(event)
            self._batch.append(event)

    def take(self, event: Event, run: str, made: dict[str, str]) -> None:
        """Record an event of a child that works on `run`; `made`: our ids of the runs that it made, by its names."""
        name = "" if isinstance(event, LogLine) else event.run
        if isinstance(event, RunPlanned) and name not in ("", run, *made):
            made[name] = self.new_id()
        event = replace(event, run=made.get(name, run))
        if isinstance(event, LogLine):
            with self.lock:
                former = self._output_bytes.get(event.run, 0)
                # A line of output takes 100 bytes in the log besides its text.
                self._output_bytes[event.run] = now = former + len(event.text) + 100
                if now <= OUTPUT.most:
                    self.emit(event)
                    return
                if former <= OUTPUT.most:
                    message = f"it wrote {OUTPUT.words} of output: the rest is not kept"
                    self.emit(WarningRaised(run=event.run, code="output_cut", message=message, advice=OUTPUT.hint))
                self.show(event)
        elif isinstance(event, RunFinished):
            self.close_run(event.run, event)
        elif not (isinstance(event, TextChunk) and event.digest in self.session.texts):
            self.emit(event)

    def close_run(self, run: str, finished: RunFinished) -> None:
        with self.lock:
            self.emit(replace(finished, run=run))
            self.emit(closing(self.session.runs[run], finished))

    def close_runs(self, runs: Iterable[str], finished: RunFinished) -> None:
        """End those of the runs that are still open."""
        for run in runs:
            if self.session.runs[run].closed is None:
                self.close_run(run, finished)

    def close(self, reason: str, before_the_end: Callable[[Session], object] | None = None) -> None:
        """Close the open runs and the log; `before_the_end` is called with the whole session. A `reason` that has ended
        no run, such as a signal after the last one, is none: the session has finished."""
        with self.lock:
            why = "the session ended before this run did" + (f" ({reason})" if reason != "finished" else "")
            self.close_runs(list(self.session.runs), RunFinished(status="cancelled", error=why))
            if all(run.status != "cancelled" for run in self.session.runs.values()):
                reason = "finished"
            if before_the_end is not None:
                before_the_end(self.session)
            self.emit(SessionClosed(reason=reason))
            self._is_closed = True
            self.flush()
            self.writer.close()

    def flush_when_due(self, every_seconds: float = BATCH_SECONDS) -> bool:
        """Pass on the batch if the last one is long enough ago; return whether it was."""
        due = time.monotonic() - self._flushed_seconds >= every_seconds
        if due:
            self.flush()
        return due

    def flush(self) -> None:
        with self.lock:
            self._flushed_seconds = time.monotonic()
            if self._batch:
                batch, self._batch = self._batch, []
                self._listen(batch)


def closing(run: Run, finished: RunFinished) -> RunClosed:
    samples = run.samples("run")
    summary = None
    if samples:
        # It imports numpy: a program has no samples of its own.
        from jaxprof.analysis.runs.run_result import steady_summary

        summary = steady_summary(run)
    began, ended = run.started_seconds, run.ended_seconds
    sampled = run.program.sampled if run.program is not None else ()
    return RunClosed.of(
        run.id,
        run.plan,
        finished,
        median_seconds=summary.median if summary else None,
        ci95_seconds=list(summary.ci95) if summary and summary.ci95 else None,
        wall_seconds=ended - began if began is not None and ended is not None else None,
        spent=totals(pair for window in sampled for pair in window.states.items()),
    )


PROGRAM_SECONDS = 0.5
FOLDED_SHARE, LONGEST_FOLDED_SECONDS = 0.01, 10.0
"""Readings are folded over this share of the time since the first, at most over so many seconds: which are lost with
the recording process, and within which a session that is being written is heard of."""


class RecordingScheduler:
    """Common part of the schedulers of runs and of programs: each writes one session."""

    def __init__(
        self, writer: LogWriter, interpreter: Interpreter, listen: Listener, recorder: SessionRecorder | None = None
    ) -> None:
        """`recorder`: that of the session, if something else is recorded in it, too."""
        self.writer = writer
        self.interpreter = interpreter
        self._session_recorder = recorder or SessionRecorder(writer, listen)

    @property
    def session(self) -> Session:
        """The recorder's own fold; it belongs to the thread that calls `run`."""
        return self._session_recorder.session

    @property
    def storage_failure(self) -> StorageError | None:
        """Why the session is not being written; None if it is."""
        return self.writer.failure

    @property
    def file_change(self) -> str:
        """What happened to the session's file while it was written, known after `close`; empty: nothing."""
        return self.writer.changed

    @property
    def has_lost_events(self) -> bool:
        return self.writer.lost > 0 or self.writer.failure is not None

    def move_to(self, path: Path) -> None:
        """Continue the session in another file, which gets everything so far. Raises StorageError."""
        with self._session_recorder.lock:
            self.writer.move_to(path)


class DeviceWatch:
    """Reads devices of this machine. A device that cannot be read gives no readings and no error."""

    def __init__(self, device: str = "") -> None:
        """Watch the device with this id for a run, or all devices for a program."""
        # A fifth of what following a program imports, and a short program ends before its devices are read.
        from jaxprof.devices.inventory.machine import gather, local_devices
        from jaxprof.devices.live.host import Monitor

        devices = [known for known in local_devices(gather(python=None)) if device in ("", known.id)]
        self._monitor = Monitor(devices) if devices else None
        self._held: list[DeviceReading] = []
        self._began = self._folded = time.monotonic()
        self._taken: dict[str, float] = {}
        """When the last reading of each device was made."""
        self._interval_seconds = 2.0 if device else PROGRAM_SECONDS
        if device.startswith("cpu:"):  # only before and after a run: reading takes none of its cores
            self._interval_seconds = math.inf
        self.take()  # the shares of the host's cores refer to the time since the previous reading

    def held(self) -> list[DeviceReading]:
        """Return the readings that were not written yet, as they are."""
        held, self._held = self._held, []
        return held

    def take(self) -> list[DeviceReading]:
        """Return these and new readings, without those that a late driver has already given."""
        self._last = time.monotonic()
        readings = self._monitor.read() if self._monitor is not None else []
        new = [each for each in readings if self._taken.get(each.device) != each.monotonic_seconds]
        self._taken |= {each.device: each.monotonic_seconds for each in new if each.monotonic_seconds}
        return [*self.held(), *new]

    def take_when_due(self, now: float, *, captured: bool = False) -> list[DeviceReading]:
        """Read if the last reading is long enough ago. Return what was read, folded over a time that becomes longer; if
        the program is `captured`, each reading at once."""
        if now - self._last < self._interval_seconds:
            return []
        self._held = self.take()
        length = min(LONGEST_FOLDED_SECONDS, FOLDED_SHARE * (now - self._began))
        if not captured and now - self._folded < length:
            return []
        self._folded = now
        return folded(self.held())


def new_writer(out: Path | None, *, replace_existing: bool = False, process: JobProcess | None = None) -> LogWriter:
    """Return a new log in `out`, or among the kept sessions. `process`: the process of a job that it records. Raises
    UsageError or StorageError before anything runs."""
    from jaxprof.devices.inventory.machine import environment_facts
    from jaxprof.session import Library, new_header

    header = new_header(environment_facts())
    if process is not None:
        header = replace(header, process_index=process.index, process_count=process.count, job=process.job)
    path = out if out is not None else Library().new_path(header)
    return LogWriter(header, path, replace_existing=replace_existing and out is not None, own=True)


def report_location(writer: LogWriter, note: Callable[[str], None]) -> bool:
    """Print where the session is. If it could not be written there, save it in another folder. Return whether it is
    whole, and where it should be."""
    if writer.failure is None:
        note(f"session: {writer.path}" + (f" ({writer.changed})" if writer.changed else ""))
        return not (writer.is_displaced or writer.lost)
    reason = writer.failure.what
    taken = writer.path.parent.absolute() if writer.path is not None else None
    others = [folder for folder in (Path.cwd(), Path(tempfile.gettempdir())) if folder.absolute() != taken]
    for folder in others:
        target = folder / f"jaxprof-{writer.header.session}{EXTENSION}"
        try:
            writer.move_to(target)
        except StorageError:
            continue
        writer.close()
        note(f"session: {target} ({reason}; --out FILE names another place)")
        return False
    note(f"the session could not be kept: {reason}; free some space, or give --out FILE, and run again")
    return False
