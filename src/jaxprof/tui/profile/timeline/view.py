"""The timeline: a ruler, a row for each lane, and a cursor. Each line is drawn only from the current window.

A lane of several threads or levels is closed at first if there is no room for all of it: its one line then shows how
many of its threads were busy. The view reports cursor moves; the screen interprets them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from jaxprof.analysis.lanes.kinds import KINDS
from jaxprof.tui.kit.canvas import Scale, ruler
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.profile.timeline.browse import Browse, TimelineRow
from jaxprof.tui.profile.timeline.drawing import StyledColumns, cells, columns_of, ruler_time, title
from jaxprof.tui.profile.timeline.facts import NS
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.analysis.lanes.navigation import Matches
    from jaxprof.analysis.lanes.rows import Lanes


WHEEL_ZOOM = 1.25
_HEAD = 1
"""Lines above the lanes: the ruler."""


class TimelineView(Guarded, Widget, can_focus=True, keys="timeline"):
    """Draws lanes over time. The keys call methods of `browse`, the state of the view."""

    class Moved(Message):
        """The cursor, or the part in view, has changed."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"timeline--{kind}" for kind in KINDS),
        "timeline--ruler", "timeline--title", "timeline--title-cursor", "timeline--gap", "timeline--hit",
        "timeline--cursor", "timeline--rule", "timeline--range",
    }  # fmt: skip

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.browse: Browse | None = None
        """None while there is nothing to show."""
        self._matches: Matches | None = None
        self.words = ""
        """Why there is nothing to show, if there is nothing."""
        self._drawn: dict[TimelineRow, list[Segment]] = {}
        """What was drawn of each row for the present lanes and matches, in the window of `_drawn_key`."""
        self._drawn_key: object = None
        self._room = 1
        """Lines available for the lanes."""

    # -- what is shown ----------------------------------------------------------------------------------------

    @property
    def lanes(self) -> Lanes | None:
        """The lanes in view; None while there are none."""
        return self.browse.lanes if self.browse is not None else None

    def show(self, lanes: Lanes | None, words: str = "") -> None:
        """Show other lanes from start to end, or `words` if there are none."""
        self.browse = Browse(lanes, self._width, self._room) if lanes is not None else None
        self.words = words
        self.refresh_bindings()
        self.show_matches(None)
        self.changed()

    def recolour(self, lanes: Lanes) -> None:
        """Replace the lanes by the same lanes with more exact kinds; cursor, window and open lanes stay."""
        if self.browse is not None:
            self.browse.lanes = lanes
        self._drawn_key = None
        self.changed()

    def show_matches(self, matches: Matches | None) -> None:
        """Mark the matches of a search; None marks nothing."""
        self._matches, self._drawn_key = matches, None
        self.refresh()

    def fit(self, most: int) -> int:
        """Take the greatest height that is available, open as many lanes as fit, and return the height that the view
        needs."""
        self._room = max(1, most - _HEAD)
        if self.browse is None:
            return most
        self.browse.resize(self._width, self._room)
        self.browse.bring_into_view()
        return min(most, _HEAD + len(self.browse.places))

    @property
    def _gutter(self) -> int:
        return 16 if self.size.width < 100 else 22

    @property
    def _width(self) -> int:
        """Columns for the lanes, beside the gutter."""
        return max(8, self.size.width - self._gutter - 1)

    def change(self, change: Callable[[Browse], object]) -> None:
        """Change the view, if there is anything to show."""
        if self.browse is not None:
            change(self.browse)
            self.changed()

    def changed(self) -> None:
        """Redraw the view, and report the change."""
        if self.browse is not None:
            self.browse.bring_into_view()
        self.refresh()
        self.post_message(self.Moved())

    # -- drawing ----------------------------------------------------------------------------------------------

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"timeline--{name}")

    def _segments(self, pieces: Sequence[StyledColumns]) -> list[Segment]:
        """Return pieces in their colours; a name is drawn on its colour, not in it."""
        styles = [(piece, self._style(piece.style)) for piece in pieces]
        return [
            Segment(piece.text, Style(color=style.bgcolor, bgcolor=style.color) if piece.solid else style)
            for piece, style in styles
        ]

    def render_line(self, y: int) -> Strip:
        width, browse = self.size.width, self.browse
        if browse is None or not browse.places:
            lines = textwrap.wrap(self.words, max(12, width - 2))
            text = lines[y] if y < len(lines) else ""
            return Strip([Segment(f" {text}", self._style("ruler"))]).adjust_cell_length(width, self.rich_style)
        if y < _HEAD:
            strip = self._with_range(browse, self._ruler(browse).adjust_cell_length(width, self.rich_style))
            return self._with_cursor(browse, strip, "▼")
        line = browse.line_at(y - _HEAD)
        if line is None:
            return Strip.blank(width, self.rich_style)
        strip = self._with_range(browse, self._lane_line(browse, line).adjust_cell_length(width, self.rich_style))
        return self._with_cursor(browse, strip) if line == browse.line else strip

    def _ruler(self, browse: Browse) -> Strip:
        """Return round times above the lanes, with the length of the view beside them."""
        text = ruler(Scale(browse.window.start, browse.window.end), self._width, ruler_time, "╷")
        part = "view" if browse.zoomed else "all"
        words = f"  {part} {seconds(browse.window.span * NS)}"[: self._gutter].ljust(self._gutter)
        return Strip([Segment(words, self._style("ruler")), Segment(" "), Segment(text, self._style("ruler"))])

    def _lane_line(self, browse: Browse, line: int) -> Strip:
        place = browse.places[line]
        lane, row = browse.row(place)
        name = title(lane, place.row, row, self._gutter)
        return Strip(
            [
                Segment(name, self._style("title-cursor" if line == browse.line else "title")),
                Segment("│", self._style("rule")),
                *self._columns_of(browse, place),
            ]
        )

    def _columns_of(self, browse: Browse, place: TimelineRow) -> list[Segment]:
        """Return the columns of a row. They are cached by window, because most keys move only the cursor."""
        key = (browse.window, self._width, self.app.theme)
        if self._drawn_key != key:
            self._drawn_key = key
            self._drawn.clear()
        if place not in self._drawn:
            lane, row = browse.row(place)
            hits = None
            if self._matches is not None:
                hits = self._matches.busy.get((place.lane, place.row if lane.opens else -1))
            drawn = cells(lane, columns_of(lane, row, browse.window, self._width, hits))
            self._drawn[place] = self._segments(drawn)
        return self._drawn[place]

    # -- what is drawn over the lines -------------------------------------------------------------------------

    def _with_cursor(self, browse: Browse, strip: Strip, character: str = "") -> Strip:
        """Draw the column of the cursor, with `character` if one is given."""
        column = browse.window.column_of(browse.cursor, self._width)
        if not 0 <= column < self._width:
            return strip
        at = self._gutter + 1 + column
        before, under, after = strip.divide([at, at + 1, strip.cell_length])
        return Strip.join([before, Strip([Segment(character or under.text, self._style("cursor"))]), after])

    def _with_range(self, browse: Browse, strip: Strip) -> Strip:
        """Draw the columns of the selected range on another background; a name keeps that of its interval."""
        if browse.range is None:
            return strip
        begin, end = (browse.window.column_of(time, self._width) for time in browse.range)
        first, last = max(0, begin), min(self._width, end + 1)
        if first >= last:
            return strip
        left = self._gutter + 1
        before, inside, after = strip.divide([left + first, left + last, strip.cell_length])
        usual = self._style("gap").bgcolor
        ground = Style(bgcolor=self._style("range").bgcolor, reverse=self.app.no_color or None)
        lit = [
            Segment(segment.text, (segment.style or ground) + ground)
            if segment.style is None or segment.style.bgcolor in (None, usual)
            else segment
            for segment in inside
        ]
        return Strip.join([before, Strip(lit), after])

    # -- keys -------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the keys while there are no lanes."""
        if action in ("browse", "longest"):
            return self.browse is not None
        return super().check_action(action, parameters)

    def action_browse(self, method: str, *arguments: int) -> None:
        """Call a method of `browse` by its name."""
        self.change(lambda browse: getattr(browse, method)(*arguments))

    def clear_range(self) -> bool:
        """Clear the range; return False if there is none."""
        if self.browse is None or self.browse.anchor is None:
            return False
        self.change(Browse.mark)
        return True

    def step_back(self) -> bool:
        """Undo the zoom, or what was opened; return False if there is nothing to undo."""
        undone = self.browse is not None and self.browse.step_back()
        self.changed()
        return undone

    def go(self, place: TimelineRow, time: int) -> None:
        """Move the cursor to a row of a lane, open the lane if needed, and bring the time into view."""
        self.change(lambda browse: browse.go(place, time))

    def action_longest(self) -> None:
        if self.browse is not None and not self.browse.longest():
            self.say("This lane has no idle period between its events.")
        self.changed()

    # -- mouse ------------------------------------------------------------------------------------------------

    def on_resize(self) -> None:
        self.changed()

    def _column(self, event: events.MouseEvent) -> int | None:
        """Return the column of the lanes under the mouse; None over the names."""
        offset = event.get_content_offset(self)
        return offset.x - self._gutter - 1 if offset is not None and offset.x > self._gutter else None

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, 1 / WHEEL_ZOOM)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, WHEEL_ZOOM)

    def _wheel(self, event: events.MouseEvent, factor: float) -> None:
        """Zoom around the mouse."""
        event.stop()
        column = self._column(event)
        if column is not None:
            self.change(lambda browse: browse.zoom(factor, browse.window.time_at(column, browse.width)))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor; over the names, open the lane."""
        offset, column, browse = event.get_content_offset(self), self._column(event), self.browse
        if offset is None or browse is None:
            return
        line = browse.line_at(offset.y - _HEAD) if offset.y >= _HEAD else None
        browse.line = line if line is not None else browse.line
        if column is not None:
            browse.look_at(browse.window.time_at(column, browse.width))
        elif line is not None:
            browse.open()
        self.changed()
