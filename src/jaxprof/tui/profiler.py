"""The app as its screens know it: its modes, the session in view, and the navigation between screens.

`jaxprof.tui.app` derives the running app from it and adds the devices and quitting. Screens are looked up by name, so
this file imports none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.actions import parse
from textual.app import App
from textual.screen import ModalScreen, Screen

from jaxprof.errors import JaxprofError
from jaxprof.tui.keys import IN_MENU, shown
from jaxprof.tui.kit.guard import HIDDEN, Guarded, in_thread
from jaxprof.tui.live import EventsArrived, StorageFailed
from jaxprof.tui.opened_session import OpenedSession, ProfileReading, read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.actions import ActionParseResult
    from textual.binding import Binding
    from textual.dom import DOMNode
    from textual.widget import AwaitMount

    from jaxprof.events import Event
    from jaxprof.hlo.open.stages import ModuleStages
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.runner.planning import PlannedRun
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.session import Session
    from jaxprof.session.log import Follower, Library
    from jaxprof.tui.device_monitor import DeviceMonitor
    from jaxprof.tui.live import Live
    from jaxprof.tui.user_settings import UserSettings


PlanSides = Callable[["Interpreter", "Path"], "list[PlannedRun]"]
"""Plans the sides of a comparison, whose results go into the folder. Raises UsageError; blocks: for threads only."""


SCREENS = {
    "home": "HomeScreen", "results": "ResultsScreen", "program": "ProgramScreen", "job": "JobScreen",
    "hlo": "HloScreen", "profile": "ProfileScreen",
}  # fmt: skip
"""The modes of the app, and the class of the screen of each, in `jaxprof.tui.<mode>.screen`."""
PLACES_OF = {
    "home": "start", "results": "summary", "program": "summary", "job": "summary", "hlo": "kernels",
    "profile": "timeline",
}  # fmt: skip
"""The place (one of `PLACES`) that each mode is a form of."""


PLACES = ("start", "summary", "compiles", "kernels", "timeline", "memory")
"""The six screens named in the first line. Each shows the mode that fits the session."""


def made(module: str, screen: str, *arguments: object) -> Screen[None]:
    """Create a screen from a module of the app; the module is imported when the screen is first needed."""
    new: Screen[None] = getattr(import_module(f"jaxprof.tui.{module}"), screen)(*arguments)
    return new


class Profiler(Guarded, App[None]):
    """The terminal app as its screens see it. The UI thread calls every method, unless a method says otherwise."""

    user: UserSettings
    """The user's settings."""
    live: Live
    """The session that this app writes."""
    devices: DeviceMonitor
    """Devices of the machine with live readings; threads fill it after the first frame."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._run_in_view = ""
        self.view_wanted = ""
        """View that Profile or Program opens next (`timeline`, `ledger`...); cleared when that comes into view."""
        self.kernel_wanted = ""
        """Kernel that HLO or Profile shows next; cleared when that screen comes into view."""
        self.words_wanted = ""
        """Filter text for the view that Program opens next; cleared when Program comes into view."""
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

    def start_comparison(self, plan: PlanSides) -> None:
        """Plan a comparison in a thread, then measure its sides."""
        raise NotImplementedError

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
            self.open_job(path)
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
        profile = path if kind is Kind.PROFILE else profile
        in_thread(self, work, "open", then=partial(self._show_opened, go, profile))

    def _show_opened(self, go: str, profile: Path | None, opened: tuple[Follower[Session], Path, bool] | None) -> None:
        """Show the session that a thread has read, which may be made from a `profile`, and its notices; None if the
        reading was stopped."""
        if opened is None:
            return
        follower, path, written = opened
        self.set_session(follower.session, path, follower if written else None)
        self.opened.profile = profile
        for notice in follower.session.notices:
            self.say(notice, path.name, severity="warning")
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
        from jaxprof.tui.kit.dialogs import ask_path

        live, error = self.live, message.error
        name = live.path.name if live.path is not None else "session.jaxprof"

        def move(path: Path) -> None:
            place = path / name if path.is_dir() else path
            live.move_to(place, lambda: self._saved_in(place))

        title, place = "The session is not being saved", Path.home() / name
        ask_path(self, title, place, move, question=error.what, advice=error.hint)

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

    def show_in(self, mode: str, run: str = "", view: str = "", *, kernel: str = "", words: str = "") -> None:
        """Go to a mode, to a view and a kernel there, with the rows that contain `words`. `run`: by default the one in
        view. Esc returns."""
        if run:
            self.run_in_view = run
        self.view_wanted, self.kernel_wanted, self.words_wanted = view, kernel, words
        self.show_mode(mode)

    def show_history(self, workload: str = "") -> None:
        """Show the history of a workload, or of all, over the saved sessions, above the current screen."""
        self.push_screen(made("results.compare_dialog", "of_history", self.library(), workload))

    def compare_sessions(self, first: Path, second: Path) -> None:
        """Show what differs between two sessions, above the current screen."""
        self.push_screen(made("results.compare_dialog", "of_sessions", first, second))

    def open_job(self, folder: Path) -> None:
        """Go to the job whose processes have their sessions in `folder`."""
        self.job_folder, self.hlo_file, self.module_in_view = folder, None, None
        self.show_mode("job")
        self.show_state()

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
