"""Detect two modes in samples: then no single number, neither the median nor the mean, describes a call.

A cluster of fast calls and one of slow calls is not enough: every skewed or drifting series can be cut in two. Two
modes have a valley between them. In a single mode the density halfway between two clusters is at least that of the
lesser one, so at least half as many samples as near either cluster are expected halfway: a binomial test gives the
probability of fewer (the idea of excess mass: D. W. Müller and G. Sawitzki, "Excess mass estimates and tests for
multimodality", 1991).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxprof.base.units import percent, seconds
from jaxprof.base.values import frozen

if TYPE_CHECKING:
    import numpy as np


FEWEST_FOR_MODES = 20
"""Least number of samples in which modes are looked for."""
APART = 1.2
"""Least ratio of the modes that is worth reporting."""
LEAST_SHARE = 0.10
"""Least share of the samples in the lesser mode: fewer are outliers."""
_CHANCE = 1e-4
"""Largest probability of such a deep valley in samples of one mode. It is small because the clusters were chosen by
looking, and successive samples are correlated."""
_MOST_CUTS = 3
"""Largest number of cuts: outliers are split off at most twice, once on either side."""
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
    for _ in range(_MOST_CUTS):
        cut = first + _cut(np.log(ordered[first:last]))
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


def _cut(ordered: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
    """Return how many of the ordered values belong to the lower cluster: the cut with the largest variance between the
    two (N. Otsu, "A threshold selection method from gray-level histograms", 1979)."""
    import numpy as np

    count = len(ordered)
    below = np.arange(1, count)
    sums = np.cumsum(ordered)[:-1]
    means_apart = (ordered.sum() - sums) / (count - below) - sums / below
    return int(np.argmax(below * (count - below) * means_apart**2)) + 1


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
