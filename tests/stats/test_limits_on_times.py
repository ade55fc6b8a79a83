"""A limit on a time: decided by the whole interval, and by nothing else."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.stats.comparison import compare, compare_apart, refuse
from stats.test_comparison import launches


def grown(*by, wobble=0.004):
    """Each launch has this growth."""
    return compare(launches(*(1 / (1 + each) for each in by), wobble=wobble))


@pytest.mark.parametrize(
    ("by", "most", "state"),
    [
        ((0.10, 0.11, 0.105), 0.05, "exceeded"),
        ((0.10, 0.11, 0.105), 0.20, "within"),
        ((-0.30, -0.31, -0.305), 0.05, "within"),
        ((0.04, 0.06, 0.05), 0.05, "undecided"),
        ((0.0, 0.3, -0.2), 0.05, "undecided"),
        # one launch decides only what lies far from the limit
        ((0.12,), 0.05, "undecided"),
        ((0.30,), 0.05, "exceeded"),
        ((0.0,), 0.05, "undecided"),
        ((0.0,), 0.30, "within"),
    ],
)
def test_the_whole_interval_decides(by, most, state):
    times = grown(*by)
    found, reason = times.within(most)
    assert (found, bool(reason)) == (state, state == "undecided")
    assert ("one launch" in reason) == (len(by) == 1 and state == "undecided")
    low, high = times.growth_interval
    assert low < times.growth < high
    assert len(by) == 1 or (low > most, high < most) == (state == "exceeded", state == "within")


@given(st.floats(-0.5, 1.0), st.floats(0.0, 0.5), st.floats(0.001, 0.2), st.integers(2, 8))
def test_a_larger_limit_is_never_worse(by, most, spread, count):
    noise = Random(5)
    times = grown(*(by + spread * noise.uniform(-0.5, 0.5) for _ in range(count)))
    order = ["exceeded", "undecided", "within"]
    states = [order.index(times.within(limit)[0]) for limit in (most, most + 0.1, most + 0.5)]
    assert states == sorted(states)


def test_a_refusal_and_other_hours_decide_nothing():
    slow = grown(0.5, 0.51, 0.52)
    assert refuse(slow, "another kind of device").within(0.05)[1] == "another kind of device"
    apart = compare_apart(0.01, 0.02)
    assert apart.within(0.05)[1] == "not measured together"
    nothing = compare([])
    assert nothing.within(0.05)[1] == "a side has no samples"
    assert (nothing.growth, nothing.growth_interval) == (None, None)
    assert compare(launches(2.0, blocks=4)).within(0.05)[1] == "too few independent blocks"
    assert slow.within(0.0)[0] == "exceeded"


def launches_to_judge(times, most):
    return times.launches_until(lambda more: more.within(most)[0] != "undecided")


def test_more_launches_that_would_decide_do_decide():
    times = grown(0.04, 0.10, 0.08, 0.06)
    more = times.units + launches_to_judge(times, 0.05)
    states = [times._with_launches(units).within(0.05)[0] for units in (times.units, more - 1, more)]
    assert states == ["undecided", "undecided", "exceeded"]
    on_the_limit = grown(0.04, 0.06, 0.05, 0.05)
    assert launches_to_judge(replace(on_the_limit, ratio=1 / 1.05), 0.05) is None
