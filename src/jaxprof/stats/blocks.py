"""Blocks of successive calls, and the location of a series of successive values, with its error.

The location is a trimmed mean: bursts of other work affect one block of a pair now and then, and a quarter of the
values at either end may be anything. Its error is that of the mean of the Winsorised values (J. W. Tukey and
D. H. McLaughlin, "Less vulnerable confidence and significance procedures for location based on a single sample", 1963).

Successive values are correlated, which makes the error larger than their spread suggests. Two estimates allow for that,
and the wider interval counts: neighbours are merged into ever longer batches (H. Flyvbjerg and H. G. Petersen, "Error
estimates on averages of correlated data", 1989), which needs many values; and the correlation of neighbours gives the
number of independent values they amount to (G. V. Bayley and J. M. Hammersley, "The 'effective' number of independent
observations in an autocorrelated time series", 1946), which serves for few. Too few independent values have no error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from jaxprof.base.values import frozen

BLOCK_SECONDS = 0.01
"""Length of a block, unless one call is longer: beside a neighbour whose bursts last 50 to 800 ms, 150 ms blocks gave
false verdicts in 2 of 6 comparisons, and 12 ms blocks in none."""


SETTLED_WITHIN = 0.03
"""Calls have settled if they take as long as later ones, within this share."""


@frozen
class Block:
    """Successive calls of one side, made while no other side ran."""

    side: int
    """Number of the side, from 0 on."""
    seconds: tuple[float, ...]
    """Seconds of each call, in the order made."""

    @property
    def is_time(self) -> bool:
        """Whether every sample is a time: finite and above zero."""
        return not self.seconds or (math.isfinite(sum(self.seconds)) and min(self.seconds) > 0)

    @property
    def median(self) -> float:
        """Median of the calls, in seconds; only for a block with calls."""
        return middle(self.seconds)


@frozen
class LaunchBlocks:
    """The blocks of one launch (a fresh process for each side), in the order measured."""

    blocks: tuple[Block, ...]
    in_turns: bool = True
    """Whether the sides' processes lived together and their blocks took turns. If not, the sides followed each other,
    each as a short launch of its own: then only their medians can be compared, and only over several launches."""

    def of_side(self, side: int) -> list[Block]:
        return [block for block in self.blocks if block.side == side and block.seconds]

    def fast_call(self, side: int) -> float | None:
        """Return the seconds that a tenth of one side's calls fall below: the calls slowed by other processes are above
        it. None without calls."""
        calls = sorted(second for block in self.of_side(side) for second in block.seconds)
        return calls[len(calls) // 10] if calls else None

    def pairs(self, side: int, other: int) -> list[tuple[Block, Block]]:
        """Return pairs of blocks of the two sides that followed each other, each block in one pair at most, `side`'s
        first.

        Blocks of further sides may lie between them. A block whose partner is missing is left out."""
        blocks = [block for block in self.blocks if block.side in (side, other) and block.seconds]
        pairs = []
        position = 0
        while position + 1 < len(blocks):
            first, second = blocks[position : position + 2]
            if first.side == second.side:
                position += 1
                continue
            pairs.append((first, second) if first.side == side else (second, first))
            position += 2
        return pairs


def middle(values: Sequence[float]) -> float:
    """Return the median of one or more values, without NumPy, which takes forty times as long for a few values. The
    median of the least and the largest times that a float holds is still a time."""
    ordered, count = sorted(values), len(values)
    lower, upper = ordered[(count - 1) // 2], ordered[count // 2]
    return lower + (upper - lower) / 2


def in_blocks(samples: Sequence[float], side: int = 0, seconds: float = BLOCK_SECONDS) -> tuple[Block, ...]:
    """Cut the successive `samples` (seconds) of one process into blocks of at least `seconds`, or one call if that is
    longer. A shorter rest at the end joins the last block."""
    blocks: list[list[float]] = [[]]
    spent = 0.0
    for sample in samples:
        if spent >= seconds:
            blocks.append([])
            spent = 0.0
        blocks[-1].append(sample)
        spent += sample
    if len(blocks) > 1 and spent < seconds:
        left_over = blocks.pop()
        blocks[-1] += left_over
    return tuple(Block(side, tuple(block)) for block in blocks if block)


def settling_seconds(blocks: Sequence[Sequence[float]]) -> float:
    """Return how soon the calls of whole `blocks` (seconds of each call, in order) settle after the turn of another
    side. The calls are compared by their place in their block, in groups that double, with those of the second half of
    the same block. If they still change at its end, the result is half a block.

    Calls at a place have not settled if they differ in a third of the blocks, in one direction: threads that a
    scheduler woke on one core separate sometimes after 2 ms, sometimes after 40 ms. A difference counts if it exceeds
    `SETTLED_WITHIN` and the scatter of the calls. With fewer than two calls a block nothing can be seen, and the result
    is 0.
    """
    length = min((len(block) for block in blocks), default=0)
    if length < 2:
        return 0.0
    half = length // 2
    end, begin, until = 0, 0, 1
    while begin < half:
        # The calls at two places of a block differ by more than the scatter of all blocks, with one direction a third
        # of the blocks ahead of the other.
        early = slice(begin, min(until, half))
        late = slice(half, length)
        ends = [middle(block[late]) for block in blocks]
        scatter = middle([abs(call / end - 1) for block, end in zip(blocks, ends, strict=True) for call in block[late]])
        error = _ERROR_OF_MEDIAN * scatter * math.sqrt(1 / len(blocks[0][early]) + 1 / len(blocks[0][late]))
        beyond = max(SETTLED_WITHIN, _SURELY * error)
        ratios = [middle(block[early]) / end - 1 for block, end in zip(blocks, ends, strict=True)]
        slower, faster = sum(ratio > beyond for ratio in ratios), sum(ratio < -beyond for ratio in ratios)
        if abs(slower - faster) >= max(2, len(blocks) / 3):
            end = min(until, half)
        begin, until = until, 2 * until
    return middle([math.fsum(block[:end]) for block in blocks]) if end else 0.0


def change_within(blocks: Sequence[Sequence[float]]) -> float | None:
    """Return the share by which the calls in the second halves of `blocks` differ from those in the first halves; None
    if they do not, or if nothing can be seen. The middle call of an odd number counts with neither."""
    halves: tuple[list[float], list[float]] = ([], [])
    for block in blocks:
        half = len(block) // 2
        if half:
            halves[0].extend(block[:half])
            halves[1].extend(block[-half:])
    # Fewer calls show nothing.
    if len(halves[0]) < 8:
        return None
    early, late = map(middle, halves)
    error = math.hypot(*map(_error_of_median, halves))
    return late / early - 1 if abs(early - late) > max(SETTLED_WITHIN * late, _SURELY * error) else None


_SURELY = 3.0
"""A difference beyond this many standard errors is not due to chance."""


def _error_of_median(values: Sequence[float]) -> float:
    """Return the standard error of the median, from the median absolute deviation, for values that are about normal."""
    centre = middle(values)
    deviation = middle([abs(value - centre) for value in values])
    return _ERROR_OF_MEDIAN * deviation / math.sqrt(len(values))


_ERROR_OF_MEDIAN = 1.4826 * 1.2533
"""Standard error of the median of one value, in median absolute deviations."""


def not_times(launches: Iterable[LaunchBlocks], *sides: int) -> bool:
    """Return whether any sample of these sides is not a time: zero, negative, infinite or not a number."""
    return any(not block.is_time for launch in launches for block in launch.blocks if block.side in sides)


TRIMMED = 0.25
"""Share of the values that is left out at either end."""
FEWEST_BATCHES = 6
"""Least number of batches: the spread of a few is unreliable, and its quantile of t grows."""
_ROUNDING = 1e-12
"""Values that differ by less are the same, and their order means nothing."""
FEWEST_VALUES = 5
"""Least number of independent values for which an error is known."""


@frozen
class Spread:
    """The error of an estimate from one source: its standard error and its degrees of freedom."""

    standard_error: float
    degrees: float

    def half_width(self, confidence: float) -> float:
        """Return half of the interval that holds the truth with `confidence` (0..1), in the unit of the error."""
        return self.standard_error * t_quantile((1 + confidence) / 2, self.degrees)


@frozen
class Location:
    """A trimmed mean, in the values' unit."""

    value: float
    spread: Spread | None
    """Error of the value; None if the values amount to fewer than `FEWEST_VALUES` independent ones."""


