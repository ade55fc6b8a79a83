"""Find where a history of medians changed for good, apart from the variation between sessions.

E-divisive (D. S. Matteson and N. A. James, "A nonparametric approach for multiple change point analysis of multivariate
data", 2014), which MongoDB, Hunter and Apache Otava use on benchmark histories, looks for the cut that maximises the
energy distance between the values before and after it, tests it by permuting, then repeats this within both parts. It
supposes independent values, and sessions are not: a machine is slower for an afternoon. So a step must also explain the
values much better than correlated neighbours do: the ratio of the two likelihoods must exceed those of random walks, in
which only neighbours are related. A cut that passes the permutation test but not this one is neither a change nor a
constant history: there is no verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from typing import TYPE_CHECKING

from jaxprof.stats.turns import middle

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

SHORTEST = 3
"""Least number of values between two changes: one slow session, or two, are no change. Three are, after eight."""
SIGNIFICANCE = 0.01
"""Probability of reporting a change in a history without one."""
PERMUTATIONS = 399
LONGEST = 200
"""Number of the newest values examined of a longer history: the work grows with the square of their number."""
_SEED = 20_140_101
_CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Correlations of neighbours, of which the likeliest is taken; a random walk is near the last of them."""
_SCATTER = (0.0, 0.2, 0.5)
"""Shares of the variance that belong to each value alone, of which the likeliest is taken, too."""
_MOST_WALKS, _VALUES_WALKED = 999, 24_000
"""Number of random walks of each sort, and of values in all of them: 120 long walks take as long as 999 short ones."""
_WALKS = (0.0, 1.0)
"""Scatter of each value of the random walks with which a step is compared, in units of their steps. No autoregressive
series, with any correlation and scatter, has larger ratios of likelihoods than the larger of these two."""


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A lasting change in a series of times."""

    index: int
    """Index of the first value after the change."""
    before: float
    """Median from the previous change (or the beginning) to this one, in the values' unit."""
    after: float
    """Median from this change to the next one, or the end."""
    p_value: float
    """Share of histories without a change that have as large a one: the greater of the shares for permuted values and
    for correlated ones."""

    @property
    def ratio(self) -> float:
        """`before` over `after`, as for a comparison: above 1, it became faster."""
        return self.before / self.after


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes in a series of times."""

    found: tuple[ChangePoint, ...] = ()
    """The changes, in order."""
    move_together: bool = False
    """Whether there is a cut that independent values would hardly have, but correlated neighbours do: whether something
    changed there is unknown."""


def change_points(values: Sequence[float], significance: float = SIGNIFICANCE) -> Changes:
    """Return the lasting changes of a series of times (the medians of successive sessions, in any unit).

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
    move_together = False
    while True:
        parts = [logs[low:high] for low, high in pairwise(edges)]
        cuts = [_best_cut(part) for part in parts]
        where = max(range(len(parts)), key=lambda part: cuts[part][0])
        largest, cut, _ = cuts[where]
        if largest <= 0:
            break
        p_value = _p_value(parts, largest, significance, random)
        if p_value > significance:
            break
        p_value = max(p_value, _p_value_of_step(parts[where]))
        if p_value > significance:
            move_together = True
            break
        surety[edges[where] + cut] = p_value
        edges = sorted([*edges, edges[where] + cut])
    medians = [
        middle([float(value) for value in values[first + low : first + high]])
        for low, high in pairwise(edges)
        if high > low
    ]
    found = (
        ChangePoint(first + edge, medians[at], medians[at + 1], surety[edge]) for at, edge in enumerate(edges[1:-1])
    )
    return Changes(tuple(found), move_together)


def _p_value(
    parts: Sequence[NDArray[np.float64]], largest: float, significance: float, random: np.random.Generator
) -> float:
    """Return the share of permutations, each part on its own, whose largest cut is no smaller. Counting ends once that
    is above `significance`, which saves nearly all the work for a history without a change."""
    as_large = 1
    for _ in range(PERMUTATIONS):
        as_large += max(_best_cut(random.permutation(part))[0] for part in parts) >= largest
        if as_large > significance * (1 + PERMUTATIONS):
            break
    return as_large / (1 + PERMUTATIONS)


def _p_value_of_step(part: NDArray[np.float64]) -> float:
    """Return the share of random walks of this length that a step explains as well, the greater of two sorts."""
    (ratio,) = _step_ratios(part[None, :])
    return max((1 + int((walks >= ratio).sum())) / (1 + len(walks)) for walks in _ratios_of_walks(len(part)))


