"""The time that is in view, and how it is zoomed and moved within the whole. Whole numbers only, and no numpy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """The time that is in view: nanoseconds, the end exclusive."""

    start: int
    end: int

    @property
    def span(self) -> int:
        """Its length."""
        return self.end - self.start

    def time_at(self, column: float, width: int) -> int:
        """The time in the middle of a column."""
        return self.start + int((column + 0.5) * self.span / width)

    def column_of(self, time: int, width: int) -> int:
        """The column that a time lies in; may lie outside of the window."""
        return (time - self.start) * width // self.span

    def zoomed(self, factor: float, around: int, whole: Window, least: int) -> Window:
        """`factor` times as long, with `around` in the same column; at least `least` long, and within `whole`."""
        span = min(whole.span, max(min(least, whole.span), round(self.span * factor)))
        start = around - round((around - self.start) * span / self.span)
        return Window(start, start + span).within(whole)

    def moved(self, by: int, whole: Window) -> Window:
        """Later by so much, and within `whole`."""
        return Window(self.start + by, self.end + by).within(whole)

    def within(self, whole: Window) -> Window:
        """As long as it is, moved into `whole`."""
        span = min(self.span, whole.span)
        start = min(max(self.start, whole.start), whole.end - span)
        return Window(start, start + span)

    def showing(self, time: int, whole: Window) -> Window:
        """Moved so that a time is in view."""
        if self.start <= time < self.end:
            return self
        return Window(time - self.span // 2, time - self.span // 2 + self.span).within(whole)
