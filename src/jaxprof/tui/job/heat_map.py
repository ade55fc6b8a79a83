"""A heat map of processes by steps: how far each process is above the median one, stretch by stretch.

A cell is a character and a colour, and each level has a character of its own, so that no colours are needed. Only the
rows in view are drawn. What is not known stays blank. Positions on the axis are whole numbers: steps, or milliseconds
where the steps of a job have no numbers.
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
from jaxprof.analysis.programs.verdict import COMPILE, COPY, DATA, DEVICE, DISPATCH, HOST
from jaxprof.text import shorten
from jaxprof.tui.kit.canvas import AxisWindow
from jaxprof.tui.kit.picture import Browsing
from jaxprof.units import UNKNOWN, integer, percent, seconds

if TYPE_CHECKING:
    from rich.style import Style
    from textual.geometry import Region

    from jaxprof.analysis.jobs.step_grid import Standing, StepGrid


ZOOM: Final = 2.0
PAN: Final = 0.1
"""Share of the window that each press of an arrow pans."""
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
    """A row of the map: a process, or those of one host together."""

    name: str
    processes: tuple[int, ...]
    """The worst one first."""
    accused: bool


class MapBrowse:
    """What of a job the map shows."""

    def __init__(self) -> None:
        self.whole: AxisWindow | None = None
        """All steps; None before the first grid."""
        self.window: AxisWindow | None = None
        self.grid: StepGrid | None = None
        """The steps that are drawn."""
        self.unit = "step"
        self.cursor = 0
        """Position of the cursor on the axis."""
        self.line = 0
        self.top = 0
        self.order = ""
        """One of `ORDERS`; empty: by process where all fit, else by lost time."""
        self.grouped: bool | None = None
        """Whether the processes of a host are one row; None: where they would not fit otherwise."""
        self.lines: tuple[MapLine, ...] = ()
        self.room = 1
        self._processes: tuple[MapProcess, ...] = ()

    @property
    def scale(self) -> int:
        """Positions of the axis in a step, or a second."""
        return 1 if self.unit == "step" else MILLISECONDS

    @property
    def zoomed(self) -> bool:
        """Whether less than all steps are in view."""
        return self.window is not None and self.window != self.whole

    @property
    def wanted(self) -> tuple[float | None, float | None]:
        """The first and the last step of the grid to make; None: as far as there are any, also those to come."""
        if not self.zoomed or self.window is None:
            return None, None
        if self.unit == "step":
            return self.window.start, self.window.end - 1
        return self.window.start / self.scale, self.window.end / self.scale

    def take(self, grid: StepGrid) -> None:
        """Takes over how far the axis reaches, from a grid of all steps."""
        self.unit = grid.unit
        if len(grid.steps):
            end = float(grid.first_steps[-1]) + float(grid.steps[-1])
            whole = AxisWindow(round(float(grid.first_steps[0]) * self.scale), max(1, round(end * self.scale)))
            zoomed, self.whole = self.zoomed, whole
            self.window = self.window.within(whole) if zoomed and self.window is not None else whole
            self.cursor = min(max(self.cursor, whole.start), whole.end - 1)

    # -- rows -------------------------------------------------------------------------------------------------

    def show(self, processes: Sequence[MapProcess]) -> None:
        """Takes over other processes; the cursor stays on its own."""
        self._processes = tuple(processes)
        self.arrange()

    def resize(self, room: int) -> None:
        """Takes over the number of lines that there are for rows."""
        if room != self.room:
            self.room = max(1, room)
            self.arrange()

    @property
    def is_grouped(self) -> bool:
        """Whether the processes of a host are one row."""
        return self.can_group and (len(self._processes) > self.room if self.grouped is None else self.grouped)

    @property
    def hosts(self) -> int:
        """How many hosts there are."""
        return len({process.host for process in self._processes})

    @property
    def can_group(self) -> bool:
        """Whether there are several hosts, of which one has several processes."""
        return 1 < self.hosts < len(self._processes)

    @property
    def order_in_use(self) -> str:
        """One of `ORDERS`."""
        return self.order or (ORDERS[0] if len(self._processes) <= self.room else ORDERS[1])

    def arrange(self) -> None:
        """Makes the rows anew; the cursor stays on its process."""
        before = self.process
        digits = len(str(max((process.index for process in self._processes), default=0)))
        found = self._by_host() if self.is_grouped else [_line(process, digits) for process in self._sorted()]
        self.lines = tuple(found)
        at = next((at for at, line in enumerate(self.lines) if before in line.processes), None)
        self.line = at if at is not None else max(0, min(self.line, len(self.lines) - 1))
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
                tuple(each.index for each in sorted(those, key=lambda each: -each.lost_seconds)),
                any(each.accused for each in those),
            )
            for host, those in hosts.items()
        ]

    @property
    def process(self) -> int | None:
        """The process under the cursor: of a host, the worst one. None without rows."""
        return self.lines[self.line].processes[0] if self.lines else None

    def move(self, step: int) -> None:
        """Goes up or down."""
        self.line = max(0, min(len(self.lines) - 1, self.line + step))
        self.bring_into_view()

    def page(self, step: int) -> None:
        """Goes a page up or down."""
        self.move(step * max(1, self.room - 1))

    def sort(self) -> None:
        """Sorts the rows by the next order."""
        self.order = ORDERS[(ORDERS.index(self.order_in_use) + 1) % len(ORDERS)]
        self.arrange()

    def go_to(self, process: int) -> None:
        """Goes to the row of a process."""
        self.line = next((at for at, line in enumerate(self.lines) if process in line.processes), self.line)
        self.bring_into_view()

    def bring_into_view(self) -> None:
        """Scrolls so that the row of the cursor is in view and no line at the end stays empty."""
        self.top = min(self.line, max(self.top, self.line - self.room + 1))
        self.top = max(0, min(self.top, len(self.lines) - self.room))

    # -- steps ------------------------------------------------------------------------------------------------

    def zoom_by(self, step: int) -> None:
        """Shows half or twice as many steps around the cursor."""
        if self.window is not None and self.whole is not None:
            self.window = self.window.zoomed(ZOOM**-step, self.cursor, self.whole, min(4, self.whole.span))

    def show_whole(self) -> None:
        """Shows all steps."""
        self.window = self.whole

    def pan(self, step: int) -> None:
        """Pans by a tenth of the window; at either end, moves the cursor by as much."""
        if self.window is None or self.whole is None:
            return
        by = step * max(1, round(self.window.span * PAN))
        moved = self.window.moved(by, self.whole)
        self.go(self.cursor + (moved.start - self.window.start or by), moved)

    def go(self, position: int, window: AxisWindow | None = None) -> None:
        """Moves the cursor there, and the window as far as needed."""
        if self.window is None or self.whole is None:
            return
        self.cursor = min(max(position, self.whole.start), self.whole.end - 1)
        self.window = (window or self.window).showing(self.cursor, self.whole)

    def step(self, step: int) -> None:
        """Moves the cursor by a column; the window follows."""
        grid, column = self.grid, self.column
        if grid is not None and column is not None:
            first = round(float(grid.first_steps[column]) * self.scale)
            self.go(first + max(1, round(float(grid.steps[column]) * self.scale)) if step > 0 else first - 1)

    @property
    def column(self) -> int | None:
        """The column of the grid under the cursor; None where the grid does not reach there."""
        if self.grid is None or not len(self.grid.steps):
            return None
        found = bisect_right(self.grid.first_steps, self.cursor / self.scale + 1e-9) - 1
        return found if 0 <= found < len(self.grid.steps) else None

    def edge(self, step: int) -> None:
        """Goes to the first or the last step."""
        if self.whole is not None:
            self.go(self.whole.start if step < 0 else self.whole.end - 1)


def _line(process: MapProcess, digits: int) -> MapLine:
    return MapLine(f"{process.index:>{digits}} {process.host}", (process.index,), process.accused)


MARKS: Final = "·░▒▓█"
"""By level. From the last of `RATIOS` on a digit stands: how many times the usual step."""
TITLES: Final = {
    OWN: "Own work", STEP: "Step time", DATA: "Data", HOST: "Host: Python", DISPATCH: "Dispatch: calling JAX",
    COPY: "Copies", COMPILE: "Compiling again", DEVICE: "Device, and waiting for the others",
}  # fmt: skip
SHOWN: Final = tuple(value for value in VALUES if value in TITLES)
"""What `]` goes through."""
NOTES: Final = {
    OWN: "in lockstep own work tells who is late",
    STEP: "in lockstep all take the same time",
    DEVICE: "who is late waits least",
}
_DIGITS: Final = 9


def mark_of(level: int, ratio: float) -> str:
    """The character of a cell; a blank where the value is unknown."""
    if level < 0:
        return " "
    return MARKS[level] if level < len(MARKS) else str(min(_DIGITS, int(ratio)))


def legend(processes: int) -> list[tuple[str, str]]:
    """The scale as words, each with the level of its style, and what so many processes are compared with."""
    words = [("× other's step" if processes == 2 else "× median step", "")]
    for level, mark in enumerate(MARKS):
        words += [(f" {mark} ", str(level)), (f"<{RATIOS[level]:g}", "")]
    return [*words, (" 2-9 ", str(len(MARKS))), ("times", ""), ("  blank: unknown", "")]


def axis(grid: StepGrid, width: int, cursor: int | None) -> str:
    """The numbers of steps above their columns; that under the cursor goes before the others."""
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
    """Where one of `count` columns begins that share a width; at least one place each while there are no more."""
    return column * width // max(1, count)


def position(grid: StepGrid, column: int) -> str:
    """Where a column begins: a step, or a time since the loop began."""
    first = float(grid.first_steps[column])
    return f"{round(first)}" if grid.unit == "step" else seconds(first, 2) if first else "0 s"


def stretch(grid: StepGrid, column: int) -> str:
    """`steps 300 to 311`, or a stretch of the loop's time."""
    first, length = float(grid.first_steps[column]), float(grid.steps[column])
    if grid.unit == "time":
        return f"{position(grid, column)} to {seconds(first + length, 2)} of its loop"
    last = round(first + length) - 1
    return f"step {integer(last)}" if length <= 1 else f"steps {integer(round(first))} to {integer(last)}"


