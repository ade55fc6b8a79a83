"""`jaxprof.record`: a program records itself, where `jaxprof script` cannot launch it.

    import jaxprof

    jaxprof.record("run.jaxprof")          # from here to the end of the program

    with jaxprof.record("run.jaxprof"):    # or just this block
        train()

It records what `jaxprof script` records, except the program's output, its exit code and device readings, which only
another process can see. Everything is written to the file as it happens.

The recorder's events are stamped, numbered and written as they arrive. Each process of a job writes its own file. JAX
is asked which process it is only if its distributed runtime was initialised, because the question starts a backend;
before that, the launcher has usually set environment variables.

Several threads may write to the file. A forked child writes nothing, because the file is its parent's. Once the file
cannot be written (a full disk), events are dropped: a program that runs for days must not fill its memory with its own
record.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import shutil
import socket
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from jaxprof.api.session import Session, header_environment, load
from jaxprof.base.errors import StorageError, UsageError
from jaxprof.base.files import digests_of_sources
from jaxprof.base.operating_system import refuse_to_run
from jaxprof.base.text import safe
from jaxprof.base.values import frozen
from jaxprof.events import (
    CaptureWindow,
    Compiled,
    Event,
    Header,
    JaxImported,
    ProgramSampled,
    RunClosed,
    RunFinished,
    RunPlanned,
    RunSpec,
    SessionClosed,
    SourcesRead,
    TextRecorded,
    WarningRaised,
    WorkerStarted,
)
from jaxprof.events.runs import in_pieces
from jaxprof.jobs.process import JobProcess
from jaxprof.jobs.process import job_process as job_process_of_launcher
from jaxprof.remote import path_here
from jaxprof.session import Library, LogWriter, new_header
from jaxprof.session.files import EXTENSION
from jaxprof.session.lines import is_live

if TYPE_CHECKING:
    from jaxprof.engine.protocol import RecordingOptions
    from jaxprof.recorder.recorder import Recorder

PROGRAM_RUN = "r1"
"""Id of the program's own run. The runs of functions that its recorder measures have later ids."""


class ProgramLog(LogWriter):
    """The session file that a program writes about itself. `emit` may be called from any thread, and raises nothing."""

    def __init__(self, header: Header, path: Path, *, replace_existing: bool) -> None:
        """Create the file. Raises StorageError if it already exists (unless `replace_existing`) or is not writable."""
        super().__init__(header, path, replace_existing=replace_existing, own=True)
        if self.failure is not None:
            raise StorageError(self.failure.what, "Give another path.")
        self._lock = threading.RLock()  # a signal handler of the program may interrupt a write, and compile
        self._owner = os.getpid()
        self._waiting: deque[Event] = deque()
        """Events of a signal handler that interrupts the writing of another one: lines keep their order."""
        self._is_writing = False
        self._ids: dict[str, str] = {"": PROGRAM_RUN}
        self._planned: dict[str, RunPlanned] = {}
        """Runs that are not closed yet."""
        self._finished: dict[str, RunFinished] = {}
        self._sources: set[str] = set()
        """Names of source files in the events."""

    def emit(self, event: Event) -> None:
        """Write `event`. An event without a run id belongs to the program's run; each other id becomes `r2`, `r3`..."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            run = self._ids.setdefault(event.run, f"r{len(self._ids) + 1}")
            event = replace(event, run=run, monotonic_seconds=event.monotonic_seconds or time.monotonic())
            match event:
                case Compiled():
                    self._sources |= {location.file for location in (event.called_from, event.defined_at) if location}
                case ProgramSampled():
                    self._sources |= {line.file for line in event.lines}
                case TextRecorded(name="hlo"):
                    from jaxprof.hlo.source import own_files

                    self._sources |= own_files(event.text)
            self._waiting += in_pieces(event)
            if self._is_writing:
                return
            self._is_writing = True
            try:
                while self._waiting:
                    self.append(self._waiting.popleft())
            finally:
                self._is_writing = False

    def finish(self, finished: RunFinished, wall_seconds: float) -> None:
        """Write the program's last event, then close every run and the file."""
        with self._lock:
            if digests := digests_of_sources(self._sources, self.header.wall_seconds):
                self.emit(SourcesRead.of(digests))
            self.emit(finished)
            for run, plan in list(self._planned.items()):
                wall = wall_seconds if run == PROGRAM_RUN else None
                ended = self._finished.get(run, finished)
                now = time.monotonic()
                self.append(RunClosed.of(run, plan.spec, ended, wall_seconds=wall, monotonic_seconds=now))
            self.append(SessionClosed(monotonic_seconds=time.monotonic()))
            self.close()

    def append(self, event: Event) -> Event:
        """Write `event`, unless the file cannot be written any more."""
        match event:
            case RunPlanned():
                self._planned[event.run] = event
            case RunFinished():
                self._finished[event.run] = event
            case RunClosed():
                self._planned.pop(event.run, None)
        return super().append(event) if self.failure is None else event


