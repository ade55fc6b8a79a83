from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from jaxprof.stats import change_points
from jaxprof.stats.changes import LONGEST, SHORTEST, _best_cut


def history(*levels: tuple[float, int], noise: float = 0.02, seed: int = 1) -> list[float]:
    """Medians of sessions (seconds): for each level, so many sessions about it."""
    random = np.random.default_rng(seed)
    return [level * math.exp(random.normal() * noise) for level, count in levels for _ in range(count)]


def test_a_lasting_change_is_found_where_it_happened() -> None:
    (found,) = change_points(history((0.010, 12), (0.012, 9)))
    assert found.index == 12
    assert found.before == pytest.approx(0.010, rel=0.02)
    assert found.after == pytest.approx(0.012, rel=0.02)
    assert found.ratio == pytest.approx(1 / 1.2, rel=0.03)
    assert found.p_value == 1 / 400


def test_several_changes_are_found_in_order_each_beside_its_neighbours() -> None:
    found = change_points(history((0.010, 12), (0.013, 10), (0.009, 14)))
    assert [one.index for one in found] == [12, 22]
    assert [round(one.after, 3) for one in found] == [0.013, 0.009]
    assert found[0].after == found[1].before


@pytest.mark.parametrize("seed", range(4))
def test_a_small_change_is_found_beside_a_large_one_before_a_long_time_without(seed: int) -> None:
    found = change_points(history((0.010, 8), (0.012, 8), (0.030, 30), noise=0.005, seed=seed))
    assert [one.index for one in found] == [8, 16]


def test_a_small_change_is_found_beside_a_part_that_is_too_short_for_one() -> None:
    assert [one.index for one in change_points(history((0.030, 5), (0.010, 10), (0.0105, 10), noise=0.002))] == [5, 15]


@pytest.mark.parametrize("slow", [1, 2])
def test_a_few_slow_sessions_are_no_change(slow: int) -> None:
    assert change_points(history((0.010, 15), (0.020, slow), (0.010, 15))) == []
    assert change_points(history((0.010, 15), (0.020, slow))) == []


def test_three_sessions_make_a_change() -> None:
    (found,) = change_points(history((0.010, 8), (0.020, 3), seed=2))
    assert found.index == 8
    assert change_points(history((0.010, 8), (0.020, 3), seed=2), significance=0.001) == []


def test_a_history_without_a_change_seldom_has_one() -> None:
    wrong = sum(bool(change_points(history((0.010, 14), seed=seed))) for seed in range(150))
    assert wrong <= 3


@pytest.mark.parametrize("correlation", [0.4, 0.8])
def test_sessions_that_resemble_the_ones_before_them_seldom_have_a_change(correlation: float) -> None:
    wrong = 0
    for seed in range(100):
        noise = np.random.default_rng(seed).normal(size=24)
        for at in range(1, 24):
            noise[at] = correlation * noise[at - 1] + math.sqrt(1 - correlation**2) * noise[at]
        wrong += bool(change_points([float(0.01 * math.exp(0.02 * one)) for one in noise]))
    assert wrong <= 1


def test_a_change_of_some_deviations_is_found_in_most_histories() -> None:
    right = 0
    for seed in range(40):
        found = change_points(history((0.010, 10), (0.0120, 8), seed=seed))
        right += len(found) == 1 and abs(found[0].index - 10) <= 1
    assert right >= 32


@pytest.mark.parametrize("count", range(2 * SHORTEST))
def test_a_short_history_has_none(count: int) -> None:
    assert change_points([0.01 + 0.01 * at for at in range(count)]) == []


def test_a_constant_history_has_none() -> None:
    assert change_points([0.01] * 30) == []


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_what_is_no_time_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="a history holds times"):
        change_points([0.01, bad, 0.01])


def test_of_a_long_history_the_newest_part_is_looked_at() -> None:
    values = [*([0.02] * 50), *([0.01] * (LONGEST - 40)), *([0.03] * 40)]
    assert [one.index for one in change_points(values)] == [LONGEST + 10]


def test_the_cut_is_that_of_the_definition() -> None:
    """The energy statistic written out: its terms are means over pairs of values."""
    values = np.random.default_rng(5).normal(size=11)
    values[7:] += 1.5

    def energy(cut: int, end: int) -> float:
        before, after = values[:cut], values[cut:end]
        across = np.mean([abs(x - y) for x in before for y in after])
        within = [np.mean([abs(x - y) for x, y in itertools.combinations(part, 2)]) for part in (before, after)]
        return float(len(before) * len(after) / end * (2 * across - sum(within)))

    cuts = [(energy(cut, end), cut) for cut in range(3, 9) for end in range(cut + 3, 12)]
    assert _best_cut(values) == (pytest.approx(max(cuts)[0]), max(cuts)[1])
