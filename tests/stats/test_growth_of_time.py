"""A limit on a time: decided by the whole interval, and by nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.stats import (
    TimeComparison,
    compare,
    compare_apart,
    growth,
    growth_interval,
    judge_growth,
    refuse,
    with_control,
)
from stats.test_comparison import launches


def grown(*by: float, wobble: float = 0.004) -> TimeComparison:
    """Each launch has this growth."""
    return compare(launches(*(1 / (1 + each) for each in by), wobble=wobble))


STEADY = grown(0.0, 0.001, -0.001, 0.0005)


@pytest.mark.parametrize(
    ("by", "most", "state"),
    [
        ((0.10, 0.11, 0.105), 0.05, "passed"),
        ((0.10, 0.11, 0.105), 0.20, "within"),
        ((-0.30, -0.31, -0.305), 0.05, "within"),
        ((0.0, 0.001, -0.001), 0.05, "within"),
        ((0.04, 0.06, 0.05), 0.05, "undecided"),
        ((0.0, 0.3, -0.2), 0.05, "undecided"),
        ((0.5, 2.0, 1.0), 0.05, "undecided"),
    ],
)
def test_the_whole_interval_decides(by: tuple[float, ...], most: float, state: str) -> None:
    times = with_control(grown(*by), STEADY)
    verdict = judge_growth(times, most)
    assert verdict.state == state
    assert bool(verdict.reason) == (state == "undecided")
    low, high = growth_interval(times) or (math.nan, math.nan)
    assert (low > most) == (state == "passed")
    assert (high < most) == (state == "within")
    assert low < (growth(times) or math.nan) < high


@given(st.floats(-0.5, 1.0), st.floats(0.0, 0.5), st.floats(0.001, 0.2), st.integers(2, 8))
def test_a_larger_limit_is_never_worse(by: float, most: float, spread: float, count: int) -> None:
    noise = Random(5)
    times = grown(*(by + spread * noise.uniform(-0.5, 0.5) for _ in range(count)))
    order = ["passed", "undecided", "within"]
    states = [order.index(judge_growth(times, limit).state) for limit in (most, most + 0.1, most + 0.5)]
    assert states == sorted(states)


def test_one_launch_decides_only_what_lies_far_from_the_limit() -> None:
    assert judge_growth(grown(0.12), 0.05).state == "undecided"
    assert "one launch" in judge_growth(grown(0.12), 0.05).reason
    assert judge_growth(grown(0.30), 0.05).state == "passed"
    assert judge_growth(grown(0.0), 0.05).state == "undecided"
    assert judge_growth(grown(0.0), 0.30).state == "within"


def test_a_baseline_that_differs_from_itself_by_as_much_decides_nothing() -> None:
    times = grown(0.10, 0.11, 0.105)
    restless = grown(0.05, 0.06, 0.07)
    assert judge_growth(with_control(times, restless), 0.05).state == "undecided"
    apart = 100 * ((1 + (growth(times) or math.nan)) / 1.05 - 1)
    assert 4 < apart < 6
    reason = f"it is {apart:.2g} % from the limit, and the baseline differs from itself by as much"
    assert judge_growth(with_control(times, restless), 0.05).reason == reason
    assert judge_growth(with_control(grown(0.60, 0.61, 0.62), restless), 0.05).state == "passed"
    assert judge_growth(with_control(grown(0.0, 0.001, 0.002), restless), 0.05).state == "undecided"
    assert judge_growth(with_control(times, refuse(STEADY, "no")), 0.05).reason == "the control gave no interval"


def test_a_refusal_and_other_hours_decide_nothing() -> None:
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


def test_more_launches_that_would_decide_do_decide() -> None:
    times = with_control(grown(0.04, 0.10, 0.08, 0.06), STEADY)
    verdict = judge_growth(times, 0.05)
    assert verdict.state == "undecided"
    assert verdict.launches_to_decide is not None
    enough = times._with_launches(times.units + verdict.launches_to_decide)
    assert judge_growth(enough, 0.05).state == "passed"
    too_few = times._with_launches(times.units + verdict.launches_to_decide - 1)
    assert judge_growth(too_few, 0.05).state == "undecided"
    on_the_limit = grown(0.04, 0.06, 0.05, 0.05)
    assert judge_growth(replace(on_the_limit, ratio=1 / 1.05), 0.05).launches_to_decide is None
