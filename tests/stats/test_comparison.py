import math
from dataclasses import replace
from random import Random
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import figures_text, held_cases
from jaxprof.stats.blocks import Block, LaunchBlocks
from jaxprof.stats.comparison import compare, compare_apart, correct_for_family, narrow_enough, refuse
from jaxprof.stats.summary import summarise_launches
from jaxprof.stats.turns import block_order


def launch(*medians, wobble=0.004, blocks=16, in_turns=True):
    """A launch of sides with these medians (seconds), each block off by a deviation of `wobble`, always the same."""
    noise, order = Random(3), block_order(len(medians), blocks, 1)
    seconds = [medians[side] * math.exp(noise.gauss(0, wobble)) for side in order]
    return LaunchBlocks(tuple(Block(side, (one,)) for side, one in zip(order, seconds, strict=True)), in_turns)


def launches(*ratios, **settings):
    return [launch(0.01, 0.01 / ratio, **settings) for ratio in ratios]


@pytest.mark.parametrize(
    ("ratios", "verdict", "reason"),
    [
        ((1.10, 1.11, 1.12), "faster", ""),
        ((0.90, 0.91, 0.92), "slower", ""),
        ((1.001, 0.999, 1.002), "same", ""),
        ((0.8, 1.3, 1.1), "inconclusive", "the interval contains 1"),
        # one launch calls no difference that two processes of one program may have
        ((1.15,), "faster", ""),
        ((1 / 1.3,), "slower", ""),
        ((1.09,), "inconclusive", "one launch cannot show a difference under 10 %"),
        ((1 / 1.09,), "inconclusive", "one launch cannot show a difference under 10 %"),
        ((1.09, 1.09), "faster", ""),
    ],
)
def test_verdicts_and_their_reasons(ratios, verdict, reason):
    measured = launches(*ratios)
    found, back = compare(measured), compare(measured, 1, 0)
    assert (found.verdict, found.reason) == (verdict, reason)
    assert back.verdict == {"faster": "slower", "slower": "faster"}.get(verdict, verdict)
    assert (back.ratio, back.low) == pytest.approx((1 / found.ratio, 1 / found.high))


def test_a_ratio_within_the_margin_is_neither_faster_nor_slower():
    near = compare(launches(*[1.005, 1.015, 1.025] * 2, wobble=0))
    assert 1 < near.low < near.ratio < 1.02 < near.interval(0.90)[1]
    for found in (near, replace(near, ratio=1 / near.ratio)):
        assert (found.verdict, found.reason) == ("inconclusive", "the difference is about the margin of 2 %")
        more = found.units + found.launches_to_decide
        assert found.is_near
        assert [found._with_launches(units).verdict for units in (more, more - 1)] == ["same", "inconclusive"]
    assert replace(near, margin=0).verdict == replace(near, margin=0.014).verdict == "faster"
    assert replace(near, ratio=1 / near.ratio, margin=0).verdict == "slower"
    assert replace(near, margin=0.0155).reason == "the difference is about the margin of 1.55 %"
    assert replace(near, ratio=1.02).launches_to_decide is None
    assert not replace(near, ratio=1.03).is_near


def test_ratio_with_students_interval():
    found = compare(launches(1.1, 1.2, 1.3, wobble=0))
    logs = [math.log(ratio) for ratio in (1.1, 1.2, 1.3)]
    half = 4.30265 * stdev(logs) / math.sqrt(3)
    ends = [math.log(end) for end in (found.low, found.ratio, found.high)]
    assert ends == pytest.approx([fmean(logs) + off for off in (-half, 0, half)], rel=1e-5)
    assert found._with_launches(3) == found, "nothing is won by none more"


def _beside_a_neighbour(ratio, seed, count=5):
    """Launches in which half of the calls share their core for a while: they take one and a half to three times."""
    noise = Random(seed)

    def block(side):
        shared = noise.choice([1.0, noise.uniform(1.5, 3)])
        one = 0.01 / (ratio if side else 1) * shared * math.exp(abs(noise.gauss(0, 0.02)))
        return Block(side, (one, one * 1.01))

    return [LaunchBlocks(tuple(map(block, block_order(2, 40, number)))) for number in range(count)]


