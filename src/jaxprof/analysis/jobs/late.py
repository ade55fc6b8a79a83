"""Which process of a job is late by its own work, since when, and what makes it so.

A job is as fast as its slowest process: in every step the others wait for it in a collective, inside a compiled
function. So all processes spend the same time in the loop, and the late one is that whose own work (data, Python,
copies) takes more of its loop than of theirs. Where its loop also takes longer than theirs, nobody waits. What a slow
device costs does not show here, because its own work happens where the others wait (see `last_to_arrive`).

How long the main thread worked at all is known from its CPU clock: where all have that, it decides who is late, and the
samples of the stack only what with. Without it the samples decide both. Samples a few milliseconds apart are not
independent, so what a share varies by is taken from blocks of a second and more, which may be alike too, and is never
less than the samples in them allow.

Since when: processes are laid beside each other by the time since their loops began, which they do together, so that no
clocks are compared. Late is the time that maximises the sum of the differences over the root of its length (the scan
statistic for a change of the mean; see D. Siegmund, "Boundary crossing probabilities and statistical applications",
1988). Whether somebody is late in it, the test of whole loops decides.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

import numpy as np

from jaxprof.analysis.finding import Finding
from jaxprof.analysis.jobs.figures import MOST_NAMED, Array, LoopWindow, LoopWindows, ProcessFigures, share_beside
from jaxprof.analysis.programs.verdict import COMPILE, COPY, DATA, DISPATCH, HOST, PARTS
from jaxprof.stats.student import t_quantile
from jaxprof.units import and_more, percent_or_less, seconds

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
FALSE_ALARM_RATE: Final = 0.01
"""Probability of blaming a process in a healthy job."""
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
        """`tests`: how many such comparisons are made of one job, all of which share `FALSE_ALARM_RATE`."""
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
        chance = FALSE_ALARM_RATE / (self._tests * len(self.loops) * parts * len(tested))
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
        self._more: Array = shares - (shares[::-1] if len(shares) == 2 else _usual_shares(shares))
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
        of_each = (np.nan_to_num(loop.own_seconds) if what == OWN_WORK else loop.part(what) for loop in loops)
        spent = np.concatenate(list(of_each))
        shares = np.divide(in_cells(spent), in_loop, out=np.full(in_loop.shape, np.nan), where=in_loop > 0)
        found[what] = Differences(shares, float(cell))
    return found


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


def _usual_shares(shares: Array) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # cells that no process has
        return np.asarray(np.nanmedian(shares, axis=0))


OWN: Final = (*PARTS_OF_ITS_OWN, COMPILE)
"""The parts of a loop in which a process works itself while the others wait for it."""
PLAIN: Final = 0.4
"""Of the loop's time: by so much more of it a process works, that a short loop says it, too."""
_PLAIN_BY_CLOCK: Final = 0.25
"""The same by the CPU clock of the main threads, which must agree where all have one."""
_SAMPLES_APART: Final = 4
"""Samples that count as one: those that follow each other are alike."""
_PLAIN_ERRORS: Final = 4.0
"""Standard errors that the difference must be."""
_SHARED: Final = 0.25
"""Share of its loop (of compiling: of its wall time) that every process spends on one thing, from which it is said."""
_IN_STEP: Final = 1.15
"""Processes that wait for each other are in the loop for as long as each other, up to this factor."""
_CANNOT: Final = "whose own work makes the others wait cannot be told: "
_WORDS: Final = {
    DATA: "making or fetching its input",
    HOST: "Python on the host",
    DISPATCH: "calling JAX",
    COPY: "copies between host and device",
    OWN_WORK: "work on its main thread",
}
_ADVICE: Final = {
    DATA: "Look at its input: the shard, the disk or the network of that host. Its session has the lines.",
    HOST: "Its session has the lines: logging, checkpoints or metrics of one process, or a busy host.",
    DISPATCH: "Its session has the lines: operations outside jit, or a host with slower processors.",
    COPY: "Its session has the lines that copy.",
    OWN_WORK: "Samples do not say which of its lines that is: look at what else runs on its host.",
}


def comparable(processes: Sequence[ProcessFigures], notices: list[str]) -> list[ProcessFigures]:
    """Those that were seen in one loop for long enough; without two of them an empty list, and why in `notices`."""
    seen = [process for process in processes if len(windows_of(process)) >= LEAST_BLOCKS]
    if len(seen) < 2:
        notices.append(f"{_CANNOT}fewer than two processes were seen in a loop for 3 s or more")
        return []
    loops = Counter(process.loop.where for process in seen if process.loop is not None)
    where, most = loops.most_common(1)[0]
    if len(loops) > 1 and 2 * most <= len(seen):
        notices.append(f"{_CANNOT}their loops are at different lines: {_named(seen)}")
        return []
    elsewhere = [process for process in seen if process.loop is not None and process.loop.where != where]
    if elsewhere:
        notices.append(f"not compared, because their loop is at another line: {_named(elsewhere)}")
    return [process for process in seen if process not in elsewhere]


