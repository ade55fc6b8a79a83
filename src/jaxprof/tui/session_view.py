"""The session that the screens show: a file that the app follows while it grows, or what this app writes, folded here.

Every screen hears of every change. A screen out of view notes it for later and draws nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import JaxprofError
from jaxprof.text import safe
from jaxprof.tui.kit.threads import in_thread
from jaxprof.tui.messages import EventsArrived, SessionChanged
from jaxprof.tui.opened_session import OpenedSession, ReadingChanged, SessionOpened, read

if TYPE_CHECKING:
    from jaxprof.events import Event
    from jaxprof.session import Session
    from jaxprof.session.log import Follower
    from jaxprof.tui.opened_session import ProfileReading
    from jaxprof.tui.profiler import Profiler


def alerts(events: Iterable[Event], *, programs: bool) -> Iterator[tuple[JaxprofError, str]]:
    """The errors to show, each with a title. `programs`: include the end of the user's own program."""
    from jaxprof.events import RunClosed, WarningRaised

    for event in events:
        if isinstance(event, RunClosed) and event.status in ("failed", "crashed", "timed out"):
            if programs or event.variant != "program":
                what = event.error or f"the run {event.status}"
                yield JaxprofError(what, event.advice), f"{event.workload} {event.variant}: {event.status}"
        elif isinstance(event, WarningRaised) and event.code == "worker_silent":
            yield JaxprofError(event.message, event.advice), f"run {event.run}"


class SessionInView:
    """One session at a time. Every method runs on the UI thread; threads read files and post what they read."""

    def __init__(self, app: Profiler) -> None:
        self._app = app
        self._show_live = True
        """Whether to show the next session that this app writes: not after the user opened another one."""
        self.opened = OpenedSession()
        self.reading: ProfileReading | None = None
        """The profile that a thread is reading."""

    @property
    def session(self) -> Session:
        """The session in view; an empty one before anything is run or opened."""
        return self.opened.session

    @property
    def grows(self) -> bool:
        """Whether this app, or another process that it follows, still writes the session."""
        live = self._app.live
        return self.opened.followed or (live.busy and self.session is live.session)

    def show(self, session: Session, path: Path | None, follower: Follower[Session] | None = None) -> None:
        """Shows another session in every screen."""
        self.opened.show(session, path, follower)
        self._app.run_in_view = ""
        self._tell(frozenset(session.runs), replaced=True)

    def show_live(self) -> None:
        """Shows the session that this app writes as soon as it has an event."""
        self._show_live = True

    # -- from a file ------------------------------------------------------------------------------------------

    def open(self, path: Path, go: str = "", *, follow: bool = False) -> None:
        """Reads a session or a profile in a thread, shows it, and goes to the mode `go`, by default the one that fits.

        The app follows a session that a process still writes, and with `follow` any session.
        """
        from jaxprof.analysis.opener import Kind, kind_of
        from jaxprof.tui.opened_session import ProfileReading

        live = self._app.live
        self._show_live = live.session is not None and path == live.path
        if self._show_live and live.session is not None:
            self.show(live.session, path)
            self._go(go or place_of(live.session))
        else:
            self.stop_reading()
            if kind_of(path) is Kind.PROFILE:
                self.reading = ProfileReading(path, lambda reading: self._app.post_message(ReadingChanged(reading)))
                self._app.show_state()
            work = partial(read, path, go, self._app.post_message, follow=follow, reading=self.reading)
            in_thread(self._app, work, "open")

    def stop_reading(self) -> None:
        """Stops the reading of a profile, if there is one; the session in view stays."""
        if self.reading is not None:
            self.reading.stop()
            self.reading = None
            self._app.show_state()

    def reading_changed(self, message: ReadingChanged) -> None:
        """Shows how far the reading of a profile is; ignores a reading that was stopped."""
        if message.reading is self.reading:
            if message.reading.over:
                self.reading = None
            self._app.show_state()

    def was_read(self, message: SessionOpened) -> None:
        """Shows the session that a thread has read, and notices about it."""
        session = message.follower.session
        self.show(session, message.path, message.follower if message.written else None)
        for notice in session.notices:
            self._app.notify(safe(notice), title=safe(message.path.name), severity="warning", markup=False)
        self._go(message.go or place_of(session))

    def _go(self, mode: str) -> None:
        """Goes to a mode; an opened profile starts at its overview."""
        if mode == "profile":
            self._app.view_wanted = "overview"
        self._app.switch_mode(mode)

    def follow(self) -> None:
        """Reads what another process has written since."""
        runs, changed = self.opened.poll()
        if changed:
            if self.opened.silent_since:
                self._app.notify(f"There is {self.opened.silent_since}.", severity="warning", markup=False)
            runs = frozenset(self.session.runs)
        if runs:
            self._tell(runs)

    # -- from this app ----------------------------------------------------------------------------------------

    def fold(self, message: EventsArrived) -> None:
        """Folds the events that this app has written; reports a failed run on every screen."""
        session = message.session
        if session is None:
            return
        session.extend(message.events)
        # The head of the program screen shows how a program ended.
        for error, title in alerts(message.events, programs=self._app.current_mode != "program"):
            self._app.tell(error, title)
        runs = frozenset(event.run for event in message.events if event.run)
        if self.session is session:
            self._tell(runs)
        elif self._show_live and session is self._app.live.session:
            self.show(session, self._app.live.path)

    # -- its file ---------------------------------------------------------------------------------------------

    def file_moved(self, before: Path, after: Path) -> None:
        """Takes note that the file of a session was renamed or moved."""
        if self._app.live.path == before:
            self._app.live.path = after
        opened = self.opened.path
        if opened == before:
            self.opened.path = after
        elif opened is not None and opened.parent == before:  # a process of a job
            self.opened.path = after / opened.name
        self._app.show_state()

    def ask_for_another_place(self, error: JaxprofError) -> None:
        """Reports that this app's session cannot be written, and asks for another file. The runs go on meanwhile."""
        from jaxprof.tui.kit.dialogs import SaveAs

        live = self._app.live
        name = live.path.name if live.path is not None else "session.jaxprof"

        def move(path: Path) -> None:
            place = path / name if path.is_dir() else path
            live.move_to(place, lambda: self._saved_in(place))

        dialog = SaveAs("The session is not being saved", error.what, error.hint, Path.home() / name)
        dialog.ask(self._app, move)

    def _saved_in(self, path: Path) -> None:
        if self.session is self._app.live.session:
            self.opened.path = path
        self._app.show_state()
        self._app.notify(safe(str(path)), title="Session saved to", markup=False)

    def _tell(self, runs: frozenset[str], *, replaced: bool = False) -> None:
        """Posts a change to the screens in view; the others note it for later."""
        self.session.desert(deserted=not self._app.session_grows)
        for screen in self._app.session_screens:
            if self._app.current_mode == screen.MODE:
                screen.post_message(SessionChanged(runs, replaced=replaced))
            else:
                screen.miss(runs, replaced=replaced)
        self._app.show_state()


def place_of(session: Session) -> str:
    """The mode that fits the content of a session."""
    from jaxprof.analysis.profile import IMPORTED  # and with it the reader of HLO, for which the first frame would wait

    ways = {run.plan.how for run in session.runs.values()}
    if "program" in ways:
        return "program"
    return "profile" if ways == {IMPORTED} else "results"
