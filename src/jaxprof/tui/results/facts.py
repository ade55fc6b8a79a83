"""The facts about a run as lines of text: figures, check, memory, environment, warnings and published figures.

All functions are pure, from values to `Content`. An unknown value is a dash, or is left out; an estimate is labelled
as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.analysis.run_result import modes_text, what_is_wrong, worst_element
from jaxprof.analysis.session_difference import environment_facts
from jaxprof.facts import Fact, column, pick
from jaxprof.facts.runs import RUNS, RunRow
from jaxprof.report.renderers import Table
from jaxprof.report.runs import break_even_text, one_time_text
from jaxprof.text import safe, safe_lines
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.format import (
    half_width,
    interval,
    speedup_text,
    versus_style,
)
from jaxprof.tui.kit.phase_bars import title
from jaxprof.units import UNKNOWN, bytes_, counted, integer, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.run_result import RunResult

NAME = 15
_ONE_CALL = pick(
    RUNS.facts, "dispatch_median_seconds", "pipelined_median_seconds", "first_after_pause_seconds", "flops",
    "flops_per_second", "accessed_bytes", "bytes_per_second",
)  # fmt: skip
"""Facts of one call."""
_MEMORY = pick(RUNS.facts, "peak_bytes", "argument_bytes", "output_bytes", "temporary_bytes", "allocator_peak_bytes")
_MOST_COMPILED = 12
"""Most functions listed that were compiled op by op."""


def fact(name: str, value: str | Content, width: int, note: str = "", style: str = "") -> list[Content]:
    """Return a name, a value, and a dimmed note on where it comes from: one line, or more where they need them."""
    shown = value if isinstance(value, Content) else Content.styled(safe(value), style)
    if note:
        shown = Content.assemble(shown, "  ", (safe(note), "$quiet"))
    first, *others = shown.wrap(max(12, width - NAME)) or [Content("")]
    indent = Content(" " * NAME)
    return [Content.styled(f"{name:<{NAME}}", "$text-muted") + first, *(indent + line for line in others)]


def _paragraphs(text: str, width: int, style: str = "", head: str = "") -> Iterator[Content]:
    """Yield the lines of a text from outside, made safe and wrapped, below each other behind `head`."""
    for line in safe_lines(text):
        yield from hang(Content.styled(head, style), line, width, style)


def figure_lines(result: RunResult, baseline: str, width: int, side: str = "") -> list[Content]:
    """Return the figures of the steady run, each with its interval or its source. `side`: which side of a comparison
    the run is."""
    summary, run = result.summary, result.run
    lines: list[Content] = []

    def add(name: str, value: str | Content, note: str = "", style: str = "") -> None:
        lines.extend(fact(name, value, width, note, style) if value else ())

    add("side", side)
    if summary is None:
        return lines
    add("median", f"{seconds(summary.median)}{half_width(summary)}", interval(summary), "bold")
    calls = run.series["run"].calls_per_sample
    spread = f"{seconds(summary.minimum)} to {seconds(summary.maximum)}, MAD {seconds(summary.mad)}"
    add("samples", integer(summary.count) + (f" of {calls} calls" if calls > 1 else ""), spread)
    if summary.p95 is not None:
        add("mean", seconds(summary.mean), f"95 % took at most {seconds(summary.p95)}")
    if result.modes is not None:
        add("two modes", modes_text(result.modes), "the median is typical of neither", "$warning")
    if result.moved_nothing:
        add("speed-up", UNKNOWN, "nothing was moved: the result shares its argument's memory")
    if result.versus is not None:
        speedup = result.versus.speedup
        basis = f", {speedup.basis}" if speedup.verdict != "inconclusive" else ""
        add("speed-up", speedup_text(speedup), speedup.words(baseline) + basis, versus_style(result))
        if result.once_seconds is not None:
            add("break-even", break_even_text(result), "until the one-time cost is won back")
            if result.one_time_phases:
                whole = seconds(sum(result.one_time_phases.values()))
                add("one-time cost", f"{whole}: {one_time_text(result)}", style="$quiet")
    for words in filter(None, (result.cost.source and f"source: {result.cost.source}", result.cost.note)):
        add("cost", words, style="$quiet")
    return [*lines, *_of_relation(_ONE_CALL, result, width), *check_lines(result, width)]


def _of_relation(facts: Iterable[Fact[RunRow]], result: RunResult, width: int) -> Iterator[Content]:
    """Yield those of the facts of a run that are known, each with its meaning."""
    row = RunRow("", result, result.run.shown)
    for each in facts:
        if (text := each.text(row)) not in ("", UNKNOWN):
            name = each.title or each.key.removesuffix("_bytes").replace("_", " ")
            yield from fact(name, text, width, each.meaning.partition(";")[0])


def check_lines(result: RunResult, width: int) -> list[Content]:
    """Return whether the result is right, what it was compared with, and within which tolerance."""
    check = result.run.check
    if check is None:
        return []
    values = [f"{name} {value:.2g}" for name, value in (("error", check.max_relative_error),
             ("tolerance", check.tolerance)) if value is not None]  # fmt: skip
    note = ", ".join([*values, *(words for words in (check.against, check.note) if words)])
    if check.passed is None:
        return fact("result", UNKNOWN, width, note)
    if not check.passed:
        wrong = _paragraphs(what_is_wrong(check), width, "$error", " " * NAME)
        return [*fact("result", "✗ wrong", width, note, "bold $error"), *wrong]
    lines = fact("result", "✓ right", width, note, "$better")
    if worst_element(check):
        lines += fact("", f"furthest off{worst_element(check)}", width, style="$quiet")
    return lines


def phase_table(result: RunResult) -> Table[str]:
    """Return the table of all phases, with start-up and copies: time, bytes, rate, and how it was measured."""
    timings = result.run.phases

    def moved(phase: str) -> int | None:
        return timings[phase].bytes if phase in timings else None

    def rate(phase: str) -> str:
        took, count = result.phase_seconds[phase], moved(phase)
        if phase in timings and timings[phase].zero_copy:
            return "zero-copy"
        return scaled(count / took, "B/s") if count and took else ""

    def note(phase: str) -> str:
        timing = timings.get(phase)
        if timing is not None and (timing.note or timing.zero_copy):
            return timing.note or "no byte was moved"
        summary = result.transfers.get(phase) or (result.summary if phase == "run" else None)
        return f"median of {counted(summary.count, 'sample')}" if summary is not None else ""

    columns: tuple[Fact[str], ...] = (
        column("phase", title),
        column("time", lambda phase: result.phase_seconds[phase], seconds),
        column("bytes", moved, lambda count: "" if count is None else bytes_(count)),
        column("rate", rate, str, right=True),
        column("", note, str, gives_way=True),
    )
    return Table(columns, tuple(result.phase_seconds))


def memory_lines(result: RunResult, width: int) -> list[Content]:
    """Return the memory of the compiled program and of the allocator."""
    return list(_of_relation(_MEMORY, result, width))


def environment_lines(result: RunResult, width: int) -> list[Content]:
    """Return the environment of the run: versions, device, settings."""
    if result.run.environment is None:
        return []
    known = environment_facts(result.run)
    settings = " · ".join(f"{name.replace('_', ' ')} {value}" for name, value in known.items())
    return [*fact("settings", settings, width), *fact("interpreter", result.run.python or UNKNOWN, width)]


def warning_lines(result: RunResult, width: int) -> list[Content]:
    """Return each warning with its advice."""
    lines: list[Content] = []
    for warning in result.warnings:
        lines += hang(Content.styled("! ", "bold $warning"), warning.message, width, "$warning")
        lines += _paragraphs(warning.advice, width, "$text-muted", "  ")
    return lines


def failure_lines(result: RunResult, width: int) -> list[Content]:
    """Return the error, its advice, and its traceback."""
    run = result.run
    if not run.shown.error or run.shown.status == "ok":
        return []
    lines = [*_paragraphs(run.shown.error, width, "$error"), *_paragraphs(run.shown.advice, width, "$text-muted")]
    trace = run.finished.traceback.rstrip() if run.finished is not None else ""
    if trace.strip():
        lines += [Content(""), *(Content.styled(line, "$quiet") for line in safe_lines(trace))]
    return lines


def compile_lines(result: RunResult, width: int) -> list[Content]:
    """Return the functions that were compiled op by op, longest first."""
    totals: dict[str, list[float]] = {}
    for compiled in result.run.compiles:
        totals.setdefault(compiled.function, []).append(compiled.seconds)
    if not totals:
        return []
    ranked = sorted(totals.items(), key=lambda item: -sum(item[1]))
    lines = [line for name, spent in ranked[:_MOST_COMPILED] for line in fact(seconds(sum(spent)), name, width)]
    hidden = len(ranked) - _MOST_COMPILED
    if hidden > 0:
        lines.append(Content.styled(f"{hidden} more", "$quiet"))
    return lines
