"""The session that this app writes: a scheduler that threads drive, whose events reach the screens in batches.

There is one at a time. Every measured run joins the queue and the file of the same `Scheduler`; a user's program has a
`ProgramScheduler` and a file of its own, and starting it closes the previous session. Nothing here blocks the UI
thread. A failure of a child, or of the disk, arrives as a message, and the app goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from textual.message import Message

from jaxprof.base.errors import JaxprofError, StorageError, UsageError
from jaxprof.tui.kit.guard import in_thread
from jaxprof.tui.kit.host import LiveChanged

if TYPE_CHECKING:
    from textual.app import App

    from jaxprof.events import Event
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.runner.planning import PlannedRun
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.runner.program_run import ProgramScheduler
    from jaxprof.runner.scheduler import Scheduler
    from jaxprof.session import Session


Listener = Callable[[list["Event"]], None]
Made = tuple["Scheduler | ProgramScheduler", "Session", Path | None]
"""A scheduler, the empty session that the UI thread folds, and the path of the log."""
Maker = Callable[["ProgramCommand | None", "Interpreter", Listener], Made]


def make_scheduler(
    program: ProgramCommand | None, interpreter: Interpreter, listen: Listener, path: Path | None = None
) -> Made:
    """Create a scheduler of runs, or one of `program`, that writes a new session to `path`, or a kept one."""
    from jaxprof.runner.program_run import ProgramScheduler
    from jaxprof.runner.scheduler import Scheduler
    from jaxprof.runner.session_recorder import new_writer
    from jaxprof.session import Session

    writer = new_writer(path)
    session = Session(writer.header)
    session.desert(deserted=False)
    if program is None:
        return Scheduler(writer, interpreter, listen), session, writer.path
    return ProgramScheduler(writer, interpreter, listen, program), session, writer.path


@dataclass
class EventsArrived(Message):
    """A batch of events of a session that this app writes, as its log has them. Posted by the scheduler's thread."""

    events: list[Event]
    session: Session
    """Session of these events; the app may have started another one since."""


@dataclass
class StorageFailed(Message):
    """The session can no longer be written; it stays in memory until the user chooses another file."""

    error: JaxprofError


