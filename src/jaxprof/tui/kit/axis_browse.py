"""What the keys of a picture over an axis move: the window, the cursor in it, and the line under the cursor. Knows no
widget.

Positions are whole numbers: nanoseconds, or steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ZOOM: Final = 2.0
PAN: Final = 0.1
"""Share of the window by which each press of an arrow pans."""


@dataclass(frozen=True, slots=True)
class AxisWindow:
    """The part of an axis in view; the end is exclusive."""

    start: int
    end: int

    @property
    def span(self) -> int:
        """Length of the window."""
        return self.end - self.start

    def time_at(self, column: float, width: int) -> int:
        """Return the position at the middle of a column."""
        return self.start + int((column + 0.5) * self.span / width)

    def column_of(self, time: int, width: int) -> int:
        """Return the column of a position, which may be outside of the window."""
        return (time - self.start) * width // self.span

    def zoomed(self, factor: float, around: int, whole: AxisWindow, least: int) -> AxisWindow:
        """Return a window `factor` times as long, with `around` in the same column, at least `least` long, within
        `whole`."""
        span = min(whole.span, max(min(least, whole.span), round(self.span * factor)))
        start = around - round((around - self.start) * span / self.span)
        return AxisWindow(start, start + span).within(whole)

    def moved(self, by: int, whole: AxisWindow) -> AxisWindow:
        """Return the window moved later by `by`, within `whole`."""
        return AxisWindow(self.start + by, self.end + by).within(whole)

    def within(self, whole: AxisWindow) -> AxisWindow:
        """Return a window of the same length, moved into `whole`."""
        span = min(self.span, whole.span)
        start = min(max(self.start, whole.start), whole.end - span)
        return AxisWindow(start, start + span)

    def showing(self, time: int, whole: AxisWindow) -> AxisWindow:
        """Return this window, or one around a position that is not in view, within `whole`."""
        if self.start <= time < self.end:
            return self
        return AxisWindow(time - self.span // 2, time - self.span // 2 + self.span).within(whole)


class AxisBrowse:
    """Base class of the state of a view. A subclass says how many lines there are."""

    def __init__(self, whole: AxisWindow, least: int, room: int = 1) -> None:
        """`least` is the length of the shortest window, `room` the number of lines that can be in view."""
        self.whole = self.window = whole
        self.least, self.room = least, room
        self.cursor = whole.start
        """Position of the cursor on the axis."""
        self.line = 0
        """Line of the cursor."""
        self.top = 0
        """Number of lines that are out of view at the top."""

    @property
    def line_count(self) -> int:
        """Number of lines, in view or not."""
        raise NotImplementedError

    @property
    def zoomed(self) -> bool:
        """Whether less than the whole is in view."""
        return self.window != self.whole

    # -- the window -------------------------------------------------------------------------------------------

    def zoom_by(self, step: int) -> None:
        """Show half or twice as much around the cursor."""
        self.zoom(ZOOM**-step, self.cursor)

    def zoom(self, factor: float, around: int) -> None:
        """Show `factor` times as much; `around` stays in its column."""
        self.window = self.window.zoomed(factor, around, self.whole, self.least)
        self.cursor = min(max(self.cursor, self.window.start), self.window.end - 1)

    def show_whole(self) -> None:
        """Show everything."""
        self.window = self.whole

    def pan(self, step: int) -> None:
        """Pan by a tenth of the window; at either end, move the cursor."""
        moved = self._panned(step)
        shift = moved.start - self.window.start
        if shift == 0:
            self.step(step)
        else:
            self.window = moved
            self.cursor = min(max(self.cursor + shift, moved.start), moved.end - 1)

    def _panned(self, step: int) -> AxisWindow:
        return self.window.moved(step * max(1, round(self.window.span * PAN)), self.whole)

    # -- the cursor -------------------------------------------------------------------------------------------

    def step(self, step: int) -> None:
        """Move the cursor by a column; the window follows."""
        raise NotImplementedError

    def look_at(self, position: int) -> None:
        """Move the cursor to a position, and bring it into view."""
        self.cursor = min(max(position, self.whole.start), self.whole.end - 1)
        self.window = self.window.showing(self.cursor, self.whole)

    def edge(self, step: int) -> None:
        """Go to the start or the end."""
        self.look_at(self.whole.start if step < 0 else self.whole.end - 1)

    def move(self, step: int) -> None:
        """Go a line up or down."""
        self.line = max(0, min(self.line + step, self.line_count - 1))

    def page(self, step: int) -> None:
        """Go a page up or down."""
        self.move(step * max(1, self.room - 1))

    def bring_into_view(self) -> None:
        """Scroll so that the line of the cursor is in view and no line at the end stays empty."""
        self.top = min(self.line, max(self.top, self.line - self.room + 1))
        self.top = max(0, min(self.top, self.line_count - self.room))
