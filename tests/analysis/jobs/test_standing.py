"""What stands out in a grid of steps, and what does not: samples decide how much of a difference is chance."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from jaxprof.analysis.jobs.step_grid import RATIOS, UNKNOWN, StepGrid, StepOutliers, lost_seconds, step_outliers

NAN = float("nan")


def seen(seconds: ArrayLike, samples: float = NAN) -> StepOutliers:
    """Four columns of ten steps each, unless `seconds` has others."""
    values = np.array(seconds)
    count = values.shape[1]
    grid = StepGrid(
        tuple(range(len(values))),
        np.arange(count) * 10,
        np.full(count, 10),
        values,
        np.where(np.isnan(values), 0.0, samples),
        np.ones(values.shape),
        "step",
        "own",
    )
    return step_outliers(grid)


def test_levels_are_those_of_the_ratio():
    rows = [[0.0] * 7, [0.0] * 7, [-0.5, 0.04, 0.06, 0.12, 0.3, 0.6, 1.5]]
    assert seen(rows).levels.tolist() == [[0] * 7, [0] * 7, [0, 0, 1, 2, 3, 4, len(RATIOS)]]
    assert seen(rows).ratio[2, 6] == pytest.approx(2.5)


def test_what_few_samples_would_show_by_chance_does_not_stand_out():
    rows = [[0.02] * 4, [0.02] * 4, [0.3] * 4]
    assert seen(rows, 5).levels.max() == 0
    assert seen(rows, 100).levels[2].tolist() == [3] * 4


def test_the_unknown_is_a_level_of_its_own_and_not_the_lowest():
    found = seen([[0.1, NAN], [0.1, NAN], [0.1, 0.9]])
    assert found.levels.tolist() == [[0, UNKNOWN], [0, UNKNOWN], [0, 0]], "one process alone is not compared"
    assert lost_seconds(found) == {}


@pytest.mark.parametrize("samples", [100, NAN])
def test_a_process_that_is_above_the_others_loses_the_difference(samples):
    rows = [[0.02] * 4, [0.02] * 4, [0.02, 0.02, 0.42, 0.42]]
    assert lost_seconds(seen(rows, samples)) == {2: pytest.approx(8.0)}


@pytest.mark.parametrize("count", [4, 64])
def test_nobody_loses_time_where_all_are_alike(count):
    """Twenty jobs of samples of one share, which differ by chance alone."""
    jobs = [np.random.default_rng(seed).binomial(50, 0.1, (count, 60)) / 50 for seed in range(20)]
    assert sum(len(lost_seconds(seen(shares, 50))) for shares in jobs) <= 1
    jobs[1][3] += 0.05
    assert list(lost_seconds(seen(jobs[1], 50))) == [3], "a small difference over many columns"


def test_of_two_each_is_compared_with_the_other():
    """Their common median would halve what one is above it."""
    found = seen([[0.02, NAN], [0.42, 0.42]], 100)
    assert found.ratio[1, 0] == pytest.approx(1.4)
    assert found.levels.tolist() == [[0, UNKNOWN], [3, 0]]
    assert lost_seconds(found) == {1: pytest.approx(4.0)}
    assert not lost_seconds(seen([[0.1] * 60, [0.11] * 60], 50)), "that is chance"


def test_of_three_one_that_has_less_to_do_makes_no_other_late():
    assert seen([[0.5] * 4, [0.5] * 4, [0.0] * 4]).levels.max() == 0
