"""The facts about a run as lines of text: figures, check, memory, environment, warnings and published figures.

All functions are pure, from values to `Content`. An unknown value is a dash; an estimate is labelled as one.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.analysis.memory import peak_memory
from jaxprof.analysis.run_result import modes_text, what_is_wrong, worst_element
from jaxprof.report.runs import break_even_text, one_time_text
from jaxprof.text import safe, safe_lines
from jaxprof.tui.kit.format import (
    half_width,
    interval,
    speedup_text,
    versus_style,
)
from jaxprof.tui.kit.phase_bars import STYLES, plain_bar, title
from jaxprof.tui.kit.table_columns import Cell, TableColumn, header_line, placed, row_line
from jaxprof.units import UNKNOWN, bytes_, counted, integer, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.run_result import RunResult
    from jaxprof.events import Scalar

NAME = 15
_NOTES_FROM = 74
"""Width from which the table of phases has notes."""


def fact(name: str, value: str | Content, width: int, note: str = "", style: str = "") -> list[Content]:
    """Return a name, a value, and a dimmed note on where it comes from: one line, or more where they need them."""
    shown = value if isinstance(value, Content) else Content.styled(safe(value), style)
    if note:
        shown = Content.assemble(shown, "  ", (safe(note), "$quiet"))
    first, *others = shown.wrap(max(12, width - NAME)) or [Content("")]
    indent = Content(" " * NAME)
    return [Content.styled(f"{name:<{NAME}}", "$text-muted") + first, *(indent + line for line in others)]


def wrapped(text: str, width: int, style: str = "", indent: str = "") -> list[Content]:
    """Return text from outside, made safe and wrapped to `width`."""
    lines: list[Content] = []
    for line in safe_lines(text):
        lines += [
            Content.styled(part, style)
            for part in textwrap.wrap(line, max(10, width), initial_indent=indent, subsequent_indent=indent) or [""]
        ]
    return lines


def figure_lines(result: RunResult, baseline: str, width: int, side: str = "") -> list[Content]:
    """Return the figures of the steady run, each with its interval or its source. `side`: which side of a
    comparison the run is."""
    summary, run = result.summary, result.run
    lines = fact("side", side, width) if side else []
    if summary is None:
        return lines
    lines += fact("median", f"{seconds(summary.median)}{half_width(summary)}", width, interval(summary), "bold")
    calls = run.series["run"].calls_per_sample
    spread = f"{seconds(summary.minimum)} to {seconds(summary.maximum)}, MAD {seconds(summary.mad)}"
    lines += fact("samples", integer(summary.count) + (f" of {calls} calls" if calls > 1 else ""), width, spread)
    if summary.p95 is not None:
        lines += fact("mean", seconds(summary.mean), width, f"95 % took at most {seconds(summary.p95)}")
    if result.modes is not None:
        lines += fact("two modes", modes_text(result.modes), width, "the median is typical of neither", "$warning")
    if result.moved_nothing:
        lines += fact("speed-up", UNKNOWN, width, "nothing was moved: the result shares its argument's memory")
    if result.versus is not None:
        speedup = result.versus.speedup
        text = Content.styled(speedup_text(speedup), versus_style(result))
        basis = f", {speedup.basis}" if speedup.verdict != "inconclusive" else ""
        lines += fact("speed-up", text, width, speedup.words(baseline) + basis)
        if result.once_seconds is not None:
            lines += fact("break-even", break_even_text(result), width, "until the one-time cost is won back")
            if result.one_time_phases:
                whole = f"{seconds(sum(result.one_time_phases.values()))}: "
                lines += fact("one-time cost", whole + one_time_text(result), width, style="$quiet")
    if run.plan.how != "numpy":
        note = "median, until the call returned"
        lines += fact("dispatch", seconds(result.dispatch_median_seconds), width, note)
        note = "median a call, awaiting only the last of many"
        lines += fact("pipelined", seconds(result.pipelined_median_seconds), width, note)
    if result.first_after_pause_seconds is not None:
        note = "median of the first calls after the turn of another run"
        lines += fact("after pause", seconds(result.first_after_pause_seconds), width, note)
    cost = result.cost
    if cost.source or cost.note:
        note = f"{scaled(cost.flops, 'FLOP')} a call"
        lines += fact("rate", scaled(result.flops_per_second, "FLOP/s"), width, note)
        note = f"{scaled(cost.bytes_accessed, 'B')} a call"
        lines += fact("traffic", scaled(result.bytes_per_second, "B/s"), width, note)
        for words in filter(None, (cost.source and f"source: {cost.source}", cost.note)):
            lines += fact("", words, width, style="$quiet")
    return [*lines, *check_lines(result, width)]


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
    word = Content.styled("✓ right", "$better") if check.passed else Content.styled("✗ wrong", "bold $error")
    lines = fact("result", word, width, note)
    if not check.passed:
        lines += wrapped(what_is_wrong(check), width, "$error", indent=" " * NAME)
    elif worst_element(check):
        lines += fact("", f"furthest off{worst_element(check)}", width, style="$quiet")
    return lines


def phase_lines(result: RunResult, width: int) -> list[Content]:
    """Return all phases, with start-up and copies: time, bar, bytes, rate and a note."""
    if not result.phase_seconds:
        return []
    longest = max((value for value in result.phase_seconds.values() if value), default=0.0)
    room_for_notes = width >= _NOTES_FROM
    bar_width = max(5, min(30, width - 12 - 9 - 25 - (28 if room_for_notes else 0)))

    def moved(phase: str) -> int | None:
        timing = result.run.phases.get(phase)
        return timing.bytes if timing is not None else None

    def size(phase: str) -> str:
        count = moved(phase)
        return bytes_(count) if count is not None else ""

    def rate(phase: str) -> Cell:
        timing, took, count = result.run.phases.get(phase), result.phase_seconds[phase], moved(phase)
        if timing is not None and timing.zero_copy:
            return "zero-copy", "$accent"
        return scaled(count / took, "B/s") if count and took else ""

    def picture(phase: str) -> Cell:
        took = result.phase_seconds[phase]
        return plain_bar(took / longest, bar_width, STYLES.get(phase, "$quiet")) if took and longest else ""

    def time(phase: str) -> Cell:
        return seconds(result.phase_seconds[phase]), "bold" if phase == "run" else ""

    layout = placed(
        (
            TableColumn[str]("phase", lambda phase: (title(phase), STYLES.get(phase, "$quiet")), 12, gap=0),
            TableColumn("time", time, 9, right=True, gap=2),
            TableColumn("", picture, bar_width, gap=2),
            TableColumn("bytes", size, 9, right=True, style="$text-muted", gap=2),
            TableColumn("rate", rate, 9, right=True, style="$text-muted", gap=2 if room_for_notes else 0),
            *([TableColumn[str]("", lambda phase: _phase_note(result, phase), 0, weight=1, style="$quiet")]
              if room_for_notes else []),
        ),
        width,
        margin=0,
    )  # fmt: skip
    lines = [header_line(layout).stylize("bold $text-muted")]
    lines += [row_line(phase, layout, width) for phase in result.phase_seconds]
    return [line.truncate(width, ellipsis=True) for line in lines]


def _phase_note(result: RunResult, phase: str) -> str:
    """Return how the figure was measured, or the engine's note on it."""
    timing = result.run.phases.get(phase)
    if timing is not None and timing.note:
        return timing.note
    if timing is not None and timing.zero_copy:
        return "no byte was moved"
    summary = result.transfers.get(phase) or (result.summary if phase == "run" else None)
    return f"median of {counted(summary.count, 'sample')}" if summary is not None else ""


