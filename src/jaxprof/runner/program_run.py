"""Record one program from outside, in one session: its process, its events, its devices, its end.

`ProgramScheduler` has the interface of `Scheduler`, so that screens and the command line treat both alike, but it has
one run, which exists from the start. The program's own end event is completed with what only its parent can know: the
exit code, the wall time, and what could not be seen of the program.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from jaxprof.base.errors import JaxprofError
from jaxprof.base.files import MOST_SOURCES, digests_of_sources
from jaxprof.base.redaction import redact_words
from jaxprof.base.text import last_words
from jaxprof.devices.live.process_state import LOOK_SECONDS, PauseWatch, SilenceWatch
from jaxprof.events import (
    WINDOW_FOLDER,
    CaptureWindow,
    Compiled,
    EmptyCallTimed,
    Event,
    Heartbeat,
    Note,
    ProgramEnded,
    ProgramSampled,
    ProgramStarted,
    ProgramStopped,
    RunFinished,
    RunPlanned,
    RunSpec,
    SourcesRead,
    WorkerStarted,
)
from jaxprof.runner.child import OUT_OF_MEMORY
from jaxprof.runner.interpreter import Interpreter
from jaxprof.runner.program import ProgramCommand, ProgramProcess
from jaxprof.runner.session_recorder import DeviceWatch, Listener, RecordingScheduler
from jaxprof.session import LogWriter

WATCHED_AFTER_SECONDS = 0.5
"""Delay before devices are watched: looking for them takes longer than a short program."""
BATCH_SECONDS, LONGEST_BATCH_SECONDS = 1.0, 5.0
"""Shortest and longest time between flushes. A program runs for hours beside us, and a screen redrawn more often
takes more of its processor than it is worth. The first event after a pause is passed on at once."""
PATIENCE_SECONDS = 2.0
"""How long a program may take to end when the user quits the app: to write its checkpoint and its last events."""
ENDING_SECONDS = 1.0
"""A program that has ended by its own word and still runs after this long waits for something in its exit handlers, as
a process of a job does for the others: its end is recorded as far as it is known."""
WINDOW_SECONDS = 4.0
"""How long a profile may be read after a program that was asked to end; a launcher soon ends us too."""
_CHILDREN_SHARE = 0.1
"""CPU time of child processes worth a note, as a share of the program's wall time."""
HOST = "host"
"""Device of a run that may use several devices, or none."""


class _Pace:
    """Length of a batch, set by the cheaper of the last two batches, because the first one includes the start-up."""

    def __init__(self) -> None:
        self.seconds = BATCH_SECONDS
        self._used, self._cost = time.process_time(), 0.0

    def note_flush(self, used: float) -> None:
        """Note that a batch is over; `used`: CPU seconds of this process so far."""
        before, self._cost = self._cost, used - self._used
        self._used = used
        # jaxprof may use 2 % of one processor; a screen that takes more is redrawn less often.
        self.seconds = min(LONGEST_BATCH_SECONDS, max(BATCH_SECONDS, min(before, self._cost) / 0.02))


