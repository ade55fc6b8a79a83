"""Summarise one series of samples in a few numbers, each with its uncertainty.

The interval of a median is drawn from its bootstrap distribution without resampling the samples. A bootstrap sample of
size n draws n indices uniformly; its median is the sample's order statistic at the median of those indices. The median
of n uniform variables is Beta distributed, so the index can be drawn directly: the same distribution as the textbook
bootstrap (B. Efron, "Bootstrap Methods: Another Look at the Jackknife", 1979), at the price of one random number for
each draw, whatever n is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from jaxprof.base.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from jaxprof.stats.modes import Modes

FEWEST_FOR_INTERVAL = 5
"""Least number of samples for an interval: the extremes of fewer cover the median in under 94 % of cases."""

FEWEST_FOR_P95 = 20
_FAR = 5.0
"""An outlier lies more than this many standard deviations, as the MAD estimates them, from the median."""
_NORMAL_CONSISTENCY = 1.4826
"""MAD × this estimates the standard deviation of normal noise (Rousseeuw & Croux, 1993)."""


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


def summarise(samples: Sequence[float]) -> Summary | None:
    """Return the summary of `samples` (seconds); None if there are none."""
    if not samples:
        return None
    import numpy as np

    values = np.asarray(samples, dtype=np.float64)
    median = float(np.median(values))
    interval = median_interval(samples)
    return Summary(
        count=len(values),
        median=median,
        mad=float(np.median(np.abs(values - median))),
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        minimum=float(values.min()),
        maximum=float(values.max()),
        mean=float(values.mean()),
        p95=float(np.percentile(values, 95)) if len(values) >= FEWEST_FOR_P95 else None,
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
    n = len(values)
    random = np.random.default_rng(seed)
    if n % 2:
        middle = random.beta((n + 1) // 2, (n + 1) // 2, size=draws)
        picked: NDArray[np.float64] = values[_index(middle, n)]
        return picked
    # Of n uniforms the (n/2)th smallest is Beta(n/2, n/2 + 1); given it, the next one is the smallest of the n/2
    # that lie above it.
    lower = random.beta(n // 2, n // 2 + 1, size=draws)
    upper = 1.0 - (1.0 - lower) * random.random(draws) ** (1.0 / (n // 2))
    both: NDArray[np.float64] = 0.5 * (values[_index(lower, n)] + values[_index(upper, n)])
    return both


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
        spread = np.median(np.abs(cluster - median)) * _NORMAL_CONSISTENCY
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
        high = low + max(abs(low) * 1e-6, 1e-12)
    counts, _ = np.histogram(values[values <= high], bins=bins, range=(low, high))
    return [int(count) for count in counts], low, high, int((values > high).sum())
