"""What the heat map says in words: its title, its axis, its legend, and the exact values under the cursor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.jobs.standing import RATIOS
from jaxprof.analysis.jobs.step_grid import OWN, STEP, VALUES
from jaxprof.analysis.programs.verdict import COMPILE, COPY, DATA, DEVICE, DISPATCH, HOST
from jaxprof.units import UNKNOWN, integer, percent, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.jobs.standing import Standing
    from jaxprof.analysis.jobs.step_grid import StepGrid

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
