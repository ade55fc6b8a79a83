"""The details of the row under the cursor of Results: a run, a program, or a sweep over a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content

from jaxprof.text import columns, safe, shorten
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.drawing import cell
from jaxprof.tui.kit.format import baseline_name, versus_style
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.phase_bars import PhaseRow, phase_bars
from jaxprof.tui.kit.picture import Lines, Picture
from jaxprof.tui.kit.plots import (
    MARKERS,
    STYLES,
    Axis,
    Mark,
    PlotLine,
    count_tick,
    line_plot,
    ratio_tick,
    seconds_tick,
)
from jaxprof.tui.kit.program_summary import OF_PROGRAM
from jaxprof.tui.kit.table_columns import Cell, TableColumn, placed, row_line
from jaxprof.tui.kit.table_columns import line as line_of_cells
from jaxprof.tui.results.facts import failure_lines, figure_lines, published_lines, warning_lines
from jaxprof.units import UNKNOWN, integer, ratio, scaled, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult

    from jaxprof.analysis import RunResult, SweepGroup, SweepLine
    from jaxprof.report.runs import RunGroup
    from jaxprof.session import Session


class ResultPanel(Guarded, VerticalScroll):
    """The details of a row, hidden while there is nothing to show. A part is redrawn only when its data changes."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._title = ""
        self.logarithmic = False
        """Whether the phase bars have a logarithmic scale."""

    def compose(self) -> ComposeResult:
        yield Lines(id="failure")
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

    def show(
        self, session: Session, result: RunResult | None, group: RunGroup | None, sweep: SweepGroup | None
    ) -> None:
        """Show a run of `session` beside the others of its group, or a sweep; hide itself without either."""
        self.display = result is not None or sweep is not None
        title = ""
        if sweep is not None:
            title = f"{shorten(sweep.workload, 40)} over {safe(sweep.parameter)}"
        elif result is not None:
            title = shorten(result.run.label, 60)
        if title != self._title:
            self._title = title
            self.border_title = Content(title)
        self._show_sweep(sweep)
        self._show_run(session, result, group)

    def _lines(self, name: str) -> Lines:
        return self.query_one(f"#{name}", Lines)

    def _show_sweep(self, sweep: SweepGroup | None) -> None:
        self.query_one("#sweep-plots").display = sweep is not None
        if sweep is None:
            for name in ("crossovers", "sweep-table"):
                self._lines(name).clear()
            return
        key = tuple((line.label, line.sizes, tuple(result.summary for result in line.results)) for line in sweep.lines)
        self.query_one("#sweep-time", Picture).show(key, lambda w, h: time_plot(sweep, w, h))
        self.query_one("#sweep-speedup", Picture).show(key, lambda w, h: speedup_plot(sweep, w, h))
        self._lines("crossovers").show(key, lambda width: crossover_lines(sweep))
        self._lines("sweep-table").show(key, lambda width: [Content(""), *sweep_table(sweep, width)])

    def _show_run(self, session: Session, result: RunResult | None, group: RunGroup | None) -> None:
        if result is None or group is None:
            for name in ("failure", "phases", "figures", "warnings", "published"):
                self._lines(name).clear()
            return
        measured = tuple((other.run.id, tuple(other.phase_seconds.items())) for other in group.runs)
        key = (
            result.run.id,
            measured,
            result.summary,
            result.run.shown.status,
            len(result.warnings),
            result.run.check is None,
            result.cost,
        )
        logarithmic = self.logarithmic
        name = baseline_name(session, result.run)
        self._lines("failure").show(key, lambda width: failure_lines(result, width, traceback=False))
        self._lines("phases").show((key, logarithmic), lambda width: _phases(group, result, width, logarithmic))
        of_program = [OF_PROGRAM] if result.run.is_program else []
        self._lines("figures").show(
            key, lambda width: of_program or _under("figures", figure_lines(result, name, width))
        )
        self._lines("warnings").show(key, lambda width: _under("warnings", warning_lines(result, width)))
        self._lines("published").show(key, lambda width: _published(group, width))


def _under(name: str, lines: list[Content]) -> list[Content]:
    """Return lines below a blank line and a heading; nothing without lines."""
    return [Content(""), Content.styled(name, "bold $primary"), *lines] if lines else []


def _phases(group: RunGroup, result: RunResult, width: int, logarithmic: bool) -> list[Content]:
    rows = [
        PhaseRow(group.label(other.run), other.phase_seconds, current=other.run.id == result.run.id)
        for other in group.runs
        if other.phase_seconds
    ]
    hint = f"({key_of('results.scale')}: {'linear' if logarithmic else 'logarithmic'})"
    return phase_bars(rows, width, logarithmic=logarithmic, hint=hint) if rows else []


