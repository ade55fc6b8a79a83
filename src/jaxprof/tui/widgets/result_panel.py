"""What is known of the row under the cursor of Results: of a run, of a program, or of a sweep over a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content

from jaxprof.results.programs.derive import is_program, program_result
from jaxprof.safe_text import safe, shorten
from jaxprof.tui.widgets.facts import failure_lines, figure_lines, published_lines, warning_lines
from jaxprof.tui.widgets.phase_bars import PhaseRow, phase_bars
from jaxprof.tui.widgets.picture import Lines, Picture
from jaxprof.tui.widgets.program_summary import summary_lines
from jaxprof.tui.widgets.sweep_plot import crossover_lines, speedup_plot, sweep_table, time_plot

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.report.groups import Group
    from jaxprof.results import RunResult, SweepGroup
    from jaxprof.session import Session


class ResultPanel(VerticalScroll):
    """There while there is something to show; its parts are drawn again only when what they show has changed."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._title = ""

    def compose(self) -> ComposeResult:
        yield Lines(id="failure")
        yield Lines(id="program-summary")
        yield Lines(id="crossovers")
        with Horizontal(id="sweep-plots"):
            yield Picture(id="sweep-time")
            yield Picture(id="sweep-speedup")
        yield Lines(id="sweep-table")
        yield Lines(id="phases")
        with Horizontal(id="panel-columns"):
            with Vertical(classes="column"):
                yield Lines(id="figures")
                yield Lines(id="warnings")
            with Vertical(classes="column"):
                yield Lines(id="published")

    def show(self, session: Session, one: RunResult | None, group: Group | None, sweep: SweepGroup | None) -> None:
        """Shows a run of `session` beside the others of its group, or a sweep; neither where nothing is chosen."""
        self.display = one is not None or sweep is not None
        title = ""
        if sweep is not None:
            title = f"{shorten(sweep.workload, 40)} over {safe(sweep.parameter)}"
        elif one is not None:
            title = shorten(one.run.label, 60)
        if title != self._title:
            self._title = title
            self.border_title = Content(title)
        self._show_sweep(sweep)
        self._show_program(session, one)
        self._show_run(session, one, group)

    def _lines(self, name: str) -> Lines:
        return self.query_one(f"#{name}", Lines)

    def _show_sweep(self, sweep: SweepGroup | None) -> None:
        self.query_one("#sweep-plots").display = sweep is not None
        if sweep is None:
            for name in ("crossovers", "sweep-table"):
                self._lines(name).show(None, lambda width: ())
            return
        key = tuple((line.label, line.sizes, tuple(one.summary for one in line.results)) for line in sweep.lines)
        self.query_one("#sweep-time", Picture).show(key, lambda w, h: time_plot(sweep, w, h))
        self.query_one("#sweep-speedup", Picture).show(key, lambda w, h: speedup_plot(sweep, w, h))
        self._lines("crossovers").show(key, lambda width: crossover_lines(sweep))
        self._lines("sweep-table").show(key, lambda width: [Content(""), *sweep_table(sweep, width)])

    def _show_program(self, session: Session, one: RunResult | None) -> None:
        """A program of the user's has a screen for itself; here stands the most important of it."""
        lines = self._lines("program-summary")
        if one is None or not is_program(one.run):
            lines.show(None, lambda width: ())
            return
        found = program_result(session, one.run.id)
        key = (one.run.id, one.run.status, len(found.stretches), len(found.compiles))
        lines.show(key, lambda width: summary_lines(session, found, width))

    def _show_run(self, session: Session, one: RunResult | None, group: Group | None) -> None:
        if one is None or group is None:
            for name in ("failure", "phases", "figures", "warnings", "published"):
                self._lines(name).show(None, lambda width: ())
            return
        measured = tuple((other.run.id, tuple(other.phase_seconds.items())) for other in group.runs)
        key = (one.run.id, measured, one.summary, one.run.status, len(one.warnings), one.run.check is None)
        baseline = session.runs.get(one.run.plan.baseline)
        name = baseline.plan.variant if baseline is not None else ""
        self._lines("failure").show(key, lambda width: failure_lines(one, width, traceback=False))
        self._lines("phases").show(key, lambda width: _phases(group, one, width))
        self._lines("figures").show(key, lambda width: _under("figures", figure_lines(one, name, width)))
        self._lines("warnings").show(key, lambda width: _under("warnings", warning_lines(one, width)))
        self._lines("published").show(key, lambda width: _published(group, width))


def _under(name: str, lines: list[Content]) -> list[Content]:
    """Lines below a heading and a blank line; nothing where there are none."""
    return [Content(""), Content.styled(name, "bold $primary"), *lines] if lines else []


def _phases(group: Group, one: RunResult, width: int) -> list[Content]:
    rows = [
        PhaseRow(group.label(other.run), other.phase_seconds, current=other.run.id == one.run.id)
        for other in group.runs
        if other.phase_seconds
    ]
    return phase_bars(rows, width) if rows else []


def _published(group: Group, width: int) -> list[Content]:
    from jaxprof.report.groups import published

    variants = [one.run.plan.variant for one in group.runs]
    figures = published(group.workload, variants)
    return _under("published by others", published_lines(figures, group.runs, group.parameters, width))
