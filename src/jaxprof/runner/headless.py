"""Run a plan without the app: the scheduler has its own thread; this thread handles signals, notes and the live line.

A signal never interrupts the scheduler's thread. The first ctrl+c cancels the current and the queued runs, the second
one cancels without a grace period, the third one kills. SIGTERM and SIGHUP cancel without a grace period. In each case
the log is closed properly.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType
from typing import TextIO

from jaxprof.analysis.runs.run_result import RunResult, result
from jaxprof.base.errors import StorageError
from jaxprof.base.operating_system import signal_handlers, signals
from jaxprof.base.text import shorten
from jaxprof.base.units import counted, percent, seconds
from jaxprof.events import Event, RunFinished
from jaxprof.facts.runs import interval_text
from jaxprof.report.runs import versus_text
from jaxprof.runner.interpreter import Interpreter
from jaxprof.runner.planning import PlannedRun, left_in_words
from jaxprof.runner.scheduler import Scheduler
from jaxprof.session import LogWriter, Run, Session

TICK_SECONDS = 0.1
QUIET_SECONDS = 20.0
"""Without a live line, say how far the current run is after this long without a word."""
_CLEAR = "\r\x1b[K"
_SIGNALS = signals("SIGINT", "SIGTERM", "SIGHUP")


Item = list[Event] | signal.Signals | Future[None]


class HeadlessRuns:
    """Runs one plan to its end."""

    def __init__(self, writer: LogWriter, interpreter: Interpreter, progress: Progress) -> None:
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()  # its put is safe to call from a signal handler
        self.scheduler = Scheduler(writer, interpreter, self._items.put)
        self._progress = progress
        self._reported: StorageError | None = None
        self.stopped_by: signal.Signals | None = None
        """The first signal that ended the plan early."""
        self._signals_received = 0

    def work(self, planned: Sequence[PlannedRun]) -> None:
        """Block until the plan is done or a signal has ended it. Either way the log is closed properly."""

        def receive(number: int, frame: FrameType | None) -> None:
            self._items.put(signal.Signals(number))

        with signal_handlers(dict.fromkeys(_SIGNALS, receive)):
            try:
                self._report_storage()
                self.scheduler.add(planned)
                thread = ThreadPoolExecutor(1, "jaxprof-scheduler")  # `with` would wait for its end before `close`
                thread.submit(self.scheduler.run).add_done_callback(self._items.put)
                self._wait()
            finally:
                self.scheduler.close(self._reason())
                while not self._items.empty():  # events that arrived while the log was being closed
                    if isinstance(item := self._items.get(), list):
                        self._progress.take(item)
                self._progress.end()

    def _wait(self) -> None:
        """Return when the scheduler has ended. Raises what it raised, which is a bug in jaxprof."""
        while True:
            try:
                item = self._items.get(timeout=TICK_SECONDS)
            except queue.Empty:
                self._progress.tick()
                continue
            if isinstance(item, Future):
                item.result()
                return
            if isinstance(item, signal.Signals):
                if self.stopped_by is None and item == signal.SIGINT:
                    self._progress.note("interrupted: cancelling the run; what was measured is kept")
                self.stopped_by = self.stopped_by or item
                self._signals_received += 1
                if self._signals_received > 2:
                    self.scheduler.close(self._reason())
                else:
                    for _ in range(1 if item == signal.SIGINT else 2):  # the second time without a grace period
                        self.scheduler.cancel_all()
            else:
                self._progress.take(item)
            self._report_storage()

    def _reason(self) -> str:
        if self.stopped_by is None:
            return "finished"
        return "interrupted" if self.stopped_by == signal.SIGINT else self.stopped_by.name

    def _report_storage(self) -> None:
        failure = self.scheduler.storage_failure
        if failure is not None and failure is not self._reported:
            self._reported = failure
            for line in (f"jaxprof: {failure.what}", f"  {failure.hint}"):
                self._progress.note(line)


class Progress:
    """Progress on stderr: one live line for the current run, one line for each finished run.

    Takes the scheduler's batches (`take`) and redraws (`tick`), both on the thread that waits. If stderr is not a
    terminal, a plain line each `QUIET_SECONDS` says how far the current run is. If the terminal goes away (a dropped
    connection), drawing ends and measuring continues.
    """

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.session = Session()
        self._stream = stream
        self._clock = clock
        self._has_terminal = stream.isatty()
        self._redraws = self._has_terminal and os.environ.get("TERM", "") not in ("", "dumb")
        self._drawn = ""
        self._noted_seconds = clock()

    def take(self, events: Sequence[Event]) -> None:
        """Fold a batch, print a line for each run that it ends, and redraw."""
        for event in events:
            self.session.apply(event)
            if isinstance(event, RunFinished) and self._has_terminal:
                run = self.session.runs[event.run]
                words = [self._number_and_label(run)]
                if run.status == "ok":
                    measured = result(self.session, run.id)
                    words += [_median(measured), versus_text(measured) if run.plan.baseline else ""]
                else:
                    words.append(run.end(deserted=False).text)
                self.note("  ".join(filter(None, words)))
        self.tick()

    def tick(self) -> None:
        """Redraw the live line if it has changed; where nothing is redrawn, print one now and then."""
        if not self._redraws and self._clock() - self._noted_seconds < QUIET_SECONDS:
            return
        current = next((run for run in self.session.runs.values() if run.status == "running"), None)
        line = ""
        if current is not None:
            phase, elapsed = current.present_phases.get(current.current_phase), ""
            if phase is not None and phase.started_seconds is not None:
                took = max(0.0, self._clock() - phase.started_seconds)
                elapsed = f"{current.current_phase.replace('_', ' ')} {took:.1f} s"
            elif not current.phases:
                elapsed = current.note or "starting"
            parts = [self._number_and_label(current), elapsed]
            measured = result(self.session, current.id)
            if measured.summary is not None:
                parts.append(f"{_median(measured)}  {counted(measured.summary.count, 'sample')}")
            share = percent(current.fraction) if current.fraction is not None else ""
            left = left_in_words(self.session.runs.values(), self._clock())
            parts.append(", ".join(filter(None, (share, left))))
            line = "  ".join(filter(None, parts))
        if not self._redraws:
            if line:
                self.note(line)
            return
        line = shorten(line, max(20, shutil.get_terminal_size().columns - 1)) if line else ""
        if line != self._drawn:
            self._drawn = line
            self._write(_CLEAR + line)

    def end(self) -> None:
        if self._drawn:
            self._drawn = ""
            self._write(_CLEAR)

    def _number_and_label(self, run: Run) -> str:
        order = list(self.session.runs)
        return f"[{order.index(run.id) + 1}/{len(order)}] {run.label}"

    def note(self, text: str) -> None:
        """Print a line that stays, even if stderr is not a terminal."""
        line = shorten(text, 2000)
        self._write(f"{_CLEAR if self._redraws else ''}{line}\n")
        self._drawn = ""
        self._noted_seconds = self._clock()

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone; measuring continues
            self._has_terminal = self._redraws = False


def _median(run: RunResult) -> str:
    if run.summary is None:
        return ""
    interval = interval_text(run)
    return seconds(run.summary.median) + (f" {interval}" if interval != "-" else "")
