"""A heat map of processes by steps: how far each process is above the median one in each column of steps.

A cell is a character and a colour; each level has its own character, so the map is readable without colours. Only the
rows in view are drawn. Unknown cells stay blank. Positions on the axis are whole numbers: steps, or milliseconds if the
steps of a job have no numbers.
"""

from __future__ import annotations

import math
import textwrap
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip

from jaxprof.analysis.jobs.step_grid import OWN, RATIOS, STEP, VALUES
from jaxprof.analysis.programs.loop_time import COMPILE, COPY, DATA, DEVICE, DISPATCH, HOST
from jaxprof.text import shorten
from jaxprof.tui.kit.axis_browse import AxisBrowse, AxisWindow
from jaxprof.tui.kit.picture import Browsing
from jaxprof.units import UNKNOWN, integer, percent, seconds

if TYPE_CHECKING:
    from rich.style import Style
    from textual.geometry import Region

    from jaxprof.analysis.jobs.step_grid import StepGrid, StepOutliers


MILLISECONDS: Final = 1000
ORDERS: Final = ("process", "lost time", "host")


@dataclass(frozen=True, slots=True)
class MapProcess:
    """One process, as the map names it."""

    index: int
    host: str
    lost_seconds: float
    accused: bool
    """Whether a finding is about it."""


@dataclass(frozen=True, slots=True)
class MapLine:
    """A row of the map: a process, or all processes of one host."""

    name: str
    processes: tuple[int, ...]
    """Indices of the processes, the worst one first."""
    accused: bool


class MapBrowse(AxisBrowse):
    """The part of a job that the map shows."""

    def __init__(self) -> None:
        super().__init__(AxisWindow(0, 1), 1)
        self.grid: StepGrid | None = None
        """The steps that are drawn."""
        self.unit = "step"
        self.order = ""
        """One of `ORDERS`; empty means by process if all fit, else by lost time."""
        self.grouped: bool | None = None
        """Whether the processes of a host share a row; None means only if they do not fit otherwise."""
        self.lines: tuple[MapLine, ...] = ()
        self._processes: tuple[MapProcess, ...] = ()

    @property
    def line_count(self) -> int:
        return len(self.lines)

    @property
    def scale(self) -> int:
        """Positions of the axis in a step, or in a second."""
        return 1 if self.unit == "step" else MILLISECONDS

    @property
    def requested(self) -> tuple[float | None, float | None]:
        """First and last step of the grid to make. None means no limit, also for steps still to come."""
        if not self.zoomed:
            return None, None
        if self.unit == "step":
            return self.window.start, self.window.end - 1
        return self.window.start / self.scale, self.window.end / self.scale

    def take(self, grid: StepGrid) -> None:
        """Take over the length of the axis from a grid of all steps."""
        self.unit = grid.unit
        if len(grid.steps):
            end = float(grid.first_steps[-1]) + float(grid.steps[-1])
            whole = AxisWindow(round(float(grid.first_steps[0]) * self.scale), max(1, round(end * self.scale)))
            self.window = self.window.within(whole) if self.zoomed else whole
            self.whole, self.least = whole, min(4, whole.span)
            self.cursor = min(max(self.cursor, whole.start), whole.end - 1)

    # -- rows -------------------------------------------------------------------------------------------------

    def show(self, processes: Sequence[MapProcess]) -> None:
        """Take over other processes; the cursor stays on its process."""
        self._processes = tuple(processes)
        self.arrange()

    def resize(self, room: int) -> None:
        """Take over the number of lines available for rows."""
        if room != self.room:
            self.room = max(1, room)
            self.arrange()

    @property
    def is_grouped(self) -> bool:
        """Whether the processes of a host share a row now."""
        return self.can_group and (len(self._processes) > self.room if self.grouped is None else self.grouped)

    @property
    def hosts(self) -> int:
        """How many hosts there are."""
        return len({process.host for process in self._processes})

    @property
    def can_group(self) -> bool:
        """Whether there are several hosts, at least one of them with several processes."""
        return 1 < self.hosts < len(self._processes)

    @property
    def order_in_use(self) -> str:
        """The order of the rows, one of `ORDERS`."""
        return self.order or (ORDERS[0] if len(self._processes) <= self.room else ORDERS[1])

    def arrange(self) -> None:
        """Rebuild the rows; the cursor stays on its process."""
        before = self.process
        digits = len(str(max((process.index for process in self._processes), default=0)))
        if self.is_grouped:
            lines = self._by_host()
        else:
            lines = [
                MapLine(f"{process.index:>{digits}} {process.host}", (process.index,), process.accused)
                for process in self._sorted()
            ]
        self.lines = tuple(lines)
        cursor_line = next((at for at, line in enumerate(self.lines) if before in line.processes), self.line)
        self.line = max(0, min(cursor_line, len(self.lines) - 1))
        self.bring_into_view()

    def _sorted(self) -> list[MapProcess]:
        keys = {
            "process": lambda process: process.index,
            "lost time": lambda process: (-process.lost_seconds, process.index),
            "host": lambda process: (process.host, process.index),
        }
        return sorted(self._processes, key=keys[self.order_in_use])

    def _by_host(self) -> list[MapLine]:
        hosts: dict[str, list[MapProcess]] = {}
        for process in self._sorted():
            hosts.setdefault(process.host, []).append(process)
        return [
            MapLine(
                host,
                tuple(process.index for process in sorted(processes, key=lambda process: -process.lost_seconds)),
                any(process.accused for process in processes),
            )
            for host, processes in hosts.items()
        ]

    @property
    def process(self) -> int | None:
        """The process under the cursor; for a host, its worst one. None without rows."""
        return self.lines[self.line].processes[0] if self.lines else None

    def sort(self) -> None:
        """Sort the rows by the next order."""
        self.order = ORDERS[(ORDERS.index(self.order_in_use) + 1) % len(ORDERS)]
        self.arrange()

    def go_to(self, process: int) -> None:
        """Go to the row of a process."""
        self.line = next((at for at, line in enumerate(self.lines) if process in line.processes), self.line)
        self.bring_into_view()

    def step(self, step: int) -> None:
        """Move the cursor by a column; the window follows."""
        grid, column = self.grid, self.column
        if grid is not None and column is not None:
            first = round(float(grid.first_steps[column]) * self.scale)
            self.look_at(first + max(1, round(float(grid.steps[column]) * self.scale)) if step > 0 else first - 1)

    @property
    def column(self) -> int | None:
        """The column of the grid under the cursor; None if the grid does not reach the cursor."""
        if self.grid is None or not len(self.grid.steps):
            return None
        column = bisect_right(self.grid.first_steps, self.cursor / self.scale + 1e-9) - 1
        return column if 0 <= column < len(self.grid.steps) else None


