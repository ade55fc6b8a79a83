"""Results: the variants side by side, and below (or beside) them what is known of the one under the cursor.

Nothing is computed here: `results` derives, the widgets draw. A row is a run, or a sweep over a parameter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from jaxprof.results.programs.derive import is_program
from jaxprof.safe_text import safe
from jaxprof.tui.screens.base import SessionScreen
from jaxprof.tui.screens.view_keys import view_keys
from jaxprof.tui.size_class import wear_size
from jaxprof.tui.views import views_of
from jaxprof.tui.widgets.result_list import ORDERS, ResultList
from jaxprof.tui.widgets.result_panel import ResultPanel
from jaxprof.tui.widgets.sweep_plot import crossover_lines, sweep_table
from jaxprof.tui.widgets.wording import half_width, interval, parameters_text, pays_off, speedup_text
from jaxprof.units import seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.results import RunResult, SweepGroup


class ResultsScreen(SessionScreen):
    """What was measured."""

    MODE: ClassVar[str] = "results"
    AUTO_FOCUS = "#results"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "enter", "open", "Details", tooltip="All phases, samples, break-even and environment", id="results.open"
        ),
        *view_keys("results"),
        Binding("s", "sort", "Sort", tooltip="Sort by the next column", id="results.sort"),
        Binding("S", "reverse", "Reverse", show=False, tooltip="Sort the other way round", id="results.reverse"),
        Binding("y", "copy", "Copy", tooltip="Copy this row as text", id="results.copy"),
        Binding("z", "zoom", "Zoom", tooltip="Give the lower part the whole screen, and back", id="results.zoom"),
        Binding("escape", "unzoom", "Back", show=False, tooltip="Back to the list", id="results.unzoom"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._summary = ""

    def compose_body(self) -> ComposeResult:
        wear_size(self)
        with Vertical(id="results-body"):
            with Vertical(id="results-box", classes="box") as box:
                box.border_title = "Results"
                yield ResultList(id="results")
            yield ResultPanel(id="panel", classes="box")

    # -- showing ----------------------------------------------------------------------------------------------

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Shows the figures as they are now."""
        rows = self.query_one(ResultList)
        rows.show(self.profiler.session, runs)
        if self.profiler.run_in_view:
            rows.move_to_key(self.profiler.run_in_view)
        self._show_summary()
        self._show_panel()

    def _show_summary(self) -> None:
        """How many runs there are and how they are sorted, on the frame of the list."""
        count, order = len(self.profiler.session.runs), self.query_one(ResultList).order_in_words
        said = f"{count} run{'s' if count != 1 else ''}" if count else ""
        said = f"{said} · {order}" if said and order else said
        if said != self._summary:
            self._summary = said
            self.query_one("#results-box").border_subtitle = Content(said)

    def come_into_view(self) -> None:
        """The run that another screen had in view is in view here too."""
        super().come_into_view()
        if self.profiler.run_in_view and self.whole:
            self.query_one(ResultList).move_to_key(self.profiler.run_in_view)

    def on_row_list_highlighted(self, message: ResultList.Highlighted) -> None:
        """Shows another row's figures."""
        if not self.whole:
            return
        one = self._result()
        if one is not None:
            self.profiler.run_in_view = one.run.id
        self._show_panel()
        self.query_one(ResultPanel).scroll_home(animate=False)

    def on_row_list_chosen(self, message: ResultList.Chosen) -> None:
        """Opens a row that was clicked twice."""
        self.action_open()

    def _result(self) -> RunResult | None:
        rows = self.query_one(ResultList)
        return rows.result_of(rows.current) if isinstance(rows.current, str) else None

    def _sweep(self) -> SweepGroup | None:
        rows = self.query_one(ResultList)
        return rows.sweeps.get(str(rows.current[1])) if isinstance(rows.current, tuple) else None

    def _show_panel(self) -> None:
        rows, one, sweep = self.query_one(ResultList), self._result(), self._sweep()
        group = rows.group_of(one.run.id) if one is not None else None
        self.set_class(sweep is not None, "-sweep")
        self.query_one(ResultPanel).show(self.profiler.session, one, group, sweep)
        self.refresh_bindings()

    # -- keys -------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that can do nothing here and now are dimmed; Esc is the app's unless there is a zoom to leave."""
        if not self.whole:
            return super().check_action(action, parameters)
        one = self._result()
        if action == "hlo":
            return True if one is not None and "hlo" in one.run.texts else None
        if action == "profile":
            return True if one is not None and parameters[0] in views_of(self.profiler.session, one.run) else None
        if action in ("open", "copy", "zoom"):
            return True if one is not None or self._sweep() is not None else None
        if action == "unzoom":
            return self.has_class("-zoom")
        return super().check_action(action, parameters)

    def action_open(self) -> None:
        """Everything of this run on a screen of its own; a sweep gets the whole of this one."""
        from jaxprof.tui.screens.run_detail import RunDetailInResults

        one = self._result()
        if one is not None and is_program(one.run):
            self.profiler.show_program(one.run.id)
        elif one is not None:
            self.app.push_screen(RunDetailInResults(one.run.id))
        elif self._sweep() is not None:
            self.action_zoom()

    def action_hlo(self) -> None:
        """What XLA made of this run."""
        one = self._result()
        if one is not None:
            self.profiler.show_hlo(one.run.id)

    def action_profile(self, view: str) -> None:
        """What was recorded of this run: its timeline, its compile, or its memory."""
        one = self._result()
        if one is not None:
            self.profiler.show_profile(one.run.id, view)

    def action_sort(self) -> None:
        """By the next column."""
        rows = self.query_one(ResultList)
        rows.sort(ORDERS[(ORDERS.index(rows.order) + 1) % len(ORDERS)], backwards=rows.backwards)
        self._show_summary()

    def action_reverse(self) -> None:
        """The other way round."""
        rows = self.query_one(ResultList)
        rows.sort(rows.order, backwards=not rows.backwards)
        self._show_summary()

    def action_zoom(self) -> None:
        """The panel alone, or both."""
        self.toggle_class("-zoom")
        self.query_one("#panel" if self.has_class("-zoom") else "#results").focus()
        self.refresh_bindings()

    def action_unzoom(self) -> None:
        """Both again."""
        if self.has_class("-zoom"):
            self.action_zoom()

    def action_copy(self) -> None:
        """The row as text, through the terminal's clipboard."""
        one, sweep = self._result(), self._sweep()
        if one is not None:
            text = row_text(one, self._baseline_name(one))
        elif sweep is not None:
            text = "\n".join(line.plain.rstrip() for line in (*crossover_lines(sweep), *sweep_table(sweep, 120)))
        else:
            return
        self.app.copy_to_clipboard(text)
        self.notify(text.splitlines()[0], title="Copied", markup=False)

    def _baseline_name(self, one: RunResult) -> str:
        baseline = self.profiler.session.runs.get(one.run.plan.baseline)
        return baseline.plan.variant if baseline is not None else ""


def row_text(one: RunResult, baseline: str) -> str:
    """A run in one line, for a message or a commit: names, median with interval, speed-up, break-even."""
    run = one.run
    head = f"{safe(run.label)} {parameters_text(run.plan.parameters)}".rstrip()
    if one.summary is None:
        return f"{head}: {run.status}" + (f" ({safe(run.error)})" if run.error else "")
    text = f"{head}: median {seconds(one.summary.median)} {half_width(one.summary)} ({interval(one.summary)})"
    if one.versus is not None:
        text += f", {speedup_text(one.versus.speedup)} over {safe(baseline)}"
        if one.versus.break_even_calls is not None:
            text += f", pays off after {pays_off(one)}"
    return text.replace("\u202f", " ")