BY_CHANCE = (1.03, 1.05, 1.07, 1.04, 1.06)
COMPARED = {
    "over launches": compare(launches(1.1, 1.2, 1.3, wobble=0)),
    "launches that agree by chance do not hide what their blocks say": compare(launches(1.02, 1.02, 1.02, wobble=0.2)),
    "a launch that lacks a side is left out": compare([*launches(1.5, 1.52, 1.54), launch(0.01)]),
    "one launch stands on its pairs": compare(launches(1.15)),
    "one launch that says little": compare(launches(1.0, wobble=0.2)),
    "a few blocks are too few": compare(launches(2.0, blocks=4)),
    "one block": compare(launches(2.0, blocks=1)),
    "one launch, not in turns": compare(launches(1.5, in_turns=False)),
    "several launches, not in turns": compare(launches(1.5, 1.52, 1.54, in_turns=False)),
    "five launches": compare(launches(*BY_CHANCE)),
    "five launches that a width may have ended": compare(launches(*BY_CHANCE), by_width=True),
    "of three no width is looked at": compare(launches(*BY_CHANCE[:3]), by_width=True),
    "three launches": compare(launches(*BY_CHANCE[:3])),
    "apart": compare_apart(0.01, 0.001),
}


def test_what_a_comparison_rests_on():
    told = {}
    for case, found in COMPARED.items():
        said = {"low": found.low, "high": found.high, "verdict": found.verdict, "reason": found.reason}
        told[case] = figures_text(found, {**said, "launches to decide": found.launches_to_decide})
    held_cases("comparisons.txt", told)


def test_one_launch_says_less_than_a_margin():
    found = compare(launches(1.2, wobble=0.01))
    assert [replace(found, margin=margin).verdict for margin in (0.15, 0.3)] == ["faster", "same"]
    assert replace(found, margin=0.199).reason == "one launch cannot show a difference under 20 %"


def test_beside_other_processes_the_fast_calls_decide():
    """What takes a processor from one block of a pair scatters pairs by half; the fast calls are those without it."""

    def verdicts(ratio, **how):
        return [compare(_beside_a_neighbour(ratio, seed), **how).verdict for seed in range(20)]

    assert verdicts(1 / 1.1).count("slower") < 10
    assert verdicts(1 / 1.1, beside_others=True).count("slower") >= 19
    assert len([one for one in verdicts(1, beside_others=True) if one in ("faster", "slower")]) <= 1
    several = compare(_beside_a_neighbour(1 / 1.1, 1), beside_others=True)
    assert several.how == "in turns, by their fast calls beside other processes"
    one = compare(_beside_a_neighbour(1 / 1.1, 1, count=1), beside_others=True)
    assert one.of_fast_calls is False
    assert one.unit == "pair of blocks"
    assert compare(_beside_a_neighbour(1 / 1.1, 1, count=2), beside_others=True).of_fast_calls


@pytest.mark.parametrize(("bad", "side"), [(0.0, 0), (-0.01, 1), (math.nan, 0), (math.inf, 1)])
def test_a_sample_that_is_no_time_refuses_the_comparison(bad, side):
    spoilt = LaunchBlocks((*launch(0.01, 0.005).blocks, Block(side, (bad,))))
    found = compare([*launches(2, 2.1, 2.2), spoilt])
    assert (found.ratio, found.low, found.reason) == (None, None, "a sample is not a time")
    assert compare_apart(*((0.01, bad) if side else (bad, 0.01))).reason == "a sample is not a time"
    assert (summarise_launches([spoilt]) is None) == (side == 0)


@pytest.mark.parametrize(
    "measured",
    [[], [LaunchBlocks(())], [launch(0.01)], [LaunchBlocks((Block(0, (0.01,)), Block(1, ())), in_turns=False)]],
)
def test_a_side_without_samples_never_wins(measured):
    for found in (compare(measured), compare(measured, 1, 0), compare_apart(0.1, None), compare_apart(None, 0.1)):
        assert (found.ratio, found.low, found.half_width) == (None, None, None)
        assert (found.verdict, found.reason) == ("inconclusive", "a side has no samples")
        assert not narrow_enough(found, 1.0)


