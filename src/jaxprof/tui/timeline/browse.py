"""Looking through the lanes of a timeline: which are open, which line and time the cursor is on, what is in view.

Knows no screen, only how many columns and lines there are to show it in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxprof.tui.timeline.window import Window

if TYPE_CHECKING:
    from jaxprof.tui.timeline.lanes import Lane, Lanes, Row

LEAST_NS = 200
"""The shortest window."""
ZOOM = 2.0
PAN = 0.1
"""Of the window, for each press of an arrow."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the view: a row of a lane, or its summary (row -1)."""

    lane: int
    row: int


class Browse:
    """Where one is in the lanes of one recording. Times are nanoseconds since its begin."""

    def __init__(self, lanes: Lanes, width: int, room: int) -> None:
        self.lanes = lanes
        self.whole = Window(lanes.begin, max(lanes.end, lanes.begin + LEAST_NS))
        self.window = self.whole
        self.time = lanes.begin
        """Where the cursor is."""
        self.line = 0
        """The line that the cursor is on."""
        self.places: list[Place] = []
        """The lines that there are."""
        self.top = 0
        """The first line in view."""
        self._width, self._room = width, room
        self._open: set[int] = set()
        self._chosen = False
        """Whether somebody has opened or closed a lane; until then as many are open as there is room for."""
        self._arrange()
        self.line = next((n for n, place in enumerate(self.places) if lanes.lanes[place.lane].on_device), 0)

    @property
    def under_cursor(self) -> tuple[Lane, Row, int | None] | None:
        """The lane and the row that the cursor is on, and the interval there, None in a gap."""
        if not self.places:
            return None
        lane, row = self.row(self.places[self.line])
        return lane, row, row.at(self.time)

    def bring_into_view(self) -> None:
        """Scrolls so that the line of the cursor is in view, and no line is wasted."""
        if self.line < self.top:
            self.top = self.line
        elif self.line >= self.top + self._room:
            self.top = self.line - self._room + 1
        self.top = max(0, min(self.top, len(self.places) - self._room))

    def row(self, place: Place) -> tuple[Lane, Row]:
        """The lane of a line, and the row or the summary that is its."""
        lane = self.lanes.lanes[place.lane]
        return lane, lane.summary if place.row < 0 else lane.rows[place.row]

    def resize(self, width: int, room: int) -> None:
        """There are so many columns and lines now."""
        self._width, self._room = width, room
        self._arrange()

    def _arrange(self) -> None:
        """Which lines there are."""
        lanes = self.lanes.lanes
        if not self._chosen:
            self._open = as_many_as_fit(lanes, self._room)
        before = self.places[self.line] if self.line < len(self.places) else None
        self.places = [
            Place(at, row)
            for at, lane in enumerate(lanes)
            for row in (range(len(lane.rows)) if at in self._open and lane.opens else (-1,))
        ]
        if before is not None:
            same = [n for n, place in enumerate(self.places) if place.lane == before.lane]
            self.line = same[0] if same else 0

    def go(self, place: Place, time: int) -> None:
        """Puts the cursor on a row of a lane, opens that if it must, and brings the time into view."""
        if place not in self.places:
            lane = self.lanes.lanes[place.lane]
            if place.row == -1 or not lane.opens or (place.row == 0 and lane.summary is lane.rows[0]):
                place = Place(place.lane, -1)
            else:
                self._open.add(place.lane)
                self._chosen = True
            self._arrange()
        self.line = self.places.index(place) if place in self.places else self.line
        self.time = time
        self.window = self.window.showing(time, self.whole)

    # -- the window -------------------------------------------------------------------------------------------

    def zoom(self, factor: float, around: int) -> None:
        """`factor` times the time, with `around` where it is."""
        self.window = self.window.zoomed(factor, around, self.whole, LEAST_NS)
        if not self.window.start <= self.time < self.window.end:
            self.time = min(max(self.time, self.window.start), self.window.end - 1)

    def show_whole(self) -> None:
        """The whole recording."""
        self.window = self.whole

    def fit(self) -> None:
        """The interval under the cursor, or the gap there, and a little around it."""
        found = self.under_cursor
        if found is None:
            return
        begin, end = extent(found[1], self.time, self.whole)
        margin = (end - begin) // 8 + LEAST_NS // 8
        self.window = Window(begin - margin, end + margin).within(self.whole)
        if self.window.span < LEAST_NS:
            self.window = Window(begin, begin + LEAST_NS).within(self.whole)

    def begin_at(self, start: int) -> None:
        """The window begins at a time; the cursor stays where it is."""
        self.window = self.window.moved(start - self.window.start, self.whole)

    def pan(self, step: int) -> None:
        """A tenth of the window; where there is nothing more to pan to, the cursor moves."""
        moved = self.window.moved(round(step * self.window.span * PAN), self.whole)
        shift = moved.start - self.window.start
        if shift == 0:
            self.step(step)
            return
        self.window = moved
        self.time = min(max(self.time + shift, moved.start), moved.end - 1)

    # -- the cursor -------------------------------------------------------------------------------------------

    def step(self, step: int) -> None:
        """A column further; the window follows."""
        time = self.window.time_at(self.window.column_of(self.time, self._width) + step, self._width)
        self.time = min(max(time, self.whole.start), self.whole.end - 1)
        if not self.window.start <= self.time < self.window.end:
            self.window = self.window.moved(round(step * self.window.span * PAN), self.whole)

    def event(self, step: int) -> None:
        """To the next interval of the row, or the one before."""
        found = self.under_cursor
        if found is None:
            return
        _, row, at = found
        time = int(row.starts[at]) if at is not None and step < 0 else self.time
        index = row.near(time, step)
        if index is not None:
            self.time = int(row.starts[index])
            self.window = self.window.showing(self.time, self.whole)

    def edge(self, step: int) -> None:
        """To the begin or the end of the recording."""
        self.time = self.whole.start if step < 0 else self.whole.end - 1
        self.window = self.window.showing(self.time, self.whole)

    def move(self, step: int) -> None:
        """A line further up or down."""
        if self.places:
            self.line = max(0, min(self.line + step, len(self.places) - 1))

    def open(self) -> None:
        """Opens or closes the lane under the cursor."""
        lane = self.places[self.line].lane if self.places else None
        if lane is not None and self.lanes.lanes[lane].opens:
            self._open ^= {lane}
            self._chosen = True
            self._arrange()


def as_many_as_fit(lanes: Sequence[Lane], room: int) -> set[int]:
    """The lanes that can be open with every lane in view, those of the devices first."""
    free, found = room - len(lanes), set()
    for at in sorted(range(len(lanes)), key=lambda at: (not lanes[at].on_device, at)):
        if lanes[at].opens and len(lanes[at].rows) - 1 <= free:
            free -= len(lanes[at].rows) - 1
            found.add(at)
    return found


def extent(row: Row, time: int, whole: Window) -> tuple[int, int]:
    """Begin and end of the interval at that time, or of the gap."""
    at = row.at(time)
    if at is not None:
        return int(row.starts[at]), int(row.ends[at])
    before, after = row.near(time, -1), row.near(time, 1)
    begin = int(row.ends[before]) if before is not None else whole.start
    return begin, int(row.starts[after]) if after is not None else whole.end
