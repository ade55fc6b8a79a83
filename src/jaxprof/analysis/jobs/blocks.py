"""The loops of the processes of a job in blocks of time, and whether one of them takes more of its time for something.

Stack samples a few milliseconds apart are not independent: a recorder that comes for the interpreter's lock finds a
program at the same few calls for as long as the two keep in step. So what a share varies by is taken from blocks of a
second and more, which may be alike too, and is never less than the samples in them allow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from jaxprof.analysis.jobs.figures import ProcessFigures
from jaxprof.analysis.jobs.loop_windows import Array, LoopWindow, LoopWindows
from jaxprof.analysis.programs.verdict import COPY, DATA, DISPATCH, HOST, PARTS
from jaxprof.stats.student import t_quantile

PARTS_OF_ITS_OWN: Final = (DATA, HOST, DISPATCH, COPY)
"""What a process does while the others wait for it. Compilations have a finding of their own."""
OWN_WORK: Final = "own"
"""All of these together, by the CPU clock of the main thread."""
_OWN_BY_PASS: Final = "own by pass"
"""The same of the usual time of the passes."""
_BY_CLOCK: Final = (OWN_WORK, _OWN_BY_PASS)
LEAST_BLOCKS: Final = 3
"""With fewer, Student's t is so wide that nobody could be late. With three it is enough: in simulated jobs in which
nobody is late, somebody is named less often than with five."""
MOST_BLOCKS: Final = 20
FALSE: Final = 0.01
"""The chance that somebody is named in a job in which nobody is late."""
LEAST_DIFFERENCE: Final = 0.05
"""Of the loop's time."""
_PASSES: Final = 10
"""In a window, so that it does not matter where in a pass it began."""
_BLOCKS_ABOVE: Final = 5
"""With fewer, blocks that are like those before can all be above the others' in a job in which nobody is late."""
_ALIKE: Final = 1e-9
"""Variance of shares that are equal but for rounding."""
_MOST_ALIKE: Final = 0.9
"""Of successive blocks: no more autocorrelation is reckoned with."""


@dataclass(frozen=True, slots=True)
class LoopBlocks:
    """The loop of one process, or a stretch of it, in at least `LEAST_BLOCKS` blocks of successive sample windows."""

    process: ProcessFigures
    seconds: Array
    """Spent in the loop, in each block."""
    samples: Array
    shares: Mapping[str, Array]
    """Of the loop's time, by `PARTS_OF_ITS_OWN`, and `OWN_WORK` where it is known of all blocks."""

    def knows(self, what: str) -> bool:
        """Whether it has the share of that in all of its blocks."""
        return what in self.shares

    def mean(self, what: str) -> float:
        """A share of the loop's time, the mean of the blocks."""
        return float(_Means([self], what).means[0])

    def variance(self, what: str) -> float:
        """Of the mean: from what the blocks differ by, and at least what the number of samples allows. Of a part that
        no sample saw, that is not 0: one more sample could have."""
        return float(_Means([self], what).variances[0])


class _Means:
    """What the blocks of several processes say of one share, in arrays with an entry for each process."""

    def __init__(self, loops: Sequence[LoopBlocks], what: str) -> None:
        counts = np.array([len(loop.seconds) for loop in loops])
        is_block = np.arange(counts.max()) < counts[:, None]
        shares, samples = np.full(is_block.shape, np.nan), np.zeros(is_block.shape)
        shares[is_block] = np.concatenate([loop.shares[what] for loop in loops])
        samples[is_block] = np.concatenate([loop.samples for loop in loops])
        self.means: Array = np.nansum(shares, axis=1) / counts
        self._rest = shares - self.means[:, None]
        between = np.nansum(self._rest**2, axis=1) / (counts - 1) / counts
        if what not in _BY_CLOCK:
            seen = samples.sum(axis=1)
            share = (self.means * seen + 1) / (seen + 2)
            between = np.maximum(between, share * (1 - share) / (seen + 2))
        self.variances: Array = between
        self.usual: Array = _median_of_others(self.means) if len(loops) > 1 else self.means
        """By process, the middle one of the others."""

    @property
    def inflation(self) -> float:
        """Of the variances: by how much they are larger because successive blocks are alike."""
        return inflation_of(self._rest)


