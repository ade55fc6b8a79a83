"""The samples of a run as pictures: their distribution, and their order in time. Pure functions.

Outliers are not dropped: the histogram counts them at its right, the trend marks them at its edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.text import columns
from jaxprof.tui.kit.canvas import Canvas
from jaxprof.tui.kit.drawing import SPARKS, styled_runs
from jaxprof.units import counted, seconds

if TYPE_CHECKING:
    from jaxprof.stats import Summary


_FEWEST = 2
WAITING = "waiting for samples"
"""The default text before there are samples."""


def distribution(
    samples: Sequence[float], summary: Summary | None, width: int, height: int, empty: str = WAITING
) -> Content:
    """The histogram of `samples` (seconds a call) in `width` by `height` columns."""
    if summary is None or len(samples) < _FEWEST or width < 16 or height < 3:
        return Content.styled(empty if len(samples) < _FEWEST else "no room", "$quiet")
    from jaxprof.stats import histogram

    bins = min(width, max(4, math.ceil(2 * math.sqrt(len(samples)))))
    counts, low, high, above = histogram(samples, bins)
    heights = _stretch(counts, width)
    interval = summary.ci95
    rows = _bars(heights, height - 2, lambda column: _within(interval, low, high, column, width))
    return Content("\n").join([*rows, _axis(summary, low, high, width), _numbers(summary, low, high, above, width)])


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
        lines.append(styled_runs((text[at], "$better" if marked(at) else "$bar") for at in range(len(text))))
    return lines


def _axis(summary: Summary, low: float, high: float, width: int) -> Content:
    """The line below the bars: heavy where the interval of the median is, a peak at the median."""

    def column(value: float) -> int:
        return min(width - 1, max(0, round((value - low) / (high - low) * (width - 1))))

    line = ["─"] * width
    styles = ["$rule"] * width
    if summary.ci95 is not None:
        for at in range(column(summary.ci95[0]), column(summary.ci95[1]) + 1):
            line[at], styles[at] = "━", "bold $better"
    line[column(summary.median)], styles[column(summary.median)] = "┻", "bold $foreground"
    return Content.assemble(*zip(line, styles, strict=True))


def _numbers(summary: Summary, low: float, high: float, above: int, width: int) -> Content:
    """Both ends of the scale, the number of outliers, and the median under its peak if there is room."""
    left = seconds(low)
    right = f"{seconds(high)}  +{above} slower" if above else seconds(high)
    middle = seconds(summary.median)
    at = round((summary.median - low) / (high - low) * (width - 1)) - columns(middle) // 2
    if columns(left) + columns(right) + 1 > width:
        left = ""
    line = left.ljust(width - columns(right)) + right
    parts = Content.styled(line, "$text-muted")
    fits = columns(left) < at and at + columns(middle) < width - columns(right)
    if not fits:
        return parts
    return Content.assemble(
        (line[:at], "$text-muted"), (middle, "bold $foreground"), (line[at + columns(middle) :], "$text-muted")
    )


OUTLIER = "▲"


def trend(samples: Sequence[float], summary: Summary | None, width: int, height: int, empty: str = WAITING) -> Content:
    """One dot per sample from left to right, the median as a line; outliers are marks at the top or bottom edge."""
    if summary is None or width < 16 or height < 3:
        return Content.styled(empty if summary is None else "no room", "$quiet")
    from jaxprof.stats import outliers

    far = outliers(samples)
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