def test_many_comparisons_widen_each_interval():
    one = compare(launches(1.03, 1.05, 1.07))
    family = correct_for_family([one] * 5)
    assert family[0].low < one.low
    assert (one.verdict, {found.verdict for found in family}) == ("faster", {"inconclusive"})
    assert correct_for_family([one, compare([]), refuse(one, "no")])[0].verdict == "faster"
    assert correct_for_family([]) == []


def test_how_many_more_launches_would_decide():
    found = compare(launches(1.0, 1.06, 1.03))
    assert found.verdict == "inconclusive"
    more = found.launches_to_decide
    assert 1 <= more <= 10
    assert compare(launches(*[1.0, 1.06, 1.03] * math.ceil(1 + more / 3))).verdict == "faster"
    assert replace(compare(launches(*[0.9, 1.112])), margin=1e-6).launches_to_decide is None
    most = [found.launches_until(lambda more, units=units: more.units >= units) for units in (1000, 1001)]
    assert most == [997, None]


def test_stopping_depends_on_the_width_alone():
    """Which is that of a surer interval than if the number of launches had been fixed."""
    for ratio in (0.5, 1.0, 2.0):
        measured = launches(*(ratio * (1 + off) for off in (0, 0.01, 0.02, 0.01, 0.01)))
        fixed, stopped = compare(measured), compare(measured, by_width=True)
        assert stopped.half_width == pytest.approx(0.0105, abs=0.001)
        assert narrow_enough(stopped, 0.011) is True
        assert narrow_enough(stopped, 0.009) is False
        assert stopped.interval(0.95) == pytest.approx(fixed.interval(0.97))
        assert not narrow_enough(fixed, fixed.half_width)


def test_a_few_launches_that_agree_do_not_end_the_measuring():
    assert not narrow_enough(compare(launches(1.0, 1.0001, 1.0, 1.0001)), 0.05)
    assert narrow_enough(compare(launches(1.0, 1.0001, 1.0, 1.0001, 1.0)), 0.05)
    assert not narrow_enough(compare(launches(1.0, blocks=19)), 0.05)
    assert narrow_enough(compare(launches(1.0, blocks=20)), 0.05)


def test_the_median_of_one_variant_stands_on_its_launches():
    found = summarise_launches([launch(median, wobble=0) for median in (0.010, 0.017, 0.011)])
    assert found.median == pytest.approx(0.011), "no mean of 44 and 77 µs, which no launch took"
    assert found.low < 0.0092 < 0.0130 < found.high
    assert (found.unit, found.launches) == ("launch", 3)
    few = summarise_launches([launch(0.010, blocks=2)])
    assert (few.unit, few.low, few.high) == ("block", None, None)
    assert summarise_launches([]) is None


seconds = st.one_of(st.floats(), st.floats(1e-9, 1e3))
some_launches = st.lists(
    st.builds(
        LaunchBlocks,
        st.lists(st.builds(Block, st.integers(0, 2), st.lists(seconds, max_size=3).map(tuple)), max_size=14).map(tuple),
        st.booleans(),
    ),
    max_size=4,
)


@given(some_launches, st.booleans(), st.integers(1, 50))
def test_whatever_was_measured_is_compared_or_refused(measured, by_width, family):
    found = compare(measured, by_width=by_width)
    first = [next((block.seconds[0] for launch in measured for block in launch.of_side(side)), None) for side in (0, 1)]
    apart = compare_apart(*first)
    assert (apart.verdict, apart.launches_to_decide) == ("inconclusive", None)
    for one in (found, *correct_for_family([found] * family)[:1]):
        assert (one.verdict == "inconclusive") == bool(one.reason)
        assert one.launches_to_decide != 0 or one.verdict != "inconclusive"
        assert one.low is None or 0 < one.low <= one.ratio <= one.high
    assert found.ratio is None or all(block.is_time for one in measured for block in one.blocks if block.side < 2)
    summary = summarise_launches(measured)
    assert not summary or summary.low is None or 0 < summary.low <= summary.median <= summary.high
