"""What the mouse does from press to release: pan the lanes, select a range, or move the window on the minimap.

The lanes pan; the ruler selects, as do the lanes with shift or the right button, because many terminals keep shift with
the mouse for themselves. It knows columns and the state in view, no widget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from jaxprof.tui.profile.timeline.browse import Browse

Gesture = Literal["pan", "select", "map"]


class Drag:
    """One press of a button, at a column of the lanes."""

    def __init__(self, browse: Browse, gesture: Gesture, column: int) -> None:
        self._browse, self._gesture, self._column = browse, gesture, column
        self._start = browse.window.start
        self._moved = False
        if gesture == "map":
            self._move_window(column)
        else:
            browse.time = browse.window.time_at(column, browse.width)
        if gesture == "select":
            browse.select(browse.time)

    def to(self, column: int) -> None:
        """The mouse has moved to a column, which may be outside of the lanes."""
        browse = self._browse
        self._moved |= column != self._column
        if self._gesture == "pan":
            browse.begin_at(self._start + (self._column - column) * browse.window.span // browse.width)
            return
        column = min(max(column, 0), browse.width - 1)
        if self._gesture == "map":
            self._move_window(column)
        else:
            browse.time = browse.window.time_at(column, browse.width)

    def release(self) -> None:
        """A range ends where the button was released; a click without a move selects nothing."""
        if not self._moved and self._gesture != "map":
            self._browse.clear_range()
        elif self._gesture == "select":
            self._browse.fix_range()

    def _move_window(self, column: int) -> None:
        """Puts the middle of the window, and the cursor, at a column of the whole."""
        browse = self._browse
        time = browse.whole.time_at(column, browse.width)
        browse.begin_at(time - browse.window.span // 2)
        browse.time = time
