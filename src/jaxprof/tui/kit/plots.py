"""Plots, as pure functions: lines over two linear or logarithmic axes (time or speed-up over size),
and the samples of a run as a histogram, which counts outliers at its right, and in their order in time.

Written by hand: Textual has only a `Sparkline`, without axes.

Every line has its own marker at its points and in the legend, so that lines differ even without colours.
"""

from __future__ import annotations

import math
import textwrap
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from textual.content import Content

from jaxprof.base.text import columns, shorten
from jaxprof.base.units import counted, scaled, seconds
from jaxprof.base.values import frozen
from jaxprof.stats.summary import Modes, Summary, histogram, modes_text, outliers
from jaxprof.tui.kit.canvas import Canvas, Scale, axis_lines, spanning
from jaxprof.tui.kit.drawing import SPARKS, join_styled, stack_cells

STYLES = ("$baseline", "$primary", "$phase-compile", "$phase-transfer", "$phase-lower", "$phase-first", "$better")
MARKERS = "●▲◆■○◇□"


@frozen
class PlotLine:
    """Points, joined by straight lines unless they stand alone, in the units of the axes."""

    label: str
    """Name in the legend; empty leaves the line out of it."""
    points: tuple[tuple[float, float], ...]
    style: str = "$primary"
    marker: str = ""
    """Marker drawn at each point; empty for none."""
    dotted: bool = False
    joined: bool = True


@frozen
class Axis:
    """One axis: its title, the format of its numbers, and whether it is logarithmic."""

    title: str
    text: Callable[[float], str]
    log: bool = False
    zero: bool = False


@frozen
class Mark:
    x: float
    y: float
    label: str
    style: str = "bold $warning"
    character: str = "◉"


def seconds_tick(value: float) -> str:
    """Return a round time beside an axis: `100 ms`, `5 µs`, `0`."""
    return "0" if value == 0 else _without_zeros(seconds(value))


def count_tick(value: float) -> str:
    """Return a round count beside an axis: `10 k`, `2.5 M`."""
    return _without_zeros(scaled(value))


def whole_tick(value: float) -> str:
    """Return a number beside an axis of numbered things; empty between two of them."""
    return count_tick(value) if value == int(value) else ""


def _without_zeros(text: str) -> str:
    number, space, unit = text.partition(" ")
    return (number.rstrip("0").rstrip(".") if "." in number else number) + space + unit