def _named(processes: Sequence[ProcessFigures]) -> str:
    """`0 (train.py:24), 1 (loader.py:18)`: the processes, each with the line that takes most of its own loop."""
    named = []
    for process in processes:
        lines = process.loop.lines if process.loop is not None else ()
        most = max(lines, key=lambda line: line.seconds, default=None)
        named.append(f"{process.index} ({most.where.short()})" if most is not None else str(process.index))
    return and_more(named, MOST_NAMED)


def stragglers(compared: Sequence[ProcessFigures]) -> Iterator[Finding]:
    """Those of the processes that are late by their own work; `compared` is the answer of `comparable`."""
    if len(compared) < 2:
        return
    windows = [windows_of(process) for process in compared]
    whole = _comparison(compared, windows, WHOLE, 2)
    deciding = (OWN_WORK,) if whole.knows(OWN_WORK) else PARTS_OF_ITS_OWN
    by_what = differences(windows, [_origin(process) for process in compared], deciding)
    for number in range(len(compared)):
        found = _late(compared, windows, number, whole, by_what)
        if found is not None:
            yield _finding(compared, number, *found)


def plainly_late(processes: Sequence[ProcessFigures], named: Collection[int | None]) -> Iterator[Finding]:
    """Processes whose loop is too short to be compared in blocks, and whose own work plainly takes most of it while the
    others, in the same loop, do none of it. `named`: who is late already."""
    for process in processes:
        others = [other for other in processes if other is not process and _of_one_loop(process, other)]
        if process.index in named or not others or len(windows_of(process)) > 2 * LEAST_BLOCKS:
            continue
        found = [(part, *_plain(process, others, part)) for part in PARTS_OF_ITS_OWN]
        part, share, usual = max(found, key=lambda each: each[1] - each[2])
        if share - usual < PLAIN or not _clock_agrees(process, others):
            continue
        assert process.loop is not None
        message = (
            f"process {process.index} on {process.host} is late: {_WORDS[part]} takes {percent_or_less(share)} of its "
            f"loop, {percent_or_less(usual)} on the others, {_waiting(process, others, part)}"
        )
        took = (share - usual) * process.loop.seconds
        yield Finding(
            "straggler",
            message,
            _ADVICE[part],
            (process.loop.line_of(part),),
            seconds=took,
            index=process.index,
            part=part,
            since_seconds=0.0,
        )


def _of_one_loop(process: ProcessFigures, other: ProcessFigures) -> bool:
    both = process.shares is not None and other.shares is not None
    return both and process.loop is not None and other.loop is not None and process.loop.where == other.loop.where


def _plain(process: ProcessFigures, others: Sequence[ProcessFigures], part: str) -> tuple[float, float]:
    """A part's share of its loop and of the others'; the same twice where so few samples could show it by chance."""
    share, usual = share_beside(process, others, part) or (0.0, 0.0)
    samples = min(each.loop.samples for each in (process, *others) if each.loop is not None) / _SAMPLES_APART
    error = math.sqrt((share * (1 - share) + usual * (1 - usual) + 1 / samples) / samples)
    return (share, usual) if share - usual > _PLAIN_ERRORS * error else (share, share)


def _clock_agrees(process: ProcessFigures, others: Sequence[ProcessFigures]) -> bool:
    """Whether its main thread worked, or waited for something else than its device, for more of its loop than those of
    the others: True where a clock is missing."""
    known = [_worked(each) for each in (process, *others)]
    mine, *theirs = [each for each in known if each is not None] if None not in known else [1.0, 0.0]
    return mine - median(theirs) >= _PLAIN_BY_CLOCK


def _worked(process: ProcessFigures) -> float | None:
    windows = LoopWindows.of(process.windows)
    whole, own = float(windows.seconds.sum()), float(windows.own_seconds.sum())
    return own / whole if whole > 0 and not math.isnan(own) else None


def shared(processes: Sequence[ProcessFigures]) -> list[tuple[str, float, float]]:
    """What every process of a job spends a good part of its time on: in words, the least and the largest share."""
    found = []
    compiling = [(each.compile_seconds or 0.0) / each.wall_seconds for each in processes if each.wall_seconds]
    if len(processes) == len(compiling) > 1 and min(compiling) >= _SHARED:
        found.append(("compiling, of the wall time", min(compiling), max(compiling)))
    shares = [each.shares for each in processes if each.shares is not None]
    if len(shares) == len(processes) > 1:
        for part in PARTS_OF_ITS_OWN:
            least, most = min(each[part] for each in shares), max(each[part] for each in shares)
            if least >= _SHARED:
                found.append((f"{_WORDS[part]}, of the loop", least, most))
    return found


