"""Where in a history of medians something changed for good, as opposed to what varies from session to session.

E-divisive (D. S. Matteson and N. A. James, "A nonparametric approach for multiple change point analysis of multivariate
data", 2014), which MongoDB, Hunter and Apache Otava use on benchmark histories: the cut that maximises the energy
distance between the values before and after it, tested by permuting, then again within both parts. That supposes values
that are independent of each other, and sessions are not: a machine is slower for an afternoon. So a cut must also be
larger than those of histories without a change in which each value resembles the one before it (an autoregressive
process), by more than these values seem to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from jaxprof.stats.turns import middle

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

SHORTEST = 3
"""The fewest values between two changes: one slow session, or two, are no change. Three are, after eight others."""
SIGNIFICANCE = 0.01
"""The chance that a history without a change is said to have one."""
PERMUTATIONS = 399
LONGEST = 200
"""Of a longer history the newest values are looked at: the work grows with the square of their number."""
_SEED = 20_140_101
_DOUBT = 0.7
"""Added to the estimated correlation of neighbours, which a few dozen values tell no better."""
_HIGHEST_CORRELATION = 0.95


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A lasting change in a series of times."""

    index: int
    """The first value after the change."""
    before: float
    """The median from the change before it (or the beginning) to this one, in the values' unit."""
    after: float
    """The median from this change to the next one, or the end."""
    p_value: float
    """The share of histories without a change, permuted or of values that depend on each other, with as large a one:
    the greater of the two."""

    @property
    def ratio(self) -> float:
        """`before` over `after`, as for a comparison: above 1, it became faster."""
        return self.before / self.after


def change_points(values: Sequence[float], significance: float = SIGNIFICANCE) -> list[ChangePoint]:
    """The lasting changes of a series of times (the medians of successive sessions, in any unit), in their order.

    Raises ValueError for values that are not times: zero, negative, infinite, not a number.
    """
    import numpy as np

    if not all(math.isfinite(value) and value > 0 for value in values):
        raise ValueError("a history holds times: finite and above zero")
    first = max(0, len(values) - LONGEST)
    logs = np.log(np.asarray(values[first:], dtype=np.float64))
    random = np.random.default_rng(_SEED)
    edges = [0, len(logs)]
    surety: dict[int, float] = {}
    while True:
        parts = [logs[low:high] for low, high in pairwise(edges)]
        cuts = [_best_cut(part) for part in parts]
        where = max(range(len(parts)), key=lambda part: cuts[part][0])
        largest, cut = cuts[where]
        if largest <= 0:
            break
        p_value = _p_value(parts, largest, significance, random)
        if p_value <= significance:
            p_value = max(p_value, _p_value_of_neighbours(parts[where], largest))
        if p_value > significance:
            break
        surety[edges[where] + cut] = p_value
        edges = sorted([*edges, edges[where] + cut])
    medians = [
        middle([float(value) for value in values[first + low : first + high]])
        for low, high in pairwise(edges)
        if high > low
    ]
    return [
        ChangePoint(first + edge, medians[at], medians[at + 1], surety[edge]) for at, edge in enumerate(edges[1:-1])
    ]


def _p_value(
    parts: Sequence[NDArray[np.float64]], largest: float, significance: float, random: np.random.Generator
) -> float:
    """The share of permutations, each part on its own, whose largest cut is no smaller. Counting ends once that is
    above `significance`, which saves nearly all the work for a history without a change."""
    as_large = 1
    for _ in range(PERMUTATIONS):
        as_large += max(_best_cut(random.permutation(part))[0] for part in parts) >= largest
        if as_large > significance * (1 + PERMUTATIONS):
            break
    return as_large / (1 + PERMUTATIONS)


def _p_value_of_neighbours(part: NDArray[np.float64], largest: float) -> float:
    """The share of histories whose values depend on those before them, without a change, with as large a cut.

    The dependence and the scale are those of the differences of near values, of which a change alters a fifth at most.
    Of values x(t) with correlation r, x(t+k) - x(t) has 1 + r + ... + r^(k-1) times the variance of x(t+1) - x(t).
    Several lags, because sessions that were measured on one day, and differ from those of another, show it only where
    most pairs are of two days.
    """
    import numpy as np

    lags = range(1, max(2, len(part) // 6) + 1)
    step, *longer = (float(np.median(np.abs(part[lag:] - part[:-lag]))) for lag in lags)
    if step <= 0:
        return 0.0
    estimate = max(_correlation((size / step) ** 2, lag) for lag, size in zip(lags[1:], longer, strict=True))
    correlation = min(_HIGHEST_CORRELATION, estimate + _DOUBT)
    simulated = _cuts_of_neighbours(len(part), round(correlation, 2))
    return (1 + int((simulated >= largest / step).sum())) / (1 + len(simulated))


def _correlation(growth: float, lag: int) -> float:
    """The correlation of neighbours, at least 0, of which differences at this lag have `growth` times the variance of
    those of neighbours."""
    steps = (number / 100 for number in range(1, 100))
    return next((step - 0.01 for step in steps if sum(step**power for power in range(lag)) > growth), 0.99)


@lru_cache(maxsize=256)
def _cuts_of_neighbours(count: int, correlation: float) -> NDArray[np.float64]:
    """The largest cuts of simulated histories without a change, in units of the median difference of neighbours."""
    import numpy as np

    noise = np.random.default_rng(_SEED).normal(size=(PERMUTATIONS, count))
    values = noise.copy()
    for at in range(1, count):
        values[:, at] = correlation * values[:, at - 1] + math.sqrt(1 - correlation**2) * noise[:, at]
    steps = np.median(np.abs(np.diff(values, axis=1)), axis=1)
    cuts: NDArray[np.float64] = np.array([_best_cut(row)[0] for row in values]) / steps
    return cuts


def _best_cut(values: NDArray[np.float64]) -> tuple[float, int]:
    """The largest energy distance between the values before a cut and those from it to some later end, weighed by their
    numbers, and where that cut is; 0 where there are too few values to cut."""
    import numpy as np

    count = len(values)
    if count < 2 * SHORTEST:
        return 0.0, 0
    # sums[i, j]: all distances between the first i values and the first j.
    sums = np.zeros((count + 1, count + 1))
    np.cumsum(np.abs(values[:, None] - values[None, :]).cumsum(axis=0), axis=1, out=sums[1:, 1:])
    own = sums.diagonal()[SHORTEST : count - SHORTEST + 1, None]
    to_end = sums[SHORTEST : count - SHORTEST + 1, 2 * SHORTEST :]
    whole = sums.diagonal()[None, 2 * SHORTEST :]
    of_across, of_own, of_later, refused = _weights(count)
    weighed = of_across * (to_end - own) - of_own * own - of_later * (whole - 2 * to_end + own) + refused
    at = int(np.argmax(weighed.max(axis=1)))
    return float(weighed[at].max()), SHORTEST + at


@lru_cache(maxsize=8)
def _weights(count: int) -> tuple[NDArray[np.float64], ...]:
    """By cut and end, what the distances across, before and after the cut weigh; and minus infinity for ends that are
    too near. They depend on the number of values alone, and each permutation has the same."""
    import numpy as np

    cuts = np.arange(SHORTEST, count - SHORTEST + 1)[:, None]
    ends = np.arange(2 * SHORTEST, count + 1)[None, :]
    before, after = cuts, np.maximum(ends - cuts, 2)
    share = before * after / (before + after)
    refused = np.where(ends - cuts >= SHORTEST, 0.0, -np.inf)
    return 2 * share / (before * after), share / (before * (before - 1)), share / (after * (after - 1)), refused
