"""The session that the screens show: a file that is followed while it grows, or what this app writes, folded here.

The screens are told of every change. Those that are not in view note it for later, so that nothing is drawn in vain.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.safe_text import safe
from jaxprof.tui.messages import EventsArrived, SessionChanged, SessionOpened
from jaxprof.tui.opened import Opened, read
from jaxprof.tui.troubles import troubles

if TYPE_CHECKING:
    from jaxprof.errors import JaxprofError
    from jaxprof.session import Session
    from jaxprof.store import Follower
    from jaxprof.tui.app import JaxprofApp


class SessionInView:
    """One session at a time. Called on the thread that draws; files are read in threads."""

    def __init__(self, app: JaxprofApp) -> None:
        self._app = app
        self._show_live = True
        """Whether what this app writes next is shown as it comes: not once another session was opened."""
        self.opened = Opened()

    @property
    def session(self) -> Session:
        """An empty one before anything was run or opened."""
        return self.opened.session

    @property
    def grows(self) -> bool:
        """Whether it is still being written: by this app, or by another process that is followed."""
        live = self._app.live
        return self.opened.followed or (live.busy and self.session is live.session)

    def show(self, session: Session, path: Path | None, follower: Follower[Session] | None = None) -> None:
        """Shows another session in every screen."""
        self.opened.show(session, path, follower)
        self._app.run_in_view = ""
        self._tell(frozenset(session.runs), replaced=True)

    def show_live(self) -> None:
        """What this app writes is shown as soon as there is something of it."""
        self._show_live = True

    # -- from a file ------------------------------------------------------------------------------------------

    def open(self, path: Path, go: str = "", *, follow: bool = False) -> None:
        """Opens a session file: read in a thread, then followed if somebody still writes it, or `follow` says so.
        Without a mode to `go` to, that which shows what is in the session."""
        live = self._app.live
        self._show_live = live.session is not None and path == live.path
        if self._show_live and live.session is not None:
            self.show(live.session, path)
            self._app.switch_mode(go or place_of(live.session))
        else:
            work = partial(read, path, go, self._app.post_message, follow=follow)
            self._app.run_worker(work, name="open", group="open", exclusive=True, thread=True)

    def was_read(self, message: SessionOpened) -> None:
        """Shows what a thread has read, and what is wrong with it."""
        session = message.follower.session
        self.show(session, message.path, message.follower if message.written else None)
        for notice in session.notices:
            self._app.notify(safe(notice), title=safe(message.path.name), severity="warning", markup=False)
        self._app.switch_mode(message.go or place_of(session))

    def follow(self) -> None:
        """Takes in what another process has written meanwhile."""
        runs, changed = self.opened.poll()
        if changed:
            if self.opened.silent_since:
                self._app.notify(f"There is {self.opened.silent_since}.", severity="warning", markup=False)
            runs = frozenset(self.session.runs)
        if runs:
            self._tell(runs)

    # -- from this app ----------------------------------------------------------------------------------------

    def fold(self, message: EventsArrived) -> None:
        """Takes in what this app has written; a run that failed is told wherever one is, and the queue goes on."""
        session = message.session
        if session is None:
            return
        session.extend(message.events)
        # The end of a program stands in the head of its screen.
        for error, title in troubles(message.events, programs=self._app.current_mode != "program"):
            self._app.tell(error, title)
        runs = frozenset(event.run for event in message.events if event.run)
        if self.session is session:
            self._tell(runs)
        elif self._show_live and session is self._app.live.session:
            self.show(session, self._app.live.path)

    # -- its file ---------------------------------------------------------------------------------------------

    def file_moved(self, before: Path, after: Path) -> None:
        """The file of a session has another name or place now."""
        if self._app.live.path == before:
            self._app.live.path = after
        if self.opened.path == before:
            self.opened.path = after
        self._app.show_state()

    def ask_for_another_place(self, error: JaxprofError) -> None:
        """This app's session cannot be written: says so, and goes on in another file. The runs go on meanwhile."""
        from jaxprof.tui.dialogs.save_as import SaveAs

        live = self._app.live
        name = live.path.name if live.path is not None else "session.jaxprof"

        def chosen(path: Path | None) -> None:
            if path is not None:
                place = path / name if path.is_dir() else path
                live.move_to(place, lambda: self._saved_in(place))

        dialog = SaveAs("The session is not being saved", error.what, error.mend, Path.home() / name)
        self._app.push_screen(dialog, chosen)

    def _saved_in(self, path: Path) -> None:
        if self.session is self._app.live.session:
            self.opened.path = path
        self._app.show_state()
        self._app.notify(safe(str(path)), title="The session is saved in", markup=False)

    def _tell(self, runs: frozenset[str], *, replaced: bool = False) -> None:
        """Tells the screens in view of a change; the others note it for later."""
        for screen in self._app.session_screens:
            if self._app.current_mode == screen.MODE:
                screen.post_message(SessionChanged(runs, replaced=replaced))
            else:
                screen.miss(runs, replaced=replaced)
        self._app.show_state()


def place_of(session: Session) -> str:
    """The mode that shows what is in a session."""
    return "program" if any(run.plan.how == "program" for run in session.runs.values()) else "results"