class Live:
    """Starts and cancels what this app writes. The UI thread may call every method; only `close` waits.

    `_lock` guards the choice of scheduler and `busy`: of two threads that add runs, one drives the queue, and the other
    leaves its runs to it. `session` is folded on the UI thread alone.
    """

    def __init__(self, app: App[Any], interpreter: Interpreter | None = None, make: Maker = make_scheduler) -> None:
        self._app = app
        self._make = make
        self._interpreter = interpreter
        self._lock = threading.Lock()
        self._scheduler: Scheduler | ProgramScheduler | None = None
        self._storage_failure_reported = False
        self._ended = False
        self.busy = False
        self.session: Session | None = None
        """The session being written, folded on the UI thread; None before the first run."""
        self.program: ProgramCommand | None = None
        """Program that this session records; None in a session of measured runs."""
        self.path: Path | None = None
        self.is_kept = True
        """Whether the session, if there was one, is whole and where it should be; known after `last_words`."""
        self.cancelling: set[str] = set()
        """Ids of the runs that were asked to end; the session reports when they have ended."""

    @property
    def exit_code(self) -> int | None:
        return getattr(self._scheduler, "exit_code", None)

    def interpreter(self) -> Interpreter:
        """Return the Python that runs the engine, found at first use. Blocks: for threads only."""
        from jaxprof.runner.interpreter import find_interpreter

        if self._interpreter is None:
            self._interpreter = find_interpreter()
        return self._interpreter

    def start(self, planned: Sequence[PlannedRun]) -> None:
        """Add runs to the queue and work through it. Refused while a program runs: each would disturb the other."""
        self._in_thread(lambda: self._start(None, planned), "start")

    def start_program(self, program: ProgramCommand) -> None:
        """Start a program with a session of its own. Refused while anything else is in progress."""
        self._in_thread(lambda: self._start(program, ()), "start")

    def capture(self, seconds: float) -> None:
        if self.program is not None:
            self._request(lambda scheduler: cast("ProgramScheduler", scheduler).capture(seconds))

    def cancel(self, run: str) -> None:
        """Cancel a queued or running run; a second call waits less for its end."""
        self.cancelling.add(run)
        self._request(lambda scheduler: scheduler.cancel(run))

    def cancel_current(self) -> None:
        """Cancel the current run, and what joined the queue together with it: its other variants and sizes."""
        waiting = [run for run in self.session.runs.values() if not run.over] if self.session is not None else []
        running = [run for run in waiting if run.status == "running"]
        current = {run.batch for run in (running or waiting[:1])}
        runs = [run.id for run in waiting if run.batch in current]
        self.cancelling.update(runs)
        self._request(lambda scheduler: [scheduler.cancel(run) for run in reversed(runs)])  # nothing begins meanwhile

    def move_to(self, path: Path, done: Callable[[], object]) -> None:
        """Move the session to another file, continue writing there, and then call `done` on the UI thread. A failure
        arrives as `StorageFailed`."""

        def move(scheduler: Scheduler | ProgramScheduler) -> None:
            try:
                scheduler.move_to(path)
            except StorageError as error:
                self._post(StorageFailed(error))
                return
            self.path, self._storage_failure_reported = path, False
            self._app.call_from_thread(done)

        self._request(move)

    def close(self, reason: str = "finished") -> None:
        """End the children and close the log. Waits for both: not for the UI thread. `reason`: what ends the runs in
        progress; a session without any has finished."""
        self._ended = True
        if self._scheduler is not None:
            self._scheduler.close(reason if self.busy else "finished")

    @property
    def is_unsaved(self) -> bool:
        return self._scheduler is not None and self._scheduler.storage_failure is not None

    @property
    def has_lost_events(self) -> bool:
        """Whether events were recorded that are in no file."""
        return self._scheduler is not None and self._scheduler.has_lost_events

    def last_words(self) -> Iterator[str]:
        """Yield where the session was kept, in another folder if it could not be written, what happened to its file
        while it was written, and its conclusion, once it is closed; nothing if there is no session."""
        scheduler = self._scheduler
        if scheduler is None:
            return
        from jaxprof.report.conclusion import closing_lines
        from jaxprof.runner.session_recorder import report_location

        locations = list[str]()
        self.is_kept = report_location(scheduler.writer, locations.append)
        yield from locations
        yield from closing_lines(scheduler.session, scheduler.writer.kept_path)

    def _request(self, request: Callable[[Scheduler | ProgramScheduler], object]) -> None:
        scheduler = self._scheduler
        if scheduler is not None:
            self._in_thread(lambda: request(scheduler), "ask")

    def _in_thread(self, work: Callable[[], object], name: str) -> None:
        in_thread(self._app, work, name, group="live", exclusive=False)

    def _start(self, program: ProgramCommand | None, planned: Sequence[PlannedRun]) -> None:
        interpreter = self.interpreter()
        with self._lock:
            scheduler = self._scheduler
            if scheduler is None or program is not None or self.program is not None:
                # Another session begins, after the end of the previous one.
                if self.busy:
                    what = "a program is running" if self.program is not None else "another run is in progress"
                    hint = "Wait until it ends, or cancel it: at once, each would distort the other's results."
                    raise UsageError(what, hint)
                if scheduler is not None:
                    scheduler.close()

                def listen(events: list[Event]) -> None:
                    self._post(EventsArrived(events, session))
                    failure = begun.storage_failure
                    if failure is not None and not self._storage_failure_reported:
                        self._storage_failure_reported = True
                        self._post(StorageFailed(failure))

                begun, session, path = self._make(program, interpreter, listen)
                self._scheduler, self.session, self.path, self.program = begun, session, path, program
                self._storage_failure_reported, self.cancelling = False, set()
                scheduler = begun
            if program is None:
                cast("Scheduler", scheduler).add(planned)
            else:
                cast("ProgramScheduler", scheduler).start()
            if self.busy:
                return
            self._set_busy(True)
        # Work through the queue until it is empty. That is read under the lock: a run added at the last moment is
        # either seen here, or its thread sees that the queue is idle and drives the queue itself. From then on the next
        # thread may drive, so nothing is changed any more.
        try:
            while True:
                scheduler.run()
                with self._lock:
                    if not scheduler.busy or self._ended:
                        self._set_busy(False)
                        return
        except BaseException:
            with self._lock:
                self._set_busy(False)
            raise

    def _set_busy(self, busy: bool) -> None:
        """Set whether the queue is driven. The caller holds the lock, so that the app receives the changes in order."""
        self.busy = busy
        self._post(LiveChanged(busy=busy))

    def _post(self, message: Any) -> None:
        if self._app.is_running:
            self._app.post_message(message)
