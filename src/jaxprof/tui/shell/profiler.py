"""The app: the user's settings and devices, the session in view, what it writes, and quitting.

jax is never imported here, and numpy, psutil and the list of sessions only after the first frame, in threads. Quitting
asks first while a run is in progress, except at the second ctrl+c; every child ends with the app.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event as Signal
from typing import TYPE_CHECKING

from textual.app import App
from textual.driver import Driver
from textual.screen import ModalScreen

from jaxprof.base.config import Config, Value, keep
from jaxprof.base.errors import JaxprofError, StorageError, UsageError, system_words
from jaxprof.base.text import safe
from jaxprof.base.units import counted, percent
from jaxprof.tui import clock
from jaxprof.tui.keys import check_keys, clashes, key_of, remap
from jaxprof.tui.kit.guard import HIDDEN, in_daemon, in_thread
from jaxprof.tui.kit.host import Destination, LiveChanged
from jaxprof.tui.shell.device_monitor import DeviceMonitor, MachineSource
from jaxprof.tui.shell.live import EventsArrived, Live, Maker, StorageFailed, make_scheduler
from jaxprof.tui.shell.navigation import Navigator, create
from jaxprof.tui.shell.opened_session import ProfileReading, read
from jaxprof.tui.shell.terminal_cells import ScreenCells
from jaxprof.tui.theme import DARK, LIGHT, themes, variables

if TYPE_CHECKING:
    from jaxprof.events import Event
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.runner.planning import PlannedRun
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.session import Follower, Library, Session
    from jaxprof.tui.kit.dialogs import Confirm
    from jaxprof.tui.kit.screen import SessionScreen


class UserSettings:
    """The user's settings, and where the app writes changes to them. Runs on the UI thread."""

    def __init__(self, app: App[None], tell: Callable[[JaxprofError, str], None], config: Config | None) -> None:
        self._app, self._tell, self._keeps = app, tell, config is not None
        self.config = config or Config()
        self._errors: list[JaxprofError] = []
        self._keys: dict[str, str] = {}
        try:
            self._keys = check_keys(self.config.keys)
        except JaxprofError as error:
            self._errors.append(error)
        self._errors += [
            UsageError(str(clash), "`jaxprof config set keys.ID KEY` changes one.") for clash in clashes(self._keys)
        ]
        remap(self._keys)

    def theme(self, *, light: bool) -> str:
        """Return the theme to begin with: the user's if there is one of that name, otherwise the one that suits the
        terminal's background."""
        name, default = self.config.get("theme", str) or "auto", LIGHT.name if light else DARK.name
        name = {"auto": default, "light": LIGHT.name, "dark": DARK.name}.get(name, name)
        if name in self._app.available_themes:
            return name
        hint = f"Available themes: auto, dark, light, {', '.join(sorted(self._app.available_themes))}."
        self._errors.append(JaxprofError(f"there is no theme {name!r}", hint))
        return default

    def start(self) -> None:
        """Set the user's keys, report what is wrong with the settings, and save changes of the theme from now on."""
        if self._keys:
            self._app.set_keymap(self._keys)
            self._app.call_after_refresh(self._app.refresh_bindings)  # no screen and key bar exist before the refresh
        for error in self._errors:
            self._tell(error, "Your settings")
        self._app.theme_changed_signal.subscribe(self._app, lambda theme: self.keep("theme", theme.name))

    def keep(self, name: str, value: Value) -> None:
        """Write a setting that the user has chosen into their file, and report if that fails."""
        if not self._keeps:
            return
        try:
            keep(name, value)
        except OSError as error:
            self._tell(StorageError(f"{name} was not saved: {system_words(error)}", ""), "Your settings")
        except JaxprofError as error:
            self._tell(error, "Your settings")


PlanSides = Callable[["Interpreter", "Path"], "list[PlannedRun]"]
"""Plans the sides of a comparison, whose results go into the folder. Raises UsageError; blocks: for threads only."""


FOLLOW_SECONDS = 0.25
"""Seconds between reads of what another process has added to a session."""
REFRESH_SHARE, REFRESH_MOST_SECONDS = 0.01, 5.0
"""Share of a core that refreshing the view of a growing program takes, drawing aside, and the longest time between two
refreshes: each derives from all samples so far, and would take ever more."""
TWICE_SECONDS = 5.0
"""A second ctrl+c within this many seconds quits; the message that says so stays as long."""