def job_process(environment: Mapping[str, str] = os.environ) -> JobProcess:
    """Return which process of a job this is: from JAX's distributed runtime if it is initialised, else from the
    launcher's variables, else the only process."""
    by_launcher = job_process_of_launcher(environment)
    jax = sys.modules.get("jax")
    if jax is not None and jax.distributed.is_initialized():
        return replace(by_launcher, index=jax.process_index(), count=jax.process_count())
    return by_launcher


_lock = threading.RLock()
_current: list[Recording] = []
"""The active recording of this process, if any. Guarded by `_lock`."""


def record(
    path: str | Path | None = None,
    *,
    replace: bool = False,
    capture_after_seconds: float | None = None,
    capture_steps: int | None = None,
    capture_seconds: float | None = None,
    function: str = "",
    values: bool = False,
    keep_constants: bool = False,
    process_index: int | None = None,
    process_count: int | None = None,
) -> Recording:
    """Start recording this program into `path` at once, until the `with` block or the program ends.

    Without a `path` the session is kept with the others that `jaxprof sessions` lists. `.jaxprof` is added if there is
    no extension. Each process of a job writes its own file, `run.process3.jaxprof`. `process_index` and `process_count`
    say which process it is; by default they come from JAX if `jax.distributed` is initialised, else from the launcher's
    variables (srun, mpirun).

    `capture_after_seconds`, `capture_steps`, `capture_seconds`: a window in which JAX's profiler is on. `function`: a
    function to measure at the end, as `jaxprof.profile` would, with the arguments of one real call: their own `values`,
    or random ones. `keep_constants`: keep long literals in recorded programs.

    Raises UsageError for a URL, and if this process is already being recorded; StorageError if the file already exists
    (unless `replace`) or cannot be written. In a child of `multiprocessing`, and in a program that `jaxprof script`
    started, nothing is recorded, and `recording.note` says so.
    """
    from jaxprof.engine.protocol import RecordingOptions

    options = RecordingOptions(
        capture_after_seconds=capture_after_seconds,
        capture_steps=capture_steps,
        capture_seconds=capture_seconds,
        function=function,
        values=values,
        keep_constants=keep_constants,
    )
    detected = job_process()
    process = JobProcess(
        detected.index if process_index is None else process_index,
        detected.count if process_count is None else process_count,
        detected.job,
    )
    if not 0 <= process.index < process.count:
        raise UsageError(
            f"there is no process {process.index} of {process.count}", "process_index counts from 0 to process_count-1."
        )
    instead = "Record here, and copy it there; `jaxprof script --out URL` records to a store."
    target = path_here(path, instead) if path is not None else None
    return _start_recording(target, "record", options, process, replace_existing=replace)


