"""`jaxprof.record`: a program that records itself, for where it cannot be launched through `jaxprof script`.

    import jaxprof

    jaxprof.record("run.jaxprof")          # from here to the end of the program

    with jaxprof.record("run.jaxprof"):    # or just this block
        train()

What is recorded is what `jaxprof script` records, but for the program's output, its exit code and the readings of its
devices, which only somebody outside can see. Everything is in the file as soon as it happened.
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
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from jaxprof.api.processes import JobProcess, file_for, file_of_its_own, job_process
from jaxprof.api.profiling import header_environment
from jaxprof.api.program_log import ProgramLog
from jaxprof.errors import StorageError, UsageError
from jaxprof.events import (
    CaptureWindow,
    Compiled,
    Event,
    JaxImported,
    RunFinished,
    RunPlanned,
    WarningRaised,
    WorkerStarted,
)
from jaxprof.store import Library, new_header
from jaxprof.store.library import is_live

if TYPE_CHECKING:
    from jaxprof.api.session import Session
    from jaxprof.engine.recording import RecordingOptions
    from jaxprof.program.recorder import Recorder

_LAUNCHER = "jaxprof.program.launch"
"""Is imported in programs that `jaxprof script` has started, and nowhere else."""
_lock = threading.RLock()
_current: list[Recording] = []
"""The one recording that goes on in this process, if any."""


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
    """Starts recording this program into `path` at once, until the `with` block or the program ends.

    Without a `path` the session is kept with the others, as `jaxprof sessions` lists them; `.jaxprof` is added where
    there is no extension. Of a job of several processes each writes its own file, `run.process3.jaxprof`: which one it
    is, is asked of JAX where `jax.distributed` is initialised, else of the launcher's variables (srun, mpirun), else
    told by `process_index` and `process_count`.

    `capture_after_seconds`, `capture_steps`, `capture_seconds`: a window in which JAX's profiler is on. `function`: a
    function of which one call's arguments are kept, and that is measured at the end as `jaxprof.profile` would, with
    the argument's own `values` or with made-up ones. `keep_constants`: keep long literals in recorded programs.

    Raises UsageError where this process is being recorded already, StorageError where the file is there already
    (unless `replace`) or cannot be written. Nothing is recorded, and `recording.note` says so, where the line runs
    again in a child of `multiprocessing`, and where the program was started with `jaxprof script`.
    """
    from jaxprof.engine.recording import RecordingOptions

    options = RecordingOptions(
        capture_after_seconds=capture_after_seconds,
        capture_steps=capture_steps,
        capture_seconds=capture_seconds,
        function=function,
        values=values,
        keep_constants=keep_constants,
    )
    found = job_process()
    process = JobProcess(
        found.index if process_index is None else process_index,
        found.count if process_count is None else process_count,
    )
    if not 0 <= process.index < process.count:
        raise UsageError(
            f"there is no process {process.index} of {process.count}", "process_index counts from 0 to process_count-1."
        )
    target = Path(path).expanduser() if path is not None else None
    return _started(target, "record", options, process, replace=replace)


def record_cell(path: Path | None) -> Recording:
    """As `record`, for a cell of a notebook."""
    from jaxprof.engine.recording import RecordingOptions

    return _started(path, "cell", RecordingOptions(), job_process(), replace=False)


def _started(
    path: Path | None, how: str, options: RecordingOptions, process: JobProcess, *, replace: bool
) -> Recording:
    with _lock:
        if _current:
            raise UsageError(
                f"this program is being recorded already, into {_current[0].path}",
                "One recording at a time: end the first one with its `with` block, or `recording.stop()`.",
            )
        recording = _begin(path, how, options, process, replace=replace)
        if recording.active:
            _current.append(recording)
    return recording


def _begin(path: Path | None, how: str, options: RecordingOptions, process: JobProcess, *, replace: bool) -> Recording:
    if _LAUNCHER in sys.modules:
        note = "not recorded: jaxprof script records this program already"
        return Recording(path or Path(), None, how, options, note=note)
    header = new_header(header_environment())
    header = _with_process(header, process)
    target = file_for(path if path is not None else Library().new_path(header), process)
    try:
        log = ProgramLog(header, target, replace_existing=replace)
    except StorageError:
        if not is_live(target):
            raise
        if _is_child():
            note = f"not recorded: {target} is written by the parent process"
            return Recording(target, None, how, options, note=note)
        log = ProgramLog(header, file_of_its_own(target, socket.gethostname()), replace_existing=replace)
    return Recording(log.path, log, how, options)


def _is_child() -> bool:
    """Whether this is a child of multiprocessing, also while it still imports the program's main module."""
    return multiprocessing.parent_process() is not None or multiprocessing.current_process().name != "MainProcess"


def _with_process(header: Any, process: JobProcess) -> Any:
    return replace(header, process_index=process.index, process_count=process.count)