def inflation_of(rest: Array) -> float:
    """By how much the variance of a mean is larger than that of independent blocks: (1 + r) / (1 - r) for a first
    autocorrelation of r, here that of all rows together, without the bias that a short series gives it (F. H. C.
    Marriott and J. A. Pope, "Bias in the estimation of autocorrelations", 1954). Never below 1. `rest`: shares less
    the mean of their row; NaN behind the last one of a shorter row."""
    blocks = int((~np.isnan(rest)).sum())
    products = float(np.nansum(rest[:, :-1] * rest[:, 1:]))
    squares = float(np.nansum(rest**2))
    r = products / squares if squares > _ALIKE * blocks else 0.0
    r += (1 + 3 * r) * len(rest) / blocks
    r = min(max(r, 0.0), _MOST_ALIKE)
    return (1 + r) / (1 - r)


def _median_of_others(values: Array) -> Array:
    """By entry: the median of all other entries, of which there is at least one."""
    order = np.argsort(values)
    place = np.empty(len(values), dtype="i8")
    place[order] = np.arange(len(values))
    in_order, count = values[order], len(values) - 1

    def other(number: int) -> Array:
        value: Array = np.where(place <= number, in_order[number + 1], in_order[number])
        return value

    median: Array = (other((count - 1) // 2) + other(count // 2)) / 2
    return median


@dataclass(frozen=True, slots=True)
class Excess:
    """By how much a share of a process is above those of the others."""

    what: str
    share: float
    usual: float
    """The middle one on the others."""
    is_certain: bool
    """Whether it is at least `LEAST_DIFFERENCE`, and more than chance and what the others differ by explain."""

    @property
    def difference(self) -> float:
        """Of the loop's time."""
        return self.share - self.usual


def windows_of(process: ProcessFigures) -> LoopWindows:
    """Its sample windows without those that hold under half of the usual time of the loop: it had begun in them, or had
    ended, or did something else. Those that mostly compiled for the first time are left out too: nobody works there or
    waits, and as blocks without any own work they hid a process that was late in all of the others."""
    windows = LoopWindows.of(process.windows)
    if not len(windows):
        return windows
    is_usual = windows.seconds >= _median(windows.seconds) / 2
    compiled_first = windows.parts.sum(axis=1) < windows.seconds / 2  # no part holds them
    return windows.chosen(is_usual & ~compiled_first)


def _median(values: Array) -> float:
    """As `numpy.median`, which takes ten times as long for a few values."""
    in_order, count = np.sort(values), len(values)
    return float(in_order[(count - 1) // 2] + in_order[count // 2]) / 2


def in_blocks(process: ProcessFigures, windows: Iterable[LoopWindow]) -> LoopBlocks | None:
    """These windows in at most `MOST_BLOCKS` blocks of as many windows, up to one; None if they are too few."""
    rows = LoopWindows.of(windows)
    if len(rows) < LEAST_BLOCKS:
        return None
    count = min(len(rows), MOST_BLOCKS)
    firsts = len(rows) * np.arange(count) // count
    took = np.add.reduceat(rows.seconds, firsts)
    parts = np.add.reduceat(rows.parts, firsts, axis=0) / took[:, None]
    shares = {part: parts[:, PARTS.index(part)] for part in PARTS_OF_ITS_OWN}
    own = np.add.reduceat(rows.own_seconds, firsts)
    if not np.isnan(own).any():
        shares[OWN_WORK] = own / took
        usual = _usual_seconds(process, rows)
        if usual is not None:
            shares[_OWN_BY_PASS] = own / np.add.reduceat(usual, firsts)
    return LoopBlocks(process, took, np.add.reduceat(rows.samples, firsts), shares)


def _usual_seconds(process: ProcessFigures, windows: LoopWindows) -> Array | None:
    """Of some of its windows: how long their passes usually take; None unless they are numbered and enough of them."""
    whole = LoopWindows.of(process.windows)
    passes = np.append(np.diff(whole.first_steps), np.nan)
    counted = passes >= _PASSES  # False where it is not known
    if counted.sum() < LEAST_BLOCKS:
        return None
    usual = np.where(counted, _median(whole.seconds[counted] / passes[counted]) * passes, whole.seconds)
    found: Array = usual[np.searchsorted(whole.began_seconds, windows.began_seconds)]
    return found


class LoopComparison:
    """The loops of several processes beside each other."""

    def __init__(self, loops: Sequence[LoopBlocks], tests: int = 1) -> None:
        """`tests`: how many such comparisons are made of one job, all of which share the chance of `FALSE`."""
        self.loops = tuple(loops)
        self._tests = tests
        self._means: dict[str, _Means] = {}

    def excess(self, number: int, what: str) -> Excess:
        """How much more of its time the process at that place takes than the others.

        All processes wait for each other, so a pass takes longer when a device has a slow moment, and its own work does
        not; where processes are short of processors, the one takes longer as the other does. So own work is tested as a
        share of the loop's time and of the usual time of its passes, where they are numbered.
        """
        found = self._of(what)
        mean, usual = float(found.means[number]), float(found.usual[number])
        if mean - usual < LEAST_DIFFERENCE:
            return Excess(what, mean, usual, False)
        tested = [each for each in _BY_CLOCK if self.knows(each)] if what == OWN_WORK else [what]
        parts = 1 if what == OWN_WORK else len(PARTS_OF_ITS_OWN)
        chance = FALSE / (self._tests * len(self.loops) * parts * len(tested))
        return Excess(what, mean, usual, any(self._is_certain(number, each, chance) for each in tested))

    def _is_certain(self, number: int, what: str, chance: float) -> bool:
        found = self._of(what)
        usual, own = float(found.usual[number]), float(found.variances[number])
        theirs = np.delete(found.means, number)
        of_usual = (float(found.variances.sum()) - own) / len(theirs) ** 2
        error = math.sqrt(found.inflation * (own + of_usual) + spread_of(theirs, usual))
        by_chance = t_quantile(1 - chance, len(self.loops[number].seconds) - 1) * error
        return float(found.means[number]) - usual > by_chance or self._is_always_above(number, what, chance)

    def _is_always_above(self, number: int, what: str, chance: float) -> bool:
        """Whether each block of that process is above each block of all others, by what counts, and is not so by
        chance: a process that becomes later and later is late, however much its blocks differ."""
        if what not in _BY_CLOCK:  # the samples of some blocks are few
            return False
        mine = self.loops[number].shares[what]
        theirs = np.concatenate([loop.shares[what] for at, loop in enumerate(self.loops) if at != number])
        if len(mine) < _BLOCKS_ABOVE or mine.min() - theirs.max() < LEAST_DIFFERENCE:
            return False
        return 1 / math.comb(len(mine) + len(theirs), len(mine)) <= chance

    def excess_of(self, process: ProcessFigures, what: str) -> Excess | None:
        """The same of that process; None if it is not among them, or alone."""
        at = next((number for number, loop in enumerate(self.loops) if loop.process is process), None)
        return None if at is None or len(self.loops) < 2 else self.excess(at, what)

    def knows(self, what: str) -> bool:
        """Whether all of the loops have that share."""
        return all(loop.knows(what) for loop in self.loops)

    def _of(self, what: str) -> _Means:
        if what not in self._means:
            self._means[what] = _Means(self.loops, what)
        return self._means[what]


def spread_of(values: Array, middle: float) -> float:
    """The variance between processes, from their median absolute deviation, so that a second late one does not hide
    the first."""
    return (1.4826 * _median(np.abs(values - middle))) ** 2
