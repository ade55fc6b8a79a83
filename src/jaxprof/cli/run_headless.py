"""Run a plan for the command line: the scheduler has its own thread; this thread handles signals, notes and the live
line.

A signal never interrupts the scheduler's thread. The first ctrl+c cancels the current and the queued runs, the second
one cancels without a grace period, the third one kills. SIGTERM and SIGHUP cancel without a grace period. In each case
the log is closed properly.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from jaxprof.cli.progress import Progress
from jaxprof.errors import StorageError
from jaxprof.events import Event
from jaxprof.operating_system import signals
from jaxprof.runner import Interpreter, PlannedRun, Scheduler
from jaxprof.session.log import LogWriter

TICK_SECONDS = 0.1
_SIGNALS = signals("SIGINT", "SIGTERM", "SIGHUP")


@dataclass(frozen=True, slots=True)
class Ended:
    """The scheduler's thread has ended. `error` is what it raised, which is a bug in jaxprof."""

    error: BaseException | None = None


Item = list[Event] | signal.Signals | Ended
MakeScheduler = Callable[[LogWriter, Interpreter, Callable[[list[Event]], None]], Scheduler]


class HeadlessRuns:
    """One plan, run to its end."""

    def __init__(
        self,
        writer: LogWriter,
        interpreter: Interpreter,
        progress: Progress,
        make: MakeScheduler = Scheduler,
        *,
        reports_storage: bool = True,
    ) -> None:
        """`reports_storage`: says at once that the session cannot be written, and that the measuring goes on."""
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()  # its put is safe to call from a signal handler
        self.scheduler = make(writer, interpreter, self._items.put)
        self._progress = progress
        self._reports_storage = reports_storage
        self._reported: StorageError | None = None
        self.stopped_by: signal.Signals | None = None
        """The first signal that ended the plan early."""
        self._asked = 0

    def work(self, planned: Sequence[PlannedRun], expected: Mapping[PlannedRun, float] | None = None) -> None:
        """Block until the plan is done or a signal has ended it. Either way the log is closed properly.

        `expected` as in `Scheduler.add`."""
        before = self._catch_signals()
        try:
            self._report_storage()
            self.scheduler.add(planned, expected)
            thread = threading.Thread(target=self._run_scheduler, name="jaxprof-scheduler", daemon=True)
            thread.start()
            ended = self._wait()
            thread.join()
            if ended.error is not None:
                raise ended.error
        finally:
            self.scheduler.close(self._reason())
            self._drain()
            self._progress.end()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _run_scheduler(self) -> None:
        error: BaseException | None = None
        try:
            self.scheduler.run()
        except BaseException as raised:  # noqa: BLE001 - raised again on the waiting thread
            error = raised
        self._items.put(Ended(error))

    def _wait(self) -> Ended:
        while True:
            try:
                item = self._items.get(timeout=TICK_SECONDS)
            except queue.Empty:
                self._progress.tick()
                continue
            if isinstance(item, Ended):
                return item
            if isinstance(item, signal.Signals):
                self._stop(item)
            else:
                self._progress.take(item)
                self._progress.tick()
            self._report_storage()

    def _stop(self, number: signal.Signals) -> None:
        self.stopped_by = self.stopped_by or number
        self._asked += 1
        if self._asked > 2:
            self.scheduler.close(self._reason())
            return
        if self._asked == 1 and number == signal.SIGINT:
            self._progress.note("interrupted: cancelling the run; what was measured is kept")
        self.scheduler.cancel_all()
        if number != signal.SIGINT:
            self.scheduler.cancel_all()

    def _drain(self) -> None:
        """Fold the events that arrived while the log was closed."""
        while True:
            try:
                item = self._items.get_nowait()
            except queue.Empty:
                return
            if isinstance(item, list):
                self._progress.take(item)

    def _reason(self) -> str:
        if self.stopped_by is None:
            return "finished"
        return "interrupted" if self.stopped_by == signal.SIGINT else self.stopped_by.name

    def _report_storage(self) -> None:
        failure = self.scheduler.storage_failure
        if self._reports_storage and failure is not None and failure is not self._reported:
            self._reported = failure
            self._progress.note(f"jaxprof: {failure.what}")
            self._progress.note(f"  {failure.hint}")

    def _catch_signals(self) -> dict[signal.Signals, Any]:
        """Receive signals as items of the queue. An ignored signal (nohup) stays ignored."""

        def handler(number: int, frame: FrameType | None) -> None:
            self._items.put(signal.Signals(number))

        before: dict[signal.Signals, Any] = {}
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, handler)
        return before