MARKS: Final = "·░▒▓█"
"""Characters by level. From the last of `RATIOS` on, a digit shows the multiple of the usual step."""
TITLES: Final = {
    OWN: "Own work", STEP: "Step time", DATA: "Data", HOST: "Host: Python", DISPATCH: "Dispatch: calling JAX",
    COPY: "Copies", COMPILE: "Recompilation", DEVICE: "Device, and waiting for the others",
}  # fmt: skip
SHOWN: Final = tuple(value for value in VALUES if value in TITLES)
"""The values that `]` goes through, in this order."""
NOTES: Final = {
    OWN: "in lockstep, own work shows the late process",
    STEP: "in lockstep, all processes take the same time",
    DEVICE: "the late process waits least",
}
_DIGITS: Final = 9


def mark_of(level: int, ratio: float) -> str:
    """Return the character of a cell; a blank where the value is unknown."""
    if level < 0:
        return " "
    return MARKS[level] if level < len(MARKS) else str(min(_DIGITS, int(ratio)))


def legend(processes: int) -> list[tuple[str, str]]:
    """Return the scale as pieces of text, each with the level of its style, for so many compared processes."""
    words = [("× other's step" if processes == 2 else "× median step", "")]
    for level, mark in enumerate(MARKS):
        words += [(f" {mark} ", str(level)), (f"<{RATIOS[level]:g}", "")]
    return [*words, (" 2-9 ", str(len(MARKS))), ("times", ""), ("  blank: unknown", "")]


def axis(grid: StepGrid, width: int, cursor: int | None) -> str:
    """Return the line with the step numbers above their columns; the number under the cursor takes precedence."""
    line = [" "] * width
    taken = [False] * width

    def put(column: int) -> None:
        text = position(grid, column)
        at = min(left_of(column, len(grid.steps), width), width - len(text))
        if at >= 0 and not any(taken[max(0, at - 1) : at + len(text) + 1]):
            line[at : at + len(text)] = text
            taken[at : at + len(text)] = [True] * len(text)

    count = len(grid.steps)
    if cursor is not None and cursor < count:
        put(cursor)
    if count:
        put(0)
        put(count - 1)
    every = max(1, math.ceil(12 * count / width))
    for column in range(every, count, every):
        put(column)
    return "".join(line)


