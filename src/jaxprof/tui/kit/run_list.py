"""The runs of a session, one line each; a tick of the clock redraws one cell."""

from __future__ import annotations

from collections.abc import Hashable, Set
from dataclasses import dataclass
from itertools import groupby
from time import monotonic
from typing import TYPE_CHECKING, cast

from textual.content import Content

from jaxprof.analysis import RunResult, result
from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.run_result import SAMPLED_PHASES
from jaxprof.text import columns, shorten
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.captures import opened_without_runs
from jaxprof.tui.kit.drawing import bar, cell
from jaxprof.tui.kit.format import (
    clock,
    half_width_short,
    parameters_text,
    speedup_short,
    status_mark,
    versus_style,
)
from jaxprof.tui.kit.program_summary import in_a_line
from jaxprof.tui.kit.table_columns import Cell, Span, TableColumn
from jaxprof.tui.kit.table_view import Heading, TableView
from jaxprof.units import percent, seconds

if TYPE_CHECKING:
    from jaxprof.session import Run, Session
    from jaxprof.tui.profiler import Profiler


def nothing_measured(app: Profiler) -> str:
    """Return the text of an empty list of runs or results."""
    what, where = opened_without_runs(app)
    if what:
        return f"{what} {where}"
    start = key_of("app.mode.start")
    return (
        f"Nothing has been measured in this session. On Start ({start}), press Enter to profile your own script or to "
        "measure an example."
    )


@dataclass(frozen=True, slots=True)
class RunHeading(Heading):
    """The heading of the runs of one workload with the same parameters."""

    name: str
    note: str

    def line(self, width: int) -> Content:
        text = shorten(self.name, max(1, min(40, width - 2))) if self.name else ""
        start = Content.assemble(" ", (text, "bold $primary"), "  ")
        return start + cell(self.note, width - columns(text) - 3, "$text-muted")


