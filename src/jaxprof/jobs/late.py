"""Find the process of a job that is late by its own work, since when it is late, and what makes it late.

A job is as fast as its slowest process: in every step the other processes wait for it in a collective, inside a
compiled function. All processes therefore spend the same time in the loop, and the late process is the one whose own
work (data, Python, copies) takes a larger share of its loop. If its loop also takes longer than the other loops, nobody
waits. The cost of a slow device does not show here, because the device works while the other processes wait (see
`last_to_arrive`).

The CPU clock of the main thread says how long the thread worked: if every process has this clock, it decides who is
late, and the stack samples only say with what. Otherwise the samples decide both. Samples a few milliseconds apart are
not independent, so the variance of a share is taken from blocks of a second and more. Blocks may be alike by chance, so
the variance is never less than their samples allow.

To find the start, processes are aligned by the time since their loops began, which they do together, so no clocks are
compared. The late period maximises the sum of the differences over the root of its length (the scan statistic for a
change of the mean; see D. Siegmund, "Boundary crossing probabilities and statistical applications", 1988). The test of
whole loops then decides whether the process is late in it.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from jaxprof.analysis.programs import COPY, DATA, DISPATCH, HOST, PARTS
from jaxprof.base.grouping import grouped
from jaxprof.base.units import and_more, percent_or_less, seconds
from jaxprof.base.values import frozen
from jaxprof.events.finding import Finding
from jaxprof.jobs.figures import MOST_NAMED, PARTS_OF_ITS_OWN, Array, LoopWindows, ProcessFigures, share_beside
from jaxprof.stats.blocks import t_quantile

OWN_WORK = "own"
"""All of `PARTS_OF_ITS_OWN` together, by the CPU clock of the main thread."""
_OWN_BY_ITERATION = "own by iteration"
"""Own work as a share of the usual time of the iterations."""
_BY_CLOCK = (OWN_WORK, _OWN_BY_ITERATION)
LEAST_BLOCKS = 3
"""Smallest number of blocks that is tested. With fewer, Student's t is so wide that no process could be late. Three are
enough: in simulated healthy jobs, three blocks blame a process less often than five."""
MOST_BLOCKS = 20
FALSE_ALARM_RATE = 0.01
"""Probability of blaming a process in a healthy job."""
LEAST_DIFFERENCE = 0.05
"""Smallest difference reported, as a share of the loop's time."""
_LEAST_ITERATIONS = 10
"""Smallest number of iterations in a window, so that it does not matter where in an iteration the window began."""
_BLOCKS_ABOVE = 5
"""Smallest number of blocks compared one by one. With fewer, all blocks of a process can be above the others' in a
healthy job if they resemble each other."""
_ALIKE = 1e-9
"""Largest variance of shares that are equal except for rounding."""
_MOST_ALIKE = 0.9
"""Upper bound of the autocorrelation of successive blocks."""


@frozen
class LoopBlocks:
    """The loop of one process, or a period of it, in at least `LEAST_BLOCKS` blocks of successive sample windows."""

    process: ProcessFigures
    seconds: Array
    samples: Array
    shares: Mapping[str, Array]
    """Share of the loop's time by block, for `PARTS_OF_ITS_OWN`, and for `OWN_WORK` if known in all blocks."""


class _Means:
    """Mean and variance of one share over the blocks of each process, as arrays with one entry per process."""

    def __init__(self, loops: Sequence[LoopBlocks], what: str) -> None:
        counts = np.array([len(loop.seconds) for loop in loops])
        is_block = np.arange(counts.max()) < counts[:, None]
        shares, samples = np.full(is_block.shape, np.nan), np.zeros(is_block.shape)
        shares[is_block] = np.concatenate([loop.shares[what] for loop in loops])
        samples[is_block] = np.concatenate([loop.samples for loop in loops])
        self.means: Array = np.nansum(shares, axis=1) / counts
        deviations = shares - self.means[:, None]
        between = np.nansum(deviations**2, axis=1) / (counts - 1) / counts
        if what not in _BY_CLOCK:
            seen = samples.sum(axis=1)
            share = (self.means * seen + 1) / (seen + 2)
            between = np.maximum(between, share * (1 - share) / (seen + 2))
        self.variances: Array = between
        self.inflation = inflation_of(deviations)
        """Factor by which the variances grow because successive blocks are alike."""