def memory_lines(result: RunResult, width: int) -> list[Content]:
    """Return the memory of the compiled program and of the allocator."""
    memory = result.run.memory
    if memory is None:
        return []
    analysis = "XLA's memory_analysis"
    rows = (
        ("peak memory", peak_memory(result.run), "what the program holds while it runs, as XLA planned it"),
        ("arguments", memory.argument_bytes, analysis),
        ("outputs", memory.output_bytes, analysis),
        ("donated", memory.alias_bytes or None, "of the outputs, reusing the memory of arguments"),
        ("temporaries", memory.temporary_bytes, analysis),
        ("allocator peak", memory.allocator_peak_bytes, _limit(memory.allocator_limit_bytes)),
    )
    return [line for name, value, note in rows if value is not None for line in fact(name, bytes_(value), width, note)]


def _limit(limit: int | None) -> str:
    return "measured" if limit is None else f"measured, of {bytes_(limit)}"


def environment_lines(result: RunResult, width: int) -> list[Content]:
    """Return the environment of the run: versions, device, settings."""
    environment = result.run.environment
    if environment is None:
        return []
    versions = f"Python {environment.python}, NumPy {environment.numpy}"
    if environment.jax is not None:
        versions += f", jax {environment.jax}" + (
            f" (jaxlib {environment.jaxlib})" if environment.jaxlib != environment.jax else ""
        )
    lines = fact("versions", versions, width)
    device = next((entry for entry in environment.devices if entry.get("id") == result.run.plan.device), None)
    if device is not None:
        lines += fact("device", result.run.plan.device, width, str(device.get("kind", "")))
    settings = [
        f"{name.replace('_', ' ')} {_plain(value)}" for name, value in environment.settings.items() if value is not None
    ]
    if settings:
        lines += fact("settings", " · ".join(settings), width)
    lines += fact("python", result.run.python or UNKNOWN, width)
    return lines


def _plain(value: Scalar) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def warning_lines(result: RunResult, width: int) -> list[Content]:
    """Return each warning with its advice."""
    lines: list[Content] = []
    for warning in result.warnings:
        message = wrapped(warning.message, width - 2, "$warning", "  ")
        if message:
            message[0] = Content.assemble(("! ", "bold $warning"), message[0][2:])
        lines += [*message, *wrapped(warning.advice, width - 2, "$text-muted", "  ")]
    return lines


def failure_lines(result: RunResult, width: int) -> list[Content]:
    """Return the error, its advice, and its traceback."""
    run = result.run
    if not run.shown.error or run.shown.status == "ok":
        return []
    lines = [*wrapped(run.shown.error, width, "$error"), *wrapped(run.shown.advice, width, "$text-muted")]
    trace = run.finished.traceback if run.finished is not None else ""
    if trace.strip():
        lines += [Content(""), *(Content.styled(line, "$quiet") for line in safe_lines(trace.rstrip()))]
    return lines


_MOST_COMPILED = 12


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
