"""Results: the variants side by side, and below (or beside) them the details of the row under the cursor.

Nothing is computed here: `jaxprof.analysis` derives, the widgets draw. A row is a run, or a sweep over a parameter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from jaxprof.errors import UsageError
from jaxprof.report.runs import break_even_text
from jaxprof.text import safe
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.explanation import ExplanationHead
from jaxprof.tui.kit.format import half_width, interval, parameters_text, speedup_text
from jaxprof.tui.kit.guard import on
from jaxprof.tui.kit.screen import SessionScreen, set_size_classes
from jaxprof.tui.kit.views import views_of
from jaxprof.tui.results.result_list import ResultList
from jaxprof.tui.results.result_panel import ResultPanel, crossover_lines, sweep_table
from jaxprof.units import counted, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis import RunResult, SweepGroup


class ResultsScreen(SessionScreen):
    """The results of the open session."""

    MODE: ClassVar[str] = "results"
    AUTO_FOCUS = "#results"
    BINDINGS: ClassVar[list[BindingType]] = bindings("results")

    def __init__(self) -> None:
        super().__init__()
        self._summary = ""

    def compose_body(self) -> ComposeResult:
        set_size_classes(self)
        with Vertical(id="results-body"):
            yield ExplanationHead()
            with Vertical(id="results-box", classes="box") as box:
                box.border_title = "Results"
                yield ResultList(id="results")
            yield ResultPanel(id="panel", classes="box")

    # -- showing ----------------------------------------------------------------------------------------------

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Shows the current figures."""
        rows = self.query_one(ResultList)
        rows.show(self.profiler.session, runs)
        if self.profiler.run_in_view:
            rows.move_to_key(self.profiler.run_in_view)
        self._show_summary()
        self._show_panel()

    @on(ResultList.Sorted)
    def _show_summary(self) -> None:
        """Shows on the frame of the list how many runs there are and how they are sorted."""
        count, order = len(self.profiler.session.runs), self.query_one(ResultList).order_in_words
        words = counted(count, "run") if count else ""
        marked = len(self.query_one(ResultList).marked)
        words = " · ".join(
            part for part in (words, f"{marked} marked" if marked else "", order if words else "") if part
        )
        if words != self._summary:
            self._summary = words
            self.query_one("#results-box").border_subtitle = Content(words)

    def come_into_view(self) -> None:
        """Puts the cursor on the run that another screen had in view."""
        super().come_into_view()
        if self.profiler.run_in_view and self.whole:
            self.query_one(ResultList).move_to_key(self.profiler.run_in_view)

    def on_row_list_highlighted(self, message: ResultList.Highlighted) -> None:
        """Shows the details of another row."""
        if not self.whole:
            return
        result = self._result()
        if result is not None:
            self.profiler.run_in_view = result.run.id
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
        rows, result, sweep = self.query_one(ResultList), self._result(), self._sweep()
        group = rows.group_of(result.run.id) if result is not None else None
        self.set_class(sweep is not None, "-sweep")
        self.query_one(ResultPanel).show(self.profiler.session, result, group, sweep)
        self.refresh_bindings()

    # -- keys -------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dims the keys that can do nothing now; Esc is the app's unless the panel is zoomed."""
        if not self.whole:
            return super().check_action(action, parameters)
        result = self._result()
        if action == "hlo":
            return True if result is not None and "hlo" in result.run.texts else None
        if action == "profile":
            return True if result is not None and parameters[0] in views_of(self.profiler.session, result.run) else None
        if action in ("mark", "scale"):
            return True if result is not None else None
        if action == "compare":
            return True if self.profiler.session.runs else None
        if action in ("open", "copy", "zoom"):
            return True if result is not None or self._sweep() is not None else None
        if action == "unzoom":
            return self.has_class("-zoom")
        return super().check_action(action, parameters)

    def action_open(self) -> None:
        """Shows all details of this run on a screen of its own; a sweep takes this whole screen."""
        result = self._result()
        if result is not None and result.run.is_program:
            self.profiler.show_program(result.run.id)
        elif result is not None:
            self.profiler.show_run_detail(result.run.id)
        elif self._sweep() is not None:
            self.action_zoom()

    def action_mark(self) -> None:
        """Marks or unmarks this run, and goes down a row."""
        rows, result = self.query_one(ResultList), self._result()
        if result is None:
            return
        from jaxprof.tui.results.compare_screen import unfit

        run = result.run
        refused = unfit(run) if run.id not in rows.marked else None
        if refused is None and run.id not in rows.marked and len(rows.marked) == 2:
            refused = UsageError("two runs are marked already", "Space on one of them unmarks it; c compares them.")
        if refused is not None:
            self.profiler.tell(refused)
            return
        rows.toggle(run.id)
        rows.action_move(1)
        self._show_summary()

    def action_compare(self) -> None:
        """Compares the two marked runs, or the sides of the comparison under the cursor, on a screen of its own."""
        from jaxprof.tui.results.compare_screen import CompareScreen, in_comparison, in_order

        session, marked, result = self.profiler.session, self.query_one(ResultList).marked, self._result()
        try:
            sides = in_comparison(session, result.run) if result is not None and not marked else None
            first, second = sides or in_order(session, marked)
        except UsageError as error:
            self.profiler.tell(error)
            return
        self.app.push_screen(CompareScreen(first, second))

    def action_history(self) -> None:
        """Shows how the workload of the row under the cursor went over the kept sessions."""
        result = self._result()
        plan = result.run.plan if result is not None else None
        self.profiler.show_history((plan.target or plan.workload) if plan is not None else "")

    def action_hlo(self) -> None:
        """Goes to the HLO of this run."""
        result = self._result()
        if result is not None:
            self.profiler.show_hlo(result.run.id)

    def action_profile(self, view: str) -> None:
        """Goes to a view of this run's profile: timeline, compile or memory."""
        result = self._result()
        if result is not None:
            self.profiler.show_profile(result.run.id, view)

    def action_sort(self) -> None:
        """Sorts by the next column."""
        self.query_one(ResultList).action_sort_by_next()

    def action_reverse(self) -> None:
        """Reverses the order."""
        self.query_one(ResultList).action_turn()

    def action_scale(self) -> None:
        """Draws the bars of the phases on the other scale."""
        panel = self.query_one(ResultPanel)
        panel.logarithmic = not panel.logarithmic
        self._show_panel()

    def action_zoom(self) -> None:
        """Shows the panel alone, or the list and the panel."""
        self.toggle_class("-zoom")
        self.query_one("#panel" if self.has_class("-zoom") else "#results").focus()
        self.refresh_bindings()

    def action_unzoom(self) -> None:
        """Shows the list and the panel again."""
        if self.has_class("-zoom"):
            self.action_zoom()

    def action_copy(self) -> None:
        """Copies the row as text to the terminal's clipboard."""
        result, sweep = self._result(), self._sweep()
        if result is not None:
            text = row_text(result, self._baseline_name(result))
        elif sweep is not None:
            text = "\n".join(line.plain.rstrip() for line in (*crossover_lines(sweep), *sweep_table(sweep, 120)))
        else:
            return
        self.app.copy_to_clipboard(text)
        self.notify(text.splitlines()[0], title="Copied", markup=False)

    def _baseline_name(self, result: RunResult) -> str:
        baseline = self.profiler.session.runs.get(result.run.plan.baseline)
        return baseline.as_baseline if baseline is not None else ""


def row_text(result: RunResult, baseline: str) -> str:
    """A run in one line, for a message or a commit: names, median with interval, speed-up, break-even."""
    run = result.run
    head = f"{safe(run.label)} {parameters_text(run.plan.parameters)}".rstrip()
    if result.summary is None:
        return f"{head}: {run.shown.status}" + (f" ({safe(run.shown.error)})" if run.shown.error else "")
    text = f"{head}: median {seconds(result.summary.median)} {half_width(result.summary)} ({interval(result.summary)})"
    if result.versus is not None:
        text += f", {speedup_text(result.versus.speedup)} over {safe(baseline)}"
        if result.versus.break_even_calls is not None:
            text += f", break-even after {break_even_text(result)}"
    return text.replace("\u202f", " ")
