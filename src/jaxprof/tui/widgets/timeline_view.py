"""The timeline: a ruler, a row for each lane, a cursor. Drawn line by line, from what the window holds and no more.

A lane of several threads or levels is closed at first where there is no room for all of it: its one line shows how many
of its threads were busy. The view is told what to show and posts where the cursor is; what that means is the screen's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from jaxprof.safe_text import columns, safe, shorten
from jaxprof.tui.timeline.kinds import KINDS
from jaxprof.tui.widgets.scales import Scale
from jaxprof.units import integer

if TYPE_CHECKING:
    from jaxprof.tui.timeline.frame import Columns, Window
    from jaxprof.tui.timeline.lanes import Lane, Lanes, Row
    from jaxprof.tui.timeline.search import Found

LEAST_NS = 200
"""The shortest window."""
ZOOM = 2.0
WHEEL_ZOOM = 1.25
PAN = 0.1
"""Of the window, for each press of an arrow."""
_HEIGHTS = "▁▂▃▄▅▆▇█"
_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the view: a row of a lane, or its summary (row -1)."""

    lane: int
    row: int


class TimelineView(Widget, can_focus=True):
    """Lanes over time."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"timeline--{kind}" for kind in KINDS),
        "timeline--ruler", "timeline--title", "timeline--title-cursor", "timeline--gap", "timeline--hit",
        "timeline--cursor", "timeline--rule",
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus,equals_sign", "zoom(1)", "Zoom in", key_display="+", tooltip="Half the time around the cursor",
                id="timeline.zoom_in"),
        Binding("minus", "zoom(-1)", "Out", key_display="-", tooltip="Twice the time around the cursor",
                id="timeline.zoom_out"),
        Binding("0", "whole", "Whole", tooltip="The whole recording", id="timeline.whole"),
        Binding("z", "fit", "Fit", show=False, tooltip="Zoom to what is under the cursor", id="timeline.fit"),
        Binding("left", "pan(-1)", "Earlier", show=False, tooltip="Pan to the left; at the begin, move the cursor",
                id="timeline.left"),
        Binding("right", "pan(1)", "Later", show=False, tooltip="Pan to the right; at the end, move the cursor",
                id="timeline.right"),
        Binding("shift+left,less_than_sign", "step(-1)", "Column before", key_display="<", show=False,
                tooltip="The cursor a column to the left", id="timeline.step_left"),
        Binding("shift+right,greater_than_sign", "step(1)", "Column after", key_display=">", show=False,
                tooltip="The cursor a column to the right", id="timeline.step_right"),
        Binding("full_stop", "event(1)", "Next event", key_display=".", show=False,
                tooltip="To what begins next in this lane", id="timeline.next_event"),
        Binding("comma", "event(-1)", "Event before", key_display=",", show=False,
                tooltip="To what began before in this lane", id="timeline.last_event"),
        Binding("home", "edge(-1)", "Begin", show=False, tooltip="To the begin of the recording", id="timeline.home"),
        Binding("end", "edge(1)", "End", show=False, tooltip="To the end of the recording", id="timeline.end"),
        Binding("up,k", "move(-1)", "Lane above", show=False, tooltip="The lane above", id="timeline.up"),
        Binding("down,j", "move(1)", "Lane below", show=False, tooltip="The lane below", id="timeline.down"),
        Binding("enter,space", "open", "Open", tooltip="Open or close the lane: a line for each thread and level",
                id="timeline.open"),
    ]  # fmt: skip

    class Moved(Message):
        """The cursor, the window or the lanes are others."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lanes: Lanes | None = None
        self._whole: Window | None = None
        self._window: Window | None = None
        self._places: list[Place] = []
        self._open: set[int] = set()
        self._chosen = False
        """Whether somebody has opened or closed a lane; until then as many are open as there is room for."""
        self._line = 0
        self._top = 0
        self._time = 0
        self._found: Found | None = None
        self._words = ""
        self._drag: tuple[int, int] | None = None

    # -- what is shown ----------------------------------------------------------------------------------------

    def show(self, lanes: Lanes | None, words: str = "") -> None:
        """Shows other lanes, from begin to end; `words` are said where there are none."""
        from jaxprof.tui.timeline.frame import Window

        self._lanes, self._words, self._found = lanes, words, None
        self._open, self._chosen, self._line, self._top = set(), False, 0, 0
        if lanes is not None:
            self._whole = self._window = Window(lanes.begin, max(lanes.end, lanes.begin + LEAST_NS))
            self._time = lanes.begin
            self._arrange()
            self._line = next((n for n, place in enumerate(self._places) if lanes.lanes[place.lane].on_device), 0)
        self._changed()

    def recolour(self, lanes: Lanes) -> None:
        """The same lanes with better known kinds: cursor, window and open lanes stay."""
        self._lanes = lanes
        self._changed()

    def show_found(self, found: Found | None) -> None:
        """Marks what was searched for."""
        self._found = found
        self.refresh()

    @property
    def lanes(self) -> Lanes | None:
        """What is shown."""
        return self._lanes

    @property
    def window(self) -> Window | None:
        """The time that is in view."""
        return self._window

    @property
    def time(self) -> int:
        """Where the cursor is, in nanoseconds since the timeline's begin."""
        return self._time

    @property
    def under_cursor(self) -> tuple[Lane, Row, int | None] | None:
        """The lane and the row that the cursor is on, and the interval there, None in a gap."""
        if self._lanes is None or not self._places:
            return None
        lane, row = self._row(self._places[self._line])
        return lane, row, row.at(self._time)

    def go(self, place: Place, time: int) -> None:
        """Puts the cursor on a row of a lane, opens that if it must, and brings the time into view."""
        if self._lanes is None or self._window is None or self._whole is None:
            return
        if place not in self._places:
            lane = self._lanes.lanes[place.lane]
            if place.row == -1 or not lane.opens or (place.row == 0 and lane.summary is lane.rows[0]):
                place = Place(place.lane, -1)
            else:
                self._open.add(place.lane)
                self._chosen = True
            self._arrange()
        self._line = self._places.index(place) if place in self._places else self._line
        self._time = time
        self._window = self._window.showing(time, self._whole)
        self._changed()

    def _row(self, place: Place) -> tuple[Lane, Row]:
        assert self._lanes is not None
        lane = self._lanes.lanes[place.lane]
        return lane, lane.summary if place.row < 0 else lane.rows[place.row]

    def _arrange(self) -> None:
        """Which lines there are."""
        if self._lanes is None:
            return
        lanes = self._lanes.lanes
        if not self._chosen:
            self._open = as_many_as_fit(lanes, self._room)
        before = self._places[self._line] if self._line < len(self._places) else None
        self._places = [
            Place(at, row)
            for at, lane in enumerate(lanes)
            for row in (range(len(lane.rows)) if at in self._open and lane.opens else (-1,))
        ]
        if before is not None:
            same = [n for n, place in enumerate(self._places) if place.lane == before.lane]
            self._line = same[0] if same else 0

    @property
    def _room(self) -> int:
        return max(1, self.size.height - 1)

    @property
    def _gutter(self) -> int:
        return 14 if self.size.width < 100 else 22

    @property
    def _width(self) -> int:
        """Columns of the time."""
        return max(8, self.size.width - self._gutter - 1)

    def _changed(self) -> None:
        if self._line < self._top:
            self._top = self._line
        elif self._line >= self._top + self._room:
            self._top = self._line - self._room + 1
        self._top = max(0, min(self._top, len(self._places) - self._room))
        self.refresh()
        self.post_message(self.Moved())

    # -- drawing ----------------------------------------------------------------------------------------------

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"timeline--{name}")

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if self._lanes is None or self._window is None or not self._places:
            text = shorten(self._words, max(1, width - 2)) if self._words and y == 0 else ""
            return Strip([Segment(f" {text}", self._style("ruler"))]).adjust_cell_length(width, self.rich_style)
        if y == 0:
            return self._ruler().adjust_cell_length(width, self.rich_style)
        line = y - 1 + self._top
        if line >= len(self._places):
            return Strip.blank(width, self.rich_style)
        return self._lane_line(line).adjust_cell_length(width, self.rich_style)

    def _ruler(self) -> Strip:
        """Round times above the lanes, and where the cursor is."""
        assert self._window is not None
        width, window = self._width, self._window
        text = [" "] * width
        scale = Scale(window.start, window.end)
        ticks = scale.ticks(max(2, width // 14))
        step = ticks[1] - ticks[0] if len(ticks) > 1 else window.span
        free = 0
        for tick in ticks:
            column = window.column_of(round(tick), width)
            label = f"╷{ruler_time(tick, step)}"
            if free <= column and column + columns(label) <= width:
                text[column : column + len(label)] = list(label)
                free = column + len(label) + 1
        segments = [Segment(" " * (self._gutter + 1)), Segment("".join(text), self._style("ruler"))]
        return self._with_cursor(Strip(segments), "▼")

    def _lane_line(self, line: int) -> Strip:
        from jaxprof.tui.timeline.frame import columns_of

        assert self._window is not None
        place = self._places[line]
        lane, row = self._row(place)
        hits = None
        if self._found is not None:
            hits = self._found.busy.get((place.lane, place.row if lane.opens else -1))
        found = columns_of(lane, row, self._window, self._width, hits)
        segments = [
            Segment(self._title(place, lane, row), self._style("title-cursor" if line == self._line else "title")),
            Segment("│", self._style("rule")),
            *self._cells(lane, found),
        ]
        strip = Strip(segments)
        return self._with_cursor(strip) if line == self._line else strip

    def _title(self, place: Place, lane: Lane, row: Row) -> str:
        """What a line is: a lane, one of its threads by its number (the details have its name), or a deeper level."""
        room = self._gutter - 2
        several = lane.summary.capacity
        name = lane.title if not lane.on_device else lane.device if several > 1 else device_title(lane)
        mark, number = " ", ""
        if place.row < 0:
            mark, number = ("▸" if lane.opens else " "), (f" ×{several}" if several > 1 else "")
        elif row.level:
            name = "  " * min(row.level, 4) + "└"
        else:
            mark = "▾" if place.row == 0 and lane.opens else " "
            if several > 1:
                number = f" {sum(one.level == 0 for one in lane.rows[: place.row + 1])}"
        text = shorten(name, max(1, room - len(number))) + number
        return f"{mark} {text}" + " " * max(0, room - columns(text))

    def _cells(self, lane: Lane, found: Columns) -> list[Segment]:
        """The columns as runs of one style."""
        kinds, heights = found.kind.tolist(), found.height.tolist()
        gaps, hits = found.gap.tolist(), found.hit.tolist()
        glyphs: list[str] = []
        styles: list[str] = []
        for kind, height, gap, hit in zip(kinds, heights, gaps, hits, strict=True):
            if kind >= 0:
                glyphs.append(_HEIGHTS[min(7, int(height * 8))])
                styles.append("hit" if hit else KINDS[kind])
            else:
                glyphs.append("·" if gap and lane.on_device else " ")
                styles.append("gap")
        for named in found.named:
            whole = "hit" if hits[named.first] else KINDS[named.kind]
            text = _label(lane.labels[named.label][0], named.last - named.first, begins=named.begins)
            glyphs[named.first : named.last] = text
            styles[named.first : named.last] = [f"={whole}"] * (named.last - named.first)
        segments: list[Segment] = []
        begin = 0
        for at in range(1, len(glyphs) + 1):
            if at == len(glyphs) or styles[at] != styles[begin]:
                name = styles[begin]
                style = self._solid(name[1:]) if name.startswith("=") else self._style(name)
                segments.append(Segment("".join(glyphs[begin:at]), style))
                begin = at
        return segments

    def _solid(self, name: str) -> Style:
        """Text on the colour of a kind."""
        style = self._style(name)
        return Style(color=style.bgcolor, bgcolor=style.color)

    def _with_cursor(self, strip: Strip, character: str = "") -> Strip:
        assert self._window is not None
        column = self._window.column_of(self._time, self._width)
        if not 0 <= column < self._width:
            return strip
        at = self._gutter + 1 + column
        before, under, after = strip.divide([at, at + 1, strip.cell_length])
        style = self._style("cursor")
        return Strip.join([before, Strip([Segment(character or under.text, style)]), after])

    # -- moving -----------------------------------------------------------------------------------------------

    def on_resize(self) -> None:
        self._arrange()
        self._changed()

    def action_zoom(self, step: int) -> None:
        """Twice or half the time, around the cursor."""
        self._zoom(ZOOM**-step, self._time)

    def _zoom(self, factor: float, around: int) -> None:
        if self._window is None or self._whole is None:
            return
        self._window = self._window.zoomed(factor, around, self._whole, LEAST_NS)
        if not self._window.start <= self._time < self._window.end:
            self._time = min(max(self._time, self._window.start), self._window.end - 1)
        self._changed()

    def action_whole(self) -> None:
        """The whole recording."""
        self._window = self._whole
        self._changed()

    def action_fit(self) -> None:
        """The interval under the cursor, or the gap there, and a little around it."""
        from jaxprof.tui.timeline.frame import Window

        found = self.under_cursor
        if found is None or self._whole is None:
            return
        begin, end = extent(found[1], self._time, self._whole)
        margin = (end - begin) // 8 + LEAST_NS // 8
        self._window = Window(begin - margin, end + margin).within(self._whole)
        if self._window.span < LEAST_NS:
            self._window = Window(begin, begin + LEAST_NS).within(self._whole)
        self._changed()

    def action_pan(self, step: int) -> None:
        """A tenth of the window; where there is nothing more to pan to, the cursor moves."""
        if self._window is None or self._whole is None:
            return
        by = round(step * self._window.span * PAN)
        moved = self._window.moved(by, self._whole)
        shift = moved.start - self._window.start
        if shift == 0:
            self.action_step(step)
            return
        self._window = moved
        self._time = min(max(self._time + shift, moved.start), moved.end - 1)
        self._changed()

    def action_step(self, step: int) -> None:
        """The cursor a column further; the window follows."""
        if self._window is None or self._whole is None:
            return
        width = self._width
        time = self._window.time_at(self._window.column_of(self._time, width) + step, width)
        self._time = min(max(time, self._whole.start), self._whole.end - 1)
        if not self._window.start <= self._time < self._window.end:
            self._window = self._window.moved(round(step * self._window.span * PAN), self._whole)
        self._changed()

    def action_event(self, step: int) -> None:
        """To the next interval of the row, or the one before."""
        found = self.under_cursor
        if found is None or self._window is None or self._whole is None:
            return
        _, row, at = found
        time = int(row.starts[at]) if at is not None and step < 0 else self._time
        index = row.near(time, step)
        if index is not None:
            self._time = int(row.starts[index])
            self._window = self._window.showing(self._time, self._whole)
            self._changed()

    def action_edge(self, step: int) -> None:
        """To the begin or the end of the recording."""
        if self._window is not None and self._whole is not None:
            self._time = self._whole.start if step < 0 else self._whole.end - 1
            self._window = self._window.showing(self._time, self._whole)
            self._changed()

    def action_move(self, step: int) -> None:
        """A lane further up or down."""
        if self._places:
            self._line = max(0, min(self._line + step, len(self._places) - 1))
            self._changed()

    def action_open(self) -> None:
        """Opens or closes the lane under the cursor."""
        if not self._places or self._lanes is None:
            return
        lane = self._places[self._line].lane
        if self._lanes.lanes[lane].opens:
            self._open ^= {lane}
            self._chosen = True
            self._arrange()
            self._changed()

    # -- mouse ------------------------------------------------------------------------------------------------

    def _time_at(self, event: events.MouseEvent) -> int | None:
        offset = event.get_content_offset(self)
        if offset is None or self._window is None or offset.x <= self._gutter:
            return None
        return self._window.time_at(offset.x - self._gutter - 1, self._width)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, 1 / WHEEL_ZOOM)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, WHEEL_ZOOM)

    def _wheel(self, event: events.MouseEvent, factor: float) -> None:
        """Zooms around the mouse; over the titles, or with shift, goes through the lanes."""
        time = self._time_at(event)
        event.stop()
        if time is None or event.shift:
            self.action_move(1 if factor > 1 else -1)
        else:
            self._zoom(factor, time)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        offset, time = event.get_content_offset(self), self._time_at(event)
        if offset is None or self._window is None:
            return
        if offset.y >= 1 and offset.y - 1 + self._top < len(self._places):
            self._line = offset.y - 1 + self._top
        if time is None:
            self.action_open() if offset.y >= 1 else None
        else:
            self._time = time
            self._drag = (offset.x, self._window.start)
            self.capture_mouse()
        self._changed()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._drag is None or self._window is None or self._whole is None:
            return
        begun, start = self._drag
        by = (begun - event.x) * self._window.span // self._width
        moved = self._window.moved(start + by - self._window.start, self._whole)
        if moved != self._window:
            self._window = moved
            self._changed()

    def on_mouse_up(self) -> None:
        self._drag = None
        self.release_mouse()


