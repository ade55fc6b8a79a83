"""One engine at work on one run: its events are recorded, its device is read, its silence and its end are reported."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from jaxprof.engine.protocol.request import Request
from jaxprof.errors import WorkerError
from jaxprof.events import DeviceReading, Event, RunFinished, TurnAwaited, WarningRaised
from jaxprof.runner.device_readings import DeviceWatch
from jaxprof.runner.engine_process import EngineProcess
from jaxprof.runner.profile_reader import ProfileReader
from jaxprof.runner.session_recorder import BATCH_SECONDS, SessionRecorder

Worker = EngineProcess | ProfileReader
SILENCE_SECONDS = 15.0
"""Report the worker as silent after this long without a heartbeat (one a second)."""
CAP_GRACE_SECONDS = 5.0
"""How much longer than its hard cap a run may take before it is cancelled from here."""
START_UP_SECONDS = 60.0
"""How long importing and backend start may take on top of the hard cap."""


class EngineRun:
    """A run in the hands of one worker. It belongs to the thread that drives the queue, but for `process.cancel`."""

    def __init__(
        self,
        run: str,
        process: Worker,
        recorder: SessionRecorder,
        watch: DeviceWatch,
        *,
        let_go: Callable[[], object],
        max_seconds: float | None = None,
    ) -> None:
        """`let_go` is called before the worker is closed: from then on nobody may cancel it."""
        self.run = run
        self.process = process
        self.made: dict[str, str] = {}
        """Runs that the engine made itself (programs of a profile): our id for each of its names."""
        self.keep: Callable[[Event], bool] | None = None
        """Which events are recorded; None: all."""
        self._recorder = recorder
        self._watch = watch
        self._cap = None if max_seconds is None else max_seconds + CAP_GRACE_SECONDS + START_UP_SECONDS
        self._let_go = let_go
        self._silent_told = False

    def send(self, request: Request) -> None:
        """Sends a request. A worker that has gone is no error here: `follow` reads its last words and says whether it
        crashed or was cancelled."""
        with contextlib.suppress(WorkerError):
            self.process.send(request)

    def follow(self, until: Callable[[Event], bool] = lambda event: False) -> Event:
        """Records what the worker reports until its final event, or the first one that `until` accepts; returns that
        one."""
        began = time.monotonic()
        while True:
            events = self.process.read(BATCH_SECONDS)
            last = next((event for event in events if self._ends(event) or until(event)), None)
            if isinstance(last, RunFinished):
                events += self.process.read(BATCH_SECONDS)  # the child's stderr comes on another pipe
            for event in events:
                self._take(event)
            if last is not None:
                return replace(last, run=self.run)
            self._recorder.flush_when_due()
            if self.process.over:
                return self._ended()
            now = time.monotonic()
            self._tell(self._watch.take_when_due(now))
            self._report_silence(max(began, self.process.last_sign_seconds), now)
            if self._cap is not None and now - began > self._cap and not self.process.cancelled:
                self.process.cancel()

    def tell_readings(self) -> None:
        """Takes a reading of the device now, and records it."""
        self._tell(self._watch.take())

    def _tell(self, readings: Sequence[DeviceReading]) -> None:
        for reading in readings:
            self._recorder.emit(replace(reading, run=self.run))

    def close(self) -> None:
        """Ends the worker, after a last reading of its device."""
        self._let_go()
        self.process.close()
        self.tell_readings()
        self._watch.close()

    def _take(self, event: Event) -> None:
        if isinstance(event, TurnAwaited) or self._ends(event):
            return
        if self.keep is None or self.keep(event):
            self._recorder.take(event, self.run, self.made)

    def _ends(self, event: Event) -> bool:
        """Whether it is the engine's final event for the requested run."""
        return isinstance(event, RunFinished) and event.run in ("", self.run)

    def _report_silence(self, since: float, now: float) -> None:
        if self._silent_told or now - since <= SILENCE_SECONDS:
            return
        self._silent_told = True
        self._recorder.emit(
            WarningRaised(
                run=self.run,
                code="worker_silent",
                message=f"the worker has given no sign of life for {SILENCE_SECONDS:g} s",
                advice="It may be stopped, or hang in native code: cancel the run to end it.",
            )
        )

    def _ended(self) -> RunFinished:
        if self.process.cancelled:
            return RunFinished(run=self.run, status="cancelled", error="cancelled")
        ended = self.process.explain()
        return RunFinished(run=self.run, status="crashed", error=ended.what, advice=ended.advice)
