"""Panes share their room by the mouse: the edge between two is dragged, and a double click gives it back.

The border that is there already is what is dragged, so no pane gives up a column for it. Any two panes that touch can
be divided anew, whatever the stylesheet made of their sizes; in a terminal of another size it decides again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from textual.errors import NoWidget
from textual.widget import Widget

from jaxprof.tui.profiler import ModeScreen

if TYPE_CHECKING:
    from textual import events

LEAST_COLUMNS: Final = 16
LEAST_ROWS: Final = 4
"""What a pane keeps: its borders, and a line or two."""
RULES: Final = ("width", "height", "min_height", "max_height")


@dataclass(frozen=True, slots=True)
class PaneEdge:
    """The edge between two panes."""

    before: Widget
    """The left one, or the upper one."""
    after: Widget
    upright: bool
    """Whether they lie side by side."""

    def move_to(self, x: int, y: int) -> None:
        """Moves the edge to that place of the screen, as far as both panes keep their least."""
        first, last = self.before.region, self.after.region
        if self.upright:
            room = last.right - first.x
            self.before.styles.width = max(LEAST_COLUMNS, min(room - LEAST_COLUMNS, x - first.x))
            self.after.styles.width = "1fr"
        else:
            room = last.bottom - first.y
            for pane in (self.before, self.after):
                pane.styles.min_height, pane.styles.max_height = LEAST_ROWS, "100%"
            self.before.styles.height = max(LEAST_ROWS, min(room - LEAST_ROWS, y - first.y))
            self.after.styles.height = "1fr"

    def forget(self) -> None:
        """Gives the panes the sizes of the stylesheet."""
        for pane in (self.before, self.after):
            for rule in RULES:
                pane.styles.clear_rule(rule)
            pane.refresh(layout=True)


def edge_at(screen: ModeScreen, x: int, y: int) -> PaneEdge | None:
    """The edge between two boxes at a place of the screen; None where there is none."""
    try:
        widget: Widget | None = screen.get_widget_at(x, y)[0]
    except NoWidget:
        return None
    if widget is None or not widget.has_class("box"):  # only the border of a box is its own
        return None
    while isinstance(widget, Widget) and widget is not screen:
        region, parent = widget.region, widget.parent
        for other in parent.children if isinstance(parent, Widget) else ():
            if other is widget or not other.display:
                continue
            beside, level = other.region, other.region.y == region.y and other.region.height == region.height
            if level and x == region.x == beside.right:
                return PaneEdge(other, widget, upright=True)
            if level and x == region.right - 1 and beside.x == region.right:
                return PaneEdge(widget, other, upright=True)
            if beside.x == region.x and beside.width == region.width and y == region.y == beside.bottom:
                return PaneEdge(other, widget, upright=False)
        widget = parent if isinstance(parent, Widget) else None
    return None


class DividedScreen(ModeScreen):
    """A screen whose panes can be divided anew."""

    def __init__(self) -> None:
        super().__init__()
        self._dragged: PaneEdge | None = None
        self._moved: list[PaneEdge] = []

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Takes hold of the edge under the mouse, if there is one."""
        edge = edge_at(self, event.screen_x, event.screen_y) if event.button == 1 else None
        if edge is not None:
            self._dragged = edge
            edge.before.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Moves the edge with the mouse."""
        if self._dragged is not None:
            self._dragged.move_to(event.screen_x, event.screen_y)
            self._moved.append(self._dragged)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Leaves the edge where it is."""
        if self._dragged is not None:
            self._dragged.before.release_mouse()
            self._dragged = None
            self.clear_selection()

    def on_click(self, event: events.Click) -> None:
        """A double click on an edge gives the panes their usual sizes."""
        edge = edge_at(self, event.screen_x, event.screen_y) if event.chain == 2 else None
        if edge is not None:
            edge.forget()

    def on_resize(self) -> None:
        """Leaves the sizes to the stylesheet again: it knows what suits another terminal."""
        while self._moved:
            self._moved.pop().forget()