class Profiler(Navigator, keys="app"):
    """The terminal app. The UI thread calls every method, unless a method says otherwise."""

    TITLE = "jaxprof"
    CSS_PATH = "shell.tcss"

    def __init__(
        self,
        path: Path | None = None,
        *,
        interpreter: Interpreter | None = None,
        make: Maker = make_scheduler,
        program: ProgramCommand | None = None,
        follow: bool = False,
        profile: Path | None = None,
        drawn: Callable[[], object] = lambda: None,
        config: Config | None = None,
        devices: Callable[[], MachineSource] | None = None,
        light: bool = False,
        few_colours: bool = False,
    ) -> None:
        """`drawn` is called after the first frame. `light`: the terminal has a light background, which the theme
        follows unless the user has chosen one; `few_colours`: it has 16 colours."""
        self._few_colours, self._cells = few_colours, ScreenCells()  # Textual asks for both at once
        super().__init__()
        self.user = UserSettings(self, self.tell, config)
        self.live = Live(self, interpreter, make)
        self.devices = DeviceMonitor(self, devices or MachineSource, self.live.interpreter)
        """Devices of the machine with live readings; threads fill it after the first frame."""
        self._comparing: Signal | None = None
        """Set once the comparison that a thread is planning is given up; None if none is."""
        self._first, self._drawn = (path, program, follow, profile), drawn
        self._interrupted_seconds = float("-inf")
        """When the user last pressed ctrl+c, by the monotonic clock."""
        self._quitting: Confirm | None = None
        """The dialog that was last asked whether to end a run and quit."""
        self.folder = Path.cwd()
        """Folder in which the user's programs are looked up: the one that jaxprof was started in."""
        self.reading: ProfileReading | None = None
        """The profile that a thread is reading and that is not in view yet; None if there is none."""
        self._refresh_seconds, self._unshown = 0.0, frozenset[str]()
        """Monotonic time from which on a growing program is shown again, and the runs that have changed meanwhile."""
        self._show_live = True
        """Whether to show the next session that this app writes; False after the user opened another one."""
        for theme in themes(few=few_colours):
            self.register_theme(theme)
        # Set before the stylesheet is read: to change it later would read and apply all of it again.
        self.set_reactive(App.theme, self.user.theme(light=light))
        self.stylesheet.set_variables(self.get_css_variables())

    def get_driver_class(self) -> type[Driver]:
        usual, cells = super().get_driver_class(), self._cells

        class ChangesDriver(usual):  # type: ignore[misc, valid-type]
            """Writes what the terminal does not show yet: Textual draws a box whole, some of it twice."""

            def write(self, data: str) -> None:
                if changes := cells.changes(data):
                    super().write(changes)

        return usual if os.name == "nt" else ChangesDriver  # there Textual writes in pieces

    def on_resize(self) -> None:
        self._cells.forget()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables(few=self._few_colours)

    def on_load(self) -> None:
        self.stylesheet.apply(self)  # as the first screen needs: its widgets keep the colour of text that they inherit

    def on_mount(self) -> None:
        path, program, follow, profile = self._first
        self.set_interval(FOLLOW_SECONDS, self.follow_session)
        self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh(layout=True))  # `fg` finds it empty
        self.user.start()
        self.call_after_refresh(self._drawn)
        self.call_after_refresh(self.devices.start)
        if path is not None:
            self.open_session(path, follow=follow, profile=profile)
        if program is not None:
            self.start_program(program)

    def on_unmount(self) -> None:
        self.devices.stop()
        if self.reading is not None:
            self.reading.stop()
        self.live.close()

    # -- the session in view ----------------------------------------------------------------------------------

    @property
    def session_path(self) -> Path | None:
        return self.opened.path

    @property
    def session_grows(self) -> bool:
        """Whether this app, or another process that it follows, still writes the open session."""
        return self.opened.followed or (self.live.busy and self.session is self.live.session)

    @property
    def activity(self) -> str:
        """What goes on now, for the first line; empty if nothing does."""
        if self.reading is not None:
            progress = self.reading.progress
            share = f"{percent(progress.fraction)} " if progress.fraction is not None else ""
            return safe(share + (progress.note or f"reading {self.reading.path.name}"))
        live = self.live
        if self.opened.silent_since or live.session is None:
            return self.opened.silent_since
        left = counted(sum(not run.over for run in live.session.runs.values()), "run")
        busy = "program running" if live.program is not None else f"{left} to go"
        return ", ".join(filter(None, ("not saved" if live.is_unsaved else "", busy if live.busy else "")))

    def set_session(self, session: Session, path: Path | None, follower: Follower[Session] | None = None) -> None:
        self.opened.show(session, path, follower)
        self.destination = replace(self.destination, run="", file=self.destination.unread, module=None)
        self._summary = ""
        self._session_changed(frozenset(session.runs), replaced=True)

    def _session_changed(self, runs: frozenset[str], *, replaced: bool = False) -> None:
        """Report a change to the screens: each derives the results of `runs` again, or of all, if this is another
        session (`replaced`)."""
        self.session.desert(deserted=not self.session_grows)
        runs = runs if replaced else runs | self._unshown
        early = self.session_grows and self.session.programs and clock.monotonic() < self._refresh_seconds
        if early and not replaced:
            self._unshown = runs  # `follow_session` shows them
            return
        self._unshown = frozenset()
        for screen in self.session_screens:
            screen.call_later(self._show_change, screen, runs, replaced)
        self.show_state()

    def _show_change(self, screen: SessionScreen, runs: frozenset[str], replaced: bool) -> None:
        began = clock.thread_time()
        screen.receive_change(runs, replaced=replaced)
        if not replaced:  # the first time imports what it needs
            rest = min((clock.thread_time() - began) / REFRESH_SHARE, REFRESH_MOST_SECONDS)
            self._refresh_seconds = max(self._refresh_seconds, clock.monotonic() + rest)

    def follow_session(self) -> None:
        runs, changed = self.opened.poll()
        if changed:
            if self.opened.silent_since:
                self.say(f"The recording process has shown {self.opened.silent_since}.", severity="warning")
            runs = frozenset(self.session.runs)
        if runs or self._unshown:
            self._session_changed(runs)

    def open_session(self, path: Path, mode: str = "", *, follow: bool = False, profile: Path | None = None) -> None:
        """Open a session (made of a `profile` if one is given), a profile, HLO, or the folder of a job; go to `mode`,
        by default to the one that fits. A thread reads a session or a profile. The app follows a session that a process
        still writes; with `follow`, it follows any session."""
        from jaxprof.analysis.target import Kind, kind_of

        kind = kind_of(path)
        if kind is Kind.JOB:
            self.job_folder = path
            self.select()  # no longer the module of a file
            self.show(Destination("job"))
            self.show_state()
            return
        if kind is Kind.HLO or (kind in (Kind.OTHER, Kind.NOTHING) and mode == "hlo"):  # its reader says what is wrong
            self.show(Destination("hlo", file=path))
            return
        live = self.live
        self._show_live = live.session is not None and path == live.path
        if self._show_live and live.session is not None:
            self.set_session(live.session, path)
            self._show_first_view(mode or mode_for(live.session))
            return
        self.stop_reading()
        if kind is Kind.PROFILE:
            profile, self.reading = path, ProfileReading(path, partial(self.call_later, self._reading_changed))
            self.show_state()
        self.destination = replace(self.destination, section="")

        def show(opened: tuple[Follower[Session], Path, bool] | None) -> None:
            if opened is None:  # the user has stopped the reading
                return
            follower, path, written = opened
            section = self.destination.section  # chosen since then; a profile takes so long that this is no wish for it
            self.set_session(follower.session, path, follower if written else None)
            self.opened.profile = profile
            for notice in follower.session.notices:
                self.say(notice, path.name, severity="warning")
            if section not in ("", "summary") and profile is None:
                self.action_section(section)
            else:
                self._show_first_view(mode or mode_for(follower.session))

        in_thread(self, partial(read, path, follow=follow, reading=self.reading), "open", then=show)

    def _show_first_view(self, mode: str) -> None:
        """Go to a mode that has something new: a profile begins with its overview, a program with its findings."""
        self.show(Destination(mode, {"profile": "overview", "program": "findings"}.get(mode, "")))

    def stop_reading(self) -> None:
        if self.reading is not None:
            self.reading.stop()
            self.reading = None
            self.show_state()

    def _reading_changed(self, reading: ProfileReading) -> None:
        if reading is self.reading:
            if reading.over:
                self.reading = None
            self.show_state()

    def action_stop_reading(self) -> None:
        if self.reading is not None:
            self.say(self.reading.path.name, "Stopped reading")
        self.stop_reading()

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        idle = self.reading is None or isinstance(self.screen, ModalScreen)
        if (action == "stop_reading" and idle) or (action == "export" and not self.opened.run_ids):
            return HIDDEN
        return super().why_not(action, parameters)

    def action_export(self) -> None:
        create("shell.export", "ask_to_export", self)

    def ask_for_file(self, mode: str = "") -> None:
        from jaxprof.analysis.target import Kind, resolve
        from jaxprof.tui.kit.dialogs import FormField, ask_text

        paths: list[Path] = []

        def find(text: str) -> None:
            target = resolve(text, jobs=True)
            paths[:] = [(Path.cwd() / (target.path or text)).resolve()]
            if target.kind is Kind.NOTHING or (target.kind is Kind.OTHER and mode != "hlo"):
                read(paths[0])  # the reader says what is wrong, while the text can still be corrected

        what = "A session by path or name, a profile or its folder, or HLO: text, a proto, or the folder of a dump."
        field = FormField("path", "", "", goes_on=True)
        ask_text(self, "Open", field, lambda text: self.open_session(paths[0], mode), "opens", question=what, find=find)

    # -- what this app writes ---------------------------------------------------------------------------------

    def start_runs(self, planned: Sequence[PlannedRun], *, go: bool = True) -> None:
        """Add runs to the queue of the session that this app writes, and go to its runs; without `go`, the screen and
        the session in view stay."""
        self._show_live = go or self._show_live or self.session_path is None
        self.live.start(planned)
        if go:
            self.switch_mode("results")

    def start_program(self, program: ProgramCommand) -> None:
        self._show_live = True
        self.live.start_program(program)
        self._show_first_view("program")

    def start_comparison(self, plan: PlanSides) -> None:
        """Plan a comparison in a thread, then measure its sides. Their results lie in a folder that is deleted with the
        app. Raises UsageError while something runs, which making the inputs would disturb, and StorageError without a
        folder."""
        from jaxprof.base.reaper import TemporaryFolder

        if self._comparing is not None:
            self.say("Preparing the inputs of both sides; ctrl+c cancels.", "Comparing")
            return
        if self.live.busy:
            hint = "Preparing the inputs of both sides would disturb that run: wait until it ends, or cancel it."
            raise UsageError("another run is in progress", hint)
        folder, given_up = TemporaryFolder("compare"), Signal()
        atexit.register(folder.close)
        self._comparing = given_up

        def start(planned: list[PlannedRun], error: JaxprofError | None = None) -> None:
            if given_up.is_set():
                return
            self._comparing = None
            if error is not None:
                self.tell(error)
            else:  # stay if the user has left Start meanwhile
                self.start_runs(planned, go=self.current_mode == "home" and len(self.screen_stack) == 1)

        in_daemon(
            lambda: self.call_later(start, plan(self.live.interpreter(), folder.path)),
            "compare",
            lambda error: self.call_later(start, [], error),
        )
        self.say("jaxprof prepares the inputs of both sides, then measures A, A' and B in turns.", "Comparing")

    def compare_sessions(self, before: Path, after: Path) -> None:
        self.push_screen(create("results.compare_dialog", "of_sessions", before, after))

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
        if not message.busy and self._quitting is not None and self._quitting.is_active:
            self._quitting.dismiss()
            self.say(f"Press {key_of('app.quit')} again to quit.", "The run has ended meanwhile")
        for screen in self.screens_in_view():
            screen.post_message(LiveChanged(message.busy))

    def session_moved(self, before: Path, after: Path) -> None:
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
        from jaxprof.base.files import with_home
        from jaxprof.tui.kit.dialogs import FormField, ask_text

        live, error = self.live, message.error
        name = live.path.name if live.path is not None else "session.jaxprof"

        def move(text: str) -> None:
            path = with_home(text)
            path = path / name if path.is_dir() else path

            def adopt_path() -> None:
                if self.session is live.session:
                    self.opened.path = path
                self.show_state()
                self.say(str(path), "Session saved to")

            live.move_to(path, adopt_path)

        field = FormField("path", safe(str(Path.home() / name)), error.hint or "a folder or a file")
        ask_text(self, "The session is not being saved", field, move, "saves", question=error.what)

    def library(self) -> Library:
        from jaxprof.session import Library

        return Library()

    # -- the ways out -----------------------------------------------------------------------------------------

    def action_interrupt(self) -> None:
        now = clock.monotonic()
        if now - self._interrupted_seconds < TWICE_SECONDS:
            self._quit()
            return
        self._interrupted_seconds, cancelled = now, "Nothing is running"
        if self._comparing is not None:
            self._comparing.set()
            self._comparing, cancelled = None, "The comparison is cancelled"
        elif self.live.busy:
            self.live.cancel_current()
            cancelled = "Cancelling the run, and what was queued with it"
        self.say("Press ctrl+c again to quit.", cancelled, severity="warning", timeout=TWICE_SECONDS)

    async def action_quit(self) -> None:
        if not self.live.busy:
            self._quit()
            return
        from jaxprof.tui.kit.dialogs import Confirm

        question = "A run is in progress. The session keeps what it has measured so far."
        self._quitting = Confirm("Quit jaxprof?", question, "End it and quit")
        self._quitting.ask(self, lambda yes: self._quit())

    def _quit(self) -> None:
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


def mode_for(session: Session) -> str:
    # Imported here because it imports the HLO reader, for which the first frame would wait.
    from jaxprof.session.run import IMPORTED

    how = {run.plan.how for run in session.runs.values()}
    if "program" in how:
        return "program"
    return "profile" if how == {IMPORTED} else "results"
