"""All of the row under the cursor: a run, finished or in progress, a program, or a sweep over a parameter."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical
from textual.content import Content

from jaxprof.analysis.ab import side_title
from jaxprof.analysis.run_result import break_even_curve
from jaxprof.analysis.run_result import result as result_of
from jaxprof.analysis.speedup import steady_samples
from jaxprof.report.runs import published_lines, sweep_table
from jaxprof.text import safe, shorten
from jaxprof.tui.kit.format import baseline_name
from jaxprof.tui.kit.phase_bars import UNTIL_FIRST, PhaseRow, first_result, phase_bars
from jaxprof.tui.kit.picture import Lines, Picture, ScrollPane
from jaxprof.tui.kit.plots import (
    MARKERS,
    STYLES,
    Axis,
    Mark,
    PlotLine,
    count_tick,
    distribution,
    line_plot,
    ratio_tick,
    seconds_tick,
    trend,
)
from jaxprof.tui.kit.program_summary import OF_PROGRAM
from jaxprof.tui.kit.table_columns import table_lines
from jaxprof.tui.results.facts import (
    compile_lines,
    environment_lines,
    failure_lines,
    figure_lines,
    memory_lines,
    phase_lines,
    warning_lines,
)
from jaxprof.tui.results.phase_strip import PhaseStrip, launch_text, steps, why_no_samples
from jaxprof.units import counted, integer, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.run_result import BreakEvenCurve, RunResult
    from jaxprof.analysis.sweeps import SweepGroup, SweepLine
    from jaxprof.report.runs import RunGroup
    from jaxprof.session import Run, Session

_HOW = {"numpy": "NumPy on the host", "eager": "op by op", "jit": "compiled as one program"}


class ResultPanel(ScrollPane):
    """All of a row, hidden while there is nothing to show. A part is redrawn only when its data changes."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._titles = ("", "")

    def compose(self) -> ComposeResult:
        yield PhaseStrip(id="strip")
        yield Lines(id="failure")
        yield Lines(id="crossovers")
        with Horizontal(id="sweep-plots"):
            yield Picture(id="sweep-time")
            yield Picture(id="sweep-speedup")
        yield Lines(id="sweep-table")
        yield Lines(id="phases")
        with Horizontal(classes="columns"):
            with Vertical(classes="column"):
                yield Lines(id="figures")
                yield Lines(id="warnings")
                yield Lines(id="memory")
            with Vertical(classes="column"):
                yield Lines(id="published")
                yield Lines(id="compiles")
                yield Lines(id="environment")
        with Horizontal(id="samples", classes="columns"):
            yield Picture(id="distribution", classes="column")
            yield Picture(id="trend", classes="column")
        with Horizontal(classes="columns"):
            yield Lines(id="each-phase", classes="column")
            yield Picture(id="break-even", classes="column")

    @property
    def strip(self) -> PhaseStrip:
        """The phases of a run in progress, with their clocks."""
        return self.query_one(PhaseStrip)

    def show(
        self,
        session: Session,
        result: RunResult | None,
        group: RunGroup | None,
        sweep: SweepGroup | None,
        growing: bool,
    ) -> None:
        """Show a run of `session` beside the others of its group, or a sweep; hide itself without either. `growing`: a
        process still writes the session."""
        self.display = result is not None or sweep is not None
        titles = ("", "")
        if sweep is not None:
            titles = (f"{shorten(sweep.workload, 40)} over {safe(sweep.parameter)}", "")
        elif result is not None:
            titles = (shorten(result.run.label, 60), safe(_state(result.run)))
        if titles != self._titles:
            self._titles = titles
            self.border_title, self.border_subtitle = map(Content, titles)
        self._show_sweep(sweep)
        self._show_run(session, result, group, growing)
        self._show_samples(session, result, growing)

    def _show(self, name: str, key: Hashable, draw: Callable[[int], Sequence[Content]], title: str = "") -> None:
        """Show lines, below a blank line and a `title` if there is one."""
        titled = (lambda width: _under(title, draw(width))) if title else draw
        self.query_one(f"#{name}", Lines).show(key, titled)

    def _show_sweep(self, sweep: SweepGroup | None) -> None:
        self.query_one("#sweep-plots").display = sweep is not None
        if sweep is None:
            self._clear("crossovers", "sweep-table")
            return
        key = tuple((line.label, line.sizes, tuple(result.summary for result in line.results)) for line in sweep.lines)
        self.query_one("#sweep-time", Picture).show(key, lambda w, h: time_plot(sweep, w, h))
        self.query_one("#sweep-speedup", Picture).show(key, lambda w, h: speedup_plot(sweep, w, h))
        self._show("crossovers", key, lambda width: crossover_lines(sweep))
        self._show("sweep-table", key, lambda width: [Content(""), *table_lines(sweep_table(sweep), width)])

    def _clear(self, *names: str) -> None:
        for name in names:
            self.query_one(f"#{name}", Lines).clear()

    def _show_run(self, session: Session, result: RunResult | None, group: RunGroup | None, growing: bool) -> None:
        """Show what is known of a run in words and tables. While it is in progress, its phases are in the strip."""
        if result is None or group is None:
            self._clear("failure", "phases", "figures", "warnings", "memory", "published", "compiles", "environment",
                        "each-phase")  # fmt: skip
            return
        run = result.run
        measured = tuple((other.run.id, tuple(other.phase_seconds.items())) for other in group.runs)
        baseline = session.runs.get(run.plan.baseline)
        theirs = len(baseline.samples("run")) if baseline is not None else 0
        key = (run.id, measured, result.summary, run.shown.status, len(result.warnings), run.check is None, result.cost,
               theirs)  # fmt: skip
        live, name = run.shown.status == "running", baseline_name(session, run)
        self.strip.display = live and not run.is_program
        self.strip.show(steps(result, growing=growing) if live else ())
        self._show("failure", key, lambda width: failure_lines(result, width))
        self._show("phases", key, lambda width: [] if live else _bars(group, result, width))
        side = side_title(session, run)
        self._show("figures", key, lambda width: [OF_PROGRAM] if run.is_program else
                   figure_lines(result, name, width, side), "" if run.is_program else "figures")  # fmt: skip
        self._show("warnings", key, lambda width: warning_lines(result, width), "warnings")
        self._show("memory", (key, run.memory is None), lambda width: memory_lines(result, width), "memory")
        self._show("published", key, lambda width: [] if live else _published(group, width), "published by others")
        compiled = (key, len(run.compiles))
        self._show("compiles", compiled, lambda width: compile_lines(result, width), "compiled op by op")
        self._show("environment", (key, run.environment is None), lambda width: environment_lines(result, width),
                   "environment")  # fmt: skip
        self._show("each-phase", key, lambda width: [] if live else _phases(result, width), "phase by phase")

    def _show_samples(self, session: Session, result: RunResult | None, growing: bool) -> None:
        """Show the samples of a run, its break-even, or why it has no samples."""
        pictures, break_even = self.query_one("#samples"), self.query_one("#break-even", Picture)
        curve = None
        if result is None or result.run.is_program:
            pictures.display = False
        else:
            run, samples = result.run, steady_samples(result.run)
            live = run.shown.status == "running"
            pictures.display = bool(samples) or live
            empty = why_no_samples(run)
            key, summary, modes = (run.id, len(samples), empty), result.summary, result.modes
            spread, order = self.query_one("#distribution", Picture), self.query_one("#trend", Picture)
            spread.show(key, lambda w, h: distribution(samples, summary, w, h, empty, modes))
            order.show(key, lambda w, h: trend(samples, summary, w, h, empty, modes))
            baseline = run.plan.baseline
            if not live and baseline in session.runs:
                curve = break_even_curve(result, result_of(session, baseline))
        break_even.display = curve is not None
        if curve is not None:
            shown = curve
            break_even.show(curve, lambda w, h: break_even_plot(shown, w, h))


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
    rows = [
        PhaseRow(group.label(other.run), other.phase_seconds, current=other.run.id == result.run.id)
        for other in group.runs
        if other.phase_seconds
    ]
    return phase_bars(rows, width) if rows else []