_STREAM = re.compile(r"Stream #(\d+)(?:\((.*)\))?$", re.DOTALL)


def device_title(lane: Lane) -> str:
    """`gpu:0 #13 Compute` for a stream: what tells it from the others comes first."""
    found = _STREAM.match(lane.title)
    return f"{lane.device} #{found[1]} {found[2] or ''}" if found else f"{lane.device} {lane.title}"


def as_many_as_fit(lanes: Sequence[Lane], room: int) -> set[int]:
    """The lanes that can be open with every lane in view, those of the devices first."""
    free, found = room - len(lanes), set()
    for at in sorted(range(len(lanes)), key=lambda at: (not lanes[at].on_device, at)):
        if lanes[at].opens and len(lanes[at].rows) - 1 <= free:
            free -= len(lanes[at].rows) - 1
            found.add(at)
    return found


def _label(name: str, room: int, *, begins: bool) -> list[str]:
    """A name in exactly `room` columns, a thin line before it where the interval begins."""
    mark = "▏" if begins else " "
    text = shorten(_plain(name), max(1, room - 1))
    cells: list[str] = []
    for character in text:
        width = columns(character)
        if width == 1:
            cells.append(character)
        elif width == 2:
            cells += [character, ""]
        elif cells:
            cells[-1] += character
    return [mark, *cells, *[" "] * (room - 1 - len(cells))]


_WORDY = re.compile(r"\s+")


def _plain(name: str) -> str:
    return _WORDY.sub(" ", safe(name))


def extent(row: Row, time: int, whole: Window) -> tuple[int, int]:
    """Begin and end of the interval at that time, or of the gap."""
    at = row.at(time)
    if at is not None:
        return int(row.starts[at]), int(row.ends[at])
    before, after = row.near(time, -1), row.near(time, 1)
    begin = int(row.ends[before]) if before is not None else whole.start
    return begin, int(row.starts[after]) if after is not None else whole.end


def ruler_time(value: float, step: float) -> str:
    """A round time of a ruler whose marks are `step` nanoseconds apart, in the unit that needs no fraction."""
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if step >= scale), _UNITS[-1])
    return f"{integer(round(value / scale))} {unit}"
