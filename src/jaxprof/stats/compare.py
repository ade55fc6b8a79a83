"""How much faster: the ratio of two medians, with the interval that both samples' noise gives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from jaxprof.stats.bootstrap import SEED, bootstrap_medians
from jaxprof.stats.summary import FEWEST_FOR_INTERVAL

if TYPE_CHECKING:
    from collections.abc import Sequence

Verdict = Literal["faster", "slower", "cannot be told apart", "too few samples"]


@dataclass(frozen=True, slots=True)
class Speedup:
    """`ratio` is the baseline's median over the other's: above 1, the other is faster. Bounds are 95 %."""

    ratio: float
    low: float | None
    high: float | None

    @property
    def verdict(self) -> Verdict:
        """What the interval allows to say."""
        if self.low is None or self.high is None:
            return "too few samples"
        if self.low > 1:
            return "faster"
        return "slower" if self.high < 1 else "cannot be told apart"


def speedup(baseline: Sequence[float], other: Sequence[float]) -> Speedup | None:
    """The speed-up of `other` over `baseline` (samples in seconds); None where either has none or a median of 0."""
    if not baseline or not other:
        return None
    below = float(np.median(np.asarray(other)))
    if below <= 0:
        return None
    ratio = float(np.median(np.asarray(baseline))) / below
    if min(len(baseline), len(other)) < FEWEST_FOR_INTERVAL:
        return Speedup(ratio, None, None)
    replicates = bootstrap_medians(baseline, seed=SEED) / bootstrap_medians(other, seed=SEED + 1)
    low, high = np.percentile(replicates, [2.5, 97.5])
    return Speedup(ratio, float(low), float(high))