class RunList(TableView["Run"]):
    """Runs grouped under the workload and parameters that they share."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("", lambda run: status_mark(run.shown.status), 1),
                TableColumn("variant", lambda run: run.variant, 12, most=33, fits=True),
                TableColumn("device", lambda run: run.plan.device, 7, style="$text-muted"),
                TableColumn("phase", self._phase, 12),
                TableColumn("time", self._time, 9),
                TableColumn(
                    "speed-up", lambda run: self._instead_of_figures(run) or self._speedup(run), 17, priority=1
                ),
                TableColumn("", lambda run: self._instead_of_figures(run) or self._progress(run), 10, weight=1),
                TableColumn("median", self._median, 9, right=True, style="bold"),
                TableColumn("95 %", self._half, 9, right=True, style="$text-muted"),
            ),
            id=id,
        )
        self._session: Session | None = None
        self._growing = False
        self._results: dict[str, RunResult] = {}
        """Cached results of runs that have not changed since they were drawn."""
        self._next = ""
        """Id of the queued run that begins next."""
        self.shift_seconds = 0.0
        """Seconds that the writer's clock is ahead of ours, if another machine writes the session."""
        self.cancelling: Set[str] = frozenset()
        """Ids of the runs that this app has been asked to cancel."""

    @property
    def empty_text(self) -> str:
        return nothing_measured(cast("Profiler", self.app)) if not self.total else super().empty_text

    def show(self, session: Session, runs: frozenset[str], *, growing: bool) -> None:
        """Show `session`, whose `runs` have changed; `growing`: a process still writes it."""
        replaced = session is not self._session or growing != self._growing
        self._session, self._growing = session, growing
        if replaced:
            self._results.clear()
        rows: dict[Hashable, Run | Heading] = {}
        changed: set[Hashable] = {self._next}
        for (_, name, note), members in groupby(session.runs.values(), key=_heading):
            listed: dict[Hashable, Run | Heading] = {run.id: run for run in members}
            rows[name, note, next(iter(listed))] = RunHeading(name, note)
            rows |= listed
        for run in session.runs.values():
            if run.id in runs or run.plan.baseline in runs:
                self._results.pop(run.id, None)
                changed.add(run.id)
        self._next = (
            next((run.id for run in session.runs.values() if run.shown.status == "queued"), "") if growing else ""
        )
        self.show_rows(rows, None if replaced else {*changed, self._next})

    def tick(self) -> None:
        """Redraw the clocks whose text has changed."""
        if self._session is not None:
            self.redraw(run.id for run in self._session.runs.values() if run.shown.status == "running")

    # -- cells ------------------------------------------------------------------------------------------------

    def _result(self, run: Run) -> RunResult:
        if run.id not in self._results:
            assert self._session is not None
            self._results[run.id] = result(self._session, run.id)
        return self._results[run.id]

    def _phase(self, run: Run) -> tuple[str, str]:
        status = run.shown.status
        if run.id in self.cancelling and not run.shown.over:
            return "cancelling", "bold $warning"
        if run.id == self._next and status == "queued":
            return "next", "$accent"
        if status != "running":
            return status or "starting", "$text-muted"
        if run.current_phase:
            return run.current_phase.replace("_", " "), "bold $warning"
        if run.program is not None:
            return "running", "bold $warning"
        # Between two phases, other runs of its group are in progress.
        return ("waiting", "$text-muted") if run.present_phases else ("starting", "bold $warning")

    def _time(self, run: Run) -> tuple[str, str]:
        return self._clock(run), "" if run.shown.status == "running" else "$text-muted"

    def _instead_of_figures(self, run: Run) -> Span | None:
        """Return the text in place of figures: a program's summary, or an error."""
        if run.is_program and self._session is not None:
            return Span((in_a_line(program_result(self._session, run.id)), "$text-muted"))
        status = run.shown.status
        if run.shown.error and status != "ok":
            return Span((run.shown.error.splitlines()[0], "$error" if status != "cancelled" else "$quiet"))
        return None

    def _speedup(self, run: Run) -> tuple[str, str]:
        run_result = self._result(run)
        speedup = run_result.versus.speedup if run_result.versus is not None else None
        if speedup is not None:
            return speedup_short(speedup), versus_style(run_result)
        return "baseline" if run_result.summary and not run.plan.baseline else "", "$quiet"

    def _progress(self, run: Run) -> Cell:
        if run.shown.status != "running" or run.fraction is None or run.current_phase not in SAMPLED_PHASES:
            return ""
        share = round(run.fraction, 2)

        def draw(width: int) -> Content:
            text = f" {percent(share)}"
            room = min(24, width - columns(text) - 1)
            return bar(share, room, "$warning") + cell(text, width - max(0, room), "$text-muted")

        return draw

    def _median(self, run: Run) -> str:
        summary = self._result(run).summary
        return seconds(summary.median) if summary is not None else ""

    def _half(self, run: Run) -> str:
        summary = self._result(run).summary
        return half_width_short(summary) if summary is not None else ""

    def _clock(self, run: Run) -> str:
        """Return the time in the current phase while the run is in progress; the duration of the whole run when it is
        over."""
        if run.shown.status == "running" and self._growing:
            began = _began_seconds(run)
            return clock(monotonic() + self.shift_seconds - began) if began is not None else ""
        if run.started_seconds is None or run.ended_seconds is None:
            return ""
        return clock(run.ended_seconds - run.started_seconds)


def _began_seconds(run: Run) -> float | None:
    """Return when the current phase began, or else when the last one ended or the process was started."""
    phases = run.present_phases
    if run.current_phase in phases:
        return phases[run.current_phase].started_seconds
    ended = [phase.ended_seconds for phase in phases.values() if phase.ended_seconds is not None]
    return max(ended) if ended else run.launches[-1].started_seconds if run.launches else run.started_seconds


def _heading(run: Run) -> tuple[int | None, str, str]:
    return run.batch, run.plan.workload, parameters_text(run.plan.parameters)
