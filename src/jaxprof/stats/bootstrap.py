"""The bootstrap distribution of a sample median, drawn without resampling the samples.

A bootstrap sample of size n draws n indices uniformly; its median is the sample's order statistic at the median of
those indices. The median of n uniform variables is Beta distributed, so the index can be drawn directly: the same
distribution as the textbook bootstrap (B. Efron, "Bootstrap Methods: Another Look at the Jackknife", 1979), at the
price of one random number for each draw, whatever n is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

DRAWS = 9999
SEED = 20_260_101
"""Fixed, so that the same samples give the same interval everywhere."""


def bootstrap_medians(samples: Sequence[float], draws: int = DRAWS, seed: int = SEED) -> NDArray[np.float64]:
    """Return `draws` bootstrap replicates of the median of `samples`, shape (draws,), in the samples' unit.

    Raises ValueError where there are no samples.
    """
    import numpy as np

    values = np.sort(np.asarray(samples, dtype=np.float64))
    n = len(values)
    if n == 0:
        raise ValueError("no samples")
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
