"""A sweep as pictures: time and speed-up over size on logarithmic axes, and the table behind them. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.safe_text import columns, safe
from jaxprof.tui.widgets.drawing import cell
from jaxprof.tui.widgets.line_plot import (
    MARKERS,
    STYLES,
    Axis,
    Line,
    Mark,
    count_tick,
    line_plot,
    ratio_tick,
    seconds_tick,
)
from jaxprof.units import UNKNOWN, integer, ratio, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.results import SweepGroup, SweepLine


def _style(sweep: SweepGroup, line: SweepLine) -> tuple[str, str]:
    """Colour and marker of a line, the same in both plots; the baseline's is the quiet one."""
    if line is sweep.baseline:
        return STYLES[0], MARKERS[0]
    others = [other for other in sweep.lines if other is not sweep.baseline]
    index = others.index(line)
    return STYLES[1 + index % (len(STYLES) - 1)], MARKERS[1 + index % (len(MARKERS) - 1)]


def _label(sweep: SweepGroup, line: SweepLine) -> str:
    return line.label if len({other.device for other in sweep.lines}) > 1 else line.variant


def time_plot(sweep: SweepGroup, width: int, height: int) -> Content:
    """Time of a call over size."""
    lines = []
    for line in sweep.lines:
        style, marker = _style(sweep, line)
        points = tuple(
            (size, one.summary.median)
            for size, one in zip(line.sizes, line.results, strict=True)
            if one.summary is not None
        )
        lines.append(Line(_label(sweep, line), points, style, marker))
    x_axis = Axis(safe(sweep.parameter), count_tick, log=True)
    return line_plot(lines, x_axis, Axis("time of a call", seconds_tick, log=True), width, height)


def speedup_plot(sweep: SweepGroup, width: int, height: int) -> Content:
    """Speed-up over the baseline, over size; the line at 1 is where both are equal, the marks are the crossovers."""
    lines = []
    sizes = [size for line in sweep.lines for size in line.sizes]
    for line in sweep.lines:
        if line is sweep.baseline:
            continue
        style, marker = _style(sweep, line)
        points = tuple(
            (size, one.versus.speedup.ratio)
            for size, one in zip(line.sizes, line.results, strict=True)
            if one.versus is not None
        )
        lines.append(Line(_label(sweep, line), points, style, marker))
    if sizes and sweep.baseline is not None:
        name = f"equal to {_label(sweep, sweep.baseline)}"
        lines.append(Line(name, ((min(sizes), 1.0), (max(sizes), 1.0)), STYLES[0], dotted=True))
    marks = [
        Mark(found.size, 1.0, f"{safe(sweep.parameter)} ≈ {rounded(found.size)}")
        for found in sweep.crossovers()
        if found.size is not None
    ]
    x_axis = Axis(safe(sweep.parameter), count_tick, log=True)
    return line_plot(lines, x_axis, Axis("speed-up", ratio_tick, log=True), width, height, marks)


def rounded(size: float) -> str:
    """An interpolated size with two digits: it is not known better."""
    return integer(float(f"{size:.2g}"))


def crossover_lines(sweep: SweepGroup) -> list[Content]:
    """Where one overtakes the other, in words."""
    return [
        Content.assemble(("◉ ", "bold $warning"), (safe(found.sentence(sweep.parameter)), "bold"))
        for found in sweep.crossovers()
    ]


def sweep_table(sweep: SweepGroup, width: int) -> list[Content]:
    """A row a size, a column a variant: the median, and its speed-up."""
    sizes = sorted({size for line in sweep.lines for size in line.sizes})
    step = max(14, min(26, (width - 12) // max(1, len(sweep.lines))))
    head = [cell(sweep.parameter, 10, "bold $text-muted", right=True), Content("  ")]
    head += [cell(_label(sweep, line), step, f"bold {_style(sweep, line)[0]}", right=True) for line in sweep.lines]
    lines = [Content.assemble(*head).truncate(width)]
    for size in sizes:
        row = [cell(scaled(size), 10, right=True), Content("  ")]
        row += [_cell(line, size, step) for line in sweep.lines]
        lines.append(Content.assemble(*row).truncate(width))
    return lines


def _cell(line: SweepLine, size: float, width: int) -> Content:
    at = dict(zip(line.sizes, line.results, strict=True)).get(size)
    if at is None or at.summary is None:
        return cell(UNKNOWN, width, "$quiet", right=True)
    text = seconds(at.summary.median)
    if at.versus is None:
        return cell(text, width, right=True)
    beside = ratio(at.versus.speedup.ratio)
    style = {"faster": "$better", "slower": "$worse"}.get(at.versus.speedup.verdict, "$text-muted")
    return cell(text, max(1, width - 7), right=True) + " " + cell(beside, 6, style, right=columns(beside) < 6)