@lru_cache(maxsize=64)
def _ratios_of_walks(count: int) -> tuple[NDArray[np.float64], ...]:
    import numpy as np

    random = np.random.default_rng(_SEED)
    shape = min(_MOST_WALKS, _VALUES_WALKED // count), count
    walks = (random.normal(size=shape).cumsum(axis=1) + scatter * random.normal(size=shape) for scatter in _WALKS)
    return tuple(map(_step_ratios, walks))


def _step_ratios(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each row of `series`, the logarithm of the ratio of two likelihoods: of correlated neighbours about a
    level with one step, wherever it fits best, and of such neighbours about one level. Both are normal, each with the
    likeliest correlation and scatter (an autoregressive process of the first order seen through noise).

    A row counts until the end of its best cut, so that a step that is undone later is found, too."""
    import numpy as np

    ends = np.array([_best_cut(row)[2] for row in series])
    has_cut = ends > 0
    ratios = np.zeros(len(series))
    if has_cut.any():
        ratios[has_cut] = _ratios_until(series[has_cut], ends[has_cut])
    return ratios


def _ratios_until(series: NDArray[np.float64], ends: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the ratios of rows that count until their `ends`. The matrix that makes a series independent is lower
    triangular: it does the same to the first values of the series, so that all rows share its products."""
    import numpy as np

    count = series.shape[1]
    inside = np.arange(count) < ends[:, None]
    series = series - (series * inside).sum(axis=1, keepdims=True) / ends[:, None]
    smallest = np.maximum((series * series * inside).sum(axis=1), np.finfo(np.float64).tiny) * _EXACT
    cuts = np.arange(SHORTEST, count - SHORTEST + 1)
    is_cut = cuts <= ends[:, None] - SHORTEST
    steps = (np.arange(count)[:, None] >= cuts).astype(np.float64)
    level, stepped = np.full(len(series), -np.inf), np.full(len(series), -np.inf)
    for whitening, sizes in _whitenings(count):
        constant, shapes = whitening.sum(axis=1), whitening @ steps
        lengths, size = np.cumsum(constant**2), np.cumsum(sizes)[ends - 1]
        shape_lengths = np.cumsum(shapes**2, axis=0)
        shape_lengths -= np.cumsum(shapes * constant[:, None], axis=0) ** 2 / lengths[:, None]
        values = (series @ whitening.T) * inside
        values -= (values @ constant / lengths[ends - 1])[:, None] * constant * inside
        left = (values * values).sum(axis=1)
        explained = np.zeros(is_cut.shape)
        np.divide((values @ shapes) ** 2, shape_lengths[ends - 1], out=explained, where=is_cut)
        remainder = left - explained.max(axis=1)
        np.maximum(level, -ends / 2 * np.log(np.maximum(left, smallest)) - size, out=level)
        np.maximum(stepped, -ends / 2 * np.log(np.maximum(remainder, smallest)) - size, out=stepped)
    ratios: NDArray[np.float64] = stepped - level
    return ratios


_EXACT = 1e-12
"""Share of the variance below which the remainder is rounding."""


@lru_cache(maxsize=4)
def _whitenings(count: int) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]:
    """Return, by correlation and scatter, the matrix that makes such values independent, and the logarithms of the
    standard deviations of the values, each given those before it."""
    import numpy as np

    apart = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    whitenings = []
    for correlation, scatter in product(_CORRELATIONS, _SCATTER):
        if scatter and not correlation:
            continue  # scatter alone, again
        root = np.linalg.cholesky((1 - scatter) * correlation**apart + scatter * np.eye(count))
        whitenings.append((np.linalg.inv(root), np.log(root.diagonal())))
    return tuple(whitenings)


def _best_cut(values: NDArray[np.float64]) -> tuple[float, int, int]:
    """Return the largest energy distance between the values before a cut and those from it to some later end, weighted
    by their numbers, and the positions of that cut and that end; zeros if there are too few values to cut."""
    import numpy as np

    count = len(values)
    if count < 2 * SHORTEST:
        return 0.0, 0, 0
    # sums[i, j]: all distances between the first i values and the first j.
    sums = np.zeros((count + 1, count + 1))
    np.cumsum(np.abs(values[:, None] - values[None, :]).cumsum(axis=0), axis=1, out=sums[1:, 1:])
    own = sums.diagonal()[SHORTEST : count - SHORTEST + 1, None]
    to_end = sums[SHORTEST : count - SHORTEST + 1, 2 * SHORTEST :]
    whole = sums.diagonal()[None, 2 * SHORTEST :]
    of_across, of_own, of_later, refused = _weights(count)
    weighed = of_across * (to_end - own) - of_own * own - of_later * (whole - 2 * to_end + own) + refused
    cut, end = divmod(int(np.argmax(weighed)), weighed.shape[1])
    return float(weighed[cut, end]), SHORTEST + cut, 2 * SHORTEST + end


@lru_cache(maxsize=8)
def _weights(count: int) -> tuple[NDArray[np.float64], ...]:
    """Return, by cut and end, the weights of distances across, before and after the cut, with minus infinity for ends
    that are too near. They depend on the number of values alone, so all permutations share them."""
    import numpy as np

    cuts = np.arange(SHORTEST, count - SHORTEST + 1)[:, None]
    ends = np.arange(2 * SHORTEST, count + 1)[None, :]
    before, after = cuts, np.maximum(ends - cuts, 2)
    share = before * after / (before + after)
    refused = np.where(ends - cuts >= SHORTEST, 0.0, -np.inf)
    return 2 * share / (before * after), share / (before * (before - 1)), share / (after * (after - 1)), refused
