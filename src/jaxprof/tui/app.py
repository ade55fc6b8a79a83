"""The app: its modes, its keys and the state that screens share. Each screen decides what it shows.

jax is never imported here, and numpy, psutil and the list of sessions only after the first frame, in threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App
from textual.binding import BindingType

from jaxprof.errors import JaxprofError
from jaxprof.text import safe, safe_lines
from jaxprof.tui.device_monitor import (
    DeviceMonitor,
    DevicesFound,
    DeviceSource,
    DeviceTable,
    MachineSource,
    ReadingsTaken,
)
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.screen_bars import ModeBar, ReadingLine
from jaxprof.tui.live import Live, Maker, ProgramMaker, make_program_scheduler, make_scheduler
from jaxprof.tui.messages import (
    DevicesChanged,
    EventsArrived,
    Failed,
    LiveChanged,
    SessionsListed,
    SidesPlanned,
    StorageFailed,
)
from jaxprof.tui.navigation import ScreenNavigation
from jaxprof.tui.opened_session import ReadingChanged, SessionOpened
from jaxprof.tui.profiler import JOB, PLACES, ModeScreen
from jaxprof.tui.session_view import SessionInView
from jaxprof.tui.theme import DARK, LIGHT, VARIABLES
from jaxprof.tui.user_settings import UserSettings

if TYPE_CHECKING:
    from jaxprof.config import Config
    from jaxprof.runner import Interpreter, PlannedRun
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.session import Session
    from jaxprof.session.log import Follower, Library
    from jaxprof.tui.opened_session import ProfileReading
    from jaxprof.tui.profiler import PlanSides

FOLLOW_SECONDS = 0.25
"""How often the app reads what another process has added to a session."""
LISTED = 40
"""Sessions in which Home looks for the latest runs."""

WIDTHS: list[tuple[int, str]] | None = [(0, "-tiny"), (80, "-narrow"), (110, "-wide"), (160, "-very-wide")]
HEIGHTS: list[tuple[int, str]] | None = [(0, "-low"), (24, "-short"), (34, "-tall")]
"""The stylesheet class of a screen, by its least width or height; `-tiny` and `-low` show only a note."""


class JaxprofApp(ScreenNavigation):
    """The terminal app."""

    TITLE = "jaxprof"
    CSS_PATH = "shell.tcss"
    MODES: ClassVar[dict[str, Any]] = {mode.name: mode.make for mode in (*PLACES, JOB)}
    DEFAULT_MODE = "home"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = bindings("app")

    def __init__(
        self,
        path: Path | None = None,
        *,
        interpreter: Interpreter | None = None,
        make: Maker = make_scheduler,
        make_program: ProgramMaker = make_program_scheduler,
        program: ProgramCommand | None = None,
        follow: bool = False,
        config: Config | None = None,
        devices: Callable[[], DeviceSource] | None = None,
        driver_class: Any = None,
        light: bool = False,
    ) -> None:
        """`light`: the terminal has a light background, which the theme follows unless the user has chosen one."""
        super().__init__(driver_class=driver_class)
        self.user = UserSettings(self, self.tell, config)
        self._in_view = SessionInView(self)
        self.run_in_view = ""
        self.view_wanted = ""
        self.kernel_wanted = ""
        self.words_wanted = ("", "")
        self.hlo_wanted = None
        self.job_folder = None
        self.live = Live(self, interpreter, make, make_program)
        self.session_screens = []
        self.devices = DeviceTable()
        self.folder = Path.cwd()
        self.library_folder: Path | None = None
        """Where sessions are kept; None for the user's own folder."""
        self.monitor = DeviceMonitor(self, devices or MachineSource, self.live.interpreter)
        self._open_first, self._follow_first = path, follow
        self._program_first = program
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.set_reactive(
            App.theme, self.user.theme(light=light)
        )  # before the stylesheet is read: a change would read it anew

    @property
    def session(self) -> Session:
        """The open session: the one that this app writes, or one that the user opened; else an empty one."""
        return self._in_view.session

    @property
    def run_ids(self) -> frozenset[str]:
        """The runs of the open session."""
        return self._in_view.opened.run_ids

    @property
    def session_path(self) -> Path | None:
        """The file of the open session; None while it has none."""
        return self._in_view.opened.path

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Defaults for the variables that other themes do not define."""
        return VARIABLES

    def on_mount(self) -> None:
        self.set_interval(FOLLOW_SECONDS, self._in_view.follow)
        self.user.start()
        self.call_after_refresh(self.monitor.start)
        if self._open_first is not None:
            self.open_session(self._open_first, follow=self._follow_first)
        if self._program_first is not None:
            self.start_program(self._program_first)

    def on_unmount(self) -> None:
        """Ends every child and thread, also when the app fails."""
        self.monitor.stop()
        if self.reading is not None:
            self.reading.stop()
        self.live.close()
        self.comparison.close()

    @property
    def clock_shift_seconds(self) -> float:
        """How far the monotonic clock of the session's writer is ahead of ours; 0 on the same machine."""
        return self._in_view.opened.clock_shift_seconds

    @property
    def silent_since(self) -> str:
        """Since when the session's writer has been silent, in words; empty while it is active."""
        return self._in_view.opened.silent_since

    # -- devices ----------------------------------------------------------------------------------------------

    def on_devices_found(self, message: DevicesFound) -> None:
        """Stores the devices, or why JAX could not list them."""
        if message.error is not None:
            self.devices.fail(message.error.what, message.error.hint)
        else:
            self.devices.set_facts(message.facts)
        self.devices.asked = self.devices.asked or message.asked
        self._tell_devices()

    def on_readings_taken(self, message: ReadingsTaken) -> None:
        self.devices.take(message.readings)
        self._tell_devices()

    def _tell_devices(self) -> None:
        for screen in self.screens_in_view():
            screen.post_message(DevicesChanged())

    # -- the session ------------------------------------------------------------------------------------------

    def start_runs(self, planned: Sequence[PlannedRun]) -> None:
        """Adds runs to the queue of the session that this app writes, and goes to the Run screen."""
        self._in_view.show_live()
        self.live.start(planned)
        self.switch_mode("run")

    def queue_runs(self, planned: Sequence[PlannedRun]) -> None:
        """Adds runs to the queue, and leaves the screen and the session in view as they are."""
        if self.session_path is None:
            self._in_view.show_live()
        self.live.start(planned)

    def start_comparison(self, plan: PlanSides) -> None:
        """Plans a comparison in a thread, measures its sides, and shows it when they are over."""
        self.comparison.start(plan)

    def on_sides_planned(self, message: SidesPlanned) -> None:
        self.comparison.was_planned(message)

    def start_program(self, program: ProgramCommand) -> None:
        """Starts a user's program and goes to its screen."""
        self._in_view.show_live()
        self.live.start_program(program)
        self.switch_mode("program")

    @property
    def reading(self) -> ProfileReading | None:
        """The profile that a thread is reading and that is not in view yet; None without one."""
        return self._in_view.reading

    def on_reading_changed(self, message: ReadingChanged) -> None:
        self._in_view.reading_changed(message)

    def action_stop_reading(self) -> None:
        """Stops reading the profile."""
        reading = self.reading
        self._in_view.stop_reading()
        if reading is not None:
            self.notify(safe(reading.path.name), title="Stopped reading", markup=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape stops a reading, unless it closes a dialog first."""
        if action == "stop_reading":
            return self.reading is not None and isinstance(self.screen, ModeScreen)
        return super().check_action(action, parameters)

    @property
    def session_grows(self) -> bool:
        """Whether this app, or another process that it follows, still writes the open session."""
        return self._in_view.grows

    def set_session(self, session: Session, path: Path | None, follower: Follower[Session] | None = None) -> None:
        """Shows another session in every screen."""
        self._in_view.show(session, path, follower)

    def open_session(self, path: Path, go: str = "", *, follow: bool = False) -> None:
        """Opens a session, a profile, HLO, or a job's folder; goes to the mode `go`, by default to the one that fits.

        The app follows a session that a process still writes, and with `follow` any session.
        """
        from jaxprof.analysis.opener import Kind, kind_of
        from jaxprof.session.log.job_folder import is_job_folder

        if path.is_dir() and is_job_folder(path):
            self.open_job(path)
            return
        if kind_of(path) is Kind.HLO:
            self.open_hlo(path)
            return
        self._in_view.open(path, go, follow=follow)

    def on_session_opened(self, message: SessionOpened) -> None:
        self._in_view.was_read(message)

    def on_events_arrived(self, message: EventsArrived) -> None:
        self._in_view.fold(message)
        self.comparison.look(message)

    def session_moved(self, before: Path, after: Path) -> None:
        """Takes note that the file of a session was renamed or moved."""
        if self.job_folder == before:
            self.job_folder = after
        self._in_view.file_moved(before, after)

    def library(self) -> Library:
        """The folder of sessions."""
        from jaxprof.session.log import Library

        return Library(self.library_folder)

    def list_sessions(self, limit: int | None = LISTED) -> SessionsListed:
        """The saved sessions and jobs. Blocks: for threads only."""
        library = self.library()
        return SessionsListed(list(library.listed(limit)), library.size_bytes(), library.folder)

    def show_state(self) -> None:
        """Updates the mode bar and the reading line."""
        for screen in self.screens_in_view():
            for bar in (*screen.query(ModeBar), *screen.query(ReadingLine)):
                bar.show_state()

    def screens_in_view(self) -> list[ModeScreen]:
        """The screens of the current mode, also beneath a dialog."""
        return [screen for screen in self.session_screens if self.current_mode == screen.MODE and screen.is_attached]

    # -- errors, and the state of the runs --------------------------------------------------------------------

    def tell(self, error: JaxprofError, title: str = "") -> None:
        """Shows an error: what failed, and its hint."""
        text = "\n".join(safe_lines(str(error)))
        self.notify(text, title=safe(title), severity="error", timeout=12, markup=False)

    def on_failed(self, message: Failed) -> None:
        self.tell(message.error)

    def on_live_changed(self, message: LiveChanged) -> None:
        self.show_state()
        for screen in self.screens_in_view():
            screen.post_message(LiveChanged(message.busy))

    def on_storage_failed(self, message: StorageFailed) -> None:
        self._in_view.ask_for_another_place(message.error)

    def action_command_palette(self) -> None:
        """Searches everything: actions, and what the session, the kept sessions and the settings hold."""
        from jaxprof.tui.palette import open_palette

        open_palette(self)