def inflation_of(deviations: Array) -> float:
    """Return the variance of a mean relative to that of independent blocks, never below 1.

    The factor is (1 + r) / (1 - r) for a first autocorrelation of r over all rows together, without the bias of short
    series (F. H. C. Marriott and J. A. Pope, "Bias in the estimation of autocorrelations", 1954). `deviations` holds
    shares minus the mean of their row, and NaN after the last share of a shorter row.
    """
    blocks = int((~np.isnan(deviations)).sum())
    products = float(np.nansum(deviations[:, :-1] * deviations[:, 1:]))
    squares = float(np.nansum(deviations**2))
    r = products / squares if squares > _ALIKE * blocks else 0.0
    r += (1 + 3 * r) * len(deviations) / blocks
    r = min(max(r, 0.0), _MOST_ALIKE)
    return (1 + r) / (1 - r)


@frozen
class Excess:
    """A process's share of one kind of work, compared with the other processes."""

    what: str
    share: float
    usual: float
    """Median share of the other processes."""
    is_certain: bool
    """Whether the difference is at least `LEAST_DIFFERENCE`, and more than chance and the others' spread explain."""

    @property
    def difference(self) -> float:
        """Difference as a share of the loop's time."""
        return self.share - self.usual


def windows_of(process: ProcessFigures) -> LoopWindows:
    """Return the sample windows that the process spent in its loop.

    Windows with less than half of the usual time in the loop are left out: the loop began or ended in them, or the
    process did something else. So are windows that mostly compiled for the first time: no work or wait is there, and
    as blocks without own work they hid a process that was late in all other blocks.
    """
    windows = process.windows
    if not len(windows):
        return windows
    is_usual = windows.seconds >= _median(windows.seconds) / 2
    compiled_first = windows.parts.sum(axis=1) < windows.seconds / 2  # no part includes first compilations
    return windows.select(is_usual & ~compiled_first)


