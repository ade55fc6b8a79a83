"""The processes of a job as one list, with their steps as a heat map, or with what the time of their loops went to.

The map shows how far each process is above the median one in each column of steps. A cell is a character and a colour;
each level has its own character, so the map is readable without colours. Unknown cells stay blank.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

import numpy as np
from textual import events
from textual.content import Content
from textual.message import Message

from jaxprof.analysis.programs import COMPILE, COPY, DATA, DEVICE, DISPATCH, HOST, part_key
from jaxprof.base.grouping import grouped
from jaxprof.base.text import safe
from jaxprof.base.units import UNKNOWN, integer, percent, percent_or_less, seconds
from jaxprof.facts import at
from jaxprof.facts.processes import FIGURES
from jaxprof.jobs.figures import ProcessFigures
from jaxprof.jobs.findings import JobFigures
from jaxprof.jobs.step_grid import OWN, PARTS_OF, RATIOS, STEP, StepGrid
from jaxprof.tui.kit.canvas import Scale, ruler
from jaxprof.tui.kit.drawing import join_styled
from jaxprof.tui.kit.format import status_mark
from jaxprof.tui.kit.guard import HIDDEN
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import Cell, TableColumn

MARKS = "·░▒▓█"
"""Characters by level. From the last of `RATIOS` on, a digit shows the multiple of the usual step."""
STYLES = (
    *(f"{colour} on $background" for colour in ("$text-disabled", "$heat-1", "$heat-2", "$heat-3", "$heat-4")),
    "bold $background on $heat-5",
)
TITLES = {
    OWN: "Own work", STEP: "Step time", DATA: "Data", HOST: "Host: Python", DISPATCH: "Dispatch: calling JAX",
    COPY: "Copies", COMPILE: "Recompilation", DEVICE: "Device, and waiting for the others",
}  # fmt: skip
SHOWN = tuple(value for value in PARTS_OF if value in TITLES)
"""The values that `]` goes through, in this order."""
NOTES = {
    OWN: "in lockstep, own work shows the late process",
    STEP: "in lockstep, all processes take the same time",
    DEVICE: "the late process waits least",
}
_DIGITS = 9


def mark_of(level: int, ratio: float) -> str:
    """Return the character of a cell; a blank where the value, or what it is compared with, is unknown."""
    if level < 0 or math.isnan(ratio):
        return " "
    return MARKS[level] if level < len(MARKS) else str(min(_DIGITS, int(ratio)))


def legend(processes: int) -> Content:
    words = [("× other's step" if processes == 2 else "× median step", "$text-muted")]
    for level, mark in enumerate(MARKS):
        words += [(f" {mark} ", STYLES[level]), (f"<{RATIOS[level]:g}", "$text-muted")]
    return Content.assemble(*words, (" 2-9 ", STYLES[-1]), ("times  blank: unknown", "$text-muted"))


def axis(grid: StepGrid, width: int) -> str:
    if not len(grid.steps):
        return ""
    ends = Scale(float(grid.first_steps[0]), float(grid.first_steps[-1] + grid.steps[-1]))

    def label(at: float, _: float) -> str:
        if grid.unit != "step":
            return _time(at)
        return f"{at:.0f}" if at.is_integer() else ""  # there is no half step

    return ruler(ends, width, label)


def _time(at: float) -> str:
    return seconds(at, 2) if at else "0 s"


def column_start(column: int, count: int, width: int) -> int:
    """Return where one of `count` columns that share a width begins; with room, each has at least one cell."""
    return column * width // max(1, count)


def column_span(grid: StepGrid, column: int) -> str:
    """Return the steps of a column, such as `steps 300 to 311`, or its part of the loop's time."""
    first, length = float(grid.first_steps[column]), float(grid.steps[column])
    if grid.unit == "time":
        return f"{_time(first)} to {seconds(first + length, 2)} of its loop"
    last = round(first + length) - 1
    return f"step {integer(last)}" if length <= 1 else f"steps {integer(round(first))} to {integer(last)}"


def cell_words(grid: StepGrid, row: int, column: int) -> str:
    """Return the exact values of a cell (steps, seconds a step, what they are compared with), or why unknown."""
    where = column_span(grid, column)
    value, usual = float(grid.seconds[row, column]), float(grid.usual_seconds[row, column])
    what = TITLES[grid.values_of].partition(":")[0].partition(",")[0].lower()
    if math.isnan(value):
        why = "no step recorded" if grid.values_of == STEP else "too few samples, or no step recorded"
        return f"{where}: {what} unknown: {why}"
    figure = seconds if grid.unit == "step" or grid.values_of == STEP else percent
    words = f"{where}: {what} {figure(value)}{' a step' if figure is seconds else ' of the time'}"
    if math.isnan(usual):
        return f"{words}, not compared: {what} of no other process is known here"
    against = "other" if np.count_nonzero(~np.isnan(grid.seconds[:, column])) == 2 else "median"
    words += f", {against} {figure(usual)}"
    if figure is seconds and grid.values_of != STEP:
        words += f" of {seconds(float(grid.step_seconds[row, column]))}"
    ratio, samples = float(grid.ratio[row, column]), float(grid.samples[row, column])
    words += f", {ratio:.2f}×" if not math.isnan(ratio) else f", {UNKNOWN}×"
    if samples > 0:
        unsure = "" if ratio < RATIOS[0] or grid.levels[row, column] else f", too few to separate it from the {against}"
        words += f": estimate from {samples:.0f} samples{unsure}"
    return words


