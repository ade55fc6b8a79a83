"""Run the engine in a child process: start, request, read, cancel, end (`EngineProcess`). Follow it at work on one run:
record its events, read its device, report its silence and its end (`EngineRun`)."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path

import msgspec

from jaxprof.base.errors import WorkerError
from jaxprof.base.operating_system import python_words, refuse_own_code, refuse_to_run
from jaxprof.base.private import safe_variables
from jaxprof.base.reaper import REAPER
from jaxprof.base.units import seconds
from jaxprof.devices.live.process_state import is_stopped
from jaxprof.engine.protocol import encode_request
from jaxprof.engine.protocol.request import SCRATCH, CancelRequest, EngineAnswer, Request
from jaxprof.events import (
    DeviceReading,
    EnvironmentRead,
    Event,
    Heartbeat,
    RunFinished,
    RunPlanned,
    RunSpec,
    TurnAwaited,
    WarningRaised,
)
from jaxprof.runner.child import ChildProcess, Pipes
from jaxprof.runner.interpreter import Interpreter
from jaxprof.runner.session_recorder import BATCH_SECONDS, DeviceWatch, SessionRecorder
from jaxprof.session.lines import are_bounded
from jaxprof.workloads import names

ENGINE = Path(__file__).resolve().parent.parent / "engine" / "__main__.py"
ASK_SECONDS = 1.0
"""How long a cancelled run may take to end by itself; a compile cannot be interrupted."""
TERMINATE_SECONDS = 2.0
"""How long the engine may take to end after SIGTERM."""
_END_SECONDS = 0.2
"""How long an idle engine may take to end by itself."""
SILENCE_SECONDS = 15.0
"""Report the worker as silent after this long without a sign of the run (a heartbeat a second)."""
MAX_SILENCE_SECONDS = 300.0
"""End a worker that gives no sign of the run for this long: native code holds the interpreter's lock, the worker is
stopped, or its report was lost because measured code closes or writes to descriptors that are not its own."""
CAP_GRACE_SECONDS = 2.0
"""How far a run may exceed its hard cap before its worker is ended. The engine checks the cap between calls."""
START_UP_SECONDS = 60.0
"""Time allowed for importing and backend start on top of the hard cap."""
_ANSWER = msgspec.json.Decoder(EngineAnswer)


class EngineProcess(ChildProcess):
    """A running engine, in a process group of its own. One thread owns it; only `cancel` and `kill` may be called from
    others."""

    def __init__(self, interpreter: Interpreter, environment: Mapping[str, str] | None = None) -> None:
        """Start the engine; `environment` is laid over ours. Raises WorkerError, and UsageError on Windows."""
        refuse_to_run("measuring")
        self.python = interpreter.path
        self.answer: EngineAnswer | None = None
        """The latest reply to a request for data."""
        self._cancelled_seconds: float | None = None
        self._signals_sent = 0
        self._frozen = False
        try:
            self._scratch = tempfile.mkdtemp(prefix="jaxprof-engine-")
        except OSError:
            self._scratch = ""  # the engine finds a folder itself
        pipes = Pipes.open()
        command = python_words(interpreter.path, "-u", str(ENGINE))
        command += ["--events-fd", str(pipes.events_write), "--control-fd", str(pipes.control_read)]
        try:
            super().__init__(
                command,
                pipes,
                {**os.environ, **(environment or {}), SCRATCH: self._scratch, "PYTHONUNBUFFERED": "1"},
                name="the worker",
                descriptors=(pipes.events_write, pipes.control_read),
            )
        except BaseException:
            self._remove_scratch()
            raise
        REAPER.add(self.pid, self._scratch)

    def send(self, request: Request) -> None:
        """Send a request. Raises WorkerError if the child has ended, NotAllowedError if it may not run code."""
        spec: RunSpec | None = getattr(request, "spec", None)
        targets = (spec.target, spec.inputs_from) if spec is not None else getattr(request, "targets", ())
        for target in targets:
            if target and target not in names():
                refuse_own_code(target)
        try:
            os.write(self._control, encode_request(request))
        except OSError as error:
            raise WorkerError("the worker is gone", self.explain().what) from error

    def cancel(self) -> None:
        """Ask the run to end; else `read` terminates the child, then kills it. A second call skips the wait."""
        if self._cancelled_seconds is None:
            self._cancelled_seconds = time.monotonic()
            with contextlib.suppress(OSError):
                os.write(self._control, encode_request(CancelRequest()))
        else:
            self._cancelled_seconds -= ASK_SECONDS

    def freeze(self) -> None:
        """Stop the engine, with every thread and process of its group, until `thaw`. Return once it has stopped: on a
        busy machine a thread takes the signal only when it gets a processor. A frozen engine sends no heartbeats, and
        only `kill` and `close` end it. Only the thread that reads it may freeze and thaw it."""
        if not self._frozen and self.alive:
            self._frozen = True
            self._signal_all(signal.SIGSTOP)
            deadline = time.monotonic() + 0.1
            while not self._has_stopped() and time.monotonic() < deadline:
                time.sleep(2e-4)

    def _has_stopped(self) -> bool:
        """Return whether a signal has stopped all its threads (`is_stopped` sees only the first), or it has ended."""
        if sys.platform != "linux":
            return is_stopped(self.pid)
        try:
            return os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def thaw(self) -> None:
        if self._frozen:
            self._frozen = False
            self._signal_all(signal.SIGCONT)

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled_seconds is not None

    def close(self) -> None:
        """End the child if it still runs, and free everything. May be called twice."""
        if self._control < 0:
            return
        self.thaw()
        os.close(self._control)  # which makes the engine end
        self._control = -1
        if not self._ends_within(_END_SECONDS):
            self._signal_all(signal.SIGTERM)
            self._ends_within(TERMINATE_SECONDS)
        self.kill()  # with the processes of its group that it may have left behind
        super().close()
        self._remove_scratch()
        REAPER.drop(self.pid)

    def _remove_scratch(self) -> None:
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _ends_within(self, patience_seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_seconds)
        return not self.alive

    def _after_read(self) -> None:
        """End a cancelled child that does not end by itself."""
        if self.over or self._cancelled_seconds is None:
            return
        waited = time.monotonic() - self._cancelled_seconds
        if waited > ASK_SECONDS + TERMINATE_SECONDS and self._signals_sent == 1:
            self._signals_sent = 2
            self.kill()
        elif waited > ASK_SECONDS and self._signals_sent == 0:
            self._signals_sent = 1
            self._signal_all(signal.SIGTERM)

    def _events_in(self, line: bytes) -> list[Event]:
        if line.startswith((b'{"type": "answer"', b'{"type":"answer"')):
            try:
                self.answer = _ANSWER.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                self.answer = EngineAnswer(error=f"the worker's answer cannot be read: {error}")
            if not are_bounded(self.answer):
                self.answer = EngineAnswer(error="the worker's answer holds an impossible number")
            return []
        return super()._events_in(line)

    def _heartbeat(self, heartbeat: Heartbeat) -> None:
        if heartbeat.run:  # one that waits for a request gives no sign of the run
            super()._heartbeat(heartbeat)


class EngineRun:
    """A run on which one worker works. Only the thread that runs the queue uses it, except `process.cancel`."""

    def __init__(
        self,
        run: str,
        process: EngineProcess,
        recorder: SessionRecorder,
        watch: DeviceWatch,
        *,
        let_go: Callable[[], object],
        placed: Set[str] = frozenset(),
        max_seconds: float | None = None,
        max_silence_seconds: float = MAX_SILENCE_SECONDS,
    ) -> None:
        """`let_go` is called before the worker is closed: from then on it may not be cancelled. `placed`: the variables
        that we gave it for its device. `max_seconds`: the hard cap of its work after start-up."""
        self.run = run
        self.process = process
        self.made: dict[str, str] = {}
        """Ids in this session of the runs that the engine made itself (programs of a profile), by its own names."""
        self.keep: Callable[[Event], bool] | None = None
        """Returns whether an event is recorded; None: all are."""
        self._recorder = recorder
        self._watch = watch
        self._max_seconds = max_seconds
        self._max_silence_seconds = max_silence_seconds
        self._worked_seconds: float | None = None
        """Seconds it has worked on the run in earlier calls of `follow`; None while it starts up."""
        self._timed_out: RunFinished | None = None
        """The end of the run if we ended the worker; else None."""
        self._let_go = let_go
        self._placed = placed
        self._silence_reported = False
        self._end: Event | None = None
        """The worker's final event, if it came together with one that `follow` was to return."""

    def send(self, request: Request) -> None:
        """Send a request. A worker that has ended raises no error here: `follow` reads what it last sent and reports
        whether it crashed or was cancelled."""
        with contextlib.suppress(WorkerError):
            self.process.send(request)

    def follow(self, until: Callable[[Event], bool] = lambda event: False) -> Event:
        """Record what the worker reports until its final event, or one that `until` accepts; return that."""
        began = time.monotonic()
        try:
            while self._end is None:
                events = self.process.read(BATCH_SECONDS)
                last = next((event for event in events if self._ends(event) or until(event)), None)
                self._end = next((event for event in events if self._ends(event) and event is not last), None)
                if isinstance(last, RunFinished):
                    events += self.process.read(BATCH_SECONDS)  # the child's stderr comes on another pipe
                now = time.monotonic()
                for event in events:
                    if isinstance(event, EnvironmentRead) and self._worked_seconds is None:
                        # Start-up is over; the engine starts its clock at this event.
                        self._worked_seconds = began - now
                    self._take(event)
                if last is not None:
                    return self._timed_out or replace(last, run=self.run)
                self._recorder.flush_when_due()
                if self.process.over:
                    if self._timed_out:
                        return self._timed_out
                    if self.process.cancelled:
                        return RunFinished(run=self.run, status="cancelled", error="cancelled")
                    return RunFinished.of(self.process.explain(), "crashed", run=self.run)
                self._record(self._watch.take_when_due(now))
                silent_seconds = now - max(began, self.process.last_sign_seconds)
                if silent_seconds > SILENCE_SECONDS and not self._silence_reported:
                    self._silence_reported = True
                    message = f"the worker has given no sign of the run for {SILENCE_SECONDS:g} s"
                    fix = "It may be stopped, or hang in native code: cancel the run to end it."
                    self._recorder.emit(WarningRaised(run=self.run, code="worker_silent", message=message, advice=fix))
                self._end_in_time(now - began, silent_seconds)
            return replace(self._end, run=self.run)
        finally:
            if self._worked_seconds is not None:
                self._worked_seconds += time.monotonic() - began

    def record_readings(self) -> None:
        """Take a reading of the device now, and record it."""
        self._record(self._watch.take())

    def _record(self, readings: Sequence[DeviceReading]) -> None:
        for reading in readings:
            self._recorder.emit(replace(reading, run=self.run))

    def close(self) -> None:
        """End the worker, then take a last reading of its device."""
        self._let_go()
        self.process.close()
        self.record_readings()

    def _take(self, event: Event) -> None:
        if isinstance(event, TurnAwaited) or self._ends(event):
            return
        if isinstance(event, EnvironmentRead):
            # the user's own in place of those that we gave the worker: its run names its device
            users = safe_variables({name: os.environ[name] for name in self._placed & os.environ.keys()})
            others = {name: value for name, value in event.settings.items() if name not in self._placed}
            event = replace(event, settings={**others, **users})
        if isinstance(event, RunPlanned) and event.run in ("", self.run):  # the engine knows the device of a profile
            workload = self._recorder.session.runs[self.run].plan.workload
            event = replace(event, spec=replace(event.spec, workload=workload))
        if self.keep is None or self.keep(event):
            self._recorder.take(event, self.run, self.made)

    def _ends(self, event: Event) -> bool:
        return isinstance(event, RunFinished) and event.run in ("", self.run)

    def _end_in_time(self, following_seconds: float, silent_seconds: float) -> None:
        if self._timed_out or self.process.cancelled:
            return
        before = -START_UP_SECONDS if self._worked_seconds is None else self._worked_seconds
        if silent_seconds > self._max_silence_seconds:
            why = f"the worker gave no sign of the run for {seconds(self._max_silence_seconds)}"
            hint = "Native code may hang while it holds the GIL; --max-silence sets the limit."
        elif self._max_seconds is None or before + following_seconds <= self._max_seconds + CAP_GRACE_SECONDS:
            return
        elif self._worked_seconds is None:
            why = f"the worker was still starting after {seconds(following_seconds)}"
            hint = "Its module may do much when it is imported; a larger --max-seconds gives it more time."
        else:
            why = f"a single step of the run exceeded its hard cap of {seconds(self._max_seconds)}"
            hint = "Choose a smaller size, or a larger --max-seconds."
        self._timed_out = RunFinished(run=self.run, status="timed out", error=why, advice=hint)
        self.process.kill()