def line_plot(
    lines: Sequence[PlotLine], x_axis: Axis, y_axis: Axis, width: int, height: int, marks: Sequence[Mark] = ()
) -> Content:
    """Return the plot in exactly `width` by `height` columns: title and legend, the lines, and the axis below."""
    points = [point for line in lines for point in line.points]
    if not points or width < 24 or height < 6:
        return nothing("no room for the plot" if points else "no points to plot yet", width, height)
    x_scale = spanning([x for x, _ in points], log=x_axis.log, zero=x_axis.zero, margin=0.03)
    y_scale = spanning([y for _, y in points], log=y_axis.log, zero=y_axis.zero)
    numbers = {tick: y_axis.text(tick) for tick in y_scale.ticks(max(2, (height - 3) // 2))}
    gutter = max(map(columns, numbers.values()), default=0)
    canvas = Canvas(width - gutter - 1, height - 3)
    for line in lines:
        fractions = [
            (x_scale.fraction(x), y_scale.fraction(y))
            for x, y in line.points
            if math.isfinite(x_scale.fraction(x)) and math.isfinite(y_scale.fraction(y))
        ]
        dots = [canvas.dot_at(x, y) for x, y in fractions]
        for dot in dots:
            canvas.dot(*dot, line.style)
        for start, end in pairwise(dots) if line.joined else ():
            canvas.line(start, end, line.style, every=3 if line.dotted else 1)
    for line in lines:  # markers come last, so that no line hides one
        for x, y in line.points if line.marker else ():
            column, row = canvas.dot_at(x_scale.fraction(x), y_scale.fraction(y))
            canvas.put(column // 2, row // 4, line.marker, line.style)
    for mark in marks:
        x, y = x_scale.fraction(mark.x), y_scale.fraction(mark.y)
        if not (0 <= x <= 1 and 0 <= y <= 1):
            continue
        dot_column, dot_row = canvas.dot_at(x, y)
        column, row = dot_column // 2, dot_row // 4
        canvas.put(column, row, mark.character, mark.style)
        # Its label stands to the right or the left, or a few rows away, where nothing is drawn yet.
        label = f" {mark.label} "
        length = columns(label)
        around = [(left, row + down) for down in (0, 1, -1, 2, -2, 3, -3) for left in (column + 1, column - length)]
        free = next((spot for spot in around if canvas.free(*spot, length)), None)
        if free is not None:
            canvas.put(*free, label, mark.style)
    head = _head(lines, x_axis, y_axis, width)
    return _with_axes(canvas, head, numbers, y_scale, axis_lines(x_scale, x_axis.text, gutter, canvas.width))


def _with_axes(
    canvas: Canvas, head: Content, numbers: Mapping[float, str], scale: Scale, below: Sequence[Content]
) -> Content:
    """Return a plot between its head and the axis `below`, with the `numbers` of its upright `scale` beside it."""
    labels = {canvas.row_of(scale.fraction(tick)): text for tick, text in numbers.items()}
    return Content("\n").join([head, *canvas.with_axis(labels, below[0].cell_length - canvas.width - 1), *below])


LIMIT_IN_VIEW = 4.0
"""A limit this many times as high as the bands would leave them a thin line at the bottom."""


def area_plot(
    bands: Sequence[PlotLine], x_axis: Axis, y_axis: Axis, width: int, height: int, marks: Sequence[Mark], limit: Mark
) -> Content:
    """Return bands on top of each other, in the columns of `line_plot`, each filled with its marker. A point holds to
    the next, which all bands have at the same x; a column shows the highest of its points. The `limit` is a line
    across, or stands in the legend if it is `LIMIT_IN_VIEW` times as high; NaN is none."""
    if width < 24 or height < 6:
        return nothing("no room for the plot", width, height)
    xs, sizes = [x for x, _ in bands[0].points], [[y for _, y in band.points] for band in bands]
    totals = [sum(each) for each in zip(*sizes, strict=True)]
    in_view = limit.y < LIMIT_IN_VIEW * max(totals)
    x_scale = Scale(xs[0], xs[-1])
    y_scale = Scale(0.0, max(*totals, limit.y if in_view else 0.0) * 1.02 or 1.0)
    numbers = {tick: y_axis.text(tick) for tick in y_scale.ticks(max(2, (height - 3) // 2))}
    gutter = max(map(columns, numbers.values()), default=0)
    canvas = Canvas(width - gutter - 1, height - 3)
    fills = {("█", band.style): band.marker for band in bands}
    edges = [x_scale.low + (x_scale.high - x_scale.low) * at / canvas.width for at in range(canvas.width + 1)]
    for column, (left, right) in enumerate(pairwise(edges)):
        first = bisect_right(xs, left)
        at = max(range(first - 1, max(bisect_left(xs, right), first)), key=totals.__getitem__)
        parts = [(of_band[at], band.style) for of_band, band in zip(sizes, bands, strict=True)]
        for up, cell in enumerate(stack_cells(parts, y_scale.high, canvas.height, f" {SPARKS}")):
            canvas.put(column, canvas.height - 1 - up, fills.get(cell, cell[0]), cell[1])
    if in_view:
        line = f"{limit.character * 2} {limit.label} ".ljust(canvas.width, limit.character)
        canvas.put(0, canvas.row_of(y_scale.fraction(limit.y)), line, limit.style)
    for mark in marks:
        column = min(canvas.width - 1, int(x_scale.fraction(mark.x) * canvas.width))
        canvas.put(column, canvas.row_of(y_scale.fraction(mark.y)), mark.character, mark.style)
    above = [PlotLine(f"{limit.label}, above", (), limit.style, limit.character)] * (limit.y > y_scale.high)
    head = _head([band for band, each in zip(bands, sizes, strict=True) if any(each)] + above, x_axis, y_axis, width)
    return _with_axes(canvas, head, numbers, y_scale, axis_lines(x_scale, x_axis.text, gutter, canvas.width))


def nothing(text: str, width: int, height: int) -> Content:
    lines = [line.center(width) for line in textwrap.wrap(text, max(8, width - 2))][:height]
    return Content.styled("\n" * max(0, (height - len(lines)) // 2) + "\n".join(lines), "$quiet")


def _head(lines: Sequence[PlotLine], x_axis: Axis, y_axis: Axis, width: int) -> Content:
    scales = {(True, True): ", log-log", (False, True): ", log", (True, False): " (log)"}
    title = f"{y_axis.title} over {x_axis.title}{scales.get((x_axis.log, y_axis.log), '')}"
    parts: list[tuple[str, str]] = [(shorten(title, width), "$text-muted")]
    used = columns(parts[0][0])
    for line in lines:
        if not line.label:
            continue
        text = f"{line.marker or ('┄' if line.dotted else '─' if line.joined else '·')} {shorten(line.label, 24)}"
        if used + columns(text) + 3 > width:
            break
        parts += [("   ", ""), (text, line.style)]
        used += columns(text) + 3
    return Content.assemble(*parts, " " * (width - used))


_FEWEST = 2
_FEWEST_ROWS = 4
"""Largest height, in rows, at which two modes are not described in words."""


def _few(samples: Sequence[float]) -> str:
    return "too few samples to draw" if samples else "no samples yet"


def distribution(
    samples: Sequence[float], summary: Summary | None, width: int, height: int, modes: Modes | None = None
) -> Content:
    """Return the histogram of `samples` (seconds per call) in `width` by `height` columns. Two modes appear both on the
    scale and in words; each has a peak on the axis in place of the median, which is typical of neither."""
    if summary is None or len(samples) < _FEWEST or width < 16 or height < 3:
        return Content.styled(_few(samples) if len(samples) < _FEWEST else "no room", "$quiet")
    finer = 2 if modes is None else 4
    bins = min(width, max(4, math.ceil(finer * math.sqrt(len(samples)))))
    counts, low, high, above = histogram(samples, bins, modes)
    heights = [counts[column * len(counts) // width] for column in range(width)]  # a bin may take several columns
    scale = Scale(low, high)

    def column(value: float) -> int:
        return min(width - 1, max(0, round(scale.fraction(value) * (width - 1))))

    interval = summary.ci95 if modes is None else None
    within = range(column(interval[0]), column(interval[1]) + 1) if interval is not None else range(0)
    modes_lines = []
    if modes is not None and height > _FEWEST_ROWS:
        modes_lines.append(Content.styled(shorten(f"two modes: {modes_text(modes)}", width), "$warning"))
    # the bars: those within the interval of the median have another colour
    room = height - 2 - len(modes_lines)
    tallest = max(heights) or 1
    eighths = [round(count / tallest * room * 8) or (1 if count else 0) for count in heights]
    rows: list[Content] = []
    for row in range(room):
        below = (room - 1 - row) * 8
        text = "".join(f" {SPARKS}"[min(8, max(0, tall - below))] for tall in eighths)
        rows.append(join_styled((text[at], "$accent" if at in within else "$bar") for at in range(len(text))))
    peaks = {column(peak) for peak in ([summary.median] if modes is None else [modes.low, modes.high])}
    slower = f"+{above} slower" if above else ""
    numbers = axis_lines(scale, seconds_tick, -1, width, slower)[1]
    usual = {True: ("━", "bold $accent"), False: ("─", "$rule")}
    axis = join_styled(("┻", "bold $foreground") if at in peaks else usual[at in within] for at in range(width))
    return Content("\n").join([*modes_lines, *rows, axis, numbers])


def trend(
    samples: Sequence[float], summary: Summary | None, width: int, height: int, modes: Modes | None = None
) -> Content:
    """Return one dot per sample from left to right, and the median as a line; outliers are marks at the edges."""
    if summary is None:
        return Content.styled(_few(samples), "$quiet")
    far = outliers(samples, modes)
    near = [(number, value) for number, value in enumerate(samples, start=1) if not far[number - 1]]
    low, high = (edge((value for _, value in near), default=summary.median) for edge in (min, max))
    beyond = [(number, value) for number, value in enumerate(samples, start=1) if far[number - 1]]
    above = tuple((number, high) for number, value in beyond if value > summary.median)
    below = tuple((number, low) for number, value in beyond if value <= summary.median)
    lines = [
        PlotLine("median", ((1, summary.median), (len(samples), summary.median)), "$quiet", dotted=True),
        PlotLine("", tuple(near), "$bar", joined=False),
        PlotLine(counted(len(above), "outlier") if above else "", above, "$warning", "▲", joined=False),
        PlotLine(counted(len(below), "outlier") if below else "", below, "$warning", "▼", joined=False),
    ]
    return line_plot(
        lines, Axis(counted(len(samples), "sample"), whole_tick), Axis("time", seconds_tick), width, height
    )
