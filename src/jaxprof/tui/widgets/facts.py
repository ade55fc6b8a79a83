"""What is known of a run, as lines of text: figures, check, memory, environment, warnings, the published figures.

Pure functions from values to `Content`. What is unknown is a dash; what is an estimate says so.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.safe_text import columns, safe, safe_lines
from jaxprof.tui.widgets.drawing import cell
from jaxprof.tui.widgets.phase_bars import STYLES, plain_bar, title
from jaxprof.tui.widgets.wording import (
    half_width,
    interval,
    parameters_text,
    pays_off,
    speedup_style,
    speedup_text,
    verdict_text,
)
from jaxprof.units import UNKNOWN, bytes_, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.events import Scalar
    from jaxprof.results import RunResult
    from jaxprof.workloads.model import Published

NAME = 15
_KINDS = {"GPU": ("GPU", "T4", "V100", "A100", "P100", "K80"), "TPU": ("TPU",)}
"""Words by which a source's hardware is known for an accelerator."""
_CLOSE = 70
"""Columns below which a published figure is written close together."""
_NOTES_FROM = 74
"""Columns from which the table of phases has room for notes."""


def fact(name: str, value: str | Content, width: int, note: str = "", style: str = "") -> Content:
    """One line: a name, a value, and in a quieter voice where it comes from."""
    shown = value if isinstance(value, Content) else Content.styled(safe(value), style)
    line = Content.assemble((f"{name:<{NAME}}", "$text-muted"), shown, ("  ", ""), (safe(note), "$quiet"))
    return line.truncate(width, ellipsis=True)


def wrapped(text: str, width: int, style: str = "", indent: str = "") -> list[Content]:
    """Text from outside on as many lines as it takes."""
    lines: list[Content] = []
    for line in safe_lines(text):
        lines += [
            Content.styled(part, style)
            for part in textwrap.wrap(line, max(10, width), initial_indent=indent, subsequent_indent=indent) or [""]
        ]
    return lines


def figure_lines(one: RunResult, baseline: str, width: int) -> list[Content]:
    """The steady run in figures, each with its interval or its source."""
    summary, run = one.summary, one.run
    if summary is None:
        return []
    lines = [fact("median", f"{seconds(summary.median)} {half_width(summary)}", width, interval(summary), "bold")]
    calls = run.series["run"].calls_per_sample
    spread = f"{seconds(summary.minimum)} to {seconds(summary.maximum)}, MAD {seconds(summary.mad)}"
    lines.append(fact("samples", f"{summary.count}" + (f" of {calls} calls" if calls > 1 else ""), width, spread))
    if one.versus is not None:
        found = one.versus.speedup
        text = Content.styled(speedup_text(found), speedup_style(found))
        lines.append(fact("speed-up", text, width, verdict_text(found, baseline)))
        if one.once_seconds is not None:
            note = f"once-only costs of {seconds(one.once_seconds)}"
            lines.append(fact("pays off after", pays_off(one), width, note))
    if run.plan.how != "numpy":
        note = "until the call returned"
        lines.append(fact("dispatch", seconds(one.dispatch_median_seconds), width, note))
        note = "when only the last is awaited"
        lines.append(fact("pipelined", seconds(one.pipelined_median_seconds), width, note))
    if one.flops is not None or one.bytes_accessed is not None:
        note = f"{scaled(one.flops, 'FLOP')} a call, an estimate"
        lines.append(fact("rate", scaled(one.flops_per_second, "FLOP/s"), width, note))
        note = f"{scaled(one.bytes_accessed, 'B')} a call, an estimate"
        lines.append(fact("traffic", scaled(one.bytes_per_second, "B/s"), width, note))
        if run.cost is not None:
            lines.append(
                Content.styled(" " * NAME + f"by {safe(run.cost.source)}", "$quiet").truncate(width, ellipsis=True)
            )
    return [*lines, *check_lines(one, width)]


