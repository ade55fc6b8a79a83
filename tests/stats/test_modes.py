"""Two modes are said where there are two, and of one mode (skewed, drifting, with outliers) next to never."""

import numpy as np
import pytest

from golden import figures_text, held
from jaxprof.stats import two_modes


def wandering(random, count):
    """Each sample is like the one before it, as when a machine's load changes slowly."""
    values = random.standard_normal(count)
    for at in range(1, count):
        values[at] += 0.9 * values[at - 1]
    return np.exp(0.1 * values)


ONE_MODE = {
    "normal": lambda random, n: 1 + 0.05 * random.standard_normal(n),
    "lognormal": lambda random, n: random.lognormal(0, 0.5, n),
    "drift": lambda random, n: np.linspace(1, 3, n) * (1 + 0.02 * random.standard_normal(n)),
    "decay": lambda random, n: 1 + 3 * np.exp(-10 * np.arange(n) / n) + 0.02 * random.standard_normal(n),
    "heavy tail": lambda random, n: 1 + 0.3 * random.pareto(1.5, n),
    "outliers": lambda random, n: np.where(random.random(n) < 0.03, 5, 1) * (1 + 0.03 * random.standard_normal(n)),
    "wandering": wandering,
}
TWO_MODES = {
    "2 and 6": lambda random, n: np.where(random.random(n) < 0.5, 2, 6) * (1 + 0.05 * random.standard_normal(n)),
    "half as slow again": lambda random, n: np.where(random.random(n) < 0.6, 1, 1.5) * random.lognormal(0, 0.04, n),
}


def share_with_two(make, count, tries):
    random = np.random.default_rng(5)
    return sum(two_modes(make(random, count).tolist()) is not None for _ in range(tries)) / tries


@pytest.mark.parametrize("count", [25, 600])
@pytest.mark.parametrize("kind", ONE_MODE)
def test_one_mode_is_next_to_never_called_two(kind, count):
    assert share_with_two(ONE_MODE[kind], count, 300) <= 0.004


@pytest.mark.parametrize("kind", TWO_MODES)
def test_two_modes_are_seen(kind):
    assert share_with_two(TWO_MODES[kind], 400, 50) >= 0.9
    assert share_with_two(TWO_MODES[kind], 15, 50) == 0, "a dozen samples say nothing"


def test_what_is_said_of_them():
    """A change once and for all is told from taking turns."""
    random = np.random.default_rng(1)
    turns = np.where(np.arange(200) % 4 == 0, 6e-3, 2e-3) * (1 + 0.03 * random.standard_normal(200))
    held("modes.txt", figures_text(two_modes(turns.tolist()), two_modes(np.sort(turns).tolist())))


def mixed(**counts):
    """So many samples of each value: `_1_21=50` are 50 of 1.21."""
    return [float(name[1:].replace("_", ".")) for name, count in counts.items() for _ in range(count)]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (mixed(_1=40, _1_001=40, _1_1=40), mixed(_1=40, _1_5=40)),  # close
        # a valley holds a quarter of the lesser mode at most; halfway is the middle third of the way
        (mixed(_1=100, _2=26, _3=100), mixed(_1=100, _2=25, _3=100)),
        (mixed(_1=100, _1_7=26, _3=100), mixed(_1=100, _1_6=26, _3=100)),
        # chance makes a valley once in ten thousand times: (1 + n + ...) / 2 ** n
        (mixed(_1=13, _3=30), mixed(_1=14, _3=30)),
        (mixed(_1=16, _2=1, _3=30), mixed(_1=17, _2=1, _3=30)),
        # the lesser mode has a tenth of the samples
        (mixed(_1=181, _3=19), mixed(_1=180, _3=20)),
        (mixed(_1=19, _3=181), mixed(_1=20, _3=180)),
        # the slower one is a fifth slower
        (mixed(_1=50, _1_19=50), mixed(_1=50, _1_21=50)),
        ([], mixed(_1=50, _2=50)),
        ([0.0] * 50 + [1.0] * 50, mixed(_1=50, _2=50)),
        ([float("nan")] * 100, mixed(_1=50, _2=50)),
    ],
)
def test_samples_of_one_mode_and_near_ones_of_two(one, two):
    assert two_modes(one) is None
    assert two_modes(two) is not None