def _median(values: Array) -> float:
    """Return the median, in a tenth of the time that `numpy.median` takes for a few values."""
    in_order, count = np.sort(values), len(values)
    return float(in_order[(count - 1) // 2] + in_order[count // 2]) / 2


def in_blocks(process: ProcessFigures, rows: LoopWindows) -> LoopBlocks | None:
    """Group the windows into at most `MOST_BLOCKS` blocks of about equal number; None if too few."""
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
        # How long the iterations of a window usually take: the median time of an iteration, times their number where
        # the program numbers them, and otherwise the time that they took.
        whole = process.windows
        iterations = np.append(np.diff(whole.first_steps), np.nan)
        counted = iterations >= _LEAST_ITERATIONS  # False if the number is unknown
        if counted.sum() >= LEAST_BLOCKS:
            each = _median(whole.seconds[counted] / iterations[counted])
            usual = np.where(counted, each * iterations, whole.seconds)
            of_rows = usual[np.searchsorted(whole.began_seconds, rows.began_seconds)]
            shares[_OWN_BY_ITERATION] = own / np.add.reduceat(of_rows, firsts)
    return LoopBlocks(process, took, np.add.reduceat(rows.samples, firsts), shares)


class LoopComparison:
    def __init__(self, loops: Sequence[LoopBlocks], tests: int = 1) -> None:
        """Compare `loops`; `tests` is the number of such comparisons in one job, which share `FALSE_ALARM_RATE`."""
        self.loops = tuple(loops)
        self._tests = tests
        self._means: dict[str, _Means] = {}

    def excess(self, number: int, what: str) -> Excess:
        """Compare the share of process `number` with the shares of the others.

        All processes wait for each other, so an iteration takes longer when a device has a slow moment, while own work
        does not. Where processes are short of processors, both grow together. Own work is therefore tested as a share
        of the loop's time and, if iterations are numbered, as a share of their usual time.
        """
        statistics = self._means_of(what)
        mean, usual = float(statistics.means[number]), _median(np.delete(statistics.means, number))
        if mean - usual < LEAST_DIFFERENCE:
            return Excess(what, mean, usual, False)
        tested = [quantity for quantity in _BY_CLOCK if self.knows(quantity)] if what == OWN_WORK else [what]
        parts = 1 if what == OWN_WORK else len(PARTS_OF_ITS_OWN)
        chance = FALSE_ALARM_RATE / (self._tests * len(self.loops) * parts * len(tested))
        return Excess(what, mean, usual, any(self._is_certain(number, quantity, chance) for quantity in tested))

    def _is_certain(self, number: int, what: str, chance: float) -> bool:
        statistics = self._means_of(what)
        theirs, variance = np.delete(statistics.means, number), float(statistics.variances[number])
        usual = _median(theirs)
        usual_variance = (float(statistics.variances.sum()) - variance) / len(theirs) ** 2
        error = math.sqrt(statistics.inflation * (variance + usual_variance) + spread_of(theirs, usual))
        limit = t_quantile(1 - chance, len(self.loops[number].seconds) - 1) * error
        if float(statistics.means[number]) - usual > limit:
            return True
        # A process that becomes later and later has blocks that differ much. It is late if each of them is above each
        # block of all others, and not by chance. Blocks of samples alone have too few of them for that.
        mine = self.loops[number].shares[what]
        others = np.concatenate([loop.shares[what] for at, loop in enumerate(self.loops) if at != number])
        if what not in _BY_CLOCK or len(mine) < _BLOCKS_ABOVE or mine.min() - others.max() < LEAST_DIFFERENCE:
            return False
        return 1 / math.comb(len(mine) + len(others), len(mine)) <= chance

    def knows(self, what: str) -> bool:
        return all(what in loop.shares for loop in self.loops)

    def _means_of(self, what: str) -> _Means:
        if what not in self._means:
            self._means[what] = _Means(self.loops, what)
        return self._means[what]


def spread_of(values: Array, middle: float) -> float:
    """Return the variance between processes, from their MAD, so that a second late one does not hide the first."""
    return (1.4826 * _median(np.abs(values - middle))) ** 2


LEAST_CELLS = 10
"""Smallest number of cells in a late period; any process may be late for a shorter time now and then."""
FEWEST_CELLS = 5
"""Smallest number of cells in a late period of a loop below twice `LEAST_CELLS`; it must also be half the loop."""
MOST_CELLS = 200
"""Largest number of cells that a loop's time is divided into; a late period begins and ends on a cell border."""
_WORTH_A_TEST = 3.0
"""Number of standard errors below which the test of a period would not be certain."""
_ROUNDING = 1e-9


@frozen
class LatePeriod:
    """A period of a loop, in seconds since the loop began."""

    began_seconds: float
    """Start of the period; 0 if it begins with the loop."""
    ended_seconds: float | None
    """End of the period; None if it lasts until the loop ends."""

    @property
    def is_whole(self) -> bool:
        return self.began_seconds == 0 and self.ended_seconds is None


WHOLE = LatePeriod(0.0, None)


class _Loop:
    """The loop of one process, with the windows that are compared."""

    def __init__(self, process: ProcessFigures) -> None:
        self.process = process
        self.windows = windows_of(process)
        self.origin = float(process.windows.began_seconds[0])
        """Monotonic time at which the loop was first seen, which may be before the first window that is compared."""

    def within(self, period: LatePeriod) -> LoopWindows:
        """Return the windows whose middles lie in a period."""
        if period.is_whole:
            return self.windows
        end = np.inf if period.ended_seconds is None else period.ended_seconds
        middles = self.windows.began_seconds - self.origin + self.windows.seconds / 2
        return self.windows.select((period.began_seconds <= middles) & (middles < end))


class Differences:
    """Difference between each process's share and that of the others, by process and cell of time."""

    def __init__(self, shares: Array, cell_seconds: float) -> None:
        """Take `shares` by process (at least two) and cell; NaN where a process has none."""
        self._cell = cell_seconds
        self.tests = shares.shape[1]
        self._least = min(LEAST_CELLS, max(FEWEST_CELLS, self.tests // 2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # cells in which no process has a share
            usual = shares[::-1] if len(shares) == 2 else np.nanmedian(shares, axis=0)
        self._more: Array = shares - usual

    def late_period(self, number: int) -> tuple[LatePeriod, LatePeriod] | None:
        """Return the period in which a process is most above the others, and the period that can be reported.

        The second period also covers the time before and after the first that is as late, or too short to be shown
        otherwise. None if no difference of enough cells is worth naming.
        """
        known = np.flatnonzero(np.isfinite(self._more[number]))
        more = self._more[number][known]
        if len(more) < self._least:
            return None
        sums = np.concatenate([[0.0], np.cumsum(more)])
        # A period divides into periods of fewer than twice `least` cells, one of which has a mean at least as high
        short = range(self._least, min(2 * self._least, len(sums)))
        if all((sums[length:] - sums[:-length]).max() < LEAST_DIFFERENCE * length - _ROUNDING for length in short):
            return None
        # The period that equal noise in each cell explains least: the largest sum over the root of its length.
        lengths = np.arange(len(sums))[None, :] - np.arange(len(sums))[:, None]
        scores = np.where(
            lengths >= self._least, (sums[None, :] - sums[:, None]) / np.sqrt(np.maximum(lengths, 1)), -np.inf
        )
        low, high = (int(each) for each in np.unravel_index(int(np.argmax(scores)), scores.shape))
        inside = (sums[high] - sums[low]) / (high - low)
        noise = float(np.std(more[low:high])) / (high - low) ** 0.5
        if inside < LEAST_DIFFERENCE or inside < _WORTH_A_TEST * noise:
            return None
        most = self._period(known, low, high)
        # A flank that is half as late, or too short to judge, is no evidence that the process was on time there.
        if low < self._least or sums[low] / low > inside / 2:
            low = 0
        rest = len(more) - high
        if rest < self._least or (sums[-1] - sums[high]) / rest > inside / 2:
            high = len(more)
        return most, self._period(known, low, high)

    def _period(self, known: Array, low: int, high: int) -> LatePeriod:
        began = float(known[low] * self._cell) if low else 0.0
        return LatePeriod(began, float((known[high - 1] + 1) * self._cell) if high < len(known) else None)


def differences(loops: Sequence[LoopWindows], origins: Sequence[float], whats: Iterable[str]) -> dict[str, Differences]:
    """Return the differences for each of `whats`, in time cells that all loops share. Takes at least two loops.
    `origins` are the times at which the loops began, which may be before their first windows."""
    tests = min(MOST_CELLS, max(map(len, loops)))
    ends = [loop.began_seconds[-1] + loop.seconds[-1] for loop in loops]
    cell = max(end - origin for end, origin in zip(ends, origins, strict=True)) / tests
    lengths = [len(loop) for loop in loops]
    took = np.concatenate([loop.seconds for loop in loops])
    middles = np.concatenate([loop.began_seconds for loop in loops]) - np.repeat(origins, lengths) + took / 2
    cells = np.clip((middles / cell).astype("i8"), 0, tests - 1) + tests * np.repeat(np.arange(len(loops)), lengths)

    def in_cells(seconds: Array) -> Array:
        sums: Array = np.bincount(cells, seconds, tests * len(loops)).reshape(len(loops), tests)
        return sums

    in_loop = in_cells(took)
    by_what = {}
    for what in whats:
        of_each = (np.nan_to_num(loop.own_seconds) if what == OWN_WORK else loop.part(what) for loop in loops)
        spent = np.concatenate(list(of_each))
        shares = np.divide(in_cells(spent), in_loop, out=np.full(in_loop.shape, np.nan), where=in_loop > 0)
        by_what[what] = Differences(shares, float(cell))
    return by_what


CLEAR_EXCESS = 0.4
"""Excess share of the loop's time that is reported even for a short loop."""
_CLEAR_EXCESS_BY_CLOCK = 0.25
"""Excess share by the main threads' CPU clocks, which must agree if every process has one."""
_SAMPLES_APART = 4
"""Number of successive samples that count as one, because neighbours resemble each other."""
_CLEAR_EXCESS_ERRORS = 4.0
"""Smallest difference in standard errors."""
_SHARED = 0.25
"""Share of its loop (for compiling: of its wall time) that every process must spend on one thing to report it."""
IN_STEP = 1.15
"""Largest ratio between the loop times of processes that wait for each other."""
_UNDECIDED = "cannot determine which process the others wait for: "
_TEXTS = {
    DATA: "making or fetching its input",
    HOST: "the host (Python, or a wait)",
    DISPATCH: "calling JAX",
    COPY: "copies between host and device",
    OWN_WORK: "work on its main thread",
}
_FIXES = {
    DATA: "Look at its input: the shard, the disk or the network of that host. Its session has the lines.",
    HOST: "Its session has the lines: logging, checkpoints or metrics of one process, a sleep, or a busy host.",
    DISPATCH: "Its session has the lines: operations outside jit, or a host with slower processors.",
    COPY: "Its session has the lines that copy.",
    OWN_WORK: "Samples do not say which of its lines that is: look at what else runs on its host.",
}


def comparable(processes: Sequence[ProcessFigures], notices: list[str]) -> list[ProcessFigures]:
    """Return the processes seen in one loop for long enough; without two of them none, with a notice why."""
    seen = [process for process in processes if len(windows_of(process)) >= LEAST_BLOCKS]
    if len(seen) < 2:
        notices.append(f"{_UNDECIDED}fewer than two processes were seen in a loop for 3 s or more")
        return []
    loops = Counter(process.loop.where for process in seen if process.loop is not None)
    where, most = loops.most_common(1)[0]
    if len(loops) > 1 and 2 * most <= len(seen):
        notices.append(f"{_UNDECIDED}their loops are at different lines: {_named_with_lines(seen)}")
        return []
    elsewhere = [process for process in seen if process.loop is not None and process.loop.where != where]
    if elsewhere:
        notices.append(f"not compared, because their loop is at another line: {_named_with_lines(elsewhere)}")
    return [process for process in seen if process not in elsewhere]


def _named_with_lines(processes: Sequence[ProcessFigures]) -> str:
    """Return text such as `0 (train.py:24)`: each process with the most expensive line of its own loop."""
    named = []
    for process in processes:
        lines = process.loop.lines if process.loop is not None else ()
        most = max(lines, key=lambda line: line.seconds, default=None)
        named.append(f"{process.index} ({most.where.short()})" if most is not None else str(process.index))
    return and_more(named, MOST_NAMED)


def stragglers(compared: Sequence[ProcessFigures]) -> Iterator[Finding]:
    """Yield a finding for each process that is late by its own work; `compared` is the result of `comparable`."""
    if len(compared) < 2:
        return
    loops = [_Loop(process) for process in compared]
    whole = _comparison(loops, WHOLE, 2)
    deciding = (OWN_WORK,) if whole.knows(OWN_WORK) else PARTS_OF_ITS_OWN
    by_what = differences([loop.windows for loop in loops], [loop.origin for loop in loops], deciding)
    for number, loop in enumerate(loops):
        late: _Lateness | None = None  # what it is late by most, and when
        for what, more in by_what.items():
            found = _Lateness(whole.excess(number, what), whole, number, WHOLE)
            longest, reported_period = more.late_period(number) or (WHOLE, WHOLE)
            tested = longest if reported_period.is_whole else reported_period
            if not tested.is_whole:
                within = _comparison(loops, tested, 2 * more.tests)
                row = next((row for row, blocks in enumerate(within.loops) if blocks.process is loop.process), None)
                inside = within.excess(row, what) if row is not None and len(within.loops) > 1 else None
                if row is not None and inside is not None and inside.is_certain:
                    if reported_period.is_whole:  # too little time before or after to show that it was not late then
                        certain = found.excess.difference >= LEAST_DIFFERENCE
                        found = replace(found, excess=replace(found.excess, is_certain=certain))
                    else:
                        found = _Lateness(inside, within, row, reported_period)
            if found.excess.is_certain and (late is None or found.excess.difference > late.excess.difference):
                late = found
        if late is None:
            continue
        # The CPU clock decides who is late. The samples say with what, if they show a good part of the excess.
        most = max(
            (late.comparison.excess(late.number, part) for part in PARTS_OF_ITS_OWN), key=lambda each: each.difference
        )
        samples_agree = most.difference >= max(LEAST_DIFFERENCE, late.excess.difference / 3)
        reported = most if late.excess.what == OWN_WORK and samples_agree else late.excess
        shares = reported.share, reported.usual
        others = [other for other in compared if other is not loop.process]
        if late.period.is_whole and reported.what != OWN_WORK:  # the shares that tables and views show
            shares = share_beside(loop.process, others, reported.what) or shares
        windows = loop.within(late.period)
        step = next((int(step) for step in windows.first_steps if step == step), None)  # NaN if unknown
        cost = late.excess.difference * float(windows.seconds.sum())
        yield _straggler(loop.process, others, reported.what, shares, cost, late.period, step)


def clearly_late(processes: Sequence[ProcessFigures], named: Collection[int | None]) -> Iterator[Finding]:
    """Yield processes whose own work clearly takes most of a loop that is too short to be compared in blocks. The
    others, in the same loop, do none of this work. `named` holds the processes already found late."""
    # Without samples there is no share, and two processes without a loop seem to have the same.
    sampled = [
        (process, process.loop, shares)
        for process in processes
        if process.loop is not None and (shares := process.shares) is not None
    ]
    together = grouped((each[1].where, each) for each in sampled)
    for process, loop, shares in sampled:
        if process.index in named or len(windows_of(process)) > 2 * LEAST_BLOCKS:
            continue
        beside = [each for each in together[loop.where] if each[0] is not process]
        if not beside:
            continue
        samples = min(each.samples for _, each, _ in together[loop.where]) / _SAMPLES_APART
        found = []
        for part in PARTS_OF_ITS_OWN:
            share, usual = shares[part], median(theirs[part] for _, _, theirs in beside)
            error = math.sqrt((share * (1 - share) + usual * (1 - usual) + 1 / samples) / samples)
            if share - usual > _CLEAR_EXCESS_ERRORS * error:  # else so few samples can differ by chance
                found.append((share - usual, share, usual, part))
        excess, share, usual, part = max(found, key=lambda each: each[0], default=(0.0, 0.0, 0.0, ""))
        if excess < CLEAR_EXCESS:
            continue
        # Where each main thread has a CPU clock, it must agree that this one worked, or waited for something other than
        # its device, for more of its loop than the others.
        others = [other for other, _, _ in beside]
        windows = [each.windows for each in (process, *others)]
        own = [float(each.own_seconds.sum() / each.seconds.sum()) if len(each) else math.nan for each in windows]
        if any(map(math.isnan, own)) or own[0] - median(own[1:]) >= _CLEAR_EXCESS_BY_CLOCK:
            yield _straggler(process, others, part, (share, usual), excess * loop.seconds)


def shared(processes: Sequence[ProcessFigures]) -> list[tuple[str, float, float]]:
    """List the work on which every process of a job spends a large share of its time: text, least and largest share."""
    rows = []
    compiling = [(each.compile_seconds or 0.0) / each.wall_seconds for each in processes if each.wall_seconds]
    if len(processes) == len(compiling) > 1 and min(compiling) >= _SHARED:
        rows.append(("compiling, of the wall time", min(compiling), max(compiling)))
    shares = [each.shares for each in processes if each.shares is not None]
    if len(shares) == len(processes) > 1:
        for part in PARTS_OF_ITS_OWN:
            least, most = min(each[part] for each in shares), max(each[part] for each in shares)
            if least >= _SHARED:
                rows.append((f"{_TEXTS[part]}, of the loop", least, most))
    return rows


@frozen
class _Lateness:
    excess: Excess
    """What it is late by."""
    comparison: LoopComparison
    """The loops in the period in which it is late."""
    number: int
    """Number of the process in that comparison."""
    period: LatePeriod


def _comparison(loops: Sequence[_Loop], period: LatePeriod, tests: int) -> LoopComparison:
    """Compare the loops in a period, without those that have too few windows in it."""
    blocks = (in_blocks(loop.process, loop.within(period)) for loop in loops)
    return LoopComparison([each for each in blocks if each is not None], tests)


def _straggler(
    process: ProcessFigures,
    others: Sequence[ProcessFigures],
    what: str,
    shares: tuple[float, float],
    cost_seconds: float,
    period: LatePeriod = WHOLE,
    step: int | None = None,
) -> Finding:
    """Return the finding about a late process. `shares` are its share and the usual one; `step` is the number of the
    first step in the period, if steps are numbered."""
    since = ""
    if not period.is_whole:
        at = f" (step {step})" if step is not None else ""
        if not period.began_seconds:
            since = f" until {seconds(period.ended_seconds)} into its loop"
        elif period.ended_seconds is None:
            since = f" since {seconds(period.began_seconds)} into its loop{at}"
        else:
            since = f" from {seconds(period.began_seconds)} to {seconds(period.ended_seconds)} of its loop{at}"
    took = process.loop.seconds if process.loop is not None else 0.0
    theirs = median(other.loop.seconds for other in others if other.loop is not None)
    if took <= IN_STEP * theirs:
        effect = "which wait for it" + (": the input of this host starves the job" if what == DATA else "")
    else:
        effect = f"whose loops take {seconds(theirs)} while its own takes {seconds(took)}"
    message = (
        f"process {process.index} on {process.host} is late{since}: {_TEXTS[what]} takes "
        f"{percent_or_less(shares[0])} of {'its loop' if period.is_whole else 'that time'}, "
        f"{percent_or_less(shares[1])} on the others, {effect}"
    )
    return Finding(
        message,
        (process.loop.line_of(what) if process.loop is not None and what != OWN_WORK else None,),
        own_fix=_FIXES[what],
        seconds=cost_seconds,
        index=process.index,
        part=what,
        since_seconds=period.began_seconds,
        until_seconds=period.ended_seconds,
        since_step=step,
        code="straggler",
    )
