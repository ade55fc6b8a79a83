"""Lines over two axes, linear or logarithmic: break-even curves, and time or speed-up over size. A pure function.

Written by hand: Textual has only a `Sparkline`, without axes.

Every line has its own marker at its points and in the legend, so that lines differ even without colours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from textual.content import Content

from jaxprof.text import columns, shorten
from jaxprof.tui.kit.canvas import Canvas, Scale, spanning
from jaxprof.units import scaled, seconds

STYLES = ("$baseline", "$primary", "$phase-compile", "$phase-transfer", "$phase-lower", "$phase-first", "$better")
MARKERS = "●▲◆■○◇□"


@dataclass(frozen=True, slots=True)
class PlotLine:
    """Points joined by straight lines, in the axes' units."""

    label: str
    """In the legend; empty: not there."""
    points: tuple[tuple[float, float], ...]
    style: str = "$primary"
    marker: str = ""
    """Drawn at each point; empty for none."""
    dotted: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: its title, the format of its numbers, and whether it is logarithmic."""

    title: str
    text: Callable[[float], str]
    log: bool = False
    zero: bool = False
    """Whether a linear axis begins at 0."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A labelled point of interest."""

    x: float
    y: float
    label: str
    style: str = "bold $warning"
    character: str = "◉"


def seconds_tick(value: float) -> str:
    """A round time beside an axis: `100 ms`, `5 µs`, `0`."""
    return "0" if value == 0 else _without_zeros(seconds(value))


def count_tick(value: float) -> str:
    """A round count beside an axis: `10 k`, `2.5 M`."""
    return _without_zeros(scaled(value))


def ratio_tick(value: float) -> str:
    """A round ratio beside an axis: `0.5×`, `10×`."""
    return f"{value:g}×"


def _without_zeros(text: str) -> str:
    number, space, unit = text.partition(" ")
    return (number.rstrip("0").rstrip(".") if "." in number else number) + space + unit


def line_plot(
    lines: Sequence[PlotLine], x_axis: Axis, y_axis: Axis, width: int, height: int, marks: Sequence[Mark] = ()
) -> Content:
    """The plot in exactly `width` by `height` columns: title and legend, the lines, the axis below with its numbers."""
    frame = _frame(lines, x_axis, y_axis, width, height)
    if frame is None:
        some = any(line.points for line in lines)
        return _nothing("no room for the plot" if some else "no points to plot yet", width, height)
    x_scale, y_scale, numbers, gutter = frame
    canvas = Canvas(width - gutter - 1, height - 3)
    _draw(canvas, lines, x_scale, y_scale)
    for mark in marks:
        _put_mark(canvas, mark, x_scale, y_scale)
    body = canvas.framed({canvas.row_of(y_scale.place(tick)): text for tick, text in numbers.items()}, gutter)
    return Content("\n").join(
        [_head(lines, x_axis, y_axis, width), *body, *_x_axis(x_axis, x_scale, gutter, canvas.width)]
    )


def x_at(lines: Sequence[PlotLine], x_axis: Axis, y_axis: Axis, width: int, height: int, column: int) -> float | None:
    """The value of the x axis at a column of the plot; the nearest one for a column beside the axis. None if there is
    no plot."""
    frame = _frame(lines, x_axis, y_axis, width, height)
    if frame is None:
        return None
    x_scale, _, _, gutter = frame
    share = (column - gutter - 1) / max(1, width - gutter - 2)
    return x_scale.value(min(1.0, max(0.0, share)))


