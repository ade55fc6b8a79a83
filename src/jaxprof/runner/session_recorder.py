"""The only place where a session is made: events are numbered, written, folded, and passed on in batches.

Whatever executes a run emits into it, from any thread. Events of runs that a child made itself (the programs of a
profile, a function measured inside a program) get ids of this session here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from jaxprof.events import (
    Event,
    LogLine,
    RunClosed,
    RunFinished,
    RunPlanned,
    SessionClosed,
    TextChunk,
    WarningRaised,
)
from jaxprof.limits import OUTPUT
from jaxprof.session import Run, Session
from jaxprof.session.log import LogWriter

BATCH_SECONDS = 0.05
"""Events are passed on in batches of this length: one message for a screen, however many events came."""

_LINE_COST = 100
"""What a line of output takes in the log besides its text, in bytes."""

Listener = Callable[[list[Event]], None]


class SessionRecorder:
    """Writes one session."""

    def __init__(self, writer: LogWriter, listen: Listener) -> None:
        self.writer = writer
        self.session = Session(writer.header)
        """The recorder's own fold."""
        self.lock = threading.RLock()
        """The only lock of a session; the scheduler takes it too, and recursively. `listen` is called while it is held:
        a listener must not wait for a thread that may emit."""
        self._listen = listen
        self._batch: list[Event] = []
        self._flushed_seconds = time.monotonic()
        self._count = 0
        self._output_bytes: dict[str, int] = {}
        """By run, what its children printed."""

    def new_id(self) -> str:
        """The id for a new run."""
        with self.lock:
            self._count += 1
            return f"r{self._count}"

    def emit(self, event: Event) -> None:
        """Records an event, stamped now if it has no time."""
        with self.lock:
            if not event.monotonic_seconds:
                event = replace(event, monotonic_seconds=time.monotonic())
            stamped = self.writer.append(event)
            self.session.apply(stamped)
            self._batch.append(stamped)

    def show(self, event: Event) -> None:
        """Passes an event on without keeping it."""
        with self.lock:
            self.session.apply(event)
            self._batch.append(event)

    def take(self, event: Event, run: str, made: dict[str, str]) -> None:
        """Records an event of a child that works on `run`; `made`: our ids of the runs that the child made, by its own
        names."""
        event = replace(event, run=self._id_of(event, run, made))
        if isinstance(event, LogLine):
            self._take_output(event)
        elif isinstance(event, RunFinished):
            self.close_run(event.run, event)
        elif not (isinstance(event, TextChunk) and event.digest in self.session.texts):
            self.emit(event)

    def _take_output(self, line: LogLine) -> None:
        """Records a line that a child printed; shows it only once the run has printed too much."""
        with self.lock:
            former = self._output_bytes.get(line.run, 0)
            self._output_bytes[line.run] = now = former + len(line.text) + _LINE_COST
            if now <= OUTPUT.most:
                self.emit(line)
                return
            if former <= OUTPUT.most:
                message = f"it wrote {OUTPUT.words} of output: the rest is not kept"
                self.emit(WarningRaised(run=line.run, code="output_cut", message=message, advice=OUTPUT.hint))
            self.show(line)

    def close_run(self, run: str, finished: RunFinished) -> None:
        """Ends a run, with its summary."""
        with self.lock:
            self.emit(replace(finished, run=run))
            self.emit(closing(self.session.runs[run], finished))

    def close(self, reason: str, before_the_end: Callable[[Session], object] | None = None) -> None:
        """Closes the open runs and the log; `before_the_end` is called with the whole session."""
        with self.lock:
            for run in self.session.runs.values():
                if run.closed is None:
                    self.close_run(run.id, RunFinished(status="cancelled", error=f"the session {reason}"))
            if before_the_end is not None:
                before_the_end(self.session)
            self.emit(SessionClosed(reason=reason))
            self.flush()
            self.writer.close()

    def flush_when_due(self, every_seconds: float = BATCH_SECONDS) -> bool:
        """Passes on the batch if the last one is long enough ago; returns whether it did."""
        due = time.monotonic() - self._flushed_seconds >= every_seconds
        if due:
            self.flush()
        return due

    def flush(self) -> None:
        """Passes on the batch."""
        with self.lock:
            self._flushed_seconds = time.monotonic()
            if self._batch:
                batch, self._batch = self._batch, []
                self._listen(batch)

    def _id_of(self, event: Event, run: str, made: dict[str, str]) -> str:
        if isinstance(event, LogLine) or event.run in ("", run):
            return run
        if isinstance(event, RunPlanned) and event.run not in made:
            made[event.run] = self.new_id()
        return made.get(event.run, run)


def closing(run: Run, finished: RunFinished) -> RunClosed:
    """The summary at the end of a run."""
    samples = run.samples("run")
    summary = None
    if samples:
        from jaxprof.analysis.run_result import steady_summary  # imports numpy: a program has no samples of its own

        summary = steady_summary(run)
    began, ended = run.started_seconds, run.ended_seconds
    return RunClosed(
        run=run.id,
        workload=run.plan.workload,
        variant=run.plan.variant,
        device=run.plan.device,
        status=finished.status,
        error=finished.error,
        advice=finished.advice,
        median_seconds=summary.median if summary else None,
        ci95_seconds=list(summary.ci95) if summary and summary.ci95 else None,
        wall_seconds=ended - began if began is not None and ended is not None else None,
    )
