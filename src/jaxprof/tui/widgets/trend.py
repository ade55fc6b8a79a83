"""Samples in the order in which they were taken, so that drift, warm-up and disturbances are seen. A pure function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.safe_text import columns
from jaxprof.tui.widgets.braille import Canvas
from jaxprof.tui.widgets.distribution import WAITING
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.stats import Summary

OUTLIER = "▲"


def trend(samples: Sequence[float], summary: Summary | None, width: int, height: int, empty: str = WAITING) -> Content:
    """One dot a sample from left to right, the median as a line; outliers are marked at the edge that they pass."""
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
    lines = []
    middle = (len(labels[0]), _row(summary.median, low, high, canvas.height))
    for row, drawn in enumerate(canvas.rows()):
        text = labels[0] if row == 0 else labels[1] if row == canvas.height - 1 else ""
        tick = "┤" if text or row == middle[1] else "│"
        lines.append(Content.assemble((text.rjust(gutter), "$text-muted"), (tick, "$rule"), drawn))
    lines.append(_foot(len(samples), sum(far), gutter + 1, width))
    return Content("\n").join(lines)


def _row(value: float, low: float, high: float, rows: int) -> int:
    return min(rows - 1, max(0, round((1 - (value - low) / (high - low)) * (4 * rows - 1)) // 4))


def _draw(
    canvas: Canvas, samples: Sequence[float], far: Sequence[bool], low: float, high: float, median: float
) -> None:
    last = max(1, len(samples) - 1)
    level = round((1 - (median - low) / (high - low)) * (canvas.dot_rows - 1))
    canvas.line((0, level), (canvas.dot_columns - 1, level), "$quiet", every=4)
    marks: list[tuple[int, int]] = []
    for index, (value, is_far) in enumerate(zip(samples, far, strict=True)):
        x = round(index / last * (canvas.dot_columns - 1))
        if is_far:
            marks.append((x // 2, 0 if value > median else canvas.height - 1))
            continue
        y = round((1 - (value - low) / (high - low)) * (canvas.dot_rows - 1))
        canvas.dot(x, y, "$bar")
    for column, row in marks:
        canvas.put(column, row, OUTLIER if row == 0 else "▼", "$warning")


def _foot(count: int, far: int, indent: int, width: int) -> Content:
    """How many samples there are, and how many of them lie far out."""
    text = f"1 … {count} samples" if count > 1 else "1 sample"
    marked = f"   {OUTLIER} {far} outlier{'s' if far != 1 else ''}" if far else ""
    if indent + columns(text) + columns(marked) > width:
        marked = ""
    return Content.assemble(" " * indent, (text, "$text-muted"), (marked, "$warning"))
