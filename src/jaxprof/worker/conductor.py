"""The queue of runs: one fresh engine process for each, its events numbered, written to the log and passed on.

It draws nothing and prints nothing. `run` blocks its thread until the queue is empty; everything else may be called
from another thread. Whatever happens to a child, its run is closed in the log and the next one goes on.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeGuard

from jaxprof.engine.request import Answer, Request, RunRequest
from jaxprof.errors import JaxprofError, StorageError
from jaxprof.events import (
    DeviceReading,
    Event,
    Heartbeat,
    RunFinished,
    WarningRaised,
    WorkerStarted,
)
from jaxprof.session import Session
from jaxprof.store import LogWriter
from jaxprof.telemetry.placement import WorkerEnvironment
from jaxprof.worker import attribution
from jaxprof.worker.interpreter import Interpreter
from jaxprof.worker.journal import BATCH_SECONDS, Journal, Listener
from jaxprof.worker.placement import place
from jaxprof.worker.planning import Planned
from jaxprof.worker.process import EngineProcess
from jaxprof.worker.requests import plan_event, run_request
from jaxprof.worker.watch import DeviceWatch

SILENCE_SECONDS = 15.0
"""A child whose heartbeat (one a second) has stopped for so long is told to hang."""
CAP_GRACE_SECONDS = 5.0
"""How much longer than its hard cap a run may take before it is cancelled from here."""
START_UP_SECONDS = 60.0
"""What importing and backend start may take on top of the hard cap."""


class Conductor:
    """Works a queue of planned runs. One of these writes a session."""

    def __init__(
        self,
        writer: LogWriter,
        interpreter: Interpreter,
        listen: Listener,
        placement: Callable[[Planned, Interpreter], WorkerEnvironment] = place,
    ) -> None:
        self.writer = writer
        self.interpreter = interpreter
        self._journal = Journal(writer, listen)
        self._placement = placement
        self._lock = self._journal.lock
        self._queue: deque[tuple[str, Planned]] = deque()
        self._ids: dict[Planned, str] = {}
        self._made: dict[str, str] = {}
        """Runs that the current engine made itself (programs of a profile): its name of each, and our id."""
        self._process: EngineProcess | None = None
        self._waiting: EngineProcess | None = None
        self._current = ""
        self._closed = False

    @property
    def session(self) -> Session:
        """The conductor's own fold; it belongs to the thread that calls `run`."""
        return self._journal.session

    @property
    def storage_failure(self) -> StorageError | None:
        """Why the session is not being written, if it is not."""
        return self.writer.failure

    @property
    def busy(self) -> bool:
        """Whether a run is going on or waits."""
        with self._lock:
            return bool(self._current or self._queue)

    def add(self, planned: Sequence[Planned]) -> list[str]:
        """Puts runs into the queue and says so as events; gives their ids, in the same order."""
        ids: list[str] = []
        with self._lock:
            for plan in planned:
                run = self._ids[plan] = self._journal.new_id()
                self._queue.append((run, plan))
                ids.append(run)
                self._journal.emit(plan_event(run, plan, self._ids))
            self._journal.flush()
        return ids

    def prepare(self, planned: Planned) -> None:
        """Starts a child that imports jax and waits, so that the next run like `planned` need not. Best effort."""
        if planned.how == "numpy" or self.interpreter.jax is None:
            return
        environment = self._placement(planned, self.interpreter).environment
        with self._lock:
            if self._waiting is not None or self._current or self._closed:
                return
            try:
                self._waiting = EngineProcess(self.interpreter, environment, import_jax=True)
            except JaxprofError:  # the run itself will meet it, and tell
                self._waiting = None

    def run(self) -> None:
        """Works the queue until it is empty."""
        while True:
            with self._lock:
                if not self._queue or self._closed:
                    self._journal.flush()
                    return
                run, planned = self._queue.popleft()
                self._current = run
            try:
                self._one(run, planned)
            finally:
                with self._lock:
                    self._current, self._process = "", None
                    self._journal.flush()

    def cancel(self, run: str) -> None:
        """Cancels a run that waits or goes on; a second time, without patience. Other ids are ignored."""
        with self._lock:
            if run == self._current:
                if self._process is not None:
                    self._process.cancel()
                return
            for entry in self._queue:
                if entry[0] == run:
                    self._queue.remove(entry)
                    self._journal.close_run(
                        run, RunFinished(run=run, status="cancelled", error="cancelled before it began")
                    )
                    self._journal.flush()
                    return

    def cancel_all(self) -> None:
        """Cancels what waits, and the run that goes on."""
        with self._lock:
            waiting = [run for run, _ in self._queue]
        for run in waiting:
            self.cancel(run)
        self.cancel(self._current)

    def move_to(self, path: Path) -> None:
        """Goes on writing the session in another file, with everything so far. Raises StorageError."""
        with self._lock:
            self.writer.move_to(path)

    def close(self, reason: str = "finished") -> None:
        """Ends the children, closes the log in good order. What still waits or runs is closed as cancelled."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._queue.clear()
            for process in (self._waiting, self._process):
                if process is not None:
                    process.kill()
            if self._waiting is not None:
                self._waiting.close()
            from jaxprof.results.ceilings import remember  # the HLO room with it: not before the first frame

            self._journal.close(reason, before_the_end=remember)

    def _one(self, run: str, planned: Planned) -> None:
        """One run, from the start of its process to the event that closes it."""
        try:
            placement = self._placement(planned, self.interpreter)
            process = self._start(planned, placement)
        except JaxprofError as error:
            self._journal.close_run(run, RunFinished(run=run, status="failed", error=error.what, advice=error.mend))
            return
        watch = DeviceWatch(planned.device, self.interpreter.path)
        try:
            self._journal.emit(WorkerStarted(run=run, pid=process.pid, python=self.interpreter.path))
            for text in placement.notes:
                self._journal.emit(WarningRaised(run=run, code="placement", message=text))
            self._hold(process)
            finished = self._follow(
                run, planned, process, run_request(run, planned, placement.device, self.writer.path), watch
            )
        except JaxprofError as error:
            finished = RunFinished(run=run, status="crashed", error=error.what, advice=error.mend)
        finally:
            self._hold(None)
            process.close()
            self._tell_readings(run, watch.take())
            watch.close()
        if finished.status == "ok":
            self._attribute(run, planned, placement)
        for made in self._made.values():
            if self.session.runs[made].closed is None:
                self._journal.close_run(made, replace(finished, run=made))
        self._made = {}
        self._journal.close_run(run, finished)

    def _attribute(self, run: str, planned: Planned, placement: WorkerEnvironment) -> None:
        """Where the run's kernels told no names: a capture of a second child, which makes them tell."""
        known, flags = self.session.runs[run], attribution.xla_flags(placement.environment)
        captured, kernels = known.captures.get("run"), known.measured.get("run")
        asked = run_request(run, planned, placement.device, None)
        if isinstance(asked, RunRequest) and attribution.is_needed(
            planned.device, flags, captured, kernels, how=planned.how
        ):
            attribution.capture(self._journal, known, asked, self.interpreter, placement.environment, self._hold)

    def _hold(self, process: EngineProcess | None) -> None:
        """The child that goes on, which is the one to cancel; None where none does."""
        with self._lock:
            self._process = process

    def _start(self, planned: Planned, placement: WorkerEnvironment) -> EngineProcess:
        with self._lock:
            waiting, self._waiting = self._waiting, None
        if waiting is not None:
            fits = waiting.alive and waiting.environment == placement.environment and planned.how != "numpy"
            if fits:
                return waiting
            waiting.kill()
            waiting.close()
        return EngineProcess(self.interpreter, placement.environment)

    def _follow(
        self, run: str, planned: Planned, process: EngineProcess, request: Request, watch: DeviceWatch
    ) -> RunFinished:
        """Passes the events of one run on until it is over; gives the word that ends it."""
        process.send(request)
        self._tell_readings(run, watch.take())
        silent_told = False
        cap = None if planned.max_seconds is None else planned.max_seconds + CAP_GRACE_SECONDS + START_UP_SECONDS
        began = time.monotonic()
        while True:
            items = process.read(BATCH_SECONDS)
            finished = next((item for item in items if _ends(item, run)), None)
            if finished is not None:
                items += process.read(BATCH_SECONDS)  # what the child wrote to its stderr comes on another pipe
            for item in items:
                self._take(run, item)
            if finished is not None:
                return replace(finished, run=run)
            self._journal.flush_when_due()
            if not items and not process.alive:
                return self._ended(run, process)
            now = time.monotonic()
            if watch.due(now):
                self._tell_readings(run, watch.take())
            if not silent_told and now - process.last_sign_seconds > SILENCE_SECONDS:
                silent_told = True
                self._journal.emit(
                    WarningRaised(
                        run=run,
                        code="worker_silent",
                        message=f"the worker has given no sign of life for {SILENCE_SECONDS:g} s",
                        advice="It may be stopped, or hang in native code: cancel the run to end it.",
                    )
                )
            if cap is not None and now - began > cap and not process.cancelled:
                process.cancel()

    def _tell_readings(self, run: str, readings: Sequence[DeviceReading]) -> None:
        for reading in readings:
            self._journal.emit(replace(reading, run=run))

    def _take(self, run: str, item: Event | Answer) -> None:
        if isinstance(item, Heartbeat | Answer) or _ends(item, run):
            return
        self._journal.take(item, run, self._made)

    def _ended(self, run: str, process: EngineProcess) -> RunFinished:
        if process.cancelled:
            return RunFinished(run=run, status="cancelled", error="cancelled")
        ended = process.explain()
        return RunFinished(run=run, status="crashed", error=ended.what, advice=ended.advice)


def _ends(item: Event | Answer, run: str) -> TypeGuard[RunFinished]:
    """Whether it is the engine's last word on the run that was asked for."""
    return isinstance(item, RunFinished) and item.run in ("", run)