def _late(
    compared: Sequence[ProcessFigures],
    windows: Sequence[LoopWindows],
    number: int,
    whole: LoopComparison,
    by_what: dict[str, Differences],
) -> tuple[Excess, LoopComparison, LateStretch] | None:
    """What a process is late by, and in what stretch of its loop; None if it is not late."""
    best: tuple[Excess, LoopComparison, LateStretch] | None = None
    for what, more in by_what.items():
        excess, comparison, when = whole.excess(number, what), whole, WHOLE
        most, said = more.stretch(number) or (WHOLE, WHOLE)
        tested = most if said.is_whole else said
        if not tested.is_whole:
            within = _comparison(compared, windows, tested, 2 * more.tests)
            of_stretch = within.excess_of(compared[number], what)
            if of_stretch is not None and of_stretch.is_certain:
                if said.is_whole:  # the seconds before or after are too few to say that it was not late in them
                    excess = replace(excess, is_certain=excess.difference >= LEAST_DIFFERENCE)
                else:
                    excess, comparison, when = of_stretch, within, said
        if excess.is_certain and (best is None or excess.difference > best[0].difference):
            best = excess, comparison, when
    return best


def _comparison(
    compared: Sequence[ProcessFigures],
    windows: Sequence[LoopWindows],
    stretch: LateStretch,
    tests: int,
) -> LoopComparison:
    """The loops in a stretch, without those that have too few windows in it."""
    loops: list[LoopBlocks] = []
    for process, own in zip(compared, windows, strict=True):
        blocks = in_blocks(process, stretch.windows(own, _origin(process)))
        if blocks is not None:
            loops.append(blocks)
    return LoopComparison(loops, tests)


def _origin(process: ProcessFigures) -> float:
    """When its loop was seen first."""
    return float(LoopWindows.of(process.windows).began_seconds[0])


def _finding(
    compared: Sequence[ProcessFigures], number: int, excess: Excess, comparison: LoopComparison, when: LateStretch
) -> Finding:
    process = compared[number]
    place = next(at for at, loop in enumerate(comparison.loops) if loop.process is process)
    by_part = [comparison.excess(place, part) for part in PARTS_OF_ITS_OWN]
    most = max(by_part, key=lambda each: each.difference)
    named = (
        most if excess.what == OWN_WORK and most.difference >= max(LEAST_DIFFERENCE, excess.difference / 3) else excess
    )
    windows = when.windows(windows_of(process), _origin(process))
    step = next((int(step) for step in windows.first_steps if step == step), None)  # NaN: not known
    others = [other for at, other in enumerate(compared) if at != number]
    of_loop = share_beside(process, others, named.what) if when.is_whole and named.what != OWN_WORK else None
    share, usual = of_loop or (named.share, named.usual)
    message = (
        f"process {process.index} on {process.host} is late{_since(when, step)}: {_WORDS[named.what]} takes "
        f"{percent_or_less(share)} of {'its loop' if when.is_whole else 'that time'}, "
        f"{percent_or_less(usual)} on the others, {_waiting(process, others, named.what)}"
    )
    where = process.loop.line_of(named.what) if process.loop is not None and named.what != OWN_WORK else None
    return Finding(
        "straggler",
        message,
        _ADVICE[named.what],
        (where,),
        seconds=excess.difference * float(windows.seconds.sum()),
        index=process.index,
        part=named.what,
        since_seconds=when.began_seconds,
        until_seconds=when.ended_seconds,
        since_step=step,
    )


def _since(when: LateStretch, step: int | None) -> str:
    if when.is_whole:
        return ""
    at = f" (step {step})" if step is not None and when.began_seconds else ""
    if when.ended_seconds is None:
        return f" since {seconds(when.began_seconds)} into its loop{at}"
    return f" from {seconds(when.began_seconds)} to {seconds(when.ended_seconds)} of its loop{at}"


def _waiting(process: ProcessFigures, others: Sequence[ProcessFigures], what: str) -> str:
    took = process.loop.seconds if process.loop is not None else 0.0
    theirs = median(other.loop.seconds for other in others if other.loop is not None)
    if took <= _IN_STEP * theirs:
        return "which wait for it" + (": the input of this host starves the job" if what == DATA else "")
    return f"whose loop takes {seconds(theirs)} where its takes {seconds(took)}"
