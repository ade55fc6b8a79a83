"""A comparison that the user starts in the app: a thread plans it, the queue measures its sides, and at their end it is
shown, or announced where the user looks at something else.

The inputs of the sides are made before anything is queued, so sides that do not fit are refused at once. The results of
the sides lie in a folder that goes with the app, whatever ends it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import StorageError, UsageError, system_words
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.threads import in_daemon
from jaxprof.tui.messages import EventsArrived, SidesPlanned

if TYPE_CHECKING:
    from jaxprof.reaper import TemporaryFolder
    from jaxprof.session import Run, Session
    from jaxprof.tui.profiler import PlanSides, Profiler


class LiveComparison:
    """The comparisons of one app. All methods are for the UI thread."""

    def __init__(self, app: Profiler) -> None:
        self._app = app
        self._asked = 0
        self._planning = False
        self._folder: TemporaryFolder | None = None

    def start(self, plan: PlanSides) -> None:
        """Plans a comparison. Refused while something runs, which making the inputs would disturb."""
        if self._planning:
            self._app.say("The inputs of both are being made; ctrl+c cancels.", "Comparing")
            return
        if self._app.live.busy:
            self._app.tell(
                UsageError(
                    "another run is in progress",
                    "A comparison first makes the inputs of both, which would disturb it: wait until it ends, or "
                    "cancel it.",
                )
            )
            return
        try:
            folder = self._new_folder()
        except StorageError as error:
            self._app.tell(error)
            return
        self._asked += 1
        self._planning = True
        number, interpreter = self._asked, self._app.live.interpreter
        in_daemon(
            lambda: self._post(SidesPlanned(number, plan(interpreter(), folder))),
            "compare",
            lambda error: self._post(SidesPlanned(number, (), error)),
        )
        self._app.say("The inputs of both are made first, then A, A' and B are measured in turns.", "Comparing")

    def give_up(self) -> bool:
        """Drops the comparison that is being planned; False if there is none."""
        was_planning, self._planning = self._planning, False
        return was_planning

    def was_planned(self, message: SidesPlanned) -> None:
        """Queues the sides, and goes to Run if the user is still on Start."""
        if not self._planning or message.number != self._asked:
            return
        self._planning = False
        app = self._app
        if message.error is not None:
            app.tell(message.error)
        elif app.current_mode == "home" and len(app.screen_stack) == 1:
            app.start_runs(message.planned)
        else:
            app.queue_runs(message.planned)
            app.say("Run (2) shows how far it is.", "The comparison is being measured")

    def look(self, message: EventsArrived) -> None:
        """Shows a comparison whose last side has just ended, if the user waits for it on Run; else announces it."""
        session = message.session
        if session is None or session is not self._app.live.session:
            return
        for first, second in _ended(session, message):
            self._show(session, first, second)

    def _show(self, session: Session, first: Run, second: Run) -> None:
        app = self._app
        if session is not app.session:
            place = app.live.path.name if app.live.path is not None else "this app's"
            words = f"Open the session {place} on Start; c on a side in Results shows the comparison."
        elif app.current_mode == "run" and len(app.screen_stack) == 1:
            app.show_comparison(first.id, second.id)
            return
        else:
            if app.current_mode != "results":
                app.run_in_view = second.id
            words = f"{key_of('results.compare')} on B among the results ({key_of('app.mode.summary')}) shows it."
        title = f"{first.plan.workload} and {second.plan.workload} are compared"
        app.say(words, title, timeout=12)

    def close(self) -> None:
        """Removes the results. No side may still run."""
        self._planning = False
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def _new_folder(self) -> Path:
        """A folder for the results of one comparison. Raises StorageError."""
        from jaxprof.reaper import TemporaryFolder

        self._folder = self._folder or TemporaryFolder("compare")
        folder = self._folder.path / str(self._asked + 1)
        try:
            folder.mkdir()
        except OSError as error:
            raise StorageError(f"{folder} cannot be made: {system_words(error)}") from error
        return folder

    def _post(self, message: SidesPlanned) -> None:
        if self._app.is_running:
            self._app.post_message(message)


def _ended(session: Session, message: EventsArrived) -> list[tuple[Run, Run]]:
    """A and B of each comparison that has ended with these events, and that gave something to compare."""
    from jaxprof.analysis.ab import sides_beside
    from jaxprof.events import RunClosed

    closed = [session.runs[event.run] for event in message.events if isinstance(event, RunClosed)]
    found: list[tuple[Run, Run]] = []
    for run in closed:
        group = sides_beside(session, run)
        pair = group[:2]
        if len(pair) == 2 and all(side.over for side in group) and all(side.status == "ok" for side in pair):
            found.append((pair[0], pair[1]))
    return list({first.id: (first, second) for first, second in found}.values())