@frozen
class LaunchMean:
    """The mean of the values of several launches, in the values' unit."""

    value: float
    between: Spread | None
    """Error from the differences between launches (Student's); None with one launch."""
    within: Spread | None
    """Error from the values within the launches; None if that of a launch is not known."""

    @property
    def spreads(self) -> tuple[Spread, ...]:
        """Known sources of error. The wider one counts: launches that agree by chance hide nothing."""
        return tuple(spread for spread in (self.between, self.within) if spread)

    @property
    def between_share(self) -> float | None:
        """Share (0..1) of the variance of one launch's value that the values within it do not explain."""
        if self.between is None or self.within is None:
            return None
        if self.between.standard_error <= self.within.standard_error:
            return 0.0
        return 1 - (self.within.standard_error / self.between.standard_error) ** 2


def launch_mean(launches: Sequence[Location]) -> LaunchMean:
    """Return the mean over one or more launches, each with the same weight."""
    count = len(launches)
    values = [launch.value for launch in launches]
    between = Spread(math.sqrt(_variance(values) / count), count - 1) if count > 1 else None
    known = [launch.spread for launch in launches if launch.spread]
    within = None
    if len(known) == count:
        error = math.sqrt(math.fsum(spread.standard_error**2 for spread in known)) / count
        within = Spread(error, sum(spread.degrees for spread in known))
    return LaunchMean(math.fsum(values) / count, between, within)


