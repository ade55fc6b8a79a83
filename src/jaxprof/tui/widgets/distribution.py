"""How samples are spread: a histogram that ends where the outliers begin; the median and its interval are below it.

A pure function. The outliers are counted at the right, not dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.safe_text import columns
from jaxprof.tui.widgets.drawing import SPARKS
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.stats import Summary

_FEWEST = 2
WAITING = "waiting for samples"
"""What stands there before there are any, unless something else is to be said."""


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
    """Fewer bins than columns: each bin becomes several columns."""
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
        parts: list[tuple[str, str]] = []
        for column, character in enumerate(text):
            style = "$better" if marked(column) else "$bar"
            if parts and parts[-1][1] == style:
                parts[-1] = (parts[-1][0] + character, style)
            else:
                parts.append((character, style))
        lines.append(Content.assemble(*parts))
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
    """Both ends of the scale; how many lie beyond it; the median under its peak where there is room."""
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