def cell_words(seen: Standing, row: int, column: int) -> str:
    """The exact values of a cell: its steps, its seconds a step, what they are compared with, the ratio; or that it is
    unknown."""
    grid, where = seen.grid, stretch(seen.grid, column)
    value, usual = float(grid.seconds[row, column]), float(seen.usual_seconds[row, column])
    what = TITLES[grid.values_of].partition(":")[0].partition(",")[0].lower()
    if math.isnan(value):
        why = "no step of it was seen" if grid.values_of == STEP else "too few samples, or no step of it"
        return f"{where}: {what} unknown: {why}"
    figure = seconds if grid.unit == "step" or grid.values_of == STEP else percent
    a_step = " a step" if figure is seconds else " of the time"
    words = f"{where}: {what} {figure(value)}{a_step}"
    if math.isnan(usual):
        return f"{words}: no other process is known here"
    known = sum(not math.isnan(each) for each in grid.seconds[:, column].tolist())
    against = "the other" if known == 2 else "the median"
    words += f", {against.removeprefix('the ') if known > 2 else against} {figure(usual)}"
    if figure is seconds and grid.values_of != STEP:
        words += f" of {seconds(float(grid.step_seconds[row, column]))}"
    ratio = float(seen.ratio[row, column])
    words += f", {ratio:.2f}×" if not math.isnan(ratio) else f", {UNKNOWN}×"
    samples = float(grid.samples[row, column])
    if samples > 0:
        told = "" if ratio < RATIOS[0] or seen.levels[row, column] else f", which do not tell it from {against}"
        words += f": estimate from {samples:.0f} samples{told}"
    return words