def record_cell(path: Path | None, title: str = "cell", name_of: Callable[[str], str] = str) -> Recording:
    """Start recording a notebook cell, as `record` does. `title`: the cell's name, `In [4]`. `name_of`: a function from
    the file name of a cell's code to the cell's name."""
    from jaxprof.engine.protocol import RecordingOptions

    cell = Cell(title, name_of)
    return _start_recording(path, "cell", RecordingOptions(), job_process(), replace_existing=False, cell=cell)


@frozen
class Cell:
    """A notebook cell that is being recorded."""

    title: str
    name_of: Callable[[str], str]

    def with_cell_names(self, event: Event) -> Event:
        """Return the event with cell names in its source locations instead of IPython's file names for cells."""
        changed = {
            field.name: self._with_cell_names(value)
            for field in fields(event)
            if isinstance(value := getattr(event, field.name), list) or hasattr(value, "file")
        }
        return replace(event, **changed) if changed else event

    def _with_cell_names(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._with_cell_names(item) for item in value]
        return replace(value, file=self.name_of(value.file)) if getattr(value, "file", "") else value


def _start_recording(
    path: Path | None,
    how: str,
    options: RecordingOptions,
    process: JobProcess,
    *,
    replace_existing: bool,
    cell: Cell | None = None,
) -> Recording:
    """Begin to record this process into `path`, a new kept session if None; `how` as in `ProgramStarted`. Return a
    recording without a log if another program of jaxprof records it already. Raises UsageError, StorageError."""
    refuse_to_run("recording a program")
    with _lock:
        if _current:
            raise UsageError(
                f"this program is already being recorded, into {_current[0].path}",
                "One recording at a time: end the first one with its `with` block, or `recording.stop()`.",
            )
        # This module is imported only in programs that `jaxprof script` has started.
        if getattr(sys.modules.get("jaxprof.recorder.launch"), "begun", False):
            note = "not recorded: jaxprof script is already recording this program"
            return Recording(path or Path(), None, how, options, note=note)
        header = new_header(header_environment())
        header = replace(header, process_index=process.index, process_count=process.count, job=process.job)
        target = path if path is not None else Library().new_path(header)
        target = target if target.suffix else target.with_suffix(EXTENSION)
        if process.count > 1:
            target = target.with_name(f"{target.stem}.process{process.index}{target.suffix}")
        try:
            log = ProgramLog(header, target, replace_existing=replace_existing)
        except StorageError:
            if not is_live(target):
                raise
            # also while such a child imports the program's main module
            if multiprocessing.parent_process() is not None or multiprocessing.current_process().name != "MainProcess":
                note = f"not recorded: the parent process writes {target}"
                return Recording(target, None, how, options, note=note)
            # Another process of the program writes the first one.
            own = target.with_name(f"{target.stem}.{socket.gethostname()}-{os.getpid()}{target.suffix}")
            log = ProgramLog(header, own, replace_existing=replace_existing)
        recording = Recording(log.path or target, log, how, options, cell=cell)
        _current.append(recording)
    return recording


