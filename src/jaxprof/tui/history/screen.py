"""The History screen: how each measurement developed over the kept sessions.

The app pushes it over Start or the runs; Esc goes back there. A thread reads the sessions; the screen computes
nothing.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical
from textual.content import Content

from jaxprof.analysis.history import (
    FACTS_KEPT,
    PHASES_KEPT,
    HistoryPoint,
    LibraryHistory,
    MeasurementHistory,
    read_history,
)
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.report.history import (
    APART,
    history_text,
    notes,
    outcome,
    overview_table,
    points_table,
    series_name,
)
from jaxprof.text import safe
from jaxprof.tui.keys import in_words
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.guard import on
from jaxprof.tui.kit.picture import Lines, Picture
from jaxprof.tui.kit.plots import Axis, Mark, PlotLine, count_tick, line_plot, seconds_tick, whole_tick
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.screen import SessionScreen
from jaxprof.tui.kit.table_view import Heading, ReportList, TextRow
from jaxprof.tui.kit.threads import in_thread
from jaxprof.units import bytes_, counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textual.app import ComposeResult

    from jaxprof.report.history import PointRow


_MARKED_MOST = 2
"""Columns of the chart per point from which every point has a marker."""


def history_plot(history: LibraryHistory, measurement: MeasurementHistory, width: int, height: int) -> Content:
    """Return the chart in exactly `width` by `height` columns; the points are numbered from the oldest."""
    if len(measurement.points) < 2:
        return Content("\n" * ((height - 1) // 2)) + Content.styled("one point so far".center(width), "$quiet")
    numbered = list(enumerate(measurement.points, start=1))
    used = [(number, point) for number, point in numbered if not point.wrong]
    roomy = len(numbered) * _MARKED_MOST <= width
    median = tuple((float(number), point.value) for number, point in used)
    lines = [
        *_bounds(used),
        PlotLine("median" if history.unit == "second" else "", median, "$primary", "●" if roomy else ""),
    ]
    marks = [Mark(float(number), point.value, "wrong", "$error", "✗") for number, point in numbered if point.wrong]
    text = {"second": seconds_tick, "byte": bytes_}.get(history.unit, count_tick)
    return line_plot(lines, Axis("point", whole_tick), Axis(history.title, text), width, height, marks)


def _bounds(used: list[tuple[int, HistoryPoint]]) -> Iterator[PlotLine]:
    """Yield dotted lines through the interval ends, one pair for each series of neighbouring points with an
    interval."""
    first = True
    for known, group in groupby(used, key=lambda pair: pair[1].low is not None and pair[1].high is not None):
        members = list(group)
        if not known:
            continue
        for end in ("low", "high"):
            points = tuple((float(number), getattr(point, end)) for number, point in members)
            yield PlotLine("95 % interval" if first else "", points, "$quiet", dotted=True)
            first = False


def point_rows(history: LibraryHistory, measurement: MeasurementHistory) -> dict[Hashable, PointRow | Heading]:
    """Return the points of a measurement, the newest last, each below what changed before it."""
    rows: dict[Hashable, PointRow | Heading] = {}
    for number, row in enumerate(points_table(history, measurement).rows):
        if number and row.what_changed:
            rows[number, "changed"] = TextRow(f"  · {row.what_changed}", "$text-muted")
        rows[number] = row
    return rows


class HistoryScreen(SessionScreen, keys="history"):
    """The measurements on the left; the chart and the points of the one under the cursor on the right."""

    AUTO_FOCUS = "#measurements"

    def __init__(self, mode: str, workload: str = "") -> None:
        """`mode` is the mode of the screen below."""
        super().__init__()
        self.MODE = mode
        self._workload = self._chosen = workload
        self._measure = "run"
        self._history: LibraryHistory | None = None

    def compose_body(self) -> ComposeResult:
        with Horizontal(id="history-body"):
            with Vertical(id="history-left"):
                with Vertical(id="measurements-box", classes="box"):
                    yield ReportList("trend", "points", id="measurements")
                yield Lines(id="history-found")
                yield Lines(id="history-notes")
            with Vertical(id="history-side"):
                yield Picture(id="history-plot", classes="box")
                with Vertical(id="points-box", classes="box") as box:
                    box.border_title = "Points"
                    yield ReportList("jax", "check", "launches", id="points")

    def on_mount(self) -> None:
        self.action_read()

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Read again when a run has ended."""
        session_runs = self.profiler.session.runs
        if self._history is not None and any(run in session_runs and session_runs[run].over for run in runs):
            self.action_read()

    # -- reading ----------------------------------------------------------------------------------------------

    def action_read(self) -> None:
        self.query_one("#measurements-box").border_subtitle = "reading…"
        wanted = self._workload, self._measure
        workload, measure = wanted
        in_thread(
            self,
            lambda: read_history(self.profiler.library().paths(), measure, workload),
            "history",
            then=lambda history: self._show(wanted, history),
            failed=lambda error: self._show(wanted, None, error),
        )

    def _show(self, wanted: tuple[str, str], history: LibraryHistory | None, error: JaxprofError | None = None) -> None:
        """Show what the thread has read, unless the user has chosen something else since."""
        if wanted != (self._workload, self._measure) or not self.whole:
            return
        self._history = history
        sessions = history.sessions if history is not None else 0
        box = self.query_one("#measurements-box")
        box.border_title = Content(safe(self._workload) if self._workload else "All workloads")
        box.border_subtitle = counted(sessions, "session") if sessions else ""
        series = dict(enumerate(history.series)) if history is not None else {}
        self._list("measurements").show_table(overview_table(history) if history is not None else None, series)
        self._show_lines(
            "notes", [(note, "$text-muted") for note in notes(history) if note != APART] if history else []
        )
        if series:
            self._show_measurement()
        else:
            self._show_message(error)
        self.refresh_bindings()

    # -- showing ----------------------------------------------------------------------------------------------

    @property
    def _measurement(self) -> MeasurementHistory | None:
        return self._list("measurements").current_row

    def _list(self, name: str) -> ReportList:
        return self.query_one(f"#{name}", ReportList)

    @on(RowList.Highlighted, "#measurements")
    def _measurement_highlighted(self) -> None:
        self.once_settled(self._show_measurement)

    def _show_lines(self, name: str, paragraphs: Sequence[tuple[str, str]]) -> None:
        """Show texts, each with its style, below the list."""
        self.query_one(f"#history-{name}", Lines).show(
            tuple(paragraphs),
            lambda width: [line for text, style in paragraphs for line in hang(Content(" "), text, width, style)],
        )

    def _show_measurement(self) -> None:
        history, measurement = self._history, self._measurement
        if history is None or measurement is None:
            return
        plot = self.query_one("#history-plot", Picture)
        plan = measurement.plan
        plot.border_title = Content(f"{history.title} · {safe(plan.workload)} {safe(plan.variant)}")
        key: Hashable = (id(history), id(measurement))
        plot.show(key, lambda width, height: history_plot(history, measurement, width, height))
        paragraphs = [(f"{outcome(history, measurement)}.", "")]
        paragraphs += [(APART, "$text-muted")] if history.unit == "second" else []
        self._show_lines("found", paragraphs)
        points = self._list("points")
        points.show_table(points_table(history, measurement), point_rows(history, measurement))
        points.action_edge(1)

    def _show_message(self, error: JaxprofError | None) -> None:
        """Show why there is no measurement."""
        words = "No kept session has this measure." if error is None else str(error)
        if isinstance(error, UsageError):
            all_workloads = f"press {in_words('history.all')} for all workloads"
            words = f"No kept session measured {self._workload}. Run it, or {all_workloads}."
        plot = self.query_one("#history-plot", Picture)
        plot.border_title = ""
        plot.show(words, lambda width, height: Content(""))
        self._show_lines("found", [(line, "") for line in words.splitlines()])
        self._list("points").show_table(None, {})

    # -- keys -------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim the keys that have nothing to act on."""
        if action == "copy":
            return True if self._history is not None and self._history.series else None
        if action == "all":
            return True if self._chosen else None
        return super().check_action(action, parameters)

    def action_measure(self, step: int) -> None:
        every = (*PHASES_KEPT, *FACTS_KEPT)
        self._measure = every[(every.index(self._measure) + step) % len(every)]
        self.action_read()

    def action_all(self) -> None:
        self._workload = "" if self._workload else self._chosen
        self.action_read()

    def action_copy(self) -> None:
        history, measurement = self._history, self._measurement
        if history is None or measurement is None:
            return
        self.copy(history_text(replace(history, series=(measurement,)), None), series_name(measurement))

    @on(RowList.Chosen, "#measurements")
    def _to_points(self) -> None:
        self.settle()
        self._list("points").focus()

    @on(RowList.Chosen, "#points")
    def _open(self) -> None:
        row = self._list("points").current_row
        if row is not None:
            self.action_close()
            self.profiler.open_session(row.point.path)