_FACTS: Final = 2
LINES_AROUND: Final = 2 + _FACTS
"""Lines that are no rows: the axis above them, the facts and the legend below."""
_LABEL: Final = (12, 24)
"""Columns of the names, on a narrow and on a wide terminal."""


class JobMap(Browsing, keys="job_map"):
    """Processes by steps."""

    browse: MapBrowse
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"job-map--{level}" for level in range(len(MARKS) + 1)),
        "job-map--axis", "job-map--name", "job-map--accused", "job-map--line", "job-map--cursor", "job-map--facts",
    }  # fmt: skip

    class Wanted(Message):
        """Other steps, other values or another number of columns are to be shown: a thread makes the grid."""

    @dataclass
    class Opened(Message):
        """The user wants to see a process."""

        index: int

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
        self.change(lambda browse: browse.show(processes))

    def show_steps(self, seen: Standing, *, whole: bool) -> None:
        """Shows other steps; `whole`: all that there are."""
        self.seen, self.browse.grid = seen, seen.grid
        self._rows = {index: row for row, index in enumerate(seen.grid.processes)}
        if whole:
            self.browse.take(seen.grid)
        self.changed()

    def go_to(self, index: int) -> None:
        """Moves the cursor to the row of a process."""
        self.change(lambda browse: browse.go_to(index))

    def forget(self) -> None:
        """Prepares for another job."""
        self.browse, self.seen = MapBrowse(), None
        self.changed()

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

    def on_resize(self) -> None:
        self.post_message(self.Wanted())
        self.changed()

    def change(self, change: Callable[[Any], object]) -> None:
        """Changes what is in view; other steps are asked for."""
        before = self.browse.window
        super().change(change)
        if self.browse.window != before:
            self.post_message(self.Wanted())

    def changed(self) -> None:
        self.browse.resize(self._room)
        self.browse.bring_into_view()
        super().changed()

    # -- drawing ----------------------------------------------------------------------------------------------

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"job-map--{name}")

    def render_lines(self, crop: Region) -> list[Strip]:
        self.browse.resize(self._room)  # it may be drawn at its new size before anybody has told it of that
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width, height = self.size.width, self.size.height
        if self.browse.grid is None or not self.browse.lines:
            words = " No steps were seen yet." if y == 0 and self.browse.grid is not None else ""
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
            return Strip.blank(width, self._style("axis"))  # without a style, no filter of colours takes it
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
        self.post_message(self.Wanted())
        self.changed()

    def action_group(self) -> None:
        if not self.browse.can_group:
            self.say("Each host has one process." if self.browse.hosts > 1 else "All are on one host.")
            return
        self.browse.grouped = not self.browse.is_grouped
        self.change(MapBrowse.arrange)

    def action_open(self) -> None:
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
        self.change(lambda browse: browse.move(at - browse.line))
        grid, x = self.browse.grid, offset.x - self._label - 1
        if grid is not None and len(grid.steps) and 0 <= x < self.columns:
            count = len(grid.steps)
            column = next(at for at in range(count) if left_of(at + 1, count, self.columns) > x)
            self.change(lambda browse: browse.go(round(float(grid.first_steps[column]) * browse.scale)))
        if event.chain == 2:
            self.action_open()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scrolls the rows."""
        event.stop()
        self.action_browse("move", 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scrolls the rows."""
        event.stop()
        self.action_browse("move", -1)
