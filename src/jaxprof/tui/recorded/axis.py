"""A program's time cut into as many columns as a picture has: the states in each, and what was read in it.

Everything that is drawn over time uses the same axis, so that a dip of the device stands below the compile that made
it. Stretches are taken as even in themselves: nothing finer was recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxprof.events import ProgramSampled


@dataclass(frozen=True, slots=True)
class Axis:
    """From the start of the program to its end, or to the last that was heard of it. Monotonic seconds."""

    began_seconds: float
    ended_seconds: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return max(0.0, self.ended_seconds - self.began_seconds)

    def column(self, at_seconds: float, columns: int) -> float:
        """The column of a time, as a fraction too; not cut off outside."""
        return (at_seconds - self.began_seconds) / self.seconds * columns if self.seconds else 0.0


def states_by_column(sampled: Iterable[ProgramSampled], axis: Axis, columns: int) -> list[dict[str, float]]:
    """For each column the share (0..1) of each state in it; what is missing to 1 was not seen."""
    found: list[dict[str, float]] = [{} for _ in range(columns)]
    width = axis.seconds / columns if columns else 0.0
    if not width:
        return found
    for stretch in sampled:
        length = stretch.monotonic_seconds - stretch.began_seconds
        if length <= 0:
            continue
        first, last = axis.column(stretch.began_seconds, columns), axis.column(stretch.monotonic_seconds, columns)
        for column in range(max(0, int(first)), min(columns, int(last) + 1)):
            inside = min(last, column + 1) - max(first, column)  # of a column, and its states in their proportion
            if inside <= 0:
                continue
            for state, seconds in stretch.states.items():
                if seconds > 0:
                    found[column][state] = found[column].get(state, 0.0) + inside * seconds / length
    return found


def values_by_column(points: Sequence[tuple[float, float | None]], axis: Axis, columns: int) -> list[float | None]:
    """For each column the mean of the values that were read in it; of one without any, that of the column before.

    Before the first and after the last reading nothing is made up.
    """
    sums, counts = [0.0] * columns, [0] * columns
    for at, value in points:
        column = axis.column(at, columns)
        if value is not None and 0 <= column < columns + 1e-6:
            index = min(columns - 1, int(column))
            sums[index] += value
            counts[index] += 1
    last = max((index for index in range(columns) if counts[index]), default=-1)
    found: list[float | None] = []
    for index in range(columns):
        if counts[index]:
            found.append(sums[index] / counts[index])
        else:
            found.append(found[-1] if found and index < last else None)
    return found
