"""A program's time line as one line of letters, and columns of seconds that add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jaxprof.results.programs.derive import NOT_SEEN, ProgramResult

LETTERS: Final = {
    "import": "i",
    "data": "d",
    "trace": "t",
    "lower": "l",
    "compile": "C",
    "transfer": "x",
    "device_busy": "D",
    "host_busy": "h",
    "waiting": "w",
    NOT_SEEN: "·",
}
"""One for each state; large for the two that usually matter most."""


def letters(found: ProgramResult, width: int) -> str:
    """The time line from start to end in `width` columns, each with the letter of the state that took most of it. Of a
    program that took no time nothing."""
    if found.wall_seconds <= 0:
        return ""
    cells: list[dict[str, float]] = [{} for _ in range(width)]
    each = found.wall_seconds / width
    at = 0.0
    for state, took in found.segments():
        end = at + took
        first, last = min(width - 1, int(at / each)), min(width - 1, int(end / each))
        for column in range(first, last + 1):
            inside = min(end, (column + 1) * each) - max(at, column * each)
            if inside > 0:
                cells[column][state] = cells[column].get(state, 0.0) + inside
        at = end
    return "".join(LETTERS[max(cell, key=lambda state: cell[state])] if cell else LETTERS[NOT_SEEN] for cell in cells)


def rounded(parts: Sequence[float], whole: float) -> tuple[list[str], str]:
    """`parts` and their sum `whole`, in seconds, in one unit and so rounded that what is written adds up.

    Each is within one unit of the last decimal of what it was.
    """
    decimals = 1 if whole >= 1000 else 2 if whole >= 100 else 3
    unit = 10.0**-decimals
    total = round(whole / unit)
    units = [int(part / unit) for part in parts]
    by_rest = sorted(range(len(parts)), key=lambda at: units[at] - parts[at] / unit)
    for at in by_rest[: max(0, total - sum(units))]:
        units[at] += 1
    return [f"{value * unit:.{decimals}f} s" for value in units], f"{total * unit:.{decimals}f} s"
