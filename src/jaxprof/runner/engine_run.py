"""Follow one engine at work on one run: record its events, read its device, report its silence and its end."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace

from jaxprof.base.errors import WorkerError
from jaxprof.base.private import safe_variables
from jaxprof.base.units import seconds
from jaxprof.engine.protocol.request import Request
from jaxprof.events import (
    DeviceReading,
    EnvironmentRead,
    Event,
    RunFinished,
    RunPlanned,
    Scalar,
    TurnAwaited,
    WarningRaised,
)
from jaxprof.runner.engine_process import EngineProcess
from jaxprof.runner.session_recorder import BATCH_SECONDS, DeviceWatch, SessionRecorder

SILENCE_SECONDS = 15.0
"""Report the worker as silent after this long without a sign of the run (a heartbeat a second)."""
MAX_SILENCE_SECONDS = 300.0
"""End a worker that gives no sign of the run for this long: native code holds the interpreter's lock, the worker is
stopped, or its report was lost because measured code closes or writes to descriptors that are not its own."""
CAP_GRACE_SECONDS = 2.0
"""How far a run may exceed its hard cap before its worker is ended. The engine checks the cap between calls."""
START_UP_SECONDS = 60.0
"""Time allowed for importing and backend start on top of the hard cap."""


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
        """`let_go` is called before the worker is closed: from then on nobody may cancel it. `placed`: the variables
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
        """Record what the worker reports until its final event, or the first one that `until` accepts; return that
        event."""
        began = time.monotonic()
        try:
            return self._follow(until, began)
        finally:
            if self._worked_seconds is not None:
                self._worked_seconds += time.monotonic() - began

    def _follow(self, until: Callable[[Event], bool], began: float) -> Event:
        while True:
            if self._end is not None:
                return replace(self._end, run=self.run)
            events = self.process.read(BATCH_SECONDS)
            last = next((event for event in events if self._ends(event) or until(event)), None)
            self._end = next((event for event in events if self._ends(event) and event is not last), None)
            if isinstance(last, RunFinished):
                events += self.process.read(BATCH_SECONDS)  # the child's stderr comes on another pipe
            now = time.monotonic()
            for event in events:
                if isinstance(event, EnvironmentRead) and self._worked_seconds is None:
                    self._worked_seconds = began - now  # start-up is over; the engine starts its clock at this event
                self._take(event)
            if last is not None:
                return self._timed_out or replace(last, run=self.run)
            self._recorder.flush_when_due()
            if self.process.over:
                return self._ended()
            self._record(self._watch.take_when_due(now))
            silent_seconds = now - max(began, self.process.last_sign_seconds)
            self._report_silence(silent_seconds)
            self._end_in_time(now - began, silent_seconds)

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
        self._watch.close()

    def _take(self, event: Event) -> None:
        if isinstance(event, TurnAwaited) or self._ends(event):
            return
        if isinstance(event, EnvironmentRead):
            event = replace(event, settings=self._without_placement(event.settings))
        if isinstance(event, RunPlanned) and event.run in ("", self.run):  # the engine knows the device of a profile
            workload = self._recorder.session.runs[self.run].plan.workload
            event = replace(event, spec=replace(event.spec, workload=workload))
        if self.keep is None or self.keep(event):
            self._recorder.take(event, self.run, self.made)

    def _without_placement(self, settings: Mapping[str, Scalar | None]) -> dict[str, Scalar | None]:
        """Return the settings with the user's own in place of those that we gave the worker: its run names its
        device."""
        users = safe_variables({name: os.environ[name] for name in self._placed & os.environ.keys()})
        return {name: value for name, value in settings.items() if name not in self._placed} | users

    def _ends(self, event: Event) -> bool:
        """Return whether `event` is the engine's final event for the requested run."""
        return isinstance(event, RunFinished) and event.run in ("", self.run)

    def _report_silence(self, silent_seconds: float) -> None:
        if self._silence_reported or silent_seconds <= SILENCE_SECONDS:
            return
        self._silence_reported = True
        self._recorder.emit(
            WarningRaised(
                run=self.run,
                code="worker_silent",
                message=f"the worker has given no sign of the run for {SILENCE_SECONDS:g} s",
                advice="It may be stopped, or hang in native code: cancel the run to end it.",
            )
        )

    def _end_in_time(self, following_seconds: float, silent_seconds: float) -> None:
        """End a worker that is past its hard cap, or that has been silent for too long."""
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

    def _ended(self) -> RunFinished:
        if self._timed_out:
            return self._timed_out
        if self.process.cancelled:
            return RunFinished(run=self.run, status="cancelled", error="cancelled")
        return RunFinished.of(self.process.explain(), "crashed", run=self.run)
