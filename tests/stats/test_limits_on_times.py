"""A limit on a time: decided by the whole interval, and by nothing else."""

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.stats.comparison import compare, compare_apart, refuse
from jaxprof.stats.growth import growth, growth_interval, judge_growth
from stats.test_comparison import launches


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
