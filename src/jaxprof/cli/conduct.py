"""Runs a plan for the command line: the conductor on a thread, this thread for signals, notes and the live line.

A signal never breaks into the conductor. ctrl+c cancels what runs and what waits, a second one without patience, a
third one kills; SIGTERM and SIGHUP cancel without patience. In each case the log ends in good order.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from jaxprof.cli.progress import Progress
from jaxprof.errors import StorageError
from jaxprof.events import Event
from jaxprof.store import LogWriter
from jaxprof.worker import Conductor, Interpreter, Planned

TICK_SECONDS = 0.1
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Ended:
    """The conductor's thread is over; with what it raised, which is a fault of jaxprof itself."""

    error: BaseException | None = None


Item = list[Event] | signal.Signals | Ended
MakeConductor = Callable[[LogWriter, Interpreter, Callable[[list[Event]], None]], Conductor]


class Conducting:
    """One plan, worked to its end."""

    def __init__(
        self,
        writer: LogWriter,
        interpreter: Interpreter,
        progress: Progress,
        make: MakeConductor = Conductor,
    ) -> None:
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()  # its put may be called from a signal handler
        self.conductor = make(writer, interpreter, self._items.put)
        self._progress = progress
        self._told: StorageError | None = None
        self.stopped_by: signal.Signals | None = None
        """The first signal that ended the plan early."""
        self._asked = 0

    def work(self, planned: Sequence[Planned]) -> None:
        """Blocks until the plan is worked, or a signal has ended it; the log is closed in good order either way."""
        before = self._catch_signals()
        try:
            self._tell_storage()
            self.conductor.add(planned)
            thread = threading.Thread(target=self._conduct, name="jaxprof-conductor", daemon=True)
            thread.start()
            ended = self._wait()
            thread.join()
            if ended.error is not None:
                raise ended.error
        finally:
            self.conductor.close(self._reason())
            self._drain()
            self._progress.end()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _conduct(self) -> None:
        error: BaseException | None = None
        try:
            self.conductor.run()
        except BaseException as raised:  # noqa: BLE001 - raised again on the thread that waits
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
            self._tell_storage()

    def _stop(self, number: signal.Signals) -> None:
        self.stopped_by = self.stopped_by or number
        self._asked += 1
        if self._asked > 2:
            self.conductor.close(self._reason())
            return
        if self._asked == 1 and number == signal.SIGINT:
            self._progress.note("interrupted: the run is being cancelled, what was measured is kept")
        self.conductor.cancel_all()
        if number != signal.SIGINT:
            self.conductor.cancel_all()

    def _drain(self) -> None:
        """Folds what came with the closing."""
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

    def _tell_storage(self) -> None:
        failure = self.conductor.storage_failure
        if failure is not None and failure is not self._told:
            self._told = failure
            self._progress.note(f"jaxprof: {failure.what}")
            self._progress.note(f"  {failure.mend}")

    def _catch_signals(self) -> dict[signal.Signals, Any]:
        """Lets signals come as items. One that is ignored (nohup) stays ignored."""

        def handler(number: int, frame: FrameType | None) -> None:
            self._items.put(signal.Signals(number))

        before: dict[signal.Signals, Any] = {}
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, handler)
        return before