class ProgramScheduler(RecordingScheduler):
    """Runs one program and writes its session."""

    def __init__(
        self,
        writer: LogWriter,
        interpreter: Interpreter,
        listen: Listener,
        program: ProgramCommand,
        *,
        process: ProgramProcess | None = None,
    ) -> None:
        """`process`: the program, if it was started before; otherwise `start` starts it, with its output captured."""
        super().__init__(writer, interpreter, listen)
        self.program = program
        self._run = ""
        self._made: dict[str, str] = {}
        self._process = process
        self._end_event: ProgramEnded | None = None
        self._end_due = 0.0
        self._cancel_requests = 0
        self._windows: list[threading.Thread] = []
        self._window_folder = ""
        """Folder of the window that is open in the program, which removes it unless it is killed."""
        self._named_files: set[str] = set()
        """Files that events have named, whose digests were emitted if they could be."""
        self._closed = False
        self._working = False
        self._follower: threading.Thread | None = None
        self._over = threading.Event()

    @property
    def busy(self) -> bool:
        """Whether the program runs, or its capture windows are being read."""
        return self._working

    @property
    def exit_code(self) -> int | None:
        """The program's exit status as in a shell; None before its end."""
        return self._process.exit_code if self._process is not None else None

    def start(self) -> str:
        """Start the program unless it runs; return the id of its run. Raises WorkerError if it cannot be started."""
        self._working = True
        self._run = self._session_recorder.new_id()
        self._emit(RunPlanned(spec=RunSpec(workload=self.program.name, variant="program", how="program", device=HOST)))
        try:
            process = self._process or ProgramProcess(self.interpreter.path, self.program, inherit=False)
        except JaxprofError as error:
            self._working = False
            self._session_recorder.close_run(self._run, RunFinished.of(error))
            raise
        self._process = process
        began = process.began_seconds
        self._emit(WorkerStarted(pid=process.pid, python=self.interpreter.path, monotonic_seconds=began))
        self._emit(
            ProgramStarted(
                argv=redact_words(self.program.argv),
                how="module" if self.program.module else "script",
                directory=self.program.directory or _directory(),
                options=asdict(self.program.options),
                monotonic_seconds=began,
            )
        )
        self._session_recorder.flush()
        return self._run

    def run(self) -> None:
        """Follow the program to its end."""
        process = self._process
        if process is None:
            return
        watch: DeviceWatch | None = None
        pauses, silence = PauseWatch(process.pid), SilenceWatch(process.pid)
        self._follower = threading.current_thread()
        pace = _Pace()
        try:
            while True:
                events = process.read(LOOK_SECONDS)
                for event in events:
                    self._take(pauses.witness(event) if isinstance(event, ProgramStopped) else event)
                if self._session_recorder.flush_when_due(pace.seconds):
                    pace.note_flush(time.process_time())
                now = time.monotonic()
                for pause in pauses.end(now) if process.over else pauses.look(now):
                    self._emit(pause)
                if process.over:
                    due = now + WINDOW_SECONDS
                    break
                ended, heartbeat, stopped = self._end_event, process.heartbeat or Heartbeat(), pauses.in_long_pause(now)
                if ended is None and (stopped or heartbeat.since_seconds is not None):
                    # before an iteration has ended, imports may hold the interpreter's lock for long
                    seen = silence.look(now, process.last_sign_seconds, heartbeat, process.layout, stopped=stopped)
                    if seen is not None:
                        self._emit(seen)
                elif ended is not None and self._end_due and now >= self._end_due:
                    self._end_due = 0.0  # it has ended, and is still there
                    self._emit(replace(ended, wall_seconds=now - process.began_seconds, monotonic_seconds=0.0))
                if watch is None and now - process.began_seconds >= WATCHED_AFTER_SECONDS:
                    watch = DeviceWatch()
                captured = bool(self._window_folder)
                for reading in watch.take_when_due(time.monotonic(), captured=captured) if watch is not None else ():
                    self._emit(reading)
            for thread in self._windows:
                while thread.is_alive() and not (process.end_request() and time.monotonic() > due):
                    thread.join(LOOK_SECONDS)
        finally:
            for reading in watch.held() if watch is not None else ():
                self._emit(reading)
            if not self._closed:
                self._finish(process)
            self._working = False
            self._over.set()

    def capture(self, seconds: float) -> None:
        """Request a window in which JAX's profiler is on for some seconds."""
        if self._process is not None:
            self._process.capture(seconds)

    def cancel(self, run: str) -> None:
        """Interrupt the program as ctrl+c would; a second call sends SIGTERM, a third SIGKILL. Ignores other ids."""
        if run != self._run or self._process is None:
            return
        self._cancel_requests += 1
        if self._cancel_requests > 2:
            self._process.kill()
        else:
            self._process.signal(signal.SIGINT if self._cancel_requests == 1 else signal.SIGTERM)

    def cancel_all(self) -> None:
        self.cancel(self._run)

    def close(self, reason: str = "finished") -> None:
        """End the program if it runs, and close the log with its last event. The program may take `PATIENCE_SECONDS`
        to clean up, and its events until then are kept."""
        if not self._closed and self._process is not None and self._process.alive:
            self._cancel_requests += 1
            self._process.end(PATIENCE_SECONDS)
            if self._follower not in (None, threading.current_thread()):
                self._over.wait(PATIENCE_SECONDS / 4)
        with self._session_recorder.lock:
            if self._closed:
                return
            self._closed = True
            self._session_recorder.close(reason)

    def _emit(self, event: Event) -> None:
        self._session_recorder.emit(replace(event, run=self._run))

    def _take(self, event: Event) -> None:
        if isinstance(event, ProgramEnded):
            self._end_event, self._end_due = event, time.monotonic() + ENDING_SECONDS
            return
        self._session_recorder.take(event, self._run, self._made)
        if isinstance(event, ProgramSampled):
            self._emit_sources(line.file for line in event.lines)
        elif isinstance(event, Compiled):
            self._emit_sources((event.called_from.file, event.defined_at.file))
        elif isinstance(event, CaptureWindow):
            self._window_folder = event.path if event.state == "began" else ""
            if event.state == "ended":
                from jaxprof.runner.profiles import open_window

                def work() -> None:
                    if open_window(self._session_recorder, event.path):
                        shutil.rmtree(event.path, ignore_errors=True)

                thread = threading.Thread(target=work, name="jaxprof-window", daemon=True)
                self._windows.append(thread)
                thread.start()

    def _finish(self, process: ProgramProcess) -> None:
        wall = time.monotonic() - process.began_seconds
        if self._end_event is not None and self.program.options.function:
            wall = self._end_event.wall_seconds  # the function was measured after the program's own end
        # The last sources are the program's own file, and those that the HLO of its capture windows names.
        named = set()
        for run in self.session.runs.values():
            if "hlo" in run.texts:
                from jaxprof.hlo.source import own_files

                named |= own_files(self.session.text(run.id, "hlo") or "")
        if not self.program.module and self.program.argv:
            named.add(str(Path(self.program.directory or _directory(), self.program.argv[0])))
        self._emit_sources(named)
        ended = self._end_event or ProgramEnded(exit_code=None, wall_seconds=wall)
        if Path(self._window_folder).name.startswith(WINDOW_FOLDER):
            shutil.rmtree(self._window_folder, ignore_errors=True)
        notes = list(ended.notes)
        program = self.session.runs[self._run].program
        if not process.heartbeat_seen:
            notes.append(Note(code="not_recorded"))
        elif self._end_event is None:
            notes.append(Note(code="not_unwound", by_signal=(process.returncode or 0) < 0))
        elif program is not None and program.jax is None:
            folder = Path(self.program.directory or _directory())
            first = folder if self.program.module else (folder / self.program.path).parent
            notes.append(Note(code="no_jax", shadowed=(first / "jax.py").is_file()))
        if process.children_seconds >= _CHILDREN_SHARE * wall:
            notes.append(Note(code="child_processes", seconds=process.children_seconds))
        self._emit(replace(ended, exit_code=process.exit_code, wall_seconds=wall, notes=notes, monotonic_seconds=0.0))
        finished = self._outcome(process)
        self._session_recorder.close_runs([*self._made.values(), self._run], finished)
        process.close()
        self._session_recorder.flush()
        self._time_empty_call()

    def _time_empty_call(self) -> None:
        """Time an empty call if calls of the hot loop are so brief that their own work has to be told from it. A job's
        processes, which may be thousands, leave that unknown, and so does a program that the user ended."""
        from jaxprof.analysis.programs.loop_time import needs_empty_call
        from jaxprof.findings.program_result import program_result

        interrupted = self._cancel_requests or self._closed or self.session.runs[self._run].status == "cancelled"
        if interrupted or self.session.process_count != 1:
            return
        hot = program_result(self.session, self._run).hot
        if not needs_empty_call(hot):
            return
        # A quarter of what following a program imports, and few programs have such a loop.
        from jaxprof.engine.protocol.request import EmptyCallRequest
        from jaxprof.runner.engine_questions import empty_call_seconds

        arrays, numbers = hot.brief_call
        try:
            seconds = empty_call_seconds(self.interpreter, EmptyCallRequest(arrays=arrays, numbers=numbers))
        except JaxprofError:
            return  # the verdict says what is unknown
        with self._session_recorder.lock:
            if not self._closed:
                self._emit(EmptyCallTimed(seconds=seconds, arrays=arrays, numbers=numbers))
                self._session_recorder.flush()

    def _emit_sources(self, files: Iterable[str]) -> None:
        """Emit the digests of files that the recording names for the first time, so that their lines can be shown while
        the program runs; not of files changed since the program began, which may not be what ran."""
        new = {*files} - self._named_files
        if new and len(self._named_files) < MOST_SOURCES:
            self._named_files |= new
            if digests := digests_of_sources(new, self.session.header.wall_seconds):
                self._emit(SourcesRead.of(digests))

    def _outcome(self, process: ProgramProcess) -> RunFinished:
        code = process.returncode
        if code == 0:
            return RunFinished(status="ok")
        raised_seconds = self._end_event.error_seconds if self._end_event is not None else None
        request = process.end_request(raised_seconds)
        if request is None and (self._cancel_requests or code == -signal.SIGINT):
            request = signal.SIGINT
        if request is not None and process.explain().what != OUT_OF_MEMORY:
            error = "interrupted" if request == signal.SIGINT else f"ended by {signal.Signals(request).name}"
            killed = "; it did not end, and was killed" if code == -signal.SIGKILL else ""
            return RunFinished(status="cancelled", error=error + killed)
        if code is None or code < 0:
            return RunFinished.of(process.explain(), "crashed")
        words = last_words([line.text for line in self.session.runs[self._run].log if line.stream == "stderr"])
        return RunFinished(
            status="failed", error=f"exit code {code}", advice=f"It last wrote: {words}" if words else ""
        )


def _directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""
