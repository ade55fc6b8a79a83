"""The timeline: a ruler, a row for each lane, a cursor. Drawn line by line, from what is in the window only.

A lane of several threads or levels is closed at first if there is no room for all of it: its one line then shows how
many of its threads were busy. The view reports cursor moves; the screen interprets them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.profile.timeline.browse import ZOOM, Browse, TimelineRow
from jaxprof.tui.profile.timeline.drawing import Overlays, cells, ruler, title
from jaxprof.tui.profile.timeline.kinds import KINDS

if TYPE_CHECKING:
    from jaxprof.tui.profile.timeline.lanes import Lanes
    from jaxprof.tui.profile.timeline.search import Matches


WHEEL_ZOOM = 1.25


class TimelineView(Guarded, Widget, can_focus=True):
    """Lanes over time."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"timeline--{kind}" for kind in KINDS),
        "timeline--ruler", "timeline--title", "timeline--title-cursor", "timeline--gap", "timeline--hit",
        "timeline--cursor", "timeline--rule", "timeline--range", "timeline--link",
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = bindings("timeline")

    class Moved(Message):
        """The cursor, the window or the lanes have changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.browse: Browse | None = None
        """The window, the cursor and the open lanes; None while there is nothing to show."""
        self._matches: Matches | None = None
        self._words = ""
        self._named: tuple[tuple[int, int], list[str]] = ((0, 0), [])
        """The names of the lanes, with the lanes and the width that they were made for."""
        self._drag: tuple[int, int] | None = None
        """The column where the mouse was pressed, and the start of the window then."""
        self._selecting = False
        """Whether the drag selects a range (with shift or the right button) and does not move the window."""

    # -- what is shown ----------------------------------------------------------------------------------------

    def show(self, lanes: Lanes | None, words: str = "") -> None:
        """Shows other lanes from start to end, or `words` if there are none."""
        self.browse = Browse(lanes, self._width, self._room) if lanes is not None else None
        self._words, self._matches = words, None
        self._changed()

    def recolour(self, lanes: Lanes) -> None:
        """Replaces the lanes by the same lanes with better known kinds; cursor, window and open lanes stay."""
        if self.browse is not None:
            self.browse.lanes = lanes
        self._changed()

    def show_matches(self, matches: Matches | None) -> None:
        """Marks the matches of a search; None marks nothing."""
        self._matches = matches
        self.refresh()

    @property
    def lanes(self) -> Lanes | None:
        """The lanes in view; None while there are none."""
        return self.browse.lanes if self.browse is not None else None

    def clear_range(self) -> bool:
        """Clears the range; False if there is none."""
        if self.browse is None or self.browse.anchor is None:
            return False
        self._change(Browse.mark)
        return True

    def go(self, place: TimelineRow, time: int) -> None:
        """Moves the cursor to a row of a lane, opens the lane if needed, and brings the time into view."""
        self._change(lambda browse: browse.go(place, time))

    def _change(self, change: Callable[[Browse], object]) -> None:
        if self.browse is not None:
            change(self.browse)
            self._changed()

    def _changed(self) -> None:
        if self.browse is not None:
            self.browse.bring_into_view()
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
        """Columns that the lanes have beside the gutter."""
        return max(8, self.size.width - self._gutter - 1)

    # -- drawing ----------------------------------------------------------------------------------------------

    def _style(self, name: str, *, solid: bool = False, ground: bool = False) -> Style:
        """A style by name. `solid` draws text on the colour, not in it; `ground` is the background colour alone."""
        style = self.get_component_rich_style(f"timeline--{name}")
        if ground:
            return Style(bgcolor=style.bgcolor, reverse=self.app.no_color or None)
        return Style(color=style.bgcolor, bgcolor=style.color) if solid else style

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        browse = self.browse
        if browse is None or not browse.places:
            lines = textwrap.wrap(self._words, max(12, width - 2))
            text = lines[y] if y < len(lines) else ""
            return Strip([Segment(f" {text}", self._style("ruler"))]).adjust_cell_length(width, self.rich_style)
        over = self._overlays(browse)
        if y == 0:
            return over.in_range(self._ruler(browse)).adjust_cell_length(width, self.rich_style)
        line = browse.line_at(y - 1)
        if line is None:
            return over.link(Strip.blank(width, self.rich_style), y - 1)
        strip = over.in_range(self._lane_line(browse, line))
        strip = over.link(strip.adjust_cell_length(width, self.rich_style), y - 1)
        return over.cursor(strip) if line == browse.line else strip

    def _names(self, browse: Browse) -> list[str]:
        """The names of all lanes, shortened to the gutter; made once for each set of lanes and each width."""
        from jaxprof.tui.profile.timeline.drawing import lane_names

        key = (id(browse.lanes), self._gutter)
        if self._named[0] != key:
            self._named = (key, lane_names(browse.lanes.lanes, self._gutter - 2))
        return self._named[1]

    def _ruler(self, browse: Browse) -> Strip:
        """Round times above the lanes, with a mark at the cursor."""
        text = ruler(browse.window, self._width)
        strip = Strip([Segment(" " * (self._gutter + 1)), Segment(text, self._style("ruler"))])
        return self._overlays(browse).cursor(strip, "▼")

    def _lane_line(self, browse: Browse, line: int) -> Strip:
        from jaxprof.tui.profile.timeline.frame import columns_of

        place = browse.places[line]
        lane, row = browse.row(place)
        hits = None
        if self._matches is not None:
            hits = self._matches.busy.get((place.lane, place.row if lane.opens else -1))
        drawn = columns_of(lane, row, browse.window, self._width, hits)
        name = title(
            lane, self._names(browse)[place.lane], place.row, row, self._gutter, pinned=browse.is_pinned(place.lane)
        )
        return Strip(
            [
                Segment(name, self._style("title-cursor" if line == browse.line else "title")),
                Segment("│", self._style("rule")),
                *(Segment(cell.text, self._style(cell.style, solid=cell.solid)) for cell in cells(lane, drawn)),
            ]
        )

    def _overlays(self, browse: Browse) -> Overlays:
        return Overlays(browse, self._gutter, self._width, self._room, self._style)

    # -- moving -----------------------------------------------------------------------------------------------

    def on_resize(self) -> None:
        if self.browse is not None:
            self.browse.resize(self._width, self._room)
        self._changed()

    def action_zoom(self, step: int) -> None:
        """Shows twice or half the time around the cursor."""
        self._change(lambda browse: browse.zoom(ZOOM**-step, browse.time))

    def action_whole(self) -> None:
        """Shows the whole recording."""
        self._change(Browse.show_whole)

    def action_fit(self) -> None:
        """Zooms to the interval or gap under the cursor, with a little around it."""
        self._change(Browse.fit)

    def action_pan(self, step: int) -> None:
        """Pans by a tenth of the window; at either end, moves the cursor."""
        self._change(lambda browse: browse.pan(step))

    def action_step(self, step: int) -> None:
        """Moves the cursor by a column; the window follows."""
        self._change(lambda browse: browse.step(step))

    def action_event(self, step: int) -> None:
        """Goes to the next or the previous interval of the row."""
        self._change(lambda browse: browse.event(step))

    def action_edge(self, step: int) -> None:
        """Goes to the start or the end of the recording."""
        self._change(lambda browse: browse.edge(step))

    def action_move(self, step: int) -> None:
        """Goes a lane up or down."""
        self._change(lambda browse: browse.move(step))

    def action_mark(self) -> None:
        """Starts a range at the cursor, or clears the present one."""
        self._change(Browse.mark)

    def action_follow(self) -> None:
        """Goes to the kernel of a launch, or to the launch of a kernel."""
        self._change(Browse.follow)

    def action_hide(self) -> None:
        """Hides the lane under the cursor."""
        self._change(Browse.hide)

    def action_show_all(self) -> None:
        """Shows the hidden lanes again."""
        self._change(Browse.show_all)

    def action_pin(self) -> None:
        """Pins the lane under the cursor above the others, or unpins it."""
        self._change(Browse.pin)

    def action_open(self) -> None:
        """Opens or closes the lane under the cursor."""
        self._change(Browse.open)

    # -- mouse ------------------------------------------------------------------------------------------------

    def _time_at(self, event: events.MouseEvent) -> int | None:
        offset = event.get_content_offset(self)
        if offset is None or self.browse is None or offset.x <= self._gutter:
            return None
        return self.browse.window.time_at(offset.x - self._gutter - 1, self._width)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, 1 / WHEEL_ZOOM)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, WHEEL_ZOOM)

    def _wheel(self, event: events.MouseEvent, factor: float) -> None:
        """Zooms around the mouse; over the titles, or with shift, goes a lane up or down."""
        time = self._time_at(event)
        event.stop()
        if time is None or event.shift:
            self.action_move(1 if factor > 1 else -1)
        else:
            self._change(lambda browse: browse.zoom(factor, time))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        offset, time, browse = event.get_content_offset(self), self._time_at(event), self.browse
        if offset is None or browse is None:
            return
        line = browse.line_at(offset.y - 1) if offset.y >= 1 else None
        if line is not None:
            browse.line = line
        if time is not None:
            browse.time = time
            # The right button does the same as shift, because many terminals keep shift with the mouse for themselves.
            self._selecting = event.shift or event.button == 3
            browse.anchor = time if self._selecting else None
            self._drag = (offset.x, browse.window.start)
            self.capture_mouse()
        elif offset.y >= 1:
            browse.open()
        self._changed()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._drag is None or self.browse is None:
            return
        begun, start = self._drag
        if self._selecting:
            time = self._time_at(event)
            if time is not None:
                self.browse.time = time
                self._changed()
            return
        before = self.browse.window
        self.browse.begin_at(start + (begun - event.x) * before.span // self._width)
        if self.browse.window != before:
            self._changed()

    def on_mouse_up(self) -> None:
        self._drag = None
        self.release_mouse()
