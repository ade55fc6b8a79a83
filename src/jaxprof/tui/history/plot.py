"""The chart of a history: the points in the order of time with their intervals, and where they changed for good."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.analysis.history import HistoryPoint, LastingChange, LibraryHistory, MeasurementHistory
from jaxprof.tui.kit.format import verdict_style
from jaxprof.tui.kit.line_plot import Axis, Mark, PlotLine, count_tick, line_plot, seconds_tick
from jaxprof.units import bytes_, ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARKED_MOST = 2
"""Columns of the chart for each point, from which on every point has a marker."""


def history_plot(found: LibraryHistory, one: MeasurementHistory, width: int, height: int) -> Content:
    """The chart in exactly `width` by `height` columns; the points are numbered from the oldest."""
    if len(one.points) < 2:
        return Content("\n" * ((height - 1) // 2)) + Content.styled("one point so far".center(width), "$quiet")
    numbered = list(enumerate(one.points, start=1))
    used = [(number, point) for number, point in numbered if not point.wrong]
    roomy = len(numbered) * _MARKED_MOST <= width
    median = tuple((float(number), point.value) for number, point in used)
    lines = [
        *_bounds(used),
        PlotLine("median" if found.unit == "second" else "", median, "$primary", "●" if roomy else ""),
    ]
    begins = {id(change.first): change for change in one.changes}
    marks = [
        Mark(float(number), point.value, ratio(change.ratio), change_style(change))
        for number, point in numbered
        if (change := begins.get(id(point))) is not None
    ]
    marks += [Mark(float(number), point.value, "wrong", "$error", "✗") for number, point in numbered if point.wrong]
    text = {"second": seconds_tick, "byte": bytes_}.get(found.unit, count_tick)
    return line_plot(lines, Axis("point", _number), Axis(found.title, text), width, height, marks)


def _number(value: float) -> str:
    """The number of a point; nothing between two of them."""
    return count_tick(value) if value == round(value) else ""


def change_style(change: LastingChange) -> str:
    """The style of a change: to a longer time or more, and to a shorter or less."""
    return f"bold {verdict_style('slower' if change.after > change.before else 'faster')}"


def _bounds(used: list[tuple[int, HistoryPoint]]) -> Iterator[PlotLine]:
    """The ends of the intervals, dotted, over neighbours that have one."""
    first = True
    for known, stretch in groupby(used, key=lambda pair: pair[1].low is not None and pair[1].high is not None):
        members = list(stretch)
        if not known:
            continue
        for end in ("low", "high"):
            points = tuple((float(number), getattr(point, end)) for number, point in members)
            yield PlotLine("95 % interval" if first else "", points, "$quiet", dotted=True)
            first = False
