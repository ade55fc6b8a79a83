"""What screens know of the app: where it can go, and what it does for them. The app, in `shell`, satisfies `Host`, so
that the kit imports no app."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from textual.message import Message

from jaxprof.base.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jaxprof.hlo.stages import ModuleStages
    from jaxprof.runner.planning import PlannedRun
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.session import Session

SECTIONS = ("start", "summary", "compiles", "kernels", "timeline", "memory")
"""What the first line names. Each section is shown by the mode that fits the session."""
SECTION_OF = {
    "home": "start", "results": "summary", "program": "summary", "job": "summary", "hlo": "kernels",
    "profile": "timeline",
}  # fmt: skip
"""The modes, each with its section. The screen of the mode `job` is `JobScreen` in `tui/job/screen.py`, and so on."""


@frozen
class Destination:
    """Where the app goes, and then is. The screen of the mode shows it in `SessionScreen.arrive`."""

    mode: str
    view: str = ""
    """View to open, such as `timeline` or `ledger`; by default the one that the user left."""
    run: str = ""
    """Id of the run in view, which the screens share; empty if none has been chosen."""
    kernel: str = ""
    text: str = ""
    file: Path | None = None
    """HLO file, or folder of dumps: to be read, or the one that `module` was read from."""
    module: ModuleStages | None = None
    """Module of a file, which is in view instead of the run."""
    section: str = ""
    """Section whose key the user pressed; empty after any other way."""

    @property
    def unread(self) -> Path | None:
        """The file, if it is still to be read."""
        return self.file if self.module is None else None

    def at(self, mode: str) -> Destination:
        """Return a mode as the user left it, with the same program in view."""
        file = self.file if self.module is not None else None
        return Destination(mode, run=self.run, file=file, module=self.module)


@dataclass
class LiveChanged(Message, bubble=False):
    """The queue of runs became empty or busy. The app passes the message on to the screen in view."""

    busy: bool


class SessionInView(Protocol):
    """The session that the screens show. `OpenedSession` of `shell` says what each attribute is."""

    path: Path | None
    profile: Path | None
    clock_shift_seconds: float

    @property
    def session(self) -> Session: ...
    @property
    def run_ids(self) -> frozenset[str]: ...
    @property
    def silent_since(self) -> str: ...


class OwnSession(Protocol):
    """The session that the app writes. `Live` of `shell` says what each attribute is."""

    busy: bool
    session: Session | None
    program: ProgramCommand | None
    cancelling: set[str]

    def cancel(self, run: str) -> None: ...
    def capture(self, seconds: float) -> None: ...


class Host(Protocol):
    """The app, for the kit and for most screens. `Profiler` of `shell` says what each member does."""

    destination: Destination
    job_folder: Path | None
    session_screens: list[Any]

    @property
    def current_mode(self) -> str: ...
    @property
    def opened(self) -> SessionInView: ...
    @property
    def live(self) -> OwnSession: ...
    @property
    def session(self) -> Session: ...
    @property
    def session_path(self) -> Path | None: ...
    @property
    def session_grows(self) -> bool: ...
    @property
    def activity(self) -> str: ...
    def lacking(self) -> frozenset[str]: ...

    def show(self, destination: Destination) -> None: ...
    def arrive(self) -> Destination: ...
    def select(self, run: str = "", module: ModuleStages | None = None, file: Path | None = None) -> None: ...
    def step_back(self) -> None: ...
    def show_state(self) -> None: ...
    def screens_in_view(self) -> list[Any]: ...
    def push_screen(self, screen: Any, callback: Any = None) -> Any: ...
    def say(self, words: str, title: str = "", **options: Any) -> None: ...

    def open_session(self, path: Path) -> None: ...
    def ask_for_file(self, go: str = "") -> None: ...
    def start_runs(self, planned: Sequence[PlannedRun]) -> None: ...
    def start_program(self, program: ProgramCommand) -> None: ...
