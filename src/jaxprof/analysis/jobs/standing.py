"""What stands out in the steps of a job: which cells of a grid are above the others, and what each process cost it.

A job whose processes work together waits in each step for the one that has most work of its own. What a process takes
beyond the median of all (of two, beyond the other) is lost to the others. Where values rest on samples of the stack,
what so few samples would show by chance counts for nothing: parts of steps are estimates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from jaxprof.analysis.jobs.step_grid import StepGrid, usual_of

Array: TypeAlias = "np.ndarray[Any, Any]"
RATIOS: Final = (1.05, 1.1, 1.25, 1.5, 2.0)
"""Bounds of the levels, as multiples of the usual step: of the median process, or of two, of the other one."""
UNKNOWN: Final = -1
_BY_CHANCE: Final = 2.0
"""Standard errors below which a cell is not told from what it is compared with."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A grid, and what stands out in it; all R x C, NaN where unknown."""

    grid: StepGrid
    usual_seconds: Array
    """What each value is compared with, as `usual_of` has it."""
    ratio: Array
    """As `StepGrid.ratio`."""
    error_seconds: Array
    """The standard error of `grid.seconds`, or of two of their difference, from the number of samples; 0 where values
    rest on none."""
    levels: Array
    """0 at the usual value, below it, or where so few samples do not tell; 1 from a ratio of `RATIOS[0]` on, and so on
    up to the number of `RATIOS`; `UNKNOWN` where the value is unknown."""


def standing(grid: StepGrid) -> Standing:
    """How far above the others each process is in each column."""
    usual, ratio = usual_of(grid.seconds), grid.ratio
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip(grid.seconds / grid.step_seconds, 0.0, 1.0)
        error = np.sqrt(share * (1 - share) / grid.samples) * grid.step_seconds
        error = np.where(np.isnan(grid.samples) & ~np.isnan(grid.seconds), 0.0, error)
        of_two = np.sum(~np.isnan(grid.seconds), axis=0) == 2
        error = np.where(of_two, np.sqrt(np.nansum(error**2, axis=0)), error)
        certain = grid.seconds - usual > _BY_CHANCE * error
    levels = np.searchsorted(RATIOS, np.nan_to_num(ratio, nan=1.0), side="right").astype("i1")
    levels[~certain] = 0
    levels[np.isnan(grid.seconds)] = UNKNOWN
    return Standing(grid, usual, ratio, error, levels)


def lost_seconds(seen: Standing) -> dict[int, float]:
    """By process: by how many seconds it is above the median process (of two, above the other one), over all
    columns in which others are known; only processes for which that is more than chance.

    The bound grows with the number of processes, as the largest of so many would by chance: `sqrt(2 ln R) + 1` standard
    errors.
    """
    grid = seen.grid
    weights = np.where(np.isnan(seen.usual_seconds), 0, grid.steps)
    total = np.nansum((grid.seconds - seen.usual_seconds) * weights, axis=1)
    error = np.sqrt(np.nansum((seen.error_seconds * weights) ** 2, axis=1))
    bound = math.sqrt(2 * math.log(max(2, len(grid.processes)))) + 1
    return {
        index: float(lost)
        for index, lost, within in zip(grid.processes, total, error, strict=True)
        if lost > bound * within
    }
