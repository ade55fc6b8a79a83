"""The part of a long axis that is in view, and its columns. Positions are whole numbers: nanoseconds, or steps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AxisWindow:
    """What is in view; the end is exclusive."""

    start: int
    end: int

    @property
    def span(self) -> int:
        """Its length."""
        return self.end - self.start

    def time_at(self, column: float, width: int) -> int:
        """The position in the middle of a column."""
        return self.start + int((column + 0.5) * self.span / width)

    def column_of(self, time: int, width: int) -> int:
        """The column of a position, which may be outside of the window."""
        return (time - self.start) * width // self.span

    def zoomed(self, factor: float, around: int, whole: AxisWindow, least: int) -> AxisWindow:
        """A window `factor` times as long, with `around` in the same column, at least `least` long, within `whole`."""
        span = min(whole.span, max(min(least, whole.span), round(self.span * factor)))
        start = around - round((around - self.start) * span / self.span)
        return AxisWindow(start, start + span).within(whole)

    def moved(self, by: int, whole: AxisWindow) -> AxisWindow:
        """A window that is later by `by`, within `whole`."""
        return AxisWindow(self.start + by, self.end + by).within(whole)

    def within(self, whole: AxisWindow) -> AxisWindow:
        """A window of the same length, moved into `whole`."""
        span = min(self.span, whole.span)
        start = min(max(self.start, whole.start), whole.end - span)
        return AxisWindow(start, start + span)

    def showing(self, time: int, whole: AxisWindow) -> AxisWindow:
        """This window, or one around a position that is not in view, within `whole`."""
        if self.start <= time < self.end:
            return self
        return AxisWindow(time - self.span // 2, time - self.span // 2 + self.span).within(whole)
