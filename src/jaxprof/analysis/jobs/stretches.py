"""Since when a process is late: the stretch of its loop in which its share is most above those of the others.

The processes are laid beside each other by the time since their loops began, which they do together: no clocks are
compared. The stretch is the one that maximises the sum of the differences over the root of its length (the scan
statistic for a change of the mean; see D. Siegmund, "Boundary crossing probabilities and statistical applications",
1988). Whether somebody is late in it, the test of whole loops decides.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from jaxprof.analysis.jobs.blocks import LEAST_DIFFERENCE, OWN_WORK
from jaxprof.analysis.jobs.loop_windows import Array, LoopWindows

LEAST_CELLS: Final = 10
"""A shorter stretch is none: it may be what any process has now and then."""
FEWEST_CELLS: Final = 5
"""The same of a loop of less than twice `LEAST_CELLS`, where it must also be half of it."""
MOST_CELLS: Final = 200
"""Of the time of a loop, in which the stretch begins and ends."""
_WORTH_A_TEST: Final = 3.0
"""Standard errors below which the test of a stretch would not call it certain."""
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class LateStretch:
    """Some time of a loop, in seconds since it began."""

    began_seconds: float
    """0 for one that holds from the start."""
    ended_seconds: float | None
    """None for one that holds to the end."""

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole loop."""
        return self.began_seconds == 0 and self.ended_seconds is None

    def windows(self, windows: LoopWindows, origin: float) -> LoopWindows:
        """The windows of a loop that began at `origin` which lie in it, by their middles."""
        if self.is_whole:
            return windows
        end = np.inf if self.ended_seconds is None else self.ended_seconds
        middles = windows.began_seconds - origin + windows.seconds / 2
        return windows.chosen((self.began_seconds <= middles) & (middles < end))


WHOLE: Final = LateStretch(0.0, None)


class Differences:
    """By process and cell of time: how much more of its loop goes to something than on the others."""

    def __init__(self, shares: Array, cell_seconds: float) -> None:
        """`shares`: by process and cell, NaN where the process has none; at least two processes."""
        self._cell = cell_seconds
        self.tests = shares.shape[1]
        self._least = least_cells(self.tests)
        self._more: Array = shares - (shares[::-1] if len(shares) == 2 else _median(shares))
        self._worth = _worth_naming(self._more, self._least)

    def stretch(self, number: int) -> tuple[LateStretch, LateStretch] | None:
        """Where the process at that place is most above the others, and of that what can be said: with what is as late
        before and after it, or too short to say otherwise. None where nothing lasts for `least_cells` cells and is
        worth naming."""
        if not self._worth[number]:
            return None
        known = np.flatnonzero(np.isfinite(self._more[number]))
        more = self._more[number][known]
        if len(more) < self._least:
            return None
        sums = np.concatenate([[0.0], np.cumsum(more)])
        lengths = np.arange(len(sums))[None, :] - np.arange(len(sums))[:, None]
        scores = np.where(
            lengths >= self._least, (sums[None, :] - sums[:, None]) / np.sqrt(np.maximum(lengths, 1)), -np.inf
        )
        low, high = (int(each) for each in np.unravel_index(int(np.argmax(scores)), scores.shape))
        inside = (sums[high] - sums[low]) / (high - low)
        noise = float(np.std(more[low:high])) / (high - low) ** 0.5
        if inside < LEAST_DIFFERENCE or inside < _WORTH_A_TEST * noise:
            return None
        most = self._between(known, low, high)
        if low < self._least or sums[low] / low > inside / 2:
            low = 0
        rest = len(more) - high
        if rest < self._least or (sums[-1] - sums[high]) / rest > inside / 2:
            high = len(more)
        return most, self._between(known, low, high)

    def _between(self, known: Array, low: int, high: int) -> LateStretch:
        """From one to before another of the cells that are known."""
        began = float(known[low] * self._cell) if low else 0.0
        return LateStretch(began, float((known[high - 1] + 1) * self._cell) if high < len(known) else None)


def least_cells(cells: int) -> int:
    """How many of the cells of a loop a stretch has at least."""
    return min(LEAST_CELLS, max(FEWEST_CELLS, cells // 2))


def differences(loops: Sequence[LoopWindows], origins: Sequence[float], whats: Iterable[str]) -> dict[str, Differences]:
    """Of each of `whats`, in cells that all of these loops have in common; at least two loops. `origins`: when each of
    them began, which may be before the first of these windows."""
    tests = min(MOST_CELLS, max(map(len, loops)))
    ends = [loop.began_seconds[-1] + loop.seconds[-1] for loop in loops]
    cell = max(end - origin for end, origin in zip(ends, origins, strict=True)) / tests
    lengths = [len(loop) for loop in loops]
    took = np.concatenate([loop.seconds for loop in loops])
    middles = np.concatenate([loop.began_seconds for loop in loops]) - np.repeat(origins, lengths) + took / 2
    cells = np.clip((middles / cell).astype("i8"), 0, tests - 1) + tests * np.repeat(np.arange(len(loops)), lengths)

    def in_cells(seconds: Array) -> Array:
        found: Array = np.bincount(cells, seconds, tests * len(loops)).reshape(len(loops), tests)
        return found

    in_loop = in_cells(took)
    found = {}
    for what in whats:
        spent = np.concatenate([_spent(loop, what) for loop in loops])
        shares = np.divide(in_cells(spent), in_loop, out=np.full(in_loop.shape, np.nan), where=in_loop > 0)
        found[what] = Differences(shares, float(cell))
    return found


def _spent(loop: LoopWindows, what: str) -> Array:
    return np.nan_to_num(loop.own_seconds) if what == OWN_WORK else loop.part(what)


def _worth_naming(more: Array, least: int) -> Array:
    """By process: whether it can be at least `LEAST_DIFFERENCE` above the others in a stretch of
    `least` cells or more. Each stretch consists of such with fewer than twice as many cells, one of which has a mean as
    high as its own: so these few lengths answer that for all processes at once, and most of a large job are done
    with."""
    known = np.isfinite(more)
    order = np.argsort(~known, axis=1, kind="stable")
    in_order = np.take_along_axis(np.where(known, more, 0.0), order, axis=1)
    sums = np.concatenate([np.zeros((len(more), 1)), np.cumsum(in_order, axis=1)], axis=1)
    counts = known.sum(axis=1)[:, None]
    found = np.zeros(len(more), dtype=bool)
    for length in range(least, min(2 * least, sums.shape[1])):
        is_known = np.arange(length, sums.shape[1]) <= counts
        means = (sums[:, length:] - sums[:, :-length]) / length
        found |= (is_known & (means >= LEAST_DIFFERENCE - _ROUNDING)).any(axis=1)
    return found


def _median(shares: Array) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # cells that no process has
        return np.asarray(np.nanmedian(shares, axis=0))
