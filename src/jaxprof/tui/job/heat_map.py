"""A heat map of processes by steps: how far each process is above the median one, stretch by stretch.

A cell is a character and a colour, and each level has a character of its own, so that no colours are needed. Only the
rows in view are drawn. What is not known stays blank.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment
from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from jaxprof.text import shorten
from jaxprof.tui.job.browse import ORDERS, ZOOM, MapBrowse, MapLine, MapProcess
from jaxprof.tui.job.map_words import MARKS, NOTES, SHOWN, TITLES, axis, cell_words, left_of, legend, mark_of
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.guard import Guarded

if TYPE_CHECKING:
    from rich.style import Style

    from jaxprof.analysis.jobs.standing import Standing
    from jaxprof.analysis.jobs.step_grid import StepGrid

_FACTS: Final = 2
LINES_AROUND: Final = 2 + _FACTS
"""Lines that are no rows: the axis above them, the facts and the legend below."""
_LABEL: Final = (12, 24)
"""Columns of the names, on a narrow and on a wide terminal."""


class JobMap(Guarded, Widget, can_focus=True):
    """Processes by steps."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"job-map--{level}" for level in range(len(MARKS) + 1)),
        "job-map--axis", "job-map--name", "job-map--accused", "job-map--line", "job-map--cursor", "job-map--facts",
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = bindings("job_map")

    class Wanted(Message):
        """Other steps, other values or another number of columns are to be shown: a thread makes the grid."""

    class Opened(Message):
        """The user wants to see a process."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    class Moved(Message):
        """The cursor, the order or the values have changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.browse = MapBrowse()
        self.seen: Standing | None = None
        """What is drawn; None before the first grid is made."""
        self.values_of = SHOWN[0]
        self._rows: dict[int, int] = {}

    # -- what is shown ----------------------------------------------------------------------------------------

    def show_processes(self, processes: Sequence[MapProcess]) -> None:
        """Shows these processes, as far as the grid has them."""
        self.browse.show(processes)
        self._changed()

    def show_steps(self, seen: Standing, *, whole: bool) -> None:
        """Shows other steps; `whole`: all that there are."""
        self.seen = seen
        self._rows = {index: row for row, index in enumerate(seen.grid.processes)}
        if whole:
            self.browse.take(seen.grid)
        self._changed()

    def go_to(self, index: int) -> None:
        """Moves the cursor to the row of a process."""
        self.browse.go_to(index)
        self._changed()

    def forget(self) -> None:
        """Prepares for another job."""
        self.browse, self.seen = MapBrowse(), None
        self.browse.resize(self._room)
        self._changed()

    @property
    def grid(self) -> StepGrid | None:
        """The steps that are drawn."""
        return self.seen.grid if self.seen is not None else None

    @property
    def columns(self) -> int:
        """Columns that there are for steps."""
        return max(8, self.size.width - self._label - 1)

    @property
    def title(self) -> str:
        """What the values are."""
        return f"{TITLES[self.values_of]} of each step" if self.values_of != "step" else TITLES[self.values_of]

    @property
    def note(self) -> str:
        """What to know of these values, and the order of the rows."""
        order = f"by {self.browse.order_in_use}" if self.browse.lines else ""
        shown, room = len(self.browse.lines), self.browse.room
        more = f"{shown} rows" if shown > room else ""
        return " · ".join(filter(None, (NOTES.get(self.values_of, ""), more, order)))

    @property
    def _label(self) -> int:
        least, most = _LABEL
        longest = max((len(line.name) for line in self.browse.lines[: 4 * self._room]), default=0) + 3
        return min(max(least, longest), least if self.size.width < 100 else most)

    @property
    def _room(self) -> int:
        return max(1, self.size.height - LINES_AROUND)

    @property
    def _column(self) -> int | None:
        """The column of the grid under the cursor; None where the grid does not reach there."""
        grid = self.grid
        if grid is None or not len(grid.steps):
            return None
        from bisect import bisect_right

        at = self.browse.cursor / self.browse.scale
        found = bisect_right(grid.first_steps, at + 1e-9) - 1
        return found if 0 <= found < len(grid.steps) else None

    def on_resize(self) -> None:
        self.browse.resize(self._room)
        self.post_message(self.Wanted())
        self._changed()

    def _changed(self) -> None:
        self.browse.bring_into_view()
        self.refresh()
        self.post_message(self.Moved())

    # -- drawing ----------------------------------------------------------------------------------------------

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"job-map--{name}")

    def render_line(self, y: int) -> Strip:
        width, height = self.size.width, self.size.height
        if self.grid is None or not self.browse.lines:
            words = " No steps were seen yet." if y == 0 and self.grid is not None else ""
            return Strip([Segment(words.ljust(width), self._style("axis"))], width)
        if y == 0:
            head = " " * (self._label + 1)
            line = axis(self.grid, self.columns, self._column)
            return Strip([Segment((head + line)[:width].ljust(width), self._style("axis"))], width)
        if y == height - 1:
            return self._legend(width)
        if y >= height - 1 - _FACTS:
            lines = textwrap.wrap(self.facts, max(16, width - 2))
            at = y - (height - 1 - _FACTS)
            text = " ".join(lines[at:] if at == _FACTS - 1 else lines[at : at + 1])
            return Strip([Segment(f" {shorten(text, width - 1)}".ljust(width), self._style("facts"))], width)
        at = self.browse.top + y - 1
        if at >= len(self.browse.lines):
            return Strip.blank(width, self._style("axis"))  # without a style, no filter of colours takes it
        return self._row(self.browse.lines[at], here=at == self.browse.line)

    def _row(self, line: MapLine, *, here: bool) -> Strip:
        name = "line" if here else "accused" if line.accused else "name"
        mark = "✗" if line.accused else " "
        text = shorten(f"{mark} {line.name}", self._label)
        segments = [Segment(text.ljust(self._label) + " ", self._style(name))]
        column, cells, width = self._column, self._cells(line), self.columns
        for at, (level, ratio) in enumerate(cells):
            style = self._style(str(max(0, level)))
            if here and at == column:
                style += self._style("cursor")
            places = left_of(at + 1, len(cells), width) - left_of(at, len(cells), width)
            segments.append(Segment(mark_of(level, ratio) * places, style))
        return Strip(segments).adjust_cell_length(self.size.width, self._style("name")).simplify()

    def _cells(self, line: MapLine) -> list[tuple[int, float]]:
        """Level and ratio of each column; of a host, those of its worst process there."""
        seen, rows = self.seen, [self._rows[index] for index in line.processes if index in self._rows]
        if seen is None or not rows:
            return []
        levels, ratios = seen.levels[rows], seen.ratio[rows]
        if len(rows) == 1:
            return list(zip(levels[0].tolist(), ratios[0].tolist(), strict=True))
        import numpy as np

        known = np.where(np.isnan(ratios), -np.inf, ratios)
        return list(zip(levels.max(axis=0).tolist(), known.max(axis=0).tolist(), strict=True))

    def _legend(self, width: int) -> Strip:
        segments = [Segment(" ", self._style("axis"))]
        for text, level in legend(len(self.grid.processes) if self.grid is not None else 0):
            segments.append(Segment(text, self._style(level or "axis")))
        return Strip(segments).adjust_cell_length(width, self._style("axis"))

    @property
    def facts(self) -> str:
        """The exact values under the cursor."""
        seen, column, process = self.seen, self._column, self.browse.process
        if seen is None or column is None or process is None or process not in self._rows:
            return ""
        line = self.browse.lines[self.browse.line]
        name = f"{line.name}: process {process}" if len(line.processes) > 1 else f"process {process}"
        return f"{name}, {cell_words(seen, self._rows[process], column)}"

    # -- keys and mouse ---------------------------------------------------------------------------------------

    def _go(self, change: Callable[[], object]) -> None:
        """Changes what is in view; other steps are asked for."""
        before = self.browse.window
        change()
        if self.browse.window != before:
            self.post_message(self.Wanted())
        self._changed()

    def action_zoom(self, step: int) -> None:
        """Shows half or twice as many steps around the cursor."""
        self._go(lambda: self.browse.zoom(ZOOM**-step))

    def action_whole(self) -> None:
        """Shows all steps."""
        self._go(self.browse.show_whole)

    def action_pan(self, step: int) -> None:
        """Pans by a tenth of the window; at either end, moves the cursor."""
        self._go(lambda: self.browse.pan(step))

    def action_step(self, step: int) -> None:
        """Moves the cursor by a column; the window follows."""
        grid, column = self.grid, self._column
        if grid is not None and column is not None:
            by = max(1, round(float(grid.steps[column]) * self.browse.scale))
            first = round(float(grid.first_steps[column]) * self.browse.scale)
            self._go(lambda: self.browse.go(first + by if step > 0 else first - 1))

    def action_edge(self, step: int) -> None:
        """Goes to the first or the last step."""
        self._go(lambda: self.browse.edge(step))

    def action_move(self, step: int) -> None:
        """Goes a row up or down."""
        self._go(lambda: self.browse.move(step))

    def action_page(self, step: int) -> None:
        """Goes a page up or down."""
        self._go(lambda: self.browse.move(step * max(1, self._room - 1)))

    def action_values(self, step: int) -> None:
        """Shows the next part of the steps, or the one before."""
        self.values_of = SHOWN[(SHOWN.index(self.values_of) + step) % len(SHOWN)]
        self.post_message(self.Wanted())
        self._changed()

    def action_sort(self) -> None:
        """Sorts the rows by the next order."""
        order = ORDERS[(ORDERS.index(self.browse.order_in_use) + 1) % len(ORDERS)]
        self.browse.order = order
        self._go(self.browse.arrange)

    def action_group(self) -> None:
        """Makes the processes of a host one row, or a row each."""
        if not self.browse.can_group:
            self.notify("Each host has one process." if self.browse.hosts > 1 else "All are on one host.", markup=False)
            return
        self.browse.grouped = not self.browse.is_grouped
        self._go(self.browse.arrange)

    def action_open(self) -> None:
        """Opens the session of the process under the cursor."""
        if self.browse.process is not None:
            self.post_message(self.Opened(self.browse.process))

    def on_click(self, event: events.Click) -> None:
        """Goes to the cell under the mouse; a double click opens its process."""
        offset = event.get_content_offset(self)
        if offset is None or not 1 <= offset.y <= self._room:
            return
        at = self.browse.top + offset.y - 1
        if at >= len(self.browse.lines):
            return
        self._go(lambda: self.browse.move(at - self.browse.line))
        grid, x = self.grid, offset.x - self._label - 1
        if grid is not None and len(grid.steps) and 0 <= x < self.columns:
            count = len(grid.steps)
            column = next(at for at in range(count) if left_of(at + 1, count, self.columns) > x)
            self._go(lambda: self.browse.go(round(float(grid.first_steps[column]) * self.browse.scale)))
        if event.chain == 2:
            self.action_open()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scrolls the rows."""
        event.stop()
        self.action_move(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scrolls the rows."""
        event.stop()
        self.action_move(-1)
