"""The time in view, and its columns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The time in view, in nanoseconds; the end is exclusive."""

    start: int
    end: int

    @property
    def span(self) -> int:
        """Length in nanoseconds."""
        return self.end - self.start

    def time_at(self, column: float, width: int) -> int:
        """The time in the middle of a column."""
        return self.start + int((column + 0.5) * self.span / width)

    def column_of(self, time: int, width: int) -> int:
        """The column of a time, which may be outside of the window."""
        return (time - self.start) * width // self.span

    def zoomed(self, factor: float, around: int, whole: TimeWindow, least: int) -> TimeWindow:
        """A window `factor` times as long, with `around` in the same column, at least `least` long, within `whole`."""
        span = min(whole.span, max(min(least, whole.span), round(self.span * factor)))
        start = around - round((around - self.start) * span / self.span)
        return TimeWindow(start, start + span).within(whole)

    def moved(self, by: int, whole: TimeWindow) -> TimeWindow:
        """A window that is later by `by`, within `whole`."""
        return TimeWindow(self.start + by, self.end + by).within(whole)

    def within(self, whole: TimeWindow) -> TimeWindow:
        """A window of the same length, moved into `whole`."""
        span = min(self.span, whole.span)
        start = min(max(self.start, whole.start), whole.end - span)
        return TimeWindow(start, start + span)

    def showing(self, time: int, whole: TimeWindow) -> TimeWindow:
        """This window, or one around a time that is not in view, within `whole`."""
        if self.start <= time < self.end:
            return self
        return TimeWindow(time - self.span // 2, time - self.span // 2 + self.span).within(whole)
