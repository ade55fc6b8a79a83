"""Two modes are said where there are two, and of one mode (skewed, drifting, with outliers) next to never."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from jaxprof.stats import two_modes

Make = Callable[[np.random.Generator, int], "np.ndarray"]


def wandering(random: np.random.Generator, count: int) -> np.ndarray:
    """Each sample is like the one before it, as when a machine's load changes slowly."""
    steps, value, values = random.standard_normal(count), 0.0, []
    for step in steps:
        value = 0.9 * value + step
        values.append(value)
    return np.exp(0.1 * np.array(values))


ONE_MODE: dict[str, Make] = {
    "normal": lambda random, n: 1 + 0.05 * random.standard_normal(n),
    "lognormal": lambda random, n: random.lognormal(0, 0.5, n),
    "widely lognormal": lambda random, n: random.lognormal(0, 1, n),
    "a floor with a tail": lambda random, n: 1 + random.exponential(0.5, n),
    "exponential": lambda random, n: 1e-6 + random.exponential(1, n),
    "uniform": lambda random, n: 1 + random.random(n),
    "drift": lambda random, n: np.linspace(1, 3, n) * (1 + 0.02 * random.standard_normal(n)),
    "decay": lambda random, n: 1 + 3 * np.exp(-10 * np.arange(n) / n) + 0.02 * random.standard_normal(n),
    "heavy tail": lambda random, n: 1 + 0.3 * random.pareto(1.5, n),
    "outliers": lambda random, n: np.where(random.random(n) < 0.03, 5, 1) * (1 + 0.03 * random.standard_normal(n)),
    "Student's, 2 degrees": lambda random, n: np.exp(0.05 * random.standard_t(2, n)),
    "Cauchy's": lambda random, n: 1 + 0.02 * np.abs(random.standard_cauchy(n)),
    "clock steps": lambda random, n: np.round(1 + 0.1 * random.standard_normal(n), 1),
    "wandering": wandering,
}
TWO_MODES: dict[str, Make] = {
    "2 and 6": lambda random, n: np.where(random.random(n) < 0.5, 2, 6) * (1 + 0.05 * random.standard_normal(n)),
    "4 of 5": lambda random, n: np.where(random.random(n) < 0.8, 2, 6) * random.lognormal(0, 0.1, n),
    "half as slow again": lambda random, n: np.where(random.random(n) < 0.6, 1, 1.5) * random.lognormal(0, 0.04, n),
    "a tail far beyond both": lambda random, n: np.where(
        random.random(n) < 0.05,
        9 + random.pareto(1, n),
        np.where(random.random(n) < 0.2, 2, 4) * random.lognormal(0, 0.08, n),
    ),
    "with outliers": lambda random, n: (
        np.where(random.random(n) < 0.03, 60, np.where(random.random(n) < 0.5, 2, 6)) * random.lognormal(0, 0.05, n)
    ),
}


def share_with_two(make: Make, count: int, tries: int) -> float:
    random = np.random.default_rng(5)
    return sum(two_modes(make(random, count).tolist()) is not None for _ in range(tries)) / tries


@pytest.mark.parametrize("count", [25, 80, 600])
@pytest.mark.parametrize("kind", ONE_MODE)
def test_one_mode_is_next_to_never_called_two(kind: str, count: int) -> None:
    assert share_with_two(ONE_MODE[kind], count, 300) <= 0.004


@pytest.mark.parametrize("kind", TWO_MODES)
def test_two_modes_are_seen(kind: str) -> None:
    assert share_with_two(TWO_MODES[kind], 400, 50) >= 0.9
    assert share_with_two(TWO_MODES[kind], 15, 50) == 0, "a dozen samples say nothing"


def test_what_is_said_of_them() -> None:
    random = np.random.default_rng(1)
    samples = np.where(np.arange(200) % 4 == 0, 6e-3, 2e-3) * (1 + 0.03 * random.standard_normal(200))
    found = two_modes(samples.tolist())
    assert found is not None
    assert found.low == pytest.approx(2e-3, rel=0.02)
    assert found.high == pytest.approx(6e-3, rel=0.02)
    assert found.low_share == pytest.approx(0.75)
    assert found.switches == 99
    assert 2.5e-3 < found.border < 6e-3


def test_a_change_once_and_for_all_is_told_from_taking_turns() -> None:
    random = np.random.default_rng(1)
    found = two_modes((np.repeat([2e-3, 6e-3], [150, 100]) * (1 + 0.03 * random.standard_normal(250))).tolist())
    assert found is not None
    assert found.switches == 1


@pytest.mark.parametrize("samples", [[], [1.0] * 100, [0.0] * 50 + [1.0] * 50, [float("nan")] * 100])
def test_samples_that_say_nothing(samples: list[float]) -> None:
    assert two_modes(samples) is None


def test_modes_that_are_close_or_of_few_samples_are_not_worth_saying() -> None:
    assert two_modes([1.0, 1.001] * 20 + [1.1, 1.101] * 20) is None
    assert two_modes([1.0, 1.01] * 50 + [3.0] * 8) is None
    assert two_modes([1.0, 1.01] * 40 + [3.0, 3.03] * 10) is not None


def test_a_valley_holds_a_quarter_of_the_lesser_mode_at_most() -> None:
    both = [1.0] * 100 + [3.0] * 100
    assert two_modes([*both, *[2.0] * 25]) is not None
    assert two_modes([*both, *[2.0] * 26]) is None
    assert two_modes([*both, *[1.7] * 26]) is None, "halfway is the middle third of the way"
    assert two_modes([*both, *[1.6] * 26]) is not None


def test_a_valley_that_chance_makes_once_in_ten_thousand_times_is_one() -> None:
    """Of one mode, each sample of the lesser one and of the valley falls in either with the same chance."""
    for lesser, between, seen in ((13, 0, False), (14, 0, True), (16, 1, False), (17, 1, True)):
        found = two_modes([1.0] * lesser + [2.0] * between + [3.0] * 30)
        assert (found is not None) == seen, (lesser, between, "chance: (1 + n + ...) / 2 ** n")


def test_the_lesser_mode_has_a_tenth_of_the_samples_and_the_slower_is_a_fifth_slower() -> None:
    assert two_modes([1.0] * 180 + [3.0] * 20) is not None
    assert two_modes([1.0] * 181 + [3.0] * 19) is None
    assert two_modes([1.0] * 20 + [3.0] * 180) is not None
    assert two_modes([1.0] * 19 + [3.0] * 181) is None
    assert two_modes([1.0] * 50 + [1.21] * 50) is not None
    assert two_modes([1.0] * 50 + [1.19] * 50) is None
