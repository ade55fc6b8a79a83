"""The timeline: a ruler, a row for each lane, a cursor. Drawn line by line, from what the window holds and no more.

A lane of several threads or levels is closed at first where there is no room for all of it: its one line shows how many
of its threads were busy. The view is told what to show and posts where the cursor is; what that means is the screen's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from jaxprof.safe_text import shorten
from jaxprof.tui.timeline.browse import ZOOM, Browse, Place
from jaxprof.tui.timeline.kinds import KINDS
from jaxprof.tui.widgets.timeline_drawing import cells, ruler, title

if TYPE_CHECKING:
    from jaxprof.tui.timeline.lanes import Lane, Lanes, Row
    from jaxprof.tui.timeline.search import Found
    from jaxprof.tui.timeline.window import Window

WHEEL_ZOOM = 1.25


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
        self._browse: Browse | None = None
        """Where one is; None while there is nothing to show."""
        self._found: Found | None = None
        self._words = ""
        self._drag: tuple[int, int] | None = None
        """The column that the mouse was pressed in, and where the window began then."""

    # -- what is shown ----------------------------------------------------------------------------------------

    def show(self, lanes: Lanes | None, words: str = "") -> None:
        """Shows other lanes, from begin to end; `words` are said where there are none."""
        self._browse = Browse(lanes, self._width, self._room) if lanes is not None else None
        self._words, self._found = words, None
        self._changed()

    def recolour(self, lanes: Lanes) -> None:
        """The same lanes with better known kinds: cursor, window and open lanes stay."""
        if self._browse is not None:
            self._browse.lanes = lanes
        self._changed()

    def show_found(self, found: Found | None) -> None:
        """Marks what was searched for."""
        self._found = found
        self.refresh()

    @property
    def lanes(self) -> Lanes | None:
        """What is shown."""
        return self._browse.lanes if self._browse is not None else None

    @property
    def window(self) -> Window | None:
        """The time that is in view."""
        return self._browse.window if self._browse is not None else None

    @property
    def time(self) -> int:
        """Where the cursor is, in nanoseconds since the timeline's begin."""
        return self._browse.time if self._browse is not None else 0

    @property
    def under_cursor(self) -> tuple[Lane, Row, int | None] | None:
        """The lane and the row that the cursor is on, and the interval there, None in a gap."""
        return self._browse.under_cursor if self._browse is not None else None

    def go(self, place: Place, time: int) -> None:
        """Puts the cursor on a row of a lane, opens that if it must, and brings the time into view."""
        self._change(lambda browse: browse.go(place, time))

    def _change(self, change: Callable[[Browse], object]) -> None:
        if self._browse is not None:
            change(self._browse)
            self._changed()

    def _changed(self) -> None:
        if self._browse is not None:
            self._browse.bring_into_view()
        self.refresh()
        self.post_message(self.Moved())

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

    # -- drawing ----------------------------------------------------------------------------------------------

    def _style(self, name: str, *, solid: bool = False) -> Style:
        """`solid`: text on the colour, and not in it."""
        style = self.get_component_rich_style(f"timeline--{name}")
        return Style(color=style.bgcolor, bgcolor=style.color) if solid else style

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        browse = self._browse
        if browse is None or not browse.places:
            text = shorten(self._words, max(1, width - 2)) if self._words and y == 0 else ""
            return Strip([Segment(f" {text}", self._style("ruler"))]).adjust_cell_length(width, self.rich_style)
        if y == 0:
            return self._ruler(browse).adjust_cell_length(width, self.rich_style)
        line = y - 1 + browse.top
        if line >= len(browse.places):
            return Strip.blank(width, self.rich_style)
        return self._lane_line(browse, line).adjust_cell_length(width, self.rich_style)

    def _ruler(self, browse: Browse) -> Strip:
        """Round times above the lanes, and where the cursor is."""
        text = ruler(browse.window, self._width)
        strip = Strip([Segment(" " * (self._gutter + 1)), Segment(text, self._style("ruler"))])
        return self._with_cursor(browse, strip, "▼")

    def _lane_line(self, browse: Browse, line: int) -> Strip:
        from jaxprof.tui.timeline.frame import columns_of

        place = browse.places[line]
        lane, row = browse.row(place)
        hits = None
        if self._found is not None:
            hits = self._found.busy.get((place.lane, place.row if lane.opens else -1))
        found = columns_of(lane, row, browse.window, self._width, hits)
        name = title(lane, place.row, row, self._gutter)
        strip = Strip(
            [
                Segment(name, self._style("title-cursor" if line == browse.line else "title")),
                Segment("│", self._style("rule")),
                *(Segment(one.text, self._style(one.style, solid=one.solid)) for one in cells(lane, found)),
            ]
        )
        return self._with_cursor(browse, strip) if line == browse.line else strip

    def _with_cursor(self, browse: Browse, strip: Strip, character: str = "") -> Strip:
        column = browse.window.column_of(browse.time, self._width)
        if not 0 <= column < self._width:
            return strip
        at = self._gutter + 1 + column
        before, under, after = strip.divide([at, at + 1, strip.cell_length])
        return Strip.join([before, Strip([Segment(character or under.text, self._style("cursor"))]), after])

    # -- moving -----------------------------------------------------------------------------------------------

    def on_resize(self) -> None:
        if self._browse is not None:
            self._browse.resize(self._width, self._room)
        self._changed()

    def action_zoom(self, step: int) -> None:
        """Twice or half the time, around the cursor."""
        self._change(lambda browse: browse.zoom(ZOOM**-step, browse.time))

    def action_whole(self) -> None:
        """The whole recording."""
        self._change(Browse.show_whole)

    def action_fit(self) -> None:
        """The interval under the cursor, or the gap there, and a little around it."""
        self._change(Browse.fit)

    def action_pan(self, step: int) -> None:
        """A tenth of the window; where there is nothing more to pan to, the cursor moves."""
        self._change(lambda browse: browse.pan(step))

    def action_step(self, step: int) -> None:
        """The cursor a column further; the window follows."""
        self._change(lambda browse: browse.step(step))

    def action_event(self, step: int) -> None:
        """To the next interval of the row, or the one before."""
        self._change(lambda browse: browse.event(step))

    def action_edge(self, step: int) -> None:
        """To the begin or the end of the recording."""
        self._change(lambda browse: browse.edge(step))

    def action_move(self, step: int) -> None:
        """A lane further up or down."""
        self._change(lambda browse: browse.move(step))

    def action_open(self) -> None:
        """Opens or closes the lane under the cursor."""
        self._change(Browse.open)

    # -- mouse ------------------------------------------------------------------------------------------------

    def _time_at(self, event: events.MouseEvent) -> int | None:
        offset = event.get_content_offset(self)
        if offset is None or self._browse is None or offset.x <= self._gutter:
            return None
        return self._browse.window.time_at(offset.x - self._gutter - 1, self._width)

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
            self._change(lambda browse: browse.zoom(factor, time))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        offset, time, browse = event.get_content_offset(self), self._time_at(event), self._browse
        if offset is None or browse is None:
            return
        if offset.y >= 1 and offset.y - 1 + browse.top < len(browse.places):
            browse.line = offset.y - 1 + browse.top
        if time is not None:
            browse.time = time
            self._drag = (offset.x, browse.window.start)
            self.capture_mouse()
        elif offset.y >= 1:
            browse.open()
        self._changed()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._drag is None or self._browse is None:
            return
        begun, start = self._drag
        before = self._browse.window
        self._browse.begin_at(start + (begun - event.x) * before.span // self._width)
        if self._browse.window != before:
            self._changed()

    def on_mouse_up(self) -> None:
        self._drag = None
        self.release_mouse()