def of_difference(one: Spread, other: Spread) -> Spread:
    """Return the error of the difference of two independent estimates, with the degrees of freedom of B. L. Welch ("The
    generalization of 'Student's' problem when several different population variances are involved", 1947)."""
    error = math.hypot(one.standard_error, other.standard_error)
    if error == 0:
        return Spread(0.0, one.degrees + other.degrees)
    lost = sum((spread.standard_error / error) ** 4 / spread.degrees for spread in (one, other))
    return Spread(error, 1 / lost)


def location(values: Sequence[float]) -> Location:
    """Return the trimmed mean of one or more values, in the order measured."""
    count = len(values)
    ordered = sorted(values)
    cut = int(TRIMMED * count)
    kept = ordered[cut : count - cut]
    value = math.fsum(kept) / len(kept)
    if count < FEWEST_VALUES:
        return Location(value, None)
    scale = count / len(kept)
    bounded = [min(max(each, kept[0]), kept[-1]) * scale for each in values]
    # How many independent values these amount to: all, if neighbours are no more alike than by chance. The estimated
    # correlation of neighbours in a short series is too low by about (1 + 4 r) / n (M. G. Kendall, "Note on bias in the
    # estimation of autocorrelation", 1954), which is corrected.
    mean = math.fsum(bounded) / count
    off = [each - mean for each in bounded]
    squares = math.fsum(each * each for each in off)
    independent = float(count)
    if squares > count * _ROUNDING**2:
        seen = math.fsum(each * following for each, following in pairwise(off)) / squares
        alike = min(seen + (1 + 4 * seen) / count, 0.99)  # at 1 no value would be independent
        if alike >= 1 / math.sqrt(count):
            independent = count * (1 - alike) / (1 + alike)
    if independent < FEWEST_VALUES:
        return Location(value, None)
    # Several estimates of the mean's error allow for correlation: the one with the widest 95 % interval counts.
    most = len(kept) - 1
    variance = _variance(bounded) * (count - 1) / (count - count / independent) / independent
    errors = [Spread(math.sqrt(variance), min(int(independent) - 1, most))]
    while len(bounded) >= 2 * FEWEST_BATCHES:
        bounded = [(each + following) / 2 for each, following in zip(bounded[::2], bounded[1::2], strict=False)]
        errors.append(Spread(math.sqrt(_variance(bounded) / len(bounded)), min(len(bounded) - 1, most)))
    return Location(value, max(errors, key=lambda spread: spread.half_width(0.95)))


def exp_in_range(value: float) -> float:
    """Return exp(value), limited to what a float holds: the end of the widest possible interval is still positive."""
    return math.exp(min(max(value, -700.0), 700.0))  # e^709 is the largest


def _variance(values: list[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((each - mean) ** 2 for each in values) / (len(values) - 1)


_TINY = 1e-300  # Lentz's method divides by what may be 0


@lru_cache(maxsize=1024)
def t_quantile(probability: float, degrees: float) -> float:
    """Return the quantile at `probability` (above 0 and below 1) of a t variable with `degrees` > 0 degrees of freedom
    (a fraction is allowed), without SciPy: importing `scipy.stats` costs more than most commands do.

    The distribution function is a regularised incomplete beta function, worked out as its continued fraction (M.
    Abramowitz and I. Stegun, "Handbook of Mathematical Functions", 26.5.8 and 26.7.1; evaluated with Lentz's method as
    W. J. Thompson and A. R. Barnett have it, 1986) and inverted by bisection: good to nine digits from half a degree of
    freedom on.
    """
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -t_quantile(1 - probability, degrees)
    degrees = min(degrees, 1e6)  # the normal distribution, to six digits; beyond, the gamma functions lose theirs
    tails = 2 * (1 - probability)
    # P(|T| > t) = I_x(degrees / 2, 1/2) at x = degrees / (degrees + t²); t² / degrees spans many powers of ten.
    low, high = math.log(1e-20), math.log(1e60)
    for _ in range(60):
        middle = (low + high) / 2
        if _tails(math.exp(middle), degrees) > tails:
            low = middle
        else:
            high = middle
    return math.sqrt(math.exp((low + high) / 2) * degrees)


def _tails(squared: float, degrees: float) -> float:
    """Return P(T² / degrees > `squared`)."""
    x, rest = 1 / (1 + squared), squared / (1 + squared)
    a, b = degrees / 2, 0.5
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * -math.log1p(squared) + b * math.log(rest)
    if x < (a + 1) / (a + b + 2):
        return math.exp(scale) * _fraction(a, b, x) / a
    return 1 - math.exp(scale) * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function at `x`, which must be below its mean or near it."""
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            value *= d * c
        if abs(d * c - 1) < 1e-14:  # as exact as a float is, after a few roundings
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