def left_of(column: int, count: int, width: int) -> int:
    """Return where one of `count` columns that share a width begins; each has at least one cell while there are no
    more columns than cells."""
    return column * width // max(1, count)


def position(grid: StepGrid, column: int) -> str:
    """Return where a column begins: a step, or a time since the loop began."""
    first = float(grid.first_steps[column])
    return f"{round(first)}" if grid.unit == "step" else seconds(first, 2) if first else "0 s"


def column_span(grid: StepGrid, column: int) -> str:
    """Return the steps of a column, such as `steps 300 to 311`, or its part of the loop's time."""
    first, length = float(grid.first_steps[column]), float(grid.steps[column])
    if grid.unit == "time":
        return f"{position(grid, column)} to {seconds(first + length, 2)} of its loop"
    last = round(first + length) - 1
    return f"step {integer(last)}" if length <= 1 else f"steps {integer(round(first))} to {integer(last)}"


def cell_words(seen: StepOutliers, row: int, column: int) -> str:
    """Return the exact values of a cell (its steps, its seconds a step, what they are compared with, the ratio), or
    why it is unknown."""
    grid, where = seen.grid, column_span(seen.grid, column)
    value, usual = float(grid.seconds[row, column]), float(seen.usual_seconds[row, column])
    what = TITLES[grid.values_of].partition(":")[0].partition(",")[0].lower()
    if math.isnan(value):
        why = "no step recorded" if grid.values_of == STEP else "too few samples, or no step recorded"
        return f"{where}: {what} unknown: {why}"
    figure = seconds if grid.unit == "step" or grid.values_of == STEP else percent
    a_step = " a step" if figure is seconds else " of the time"
    words = f"{where}: {what} {figure(value)}{a_step}"
    if math.isnan(usual):
        others = len(grid.processes) - 1
        if not others:
            return f"{words}: no other process is known"
        who = "the other process" if others == 1 else "all other processes"
        return f"{words}: nothing to compare with: {what} of {who} is unknown here"
    known = sum(not math.isnan(value) for value in grid.seconds[:, column].tolist())
    against = "the other" if known == 2 else "the median"
    words += f", {against.removeprefix('the ') if known > 2 else against} {figure(usual)}"
    if figure is seconds and grid.values_of != STEP:
        words += f" of {seconds(float(grid.step_seconds[row, column]))}"
    ratio = float(seen.ratio[row, column])
    words += f", {ratio:.2f}×" if not math.isnan(ratio) else f", {UNKNOWN}×"
    samples = float(grid.samples[row, column])
    if samples > 0:
        unsure = "" if ratio < RATIOS[0] or seen.levels[row, column] else f", too few to separate it from {against}"
        words += f": estimate from {samples:.0f} samples{unsure}"
    return words


_FACTS: Final = 2
LINES_AROUND: Final = 2 + _FACTS
"""Lines that are no rows: the axis above them, the facts and the legend below."""
_LABEL: Final = (12, 24)
"""Columns of the names, on a narrow and on a wide terminal."""


