"""All of the run under the cursor, finished or in progress, or a program; and the sweep that it is of: plots, phases as
bars, and lines of figures, check, memory, environment and warnings.

Lines are made by pure functions from values to `Content`. An unknown value is left out; an estimate is labelled as one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content

from jaxprof.analysis.runs.run_result import RunResult
from jaxprof.analysis.runs.speedup import steady_samples
from jaxprof.analysis.runs.warnings import unstable_text, worst_element
from jaxprof.base.grouping import totals
from jaxprof.base.text import safe, safe_lines, shorten
from jaxprof.base.units import UNKNOWN, bytes_, counted, integer, scaled, seconds
from jaxprof.events.finding import Finding
from jaxprof.facts import Facts, column, pick
from jaxprof.facts.runs import RUNS, RunRow
from jaxprof.findings.compare.session_difference import environment_facts
from jaxprof.report import Table
from jaxprof.report.runs import BREAK_EVEN, CHECK, MODES, RunGroup, SweepGroup, one_time_text, sweep_table
from jaxprof.session import Run, Session
from jaxprof.session.run import IMPORTED
from jaxprof.tui.kit.drawing import hang, whole_parts, wrap_content
from jaxprof.tui.kit.format import baseline_name, half_width, interval
from jaxprof.tui.kit.picture import Lines, Picture, ScrollPane, show_titles
from jaxprof.tui.kit.plots import (
    MARKERS,
    STYLES,
    Axis,
    PlotLine,
    count_tick,
    distribution,
    line_plot,
    seconds_tick,
    trend,
)
from jaxprof.tui.kit.program_summary import OF_PROGRAM
from jaxprof.tui.kit.table_columns import table_lines

_HOW = {"numpy": "NumPy on the host", "eager": "op by op", "jit": "compiled as one program"}


class ResultPanel(ScrollPane):
    """All of a row, hidden while there is nothing to show."""

    def compose(self) -> ComposeResult:
        yield Lines(id="crossovers")
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
        self,
        session: Session,
        result: RunResult | None,
        group: RunGroup | None,
        sweep: SweepGroup | None,
        findings: Sequence[Finding],
    ) -> None:
        """Show a run of `session`, what there is to do about it, and the sweep of its group; hide itself without a
        run."""
        self.display = result is not None and group is not None
        if result is None or group is None:
            return
        show_titles(self, Content(shorten(result.run.label, 60)), Content(safe(_state(result.run))))
        crossovers, table = self.query_one("#crossovers", Lines), self.query_one("#sweep-table", Lines)
        plot = self.query_one("#sweep-plot", Picture)
        plot.display = sweep is not None
        if sweep is None:
            crossovers.clear()
            table.clear()
        else:
            mark = Content.styled("◉ ", "bold $warning")
            crossings = [*sweep.crossovers()]
            crossovers.show(lambda width: [line for each in crossings for line in hang(mark, each, width, "bold")])
            table.show(partial(table_lines, sweep_table(sweep)))
            plot.show(partial(sweep_plot, sweep))
        run, summary, modes = result.run, result.summary, result.modes
        name = baseline_name(session, run)

        def head(width: int) -> list[Content]:
            advice = list[Content]()
            for each in findings:
                advice += hang(Content.styled("→ ", "bold $warning"), each.message, width)
                advice += _paragraphs(each.fix, width, "$text-muted", "  ")
            return [*failure_lines(result, width), *phase_line(result, width), *_under("what to do", advice)]

        def left(width: int) -> list[Content]:
            figures = [OF_PROGRAM] if run.is_program else _under("figures", [*figure_lines(result, name, width)])
            warnings = warning_lines(result, width, {finding.code for finding in findings})
            return [*figures, *_under("warnings", warnings)]

        def right(width: int) -> list[Content]:
            compiled = [Content(""), *table_lines(compile_table(result), width)] if run.compiles else []
            return [*compiled, *_under("environment", environment_lines(result, width))]

        def phases(width: int) -> list[Content]:
            listed = [] if run.shown.status == "running" else [*table_lines(phase_table(result), width)]
            return _under("phase by phase", listed)

        for part, draw in {"head": head, "left": left, "right": right, "each-phase": phases}.items():
            self.query_one(f"#{part}", Lines).show(draw)
        # The samples, as soon as the run takes some.
        samples = () if run.is_program else steady_samples(run)
        comes = run.shown.status == "running" and not run.is_program and run.plan.how != "compile"
        self.query_one("#samples").display = bool(samples) or comes
        for plot_of, picture in (("distribution", distribution), ("trend", trend)):
            self.query_one(f"#{plot_of}", Picture).show(
                lambda w, h, draw=picture: draw(samples, summary, w, h, modes)  # type: ignore[misc]
            )


def _state(run: Run) -> str:
    """Return how a run was measured, or while it is in progress where it is, such as `launch 2 of 3, in turns`."""
    status = run.shown.status
    if status == "running":
        number = run.launches[-1].number if run.launches else 1
        launch = f"launch {number} of {run.plan.launches}" if number > 1 else ""
        launch = shorten(run.note, 48) if run.current_phase == "run" and run.note else launch
        return " · ".join(filter(None, (launch, status, f"pid {run.pid}" if run.pid else "")))
    precision = f"precision {run.plan.precision}" if run.plan.precision else ""
    return " · ".join(filter(None, (run.plan.preset, _HOW.get(run.plan.how, run.plan.how), precision, status)))


def _under(name: str, lines: Sequence[Content]) -> list[Content]:
    return [Content(""), Content.styled(name, "bold $primary"), *lines] if lines else []


def sweep_plot(sweep: SweepGroup, width: int, height: int) -> Content:
    """Return the plot of the time of a call over the size: a line for each timed variant, the baseline dimmed."""
    several = len({line.device for line in sweep.lines}) > 1
    others = [line for line in sweep.lines if line is not sweep.baseline]
    lines = []
    for line in sweep.lines:
        at = 1 + others.index(line) % (len(STYLES) - 1) if line in others else 0
        points = tuple(line.medians.items())
        lines.append(PlotLine(line.label if several else line.variant, points, STYLES[at], MARKERS[at]))
    x_axis = Axis(safe(sweep.parameter), count_tick, log=True)
    return line_plot(lines, x_axis, Axis("time of a call", seconds_tick, log=True), width, height)


# -- figures ------------------------------------------------------------------------------------------------

NAME = 15
_MOST_COMPILED = 12
"""Most functions listed that were compiled op by op."""


def _median(row: RunRow) -> str:
    summary = row.result.summary
    return f"{seconds(summary.median)}{half_width(summary)}  {interval(summary)}" if summary is not None else ""


def _samples(row: RunRow) -> str:
    series = row.run.series.get("run")
    if row.result.summary is None or series is None:
        return ""
    calls = f" of {series.calls_per_sample} calls" if series.calls_per_sample > 1 else ""
    return f"{integer(row.result.summary.count)}{calls}"


def _speedup(row: RunRow) -> str:
    if row.result.moved_nothing:
        return "nothing was moved: the result shares its argument's memory"
    if row.result.versus is None:
        return ""
    speedup = row.result.versus.speedup
    return f"{speedup.ratio_text}  {speedup.words(row.label)} ({speedup.basis})"


def _check(row: RunRow) -> str:
    check = row.run.check
    if check is None:
        return CHECK.text(row).replace(UNKNOWN, "")
    words = (check.against, check.note, unstable_text(check) or worst_element(check).strip())
    return f"{CHECK.text(row)}  {', '.join(filter(None, words))}".replace(f"{UNKNOWN}  ", "")


FIGURES: Facts[RunRow] = (
    *pick(RUNS.facts, "side"),
    column("median", _median),
    column("samples", _samples),
    MODES,
    column("speed-up", _speedup),
    BREAK_EVEN,
    column("one-time cost", lambda row: one_time_text(row.result) if row.result.versus is not None else ""),
    column("check", _check),
    *pick(
        RUNS.facts, "minimum_seconds", "mean_seconds", "p95_seconds", "maximum_seconds", "dispatch_median_seconds",
        "pipelined_median_seconds", "first_after_pause_seconds", "flops", "flops_per_second", "accessed_bytes",
        "bytes_per_second",
    ),
    column("counted from", lambda row: f"{row.result.cost.source} {row.result.cost.note}".strip()),
    *pick(RUNS.facts, "peak_bytes", "argument_bytes", "output_bytes", "temporary_bytes", "allocator_peak_bytes"),
)  # fmt: skip
"""Facts of a run that the panel lists, if they are known; the label of the row is the name of its baseline."""


def fact(name: str, value: str, width: int, note: str = "") -> list[Content]:
    """Return a name, a value, and a dimmed note on what it means: one line, or more where they need them."""
    shown = Content.assemble(safe(value), ("  ", ""), (safe(note), "$quiet")).rstrip()
    first, *others = wrap_content(shown, max(12, width - NAME)) or [Content("")]
    indent = Content(" " * NAME)
    return [Content.styled(f"{name:<{NAME}}", "$text-muted") + first, *(indent + line for line in others)]


def _paragraphs(text: str, width: int, style: str = "", head: str = "") -> Iterator[Content]:
    for line in safe_lines(text):
        yield from hang(Content.styled(head, style), line, width, style)


def figure_lines(result: RunResult, baseline: str, width: int) -> Iterator[Content]:
    row = RunRow(baseline, result)
    for each in FIGURES:
        if (text := each.text(row)) not in ("", UNKNOWN):
            name = each.title or each.key.removesuffix("_bytes").replace("_", " ")
            yield from fact(name, text, width, each.meaning.partition(";")[0])


def phase_table(result: RunResult) -> Table[str]:
    """Return the table of all phases, with start-up and copies: time, bytes, rate, and how it was measured."""
    timings = result.run.phases

    def bytes_of(phase: str) -> int | None:
        return timings[phase].bytes if phase in timings else None

    def rate(phase: str) -> str:
        took, count = result.phase_seconds[phase], bytes_of(phase)
        if phase in timings and timings[phase].zero_copy:
            return "zero-copy"
        return scaled(count / took, "B/s") if count and took else ""

    def note(phase: str) -> str:
        timing = timings.get(phase)
        if timing is not None and (timing.note or timing.zero_copy):
            return timing.note or "no byte was moved"
        summary = result.transfers.get(phase) or (result.summary if phase == "run" else None)
        return f"median of {counted(summary.count, 'sample')}" if summary is not None else ""

    columns: Facts[str] = (
        column("phase", lambda phase: phase.replace("_", " ")),
        column("time", lambda phase: result.phase_seconds[phase], seconds),
        column("bytes", bytes_of, lambda count: "" if count is None else bytes_(count)),
        column("rate", rate, str, right=True),
        column("", note, str, gives_way=True),
    )
    return Table(columns, tuple(result.phase_seconds))


def environment_lines(result: RunResult, width: int) -> list[Content]:
    if result.run.environment is None:
        return []
    known = environment_facts(result.run)
    settings = " · ".join(f"{name}={value}" if "_" in name else f"{name} {value}" for name, value in known.items())
    # The interpreter of an opened profile only read it.
    interpreter = UNKNOWN if result.run.plan.how == IMPORTED else result.run.python or UNKNOWN
    return [*fact("settings", settings, width), *fact("interpreter", interpreter, width)]


def warning_lines(result: RunResult, width: int, left_out: Collection[str] = ()) -> list[Content]:
    """Return the warnings about a run, without those of the codes in `left_out`, which are findings."""
    lines: list[Content] = []
    for warning in (each for each in result.warnings if each.code not in left_out):
        lines += hang(Content.styled("! ", "bold $warning"), warning.message, width, "$warning")
        lines += _paragraphs(warning.advice, width, "$text-muted", "  ")
    return lines


def failure_lines(result: RunResult, width: int) -> list[Content]:
    run = result.run
    if not run.shown.error or run.shown.status == "ok":
        return []
    lines = [*_paragraphs(run.shown.error, width, "$error"), *_paragraphs(run.shown.hint, width, "$text-muted")]
    trace = run.finished.traceback.rstrip() if run.finished is not None else ""
    if trace.strip():
        lines += [Content(""), *(Content.styled(line, "$quiet") for line in safe_lines(trace))]
    return lines


def compile_table(result: RunResult) -> Table[tuple[str, float]]:
    took = totals((compiled.function, compiled.seconds) for compiled in result.run.compiles)
    columns: Facts[tuple[str, float]] = (
        column("compiled op by op", lambda row: row[0], gives_way=True),
        column("time", lambda row: row[1], seconds),
    )
    ranked = sorted(took.items(), key=lambda pair: -pair[1])
    return Table(columns, ranked, most=_MOST_COMPILED, rest="{} more")


# -- phases ---------------------------------------------------------------------------------------------------

PHASE_STYLES = {
    "start-up": "$state-import",
    "trace": "$phase-trace",
    "lower": "$phase-lower",
    "compile": "$phase-compile",
    "transfer_in": "$phase-transfer",
    "first_run": "$phase-first",
    "run": "$phase-run",
    "transfer_out": "$state-calls",
}


def phase_line(result: RunResult, width: int) -> list[Content]:
    """Return the seconds of each phase up to the first result, in the colours of the bar of the run's row."""
    parts = (
        Content.assemble(("█ ", PHASE_STYLES[phase]), f"{phase.replace('_', ' ')} {seconds(took)}")
        for phase, took in result.first_result_phases.items()
    )
    line = whole_parts(parts, width)
    return [line] if line.plain else []