class Recording:
    """A recording that goes on, or is over. `record` makes it."""

    def __init__(self, path: Path, log: ProgramLog | None, how: str, options: RecordingOptions, note: str = "") -> None:
        self.path = path
        """The session's file."""
        self.note = note
        """Why nothing is recorded; empty where it is."""
        self._log = log
        self._windows: list[CaptureWindow] = []
        self._began = time.monotonic()
        self._owner = os.getpid()
        self._compiled = False
        self._fatal_before = getattr(sys, "last_value", None)
        self._recorder: Recorder | None = None
        if log is not None:
            self._start(log, how, options)

    @property
    def active(self) -> bool:
        """Whether it goes on."""
        return self._recorder is not None

    @property
    def session(self) -> Session:
        """The session as far as it is written, read from its file."""
        from jaxprof.api.session import load

        return load(self.path)

    def capture(self, seconds: float | None = None, steps: int | None = None) -> None:
        """Switches JAX's profiler on now, for so many seconds or steps; nothing happens where nothing is recorded."""
        if self._recorder is not None:
            self._recorder.capture(seconds=seconds, steps=steps)

    def stop(self, error: BaseException | None = None) -> None:
        """Ends the recording and closes its file; a second time, and in a forked child, nothing happens.

        `error`: what ended the program, where that was an exception.
        """
        with _lock:
            recorder, self._recorder = self._recorder, None
            if self in _current:
                _current.remove(self)
        if recorder is None or self._log is None or os.getpid() != self._owner:
            return
        atexit.unregister(self._at_exit)
        recorder.stop(interrupted=isinstance(error, KeyboardInterrupt))
        for number, window in enumerate(self._windows, start=1):
            self._open_window(window, f"window:{number}")
        self._log.close(_finished(error), time.monotonic() - self._began)

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop(error)

    def __repr__(self) -> str:
        state = "recording" if self.active else (self.note or "recorded")
        return f"<jaxprof.Recording {self.path} [{state}]>"

    def _start(self, log: ProgramLog, how: str, options: RecordingOptions) -> None:
        from jaxprof.program.recorder import Recorder

        name = "cell" if how == "cell" else _program_name()
        log.emit(RunPlanned(workload=name, variant="program", how="program", device="host"))
        log.emit(WorkerStarted(pid=os.getpid(), python=sys.executable))
        self._recorder = Recorder(self._take, options, began_seconds=self._began, how=how)
        atexit.register(self._at_exit)
        self._recorder.start()

    def _take(self, event: Event) -> None:
        assert self._log is not None
        if isinstance(event, CaptureWindow) and event.state == "ended":
            self._windows.append(event)
        self._log.emit(event)
        if isinstance(event, JaxImported) or (isinstance(event, Compiled) and not self._compiled):
            self._compiled = isinstance(event, Compiled)
            self._be_first_at_exit()

    def _be_first_at_exit(self) -> None:
        """JAX registers its own clean-up when it is imported, and when its backends start; what was registered last
        comes first, and a function cannot be measured after that clean-up."""
        if self._recorder is not None and os.getpid() == self._owner:
            atexit.unregister(self._at_exit)
            atexit.register(self._at_exit)

    def _at_exit(self) -> None:
        error = getattr(sys, "last_value", None)
        self.stop(error if error is not self._fatal_before else None)

    def _open_window(self, window: CaptureWindow, run: str) -> None:
        """The profile of a window as runs of this session; its folder goes, unless it could not be read."""
        from jaxprof.engine.opening import open_trace
        from jaxprof.engine.request import OpenTraceRequest
        from jaxprof.measure.control import RunControl

        assert self._log is not None
        ended: list[str] = []

        def emit(event: Event) -> None:
            event = replace(event, run=event.run or run)
            if isinstance(event, RunFinished) and event.run == run:
                ended.append(event.status)
            self._log.emit(event)  # type: ignore[union-attr]

        plan = RunPlanned(run=run, workload="capture window", variant="profile", how="imported", device="profile")
        self._log.emit(plan)
        open_trace(OpenTraceRequest(run=run, path=window.path), emit, RunControl())
        if ended == ["ok"]:
            shutil.rmtree(window.path, ignore_errors=True)
        else:
            message = f"the profile of the window could not be read, and is still in {window.path}"
            self._log.emit(WarningRaised(code="window_unread", message=message))


def _program_name() -> str:
    return Path(sys.argv[0]).name if sys.argv and sys.argv[0] not in ("", "-c") else "program"


def _finished(error: BaseException | None) -> RunFinished:
    """How the program ended, as far as it can be seen from inside."""
    if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return RunFinished(status="ok")
    if isinstance(error, KeyboardInterrupt):
        return RunFinished(status="cancelled", error="interrupted")
    if isinstance(error, SystemExit):
        return RunFinished(status="failed", error=f"exit code {error.code}")
    from jaxprof.measure.failure import explain

    failure = explain(error)
    return RunFinished(status="failed", error=failure.error, advice=failure.advice, traceback=failure.traceback)
