"""The app as its screens know it: its modes, shared state, navigation, and actions.

`jaxprof.tui.app` implements it. The screens depend on this alone, so they know neither the app nor each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from textual.app import App
from textual.screen import Screen

from jaxprof.tui.keys import action_of, key_of
from jaxprof.tui.kit.guard import Guarded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jaxprof.errors import JaxprofError
    from jaxprof.runner import Interpreter, PlannedRun
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.session import Session
    from jaxprof.session.log import Library
    from jaxprof.tui.device_monitor import DeviceMonitor, DeviceTable
    from jaxprof.tui.live import Live
    from jaxprof.tui.messages import SessionsListed
    from jaxprof.tui.opened_session import ProfileReading
    from jaxprof.tui.user_settings import UserSettings


PlanSides = Callable[["Interpreter", "Path"], "list[PlannedRun]"]
"""Plans the sides of a comparison, whose results go into the folder. Raises UsageError; blocks: for threads only."""


@dataclass(frozen=True, slots=True)
class Mode:
    """One mode of the app."""

    name: str
    screen: str
    """Class of the screen, in `jaxprof.tui.<name>.screen`."""

    @property
    def title(self) -> str:
        """What the mode bar calls it."""
        return action_of(f"app.mode.{self.name}").label

    @property
    def key(self) -> str:
        """The key that goes there."""
        return key_of(f"app.mode.{self.name}")

    def make(self) -> Screen[None]:
        """A new screen of this mode."""
        made: Screen[None] = getattr(import_module(f"jaxprof.tui.{self.name}.screen"), self.screen)()
        return made


PLACES = (
    Mode("home", "HomeScreen"),
    Mode("run", "RunScreen"),
    Mode("results", "ResultsScreen"),
    Mode("hlo", "HloScreen"),
    Mode("sessions", "SessionsScreen"),
    Mode("profile", "ProfileScreen"),
    Mode("program", "ProgramScreen"),
)
JOB = Mode("job", "JobScreen")
"""The mode bar has it while the folder of a job is open."""


class ModeScreen(Guarded, Screen[None]):
    """A screen as the app knows it: the base of a mode."""

    MODE: str = ""
    """The app's mode whose base this screen is."""

    def come_into_view(self) -> None:
        """Shows what changed while it was out of view, and what the app wants shown."""
        raise NotImplementedError

    def miss(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Notes what changed while this screen was not in view."""
        raise NotImplementedError

    def why_not(self, action: str) -> str:
        """Why an action that the key bar dims does nothing now; empty where that is plain."""
        return ""


class Profiler(Guarded, App[None]):
    """The terminal app, to its screens. The UI thread calls every method, unless a method says otherwise."""

    run_in_view: str
    """The run that the screens share: chosen in one, shown in the next."""
    view_wanted: str
    """The view that Profile opens next: `timeline`, `compile`, `memory`, `overview`; taken when it comes into view."""
    kernel_wanted: str
    """The kernel that HLO or Profile shows next; taken when it comes into view."""
    words_wanted: tuple[str, str]
    """The view that Program shows next, and the words that it filters by; taken when it comes into view."""
    hlo_wanted: Path | None
    """The HLO file, or folder of dumps, that HLO opens next; taken when it comes into view."""
    job_folder: Path | None
    """The folder of the job that Job shows; None without one."""
    user: UserSettings
    """What the user has set."""
    live: Live
    """What this app writes."""
    session_screens: list[ModeScreen]
    """The screens that exist so far; they hear of changes of the session."""
    folder: Path
    """Where the user's programs are looked for: where jaxprof was started."""
    devices: DeviceTable
    """What the machine has, with live readings; filled by threads after the first frame."""
    monitor: DeviceMonitor
    """Reads the devices while the app is open."""

    @property
    def session(self) -> Session:
        """The open session: the one that this app writes, or one that the user opened; else an empty one."""
        raise NotImplementedError

    @property
    def run_ids(self) -> frozenset[str]:
        """The runs of the open session."""
        raise NotImplementedError

    @property
    def session_path(self) -> Path | None:
        """The file of the open session; None while it has none."""
        raise NotImplementedError

    @property
    def reading(self) -> ProfileReading | None:
        """The profile that a thread is reading and that is not in view yet; None without one."""
        raise NotImplementedError

    @property
    def session_grows(self) -> bool:
        """Whether this app, or another process that it follows, still writes the open session."""
        raise NotImplementedError

    @property
    def clock_shift_seconds(self) -> float:
        """How far the monotonic clock of the session's writer is ahead of ours; 0 on the same machine."""
        raise NotImplementedError

    @property
    def silent_since(self) -> str:
        """Since when the session's writer has been silent, in words; empty while it is active."""
        raise NotImplementedError

    def show_results(self, run: str = "") -> None:
        """Goes to Results, with that run in view."""
        raise NotImplementedError

    def show_program(self, run: str = "", view: str = "", words: str = "") -> None:
        """Goes to the screen of that program, and to a view of it: `ledger`, `lines`..., with only the rows that have
        these words."""
        raise NotImplementedError

    def show_run_detail(self, run: str) -> None:
        """Shows all details of that run on a screen above Run or Results."""
        raise NotImplementedError

    def show_hlo(self, run: str = "", kernel: str = "") -> None:
        """Goes to the HLO of that run, and to a kernel in it; Esc returns to the current mode."""
        raise NotImplementedError

    def show_history(self, workload: str = "") -> None:
        """Shows how a workload, or all of them, went over the kept sessions, on a screen above the current one: Home,
        Results or Sessions."""
        raise NotImplementedError

    def show_profile(self, run: str = "", view: str = "timeline", kernel: str = "") -> None:
        """Goes to a view of that run's profile, and to a kernel in it; Esc returns to the current mode."""
        raise NotImplementedError

    def open_job(self, folder: Path) -> None:
        """Goes to the job whose processes have their sessions in that folder."""
        raise NotImplementedError

    def step_back(self) -> None:
        """Goes to the mode before."""
        raise NotImplementedError

    def start_runs(self, planned: Sequence[PlannedRun]) -> None:
        """Adds runs to the queue of the session that this app writes, and goes to the Run screen."""
        raise NotImplementedError

    def queue_runs(self, planned: Sequence[PlannedRun]) -> None:
        """Adds runs to the queue, and leaves the screen and the session in view as they are."""
        raise NotImplementedError

    def start_comparison(self, plan: PlanSides) -> None:
        """Plans a comparison in a thread, measures its sides, and shows it when they are over."""
        raise NotImplementedError

    def show_comparison(self, first: str, second: str) -> None:
        """Goes to the comparison of two runs of the session, on a screen above Results."""
        raise NotImplementedError

    def start_program(self, program: ProgramCommand) -> None:
        """Starts a user's program and goes to its screen."""
        raise NotImplementedError

    def open_session(self, path: Path, go: str = "", *, follow: bool = False) -> None:
        """Opens a session, a profile, or HLO, and goes to the mode `go`; by default to the one that fits the content.

        The app follows a session that a process still writes, and with `follow` any session.
        """
        raise NotImplementedError

    def session_moved(self, before: Path, after: Path) -> None:
        """Takes note that the file of a session was renamed or moved."""
        raise NotImplementedError

    def library(self) -> Library:
        """The folder of sessions."""
        raise NotImplementedError

    def list_sessions(self, limit: int | None = ...) -> SessionsListed:
        """The saved sessions and jobs. Blocks: for threads only."""
        raise NotImplementedError

    def show_state(self) -> None:
        """Updates the mode bar and the reading line."""
        raise NotImplementedError

    def tell(self, error: JaxprofError, title: str = "") -> None:
        """Shows an error: what failed, and its hint."""
        raise NotImplementedError
