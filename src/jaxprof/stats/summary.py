"""Summarise one series of samples in a few numbers, each with its uncertainty.

The interval of a median is drawn from its bootstrap distribution without resampling the samples. A bootstrap sample of
size n draws n indices uniformly; its median is the sample's order statistic at the median of those indices. The median
of n uniform variables is Beta distributed, so the index can be drawn directly: the same distribution as the textbook
bootstrap (B. Efron, "Bootstrap Methods: Another Look at the Jackknife", 1979), at the price of one random number for
each draw, whatever n is.

In two modes no single number describes a call. A cluster of fast calls and one of slow calls is not enough: every
skewed or drifting series can be cut in two. Two modes have a valley between them. In a single mode the density halfway
between two clusters is at least that of the lesser one, so at least half as many samples as near either cluster are
expected halfway: a binomial test gives the probability of fewer (the idea of excess mass: D. W. Müller and G.
Sawitzki, "Excess mass estimates and tests for multimodality", 1991).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from jaxprof.base.units import percent, seconds
from jaxprof.base.values import frozen
from jaxprof.stats.blocks import (
    BLOCK_SECONDS,
    LaunchBlocks,
    Location,
    exp_in_range,
    in_blocks,
    launch_mean,
    location,
    middle,
    not_times,
    of_difference,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


FEWEST_FOR_MODES = 20
"""Least number of samples in which modes are looked for."""
APART = 1.2
"""Least ratio of the modes that is worth reporting."""
LEAST_SHARE = 0.10
"""Least share of the samples in the lesser mode: fewer are outliers."""
_CHANCE = 1e-4
"""Largest probability of such a deep valley in samples of one mode. It is small because the clusters were chosen by
looking, and successive samples are correlated."""
_DEEPEST_SHARE = 0.25
"""A valley holds at most this share of what the lesser mode holds: shallower ones are shoulders."""


@frozen
class Modes:
    """Two clusters of samples, in seconds."""

    low: float
    """Median of the faster samples."""
    high: float
    low_share: float
    """Share of the samples in the faster mode (0..1)."""
    switches: int
    """Number of samples in another mode than the previous one: 1 is a single, lasting change."""
    border: float
    """Fastest of the slower samples."""


def two_modes(samples: Sequence[float]) -> Modes | None:
    """Return the two modes of `samples`, in the order in which they were taken; None if there may be only one mode."""
    if len(samples) < FEWEST_FOR_MODES:
        return None
    import numpy as np

    values = np.asarray(samples, dtype=np.float64)
    if not np.isfinite(values).all() or values.min() <= 0:
        return None
    ordered = np.sort(values)
    first, last = 0, len(ordered)
    # Outliers are split off at most twice, once on either side.
    for _ in range(3):
        # The cut with the largest variance between the clusters (N. Otsu, "A threshold selection method from gray-level
        # histograms", 1979).
        logs = np.log(ordered[first:last])
        below = np.arange(1, len(logs))
        sums = np.cumsum(logs)[:-1]
        means_apart = (logs.sum() - sums) / (len(logs) - below) - sums / below
        cut = first + int(np.argmax(below * (len(logs) - below) * means_apart**2)) + 1
        if min(cut - first, last - cut) >= LEAST_SHARE * len(ordered):
            break
        # A part too small for a mode is outliers, and the rest is cut again.
        first, last = (cut, last) if cut - first < LEAST_SHARE * len(ordered) else (first, cut)
    else:
        return None
    low, high = float(np.median(ordered[first:cut])), float(np.median(ordered[cut:last]))
    if high < APART * low or not _has_valley(ordered, low, high):
        return None
    fast = values < ordered[cut]
    switches = int(np.count_nonzero(fast[1:] != fast[:-1]))
    return Modes(low, high, cut / len(ordered), switches, float(ordered[cut]))


def _has_valley(ordered: np.ndarray[tuple[int], np.dtype[np.float64]], low: float, high: float) -> bool:
    """Return whether fewer samples lie halfway between the modes than around the lesser one, by more than chance."""
    width = (high - low) / 3

    def around(centre: float) -> int:
        first, last = ordered.searchsorted([centre - width / 2, centre + width / 2])
        return int(last - first)

    lesser, between = min(around(low), around(high)), around((low + high) / 2)
    if between > _DEEPEST_SHARE * lesser:
        return False
    trials = lesser + between
    # The chance of this few or fewer out of all: a tail of the binomial distribution with 1/2, in logarithms.
    terms = [math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1) for k in range(between + 1)]
    most = max(terms)
    chance = most + math.log(sum(math.exp(term - most) for term in terms)) - trials * math.log(2)
    return chance < math.log(_CHANCE)


def modes_text(modes: Modes) -> str:
    """Return the median of each mode and its share of the samples, as `1.20 ms (60 %), 3.40 ms (40 %)`."""
    return f"{seconds(modes.low)} ({percent(modes.low_share)}), {seconds(modes.high)} ({percent(1 - modes.low_share)})"


FEWEST_FOR_INTERVAL = 5
"""Least number of samples for an interval: the extremes of fewer cover the median in under 94 % of cases."""

FEWEST_FOR_P95 = 20  # of fewer it is all but their maximum
_FAR = 5.0
"""An outlier lies more than this many standard deviations, as the MAD estimates them, from the median."""


@frozen(kw_only=True)
class MedianTime:
    """The median call, in seconds. `low` and `high` bound it with 95 % confidence; None if there is too little."""

    median: float
    low: float | None
    high: float | None
    unit: Literal["call", "block", "launch"] = "call"
    """Unit from which the interval is computed: calls, taken to be independent; blocks of neighbouring calls; or
    launches. From blocks, it leaves out the differences between processes of the same program."""
    launches: int = 1

    @property
    def relative_halfwidth(self) -> float | None:
        """Half the interval's width over the median: the `± 0.9 %` on screen; None if it is unknown."""
        if self.low is None or self.high is None or self.median <= 0:
            return None
        return (self.high - self.low) / 2 / self.median

    @property
    def ci95(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


@frozen(kw_only=True)
class Summary(MedianTime):
    """A summary of samples in seconds."""

    count: int
    mad: float
    """Median absolute deviation from the median, unscaled."""
    minimum: float
    maximum: float
    mean: float
    p95: float | None
    """95th percentile; None for fewer than `FEWEST_FOR_P95` samples, where it would be a guess."""


def summarise(samples: Sequence[float], over_units: MedianTime | None = None) -> Summary | None:
    """Return the summary of `samples` (seconds); None if there are none. Its interval, and with several launches its
    median, are those `over_units`, launches or blocks, if these are known."""
    if not samples:
        return None
    import numpy as np

    values = np.asarray(samples, dtype=np.float64)
    median = centre = float(np.median(values))
    if over_units is None:
        low, high = median_interval(samples) or (None, None)
        over_units = MedianTime(median=median, low=low, high=high)
    else:
        centre = over_units.median if over_units.launches > 1 else median
        ends = over_units.low, over_units.high
        low, high = (None if end is None else end / over_units.median * centre for end in ends)
    return Summary(
        count=len(values),
        median=centre,
        mad=float(np.median(np.abs(values - median))),
        low=low,
        high=high,
        minimum=float(values.min()),
        maximum=float(values.max()),
        mean=float(values.mean()),
        p95=float(np.percentile(values, 95)) if len(values) >= FEWEST_FOR_P95 else None,
        unit=over_units.unit,
        launches=over_units.launches,
    )


def median_interval(samples: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % percentile-bootstrap interval of the median, in the samples' unit; None below five samples."""
    if len(samples) < FEWEST_FOR_INTERVAL:
        return None
    import numpy as np

    low, high = np.percentile(bootstrap_medians(samples), [2.5, 97.5])
    return float(low), float(high)


DRAWS = 9999
SEED = 20_260_101
"""Fixed, so that the same samples give the same interval everywhere."""


def bootstrap_medians(samples: Sequence[float], draws: int = DRAWS, seed: int = SEED) -> NDArray[np.float64]:
    """Return `draws` bootstrap replicates of the median of `samples`, shape (draws,), in the samples' unit."""
    import numpy as np

    values = np.sort(np.asarray(samples, dtype=np.float64))
    picked = [values[index] for index in _middle_indices(len(values), draws, seed)]
    medians: NDArray[np.float64] = picked[0] if len(picked) == 1 else 0.5 * (picked[0] + picked[1])
    return medians


@lru_cache(maxsize=16)  # 160 KB each; of hundreds of runs most have as many samples as another one
def _middle_indices(n: int, draws: int, seed: int) -> tuple[NDArray[np.intp], ...]:
    """Return which of `n` sorted samples are in the middle of each draw, each of shape (draws,): one, or the two whose
    mean is the median."""
    import numpy as np

    random = np.random.default_rng(seed)
    if n % 2:
        return (_index(random.beta((n + 1) // 2, (n + 1) // 2, size=draws), n),)
    # Of n uniforms the (n/2)th smallest is Beta(n/2, n/2 + 1); given it, the next one is the smallest of the n/2
    # that lie above it.
    lower = random.beta(n // 2, n // 2 + 1, size=draws)
    upper = 1.0 - (1.0 - lower) * random.random(draws) ** (1.0 / (n // 2))
    return _index(lower, n), _index(upper, n)


def _index(uniform: NDArray[np.float64], n: int) -> NDArray[np.intp]:
    import numpy as np

    return np.minimum((uniform * n).astype(np.intp), n - 1)


def outliers(samples: Sequence[float], modes: Modes | None = None) -> list[bool]:
    """Return for each sample whether it lies more than `_FAR` scaled MADs from the median, or with two `modes` from
    both medians. Outliers are marked, and kept."""
    if not samples:
        return []
    import numpy as np

    values = np.asarray(samples, dtype=np.float64)
    far = np.full(len(values), fill_value=True)
    for cluster in (values,) if modes is None else (values[values < modes.border], values[values >= modes.border]):
        median = np.median(cluster)
        # MAD × 1.4826 estimates the standard deviation of normal noise (Rousseeuw & Croux, 1993).
        spread = np.median(np.abs(cluster - median)) * 1.4826
        if spread == 0:
            return [False] * len(values)
        far &= np.abs(values - median) > _FAR * spread
    flags: list[bool] = far.tolist()
    return flags


def histogram(samples: Sequence[float], bins: int, modes: Modes | None = None) -> tuple[list[int], float, float, int]:
    """Return the counts of one or more samples in `bins` equal bins, the low and high edge, and how many samples lie
    above the last bin.

    The scale ends where the outliers begin, so that one slow call does not squeeze the others into one bin; it includes
    both of two `modes`.
    """
    import numpy as np

    values = np.asarray(samples, dtype=np.float64)
    kept = values[~np.asarray(outliers(samples, modes), dtype=bool)]
    low, high = float(kept.min()), float(kept.max())
    if high <= low:
        high = low + max(abs(low) * 1e-6, 1e-12)  # a histogram of one value has a width as well
    counts, _ = np.histogram(values[values <= high], bins=bins, range=(low, high))
    return [int(count) for count in counts], low, high, int((values > high).sum())


def summarise_launches(launches: Sequence[LaunchBlocks]) -> MedianTime | None:
    """Return the median of side 0 over its launches; None if it has no samples, or one that is not a time.

    The median is the middle one of the launches' medians, because the mean of 44 µs in one launch and 77 µs in the next
    occurs in no launch; with one launch, it is that of its blocks.

    The interval is Student's over the logarithms of the launches' medians and never narrower than the blocks within
    them allow; with one launch it is that of its blocks, batched because neighbours are alike.
    """
    if not_times(launches, 0):
        return None
    logs = [[math.log(block.median) for block in launch.of_side(0)] for launch in launches]
    medians = [location(values) for values in logs if values]
    if not medians:
        return None
    mean, count = launch_mean(medians), len(medians)
    centre = middle([median.value for median in medians])
    half = max((spread.half_width(0.95) for spread in mean.spreads), default=None)
    return MedianTime(
        median=exp_in_range(centre),
        low=None if half is None else exp_in_range(min(centre, mean.value - half)),
        high=None if half is None else exp_in_range(max(centre, mean.value + half)),
        unit="launch" if count > 1 else "block",
        launches=count,
    )


ALONE_MARGIN = 0.03
"""Largest difference between a run's time in turns and its time alone that is not reported, as a share."""
ALONE_MARGIN_OF_ONE = 0.2
"""`ALONE_MARGIN` for one launch: its calls alone take a quarter of a second, in which others may use the machine."""


def turns_over_alone(turns: Sequence[LaunchBlocks], alone: Sequence[LaunchBlocks]) -> tuple[float, bool] | None:
    """Return a run's time in turns over its time alone (both as side 0, launch by launch), and whether the two differ:
    by more than `ALONE_MARGIN`, and by more than the 95 % interval of their ratio. None if a launch lacks one of them.
    With one launch the fast calls have to differ as well, because bursts of other programs spare some.

    If the error is not known (one launch of few blocks), they do not differ.
    """
    if not turns or len(turns) != len(alone) or not_times(turns, 0) or not_times(alone, 0):
        return None
    differences = []
    margin = ALONE_MARGIN if len(turns) > 1 else ALONE_MARGIN_OF_ONE
    for sides in zip(turns, alone, strict=True):
        logs = [[math.log(block.median) for block in launch.of_side(0)] for launch in sides]
        if not all(logs):
            return None
        one, two = map(location, logs)
        spread = of_difference(one.spread, two.spread) if one.spread and two.spread else None
        differences.append(Location(one.value - two.value, spread))
    mean = launch_mean(differences)
    half = max((spread.half_width(0.95) for spread in mean.spreads), default=math.inf)
    differ = abs(mean.value) > max(half, math.log1p(margin))
    if len(turns) == 1:
        fast = turns[0].fast_call(0), alone[0].fast_call(0)
        of_fast = math.log(fast[0] / fast[1]) if fast[0] and fast[1] else 0.0
        differ &= of_fast * math.copysign(1, mean.value) > math.log1p(margin) / 2
    return exp_in_range(mean.value), differ


def summarise_run(
    samples: Sequence[float], launches: Sequence[LaunchBlocks] = (), calls_per_sample: int = 1
) -> Summary | None:
    """Return the summary of a steady run (seconds a call); its interval is computed from launches or blocks, not calls.

    `launches` holds the run's blocks, as side 0; if a run was not measured in turns, its `samples` are cut into blocks.
    With one launch the median is that of all samples, and the blocks give its interval. None if there are no samples.
    """
    if not samples:
        return None
    blocks = launches or [LaunchBlocks(in_blocks(samples, seconds=BLOCK_SECONDS / max(1, calls_per_sample)))]
    return summarise(samples, summarise_launches(blocks))
