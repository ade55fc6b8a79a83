"""What stands out in a grid of steps, and what does not: samples decide how much of a difference is chance."""

import numpy as np
import pytest

from golden import figures_text, held_cases
from jaxprof.analysis.jobs.step_grid import StepGrid, lost_seconds, step_outliers

NAN = float("nan")


def seen(seconds, samples=NAN):
    """Four columns of ten steps each, unless `seconds` has others."""
    values = np.array(seconds)
    seen_samples, ratio = np.where(np.isnan(values), 0.0, samples), np.ones(values.shape)
    tens = np.full(values.shape[1], 10)
    grid = StepGrid(tuple(range(len(values))), np.cumsum(tens) - 10, tens, values, seen_samples, ratio, "step", "own")
    return step_outliers(grid)


BESIDE = [[0.02] * 4, [0.02] * 4]
CASES = {
    "levels are those of the ratio": ([[0.0] * 7, [0.0] * 7, [-0.5, 0.04, 0.06, 0.12, 0.3, 0.6, 1.5]], NAN),
    "few samples, which may show it by chance": ([*BESIDE, [0.3] * 4], 5),
    "many samples": ([*BESIDE, [0.3] * 4], 100),
    "one that has less to do makes no other late": ([[0.5] * 4, [0.5] * 4, [0.0] * 4], 5),
    "the unknown is a level of its own, and one process alone is not compared": (
        [[0.1, NAN], [0.1, NAN], [0.1, 0.9]],
        NAN,
    ),
    "above the others it loses the difference": ([*BESIDE, [0.02, 0.02, 0.42, 0.42]], 100),
    "above the others by whole steps": ([*BESIDE, [0.02, 0.02, 0.42, 0.42]], NAN),
    "of two each is compared with the other, not with their common median": ([[0.02, NAN], [0.42, 0.42]], 100),
}


def test_what_stands_out_and_what_it_loses():
    told = {}
    for case, given in CASES.items():
        found = seen(*given)
        told[case] = figures_text({"lost": lost_seconds(found), "levels": found.levels, "ratio": found.ratio})
    held_cases("outliers_of_grids.txt", told)


@pytest.mark.parametrize("count", [4, 64])
def test_nobody_loses_time_where_all_are_alike(count):
    """Twenty jobs of samples of one share, which differ by chance alone."""
    jobs = [np.random.default_rng(seed).binomial(50, 0.1, (count, 60)) / 50 for seed in range(20)]
    assert sum(len(lost_seconds(seen(shares, 50))) for shares in jobs) <= 1
    jobs[1][3] += 0.05
    assert list(lost_seconds(seen(jobs[1], 50))) == [3], "a small difference over many columns"
    assert not lost_seconds(seen([[0.1] * 60, [0.11] * 60], 50)), "of two that may be chance"
