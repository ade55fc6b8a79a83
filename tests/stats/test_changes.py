"""A limit on a time: decided by the whole interval, and by nothing else."""

import itertools
import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import figures_text, held_cases
from jaxprof.stats.changes import SHORTEST, _best_cut, change_points
from jaxprof.stats.comparison import compare, compare_apart, refuse
from jaxprof.stats.growth import growth, growth_interval, judge_growth
from kept_histories import medians
from stats.machines import neighbours
from stats.test_comparison import launches

SLOW = (0.020, 2)
HISTORIES = {
    "a lasting change": medians((0.010, 12), (0.012, 9)),
    "a small change beside a large one before a long time without": medians(
        (0.010, 8), (0.012, 8), (0.030, 30), noise=0.005, seed=3
    ),
    "beside a part that is too short for one": medians((0.030, 5), (0.010, 10), (0.0105, 10), noise=0.002),
    "a few slow sessions are no change": medians((0.010, 15), SLOW, (0.010, 15)),
    "nor are they at the end": medians((0.010, 15), SLOW),
    "three are": medians((0.010, 8), (0.020, 3), seed=2),
    "a step that is undone later is two changes": medians((0.010, 12), (0.012, 8), (0.010, 12), seed=3),
    "several, each beside its neighbours": medians((0.010, 12), (0.013, 10), (0.009, 14)),
    "too short": medians((0.010, SHORTEST), (0.020, SHORTEST - 1), noise=0),
    "constant": medians((0.010, 30), noise=0),
}


def test_where_a_history_changed():
    held_cases("changes.txt", {case: figures_text(*change_points(of).found) for case, of in HISTORIES.items()})
    assert change_points(HISTORIES["three are"], significance=0.001).found == ()
    assert change_points(HISTORIES["a lasting change"]).found[0].ratio == pytest.approx(1 / 1.2, rel=0.03)


def verdicts(series):
    """In how many histories a change is found, and in how many there is no verdict."""
    histories = [np.exp(0.02 * np.array(series(np.random.default_rng(seed)))).tolist() for seed in range(40)]
    found = [change_points(each) for each in histories]
    return sum(bool(one.found) for one in found), sum(one.move_together for one in found)


@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.9, 1.0])
def test_a_history_without_a_change_has_none_however_much_neighbours_resemble_each_other(correlation):
    false, unclear = verdicts(lambda random: neighbours(random, 24, correlation))
    assert false <= 1
    assert (unclear >= 20) == (correlation > 0.6), "they seem to have one, and whether they do is not said"


def test_a_step_of_five_deviations_is_found():
    found, _ = verdicts(lambda random: [5.0 * (at >= 12) + value for at, value in enumerate(random.normal(size=24))])
    assert found >= 32


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_what_is_no_time_is_refused(bad):
    with pytest.raises(ValueError, match="a history holds times"):
        change_points([0.01, bad, 0.01])


def test_of_a_long_history_the_newest_part_is_looked_at(monkeypatch):
    monkeypatch.setattr("jaxprof.stats.changes.LONGEST", 30)
    assert [one.index for one in change_points([*([0.02] * 50), *([0.01] * 18), *([0.03] * 12)]).found] == [68]


def test_the_cut_is_that_of_the_definition():
    """The energy statistic written out: its terms are means over pairs of values."""
    values = np.random.default_rng(5).normal(size=11)
    values[7:] += 1.5

    def energy(cut, end):
        before, after = values[:cut], values[cut:end]
        across = np.mean([abs(x - y) for x in before for y in after])
        within = [np.mean([abs(x - y) for x, y in itertools.combinations(part, 2)]) for part in (before, after)]
        return float(len(before) * len(after) / end * (2 * across - sum(within)))

    cuts = [(energy(cut, end), cut, end) for cut in range(3, 9) for end in range(cut + 3, 12)]
    assert _best_cut(values) == (pytest.approx(max(cuts)[0]), *max(cuts)[1:])


def grown(*by, wobble=0.004):
    """Each launch has this growth."""
    return compare(launches(*(1 / (1 + each) for each in by), wobble=wobble))


@pytest.mark.parametrize(
    ("by", "most", "state"),
    [
        ((0.10, 0.11, 0.105), 0.05, "passed"),
        ((0.10, 0.11, 0.105), 0.20, "within"),
        ((-0.30, -0.31, -0.305), 0.05, "within"),
        ((0.04, 0.06, 0.05), 0.05, "undecided"),
        ((0.0, 0.3, -0.2), 0.05, "undecided"),
        # one launch decides only what lies far from the limit
        ((0.12,), 0.05, "undecided"),
        ((0.30,), 0.05, "passed"),
        ((0.0,), 0.05, "undecided"),
        ((0.0,), 0.30, "within"),
    ],
)
def test_the_whole_interval_decides(by, most, state):
    times = grown(*by)
    verdict = judge_growth(times, most)
    assert (verdict.state, bool(verdict.reason)) == (state, state == "undecided")
    assert ("one launch" in verdict.reason) == (len(by) == 1 and state == "undecided")
    low, high = growth_interval(times)
    assert low < growth(times) < high
    assert len(by) == 1 or (low > most, high < most) == (state == "passed", state == "within")


@given(st.floats(-0.5, 1.0), st.floats(0.0, 0.5), st.floats(0.001, 0.2), st.integers(2, 8))
def test_a_larger_limit_is_never_worse(by, most, spread, count):
    noise = Random(5)
    times = grown(*(by + spread * noise.uniform(-0.5, 0.5) for _ in range(count)))
    order = ["passed", "undecided", "within"]
    states = [order.index(judge_growth(times, limit).state) for limit in (most, most + 0.1, most + 0.5)]
    assert states == sorted(states)


def test_a_refusal_and_other_hours_decide_nothing():
    slow = grown(0.5, 0.51, 0.52)
    assert judge_growth(refuse(slow, "another kind of device"), 0.05).reason == "another kind of device"
    apart = compare_apart([[0.01], [0.0101]], [[0.02], [0.0201]])
    assert judge_growth(apart, 0.05).reason == "not measured together"
    nothing = compare([])
    assert judge_growth(nothing, 0.05).reason == "a side has no samples"
    assert (growth(nothing), growth_interval(nothing)) == (None, None)
    assert judge_growth(compare(launches(2.0, blocks=4)), 0.05).reason == "too few independent blocks"
    for no_share in (-0.1, math.nan):
        with pytest.raises(ValueError, match="a share"):
            judge_growth(slow, no_share)
    assert judge_growth(slow, 0.0).state == "passed"


def test_more_launches_that_would_decide_do_decide():
    times = grown(0.04, 0.10, 0.08, 0.06)
    more = times.units + judge_growth(times, 0.05).launches_to_decide
    states = [judge_growth(times._with_launches(units), 0.05).state for units in (times.units, more - 1, more)]
    assert states == ["undecided", "undecided", "passed"]
    on_the_limit = grown(0.04, 0.06, 0.05, 0.05)
    assert judge_growth(replace(on_the_limit, ratio=1 / 1.05), 0.05).launches_to_decide is None
