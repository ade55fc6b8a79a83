"""The summary of a steady run: the median of its calls, with the interval of its blocks or launches."""

import math
from collections import Counter
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import figures_text, held_cases
from jaxprof.stats.blocks import Block, LaunchBlocks, change_within, in_blocks, settling_seconds
from jaxprof.stats.summary import summarise, summarise_launches, summarise_run, turns_over_alone
from jaxprof.stats.turns import LONGEST_PROBED_SECONDS, PROBES, block_order, plan_probes, plan_turns


def test_two_sides_take_turns_in_abba_baab():
    assert {block_order(2, 4, seed) for seed in range(20)} == {(0, 1, 1, 0, 1, 0, 0, 1), (1, 0, 0, 1, 0, 1, 1, 0)}


def rounds_of(order, sides):
    return [order[at : at + sides] for at in range(0, len(order), sides)]


@given(st.integers(1, 9), st.integers(0, 40), st.integers(0, 5))
def test_each_side_has_its_blocks_one_in_each_round(sides, blocks, seed):
    order = block_order(sides, blocks, seed)
    assert order == block_order(sides, blocks, seed)
    assert [sorted(one) for one in rounds_of(order, sides)] == [list(range(sides))] * blocks


@pytest.mark.parametrize("sides", [2, 3, 4, 7])
def test_block_order_is_balanced(sides):
    order = block_order(sides, (sides if sides % 2 == 0 else 2 * sides) * 2, 3)
    rounds = rounds_of(order, sides)
    places = Counter(place for one in rounds for place in enumerate(one))
    followers = Counter(pair for one in rounds for pair in pairwise(one))
    assert set(places.values()) == {len(rounds) // sides}
    assert len(followers) == sides * (sides - 1)
    assert len(set(followers.values())) == 1


def test_block_order_varies_over_launches():
    orders = [block_order(4, 2, seed) for seed in range(30)]
    assert len({tuple(order[:4].index(side) for side in order[4:]) for order in orders}) > 1
    assert {block_order(3, 1, seed)[0] for seed in range(30)} == {0, 1, 2}


@pytest.mark.parametrize(
    ("sides", "paired"),
    [
        ((0, 1, 1, 0, 1, 0, 0, 1), [(0, 1), (3, 2), (5, 4), (6, 7)]),
        ((0, 2, 1, 1, 0, 2), [(0, 2), (4, 3)]),  # further sides may stand between
        ((0, 0, 1, 1), [(1, 2)]),  # a block without its partner is left out
        ((0, None, 0, 1), [(2, 3)]),  # nor is one of side 1 without calls a partner
        ((0, 0), []),
    ],
)
def test_neighbours_are_paired_once(sides, paired):
    blocks = [Block(1, ()) if side is None else Block(side, (float(place),)) for place, side in enumerate(sides)]
    found = LaunchBlocks(tuple(blocks)).pairs(0, 1)
    assert [(one.median, two.median) for one, two in found] == paired


@given(st.lists(st.floats(1e-6, 0.02), max_size=60))
def test_samples_are_cut_into_blocks_in_order_and_whole(samples):
    blocks = in_blocks(samples, side=1)
    assert [second for block in blocks for second in block.seconds] == samples
    assert all(block.side == 1 for block in blocks)
    if len(blocks) > 1:
        assert all(sum(block.seconds) >= 0.01 for block in blocks)
        assert all(sum(block.seconds[:-1]) < 0.01 for block in blocks[:-1])


PLANS = {
    "short blocks": plan_turns([0.001, 0.002], 0.6),
    "fewer samples of each of five launches": plan_turns([0.001, 0.002], 0.6, launches=5),
    "never no sample": plan_turns([0.001], 200.0),
    "the longest call is the block": plan_turns([0.001, 0.1], 0.8),
    "rounds are even, so that each place has its opposite": plan_turns([0.001, 0.1], 0.75),
    "a long call still gets six samples over all launches": plan_turns([5.0, 1.0], 2.0),
    "in two launches": plan_turns([5.0, 1.0], 2.0, launches=2),
    "in three launches": plan_turns([5.0, 1.0], 2.0, launches=3),
    "a warm-in is part of the budget, and a block at least half as long": plan_turns(
        [1e-3, 1e-3], 1.0, warm_in_seconds=[0.0, 0.04]
    ),
    "whole blocks of short calls are looked at": plan_probes([1e-3, 2e-3]),
    "with a few calls of the longer side": plan_probes([1e-3, 0.1]),
    "one side is not probed": plan_probes([1e-3]),
    "nor is a long call": plan_probes([1e-3, 2 * LONGEST_PROBED_SECONDS]),
}


def test_how_a_budget_is_spent():
    for case, plan in PLANS.items():
        assert len(set(Counter(plan.order).values())) <= 1, case  # each side has as many as the other
    blocks = {case: {"blocks of a side": plan.order.count(0)} for case, plan in PLANS.items()}
    told = {case: figures_text(blocks[case], plan, without=["order"]) for case, plan in PLANS.items()}
    held_cases("turns.txt", told)


def test_each_launch_has_an_order_of_its_own():
    orders = [plan_turns([0.01] * 4, 0.06, launch=launch).order for launch in range(1, 9)]
    assert len(set(orders)) > 1
    assert plan_turns([0.01] * 4, 0.06).order == orders[0]


def block_of(*parts, noise=0.0, seed=0):
    """Calls of a block: so many of so many seconds each, one part after the other."""
    chance = Random(seed)
    return [seconds * (1 + noise * chance.gauss(0, 1)) for calls, seconds in parts for _ in range(calls)]


def test_settling_seconds_of_blocks():
    blocks = [block_of((1, 1.1e-3), (7, 0.6e-3), (92, 0.4e-3), noise=0.01, seed=seed) for seed in range(4)]
    assert settling_seconds(blocks) == pytest.approx(1.1e-3 + 7 * 0.6e-3, rel=0.2)


def test_a_tenth_of_the_calls_are_faster_than_the_fast_one():
    calls = tuple(map(float, range(40)))
    assert LaunchBlocks((Block(0, calls[::-1]), Block(1, (9.0,)))).fast_call(0) == 4.0


def test_a_first_call_that_alone_is_slow_is_all_that_is_left_out():
    assert settling_seconds([block_of((1, 3e-3), (63, 1e-3))] * 4) == pytest.approx(3e-3)


def test_a_block_of_equal_calls_has_no_warm_in():
    """Nor, mostly, where the first call is as noisy as all others are."""

    def warm_in(noise, first=0):
        return settling_seconds([block_of((60, 1e-3), noise=noise, seed=PROBES * first + at) for at in range(PROBES)])

    assert warm_in(0.02) == 0
    assert sum(warm_in(0.1, first) != 0 for first in range(100)) <= 20


def test_calls_that_still_change_at_the_end_do_not_settle():
    falling = [[1e-3 * (1 - 0.004 * place) for place in range(100)] for _ in range(4)]
    assert settling_seconds(falling) == pytest.approx(sum(falling[0][:50])), "the second half counts"
    assert settling_seconds([block_of((50, 1e-3), (50, 0.8e-3))] * 4) == pytest.approx(50e-3)


@pytest.mark.parametrize("blocks", [[], [[1.0]], [[1.0], [2.0, 3.0]], [[3.0, 1.0]]])
def test_settling_of_too_few_calls(blocks):
    assert settling_seconds(blocks) == 0


def test_calls_that_change_within_their_blocks_are_reported():
    faster, steady = ([block_of((4, 1e-3), (4, end), noise=0.02, seed=s) for s in range(10)] for end in (0.8e-3, 1e-3))
    assert change_within(faster) == pytest.approx(-0.2, abs=0.02)
    assert change_within(steady) is None
    assert change_within([[1.0], [2.0]]) is None


def calls(count, median=0.004, wobble=0.05, seed=3):
    noise = Random(seed)
    return [median * math.exp(noise.gauss(0, wobble)) for _ in range(count)]


def launch_with(samples, size=5):
    return LaunchBlocks(tuple(Block(0, tuple(samples[at : at + size])) for at in range(0, len(samples), size)))


def test_summary_of_one_launch():
    samples = calls(100)
    blocks = summarise_launches([launch_with(samples)])
    found = summarise_run(samples, [launch_with(samples)])
    assert (found.median, found.unit, found.launches, found.count) == (np.median(samples), "block", 1, 100)
    ends = [(one.low / one.median, one.high / one.median) for one in (found, blocks)]
    assert ends[0] == pytest.approx(ends[1])
    assert found.relative_halfwidth == pytest.approx((ends[1][1] - ends[1][0]) / 2)


def test_summary_over_launches():
    short, long = calls(20, 0.004, 0.0), calls(200, 0.009, 0.0)
    found = summarise_run([*short, *long], [launch_with(short), launch_with(long)])
    assert (found.median, found.unit, found.launches, found.count) == (pytest.approx(0.006), "launch", 2, 220)
    assert found.low < 0.004 < 0.009 < found.high
    # two launches that agree by chance, of blocks that do not: never narrower than these allow
    one, both = (summarise_launches([launch_with(calls(80, wobble=0.3))] * count) for count in (1, 2))
    assert (both.high - both.low) / both.median > 0.5 * (one.high - one.low) / one.median


def test_a_run_that_took_no_turns_is_cut_into_blocks():
    """Of 4 ms a call, a block of 10 ms has three; where a sample is of ten calls, it is a block."""
    samples = calls(60)
    cut, three = summarise_run(samples), summarise_run(samples, [launch_with(samples, 3)])
    assert cut.unit == "block"
    assert (cut.low, cut.high) == pytest.approx((three.low, three.high), rel=0.01)
    assert summarise_run(samples, calls_per_sample=10) == summarise_run(samples, [launch_with(samples, 1)])


def test_summary_without_blocks_is_of_calls():
    assert summarise_run([]) is None
    found = summarise_run([0.0, *calls(9)])
    assert found == summarise([0.0, *calls(9)])
    assert found.unit == "call"
    assert found.launches == 1


def launches_of(*medians):
    return [launch_with(calls(180, median, 0.01, seed), 9) for seed, median in enumerate(medians)]


@pytest.mark.parametrize(
    ("turns", "differs"),
    [((1.6e-3, 1.65e-3, 1.58e-3), True), ((1.02e-3, 1.03e-3, 1.01e-3), False), ((0.8e-3, 1.2e-3, 1.3e-3), False)],
)
def test_turns_over_alone_beyond_the_interval(turns, differs):
    ratio, found = turns_over_alone(launches_of(*turns), launches_of(1.00e-3, 1.01e-3, 0.99e-3))
    assert found == differs
    assert not differs or ratio == pytest.approx(1.61, rel=0.02)
    for alone in ([], [LaunchBlocks(())]):
        assert turns_over_alone(launches_of(*turns), alone) is None


@pytest.mark.parametrize(("calm", "differs"), [(2, False), (0, True)])
def test_turns_over_alone_beside_bursts(calm, differs):
    """Of each five calls, so many are of a quiet machine."""
    quiet = launch_with(calls(100, 1e-3, 0.01))
    spoiled = [took * (1.0 if at % 5 < calm else 1.3) for at, took in enumerate(calls(100, 1e-3, 0.01, 4))]
    assert turns_over_alone([launch_with(spoiled)], [quiet])[1] is differs


@pytest.mark.parametrize(
    ("bad", "is_time"), [(1e-9, True), (0.0, False), (-1.0, False), (math.inf, False), (math.nan, False)]
)
def test_block_with_a_sample_that_is_no_time(bad, is_time):
    assert Block(0, (0.5, bad, 0.25)).is_time is is_time
    assert Block(0, (bad,)).is_time is is_time
    assert Block(0, ()).is_time