class Recording:
    """An active or finished recording, made by `record`."""

    def __init__(
        self,
        path: Path,
        log: ProgramLog | None,
        how: str,
        options: RecordingOptions,
        note: str = "",
        cell: Cell | None = None,
    ) -> None:
        self.path = path
        """The session's file."""
        self.note = note
        """Why nothing is recorded, or what happened to the file meanwhile; empty otherwise."""
        self._log = log
        self._cell = cell
        self._windows: list[CaptureWindow] = []
        self._began = time.monotonic()
        self._owner = os.getpid()
        self._compiled = False
        self._fatal_before = getattr(sys, "last_value", None)
        self._recorder: Recorder | None = None
        if log is not None:
            from jaxprof.recorder.recorder import Recorder

            name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] not in ("", "-c") else "program"
            name = self._cell.title if self._cell is not None else name
            log.emit(RunPlanned(spec=RunSpec(workload=name, variant="program", how="program", device="host")))
            log.emit(WorkerStarted(pid=os.getpid(), python=sys.executable))
            argv = [name] if self._cell is not None else None
            self._recorder = Recorder(self._take, options, how=how, argv=argv)
            atexit.register(self._at_exit)
            self._recorder.start()

    @property
    def active(self) -> bool:
        """Whether this process is still being recorded."""
        return self._recorder is not None

    @property
    def session(self) -> Session:
        """The session so far, read from its file."""
        return load(self.path)

    def capture(self, seconds: float | None = None, steps: int | None = None) -> None:
        """Start JAX's profiler now, for this many seconds or steps. Does nothing if nothing is recorded."""
        if self._recorder is not None:
            self._recorder.capture(seconds=seconds, steps=steps)

    def stop(self, error: BaseException | None = None) -> None:
        """End the recording and close its file. A second call does nothing, nor does a call in a forked child.

        `error`: the exception that ended the program, if any.
        """
        with _lock:
            recorder, self._recorder = self._recorder, None
            if self in _current:
                _current.remove(self)
        if recorder is None or self._log is None or os.getpid() != self._owner:
            return
        atexit.unregister(self._at_exit)
        recorder.stop(error=error)
        for number, window in enumerate(self._windows, start=1):
            self._add_window_profile(window, f"window:{number}")
        self._log.finish(_ending(error), time.monotonic() - self._began)
        self.path = self._log.path or self.path
        if self._log.changed or self._log.failure is not None:
            self.note = self._log.changed or str(self._log.failure)
            warnings.warn(f"jaxprof: {safe(self.note)}", RuntimeWarning, stacklevel=2)

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop(error)

    def __repr__(self) -> str:
        state = "recording" if self.active else (self.note or "recorded")
        return f"<jaxprof.Recording {self.path} [{state}]>"

    def _take(self, event: Event) -> None:
        assert self._log is not None
        if isinstance(event, CaptureWindow) and event.state == "ended":
            self._windows.append(event)
        self._log.emit(self._cell.with_cell_names(event) if self._cell is not None else event)
        if isinstance(event, JaxImported) or (isinstance(event, Compiled) and not self._compiled):
            self._compiled = isinstance(event, Compiled)
            # Register it again, after the handlers of JAX, so that it runs first: JAX registers its clean-up when it is
            # imported and when its backends start, and a function cannot be measured after that clean-up.
            if self._recorder is not None and os.getpid() == self._owner:
                atexit.unregister(self._at_exit)
                atexit.register(self._at_exit)

    def _at_exit(self) -> None:
        error = getattr(sys, "last_value", None)
        self.stop(error if error is not self._fatal_before else None)

    def _add_window_profile(self, window: CaptureWindow, run: str) -> None:
        """Add the profile of a capture window to the session as runs. Delete its folder unless it cannot be read."""
        from jaxprof.engine.main import open_trace
        from jaxprof.engine.measure.control import RunControl
        from jaxprof.engine.protocol.request import OpenTraceRequest

        assert self._log is not None
        statuses: list[str] = []

        def emit(event: Event) -> None:
            event = replace(event, run=event.run or run)
            if isinstance(event, RunFinished) and event.run == run:
                statuses.append(event.status)
            self._log.emit(event)  # type: ignore[union-attr]

        plan = RunPlanned(
            run=run, spec=RunSpec(workload="capture window", variant="profile", how="imported", device="profile")
        )
        self._log.emit(plan)
        open_trace(OpenTraceRequest(run=run, path=window.path), emit, RunControl())
        if statuses == ["ok"]:
            shutil.rmtree(window.path, ignore_errors=True)
        else:
            message = f"the profile of the window could not be read, and is still in {window.path}"
            self._log.emit(WarningRaised(code="window_unread", message=message))


def _ending(error: BaseException | None) -> RunFinished:
    if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return RunFinished(status="ok")
    if isinstance(error, KeyboardInterrupt):
        return RunFinished(status="cancelled", error="interrupted")
    if isinstance(error, SystemExit):
        return RunFinished(status="failed", error=f"exit code {error.code}")
    from jaxprof.engine.measure.failure import failure_of

    return failure_of(error)
