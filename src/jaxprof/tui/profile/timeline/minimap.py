"""The minimap: the whole recording in one or two lines above the lanes, with the window in view marked.

A column's height is the busiest lane's share of its time, of the lanes that hold kernels, or of all where none does.
Below it, or in a single line in its place, a frame shows which part is in view, with and without colours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jaxprof.analysis.lanes.kinds import COUNTED_LANES
from jaxprof.tui.profile.timeline.drawing import StyledColumns, bars, joined
from jaxprof.tui.profile.timeline.frame import edges

if TYPE_CHECKING:
    from jaxprof.analysis.lanes.rows import Lanes
    from jaxprof.analysis.lanes.search import Matches
    from jaxprof.tui.axis_window import AxisWindow


class Minimap:
    """The whole of one recording in `width` columns."""

    def __init__(self, lanes: Lanes, whole: AxisWindow, width: int) -> None:
        self.lanes, self.whole, self.width = lanes, whole, width
        measured = [lane for lane in lanes.lanes if lane.summary.values is None]
        counted = [lane for lane in measured if lane.kind in COUNTED_LANES] or measured
        borders = edges(whole, width)
        length = np.maximum(np.diff(borders), 1)
        self._busy: NDArray[np.float64] = np.zeros(width)
        for lane in counted:
            share = np.diff(lane.active.until(borders)) / (length * lane.summary.capacity)
            self._busy = np.maximum(self._busy, share)
        self._hits: tuple[Matches | None, NDArray[np.bool_]] = (None, np.zeros(width, np.bool_))

    def lines(self, window: AxisWindow, count: int, matches: Matches | None = None) -> list[list[StyledColumns]]:
        """The map in one or two lines."""
        first, last = self._columns(window)
        inside = [first <= column <= last for column in range(self.width)]
        hits = self._hit(matches)
        glyphs = bars(self._busy.tolist())
        styles = ["hit" if hit else "map-window" if within else "map" for hit, within in zip(hits, inside, strict=True)]
        frame = self._frame(first, last)
        if count > 1:
            return [joined(glyphs, styles), joined(frame, ["map-window" if within else "map" for within in inside])]
        if window.span < self.whole.span:
            for column in {first, last}:
                glyphs[column], styles[column] = frame[column], "map-window"
        return [joined(glyphs, styles)]

    def _columns(self, window: AxisWindow) -> tuple[int, int]:
        """The first and the last column of a window."""
        first = min(self.width - 1, self.whole.column_of(window.start, self.width))
        return first, max(first, min(self.width - 1, self.whole.column_of(window.end - 1, self.width)))

    def _frame(self, first: int, last: int) -> list[str]:
        middle = "▲" if first == last else "┗" + "━" * (last - first - 1) + "┛"
        return list("┄" * first + middle + "┄" * (self.width - 1 - last))

    def _hit(self, matches: Matches | None) -> list[bool]:
        if matches is not self._hits[0]:
            columns = np.zeros(self.width, np.bool_)
            if matches is not None:
                found = (matches.starts - self.whole.start) * self.width // self.whole.span
                columns[np.clip(found, 0, self.width - 1)] = True
            self._hits = matches, columns
        hits: list[bool] = self._hits[1].tolist()
        return hits
