"""The samples of a run as pictures: their distribution, and their order in time. Pure functions.

Outliers are not dropped: the histogram counts them at its right, the trend marks them at its edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.analysis.warnings import modes_text
from jaxprof.text import columns, shorten
from jaxprof.tui.kit.canvas import Canvas
from jaxprof.tui.kit.drawing import SPARKS, styled_runs
from jaxprof.units import counted, seconds

if TYPE_CHECKING:
    from jaxprof.stats import Modes, Summary


_FEWEST = 2
_FEWEST_ROWS = 4
"""From more rows on, two modes are also said in words."""
WAITING = "waiting for samples"
"""The default text before there are samples."""


def distribution(
    samples: Sequence[float],
    summary: Summary | None,
    width: int,
    height: int,
    empty: str = WAITING,
    modes: Modes | None = None,
) -> Content:
    """The histogram of `samples` (seconds a call) in `width` by `height` columns. Two modes are both on the scale and
    in words, with a peak on the axis for each in place of the median, which is typical of neither."""
    if summary is None or len(samples) < _FEWEST or width < 16 or height < 3:
        return Content.styled(empty if len(samples) < _FEWEST else "no room", "$quiet")
    from jaxprof.stats import histogram

    finer = 2 if modes is None else 4
    bins = min(width, max(4, math.ceil(finer * math.sqrt(len(samples)))))
    counts, low, high, above = histogram(samples, bins, modes)
    heights = _stretch(counts, width)
    interval = summary.ci95 if modes is None else None
    said = [_modes_line(modes, width)] if modes is not None and height > _FEWEST_ROWS else []
    rows = _bars(heights, height - 2 - len(said), lambda column: _within(interval, low, high, column, width))
    peaks = [summary.median] if modes is None else [modes.low, modes.high]
    axis = _axis(peaks, interval, low, high, width)
    return Content("\n").join([*said, *rows, axis, _numbers(peaks, low, high, above, width)])


def _modes_line(modes: Modes, width: int) -> Content:
    return Content.styled(shorten(f"two modes: {modes_text(modes)}", width), "$warning")


def _stretch(counts: Sequence[int], width: int) -> list[int]:
    """The height of each column; with fewer bins than columns, a bin takes several."""
    return [counts[column * len(counts) // width] for column in range(width)]


def _within(interval: tuple[float, float] | None, low: float, high: float, column: int, width: int) -> bool:
    if interval is None:
        return False
    step = (high - low) / width
    return low + column * step <= interval[1] and low + (column + 1) * step >= interval[0]


def _bars(heights: Sequence[int], rows: int, marked: Callable[[int], bool]) -> list[Content]:
    tallest = max(heights) or 1
    eighths = [round(count / tallest * rows * 8) or (1 if count else 0) for count in heights]
    lines: list[Content] = []
    for row in range(rows):
        below = (rows - 1 - row) * 8
        text = "".join(
            " " if tall <= below else SPARKS[min(7, tall - below - 1)] if tall - below < 8 else "█" for tall in eighths
        )
        lines.append(styled_runs((text[at], "$accent" if marked(at) else "$bar") for at in range(len(text))))
    return lines


def _column(value: float, low: float, high: float, width: int) -> int:
    return min(width - 1, max(0, round((value - low) / (high - low) * (width - 1))))


def _axis(peaks: Sequence[float], interval: tuple[float, float] | None, low: float, high: float, width: int) -> Content:
    """The line below the bars: heavy where the interval of the median is, a peak at the median, or at each mode."""
    line = ["─"] * width
    styles = ["$rule"] * width
    if interval is not None:
        for at in range(_column(interval[0], low, high, width), _column(interval[1], low, high, width) + 1):
            line[at], styles[at] = "━", "bold $accent"
    for peak in peaks:
        at = _column(peak, low, high, width)
        line[at], styles[at] = "┻", "bold $foreground"
    return Content.assemble(*zip(line, styles, strict=True))


def _numbers(peaks: Sequence[float], low: float, high: float, above: int, width: int) -> Content:
    """Both ends of the scale, the number of outliers, and what stands under each peak if there is room."""
    left = seconds(low)
    right = f"{seconds(high)}  +{above} slower" if above else seconds(high)
    if columns(left) + columns(right) + 1 > width:
        left = ""
    parts: list[tuple[str, str]] = [(left, "$text-muted")]
    used, end = columns(left), width - columns(right)
    for peak in peaks:
        middle = seconds(peak)
        at = _column(peak, low, high, width) - columns(middle) // 2
        if used < at and at + columns(middle) < end:
            parts += [(" " * (at - used), ""), (middle, "bold $foreground")]
            used = at + columns(middle)
    return Content.assemble(*parts, (" " * (end - used), ""), (right, "$text-muted"))


OUTLIER = "▲"


def trend(
    samples: Sequence[float],
    summary: Summary | None,
    width: int,
    height: int,
    empty: str = WAITING,
    modes: Modes | None = None,
) -> Content:
    """One dot per sample from left to right, the median as a line; outliers are marks at the top or bottom edge."""
    if summary is None or width < 16 or height < 3:
        return Content.styled(empty if summary is None else "no room", "$quiet")
    from jaxprof.stats import outliers

    far = outliers(samples, modes)
    near = [value for value, is_far in zip(samples, far, strict=True) if not is_far] or list(samples)
    low, high = min(near), max(near)
    if high <= low:
        low, high = low * 0.95, high * 1.05 or 1.0
    labels = (seconds(high), seconds(low))
    gutter = max(columns(label) for label in labels)
    canvas = Canvas(width - gutter - 1, height - 1)
    _draw(canvas, samples, far, low, high, summary.median)
    median_row = canvas.row_of((summary.median - low) / (high - low))
    axis = {median_row: "", canvas.height - 1: labels[1], 0: labels[0]}
    foot = _foot(len(samples), sum(far), gutter + 1, width)
    return Content("\n").join([*canvas.framed(axis, gutter), foot])


def _draw(
    canvas: Canvas, samples: Sequence[float], far: Sequence[bool], low: float, high: float, median: float
) -> None:
    last = max(1, len(samples) - 1)
    _, level = canvas.dot_at(0, (median - low) / (high - low))
    canvas.line((0, level), (canvas.dot_columns - 1, level), "$quiet", every=4)
    marks: list[tuple[int, int]] = []
    for index, (value, is_far) in enumerate(zip(samples, far, strict=True)):
        if is_far:
            column = canvas.dot_at(index / last, 0)[0] // 2
            marks.append((column, 0 if value > median else canvas.height - 1))
            continue
        canvas.dot(*canvas.dot_at(index / last, (value - low) / (high - low)), "$bar")
    for column, row in marks:
        canvas.put(column, row, OUTLIER if row == 0 else "▼", "$warning")


def _foot(count: int, far: int, indent: int, width: int) -> Content:
    """The number of samples, and the number of outliers."""
    text = f"1 … {count} samples" if count > 1 else "1 sample"
    marked = f"   {OUTLIER} {counted(far, 'outlier')}" if far else ""
    if indent + columns(text) + columns(marked) > width:
        marked = ""
    return Content.assemble(" " * indent, (text, "$text-muted"), (marked, "$warning"))
