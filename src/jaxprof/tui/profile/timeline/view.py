"""The timeline: a minimap, a ruler, a row for each lane, and a cursor. Each line is drawn only from the current window.

A lane of several threads or levels is closed at first if there is no room for all of it: its one line then shows how
many of its threads were busy. The view reports cursor moves; the screen interprets them.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.strip import Strip

from jaxprof.analysis.lanes.kinds import KINDS
from jaxprof.tui.kit.canvas import Scale, ruler
from jaxprof.tui.profile.timeline.browse import Browse, TimelineKeys, TimelineRow
from jaxprof.tui.profile.timeline.drawing import Overlays, cells, ruler_time, title, with_range
from jaxprof.tui.profile.timeline.facts import NS
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.analysis.lanes.navigation import Matches
    from jaxprof.analysis.lanes.rows import Lanes
    from jaxprof.tui.profile.timeline.drawing import Minimap


WHEEL_ZOOM = 1.25
SHORT = 14
"""Height below which the minimap has one line."""


class TimelineView(TimelineKeys):
    """Draws lanes over time."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"timeline--{kind}" for kind in KINDS),
        "timeline--ruler", "timeline--title", "timeline--title-cursor", "timeline--gap", "timeline--hit",
        "timeline--cursor", "timeline--rule", "timeline--range", "timeline--link", "timeline--map",
        "timeline--map-window",
    }  # fmt: skip

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._matches: Matches | None = None
        self._words = ""
        self._name_cache: tuple[tuple[int, int], list[str]] = ((0, 0), [])
        """The names of the lanes, with the key (lanes and width) that they were made for."""
        self._row_cache: dict[TimelineRow, list[Segment]] = {}
        """What was drawn of each row for the present lanes and matches, in the window of `_row_cache_key`."""
        self._row_cache_key: object = None
        self._map: Minimap | None = None
        self._height_limit = 0
        """Lines available for the view."""
        self._dragged = False
        """Whether the mouse has moved since a button was pressed."""

    # -- what is shown ----------------------------------------------------------------------------------------

    def show(self, lanes: Lanes | None, words: str = "") -> None:
        """Show other lanes from start to end, or `words` if there are none."""
        self.browse = self.jumps = None
        if lanes is not None:
            from jaxprof.tui.profile.timeline.browse import Jumps

            self.browse = Browse(lanes, self._width, self._room)
            self.jumps = Jumps(self.browse)
        self._words, self._matches = words, None
        self._row_cache.clear()
        self.refresh_bindings()
        self.changed()

    def recolour(self, lanes: Lanes) -> None:
        """Replace the lanes by the same lanes with more exact kinds; cursor, window and open lanes stay."""
        if self.browse is not None:
            self.browse.lanes = lanes
        self._row_cache.clear()
        self.changed()

    def show_matches(self, matches: Matches | None) -> None:
        """Mark the matches of a search; None marks nothing."""
        self._matches = matches
        self._row_cache.clear()
        self.refresh()

    def fit(self, most: int) -> int:
        """Take the greatest height that is available, open as many lanes as fit, and return the height that the view
        needs."""
        self._height_limit = most
        if self.browse is None:
            return most
        self.browse.resize(self._width, self._room)
        self.browse.bring_into_view()
        return min(most, self._head + len(self.browse.places))

    @property
    def _map_lines(self) -> int:
        return 1 if self._height_limit < SHORT else 2

    @property
    def _head(self) -> int:
        """Lines above the lanes: the minimap and the ruler."""
        return self._map_lines + 1

    @property
    def _room(self) -> int:
        return max(1, self._height_limit - self._head)

    @property
    def _gutter(self) -> int:
        return 16 if self.size.width < 100 else 22

    @property
    def _width(self) -> int:
        """Columns for the lanes, beside the gutter."""
        return max(8, self.size.width - self._gutter - 1)

    # -- drawing ----------------------------------------------------------------------------------------------

    def _style(self, name: str, *, solid: bool = False, ground: bool = False) -> Style:
        """Return a style by name. `solid` draws text on the colour, not in it; `ground` is the background colour
        alone."""
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
        if y < self._map_lines:
            return self._map_line(browse, y).adjust_cell_length(width, self.rich_style)
        over, y = self._overlays(browse), y - self._head
        if y < 0:
            return over.in_range(self._ruler(browse)).adjust_cell_length(width, self.rich_style)
        line = browse.line_at(y)
        if line is None:
            return over.link(Strip.blank(width, self.rich_style), y)
        strip = over.in_range(self._lane_line(browse, line))
        strip = over.link(strip.adjust_cell_length(width, self.rich_style), y)
        return over.cursor(strip) if line == browse.line else strip

    def _map_line(self, browse: Browse, y: int) -> Strip:
        """Return a line of the minimap, with the length of the whole beside it."""
        from jaxprof.tui.profile.timeline.drawing import Minimap

        if self._map is None or self._map.lanes is not browse.lanes or self._map.width != self._width:
            self._map = Minimap(browse.lanes, browse.whole, self._width)
        pieces = self._map.lines(browse.window, self._map_lines, self._matches)[y]
        return self._titled(
            f"all {seconds(browse.whole.span * NS)}" if y == 0 else "",
            [Segment(piece.text, self._style(piece.style)) for piece in pieces],
        )

    def _titled(self, words: str, line: list[Segment]) -> Strip:
        """Return a line above the lanes, with words in place of a lane's name."""
        title = f"  {words}"[: self._gutter].ljust(self._gutter)
        return Strip([Segment(title, self._style("ruler")), Segment(" "), *line])

    def _names(self, browse: Browse) -> list[str]:
        """Return the names of all lanes, shortened to the gutter. They are cached by lanes and width."""
        from jaxprof.tui.profile.timeline.drawing import lane_names

        key = (id(browse.lanes), self._gutter)
        if self._name_cache[0] != key:
            self._name_cache = (key, lane_names(browse.lanes.lanes, self._gutter - 2))
        return self._name_cache[1]

    def _ruler(self, browse: Browse) -> Strip:
        """Return round times above the lanes, with a mark at the cursor."""
        text = ruler(Scale(browse.window.start, browse.window.end), self._width, ruler_time, "╷")
        if browse.range is not None:
            text = with_range(text, *(browse.window.column_of(time, self._width) for time in browse.range))
        part = f"view {seconds(browse.window.span * NS)}" if browse.zoomed else ""
        strip = self._titled(part, [Segment(text, self._style("ruler"))])
        return self._overlays(browse).cursor(strip, "▼")

    def _lane_line(self, browse: Browse, line: int) -> Strip:
        place = browse.places[line]
        lane, row = browse.row(place)
        name = title(lane, self._names(browse)[place.lane], place.row, row, self._gutter)
        return Strip(
            [
                Segment(name, self._style("title-cursor" if line == browse.line else "title")),
                Segment("│", self._style("rule")),
                *self._drawn(browse, place),
            ]
        )

    def _drawn(self, browse: Browse, place: TimelineRow) -> list[Segment]:
        """Return the columns of a row. They are cached by window, because most keys move only the cursor."""
        from jaxprof.tui.profile.timeline.drawing import columns_of

        key = (browse.window, self._width, self.app.theme)
        if self._row_cache_key != key:
            self._row_cache_key = key
            self._row_cache.clear()
        if place not in self._row_cache:
            lane, row = browse.row(place)
            hits = None
            if self._matches is not None:
                hits = self._matches.busy.get((place.lane, place.row if lane.opens else -1))
            drawn = cells(lane, columns_of(lane, row, browse.window, self._width, hits))
            self._row_cache[place] = [Segment(cell.text, self._style(cell.style, solid=cell.solid)) for cell in drawn]
        return self._row_cache[place]

    def _overlays(self, browse: Browse) -> Overlays:
        return Overlays(browse, self._gutter, self._width, self._room, self._style)

    def on_resize(self) -> None:
        self.changed()

    # -- mouse ------------------------------------------------------------------------------------------------

    def _column(self, event: events.MouseEvent) -> int | None:
        """Return the column of the lanes under the mouse; None over the names."""
        offset = event.get_content_offset(self)
        return offset.x - self._gutter - 1 if offset is not None and offset.x > self._gutter else None

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 1)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        event.stop()
        self.action_browse("pan", -1)

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        event.stop()
        self.action_browse("pan", 1)

    def _wheel(self, event: events.MouseEvent, step: int) -> None:
        """Zoom around the mouse; over the names, go a lane up or down; with shift, or on the minimap, pan."""
        column = self._column(event)
        event.stop()
        if column is None:
            self.action_browse("move", step)
        elif event.shift or event.get_content_offset_capture(self).y < self._map_lines:
            self.action_browse("pan", step)
        else:
            self.change(lambda browse: browse.zoom(WHEEL_ZOOM**step, browse.window.time_at(column, browse.width)))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin a range on the lanes; on the minimap go there; over the names open the lane."""
        offset, column, browse = event.get_content_offset(self), self._column(event), self.browse
        if offset is None or browse is None:
            return
        line = browse.line_at(offset.y - self._head) if offset.y >= self._head else None
        if line is not None:
            browse.line = line
        if column is None:
            if line is not None:
                browse.open()
        elif offset.y < self._map_lines:
            browse.look_at(browse.whole.time_at(column, browse.width))
        else:
            browse.cursor = browse.window.time_at(column, browse.width)
            browse.select(browse.cursor)
            self._dragged = False
            self.capture_mouse()
        self.changed()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        browse = self.browse
        if browse is not None and self.app.mouse_captured is self:
            column = event.get_content_offset_capture(self).x - self._gutter - 1
            browse.cursor = browse.window.time_at(min(max(column, 0), browse.width - 1), browse.width)
            self._dragged = True
            self.changed()

    def on_mouse_up(self) -> None:
        """End the range; a click without a move selects nothing."""
        if self.browse is not None and self.app.mouse_captured is self:
            (Browse.fix_range if self._dragged else Browse.clear_range)(self.browse)
            self.changed()
        self.release_mouse()
