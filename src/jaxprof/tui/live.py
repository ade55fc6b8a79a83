"""The session that this app writes: a conductor driven from threads, its events brought to the screen in batches.

There is one at a time. Every measured run joins the queue and the file of the same `Conductor`; a program of the user's
has a `ProgramConductor` and a file for itself, and what was written before is closed in good order. Nothing here
blocks the thread that draws. Whatever happens to a child, or to the disk, is told by a message, and the app lives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from jaxprof.errors import JaxprofError, StorageError, UsageError
from jaxprof.tui.messages import EventsArrived, Failed, LiveChanged, StorageFailed

if TYPE_CHECKING:
    from textual.app import App

    from jaxprof.events import Event
    from jaxprof.session import Session
    from jaxprof.worker import Interpreter, Planned
    from jaxprof.worker.program import Program


class Driven(Protocol):
    """What is asked of whoever writes a session; the tests have some without processes."""

    @property
    def storage_failure(self) -> StorageError | None: ...
    @property
    def busy(self) -> bool: ...
    def run(self) -> None: ...
    def cancel(self, run: str) -> None: ...
    def cancel_all(self) -> None: ...
    def move_to(self, path: Path) -> None: ...
    def close(self, reason: str = "finished") -> None: ...


class ConductorLike(Driven, Protocol):
    """What is asked of a conductor of measured runs."""

    def add(self, planned: Sequence[Planned]) -> list[str]: ...


@runtime_checkable
class ProgramConductorLike(Driven, Protocol):
    """What is asked of a conductor of one program."""

    @property
    def exit_code(self) -> int | None: ...
    def start(self) -> str: ...
    def capture(self, seconds: float | None = None, steps: int | None = None) -> None: ...


Listener = Callable[[list["Event"]], None]
Made = tuple[ConductorLike, "Session", Path | None]
"""A conductor, the empty session that the screen folds for itself, and where the log is."""
MadeForProgram = tuple[ProgramConductorLike, "Session", Path | None]
Maker = Callable[["Interpreter", Listener], Made]
ProgramMaker = Callable[["Program", "Interpreter", Listener], MadeForProgram]


def make_conductor(interpreter: Interpreter, listen: Listener) -> Made:
    """A conductor that writes a new session into the user's folder."""
    from jaxprof.session import Session
    from jaxprof.store import Library, LogWriter, new_header
    from jaxprof.telemetry.environment import environment_facts
    from jaxprof.worker import Conductor

    header = new_header(environment_facts())
    path = Library().new_path(header)
    return Conductor(LogWriter(header, path), interpreter, listen), Session(header), path


def make_program_conductor(
    program: Program, interpreter: Interpreter, listen: Listener, path: Path | None = None
) -> MadeForProgram:
    """A conductor that writes a new session with that program, at `path` or into the user's folder."""
    from jaxprof.session import Session
    from jaxprof.store import Library, LogWriter, new_header
    from jaxprof.telemetry.environment import environment_facts
    from jaxprof.worker.program_run import ProgramConductor

    header = new_header(environment_facts())
    path = path if path is not None else Library().new_path(header)
    return ProgramConductor(LogWriter(header, path), interpreter, listen, program), Session(header), path


class Live:
    """What this app writes. Every method may be called from the thread that draws; none of them waits."""

    def __init__(
        self,
        app: App[Any],
        interpreter: Interpreter | None = None,
        make: Maker = make_conductor,
        make_program: ProgramMaker = make_program_conductor,
    ) -> None:
        self._app = app
        self._make = make
        self._make_program = make_program
        self._interpreter = interpreter
        self._lock = threading.Lock()
        self._driving = False
        self._conductor: ConductorLike | ProgramConductorLike | None = None
        self._storage_told = False
        self._ended = False
        self.session: Session | None = None
        """Folded on the thread that draws; None before the first run."""
        self.planned: dict[str, Planned] = {}
        """What was asked for, by the id of the run that it became: what is needed to ask for it again."""
        self.program: Program | None = None
        """The program that was started last, where that is what is being written."""
        self.path: Path | None = None

    @property
    def busy(self) -> bool:
        """Whether a run is going on or waits."""
        return self._driving

    @property
    def exit_code(self) -> int | None:
        """What the program ended with; None where none was started, or while that is not known."""
        conductor = self._conductor
        return conductor.exit_code if isinstance(conductor, ProgramConductorLike) else None

    @property
    def started(self) -> bool:
        """Whether a program was asked for and could be started."""
        return self.program is not None and bool(self.session is not None and self._conductor is not None)

    def interpreter(self) -> Interpreter:
        """The Python that runs the engine, found when it is first needed. Blocks: for threads only."""
        from jaxprof.worker import find_interpreter

        if self._interpreter is None:
            self._interpreter = find_interpreter()
        return self._interpreter

    def start(self, planned: Sequence[Planned]) -> None:
        """Puts runs into the queue, and works it. While a program goes on it is refused: both would be disturbed."""
        self._in_thread(lambda: self._start(planned), "start")

    def start_program(self, program: Program) -> None:
        """Starts a program, with a session of its own. While anything else goes on it is refused."""
        self._in_thread(lambda: self._start_program(program), "start")

    def capture(self, seconds: float | None = None, steps: int | None = None) -> None:
        """Switches the profiler on in the program that goes on, for so long."""
        conductor = self._conductor
        if isinstance(conductor, ProgramConductorLike):
            self._in_thread(lambda: conductor.capture(seconds, steps), "ask")

    def cancel(self, run: str) -> None:
        """Cancels a run that waits or goes on; a second time, with less patience."""
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

    def _ask(self, what: Callable[[Driven], None]) -> None:
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
        interpreter = self.interpreter()
        with self._lock:
            conductor = self._conductor
            if conductor is None or isinstance(conductor, ProgramConductorLike):
                if self._driving:
                    raise UsageError("a program is going on", "Measure when it is over: both would disturb each other.")
                self._close_before()
                made: list[Session] = []
                conductor, session, self.path = self._make(interpreter, self._listener(made))
                made.append(session)
                self._conductor, self.session, self.program = conductor, session, None
            self.planned.update(zip(conductor.add(planned), planned, strict=True))
            if self._driving:
                return
            self._driving = True
        self._post(LiveChanged(busy=True))
        self._drive(conductor)

    def _start_program(self, program: Program) -> None:
        interpreter = self.interpreter()
        with self._lock:
            if self._driving:
                raise UsageError("something else is going on", "Start the program when it is over, or cancel it.")
            self._close_before()
            made: list[Session] = []
            conductor, session, self.path = self._make_program(program, interpreter, self._listener(made))
            made.append(session)
            self._conductor, self.session, self.program = conductor, session, program
            conductor.start()
            self._driving = True
        self._post(LiveChanged(busy=True))
        self._drive(conductor)

    def _close_before(self) -> None:
        """The session that was written until now is over."""
        if self._conductor is not None:
            self._conductor.close()
        self.planned, self._storage_told = {}, False

    def _drive(self, conductor: Driven) -> None:
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

    def _listener(self, made: list[Session]) -> Listener:
        """Takes the events of one conductor; its session is in `made` before any of them is looked at."""

        def listen(events: list[Event]) -> None:
            self._post(EventsArrived(events, made))
            failure = self._conductor.storage_failure if self._conductor is not None else None
            if failure is not None and not self._storage_told:
                self._storage_told = True
                self._post(StorageFailed(failure))

        return listen

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
