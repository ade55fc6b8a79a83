"""The app: its settings and devices, the session in view, the navigation between screens, and quitting.

Screens are looked up by name, so this file imports none of them: each decides what it shows. jax is never imported
here, and numpy, psutil and the list of sessions only after the first frame, in threads. Quitting asks first while a run
is in progress, except at the second ctrl+c; every child ends with the app.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Event as Signal
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from textual.actions import ActionParseResult, SkipAction, parse
from textual.app import App
from textual.screen import ModalScreen, Screen
from textual.widgets import Input

from jaxprof.errors import JaxprofError, UsageError
from jaxprof.text import safe
from jaxprof.tui import clock
from jaxprof.tui.device_monitor import DeviceMonitor, MachineSource
from jaxprof.tui.keys import IN_MENU, shown
from jaxprof.tui.kit.guard import HIDDEN, Guarded, in_daemon, in_thread
from jaxprof.tui.live import EventsArrived, Live, LiveChanged, Maker, StorageFailed, make_scheduler
from jaxprof.tui.opened_session import OpenedSession, ProfileReading, read
from jaxprof.tui.theme import DARK, LIGHT, VARIABLES
from jaxprof.tui.user_settings import UserSettings

if TYPE_CHECKING:
    from textual.binding import Binding
    from textual.dom import DOMNode
    from textual.widget import AwaitMount

    from jaxprof.config import Config
    from jaxprof.events import Event
    from jaxprof.hlo.stages import ModuleStages
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.runner.planning import PlannedRun
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.session import Session
    from jaxprof.session.log import Follower, Library


PlanSides = Callable[["Interpreter", "Path"], "list[PlannedRun]"]
"""Plans the sides of a comparison, whose results go into the folder. Raises UsageError; blocks: for threads only."""


PLACES_OF = {
    "home": "start", "results": "summary", "program": "summary", "job": "summary", "hlo": "kernels",
    "profile": "timeline",
}  # fmt: skip
"""The modes of the app, each with the place (one of `PLACES`) that it is a form of. The screen of the mode `job` is
`JobScreen` in `jaxprof.tui.job.screen`, and so on."""
PLACES = ("start", "summary", "compiles", "kernels", "timeline", "memory")
"""The six screens named in the first line. Each shows the mode that fits the session."""


def made(module: str, name: str, *arguments: object) -> Any:
    """Create a screen, or call a function, of a module of the app, which is imported when it is first needed."""
    return getattr(import_module(f"jaxprof.tui.{module}"), name)(*arguments)


FOLLOW_SECONDS = 0.25
"""Seconds between reads of what another process has added to a session."""
TWICE_SECONDS = 2.0
"""A second ctrl+c within this many seconds quits."""
WIDTHS: list[tuple[int, str]] | None = [(0, "-tiny"), (80, "-narrow"), (110, "-wide"), (160, "-very-wide")]
HEIGHTS: list[tuple[int, str]] | None = [(0, "-low"), (24, "-short"), (34, "-tall")]
"""Stylesheet classes of a screen by its least width or height; `-tiny` and `-low` show only a note."""


class Profiler(Guarded, App[None], keys="app"):
    """The terminal app. The UI thread calls every method, unless a method says otherwise."""

    TITLE = "jaxprof"
    CSS_PATH = "shell.tcss"
    MODES: ClassVar[dict[str, Any]] = {
        mode: partial(made, f"{mode}.screen", f"{mode.title()}Screen") for mode in PLACES_OF
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
        light: bool = False,
    ) -> None:
        """`light`: the terminal has a light background, which the theme follows unless the user has chosen one."""
        super().__init__()
        self.user = UserSettings(self, self.tell, config)
        """The user's settings."""
        self.live = Live(self, interpreter, make)
        """The session that this app writes."""
        self.devices = DeviceMonitor(self, devices or MachineSource, self.live.interpreter)
        """Devices of the machine with live readings; threads fill it after the first frame."""
        self._comparing: Signal | None = None
        """Set once the comparison that a thread is planning is given up; None if none is."""
        self._first = path, program, follow, profile
        """What the app begins with."""
        self._interrupted_seconds = float("-inf")
        """When the user last pressed ctrl+c, by the monotonic clock."""
        self._run_in_view = ""
        self.view_wanted = ""
        """View that Profile or Program opens next (`timeline`, `ledger`...); cleared when that comes into view."""
        self.kernel_wanted = ""
        """Kernel that HLO or Profile shows next; cleared when that screen comes into view."""
        self.words_wanted = ""
        """Filter text for the view that Profile or Program opens next; cleared when that comes into view."""
        self.hlo_wanted: Path | None = None
        """HLO file, or folder of dumps, that HLO opens next; cleared when HLO comes into view."""
        self.hlo_file: Path | None = None
        """The HLO file, or folder of dumps, that was opened last; None if something else was opened after it."""
        self.module_in_view: ModuleStages | None = None
        """The module of a file that HLO shows; None while it shows that of a run, or none."""
        self.job_folder: Path | None = None
        """Folder of the job that Job shows; None without a job."""
        self.session_screens: list[Any] = []
        """Screens of the modes created so far (`SessionScreen`, which knows this class); each is informed of changes of
        the session."""
        self.folder = Path.cwd()
        """Folder in which the user's programs are looked up: the one that jaxprof was started in."""
        self.opened = OpenedSession()
        """The session in view."""
        self.reading: ProfileReading | None = None
        """The profile that a thread is reading and that is not in view yet; None if there is none."""
        self._show_live = True
        """Whether to show the next session that this app writes; False after the user opened another one."""
        self._trail: list[str] = []
        """Modes that Esc leads back through; the most recent is last."""
        self._summary = ""
        """Mode of the summary last shown for the session in view."""
        self._mode_wanted = ""
        """Mode requested by a key press and not reached yet; empty once it is in view."""
        self._place_meanwhile = ""
        """Place that the user chose after a file was opened; empty if none."""
        self._theme_of: WeakKeyDictionary[Screen[Any], str] = WeakKeyDictionary()
        """The theme in which Textual last styled each screen."""
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        # Set before the stylesheet is read: changing the theme later would read it again.
        self.set_reactive(App.theme, self.user.theme(light=light))

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return defaults for the variables that other themes do not define."""
        return VARIABLES

    def refresh_css(self, animate: bool = True) -> None:
        """Parse and apply the stylesheets again if the theme has changed. Textual asks for that two or three times when
        a screen first comes into view, 40 ms each, although each widget was styled when it was made."""
        themes = {self._theme_of.get(screen, self.theme) for screen in self.screen_stack}
        if not self._theme_of or themes != {self.theme}:
            super().refresh_css(animate)
        self._theme_of.update(dict.fromkeys(self.screen_stack, self.theme))

    def get_screen(self, screen: Any, screen_class: Any = None) -> Any:
        """Return a screen, whose stylesheet is read before its widgets are made: Textual reads it after them, and then
        styles all of them again, and those in view."""
        made = super().get_screen(screen, screen_class)
        unread = [path for path in made.css_path if not self.stylesheet.has_source(str(path))]
        if unread:
            self.stylesheet.read_all(unread)
            self.stylesheet.parse()
        return made

    def on_mount(self) -> None:
        path, program, follow, profile = self._first
        self.set_interval(FOLLOW_SECONDS, self.follow_session)
        self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh(layout=True))  # `fg` finds it empty
        self.user.start()
        self.call_after_refresh(self.devices.start)
        if path is not None:
            self.open_session(path, follow=follow, profile=profile)
        if program is not None:
            self.start_program(program)

    def on_unmount(self) -> None:
        """End every child and thread, also when the app fails."""
        self.devices.stop()
        if self.reading is not None:
            self.reading.stop()
        self.live.close()

    # -- the session in view ----------------------------------------------------------------------------------

    @property
    def run_in_view(self) -> str:
        """Id of the run that the screens share: one screen selects it, the next shows it, and no module of a file."""
        return self._run_in_view

    @run_in_view.setter
    def run_in_view(self, run: str) -> None:
        self._run_in_view, self.module_in_view = run, None

    @property
    def session(self) -> Session:
        """The open session: the one that this app writes, or one that the user opened; else an empty one."""
        return self.opened.session

    @property
    def session_path(self) -> Path | None:
        """The file of the open session; None while it has none."""
        return self.opened.path

    @property
    def session_grows(self) -> bool:
        """Whether this app, or another process that it follows, still writes the open session."""
        return self.opened.followed or (self.live.busy and self.session is self.live.session)

    def lacking(self) -> frozenset[str]:
        """Return the places that have nothing to show for the session yet; each place explains why, and which key gets
        it."""
        runs = self.session.runs.values()
        if self.job_folder is not None and self.hlo_file is None and not runs:
            return frozenset(("compiles", "kernels", "timeline", "memory"))
        if not runs or self.hlo_wanted is not None:
            return frozenset()
        texts = {name for run in runs for name in run.texts}
        has_data = {
            "compiles": any(run.is_program or run.compile_passes is not None for run in runs),
            "kernels": "hlo" in texts or any(run.measured for run in runs),
            "timeline": "timeline" in texts or bool(self.session.programs),
            "memory": "hlo" in texts or any(run.buffers is not None or run.memory is not None for run in runs),
        }
        return frozenset(place for place, has in has_data.items() if not has)

    def set_session(self, session: Session, path: Path | None, follower: Follower[Session] | None = None) -> None:
        """Show another session in every screen."""
        self.opened.show(session, path, follower)
        self.hlo_file = None
        self.run_in_view = self._summary = ""
        self._session_changed(frozenset(session.runs), replaced=True)

    def _session_changed(self, runs: frozenset[str], *, replaced: bool = False) -> None:
        """Report a change to the screens: each derives the results of `runs` again, or of all, if this is another
        session (`replaced`)."""
        self.session.desert(deserted=not self.session_grows)
        for screen in self.session_screens:
            screen.call_later(screen.take_change, runs, replaced=replaced)
        self.show_state()

    def follow_session(self) -> None:
        """Read what another process has written since the last call."""
        runs, changed = self.opened.poll()
        if changed:
            if self.opened.silent_since:
                self.say(f"The recording process has shown {self.opened.silent_since}.", severity="warning")
            runs = frozenset(self.session.runs)
        if runs:
            self._session_changed(runs)

    def open_session(self, path: Path, go: str = "", *, follow: bool = False, profile: Path | None = None) -> None:
        """Open a session (made of a `profile` if one is given), a profile, HLO, or the folder of a job; go to the mode
        `go`, by default to the one that fits.

        A thread reads a session or a profile. The app follows a session that a process still writes; with `follow`, it
        follows any session.
        """
        from jaxprof.analysis.opener import Kind, kind_of

        kind = kind_of(path)
        if kind is Kind.JOB:
            self.job_folder, self.hlo_file, self.module_in_view = path, None, None
            self.show_mode("job")
            self.show_state()
            return
        if kind is Kind.HLO or (kind is None and go == "hlo"):  # its reader says what is wrong
            self.hlo_wanted = path
            self.show_mode("hlo")
            return
        live = self.live
        self._show_live = live.session is not None and path == live.path
        if self._show_live and live.session is not None:
            self.set_session(live.session, path)
            self._go_to(go or place_of(live.session))
            return
        self.stop_reading()
        if kind is Kind.PROFILE:
            self.reading = ProfileReading(path, lambda reading: self.call_later(self._reading_changed, reading))
            self.show_state()
        work = partial(read, path, follow=follow, reading=self.reading)
        self._place_meanwhile = ""
        profile = path if kind is Kind.PROFILE else profile
        in_thread(self, work, "open", then=partial(self._show_opened, go, profile))

    def _show_opened(self, go: str, profile: Path | None, opened: tuple[Follower[Session], Path, bool] | None) -> None:
        """Show the session that a thread has read, which may be made from a `profile`, and its notices; None if the
        reading was stopped. The place is the one that the user has chosen since, unless that took as long as a profile
        takes."""
        if opened is None:
            return
        follower, path, written = opened
        self.set_session(follower.session, path, follower if written else None)
        self.opened.profile = profile
        for notice in follower.session.notices:
            self.say(notice, path.name, severity="warning")
        if self._place_meanwhile not in ("", "summary") and profile is None:
            self.action_place(self._place_meanwhile)
        else:
            self._go_to(go or place_of(follower.session))

    def _go_to(self, mode: str) -> None:
        """Go to a mode; an opened profile starts at its overview, a program at its findings."""
        self.show_in(mode, view={"profile": "overview", "program": "findings"}.get(mode, ""))

    def stop_reading(self) -> None:
        """Stop reading a profile, if one is being read; the session in view stays."""
        if self.reading is not None:
            self.reading.stop()
            self.reading = None
            self.show_state()

    def _reading_changed(self, reading: ProfileReading) -> None:
        """Show the progress of reading a profile; ignore a reading that was stopped."""
        if reading is self.reading:
            if reading.over:
                self.reading = None
            self.show_state()

    def action_stop_reading(self) -> None:
        if self.reading is not None:
            self.say(self.reading.path.name, "Stopped reading")
        self.stop_reading()

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Let Escape stop a reading, unless it closes a dialog first."""
        idle = self.reading is None or isinstance(self.screen, ModalScreen)
        return HIDDEN if action == "stop_reading" and idle else super().why_not(action, parameters)

    def ask_for_file(self, go: str = "") -> None:
        """Ask for a path and open it in the mode `go`, by default in the one that fits it."""
        from jaxprof.files import with_home
        from jaxprof.tui.kit.dialogs import FormField, ask_text

        def take(text: str) -> None:
            self.open_session((Path.cwd() / with_home(text)).resolve(), go)

        what = "A session, a profile or its folder, or HLO: text, a proto, or the folder of a dump."
        ask_text(self, "Open", FormField("path", "", ""), take, "opens", question=what)

    # -- what this app writes ---------------------------------------------------------------------------------

    def start_runs(self, planned: Sequence[PlannedRun], *, go: bool = True) -> None:
        """Add runs to the queue of the session that this app writes, and go to its runs; without `go`, the screen and
        the session in view stay."""
        self._show_live = go or self._show_live or self.session_path is None
        self.live.start(planned)
        if go:
            self.switch_mode("results")

    def start_program(self, program: ProgramCommand) -> None:
        """Start a user's program and go to its screen."""
        self._show_live = True
        self.live.start_program(program)
        self._go_to("program")

    def start_comparison(self, plan: PlanSides) -> None:
        """Plan a comparison in a thread, then measure its sides. Their results lie in a folder that is deleted with the
        app. Raises UsageError while something runs, which making the inputs would disturb, and StorageError without a
        folder."""
        from jaxprof.reaper import TemporaryFolder

        if self._comparing is not None:
            self.say("Preparing the inputs of both sides; ctrl+c cancels.", "Comparing")
            return
        if self.live.busy:
            hint = "Preparing the inputs of both sides would disturb that run: wait until it ends, or cancel it."
            raise UsageError("another run is in progress", hint)
        folder, given_up = TemporaryFolder("compare"), Signal()
        atexit.register(folder.close)
        self._comparing = given_up
        in_daemon(
            lambda: self.call_later(self._sides_planned, given_up, plan(self.live.interpreter(), folder.path)),
            "compare",
            lambda error: self.call_later(self._sides_planned, given_up, [], error),
        )
        self.say("jaxprof prepares the inputs of both sides, then measures A, A' and B in turns.", "Comparing")

    def _sides_planned(self, given_up: Signal, planned: list[PlannedRun], error: JaxprofError | None = None) -> None:
        """Queue the sides of a comparison, and go to the runs if the user is still on Start."""
        if given_up.is_set():
            return
        self._comparing = None
        if error is not None:
            self.tell(error)
        else:
            self.start_runs(planned, go=self.current_mode == "home" and len(self.screen_stack) == 1)

    def on_events_arrived(self, message: EventsArrived) -> None:
        """Fold the events that this app has written; report a failed run on every screen."""
        session = message.session
        session.extend(message.events)
        # The program screen itself shows at its head how a program ended.
        for error, title in alerts(message.events, programs=self.current_mode != "program"):
            self.tell(error, title)
        runs = frozenset(event.run for event in message.events if event.run)
        if self.session is session:
            self._session_changed(runs)
        elif self._show_live and session is self.live.session:
            self.set_session(session, self.live.path)

    def on_live_changed(self, message: LiveChanged) -> None:
        # Judge again whether its runs go on: its first events may have arrived before the queue was busy.
        if self.session is self.live.session:
            self._session_changed(frozenset(self.session.runs))
        self.show_state()
        for screen in self.screens_in_view():
            screen.post_message(LiveChanged(message.busy))

    def session_moved(self, before: Path, after: Path) -> None:
        """Update the paths after the file of a session, or the folder of a job, was renamed or moved."""
        if self.job_folder == before:
            self.job_folder = after
        if self.live.path == before:
            self.live.path = after
        path = self.opened.path
        if path is not None and path == before:
            self.opened.path = after
        elif path is not None and path.parent == before:  # the session is that of a process of the job
            self.opened.path = after / path.name
        self.show_state()

    def on_storage_failed(self, message: StorageFailed) -> None:
        """Report that this app's session cannot be written, and ask for another file; runs continue meanwhile."""
        from jaxprof.files import with_home
        from jaxprof.tui.kit.dialogs import FormField, ask_text

        live, error = self.live, message.error
        name = live.path.name if live.path is not None else "session.jaxprof"

        def move(text: str) -> None:
            path = with_home(text)
            place = path / name if path.is_dir() else path
            live.move_to(place, lambda: self._saved_in(place))

        field = FormField("path", safe(str(Path.home() / name)), error.hint or "a folder or a file")
        ask_text(self, "The session is not being saved", field, move, "saves", question=error.what)

    def _saved_in(self, path: Path) -> None:
        if self.session is self.live.session:
            self.opened.path = path
        self.show_state()
        self.say(str(path), "Session saved to")

    def library(self) -> Library:
        """Return the library of saved sessions."""
        from jaxprof.session.log import Library

        return Library()

    # -- from screen to screen --------------------------------------------------------------------------------

    def action_place(self, name: str) -> None:
        """Go to one of the six places; the key of the place in view leads to its next form."""
        self._place_meanwhile = name
        forms = self._forms(name)
        here = self._mode_wanted or self.current_mode
        in_view = bool(self._mode_wanted) or any(screen.place == name for screen in self.screens_in_view())
        if here in forms and in_view and name == "summary":
            self.action_go(forms[(forms.index(here) + 1) % len(forms)])
            return
        mode = self._summary if name == "summary" and self._summary in forms else forms[0]
        if mode == "profile":
            run = self.session.runs.get(self.run_in_view)
            # XLA compiles nothing for NumPy, and no whole program op by op: show another run
            if run is not None and (run.plan.how == "numpy" or (run.plan.how == "eager" and name != "timeline")):
                self._run_in_view = ""
            self.view_wanted = {"compiles": "compile"}.get(name, name)
        elif mode == "program":
            self.view_wanted = "ledger" if name == "compiles" else "summary"
        self.action_go(mode)

    def _forms(self, place: str) -> list[str]:
        """Return the modes that a place has for the session in view, the best fit first."""
        if place == "start":
            return ["home"]
        if place == "kernels":
            return ["hlo"]
        programs = ["program"] if self.session.programs else []
        if place != "summary":
            return programs if place == "compiles" and programs else ["profile"]
        measured = len(self.session.runs) > len(programs)
        job = ["job"] if self.job_folder is not None else []
        return [*programs, *(["results"] if measured or not programs + job else []), *job]

    def action_go(self, mode: str) -> None:
        """Go to a mode. Of several requests at once only the last counts: changing the screen costs a new layout, and
        nothing is drawn until all of them are done."""
        self._mode_wanted = mode
        self.call_later(self._arrive)

    def _arrive(self) -> None:
        mode, self._mode_wanted = self._mode_wanted, ""
        if mode:
            self.show_mode(mode)

    def switch_mode(self, mode: str) -> AwaitMount:
        """Go to a mode, and remember where from. Going to a mode on the way back returns to it; an earlier request for
        another mode is dropped."""
        self._mode_wanted = ""
        if PLACES_OF[mode] == "summary":
            self._summary = mode
        if mode in self._trail:
            del self._trail[self._trail.index(mode) :]
        elif mode != self.current_mode:
            self._trail.append(self.current_mode)
        return super().switch_mode(mode)

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run the action of a key; if it does nothing now, say why."""
        if await super().run_action(action, default_namespace, namespaces):
            return True
        node = default_namespace
        if not isinstance(node, Guarded) or not isinstance(action, str):
            return False
        _, name, arguments = parse(action)
        reason = node.why_not(name, arguments)
        if reason:
            self.say(reason)
        return bool(reason)

    async def action_back(self) -> None:
        if len(self.screen_stack) > 1:
            self.pop_screen()
        else:
            self.step_back()

    def step_back(self) -> None:
        """Go to the previous mode, at the end of the trail to Start."""
        self.switch_mode(self._trail[-1] if self._trail else "home")

    def get_key_display(self, binding: Binding) -> str:
        """Return the key as people write it; Textual does not know the letters in the menu."""
        return shown(binding.key) if binding.key.startswith(IN_MENU) else super().get_key_display(binding)

    def action_press(self, key: str) -> None:
        """Press a key, for a click in the key bar."""
        self.simulate_key(key)

    def action_help(self) -> None:
        if type(self.screen).__name__ != "HelpScreen":
            self.push_screen(made("actions", "HelpScreen", self.screen))

    def action_menu(self) -> None:
        """Open the menu. Its key is an ordinary letter in a text field and in the menu itself."""
        if isinstance(self.focused, Input) or getattr(self.screen, "lettered", False):
            raise SkipAction
        made("actions", "open_menu", self)

    def action_command_palette(self) -> None:
        made("actions", "open_palette", self)

    def show_in(self, mode: str, run: str = "", view: str = "", *, kernel: str = "", words: str = "") -> None:
        """Go to a mode, to a view and a kernel there, with the rows that contain `words`. `run`: by default the one in
        view. Esc returns."""
        if run:
            self.run_in_view = run
        self.view_wanted, self.kernel_wanted, self.words_wanted = view, kernel, words
        self.show_mode(mode)

    def show_mode(self, mode: str) -> None:
        """Go to a mode that has something new to show, even if it is already in view."""
        in_view = self.current_mode == mode
        self.switch_mode(mode)
        for screen in self.session_screens:
            if in_view and mode == screen.MODE:
                screen.come_into_view()

    def screens_in_view(self) -> list[Any]:
        """Return the screens of the current mode, including those beneath a dialog."""
        return [screen for screen in self.session_screens if self.current_mode == screen.MODE and screen.is_attached]

    def show_state(self) -> None:
        for screen in self.screens_in_view():
            screen.show_state()

    # -- the ways out -----------------------------------------------------------------------------------------

    def action_interrupt(self) -> None:
        now = clock.monotonic()
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
        Confirm("Quit jaxprof?", question, "End it and quit").ask(self, lambda yes: self._quit())

    def _quit(self) -> None:
        """End the children and close the log in a thread, then end the app."""
        self.devices.stop()

        def close() -> None:
            try:
                self.live.close()
            finally:
                self.call_from_thread(self.exit)

        in_thread(self, close, "leave")


def alerts(events: Iterable[Event], *, programs: bool) -> Iterator[tuple[JaxprofError, str]]:
    """Yield the errors to show, each with a title. `programs`: include the end of the user's own program."""
    from jaxprof.events import RunClosed, WarningRaised

    for event in events:
        if isinstance(event, RunClosed) and event.status in ("failed", "crashed", "timed out"):
            if programs or event.variant != "program":
                what = event.error or f"the run {event.status}"
                yield JaxprofError(what, event.advice), f"{event.workload} {event.variant}: {event.status}"
        elif isinstance(event, WarningRaised) and event.code == "worker_silent":
            yield JaxprofError(event.message, event.advice), f"run {event.run}"


def place_of(session: Session) -> str:
    """Return the mode that fits the content of a session."""
    # Imported here because it imports the HLO reader, for which the first frame would wait.
    from jaxprof.session.run import IMPORTED

    how = {run.plan.how for run in session.runs.values()}
    if "program" in how:
        return "program"
    return "profile" if how == {IMPORTED} else "results"
