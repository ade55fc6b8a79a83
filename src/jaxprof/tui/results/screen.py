"""The Results screen: the variants side by side, and below or beside them the details of the row under the cursor.

The screen computes nothing: `jaxprof.analysis` derives, the widgets draw. A row is a run, or a sweep over a parameter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from textual.containers import Vertical
from textual.content import Content

from jaxprof.analysis import RunResult, SweepGroup, result, sweep_groups
from jaxprof.analysis.memory import peak_memory
from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.run_result import is_uncounted, prompt_cost, run_cost
from jaxprof.errors import UsageError
from jaxprof.report.runs import break_even_text
from jaxprof.text import columns, safe
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.captures import RunKeys
from jaxprof.tui.kit.drawing import cell, mark
from jaxprof.tui.kit.explanation import ExplanationHead
from jaxprof.tui.kit.format import (
    SPEEDUP_WIDTH,
    baseline_name,
    half_width,
    half_width_short,
    interval,
    parameters_text,
    speedup_short,
    speedup_text,
    status_mark,
    versus_style,
)
from jaxprof.tui.kit.guard import on
from jaxprof.tui.kit.phase_bars import plain_bar
from jaxprof.tui.kit.plots import count_tick
from jaxprof.tui.kit.program_summary import in_a_line
from jaxprof.tui.kit.run_list import RunHeading, nothing_measured
from jaxprof.tui.kit.table_columns import Cell, Span, TableColumn
from jaxprof.tui.kit.table_view import Heading, TableView
from jaxprof.tui.kit.threads import in_thread
from jaxprof.tui.results.result_panel import ResultPanel, crossover_lines, sweep_table
from jaxprof.units import bytes_, counted, scaled, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.report.runs import RunGroup
    from jaxprof.session import Run, Session
    from jaxprof.tui.profiler import Profiler


def _longest(group: RunGroup) -> float:
    return max((run_result.summary.median for run_result in group.runs if run_result.summary is not None), default=0.0)


@dataclass(frozen=True, slots=True)
class SweepRow(Heading):
    """A sweep over a parameter, in one line."""

    selectable: ClassVar[bool] = True
    sweep: SweepGroup

    def line(self, width: int) -> Content:
        return _sweep_line(self.sweep, width)


def _extra(title: str, width: int, priority: int, text: Callable[[RunResult], str]) -> TableColumn[RunResult]:
    return TableColumn(title, text, width, right=True, style="$text-muted", priority=priority)


class ResultList(TableView[RunResult]):
    """Rows of runs, headings of groups, and a row for each sweep."""

    UNSORTED = "as planned"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("", self._mark, 1),
                TableColumn("variant", lambda row: self._labels[row.run.id], 10, most=25, fits=True,
                            sort=lambda row: row.run.plan.variant),
                TableColumn("median", self._median, 8, right=True, sort=_median_of),
                TableColumn("95 %", lambda row: half_width_short(row.summary), 8, right=True, style="$text-muted",
                            gap=2),
                TableColumn("from 0", self._bar, 7, weight=1, most=46, gap=2),
                TableColumn("speed-up", _speedup, SPEEDUP_WIDTH, sort=_slowdown),
                TableColumn("break-even", _break_even, 10, most=14, fits=True),
                TableColumn("", _warnings, 3),
                _extra("dispatch", 9, 1, lambda row: seconds(row.dispatch_median_seconds)),
                _extra("pipelined", 9, 2, lambda row: seconds(row.pipelined_median_seconds)),
                _extra("rate", 12, 3, lambda row: scaled(row.flops_per_second, "FLOP/s")),
                _extra("traffic", 10, 4, lambda row: scaled(row.bytes_per_second, "B/s")),
                _extra("peak memory", 11, 5, lambda row: _bytes(peak_memory(row.run))),
                TableColumn("compile", lambda row: seconds(row.phase_seconds.get("compile")), 9, right=True,
                            style="$text-muted", priority=6, sort=lambda row: row.phase_seconds.get("compile")),
                _extra("once", 9, 7, lambda row: seconds(row.once_seconds) if row.run.plan.how != "numpy" else ""),
            ),
            id=id,
        )  # fmt: skip
        self._session: Session | None = None
        self._results: dict[str, RunResult] = {}
        self._labels: dict[str, str] = {}
        self._longest: dict[str, float] = {}
        self.groups: list[RunGroup] = []
        self.sweeps: dict[str, SweepGroup] = {}
        """Sweeps by workload."""
        self._group_by_run: dict[str, RunGroup] = {}
        self.marked: list[str] = []
        """Ids of the runs to compare, in the order in which they were marked."""

    def toggle(self, run: str) -> None:
        """Mark a run, or unmark it."""
        if run in self.marked:
            self.marked.remove(run)
        else:
            self.marked.append(run)
        self.redraw([run])

    @property
    def empty_text(self) -> str:
        return nothing_measured(cast("Profiler", self.app)) if not self.total else super().empty_text

    def show(self, session: Session, runs: frozenset[str]) -> None:
        """Show `session`, in which `runs` changed. Unchanged rows are not redrawn."""
        if session is not self._session:
            self._session, self._results, runs = session, {}, frozenset(session.runs)
            self.marked.clear()
        for run in session.runs.values():
            if run.id in runs or run.plan.baseline in runs or run.id not in self._results:
                self._results[run.id] = result(session, run.id, prompt_cost)
        self._count(session)
        from jaxprof.report.runs import grouped

        self.groups = grouped(self._results.values())
        if any(session.runs[run].over for run in runs if run in session.runs):
            self.sweeps = {sweep.workload: sweep for sweep in sweep_groups(session)}
        self._group_by_run = {run_result.run.id: group for group in self.groups for run_result in group.runs}
        for group in self.groups:
            names = {run_result.run.id: group.label(run_result.run) for run_result in group.runs}
            counted = Counter(names.values())
            self._labels |= {run: f"{name} ({run})" if counted[name] > 1 else name for run, name in names.items()}
            self._longest |= dict.fromkeys(names, _longest(group))
        self.rearrange()

    def _count(self, session: Session) -> None:
        """Count the FLOPs of long programs in a thread."""
        late = [run for run in session.runs.values() if is_uncounted(run)]
        if not late:
            return

        def count() -> None:
            for run in late:
                run_cost(session, run)
                if self.app.is_running:
                    self.app.call_from_thread(self.redraw, [run.id])

        in_thread(self, count, "count FLOPs")

    def group_of(self, run: str) -> RunGroup | None:
        """Return the group of a run; None if the run is not shown."""
        return self._group_by_run.get(run)

    def arranged(self) -> dict[Hashable, RunResult | Heading]:
        rows: dict[Hashable, RunResult | Heading] = {}
        for group in self.groups:
            if group.workload in self.sweeps:
                rows.setdefault(("sweep", group.workload), SweepRow(self.sweeps[group.workload]))
            note = parameters_text(group.parameters)
            rows["group", group.workload, note, group.runs[0].run.id] = RunHeading(group.workload, note)
            rows |= self.sorted_rows({run_result.run.id: run_result for run_result in group.runs})
        return rows

    # -- cells ------------------------------------------------------------------------------------------------

    def _mark(self, run_result: RunResult) -> Content:
        run = run_result.run
        return mark(on=True) if run.id in self.marked else status_mark(run.shown.status)

    def _median(self, run_result: RunResult) -> Cell:
        if run_result.summary is not None:
            return seconds(run_result.summary.median), "bold"
        run = run_result.run
        if run.is_program and self._session is not None:
            words = in_a_line(program_result(self._session, run.id))
        else:
            words = (
                run.shown.error.splitlines()[0]
                if run.shown.error
                else run.current_phase.replace("_", " ") or run.shown.status
            )
        return Span(
            (words, "$error" if run.shown.status in ("failed", "crashed", "interrupted", "timed out") else "$quiet")
        )

    def _bar(self, run_result: RunResult) -> Cell:
        longest = self._longest[run_result.run.id]
        share = run_result.summary.median / longest if run_result.summary is not None and longest > 0 else 0.0
        return lambda width: plain_bar(share, width, "$baseline" if not run_result.run.plan.baseline else "$bar")


def _bytes(count: int | None) -> str:
    return "" if count is None else bytes_(count)


def _median_of(run_result: RunResult) -> float | None:
    return run_result.summary.median if run_result.summary is not None else None


def _slowdown(run_result: RunResult) -> float | None:
    return -run_result.versus.speedup.ratio if run_result.versus is not None else None


def _speedup(run_result: RunResult) -> tuple[str, str]:
    speedup = run_result.versus.speedup if run_result.versus is not None else None
    return speedup_short(speedup) if run_result.run.plan.baseline else "baseline", versus_style(run_result)


def _break_even(run_result: RunResult) -> tuple[str, str]:
    check = run_result.run.check
    if check is not None and check.passed is False:
        return "✗ wrong", "$error"
    return break_even_text(run_result) if run_result.versus is not None else "", ""


def _warnings(run_result: RunResult) -> tuple[str, str]:
    return f"!{len(run_result.warnings)}" if run_result.warnings else "", "$warning"


def _sweep_line(sweep: SweepGroup, width: int) -> Content:
    sizes = sorted({size for line in sweep.lines for size in line.sizes})
    words = "; ".join(crossover.sentence(sweep.parameter) for crossover in sweep.crossovers())
    span = f"{sweep.parameter} from {count_tick(sizes[0])} to {count_tick(sizes[-1])}" if sizes else ""
    return Content.assemble(
        " ", ("~", "bold $accent"), f" {cell(sweep.workload, min(24, columns(sweep.workload))).plain}",
        (f" over {span}  ", "$text-muted"), cell(words, max(1, width), "$accent"),
    ).truncate(width, ellipsis=True)  # fmt: skip


class ResultsScreen(RunKeys, keys="results"):
    """The results of the open session."""

    MODE = "results"
    AUTO_FOCUS = "#results"

    def __init__(self) -> None:
        super().__init__()
        self._summary = ""

    def compose_body(self) -> ComposeResult:
        with Vertical(id="results-body"):
            yield ExplanationHead()
            with Vertical(id="results-box", classes="box") as box:
                box.border_title = "Results"
                yield ResultList(id="results")
            yield ResultPanel(id="panel", classes="box")

    # -- showing ----------------------------------------------------------------------------------------------

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Show the current figures."""
        rows = self.query_one(ResultList)
        rows.show(self.profiler.session, runs)
        if self.profiler.run_in_view:
            rows.move_to_key(self.profiler.run_in_view)
        self._show_summary()
        self._show_panel()

    @on(ResultList.Sorted)
    def _show_summary(self) -> None:
        """Show on the frame of the list how many runs there are and how they are sorted."""
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
        """Put the cursor on the run that another screen had in view."""
        super().come_into_view()
        if self.profiler.run_in_view and self.whole:
            self.query_one(ResultList).move_to_key(self.profiler.run_in_view)

    def on_row_list_highlighted(self, message: ResultList.Highlighted) -> None:
        """Show the details of another row."""
        if not self.whole:
            return
        result = self._result()
        if result is not None:
            self.profiler.run_in_view = result.run.id
        self._show_panel()
        self.query_one(ResultPanel).scroll_home(animate=False)

    def on_row_list_chosen(self, message: ResultList.Chosen) -> None:
        """Open a row that was clicked twice."""
        self.action_open()

    @property
    def chosen(self) -> Run | None:
        result = self._result()
        return result.run if result is not None else None

    def _result(self) -> RunResult | None:
        return self.query_one(ResultList).current_row

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
        """Dim the keys that can do nothing now; Esc is the app's unless the panel is zoomed."""
        if not self.whole:
            return super().check_action(action, parameters)
        result = self._result()
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
        if self._sweep() is not None:
            self.action_zoom()
        super().action_open()

    def action_mark(self) -> None:
        rows, result = self.query_one(ResultList), self._result()
        if result is None:
            return
        from jaxprof.tui.results.compare_screen import unfit

        run = result.run
        refused = unfit(run) if run.id not in rows.marked else None
        if refused is None and run.id not in rows.marked and len(rows.marked) == 2:
            hint = f"{key_of('results.mark')} on one of them unmarks it; {key_of('results.compare')} compares them."
            refused = UsageError("two runs are marked already", hint)
        if refused is not None:
            self.profiler.tell(refused)
            return
        rows.toggle(run.id)
        rows.action_move(1)
        self._show_summary()

    def action_compare(self) -> None:
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
        result = self._result()
        plan = result.run.plan if result is not None else None
        self.profiler.show_history((plan.target or plan.workload) if plan is not None else "")

    def action_sort(self) -> None:
        self.query_one(ResultList).action_sort_by_next()

    def action_reverse(self) -> None:
        self.query_one(ResultList).action_turn()

    def action_scale(self) -> None:
        panel = self.query_one(ResultPanel)
        panel.logarithmic = not panel.logarithmic
        self._show_panel()

    def action_zoom(self) -> None:
        self.toggle_class("-zoom")
        self.query_one("#panel" if self.has_class("-zoom") else "#results").focus()
        self.refresh_bindings()

    def action_unzoom(self) -> None:
        if self.has_class("-zoom"):
            self.action_zoom()

    def action_copy(self) -> None:
        result, sweep = self._result(), self._sweep()
        if result is not None:
            text = row_text(result, baseline_name(self.profiler.session, result.run))
        elif sweep is not None:
            text = "\n".join(line.plain.rstrip() for line in (*crossover_lines(sweep), *sweep_table(sweep, 120)))
        else:
            return
        self.copy(text, text.splitlines()[0])


def row_text(result: RunResult, baseline: str) -> str:
    """Return a run in one line, for a message or a commit: names, median with interval, speed-up, break-even."""
    run = result.run
    head = f"{safe(run.label)} {parameters_text(run.plan.parameters)}".rstrip()
    if result.summary is None:
        return f"{head}: {run.shown.status}" + (f" ({safe(run.shown.error)})" if run.shown.error else "")
    text = f"{head}: median {seconds(result.summary.median)}{half_width(result.summary)} ({interval(result.summary)})"
    if result.versus is not None:
        text += f", {speedup_text(result.versus.speedup)} over {safe(baseline)}"
        if result.versus.break_even_calls is not None:
            text += f", break-even after {break_even_text(result)}"
    return text.replace("\u202f", " ")