class JobMap(Browsing, keys="job_map"):
    """Draws processes by steps."""

    browse: MapBrowse
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"job-map--{level}" for level in range(len(MARKS) + 1)),
        "job-map--axis", "job-map--name", "job-map--accused", "job-map--line", "job-map--cursor", "job-map--facts",
    }  # fmt: skip

    class StepsRequested(Message):
        """Requests a new grid, because other steps, other values or another number of columns are shown."""

    @dataclass
    class Opened(Message):
        """Requests the session of a process."""

        index: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.browse = MapBrowse()
        self.seen: StepOutliers | None = None
        """The steps that are drawn; None before the first grid."""
        self.values_of = SHOWN[0]
        self._rows: dict[int, int] = {}

    # -- what is shown ----------------------------------------------------------------------------------------

    def show_steps(self, seen: StepOutliers, *, whole: bool) -> None:
        """Show a grid of steps; `whole` means that it has all steps."""
        self.seen, self.browse.grid = seen, seen.grid
        self._rows = {index: row for row, index in enumerate(seen.grid.processes)}
        if whole:
            self.browse.take(seen.grid)
        self.changed()

    def go_to(self, index: int) -> None:
        """Move the cursor to the row of a process."""
        self.change(lambda browse: browse.go_to(index))

    def forget(self) -> None:
        """Prepare for another job."""
        self.browse, self.seen = MapBrowse(), None
        self.changed()

    @property
    def columns(self) -> int:
        """Columns available for steps."""
        return max(8, self.size.width - self._label - 1)

    @property
    def title(self) -> str:
        """The name of the values."""
        return f"{TITLES[self.values_of]} of each step" if self.values_of != "step" else TITLES[self.values_of]

    @property
    def note(self) -> str:
        """A note on the values, the number of rows, and their order."""
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

    def on_resize(self) -> None:
        self.post_message(self.StepsRequested())
        self.changed()

    def change(self, change: Callable[[Any], object]) -> None:
        """Change what is in view, and request other steps if the window has changed."""
        before = self.browse.window
        super().change(change)
        if self.browse.window != before:
            self.post_message(self.StepsRequested())

    def changed(self) -> None:
        self.browse.resize(self._room)
        self.browse.bring_into_view()
        super().changed()

    # -- drawing ----------------------------------------------------------------------------------------------

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"job-map--{name}")

    def render_lines(self, crop: Region) -> list[Strip]:
        self.browse.resize(self._room)  # Textual may draw the map at its new size before `on_resize`
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width, height = self.size.width, self.size.height
        if self.browse.grid is None or not self.browse.lines:
            words = " No steps recorded yet." if y == 0 and self.browse.grid is not None else ""
            return Strip([Segment(words.ljust(width), self._style("axis"))], width)
        if y == 0:
            head = " " * (self._label + 1)
            line = axis(self.browse.grid, self.columns, self.browse.column)
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
            return Strip.blank(width, self._style("axis"))  # colour filters skip a strip without a style
        return self._row(self.browse.lines[at], here=at == self.browse.line)

    def _row(self, line: MapLine, *, here: bool) -> Strip:
        name = "line" if here else "accused" if line.accused else "name"
        mark = "✗" if line.accused else " "
        text = shorten(f"{mark} {line.name}", self._label)
        segments = [Segment(text.ljust(self._label) + " ", self._style(name))]
        column, cells, width = self.browse.column, self._cells(line), self.columns
        for at, (level, ratio) in enumerate(cells):
            style = self._style(str(max(0, level)))
            if here and at == column:
                style += self._style("cursor")
            places = left_of(at + 1, len(cells), width) - left_of(at, len(cells), width)
            segments.append(Segment(mark_of(level, ratio) * places, style))
        return Strip(segments).adjust_cell_length(self.size.width, self._style("name")).simplify()

    def _cells(self, line: MapLine) -> list[tuple[int, float]]:
        """Return the level and ratio of each column; for a host, those of its worst process in each column."""
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
        for text, level in legend(len(self.browse.grid.processes) if self.browse.grid is not None else 0):
            segments.append(Segment(text, self._style(level or "axis")))
        return Strip(segments).adjust_cell_length(width, self._style("axis"))

    @property
    def facts(self) -> str:
        """The exact values under the cursor."""
        seen, column, process = self.seen, self.browse.column, self.browse.process
        if seen is None or column is None or process is None or process not in self._rows:
            return ""
        line = self.browse.lines[self.browse.line]
        name = f"{line.name}: process {process}" if len(line.processes) > 1 else f"process {process}"
        return f"{name}, {cell_words(seen, self._rows[process], column)}"

    # -- keys and mouse ---------------------------------------------------------------------------------------

    def action_values(self, step: int) -> None:
        self.values_of = SHOWN[(SHOWN.index(self.values_of) + step) % len(SHOWN)]
        self.post_message(self.StepsRequested())
        self.changed()

    def action_group(self) -> None:
        if not self.browse.can_group:
            self.say("Each host has one process." if self.browse.hosts > 1 else "All processes are on one host.")
            return
        self.browse.grouped = not self.browse.is_grouped
        self.change(MapBrowse.arrange)

    def action_open(self) -> None:
        if self.browse.process is not None:
            self.post_message(self.Opened(self.browse.process))

    def on_click(self, event: events.Click) -> None:
        """Go to the cell under the mouse; a double click opens its process."""
        offset = event.get_content_offset(self)
        if offset is None or not 1 <= offset.y <= self._room:
            return
        at = self.browse.top + offset.y - 1
        if at >= len(self.browse.lines):
            return
        self.change(lambda browse: browse.move(at - browse.line))
        grid, x = self.browse.grid, offset.x - self._label - 1
        if grid is not None and len(grid.steps) and 0 <= x < self.columns:
            count = len(grid.steps)
            column = next(at for at in range(count) if left_of(at + 1, count, self.columns) > x)
            self.change(lambda browse: browse.look_at(round(float(grid.first_steps[column]) * browse.scale)))
        if event.chain == 2:
            self.action_open()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll the rows."""
        event.stop()
        self.action_browse("move", 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll the rows."""
        event.stop()
        self.action_browse("move", -1)
