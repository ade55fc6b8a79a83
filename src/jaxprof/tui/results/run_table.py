"""The runs of a session, one line each: figures of those that were measured, phase and clock of those in progress.

A tick of the clock redraws the rows of runs in progress alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from typing import cast

from textual.content import Content

from jaxprof.analysis.kernels.memory import peak_memory
from jaxprof.analysis.runs.run_result import RunResult, cost_of_call, is_uncounted, prompt_cost, result
from jaxprof.base.units import UNKNOWN, bytes_, percent, ratio, scaled, seconds
from jaxprof.events import SAMPLED_PHASES
from jaxprof.facts import at
from jaxprof.facts.runs import interval_text
from jaxprof.findings.program_result import program_result
from jaxprof.report.runs import RunGroup, SweepGroup, break_even_text, group_runs, parameters_text, sweep_groups
from jaxprof.session import Run, Session
from jaxprof.tui import clock
from jaxprof.tui.kit.captures import nothing_was_run
from jaxprof.tui.kit.drawing import bar, cell, mark, parts_bar
from jaxprof.tui.kit.format import (
    BROKEN,
    SPEEDUP_WIDTH,
    clock_text,
    half_width,
    speedup_short,
    speedup_style,
    status_mark,
)
from jaxprof.tui.kit.guard import in_thread
from jaxprof.tui.kit.host import Host
from jaxprof.tui.kit.program_summary import in_a_line
from jaxprof.tui.kit.row_list import Heading, RowList
from jaxprof.tui.kit.table_columns import Cell, Span, TableColumn, either
from jaxprof.tui.results.result_panel import PHASE_STYLES


def _extra(title: str, width: int, priority: int, text: Callable[[RunResult], str]) -> TableColumn[RunResult]:
    return TableColumn(title, text, width, right=True, style="$text-muted", priority=priority)


class RunTable(RowList[RunResult]):
    UNSORTED = "as planned"

    def __init__(self) -> None:
        super().__init__(
            (
                TableColumn("", lambda row: mark(on=True) if row.run.id in self.marked else status_mark(
                    row.run.shown.status), 1),
                TableColumn("variant", lambda row: self._labels[row.run.id], 10, most=25, fits=True,
                            sort=lambda row: row.run.plan.variant),
                TableColumn("first", self._first_result, 8, right=True,
                            sort=lambda row: sum(row.first_result_phases.values()) or None),
                TableColumn("result", self._phases, 6, weight=3, wanted=20, most=60, gap=2),
                TableColumn("a call", lambda row: seconds(row.summary.median) if row.summary is not None else "", 8,
                            style="bold", right=True, sort=at("summary.median")),
                TableColumn("± 95 %", interval_text, 7, most=15, fits=True, right=True, style="$text-muted",
                            gap=2, priority=1),
                TableColumn("(log)", self._bar, 5, weight=1, wanted=10, most=24, gap=2),
                TableColumn("speed-up", _speedup, 10, most=SPEEDUP_WIDTH, fits=True,
                            sort=lambda row: -(row.versus.speedup.ratio or 0.0) if row.versus is not None else None),
                TableColumn("break-even", lambda row: break_even_text(row) if row.versus is not None else "", 14,
                            priority=2),
                TableColumn("warnings", lambda row: f"{len(row.warnings)}" if row.warnings else "", 8, right=True,
                            style="$warning"),
                _extra("dispatch", 9, 3, lambda row: seconds(row.dispatch_median_seconds)),
                _extra("pipelined", 9, 4, lambda row: seconds(row.pipelined_median_seconds)),
                _extra("rate", 12, 5, lambda row: scaled(row.flops_per_second, "FLOP/s")),
                _extra("traffic", 10, 6, lambda row: scaled(row.bytes_per_second, "B/s")),
                _extra("peak memory", 11, 7,
                       lambda row: "" if (peak := peak_memory(row.run)) is None else bytes_(peak)),
            ),
            id="results",
        )  # fmt: skip
        self._session: Session | None = None
        self._growing = False
        """Whether a process still writes the session."""
        self._results: dict[str, RunResult] = {}
        self._labels: dict[str, str] = {}
        self.groups: list[RunGroup] = []
        self.group_by_run: dict[str, RunGroup] = {}
        self.sweeps: dict[str, SweepGroup] = {}
        self._next = ""

    @property
    def _profiler(self) -> Host:
        return cast("Host", self.app)

    @property
    def empty_text(self) -> str:
        return nothing_was_run(self._profiler) if not self.total else super().empty_text

    def show(self, session: Session, runs: frozenset[str]) -> None:
        growing = not session.deserted
        if session is not self._session:
            self.marked.clear()
            self.sweeps = {}
            self.set_keys(())  # runs of another session have the same ids
        if session is not self._session or growing != self._growing:
            self._session, self._growing, self._results, runs = session, growing, {}, frozenset(session.runs)
        for run in session.runs.values():
            if run.id in runs or run.plan.baseline in runs or run.id not in self._results:
                self._results[run.id] = result(session, run.id, prompt_cost)
        queued = (run.id for run in session.runs.values() if growing and run.shown.status == "queued")
        self._next = next(queued, "")
        late = [run for run in session.runs.values() if is_uncounted(run)]
        if late:

            def count() -> None:
                for run in late:
                    cost_of_call(session, run)
                    if self.app.is_running:
                        self.app.call_from_thread(self.redraw, [run.id])

            in_thread(self, count, "count FLOPs")
        self.groups = group_runs(self._results.values())
        if any(session.runs[run].over for run in runs if run in session.runs):
            self.sweeps = {sweep.workload: sweep for sweep in sweep_groups(session)}
        self.group_by_run = {run_result.run.id: group for group in self.groups for run_result in group.runs}
        for group in self.groups:
            names = {each.run.id: group.label(each.run) for each in group.runs}
            counted = Counter(names.values())
            self._labels |= {run: f"{name} ({run})" if counted[name] > 1 else name for run, name in names.items()}
        self.rearrange()

    def tick(self) -> None:
        if self._session is not None:
            self.redraw({run.id for run in self._session.runs.values() if run.shown.status == "running"})

    def order_rows(self) -> dict[Hashable, RunResult | Heading]:
        rows: dict[Hashable, RunResult | Heading] = {}
        for group in self.groups:
            note = parameters_text(group.parameters)
            heading = Heading(f" {group.workload}  {note}", "bold $primary")
            rows["group", group.workload, note, group.runs[0].run.id] = heading
            rows |= self.sort_rows({run_result.run.id: run_result for run_result in group.runs})
        return rows

    # -- cells ------------------------------------------------------------------------------------------------

    def _first_result(self, run_result: RunResult) -> Cell:
        """Return the time up to the first result; a run that is not measured, or not yet, has words in place of all its
        figures."""
        run, took = run_result.run, sum(run_result.first_result_phases.values())
        if run.shown.status != "running" and (run_result.summary is not None or (took and run.shown.status == "ok")):
            return seconds(took or None)
        if run.is_program and self._session is not None:
            return Span((in_a_line(program_result(self._session, run.id)), "$quiet"))
        if run.shown.error:
            return Span((run.shown.error.splitlines()[0], "$error" if run.shown.status in BROKEN else "$quiet"))
        return Span(self._progress(run_result))

    def _progress(self, run_result: RunResult) -> Cell:
        run, summary = run_result.run, run_result.summary
        phase, style = self._phase(run)
        if run.shown.status != "running":
            return phase, style
        began: float | None = None
        if self._growing:  # the clock runs only while somebody writes the session
            phases = run.present_phases
            ended = [phase.ended_seconds for phase in phases.values() if phase.ended_seconds is not None]
            if run.current_phase in phases:
                began = phases[run.current_phase].started_seconds
            elif ended:
                began = max(ended)
            else:
                began = run.launches[-1].started_seconds if run.launches else run.started_seconds
        now = clock.monotonic() + self._profiler.opened.clock_shift_seconds
        time = clock_text(now - began) if began is not None else ""
        so_far = f"median {seconds(summary.median)}{half_width(summary)}" if summary is not None else ""
        share = run.fraction if run.current_phase in SAMPLED_PHASES else None

        def draw(width: int) -> Content:
            parts = [cell(phase, 12, style), cell(time, 9), cell(so_far, 24, "bold") if so_far else Content("")]
            left = width - sum(part.cell_length for part in parts) - 6
            if share is not None and left >= 4:
                parts += [bar(share, min(24, left), "$warning"), cell(f" {percent(round(share, 2))}", 6, "$text-muted")]
            return Content.assemble(*parts)

        return draw

    def _phase(self, run: Run) -> tuple[str, str]:
        status, live = run.shown.status, self._profiler.live
        if self._session is live.session and run.id in live.cancelling and not run.shown.over:
            return "cancelling", "bold $warning"
        if run.id == self._next:
            return "next", "$accent"
        if status != "running":
            return status or "starting", "$error" if status in BROKEN else "$text-muted"
        if run.current_phase:
            return run.current_phase.replace("_", " "), "bold $warning"
        # Between two phases, other runs of its group are in progress.
        return ("waiting", "$text-muted") if run.present_phases else ("starting", "bold $warning")

    def _phases(self, run_result: RunResult) -> Cell:
        """Return the phases up to the first result end to end, on the scale of all runs of the group."""
        spent = run_result.first_result_phases
        group = self.group_by_run[run_result.run.id]
        longest = max((sum(each.first_result_phases.values()) for each in group.runs), default=0.0)
        parts = [(took, PHASE_STYLES[phase]) for phase, took in spent.items()]
        return lambda width: parts_bar(parts, longest, width) if longest else Content("")

    def _bar(self, run_result: RunResult) -> Cell:
        """Return the time of a call on a log scale from the decade below the fastest of the group."""
        group, summary = self.group_by_run[run_result.run.id], run_result.summary
        medians = [each.summary.median for each in group.runs if each.summary is not None and each.summary.median > 0]
        if summary is None or summary.median <= 0:
            return ""
        decades = math.log10(max(medians)) - (low := math.ceil(math.log10(min(medians))) - 1)
        style = "$bar" if run_result.run.plan.baseline else "$baseline"
        return lambda width: bar((math.log10(summary.median) - low) / decades, width, style, track="")


def _speedup(run_result: RunResult) -> Cell:
    check = run_result.run.check
    if check is not None and check.passed is False:
        return "✗ wrong", "$error"
    speedup = run_result.versus.speedup if run_result.versus is not None else None
    if not run_result.run.plan.baseline or speedup is None:
        return "baseline" if not run_result.run.plan.baseline else UNKNOWN, "$quiet"
    return either(speedup_short(speedup), ratio(speedup.ratio), style=speedup_style(speedup))