def check_lines(one: RunResult, width: int) -> list[Content]:
    """Whether the result is the right one, against what, and how exactly."""
    check = one.run.check
    if check is None:
        return []
    known = [f"{name} {value:.2g}" for name, value in (("error", check.max_relative_error),
             ("tolerance", check.tolerance)) if value is not None]  # fmt: skip
    note = ", ".join([*known, *(words for words in (check.against, check.note) if words)])
    if check.passed is None:
        return [fact("result", UNKNOWN, width, note)]
    word = Content.styled("✓ right", "$better") if check.passed else Content.styled("✗ wrong", "bold $error")
    return [fact("result", word, width, note)]


def phase_lines(one: RunResult, width: int) -> list[Content]:
    """All phases, start-up and copies among them: time, share of what was paid, bytes, rate, and what to know of it."""
    if not one.phase_seconds:
        return []
    longest = max((value for value in one.phase_seconds.values() if value), default=0.0)
    room_for_notes = width >= _NOTES_FROM
    bar_width = max(5, min(30, width - NAME - 9 - 25 - (28 if room_for_notes else 0)))
    head = f"{'phase':<{NAME}}{'time':>9}  {'':<{bar_width}}  {'bytes':>9}  {'rate':>9}"
    lines = [Content.styled(head, "bold $text-muted").truncate(width)]
    for phase, value in one.phase_seconds.items():
        found = one.run.phases.get(phase)
        moved = found.bytes if found is not None else None
        zero_copy = bool(found is not None and found.zero_copy)
        rate = scaled(moved / value, "B/s") if moved and value else ""
        style = STYLES.get(phase, "$quiet")
        picture = plain_bar(value / longest, bar_width, style) if value and longest else Content(" " * bar_width)
        line = Content.assemble(
            (f"{title(phase):<{NAME}}", style),
            cell(seconds(value), 9, "bold" if phase == "run" else "", right=True),
            "  ",
            picture,
            "  ",
            cell(bytes_(moved) if moved is not None else "", 9, "$text-muted", right=True),
            "  ",
            cell("zero-copy" if zero_copy else rate, 9, "$accent" if zero_copy else "$text-muted", right=True),
            (f"  {safe(_phase_note(one, phase))}" if room_for_notes else "", "$quiet"),
        )
        lines.append(line.truncate(width, ellipsis=True))
    return lines


def _phase_note(one: RunResult, phase: str) -> str:
    """How the figure came about, or what the engine said of it."""
    found = one.run.phases.get(phase)
    if found is not None and found.note:
        return found.note
    if found is not None and found.zero_copy:
        return "shared: no byte was moved"
    summary = one.transfers.get(phase) or (one.summary if phase == "run" else None)
    return f"median of {summary.count} samples" if summary is not None else ""


def memory_lines(one: RunResult, width: int) -> list[Content]:
    """What the compiled program and the allocator took."""
    memory = one.run.memory
    if memory is None:
        return []
    analysis = "XLA's memory_analysis"
    rows = (
        ("arguments", memory.argument_bytes, analysis),
        ("output", memory.output_bytes, analysis),
        ("temporary", memory.temporary_bytes, analysis),
        ("peak", memory.peak_bytes, "XLA's estimate"),
        ("allocator peak", memory.allocator_peak_bytes, _limit(memory.allocator_limit_bytes)),
    )
    return [fact(name, bytes_(value), width, note) for name, value, note in rows if value is not None]


def _limit(limit: int | None) -> str:
    return "measured" if limit is None else f"measured, of {bytes_(limit)}"


def environment_lines(one: RunResult, width: int) -> list[Content]:
    """What the run found around it."""
    found = one.run.environment
    if found is None:
        return []
    versions = f"Python {found.python}, NumPy {found.numpy}"
    if found.jax is not None:
        versions += f", jax {found.jax}" + (f" (jaxlib {found.jaxlib})" if found.jaxlib != found.jax else "")
    lines = [fact("versions", versions, width)]
    device = next((entry for entry in found.devices if entry.get("id") == one.run.plan.device), None)
    if device is not None:
        lines.append(fact("device", one.run.plan.device, width, str(device.get("kind", ""))))
    known = [f"{name.replace('_', ' ')} {_plain(value)}" for name, value in found.settings.items() if value is not None]
    if known:
        first, *rest = textwrap.wrap(safe(" · ".join(known)), max(20, width - NAME))
        lines.append(fact("settings", first, width))
        lines += [Content(" " * NAME + line) for line in rest]
    lines.append(fact("python", one.run.python or UNKNOWN, width))
    return lines