def _published(group: RunGroup, width: int) -> list[Content]:
    from jaxprof.report.runs import published

    variants = [result.run.plan.variant for result in group.runs]
    figures = published(group.workload, variants)
    return _under("published by others", published_lines(figures, group.runs, group.parameters, width))


def _style(sweep: SweepGroup, line: SweepLine) -> tuple[str, str]:
    """Return colour and marker of a line, the same in both plots; the baseline is dimmed."""
    if line is sweep.baseline:
        return STYLES[0], MARKERS[0]
    others = [other for other in sweep.lines if other is not sweep.baseline]
    index = others.index(line)
    return STYLES[1 + index % (len(STYLES) - 1)], MARKERS[1 + index % (len(MARKERS) - 1)]


def _label(sweep: SweepGroup, line: SweepLine) -> str:
    return line.label if len({other.device for other in sweep.lines}) > 1 else line.variant


def time_plot(sweep: SweepGroup, width: int, height: int) -> Content:
    """Return the plot of the time of a call over the size."""
    lines = []
    for line in sweep.lines:
        style, marker = _style(sweep, line)
        points = tuple(
            (size, result.summary.median)
            for size, result in zip(line.sizes, line.results, strict=True)
            if result.summary is not None
        )
        lines.append(PlotLine(_label(sweep, line), points, style, marker))
    x_axis = Axis(safe(sweep.parameter), count_tick, log=True)
    return line_plot(lines, x_axis, Axis("time of a call", seconds_tick, log=True), width, height)


def speedup_plot(sweep: SweepGroup, width: int, height: int) -> Content:
    """Return the plot of the speed-up over the size, with a line at 1 (equal to the baseline) and marks at the
    crossovers."""
    lines = []
    sizes = [size for line in sweep.lines for size in line.sizes]
    for line in sweep.lines:
        if line is sweep.baseline:
            continue
        style, marker = _style(sweep, line)
        points = tuple(
            (size, result.versus.speedup.ratio)
            for size, result in zip(line.sizes, line.results, strict=True)
            if result.versus is not None
        )
        lines.append(PlotLine(_label(sweep, line), points, style, marker))
    if sizes and sweep.baseline is not None:
        name = f"equal to {_label(sweep, sweep.baseline)}"
        lines.append(PlotLine(name, ((min(sizes), 1.0), (max(sizes), 1.0)), STYLES[0], dotted=True))
    marks = [
        Mark(crossover.size, 1.0, f"{safe(sweep.parameter)} ≈ {rounded(crossover.size)}")
        for crossover in sweep.crossovers()
        if crossover.size is not None
    ]
    x_axis = Axis(safe(sweep.parameter), count_tick, log=True)
    return line_plot(lines, x_axis, Axis("speed-up", ratio_tick, log=True), width, height, marks)


def rounded(size: float) -> str:
    """Return an interpolated size with two digits, which is its precision."""
    return integer(float(f"{size:.2g}"))


def crossover_lines(sweep: SweepGroup) -> list[Content]:
    """Return the crossovers of the sweep, in words."""
    return [
        Content.assemble(("◉ ", "bold $warning"), (safe(crossover.sentence(sweep.parameter)), "bold"))
        for crossover in sweep.crossovers()
    ]


def sweep_table(sweep: SweepGroup, width: int) -> list[Content]:
    """Return a row per size, a column per variant: the median, and its speed-up."""
    sizes = sorted({size for line in sweep.lines for size in line.sizes})
    step = max(14, min(26, (width - 12) // max(1, len(sweep.lines))))
    layout = placed(
        (
            TableColumn[float](sweep.parameter, scaled, 10, right=True, gap=2),
            *(TableColumn[float](_label(sweep, line), _at_size(line), step, right=True, gap=0) for line in sweep.lines),
        ),
        width,
        margin=0,
    )
    styles = ["$text-muted", *(_style(sweep, line)[0] for line in sweep.lines)]
    titles = [
        cell(place.column.title, place.width, f"bold {style}", right=True)
        for place, style in zip(layout, styles, strict=True)
    ]
    lines = [line_of_cells(titles, layout), *(row_line(size, layout, width) for size in sizes)]
    return [line.truncate(width) for line in lines]


def _at_size(line: SweepLine) -> Callable[[float], Cell]:
    """Return the cell of a line of the sweep: its median at a size, and the speed-up beside it."""
    by_size = dict(zip(line.sizes, line.results, strict=True))

    def make(size: float) -> Cell:
        result = by_size.get(size)
        if result is None or result.summary is None:
            return UNKNOWN, "$quiet"
        median = seconds(result.summary.median)
        if result.versus is None:
            return median
        beside = ratio(result.versus.speedup.ratio)
        speedup = cell(beside, 6, versus_style(result), right=columns(beside) < 6)
        return lambda width: cell(median, max(1, width - 7), right=True) + " " + speedup

    return make
