"""All of the run under the cursor, finished or in progress, or a program; and the sweep that it is of."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.containers import Horizontal
from textual.content import Content

from jaxprof.analysis.speedup import steady_samples
from jaxprof.report.runs import published_figures, sweep_report
from jaxprof.text import safe, shorten
from jaxprof.tui.kit.format import baseline_name
from jaxprof.tui.kit.picture import Lines, Picture, ScrollPane
from jaxprof.tui.kit.plots import (
    MARKERS,
    STYLES,
    WAITING,
    Axis,
    PlotLine,
    count_tick,
    distribution,
    line_plot,
    seconds_tick,
    trend,
)
from jaxprof.tui.kit.program_summary import OF_PROGRAM
from jaxprof.tui.kit.table_columns import report_contents, table_lines
from jaxprof.tui.results.facts import (
    compiled_table,
    environment_lines,
    failure_lines,
    figure_lines,
    phase_bars,
    phase_table,
    warning_lines,
)

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.run_result import RunResult
    from jaxprof.analysis.sweeps import SweepGroup
    from jaxprof.report.runs import RunGroup
    from jaxprof.session import Run, Session

_HOW = {"numpy": "NumPy on the host", "eager": "op by op", "jit": "compiled as one program"}


class ResultPanel(ScrollPane):
    """All of a row, hidden while there is nothing to show. A part is redrawn only when its data changes."""

    _titles = ("", "")

    def compose(self) -> ComposeResult:
        yield Picture(id="sweep-plot")
        yield Lines(id="sweep-table")
        yield Lines(id="head")
        with Horizontal(classes="columns"):
            yield Lines(id="left", classes="column")
            yield Lines(id="right", classes="column")
        with Horizontal(id="samples", classes="columns"):
            yield Picture(id="distribution", classes="column")
            yield Picture(id="trend", classes="column")
        yield Lines(id="each-phase")

    def show(
        self, session: Session, result: RunResult | None, group: RunGroup | None, sweep: SweepGroup | None
    ) -> None:
        """Show a run of `session` beside the others of its group, and the sweep that it is of; hide itself without a
        run."""
        self.display = result is not None and group is not None
        if result is None or group is None:
            return
        titles = shorten(result.run.label, 60), safe(_state(result.run))
        if titles != self._titles:
            self._titles = titles
            self.border_title, self.border_subtitle = map(Content, titles)
        self._show_sweep(sweep)
        self._show_run(session, result, group)
        self._show_samples(result)

    def _lines(self, name: str, key: Hashable, draw: Callable[[int], Iterable[Content]]) -> None:
        self.query_one(f"#{name}", Lines).show(key, lambda width: list(draw(width)))

    def _show_sweep(self, sweep: SweepGroup | None) -> None:
        """Show the times of a sweep over its sizes, and where variants cross."""
        plot = self.query_one("#sweep-plot", Picture)
        plot.display = sweep is not None
        if sweep is None:
            self.query_one("#sweep-table", Lines).clear()
            return
        key = tuple((line.label, line.sizes, tuple(result.summary for result in line.results)) for line in sweep.lines)
        plot.show(key, partial(sweep_plot, sweep))
        self._lines("sweep-table", key, partial(report_contents, list(sweep_report(sweep))))

    def _show_run(self, session: Session, result: RunResult, group: RunGroup) -> None:
        """Show what is known of a run in words and tables."""
        run = result.run
        measured = tuple((other.run.id, tuple(other.phase_seconds.items())) for other in group.runs)
        baseline = session.runs.get(run.plan.baseline)
        theirs = len(baseline.samples("run")) if baseline is not None else 0
        parts = run.check is None, run.memory is None, run.environment is None, len(run.compiles), len(result.warnings)
        key = (run.id, measured, result.summary, run.shown.status, result.cost, theirs, parts)
        live, name = run.shown.status == "running", baseline_name(session, run)

        def left(width: int) -> Iterator[Content]:
            if run.is_program:
                yield OF_PROGRAM
            else:
                yield from _under("figures", [*figure_lines(result, name, width)])
            yield from _under("warnings", warning_lines(result, width))

        def right(width: int) -> Iterator[Content]:
            published = () if live else report_contents(published_figures(group), width)
            yield from _under("published by others", [line for line in published if line.plain])
            if result.run.compiles:
                yield from (Content(""), *table_lines(compiled_table(result), width))
            yield from _under("environment", environment_lines(result, width))

        self._lines("head", key, lambda width: (*failure_lines(result, width), *_bars(group, result, width)))
        self._lines("left", key, left)
        self._lines("right", key, right)
        self._lines(
            "each-phase",
            key,
            lambda width: [] if live else _under("phase by phase", list(table_lines(phase_table(result), width))),
        )

    def _show_samples(self, result: RunResult) -> None:
        """Show the samples of a run, or why it has none."""
        run, summary, modes = result.run, result.summary, result.modes
        samples = () if run.is_program else steady_samples(run)
        self.query_one("#samples").display = bool(samples) or (run.shown.status == "running" and not run.is_program)
        empty = why_no_samples(run)
        for name, draw in (("distribution", distribution), ("trend", trend)):
            plot = self.query_one(f"#{name}", Picture)
            key = (run.id, len(samples), empty)
            plot.show(key, lambda w, h, draw=draw: draw(samples, summary, w, h, empty, modes))  # type: ignore[misc]


def why_no_samples(run: Run) -> str:
    """Return the text in place of the samples."""
    if run.plan.how == "compile":
        return "compiled, and not run" if run.shown.over else "this is compiled, and not run"
    if run.plan.how == "imported":
        return "an opened profile: its kernels have times, but no call was timed"
    return "no samples were taken" if run.shown.over else WAITING


def launch_text(run: Run) -> str:
    """Return `launch 2 of 3, in turns with 2 more` while a run is in progress; empty with one launch, or in the
    first."""
    if run.shown.status != "running":
        return ""
    if run.current_phase == "run" and run.note:
        return shorten(run.note, 48)
    number = run.launches[-1].number if run.launches else 1
    return f"launch {number} of {run.plan.launches}" if number > 1 else ""


def _state(run: Run) -> str:
    """Return how a run was measured, or where it is while it is in progress."""
    status = run.shown.status
    if status == "running":
        pid = f"pid {run.pid}" if run.pid else ""
        return " · ".join(filter(None, (launch_text(run), status, pid)))
    precision = f"precision {run.plan.precision}" if run.plan.precision else ""
    return " · ".join(filter(None, (run.plan.preset, _HOW.get(run.plan.how, run.plan.how), precision, status)))


def _under(name: str, lines: Sequence[Content]) -> list[Content]:
    """Return lines below a blank line and a heading; nothing without lines."""
    return [Content(""), Content.styled(name, "bold $primary"), *lines] if lines else []


def _bars(group: RunGroup, result: RunResult, width: int) -> list[Content]:
    rows = [(group.label(other.run), other.phase_seconds) for other in group.runs if other.phase_seconds]
    return phase_bars(rows, group.label(result.run), width) if rows else []


def sweep_plot(sweep: SweepGroup, width: int, height: int) -> Content:
    """Return the plot of the time of a call over the size: a line for each variant that was timed, the baseline
    dimmed."""
    several = len({line.device for line in sweep.lines}) > 1
    others = [line for line in sweep.lines if line is not sweep.baseline]
    lines = []
    for line in sweep.lines:
        at = 1 + others.index(line) % (len(STYLES) - 1) if line in others else 0
        timed = zip(line.sizes, (result.summary for result in line.results), strict=True)
        points = tuple((size, summary.median) for size, summary in timed if summary is not None)
        if points:
            lines.append(PlotLine(line.label if several else line.variant, points, STYLES[at], MARKERS[at]))
    x_axis = Axis(safe(sweep.parameter), count_tick, log=True)
    return line_plot(lines, x_axis, Axis("time of a call", seconds_tick, log=True), width, height)
