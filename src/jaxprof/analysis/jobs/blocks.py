"""The loops of the processes of a job in blocks of time, and whether one of them takes more of its time for something.

Stack samples a few milliseconds apart are not independent: a recorder that comes for the interpreter's lock finds a
program at the same few calls for as long as the two keep in step. So what a share varies by is taken from blocks of a
second and more, which may be alike too, and is never less than the samples in them allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from jaxprof.analysis.jobs.figures import LoopWindow, ProcessFigures
from jaxprof.analysis.programs.verdict import COPY, DATA, DISPATCH, HOST
from jaxprof.stats.student import t_quantile

PARTS_OF_ITS_OWN: Final = (DATA, HOST, DISPATCH, COPY)
"""What a process does while the others wait for it. Compilations have a finding of their own."""
OWN_WORK: Final = "own"
"""All of these together, by the CPU clock of the main thread."""
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
class LoopBlock:
    """Some successive sample windows of a loop."""

    began_seconds: float
    """Since the loop began."""
    seconds: float
    """Spent in the loop."""
    samples: float
    shares: Mapping[str, float]
    """Of the loop's time, by `PARTS_OF_ITS_OWN`, and `OWN_WORK` where it is known: this of the usual time of its passes
    where they are numbered."""


@dataclass(frozen=True, slots=True)
class LoopBlocks:
    """The loop of one process, or a stretch of it, in at least `LEAST_BLOCKS` blocks."""

    process: ProcessFigures
    blocks: tuple[LoopBlock, ...]

    def knows(self, what: str) -> bool:
        """Whether it has the share of that in all of its blocks."""
        return all(what in block.shares for block in self.blocks)

    def mean(self, what: str) -> float:
        """The share of the loop's time, the mean of the blocks."""
        return sum(block.shares[what] for block in self.blocks) / len(self.blocks)

    def variance(self, what: str) -> float:
        """Of the mean: from what the blocks differ by, and at least what the number of samples allows. Of a part that
        no sample saw, that is not 0: one more sample could have."""
        count, mean = len(self.blocks), self.mean(what)
        between = sum((block.shares[what] - mean) ** 2 for block in self.blocks) / (count - 1) / count
        if what == OWN_WORK:  # a clock's, not samples'
            return between
        samples = sum(block.samples for block in self.blocks)
        share = (mean * samples + 1) / (samples + 2)
        return max(between, share * (1 - share) / (samples + 2))


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


def windows_of(process: ProcessFigures) -> list[LoopWindow]:
    """Its sample windows without those that hold under half of the usual time of the loop: it had begun in them, or had
    ended, or did something else. Those that mostly compiled for the first time are left out too: nobody works there or
    waits, and as blocks without any own work they hid a process that was late in all of the others."""
    if not process.windows:
        return []
    least = median(window.seconds for window in process.windows) / 2
    return [window for window in process.windows if window.seconds >= least and not _compiled_first(window)]


def _compiled_first(window: LoopWindow) -> bool:
    """Whether first compilations, which no part holds, took most of a window."""
    return sum(window.parts.values()) < window.seconds / 2


