"""The session that this app writes: a `Conductor` driven from threads, its events brought to the screen in batches.

There is at most one for the life of the app: every run that is started joins its queue and its file. Nothing here
blocks the thread that draws. Whatever happens to a child, or to the disk, is told by a message, and the app lives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from jaxprof.errors import JaxprofError, StorageError
from jaxprof.tui.messages import EventsArrived, Failed, LiveChanged, StorageFailed

if TYPE_CHECKING:
    from textual.app import App

    from jaxprof.events import Event
    from jaxprof.session import Session
    from jaxprof.worker import Interpreter, Planned


class ConductorLike(Protocol):
    """What is asked of a conductor; the tests have one without processes."""

    @property
    def storage_failure(self) -> StorageError | None: ...
    @property
    def busy(self) -> bool: ...
    def add(self, planned: Sequence[Planned]) -> list[str]: ...
    def run(self) -> None: ...
    def cancel(self, run: str) -> None: ...
    def cancel_all(self) -> None: ...
    def move_to(self, path: Path) -> None: ...
    def close(self, reason: str = "finished") -> None: ...


Made = tuple[ConductorLike, "Session", Path | None]
"""A conductor, the empty session that the screen folds for itself, and where the log is."""
Maker = Callable[["Interpreter", Callable[[list["Event"]], None]], Made]


def make_conductor(interpreter: Interpreter, listen: Callable[[list[Event]], None]) -> Made:
    """A conductor that writes a new session into the user's folder."""
    from jaxprof.session import Session
    from jaxprof.store import Library, LogWriter, new_header
    from jaxprof.telemetry.environment import environment_facts
    from jaxprof.worker import Conductor

    header = new_header(environment_facts())
    path = Library().new_path(header)
    return Conductor(LogWriter(header, path), interpreter, listen), Session(header), path


class Live:
    """The one queue of the app. Every method may be called from the thread that draws; none of them waits."""

    def __init__(self, app: App[Any], interpreter: Interpreter | None = None, make: Maker = make_conductor) -> None:
        self._app = app
        self._make = make
        self._interpreter = interpreter
        self._lock = threading.Lock()
        self._driving = False
        self._conductor: ConductorLike | None = None
        self._storage_told = False
        self._ended = False
        self.session: Session | None = None
        """Folded on the thread that draws; None before the first run."""
        self.planned: dict[str, Planned] = {}
        """What was asked for, by the id of the run that it became: what is needed to ask for it again."""
        self.path: Path | None = None

    @property
    def busy(self) -> bool:
        """Whether a run is going on or waits."""
        return self._driving

    def interpreter(self) -> Interpreter:
        """The Python that runs the engine, found when it is first needed. Blocks: for threads only."""
        from jaxprof.worker import find_interpreter

        if self._interpreter is None:
            self._interpreter = find_interpreter()
        return self._interpreter

    def start(self, planned: Sequence[Planned]) -> None:
        """Puts runs into the queue, and works it."""
        self._in_thread(lambda: self._start(planned), "start")

    def cancel(self, run: str) -> None:
        """Cancels a run that waits or goes on; a second time, without patience."""
        self._ask(lambda conductor: conductor.cancel(run))

    def cancel_current(self) -> None:
        """Cancels the run that goes on; those that wait go on."""
        if self.session is not None:
            for run in self.session.runs.values():
                if run.status == "running":
                    self.cancel(run.id)

    def cancel_all(self) -> None:
        """Cancels the run that goes on and all that wait."""
        self._ask(lambda conductor: conductor.cancel_all())

    def move_to(self, path: Path, done: Callable[[], object] | None = None) -> None:
        """Goes on writing the session in another file. What prevents it arrives as `StorageFailed` again."""
        self._in_thread(lambda: self._move_to(path, done), "move")

    def close(self, reason: str = "finished") -> None:
        """Ends the children and closes the log in good order. Waits for both: not for the thread that draws."""
        self._ended = True
        if self._conductor is not None:
            self._conductor.close(reason)

    def _ask(self, what: Callable[[ConductorLike], None]) -> None:
        conductor = self._conductor
        if conductor is not None:
            self._in_thread(lambda: what(conductor), "ask")

    def _in_thread(self, work: Callable[[], object], name: str) -> None:
        def guarded() -> None:
            try:
                work()
            except JaxprofError as error:
                self._post(Failed(error))

        self._app.run_worker(guarded, name=name, group="live", thread=True)

    def _start(self, planned: Sequence[Planned]) -> None:
        with self._lock:
            if self._conductor is None:
                conductor, self.session, self.path = self._make(self.interpreter(), self._listen)
                self._conductor = conductor
            conductor = self._conductor
            self.planned.update(zip(conductor.add(planned), planned, strict=True))
            if self._driving:
                return
            self._driving = True
        self._post(LiveChanged(busy=True))
        self._drive(conductor)

    def _drive(self, conductor: ConductorLike) -> None:
        """Works the queue until it is empty, also of what was added in the last moment."""
        try:
            while True:
                conductor.run()
                with self._lock:
                    if not conductor.busy or self._ended:
                        self._driving = False
                        break
        finally:
            self._driving = False
            self._post(LiveChanged(busy=False))

    def _listen(self, events: list[Event]) -> None:
        self._post(EventsArrived(events))
        failure = self._conductor.storage_failure if self._conductor is not None else None
        if failure is not None and not self._storage_told:
            self._storage_told = True
            self._post(StorageFailed(failure))

    def _move_to(self, path: Path, done: Callable[[], object] | None) -> None:
        if self._conductor is None:
            return
        try:
            self._conductor.move_to(path)
        except StorageError as error:
            self._post(StorageFailed(error))
            return
        self.path, self._storage_told = path, False
        if done is not None:
            self._app.call_from_thread(done)

    def _post(self, message: Any) -> None:
        if self._app.is_running:
            self._app.post_message(message)
