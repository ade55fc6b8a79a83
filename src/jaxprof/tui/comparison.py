"""A comparison that the user starts in the app: a thread plans it, the queue measures its sides, and the result is
shown when they end, or announced if the user is looking at something else.

The inputs of the sides are made before anything is queued, so sides that do not fit are refused at once. The results of
the sides lie in a folder that is deleted with the app, however it ends.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import StorageError, UsageError, system_words
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.threads import OneThread
from jaxprof.tui.messages import EventsArrived

if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import Event

    from jaxprof.errors import JaxprofError
    from jaxprof.reaper import TemporaryFolder
    from jaxprof.runner.planning import PlannedRun
    from jaxprof.session import Run, Session
    from jaxprof.tui.profiler import PlanSides, Profiler


class LiveComparison:
    """The comparisons of one app. All methods are for the UI thread."""

    def __init__(self, app: Profiler) -> None:
        self._app = app
        self._thread = OneThread("compare")
        self._planning = False
        self._planned = 0
        """Number of comparisons so far."""
        self._folder: TemporaryFolder | None = None

    def start(self, plan: PlanSides) -> None:
        """Plan a comparison. Raises UsageError while something runs, which making the inputs would disturb, and
        StorageError without a folder for the results."""
        app = self._app
        if self._planning:
            app.say("Preparing the inputs of both sides; ctrl+c cancels.", "Comparing")
            return
        if app.live.busy:
            advice = "Preparing the inputs of both sides would disturb that run: wait until it ends, or cancel it."
            raise UsageError("another run is in progress", advice)
        folder = self._new_folder()

        def work(stop: Event) -> None:
            planned = plan(app.live.interpreter(), folder)
            app.call_later(self._queue, stop, planned)

        self._planning = True
        self._thread.begin(work, lambda error: app.call_later(self._failed, error))
        app.say("jaxprof prepares the inputs of both sides, then measures A, A' and B in turns.", "Comparing")

    def give_up(self) -> bool:
        """Drop the comparison that is being planned; return False if there is none."""
        self._thread.stop()
        was_planning, self._planning = self._planning, False
        return was_planning

    def _failed(self, error: JaxprofError) -> None:
        self._planning = False
        self._app.tell(error)

    def _queue(self, stop: Event, planned: Sequence[PlannedRun]) -> None:
        """Queue the sides, and go to the runs if the user is still on Start."""
        if stop.is_set():
            return
        self._planning = False
        app = self._app
        waits = app.current_mode == "home" and len(app.screen_stack) == 1
        app.start_runs(planned, go=waits)
        if not waits:
            app.say(f"Summary ({key_of('app.mode.summary')}) shows the progress.", "The comparison is being measured")

    def look(self, message: EventsArrived) -> None:
        """Show a comparison whose last side has just ended if the user waits for it beside the runs, otherwise announce
        it."""
        if message.session is self._app.live.session:
            for first, second in _ended(message.session, message):
                self._show(message.session, first, second)

    def _show(self, session: Session, first: Run, second: Run) -> None:
        app, key = self._app, key_of("results.compare")
        if session is not app.session:
            place = f"the session {app.live.path.name}" if app.live.path is not None else "this app's session"
            words = f"Open {place} on Start, select one of the two runs and press {key}."
        elif app.current_mode == "results" and len(app.screen_stack) == 1:
            app.show_comparison(first.id, second.id)
            return
        else:
            app.run_in_view = second.id
            words = f"To see it, select B among the runs (Summary, {key_of('app.mode.summary')}) and press {key}."
        title = f"The comparison of {first.plan.workload} and {second.plan.workload} is finished"
        app.say(words, title, timeout=12)

    def close(self) -> None:
        """Remove the results. No side may still run."""
        self._thread.stop()
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def _new_folder(self) -> Path:
        """Create a folder for the results of one comparison. Raises StorageError."""
        from jaxprof.reaper import TemporaryFolder

        self._folder = self._folder or TemporaryFolder("compare")
        self._planned += 1
        folder = self._folder.path / str(self._planned)
        try:
            folder.mkdir()
        except OSError as error:
            raise StorageError(f"cannot create {folder}: {system_words(error)}") from error
        return folder


def _ended(session: Session, message: EventsArrived) -> list[tuple[Run, Run]]:
    """Return A and B of each comparison that ended with these events and has something to compare."""
    from jaxprof.analysis.ab import sides_beside
    from jaxprof.events import RunClosed

    pairs: dict[str, tuple[Run, Run]] = {}
    for event in message.events:
        if isinstance(event, RunClosed):
            group = sides_beside(session, session.runs[event.run])
            if len(group) > 1 and all(side.over for side in group) and all(side.status == "ok" for side in group[:2]):
                pairs[group[0].id] = group[0], group[1]
    return list(pairs.values())