def _frame(
    lines: Sequence[PlotLine], x_axis: Axis, y_axis: Axis, width: int, height: int
) -> tuple[Scale, Scale, dict[float, str], int] | None:
    """Both scales, the numbers of the y axis, and the columns that they take; None if nothing can be drawn."""
    points = [point for line in lines for point in line.points]
    if not points or width < 24 or height < 6:
        return None
    x_scale = spanning([x for x, _ in points], log=x_axis.log, zero=x_axis.zero, margin=0.03)
    y_scale = spanning([y for _, y in points], log=y_axis.log, zero=y_axis.zero)
    numbers = {tick: y_axis.text(tick) for tick in y_scale.ticks(max(2, (height - 3) // 2))}
    return x_scale, y_scale, numbers, max((columns(text) for text in numbers.values()), default=0)


def _nothing(text: str, width: int, height: int) -> Content:
    top = max(0, (height - 1) // 2)
    return Content("\n" * top) + Content.styled(shorten(text, max(1, width)).center(width), "$quiet")


def _head(lines: Sequence[PlotLine], x_axis: Axis, y_axis: Axis, width: int) -> Content:
    """The title with the scales, and the legend."""
    scales = {(True, True): ", log-log", (False, True): ", log", (True, False): " (log)"}
    title = f"{y_axis.title} over {x_axis.title}{scales.get((x_axis.log, y_axis.log), '')}"
    parts: list[tuple[str, str]] = [(shorten(title, width), "$text-muted")]
    used = columns(parts[0][0])
    for line in lines:
        if not line.label:
            continue
        text = f"{line.marker or ('┄' if line.dotted else '─')} {shorten(line.label, 24)}"
        if used + columns(text) + 3 > width:
            break
        parts += [("   ", ""), (text, line.style)]
        used += columns(text) + 3
    return Content.assemble(*parts, " " * (width - used))


def _draw(canvas: Canvas, lines: Sequence[PlotLine], x_scale: Scale, y_scale: Scale) -> None:
    for line in lines:
        places = [
            (x_scale.place(x), y_scale.place(y))
            for x, y in line.points
            if math.isfinite(x_scale.place(x)) and math.isfinite(y_scale.place(y))
        ]
        dots = [canvas.dot_at(x, y) for x, y in places]
        for start, end in pairwise(dots):
            canvas.line(start, end, line.style, every=3 if line.dotted else 1)
        if len(dots) == 1:
            canvas.dot(*dots[0], line.style)
    for line in lines:  # markers last: no line may hide one
        for x, y in line.points if line.marker else ():
            column, row = canvas.dot_at(x_scale.place(x), y_scale.place(y))
            canvas.put(column // 2, row // 4, line.marker, line.style)


def _put_mark(canvas: Canvas, mark: Mark, x_scale: Scale, y_scale: Scale) -> None:
    """Draws the mark, and its label if there is room beside it."""
    x, y = x_scale.place(mark.x), y_scale.place(mark.y)
    if not (0 <= x <= 1 and 0 <= y <= 1):
        return
    dot_column, dot_row = canvas.dot_at(x, y)
    column, row = dot_column // 2, dot_row // 4
    label = f" {mark.label} "
    length = columns(label)
    canvas.put(column, row, mark.character, mark.style)
    for down in (0, 1, -1, 2, -2, 3, -3):
        for left in (column + 1, column - length):
            if canvas.free(left, row + down, length):
                canvas.put(left, row + down, label, mark.style)
                return


def _x_axis(axis: Axis, scale: Scale, gutter: int, inner: int) -> list[Content]:
    """The axis below the plot with its ticks, and their numbers."""
    line, numbers = ["─"] * inner, [" "] * inner
    free_from = 0
    for tick in scale.ticks(max(2, inner // 9)):
        column = round(scale.place(tick) * (inner - 1))
        if not 0 <= column < inner:
            continue
        line[column] = "┬"
        text = axis.text(tick)
        start = min(max(0, column - columns(text) // 2), inner - columns(text))
        if start >= free_from:
            numbers[start : start + columns(text)] = list(text)
            free_from = start + columns(text) + 2
    return [
        Content.styled(" " * gutter + "└" + "".join(line), "$rule"),
        Content.styled(" " * (gutter + 1) + "".join(numbers), "$text-muted"),
    ]