def _plain(value: Scalar) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def warning_lines(one: RunResult, width: int) -> list[Content]:
    """Each warning with the advice that belongs to it."""
    lines: list[Content] = []
    for warning in one.warnings:
        message = wrapped(warning.message, width - 2, "$warning", "  ")
        if message:
            message[0] = Content.assemble(("! ", "bold $warning"), message[0][2:])
        lines += [*message, *wrapped(warning.advice, width - 2, "$text-muted", "  ")]
    return lines


def failure_lines(one: RunResult, width: int, *, traceback: bool = True) -> list[Content]:
    """What went wrong, what mends it, and where it was raised."""
    run = one.run
    if not run.error or run.status == "ok":
        return []
    lines = [*wrapped(run.error, width, "$error"), *wrapped(run.advice, width, "$text-muted")]
    trace = run.finished.traceback if run.finished is not None and traceback else ""
    if trace.strip():
        lines += [Content(""), *(Content.styled(line, "$quiet") for line in safe_lines(trace.rstrip()))]
    return lines


def compile_lines(one: RunResult, width: int, most: int = 12) -> list[Content]:
    """What was compiled op by op, the longest first."""
    totals: dict[str, list[float]] = {}
    for seen in one.run.compiles:
        totals.setdefault(seen.function, []).append(seen.seconds)
    if not totals:
        return []
    ranked = sorted(totals.items(), key=lambda item: -sum(item[1]))
    lines = [fact(seconds(sum(spent)), name, width) for name, spent in ranked[:most]]
    hidden = len(ranked) - most
    if hidden > 0:
        lines.append(Content.styled(f"{hidden} more", "$quiet"))
    return lines


def published_lines(
    figures: Iterable[Published], measured: Sequence[RunResult], parameters: dict[str, Scalar], width: int
) -> list[Content]:
    """What others printed beside what was measured here, with what keeps the two from being like for like."""
    lines: list[Content] = []
    close = width < _CLOSE
    variant_width, phase_width = (14, 10) if close else (20, 13)
    for figure in figures:
        value = seconds(figure.seconds) if figure.seconds is not None else figure.text or UNKNOWN
        ours = [
            one
            for one in measured
            if one.run.plan.variant == figure.variant and one.phase_seconds.get(figure.phase) is not None
        ]
        here = [f"{seconds(one.phase_seconds[figure.phase])} on {one.run.plan.device}" for one in ours]
        said = ", ".join(here) if here else "not measured here"
        head = Content.assemble(
            cell(figure.variant, variant_width - 1),
            " ",
            cell(title(figure.phase, phase_width - 1), phase_width, STYLES.get(figure.phase, "")),
            cell(value, max(10, columns(safe(value)) + 2), "bold"),
            ("here ", "$text-muted") if here else "",
            (said, "" if here else "$quiet"),
        )
        lines.append(head.truncate(width, ellipsis=True))
        reasons = _unlike(figure, parameters, [one.run.plan.device for one in ours])
        note = f"{figure.hardware} · {figure.source} · statistic: {figure.statistic}"
        lines += wrapped(note, width - 2, "$quiet", "  ")
        if reasons:
            lines += wrapped(f"≠ not like for like: {'; '.join(reasons)}", width - 2, "$warning", "  ")
    return lines


def _unlike(figure: Published, parameters: dict[str, Scalar], devices: Sequence[str]) -> list[str]:
    """Why a published figure is not the same measurement: its own caveat, another kind of device, other sizes."""
    reasons = [figure.caveat] if figure.caveat else []
    kind = next((kind for kind, names in _KINDS.items() if any(name in figure.hardware for name in names)), "CPU")
    reasons += [
        f"a {kind} there, {device} here"
        for device in dict.fromkeys(devices)
        if (device[:3] == "cpu") is not (kind == "CPU")
    ]
    different = {name: value for name, value in figure.parameters.items() if parameters.get(name, value) != value}
    if different:
        reasons.append(f"{parameters_text(different)} there")
    return reasons
