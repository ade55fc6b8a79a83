"""The timeline: a ruler, a row for each lane, and a cursor. Each line is drawn only from the current window.

A lane of several threads or levels is closed at first if there is no room for all of it: its one line then shows how
many of its threads were busy. The view reports cursor moves; the pane interprets them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import events
from textual.content import Content
from textual.message import Message

from jaxprof.tui.kit.canvas import Scale, ruler
from jaxprof.tui.kit.drawing import styled_runs
from jaxprof.tui.kit.guard import HIDDEN
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.profile.timeline.browse import Browse, Place
from jaxprof.tui.profile.timeline.drawing import cells, ruler_time, title
from jaxprof.tui.profile.timeline.facts import NS
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.analysis.lanes import Lanes, Matches


WHEEL_ZOOM = 1.25


class TimelineView(RowList, keys="timeline"):
    """Lanes over time, whose rows are the lines of `browse`, the state of the view. The keys call its methods."""

    class Moved(Message):
        """The cursor, or the part in view, has changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.browse: Browse | None = None
        """None while there is nothing to show."""
        self._matches: Matches | None = None
        self._drawn: dict[Place, tuple[list[str], list[str]]] = {}
        """The columns of each row for the present lanes and matches, in the window of `_drawn_key`: most keys move only
        the cursor."""
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
        self.empty = words
        self.refresh_bindings()
        self.show_matches(None)
        self.changed()

    def recolour(self, lanes: Lanes) -> None:
        """Replace the lanes by the same lanes with more exact kinds; cursor, window and open lanes stay."""
        self._drawn_key = None
        if self.browse is not None:
            self.browse.lanes = lanes
            self.changed()

    def show_matches(self, matches: Matches | None) -> None:
        """Mark the matches of a search; None marks nothing."""
        self._matches, self._drawn_key = matches, None
        self.refresh()

    def fit(self, most: int) -> int:
        """Take the greatest height that is available, open as many lanes as fit, and return the height that the view
        needs."""
        self._room = max(1, most - 1)
        if self.browse is None:
            return most
        self.browse.resize(self._width, self._room)
        self._show_lines()
        return min(most, 1 + self.count)

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
        self._show_lines()
        self.refresh()
        self.post_message(self.Moved())

    def _show_lines(self) -> None:
        self.set_keys(self.browse.places if self.browse is not None else ())
        if self.browse is not None:
            super().move_to(self.browse.line)

    def move_to(self, index: int) -> None:
        super().move_to(index)
        if self.browse is not None:
            self.browse.line = self.cursor
            self.changed()

    # -- drawing ----------------------------------------------------------------------------------------------

    @property
    def _top(self) -> int:
        return 1 if self._keys else 0

    def draw_header(self, width: int) -> Content | None:
        """Return round times above the lanes, with the length of the view beside them."""
        browse = self.browse
        if browse is None or not self._top:
            return None
        times = list(ruler(Scale(browse.window.start, browse.window.end), self._width, ruler_time, "╷"))
        part = "view" if browse.zoomed else "all"
        words = f"  {part} {seconds(browse.window.span * NS)}"[: self._gutter].ljust(self._gutter)
        column = browse.window.column_of(browse.cursor, self._width)
        if 0 <= column < self._width:
            times[column] = "▼"
        styles = self._with_cursor(browse, times, ["$text-muted"] * self._width)
        return Content.assemble((f"{words} ", "$text-muted"), styled_runs(zip(times, styles, strict=True)))

    def draw_row(self, index: int, width: int) -> Content:
        browse = self.browse
        assert browse is not None, "the rows are its lines"
        place, here = browse.places[index], index == browse.line
        lane, row = browse.row(place)
        glyphs, styles = self._columns_of(browse, place)
        if here or browse.range is not None:
            styles = self._with_cursor(browse, glyphs, styles, here=here)
        cursor = "block-cursor" if self.has_focus else "block-cursor-blurred"
        style = f"bold ${cursor}-foreground on ${cursor}-background" if here else "$text-muted"
        name = title(lane, place[1], row, self._gutter)
        return Content.assemble((name, style), ("│", "$rule"), styled_runs(zip(glyphs, styles, strict=True)))

    def _columns_of(self, browse: Browse, place: Place) -> tuple[list[str], list[str]]:
        """Return the characters and styles of a row."""
        key = (browse.window, self._width)
        if self._drawn_key != key:
            self._drawn_key = key
            self._drawn.clear()
        if place not in self._drawn:
            lane, row = browse.row(place)
            hits = self._matches.busy.get(place if lane.opens else (place[0], -1)) if self._matches else None
            self._drawn[place] = cells(lane, row, browse.window, self._width, hits)
        return self._drawn[place]

    def _with_cursor(self, browse: Browse, glyphs: list[str], styles: list[str], *, here: bool = True) -> list[str]:
        """Return the styles with the selected range on another background, except for names, which keep that of their
        interval; and, in the line of the cursor (`here`), its column."""
        styles, width = list(styles), self._width
        if browse.range is not None:
            begin, end = (browse.window.column_of(time, width) for time in browse.range)
            ground = f" on $primary 30%{' reverse' if self.app.no_color else ''}"
            for column in range(max(0, begin), min(width, end + 1)):
                styles[column] += ground if " on " not in styles[column] else ""
        column = browse.window.column_of(browse.cursor, width)
        if here and 0 <= column < width:
            styles[column - (not glyphs[column])] = "bold reverse $foreground"  # a wide character has two columns
        return styles

    # -- keys -------------------------------------------------------------------------------------------------

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Hide the keys while there are no lanes."""
        return HIDDEN if action == "browse" and self.browse is None else super().why_not(action, parameters)

    def action_browse(self, method: str, *arguments: int) -> None:
        """Call a method of `browse` by its name, and say why it did nothing: only the jump to an idle time can fail."""
        if self.browse is not None and getattr(self.browse, method)(*arguments) is False:
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
        """Zoom around the mouse, in place of scrolling."""
        event.stop()
        event.prevent_default()
        column = self._column(event)
        if column is not None:
            self.change(lambda browse: browse.zoom(factor, browse.window.time_at(column, browse.width)))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor; over the names, open the lane."""
        event.prevent_default()
        row, column = self._row_at(event), self._column(event)
        if row >= 0:
            self.move_to(row)
        if column is not None:
            self.change(lambda browse: browse.look_at(browse.window.time_at(column, browse.width)))
        elif row >= 0:
            self.change(Browse.open)
