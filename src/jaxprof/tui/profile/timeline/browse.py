"""The state of a timeline in view: the window, the line and the time of the cursor, and which lanes are open.

The state is without widgets (it has only the number of columns and lines) and without numpy.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxprof.analysis.timeline.lanes import (
    End,
    IdleTime,
    LaneGroup,
    LaneRow,
    Lanes,
    idle_around,
    longest_idle,
    other_end,
)
from jaxprof.base.values import frozen

LEAST_NS = 200
"""Length of the shortest window, in nanoseconds; a recording is at least as long."""
ZOOM = 2.0
PAN = 0.1
"""Share of the window by which each press of an arrow pans."""

LaneLine = tuple[int, int]
"""A line of the view: the number of a lane, and that of a row of the lane, or -1 for its summary."""


@frozen
class AxisWindow:
    """The part of the time axis in view, in nanoseconds; the end is exclusive."""

    start: int
    end: int

    @property
    def span(self) -> int:
        return self.end - self.start

    def time_at(self, column: float, width: int) -> int:
        return self.start + int((column + 0.5) * self.span / width)

    def column_of(self, time: int, width: int) -> int:
        return (time - self.start) * width // self.span

    def part(self, start: int, span: int) -> AxisWindow:
        """Return the part of this window of that length, not too short, whose start is closest to `start`."""
        span = min(max(LEAST_NS, span), self.span)
        start = min(max(start, self.start), self.end - span)
        return AxisWindow(start, start + span)


class Browse:
    """The window, the cursor and the open lanes of one recording. Times are nanoseconds since its start."""

    def __init__(self, lanes: Lanes, width: int, room: int) -> None:
        """`width`: the columns, `room`: the lines that can be in view."""
        self.lanes = lanes
        self.whole = self.window = AxisWindow(lanes.begin, max(lanes.end, lanes.begin + LEAST_NS))
        self.width, self.room = width, room
        self.lines: list[LaneLine] = []
        self.cursor = self.whole.start
        self.line = 0
        self.anchor: int | None = None
        """Where the range begins, which ends at the cursor; None without a range."""
        self._longest: IdleTime | None = None
        """The idle time that the last jump to a longest one led to."""
        self._open: set[int] = set()
        self._chosen = False
        """Whether the user has opened or closed a lane; until then, as many lanes are open as fit."""
        self.arrange()
        self.line = next((n for n, (lane, _) in enumerate(self.lines) if lanes.lanes[lane].on_device), 0)

    @property
    def zoomed(self) -> bool:
        return self.window != self.whole

    @property
    def under_cursor(self) -> tuple[LaneGroup, LaneRow, int | None] | None:
        """The lane and row under the cursor, and the index of the interval there; None for the index in a gap."""
        if not self.lines:
            return None
        lane, row = self.row(self.lines[self.line])
        return lane, row, row.at(self.cursor)

    def row(self, line: LaneLine) -> tuple[LaneGroup, LaneRow]:
        lane = self.lanes.lanes[line[0]]
        return lane, lane.summary if line[1] < 0 else lane.rows[line[1]]

    def resize(self, width: int, room: int) -> None:
        self.width, self.room = width, room
        self.arrange()

    def arrange(self) -> None:
        """Rebuild the lines from the open lanes. A nested level takes a line only where the window holds something of
        it, or the cursor is on it; the cursor stays on its line, or else on its lane."""
        lanes, here = self.lanes.lanes, self.lines[self.line] if self.line < len(self.lines) else (0, -1)
        rows = [
            [
                (at, number)
                for number, row in enumerate(lane.rows)
                if not row.level or row.is_in_range(self.window.start, self.window.end) or here == (at, number)
            ]
            for at, lane in enumerate(lanes)
        ]
        if not self._chosen and self.anchor is None:  # a range's totals take lines; lanes stay open
            self._open = fitting(lanes, [len(each) for each in rows], self.room)
        self.lines = []
        for at, lane in enumerate(lanes):
            self.lines += rows[at] if at in self._open and lane.opens else [(at, -1)]
        of_lane = (n for n, (lane, _) in enumerate(self.lines) if lane == here[0])
        self.line = self.lines.index(here) if here in self.lines else next(of_lane, 0)

    def go(self, end: End) -> None:
        """Move the cursor to the begin of an interval, open its lane if needed, and bring it into view."""
        lane = self.lanes.lanes[end.lane]
        row = lane.rows[end.row]
        line = (end.lane, end.row if lane.opens else -1)
        self.look_at(int(row.starts[end.index]))
        if end.lane not in self._open and line[1] >= 0:
            self._open.add(end.lane)
            self._chosen = True
        self.arrange()
        self.line = self.lines.index(line if line in self.lines else (end.lane, -1))

    # -- the window -------------------------------------------------------------------------------------------

    def zoom_by(self, step: int) -> None:
        self.zoom(ZOOM**-step, self.cursor)

    def zoom(self, factor: float, around: int) -> None:
        """Show `factor` times as much; `around` stays in its column."""
        before = self.window
        span = min(max(LEAST_NS, round(before.span * factor)), self.whole.span)
        self.window = self.whole.part(around - round((around - before.start) * span / before.span), span)
        self.cursor = min(max(self.cursor, self.window.start), self.window.end - 1)

    def show_whole(self) -> None:
        self.window = self.whole

    def pan(self, step: int) -> None:
        """Pan by a tenth of the window; at either end, move the cursor."""
        moved = self._pan_window(step)
        shift = moved.start - self.window.start
        if shift == 0:
            self.step(step)
        else:
            self.window = moved
            self.cursor = min(max(self.cursor + shift, moved.start), moved.end - 1)

    def _pan_window(self, step: int) -> AxisWindow:
        by = step * max(1, round(self.window.span * PAN))
        return self.whole.part(self.window.start + by, self.window.span)

    def fit(self) -> None:
        """Zoom to the range, or else to the interval or the idle time under the cursor, with a small margin."""
        under = self.under_cursor
        if under is None:
            return
        begin, end = self.range or extent(under[1], self.cursor, self.whole)
        margin = (end - begin) // 8 + LEAST_NS // 8
        self.window = self.whole.part(begin - margin, end - begin + 2 * margin)

    # -- the cursor -------------------------------------------------------------------------------------------

    def look_at(self, time: int) -> None:
        self.cursor = min(max(time, self.whole.start), self.whole.end - 1)
        if not self.window.start <= self.cursor < self.window.end:
            self.window = self.whole.part(self.cursor - self.window.span // 2, self.window.span)

    def edge(self, step: int) -> None:
        self.look_at(self.whole.start if step < 0 else self.whole.end - 1)

    def step(self, step: int) -> None:
        time = self.window.time_at(self.window.column_of(self.cursor, self.width) + step, self.width)
        self.cursor = min(max(time, self.whole.start), self.whole.end - 1)
        if not self.window.start <= self.cursor < self.window.end:
            self.window = self._pan_window(step)

    def event(self, step: int) -> None:
        under = self.under_cursor
        if under is None:
            return
        _, row, at = under
        time = int(row.starts[at]) if at is not None and step < 0 else self.cursor
        index = row.near(time, step)
        if index is not None:
            self.look_at(int(row.starts[index]))

    def open(self) -> None:
        lane = self.lines[self.line][0] if self.lines else None
        if lane is not None and self.lanes.lanes[lane].opens:
            self._open ^= {lane}
            self._chosen = True
            self.arrange()

    def longest(self) -> bool:
        """Go to the longest idle time of the row, from there to the next longest, if there is one."""
        under, before = self.under_cursor, self._longest
        if under is None:
            return False
        self._longest = longest_idle(under[1], before if before and before[0] == self.cursor else None)
        if self._longest is not None:
            self.look_at(self._longest[0])
        return self._longest is not None

    # -- a range, and the other end of a launch ---------------------------------------------------------------

    @property
    def range(self) -> tuple[int, int] | None:
        if self.anchor is None:
            return None
        low, high = sorted((self.anchor, self.cursor))
        return low, max(high, low + 1)

    def mark(self) -> None:
        self.anchor = self.cursor if self.anchor is None else None

    def step_back(self) -> bool:
        """Undo one thing: the range, else the zoom, or what was opened and closed. Return False if there is none."""
        if self.anchor is not None:
            self.mark()
        elif self.zoomed:
            self.show_whole()
        elif self._chosen:
            self._chosen = False
            self.arrange()
        else:
            return False
        return True

    @property
    def linked(self) -> End | None:
        under = self.under_cursor
        if under is None:
            return None
        lane, row, index = under
        number = next((n for n, candidate in enumerate(lane.rows) if candidate is row), None)
        if number is None or index is None:
            return None
        return other_end(self.lanes, End(self.lines[self.line][0], number, index))

    def follow(self) -> None:
        end = self.linked
        if end is not None:
            self.go(end)


def fitting(lanes: Sequence[LaneGroup], lines: Sequence[int], room: int) -> set[int]:
    """Return the lanes that can be open while every lane is in view; device lanes are opened first. `lines`: how many
    each takes when it is open."""
    free, opened = room - len(lanes), set()
    for at in sorted(range(len(lanes)), key=lambda at: (not lanes[at].on_device, at)):
        if lanes[at].opens and lines[at] - 1 <= free:
            free -= lines[at] - 1
            opened.add(at)
    return opened


def extent(row: LaneRow, time: int, whole: AxisWindow) -> tuple[int, int]:
    at = row.at(time)
    if at is not None:
        return int(row.starts[at]), int(row.ends[at])
    begin, end = idle_around(row, time)
    return whole.start if begin is None else begin, whole.end if end is None else end