def _phases(result: RunResult, width: int) -> list[Content]:
    """Return the table of phases, and below it the cost of a first result, phase by phase."""
    table = phase_lines(result, width)
    bars = first_result(result.phase_seconds, width) if result.run.plan.how != "numpy" else []
    first = sum(took for phase in UNTIL_FIRST if (took := result.phase_seconds.get(phase)) is not None)
    head = Content.styled(f"time to the first result: {seconds(first)}, on a linear scale", "$quiet")
    return [*table, Content(""), head, *bars] if bars else table


def _published(group: RunGroup, width: int) -> list[Content]:
    return [Content(line) for line in published_lines(group, width) if line]


def break_even_plot(curve: BreakEvenCurve, width: int, height: int) -> Content:
    """Return the plot of the total time over the number of calls, for a run and its baseline, with the break-even."""
    last = curve.calls
    ours = [(0.0, 0.0)] + [(float(calls), curve.seconds_after(calls)) for calls in (1, last)]
    theirs = ((0.0, 0.0), (float(last), last * curve.baseline_seconds))
    marks = []
    if curve.break_even_calls is not None:
        calls = curve.break_even_calls
        word = counted(calls, "call")
        marks.append(Mark(float(calls), calls * curve.baseline_seconds, word))
    return line_plot(
        [
            PlotLine(curve.baseline_label, theirs, STYLES[0], dotted=True),
            PlotLine(curve.label, tuple(ours), STYLES[1]),
        ],
        Axis("calls", count_tick, zero=True),
        Axis("total time", seconds_tick, zero=True),
        width,
        height,
        marks,
    )


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
