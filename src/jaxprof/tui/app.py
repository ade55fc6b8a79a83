"""The app: its modes and its keys, and what the screens have in common. What a screen shows is the screen's business.

jax is never imported here, and numpy, psutil and the list of sessions only after the first frame, in threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType

from jaxprof.errors import JaxprofError
from jaxprof.safe_text import safe, safe_lines
from jaxprof.tui.commands import bound_commands
from jaxprof.tui.devices import Devices, DeviceSource
from jaxprof.tui.leaving import Leaving
from jaxprof.tui.live import Live, Maker, ProgramMaker, make_conductor, make_program_conductor
from jaxprof.tui.messages import (
    DevicesChanged,
    DevicesFound,
    EntriesRead,
    EventsArrived,
    Failed,
    LiveChanged,
    ReadingsTaken,
    SessionOpened,
    StorageFailed,
)
from jaxprof.tui.modes import PLACES
from jaxprof.tui.monitor import Monitor
from jaxprof.tui.screens.base import SessionScreen
from jaxprof.tui.session_in_view import SessionInView
from jaxprof.tui.theme import DARK, LIGHT, VARIABLES
from jaxprof.tui.widgets.mode_bar import ModeBar

if TYPE_CHECKING:
    from textual.message_pump import MessagePump
    from textual.screen import Screen

    from jaxprof.session import Session
    from jaxprof.store import Follower, Library
    from jaxprof.worker import Interpreter, Planned
    from jaxprof.worker.program import Program

FOLLOW_SECONDS = 0.25
"""How often a session that another process writes is read on."""
LISTED = 40
"""Sessions that Home looks at for what was run last."""

WIDTHS: list[tuple[int, str]] | None = [(0, "-tiny"), (80, "-narrow"), (110, "-wide"), (160, "-very-wide")]
HEIGHTS: list[tuple[int, str]] | None = [(0, "-low"), (24, "-short"), (34, "-tall")]
"""From which size on a screen has which class in the stylesheet; `-tiny` and `-low` show a note only."""


class JaxprofApp(App[None]):
    """The terminal app."""

    TITLE = "jaxprof"
    CSS_PATH = "shell.tcss"
    MODES: ClassVar[dict[str, Any]] = {mode.name: mode.make for mode in PLACES}
    DEFAULT_MODE = "home"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(
                mode.key, f"go('{mode.name}')", mode.title, show=False, tooltip=mode.tooltip, id=f"app.mode.{mode.name}"
            )
            for mode in PLACES
        ),
        Binding("question_mark,f1", "help", "Help", key_display="?", tooltip="Every key of this screen", id="app.help"),
        Binding("q", "quit", "Quit", tooltip="Leave jaxprof; asks when a run is going on", id="app.quit"),
        Binding("ctrl+q", "quit", "Quit", show=False, priority=True, tooltip="Leave jaxprof", id="app.quit_always"),
        Binding(
            "ctrl+c",
            "interrupt",
            "Cancel the run",
            show=False,
            tooltip="Cancel the run that is going on; twice: quit",
            id="app.interrupt",
        ),
        Binding("escape", "back", "Back", show=False, tooltip="Back to Home", id="app.back"),
    ]

    def __init__(
        self,
        path: Path | None = None,
        *,
        interpreter: Interpreter | None = None,
        make: Maker = make_conductor,
        make_program: ProgramMaker = make_program_conductor,
        program: Program | None = None,
        follow: bool = False,
        devices: Callable[[], DeviceSource] | None = None,
        driver_class: Any = None,
    ) -> None:
        super().__init__(driver_class=driver_class)
        self._in_view = SessionInView(self)
        self._leaving = Leaving(self)
        self.run_in_view = ""
        """The run that the screens have in common: chosen in one, shown in the next."""
        self.view_wanted = ""
        """The view that Profile is gone to for: `timeline`, `compile` or `memory`; taken when it comes into view."""
        self.kernel_wanted = ""
        """The kernel that HLO or Profile is gone to for; taken when it comes into view."""
        self.hlo_wanted: Path | None = None
        """The HLO file, or folder of dumps, that HLO is gone to for; taken when it comes into view."""
        self._profile_from = self._hlo_from = "home"
        self.live = Live(self, interpreter, make, make_program)
        self.session_screens: list[SessionScreen] = []
        """Those that were gone to so far."""
        self.devices = Devices()
        """What the machine has, with live readings; filled by threads after the first frame."""
        self.library_folder: Path | None = None
        """Where sessions are kept; None for the user's own folder."""
        self.monitor = Monitor(self, devices or _machine, self.live.interpreter)
        """Reads the devices while the app is open."""
        self._open_first, self._follow_first = path, follow
        self._program_first = program
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.set_reactive(App.theme, DARK.name)  # before the stylesheet is read: a change would read it anew

    @property
    def session(self) -> Session:
        """The open session: the one that this app writes, or one that was opened to be looked at; else an empty one."""
        return self._in_view.session

    @property
    def session_path(self) -> Path | None:
        """Where the open session is kept."""
        return self._in_view.opened.path

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The meanings that other themes than ours do not know."""
        return VARIABLES

    def on_mount(self) -> None:
        self.set_interval(FOLLOW_SECONDS, self._in_view.follow)
        self.call_after_refresh(self.monitor.start)
        if self._open_first is not None:
            self.open_session(self._open_first, follow=self._follow_first)
        if self._program_first is not None:
            self.start_program(self._program_first)

    def on_unmount(self) -> None:
        """Also when the app ends by an error: no child and no thread outlives it."""
        self.monitor.stop()
        self.live.close()

    @property
    def clock_shift_seconds(self) -> float:
        """What the clock of the session's writer is ahead of ours; 0 where it is ours."""
        return self._in_view.opened.clock_shift_seconds

    @property
    def silent_since(self) -> str:
        """Since when nobody is heard of who wrote the session, in words; empty while somebody is."""
        return self._in_view.opened.silent_since

    # -- devices ----------------------------------------------------------------------------------------------

    def on_devices_found(self, message: DevicesFound) -> None:
        """Takes the devices in; after JAX was asked, the first accelerator is the one to run on."""
        if message.error is not None:
            self.devices.fail(message.error.what, message.error.mend)
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

    # -- where to go ------------------------------------------------------------------------------------------

    def action_go(self, mode: str) -> None:
        """Goes to a mode."""
        if mode == "profile" and self.current_mode not in ("profile", "hlo"):
            self._profile_from = self.current_mode
        elif mode == "hlo":
            self._hlo_from = "home"
        self.switch_mode(mode)

    async def action_back(self) -> None:
        """Leaves what is on top; from a mode, back to Home."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
        elif self.current_mode != "home":
            self.switch_mode("home")

    def action_press(self, key: str) -> None:
        """Presses a key, for the line of keys."""
        self.simulate_key(key)

    def show_results(self, run: str = "") -> None:
        """Goes to Results, with that run in view."""
        self.run_in_view = run or self.run_in_view
        self.switch_mode("results")

    def show_program(self, run: str = "") -> None:
        """Goes to the screen of that program."""
        self.run_in_view = run or self.run_in_view
        self.switch_mode("program")

    def show_hlo(self, run: str = "", kernel: str = "") -> None:
        """Goes to the HLO of that run, and there to a kernel; Esc leads back to where one is now."""
        self.run_in_view, self.kernel_wanted = run or self.run_in_view, kernel
        self._hlo_from = self.current_mode
        self.switch_mode("hlo")

    def leave_hlo(self) -> None:
        """Back to where HLO was opened from."""
        self.switch_mode(self._hlo_from if self._hlo_from != "hlo" else "home")

    def open_hlo(self, path: Path) -> None:
        """Goes to the HLO in a file, or in a folder that XLA dumped into."""
        self.hlo_wanted = path
        in_view = self.current_mode == "hlo"
        self.switch_mode("hlo")
        for screen in self.session_screens:
            if in_view and screen.MODE == "hlo":
                screen.come_into_view()

    def show_profile(self, run: str = "", view: str = "timeline", kernel: str = "") -> None:
        """Goes to what was recorded of that run, and there to a kernel; Esc leads back to where one is now."""
        self.run_in_view, self.view_wanted, self.kernel_wanted = run or self.run_in_view, view, kernel
        self.action_go("profile")

    def leave_profile(self) -> None:
        """Back to where Profile was opened from."""
        self.switch_mode(self._profile_from)

    def action_help(self) -> None:
        """Shows the keys of the screen that is in view."""
        from jaxprof.tui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen))

    # -- the session ------------------------------------------------------------------------------------------

    def start_runs(self, planned: Sequence[Planned]) -> None:
        """Adds runs to the queue of the session that this app writes, and goes to the Run screen."""
        self._in_view.show_live()
        self.live.start(planned)
        self.switch_mode("run")

    def start_program(self, program: Program) -> None:
        """Starts a program of the user's, and goes to its screen."""
        self._in_view.show_live()
        self.live.start_program(program)
        self.switch_mode("program")

    @property
    def session_grows(self) -> bool:
        """Whether the open session is still being written: by this app, or by another process that is followed."""
        return self._in_view.grows

    def set_session(self, session: Session, path: Path | None, follower: Follower[Session] | None = None) -> None:
        """Shows another session in every screen."""
        self._in_view.show(session, path, follower)

    def open_session(self, path: Path, go: str = "", *, follow: bool = False) -> None:
        """Opens a session file, which is followed if somebody still writes it, or `follow` says so. Or HLO, or its
        dumps. Without a mode to `go` to, that which shows what is in the session."""
        from jaxprof.tui.programs.program import holds_hlo

        if holds_hlo(path):
            self.open_hlo(path)
            return
        self._in_view.open(path, go, follow=follow)

    def on_session_opened(self, message: SessionOpened) -> None:
        self._in_view.was_read(message)

    def on_events_arrived(self, message: EventsArrived) -> None:
        self._in_view.fold(message)

    def session_moved(self, before: Path, after: Path) -> None:
        """The file of a session has another name or place now."""
        self._in_view.file_moved(before, after)

    def library(self) -> Library:
        """The folder of sessions."""
        from jaxprof.store import Library

        return Library(self.library_folder)

    def list_sessions(self, screen: MessagePump, limit: int | None = LISTED) -> None:
        """Reads the list of kept sessions and posts it to `screen`. Blocks: for threads only."""
        library = self.library()
        screen.post_message(EntriesRead(list(library.entries(limit)), library.size_bytes(), library.folder))

    def show_state(self) -> None:
        """Draws what runs now and which session is open."""
        for screen in self.screens_in_view():
            for bar in screen.query(ModeBar):
                bar.show_state()

    def screens_in_view(self) -> list[SessionScreen]:
        """The screen of the mode that one is in, also beneath a dialog."""
        return [screen for screen in self.session_screens if self.current_mode == screen.MODE and screen.is_attached]

    # -- what can go wrong, and the end -----------------------------------------------------------------------

    def tell(self, error: JaxprofError, title: str = "") -> None:
        """Shows an error: what failed, and what mends it."""
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

    def action_interrupt(self) -> None:
        """Cancels the run that goes on; a second time within two seconds, quits."""
        self._leaving.interrupt()

    async def action_quit(self) -> None:
        """Leaves; asks first when a run is going on."""
        self._leaving.ask()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Every action that can be done here and now, for the command palette."""
        yield from bound_commands(self, screen)
        yield SystemCommand("Theme", "Choose other colours", self.action_change_theme)
        yield SystemCommand("Screenshot", "Write this screen to an SVG file", self.deliver_screenshot)


def _machine() -> DeviceSource:
    from jaxprof.tui.device_source import MachineSource

    return MachineSource()
