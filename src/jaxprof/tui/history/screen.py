"""History: how each measurement went over the kept sessions, and where it changed for good.

The app pushes it over Home, Results or Sessions; Esc goes back there. A thread reads the sessions; nothing is computed
here.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message

from jaxprof.errors import JaxprofError, UsageError
from jaxprof.text import safe, safe_text
from jaxprof.tui.history.lists import Measurements, Points
from jaxprof.tui.history.plot import change_style, history_plot
from jaxprof.tui.keys import bindings, key_of
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.format import moment
from jaxprof.tui.kit.guard import on
from jaxprof.tui.kit.picture import Lines, Picture
from jaxprof.tui.kit.screen import SessionScreen, set_size_classes
from jaxprof.tui.kit.threads import in_thread
from jaxprof.units import counted

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.history import LibraryHistory, MeasurementHistory

_CHANGES_SHOWN = 2
"""The newest changes that stand below the list; all of them stand between the points."""


class HistoryScreen(SessionScreen):
    """Measurements on the left, with what was found in the one under the cursor; on the right its chart and points."""

    AUTO_FOCUS = "#measurements"
    BINDINGS: ClassVar[list[BindingType]] = bindings("history")

    class Read(Message):
        """The thread has read the histories, or could not."""

        def __init__(self, wanted: tuple[str, str], found: LibraryHistory | None, error: JaxprofError | None) -> None:
            super().__init__()
            self.wanted = wanted
            self.found = found
            self.error = error

    def __init__(self, workload: str = "") -> None:
        super().__init__()
        self._workload = self._chosen = workload
        self._measure = "run"
        self._found: LibraryHistory | None = None

    def on_unmount(self) -> None:
        """Stops hearing of changes."""
        if self in self.profiler.session_screens:
            self.profiler.session_screens.remove(self)

    def compose_body(self) -> ComposeResult:
        set_size_classes(self)
        with Horizontal(id="history-body"):
            with Vertical(id="history-left"):
                with Vertical(id="measurements-box", classes="box"):
                    yield Measurements(id="measurements")
                yield Lines(id="history-found")
                yield Lines(id="history-notes")
            with Vertical(id="history-side"):
                yield Picture(id="history-plot", classes="box")
                with Vertical(id="points-box", classes="box") as box:
                    box.border_title = "Points"
                    yield Points(id="points")

    def on_mount(self) -> None:
        self.action_read()

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Reads again when a run has ended."""
        session_runs = self.profiler.session.runs
        if self._found is not None and any(run in session_runs and session_runs[run].over for run in runs):
            self.action_read()

    # -- reading ----------------------------------------------------------------------------------------------

    def action_read(self) -> None:
        """Reads the sessions again, in a thread."""
        self.query_one("#measurements-box").border_subtitle = "reading…"
        wanted = self._workload, self._measure
        in_thread(
            self,
            lambda: self.post_message(self.Read(wanted, self._histories(*wanted), None)),
            "history",
            failed=lambda error: self.post_message(self.Read(wanted, None, error)),
        )

    def _histories(self, workload: str, measure: str) -> LibraryHistory:
        """Reads the folder: for threads only. Raises UsageError for a workload that no session measured."""
        from jaxprof.analysis.history import read_history

        return read_history(self.profiler.library().paths(), measure, workload)

    def on_history_screen_read(self, message: Read) -> None:
        """Shows what the thread has read, unless something else is wanted since."""
        if message.wanted != (self._workload, self._measure) or not self.whole:
            return
        self._found = message.found
        sessions = message.found.sessions if message.found is not None else 0
        box = self.query_one("#measurements-box")
        box.border_title = Content(safe(self._workload) if self._workload else "All workloads")
        box.border_subtitle = counted(sessions, "session") if sessions else ""
        self.query_one(Measurements).show(message.found, of_all=not self._workload)
        self._show_notes()
        if message.error is not None:
            key = key_of("history.all")
            unknown = f"No kept session measured {safe(self._workload)}. Run it, or press {key} for all workloads."
            self._say(unknown if isinstance(message.error, UsageError) else safe_text(str(message.error)))
        elif message.found is None or not message.found.series:
            self._say("No session holds a point of this.")
        else:
            self._show_one()
        self.refresh_bindings()

    # -- showing ----------------------------------------------------------------------------------------------

    @property
    def histories_of(self) -> str:
        """The phase or fact in view; empty before the first reading."""
        return self._found.measure if self._found is not None else ""

    @property
    def _one(self) -> MeasurementHistory | None:
        return self.query_one(Measurements).current_row

    @on(Measurements.Highlighted, "#measurements")
    def _another(self) -> None:
        self.once_settled(self._show_one)

    def _show_notes(self) -> None:
        """Shows what was left out."""
        from jaxprof.report.history import APART, notes

        left_out = [note for note in notes(self._found) if note != APART] if self._found is not None else []
        self.query_one("#history-notes", Lines).show(
            tuple(left_out),
            lambda width: [line for note in left_out for line in hang(Content(" "), note, width, "$text-muted")],
        )

    def _show_one(self) -> None:
        found, one = self._found, self._one
        if found is None or one is None:
            return
        from jaxprof.report.history import APART, change_text, outcome

        key: Hashable = (id(found), id(one))
        plot = self.query_one("#history-plot", Picture)
        plot.border_title = Content(f"{found.title} · {safe(one.workload)} {safe(one.variant)}")
        plot.show(key, lambda width, height: history_plot(found, one, width, height))
        said = [
            (f"{moment(change.first.wall_seconds)} {change_text(found, change)}", change_style(change))
            for change in one.changes[-_CHANGES_SHOWN:]
        ]
        said.append((f"{outcome(found, one)}.", ""))
        said += [(APART, "$text-muted")] if one.changes and found.unit == "second" else []
        self.query_one("#history-found", Lines).show(
            key, lambda width: [line for text, style in said for line in hang(Content(" "), text, width, style)]
        )
        self.query_one(Points).show(found, one)

    def _say(self, words: str) -> None:
        plot = self.query_one("#history-plot", Picture)
        plot.border_title = ""
        plot.show(words, lambda width, height: Content(""))
        self.query_one("#history-found", Lines).show(
            words, lambda width: [line for text in words.splitlines() for line in hang(Content(" "), text, width)]
        )
        self.query_one(Points).show(None, None)

    # -- keys -------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dims what has nothing to act on."""
        if action == "copy":
            return True if self._found is not None and self._found.series else None
        if action == "all":
            return True if self._chosen else None
        return super().check_action(action, parameters)

    def action_measure(self, step: int) -> None:
        """Goes to the next phase or exact fact."""
        from jaxprof.analysis.history import FACTS_KEPT, PHASES_KEPT

        every = (*PHASES_KEPT, *FACTS_KEPT)
        self._measure = every[(every.index(self._measure) + step) % len(every)]
        self.action_read()

    def action_all(self) -> None:
        """All workloads, or only the chosen one."""
        self._workload = "" if self._workload else self._chosen
        self.action_read()

    def action_copy(self) -> None:
        """Copies the history under the cursor as `jaxprof history` prints it."""
        found, one = self._found, self._one
        if found is None or one is None:
            return
        from dataclasses import replace

        from jaxprof.report.history import history_text, series_name

        self.app.copy_to_clipboard(history_text(replace(found, series=(one,)), None))
        self.notify(safe(series_name(one)), title="Copied", markup=False)

    def action_close(self) -> None:
        """Goes back to the screen below."""
        if self in self.app.screen_stack:
            self.dismiss()

    @on(Measurements.Entered)
    def _to_points(self) -> None:
        self.settle()
        self.query_one(Points).focus()

    @on(Points.Opened)
    def _open(self) -> None:
        point = self.query_one(Points).point
        if point is not None:
            self.action_close()
            self.profiler.open_session(point.path)


class HistoryOverHome(HistoryScreen):
    """Above Home."""

    MODE: ClassVar[str] = "home"


class HistoryOverResults(HistoryScreen):
    """Above Results."""

    MODE: ClassVar[str] = "results"


class HistoryOverSessions(HistoryScreen):
    """Above Sessions."""

    MODE: ClassVar[str] = "sessions"


OVER = {screen.MODE: screen for screen in (HistoryOverHome, HistoryOverResults, HistoryOverSessions)}
"""The screen by the mode from which it is opened."""
