"""The keys of the timeline: each changes the state in view, or says why it cannot.

The view, which draws that state, is `TimelineView`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget

from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.profile.timeline.browse import ZOOM, Browse, TimelineRow

if TYPE_CHECKING:
    from jaxprof.analysis.lanes.rows import Lanes
    from jaxprof.tui.profile.timeline.jumps import Jumps


class TimelineKeys(Guarded, Widget):
    """A widget that browses a timeline by keys."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("timeline")

    class Moved(Message):
        """The cursor, the window or the lanes have changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.browse: Browse | None = None
        """The window, the cursor and the open lanes; None while there is nothing to show."""
        self.jumps: Jumps | None = None

    @property
    def lanes(self) -> Lanes | None:
        """The lanes in view; None while there are none."""
        return self.browse.lanes if self.browse is not None else None

    def clear_range(self) -> bool:
        """Clears the range; False if there is none."""
        if self.browse is None or self.browse.anchor is None:
            return False
        self.change(Browse.clear_range)
        return True

    def step_back(self) -> bool:
        """Undoes the range, the zoom, or what was opened and hidden; False if there is nothing to undo."""
        undone = self.browse is not None and self.browse.step_back()
        self.changed()
        return undone

    def go(self, place: TimelineRow, time: int) -> None:
        """Moves the cursor to a row of a lane, opens the lane if needed, and brings the time into view."""
        self.change(lambda browse: browse.go(place, time))

    def change(self, change: Callable[[Browse], object]) -> None:
        """Changes the state in view, if there is one."""
        if self.browse is not None:
            change(self.browse)
            self.changed()

    def changed(self) -> None:
        """Draws the state in view again, and reports it."""
        if self.browse is not None:
            self.browse.bring_into_view()
        self.refresh()
        self.post_message(self.Moved())

    def action_zoom(self, step: int) -> None:
        """Shows twice or half the time around the cursor."""
        self.change(lambda browse: browse.zoom(ZOOM**-step, browse.time))

    def action_whole(self) -> None:
        """Shows the whole recording."""
        self.change(Browse.show_whole)

    def action_fit(self) -> None:
        """Zooms to the interval or gap under the cursor, with a little around it."""
        self.change(Browse.fit)

    def action_pan(self, step: int) -> None:
        """Pans by a tenth of the window; at either end, moves the cursor."""
        self.change(lambda browse: browse.pan(step))

    def action_step(self, step: int) -> None:
        """Moves the cursor by a column; the window follows."""
        self.change(lambda browse: browse.step(step))

    def action_event(self, step: int) -> None:
        """Goes to the next or the previous interval of the row."""
        self.change(lambda browse: browse.event(step))

    def action_edge(self, step: int) -> None:
        """Goes to the start or the end of the recording."""
        self.change(lambda browse: browse.edge(step))

    def action_move(self, step: int) -> None:
        """Goes a lane up or down."""
        self.change(lambda browse: browse.move(step))

    def action_idle(self, step: int) -> None:
        """Goes to the next or the previous idle stretch that can be seen at this zoom."""
        where = "later" if step > 0 else "earlier"
        why_not = f"No idle stretch {where} in this lane is a column wide. Zoom in for shorter ones."
        self._jump(lambda jumps: jumps.idle(step), why_not)

    def action_longest(self, kind: str) -> None:
        """Goes to the longest event or idle stretch of the lane, then to the next longest."""
        self._jump(lambda jumps: jumps.longest(kind), "This lane has no idle stretch between its events.")

    def action_again(self, step: int) -> None:
        """Goes to the next or the previous event that is the same as the one under the cursor."""
        which = "last" if step > 0 else "first"
        if self.jumps is not None and self.jumps.same is None:
            self.notify("There is no event under the cursor.", markup=False)
        else:
            self._jump(lambda jumps: jumps.again(step), f"This is the {which} of them.")

    def _jump(self, jump: Callable[[Jumps], bool], why_not: str) -> None:
        """Moves the cursor, or says why it stays."""
        if self.jumps is not None and not jump(self.jumps):
            self.notify(why_not, markup=False)
        self.changed()

    def action_mark(self) -> None:
        """Starts a range at the cursor, ends it there, and clears it."""
        self.change(Browse.mark)

    def action_follow(self) -> None:
        """Goes to the kernel of a launch, or to the launch of a kernel."""
        self.change(Browse.follow)

    def action_hide(self) -> None:
        """Hides the lane under the cursor."""
        self.change(Browse.hide)

    def action_show_all(self) -> None:
        """Shows the hidden lanes again."""
        self.change(Browse.show_all)

    def action_pin(self) -> None:
        """Pins the lane under the cursor above the others, or unpins it."""
        self.change(Browse.pin)

    def action_open(self) -> None:
        """Opens or closes the lane under the cursor."""
        self.change(Browse.open)