Column = TableColumn["ProcessFigures"]
VIEWS = {"map": "Steps", "ranks": "Processes"}
_PARTS = (DATA, HOST, DISPATCH, COPY, COMPILE, DEVICE)
_MANY = 16
"""Most processes that are listed by number; in a longer list, the one that loses most comes first."""
_FIGURES = (("steps_per_second", 8, 3), ("wall_seconds", 8, 4), ("compile_count", 10, 5), ("compiled_again", 12, 5))
"""Facts of a process that are shown as they are, each with its width and priority."""


class ProcessList(RowList["ProcessFigures"], keys="processes"):
    """A row for each process that could be read: what it is, what the job loses by it, and the columns of a view."""

    EMPTY: ClassVar[str] = "No process."

    class Changed(Message):
        """The values, the number of columns, or the column under the cursor have changed."""

    def __init__(self) -> None:
        self.grid: StepGrid | None = None
        self.view, self.column, self.values_of = "map", 0, SHOWN[0]
        self._lost_seconds: Mapping[int, float] = {}
        """Seconds that a process's own work takes more than that of the median process, if that is more than chance."""
        self._late: dict[int, set[str]] = {}
        self._stands: int | None = None
        """Parts of the loop that findings name, by the process that they are about."""
        facts = {fact.key: fact for fact in FIGURES}
        figures = [
            TableColumn(
                facts[key].title or "", facts[key].text, width, right=facts[key].is_right, priority=priority,
                sort=facts[key].reader(),
            )
            for key, width, priority in _FIGURES
        ]  # fmt: skip
        named = (
            TableColumn(
                "process",
                lambda row: (str(row.index), "bold $error" if row.index in self._late else "bold"),
                9,
                right=True,
                sort=at("index"),
            ),
            TableColumn("host", lambda row: row.host, 5, most=24, fits=True, sort=at("host")),
        )
        self._columns_of: dict[str, tuple[Column, ...]] = {
            "map": (*named, self._loss_column(priority=1), TableColumn("", self._steps, 60, weight=1)),
            "ranks": (
                *named,
                TableColumn("status", lambda row: status_mark(row.status) + f" {safe(row.status)}", 11, priority=1,
                            sort=at("status")),
                self._loss_column(),
                *(self._part(part, facts[f"{part_key(part)}_share"].reader()) for part in _PARTS),
                *figures,
            ),
        }  # fmt: skip
        super().__init__(self._columns_of[self.view], order="process", id="processes")

    # -- what is shown ----------------------------------------------------------------------------------------

    def forget(self) -> None:
        self.grid, self.column, self.empty = None, 0, ""
        self._order, self.backwards = self._first_order, False
        self.show_rows({})

    def show(self, job: JobFigures, lost_seconds: Mapping[int, float]) -> None:
        """Show the processes of a job; at first the cursor is on the one of the most expensive finding, and when the
        job comes to a standstill on the one that it waits for."""
        first, self.empty, self._lost_seconds = not self.total, self.EMPTY, lost_seconds
        late = [(each.index, each) for each in job.findings if each.code != "failed_after" and each.index is not None]
        self._late = {index: {finding.part for finding in found} for index, found in grouped(late).items()}
        self.show_rows({process.index: process for process in job.processes})
        if first and self.total > _MANY:
            self.sort_by(next(column for column in self._columns if column.title == "lost"))
        stands = next((index for index, each in late if each.code == "process_standstill"), None)
        if stands is not None and stands != self._stands:  # the screen turns to it by itself
            self.move_to_key(stands)
        self._stands = stands
        costs = {index: finding.seconds or 0.0 for index, finding in late} or lost_seconds
        if first and costs and stands is None:
            self.move_to_key(max(costs, key=lambda index: costs[index]))

    def show_view(self, view: str) -> None:
        self.view, self._columns = view, self._columns_of[view]
        order = self._order.title if self._order is not None else ""
        self._order = next((column for column in self._columns if column.title == order), self._first_order)
        self._layout = (-1, [])
        self.rearrange()
        self._show_change()

    def haystack(self, row: ProcessFigures) -> str:
        return f"{row.index} {row.host} {row.status}"

    def show_steps(self, grid: StepGrid) -> None:
        before, self.grid = self.grid, grid
        if before is not None and self.column < len(before.steps) and len(grid.steps):
            self.column = max(0, bisect_right(grid.first_steps, float(before.first_steps[self.column])) - 1)
        self._show_change()

    @property
    def columns(self) -> int:
        return max(8, self._layout_for(max(1, self.scrollable_content_region.width))[-1].width)

    @property
    def title(self) -> str:
        if self.view == "ranks":
            return VIEWS["ranks"]
        return f"{TITLES[self.values_of]} of each step" if self.values_of != STEP else TITLES[self.values_of]

    @property
    def note(self) -> str:
        values = NOTES.get(self.values_of, "") if self.view == "map" else ""
        more = f"{self.count} rows" if self.count >= self.size.height else ""
        hidden = f"{self.hidden} hidden" if self.hidden else ""
        return " · ".join(filter(None, (values, more, hidden, self.order_in_words)))

    @property
    def facts(self) -> str:
        grid, line = self.grid, self.current_row
        if self.view != "map":
            return ""
        if grid is not None and not len(grid.steps):
            return "No steps recorded yet."
        if grid is None or line is None or line.index not in grid.processes:
            return ""
        return safe(f"process {line.index}, {cell_words(grid, grid.processes.index(line.index), self.column)}")

    # -- drawing ----------------------------------------------------------------------------------------------

    def draw_header(self, width: int) -> Content | None:
        header, grid = super().draw_header(width), self.grid
        if header is None or grid is None or self.view != "map":
            return header
        steps = self._layout_for(width)[-1]
        return header[: steps.left].pad_right(max(0, steps.left - header.cell_length)) + axis(grid, steps.width)

    def _loss_column(self, priority: int = 0) -> Column:
        def draw(row: ProcessFigures) -> Cell:
            lost = self._lost_seconds.get(row.index, 0.0)
            return (seconds(lost), "bold $warning") if lost else (UNKNOWN, "$quiet")

        return TableColumn(
            "lost", draw, 8, right=True, priority=priority, sort=lambda row: -self._lost_seconds.get(row.index, 0.0)
        )

    def _part(self, part: str, read: Callable[[ProcessFigures], float | None]) -> Column:
        def draw(row: ProcessFigures) -> Cell:
            words = percent_or_less(read(row)).replace("< ", "<")  # six cells wide, like the other figures
            return words, "bold $worse" if part in self._late.get(row.index, ()) else ""

        return TableColumn(part, draw, max(6, len(part) + 2), right=True, priority=3 * (part == DEVICE), sort=read)

    def _steps(self, row: ProcessFigures) -> Cell:
        def marks(width: int) -> Iterator[tuple[str, str]]:
            grid = self.grid
            if grid is None or row.index not in grid.processes:
                return
            at = grid.processes.index(row.index)
            ratios, levels = grid.ratio[at].tolist(), grid.levels[at].tolist()
            column = self.column if row is self.current_row else None
            for at, (level, ratio) in enumerate(zip(levels, ratios, strict=True)):
                room = column_start(at + 1, len(levels), width) - column_start(at, len(levels), width)
                style = STYLES[max(0, level)]
                yield mark_of(level, ratio) * room, f"reverse {style}" if at == column else style

        return lambda width: join_styled(marks(width))

    # -- keys and mouse ---------------------------------------------------------------------------------------

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        of_steps = action in ("step", "values")
        return HIDDEN if of_steps and self.view != "map" else super().why_not(action, parameters)

    def on_resize(self) -> None:
        self.post_message(self.Changed())

    def _show_change(self) -> None:
        self._drawn_rows.clear()
        self.refresh()
        self.post_message(self.Changed())

    def action_step(self, step: int) -> None:
        self._go_to_column(self.column + step)

    def _go_to_column(self, column: int) -> None:
        count = len(self.grid.steps) if self.grid is not None else 0
        self.column = max(0, min(count - 1, column))
        self._show_change()

    def action_values(self, step: int) -> None:
        self.values_of = SHOWN[(SHOWN.index(self.values_of) + step) % len(SHOWN)]
        self._show_change()

    def on_click(self, event: events.Click) -> None:
        offset, steps = event.get_content_offset(self), self._layout_for(self.scrollable_content_region.width)[-1]
        count = len(self.grid.steps) if self.grid is not None else 0
        if offset is not None and count and self.view == "map" and 0 <= offset.x - steps.left < steps.width:
            x = offset.x - steps.left
            column = next(at for at in range(count) if column_start(at + 1, count, steps.width) > x)
            self._go_to_column(column)