def in_blocks(process: ProcessFigures, windows: Sequence[LoopWindow]) -> LoopBlocks | None:
    """These windows in at most `MOST_BLOCKS` blocks of as many windows, up to one; None if they are too few."""
    if len(windows) < LEAST_BLOCKS:
        return None
    count = min(len(windows), MOST_BLOCKS)
    edges = [len(windows) * number // count for number in range(count + 1)]
    origin, usual = process.windows[0].began_seconds, _usual_seconds(process)
    return LoopBlocks(process, tuple(_block(windows[low:high], origin, usual) for low, high in pairwise(edges)))


def _block(windows: Sequence[LoopWindow], origin: float, usual: Mapping[float, float]) -> LoopBlock:
    took = sum(window.seconds for window in windows)
    shares = {part: sum(window.parts[part] for window in windows) / took for part in PARTS_OF_ITS_OWN}
    own = [window.own_seconds for window in windows if window.own_seconds is not None]
    if len(own) == len(windows):
        shares[OWN_WORK] = sum(own) / sum(usual.get(window.began_seconds, window.seconds) for window in windows)
    samples = sum(window.samples for window in windows)
    return LoopBlock(windows[0].began_seconds - origin, took, samples, shares)


def _usual_seconds(process: ProcessFigures) -> dict[float, float]:
    """By when a window began: how long its passes usually take, where they are numbered and enough of them.

    All processes wait for each other, so a pass takes longer when any of them, or a device, has a slow moment; its own
    work of a pass does not. Over the usual time of a pass it varies by what it does itself alone.
    """
    passes = {
        window.began_seconds: (window.seconds, after.first_step - window.first_step)
        for window, after in pairwise(process.windows)
        if window.first_step is not None and after.first_step is not None
    }
    counted = {began: each for began, each in passes.items() if each[1] >= _PASSES}
    if len(counted) < LEAST_BLOCKS:
        return {}
    pace = median(took / count for took, count in counted.values())
    return {began: pace * count for began, (_, count) in counted.items()}


class LoopComparison:
    """The loops of several processes beside each other."""

    def __init__(self, loops: Sequence[LoopBlocks], tests: int = 1) -> None:
        """`tests`: how many such comparisons are made of one job, all of which share the chance of `FALSE`."""
        self.loops = tuple(loops)
        self._tests = tests
        self._means: dict[str, list[float]] = {}
        self._variances: dict[str, list[float]] = {}
        self._inflations: dict[str, float] = {}

    def excess(self, number: int, what: str) -> Excess:
        """How much more of its time the process at that place takes than the others."""
        means = self._of(self._means, what, LoopBlocks.mean)
        theirs = means[:number] + means[number + 1 :]
        usual = median(theirs)
        difference = means[number] - usual
        if difference < LEAST_DIFFERENCE:
            return Excess(what, means[number], usual, False)
        variances = self._of(self._variances, what, LoopBlocks.variance)
        of_usual = (sum(variances) - variances[number]) / len(theirs) ** 2
        error = math.sqrt(self._inflation(what) * (variances[number] + of_usual) + _spread(theirs, usual))
        chance = FALSE / (self._tests * len(self.loops) * (1 if what == OWN_WORK else len(PARTS_OF_ITS_OWN)))
        certain = t_quantile(1 - chance, len(self.loops[number].blocks) - 1) * error
        return Excess(what, means[number], usual, difference > certain or self._is_always_above(number, what, chance))

    def _is_always_above(self, number: int, what: str, chance: float) -> bool:
        """Whether each block of that process is above each block of all others, by what counts, and is not so by
        chance: a process that becomes later and later is late, however much its blocks differ."""
        if what != OWN_WORK:  # the samples of some blocks are few
            return False
        mine = [block.shares[what] for block in self.loops[number].blocks]
        theirs = [block.shares[what] for at, loop in enumerate(self.loops) if at != number for block in loop.blocks]
        if len(mine) < _BLOCKS_ABOVE or min(mine) - max(theirs) < LEAST_DIFFERENCE:
            return False
        return 1 / math.comb(len(mine) + len(theirs), len(mine)) <= chance

    def excess_of(self, process: ProcessFigures, what: str) -> Excess | None:
        """The same of that process; None if it is not among them, or alone."""
        at = next((number for number, loop in enumerate(self.loops) if loop.process is process), None)
        return None if at is None or len(self.loops) < 2 else self.excess(at, what)

    def _inflation(self, what: str) -> float:
        """By how much the variance of a mean is larger than that of independent blocks: (1 + r) / (1 - r) for a first
        autocorrelation of r, here that of all processes together, without the bias that a short series gives it
        (F. H. C. Marriott and J. A. Pope, "Bias in the estimation of autocorrelations", 1954). Never below 1."""
        if what not in self._inflations:
            products = squares = 0.0
            for loop in self.loops:
                mean = loop.mean(what)
                rest = [block.shares[what] - mean for block in loop.blocks]
                products += sum(one * next_one for one, next_one in pairwise(rest))
                squares += sum(each * each for each in rest)
            blocks = sum(len(loop.blocks) for loop in self.loops)
            r = products / squares if squares > _ALIKE * blocks else 0.0
            r += (1 + 3 * r) * len(self.loops) / blocks
            r = min(max(r, 0.0), _MOST_ALIKE)
            self._inflations[what] = (1 + r) / (1 - r)
        return self._inflations[what]

    def knows(self, what: str) -> bool:
        """Whether all of the loops have that share."""
        return all(loop.knows(what) for loop in self.loops)

    def _of(self, kept: dict[str, list[float]], what: str, figure: Callable[[LoopBlocks, str], float]) -> list[float]:
        if what not in kept:
            kept[what] = [figure(loop, what) for loop in self.loops]
        return kept[what]


def _spread(values: Sequence[float], middle: float) -> float:
    """The variance between processes, from their median absolute deviation, so that a second late one does not hide
    the first."""
    return (1.4826 * median(abs(value - middle) for value in values)) ** 2
