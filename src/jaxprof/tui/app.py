"""The running app: its settings, its devices, and quitting. Each screen decides what it shows.

jax is never imported here, and numpy, psutil and the list of sessions only after the first frame, in threads. Quitting
asks first while a run is in progress, except at the second ctrl+c; every child ends with the app.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from textual.actions import SkipAction
from textual.app import App
from textual.widgets import Input

from jaxprof.errors import UsageError
from jaxprof.tui.device_monitor import DeviceMonitor, MachineSource
from jaxprof.tui.kit.guard import in_daemon, in_thread
from jaxprof.tui.live import Live, LiveChanged, Maker, make_scheduler
from jaxprof.tui.profiler import SCREENS, Profiler, made
from jaxprof.tui.theme import DARK, LIGHT, VARIABLES
from jaxprof.tui.user_settings import UserSettings

if TYPE_CHECKING:
    from jaxprof.config import Config
    from jaxprof.errors import JaxprofError
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.runner.planning import PlannedRun
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.tui.profiler import PlanSides

FOLLOW_SECONDS = 0.25
"""Seconds between reads of what another process has added to a session."""
TWICE_SECONDS = 2.0
"""A second ctrl+c within this many seconds quits."""
WIDTHS: list[tuple[int, str]] | None = [(0, "-tiny"), (80, "-narrow"), (110, "-wide"), (160, "-very-wide")]
HEIGHTS: list[tuple[int, str]] | None = [(0, "-low"), (24, "-short"), (34, "-tall")]
"""Stylesheet classes of a screen by its least width or height; `-tiny` and `-low` show only a note."""


class JaxprofApp(Profiler, keys="app"):
    """The terminal app."""

    TITLE = "jaxprof"
    CSS_PATH = "shell.tcss"
    MODES: ClassVar[dict[str, Any]] = {
        mode: partial(made, f"{mode}.screen", screen) for mode, screen in SCREENS.items()
    }
    DEFAULT_MODE = "home"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS

    def __init__(
        self,
        path: Path | None = None,
        *,
        interpreter: Interpreter | None = None,
        make: Maker = make_scheduler,
        program: ProgramCommand | None = None,
        follow: bool = False,
        profile: Path | None = None,
        config: Config | None = None,
        devices: Callable[[], MachineSource] | None = None,
        driver_class: Any = None,
        light: bool = False,
    ) -> None:
        """`light`: the terminal has a light background, which the theme follows unless the user has chosen one."""
        super().__init__(driver_class=driver_class)
        self.user = UserSettings(self, self.tell, config)
        self.live = Live(self, interpreter, make)
        self.devices = DeviceMonitor(self, devices or MachineSource, self.live.interpreter)
        self._comparing: Event | None = None
        """Set once the comparison that a thread is planning is given up; None if none is."""
        self._open_first, self._follow_first, self._profile_first = path, follow, profile
        self._program_first = program
        self._interrupted_seconds = float("-inf")
        """When the user last pressed ctrl+c, by the monotonic clock."""
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        # Set before the stylesheet is read: changing the theme later would read it again.
        self.set_reactive(App.theme, self.user.theme(light=light))

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return defaults for the variables that other themes do not define."""
        return VARIABLES

    def on_mount(self) -> None:
        self.set_interval(FOLLOW_SECONDS, self.follow_session)
        self.user.start()
        self.call_after_refresh(self.devices.start)
        if self._open_first is not None:
            self.open_session(self._open_first, follow=self._follow_first, profile=self._profile_first)
        if self._program_first is not None:
            self.start_program(self._program_first)

    def on_unmount(self) -> None:
        """End every child and thread, also when the app fails."""
        self.devices.stop()
        if self.reading is not None:
            self.reading.stop()
        self.live.close()

    # -- devices, runs, comparisons ---------------------------------------------------------------------------

    def on_live_changed(self, message: LiveChanged) -> None:
        # Judge again whether its runs go on: its first events may have arrived before the queue was busy.
        if self.session is self.live.session:
            self._session_changed(frozenset(self.session.runs))
        self.show_state()
        for screen in self.screens_in_view():
            screen.post_message(LiveChanged(message.busy))

    def start_comparison(self, plan: PlanSides) -> None:
        """Plan a comparison in a thread, then measure its sides. Their results lie in a folder that is deleted with the
        app. Raises UsageError while something runs, which making the inputs would disturb, and StorageError without a
        folder."""
        from jaxprof.reaper import TemporaryFolder

        if self._comparing is not None:
            self.say("Preparing the inputs of both sides; ctrl+c cancels.", "Comparing")
            return
        if self.live.busy:
            advice = "Preparing the inputs of both sides would disturb that run: wait until it ends, or cancel it."
            raise UsageError("another run is in progress", advice)
        folder, given_up = TemporaryFolder("compare"), Event()
        atexit.register(folder.close)
        self._comparing = given_up
        in_daemon(
            lambda: self.call_later(self._sides_planned, given_up, plan(self.live.interpreter(), folder.path)),
            "compare",
            lambda error: self.call_later(self._sides_planned, given_up, [], error),
        )
        self.say("jaxprof prepares the inputs of both sides, then measures A, A' and B in turns.", "Comparing")

    def _sides_planned(self, given_up: Event, planned: list[PlannedRun], error: JaxprofError | None = None) -> None:
        """Queue the sides of a comparison, and go to the runs if the user is still on Start."""
        if given_up.is_set():
            return
        self._comparing = None
        if error is not None:
            self.tell(error)
        else:
            self.start_runs(planned, go=self.current_mode == "home" and len(self.screen_stack) == 1)

    def action_menu(self) -> None:
        """Open the menu. Its key is an ordinary letter in a text field and in the menu itself."""
        from jaxprof.tui.actions import open_menu

        if isinstance(self.focused, Input) or getattr(self.screen, "lettered", False):
            raise SkipAction
        open_menu(self)

    def action_command_palette(self) -> None:
        from jaxprof.tui.actions import open_palette

        open_palette(self)

    # -- the ways out -----------------------------------------------------------------------------------------

    def action_interrupt(self) -> None:
        now = monotonic()
        if now - self._interrupted_seconds < TWICE_SECONDS:
            self._quit()
            return
        self._interrupted_seconds = now
        if self._comparing is not None:
            self._comparing.set()
            self._comparing = None
            self.say("Press ctrl+c again to quit.", "The comparison is cancelled")
        elif self.live.busy:
            self.live.cancel_current()
            self.say(
                "Press ctrl+c again to quit.", "Cancelling the run, and what was queued with it", severity="warning"
            )
        else:
            self.say("Press ctrl+c again to quit.", "Nothing is running")

    async def action_quit(self) -> None:
        if not self.live.busy:
            self._quit()
            return
        from jaxprof.tui.kit.dialogs import Confirm

        question = "A run is in progress. The session keeps what it has measured so far."
        Confirm("Quit jaxprof?", question, "Cancel it and quit").ask(self, lambda yes: self._quit())

    def _quit(self) -> None:
        """End the children and close the log in a thread, then end the app."""
        self.devices.stop()

        def close() -> None:
            try:
                self.live.close()
            finally:
                self.call_from_thread(self.exit)

        in_thread(self, close, "leave")
