"""Leaving the app: asked first when a run goes on, with ctrl+c twice, and never without the end of every child."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxprof.tui.app import JaxprofApp

TWICE_SECONDS = 2.0
"""Within this time a second ctrl+c quits."""


class Leaving:
    """Remembers when ctrl+c was pressed last."""

    def __init__(self, app: JaxprofApp) -> None:
        self._app = app
        self._interrupted_seconds = float("-inf")

    def interrupt(self) -> None:
        """Cancels the run that goes on; a second time within two seconds, leaves."""
        app, now = self._app, monotonic()
        if now - self._interrupted_seconds < TWICE_SECONDS:
            self.leave()
            return
        self._interrupted_seconds = now
        if app.live.busy:
            app.live.cancel_current()
            app.notify("ctrl+c again quits.", title="Cancelling the run", severity="warning", markup=False)
        else:
            app.notify("ctrl+c again quits.", title="Nothing is running", markup=False)

    def ask(self) -> None:
        """Leaves; asks first when a run is going on."""
        if not self._app.live.busy:
            self.leave()
            return
        from jaxprof.tui.dialogs.confirm import Confirm

        def answered(yes: bool | None) -> None:
            if yes:
                self.leave()

        question = "A run is going on. What it has measured so far is kept in the session."
        self._app.push_screen(Confirm("Quit jaxprof?", question, "Cancel it and quit"), answered)

    def leave(self) -> None:
        """Ends the children and the log in a thread, then the app."""
        app = self._app
        app.monitor.stop()

        def close() -> None:
            app.live.close()
            app.call_from_thread(app.exit)

        app.run_worker(close, name="leave", group="leave", exclusive=True, thread=True)
