"""The roofline as a widget: the mouse names what it points at, and a click chooses it."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from jaxprof.analysis.ranking import Ranking
from jaxprof.tui.hlo.roofline_plot import GUTTER, NEAR, RooflineFrame, roofline_frame, roofline_plot
from jaxprof.tui.kit.picture import Picture


class RooflineView(Picture):
    """The kernels of a program under the ceilings of a device."""

    class Chosen(Message):
        """Requests the cursor on a kernel, by its number."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._ranking = Ranking()
        self._numbers: Sequence[int] = ()
        self._changes = 0
        self._chosen: int | None = None
        self._pointed: tuple[int, int] | None = None

    def show_kernels(self, ranking: Ranking, numbers: Sequence[int], changes: int, chosen: int | None) -> None:
        """Draws these kernels, with one chosen; `changes` counts how often the kernels have changed."""
        self._ranking, self._numbers, self._changes, self._chosen = ranking, numbers, changes, chosen
        self._draw_now()

    def _draw_now(self) -> None:
        ranking, numbers, chosen, pointed = self._ranking, self._numbers, self._chosen, self._pointed
        self.show(
            (self._changes, id(ranking), chosen, pointed),
            lambda width, height: roofline_plot(ranking, numbers, chosen, width, height, pointed),
        )

    def _frame(self) -> RooflineFrame | None:
        return roofline_frame(self._ranking, self._numbers, self.size.width, self.size.height)

    def go(self, step: int) -> None:
        """Requests the next point to the right or to the left."""
        frame = self._frame()
        point = frame.beside(self._chosen, step) if frame is not None else None
        if point is not None:
            self.post_message(self.Chosen(point.number))

    # -- mouse ------------------------------------------------------------------------------------------------

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._point_at(self._cell(event))

    def on_leave(self) -> None:
        self._point_at(None)

    def on_click(self, event: events.Click) -> None:
        frame, cell = self._frame(), self._cell(event)
        near = frame.near(cell) if frame is not None and cell is not None else []
        if near:
            self.post_message(self.Chosen(near[0].number))

    def _cell(self, event: events.MouseEvent) -> tuple[int, int] | None:
        """The cell between the axes."""
        offset = event.get_content_offset(self)
        return (offset.x - GUTTER - 1, offset.y - 1) if offset is not None else None

    def _point_at(self, cell: tuple[int, int] | None) -> None:
        """Names what is near the mouse; a mouse far from all points changes nothing."""
        frame = self._frame()
        near = frame.near(cell, NEAR) if frame is not None and cell is not None else []
        pointed = cell if near else None
        if pointed != self._pointed:
            self._pointed = pointed
            self._draw_now()
