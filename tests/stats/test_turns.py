"""The summary of a steady run: the median of its calls, with the interval of its blocks or launches."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.stats import (
    BLOCK_SECONDS,
    Block,
    LaunchBlocks,
    balanced_order,
    in_blocks,
    plan_turns,
    summarise,
    summarise_launches,
    summarise_run,
    turns_over_alone,
)
from jaxprof.stats.turns import (
    LEAST_SAMPLES,
    LONGEST_PROBED_SECONDS,
    PROBES,
    TurnPlan,
    change_within,
    plan_probes,
    settling_seconds,
)


def test_two_sides_take_turns_in_abba_baab():
    assert {balanced_order(2, 4, seed) for seed in range(20)} == {(0, 1, 1, 0, 1, 0, 0, 1), (1, 0, 0, 1, 0, 1, 1, 0)}


def rounds_of(order: Sequence[int], sides: int) -> list[Sequence[int]]:
    return [order[at : at + sides] for at in range(0, len(order), sides)]


@given(st.integers(1, 9), st.integers(0, 40), st.integers(0, 5))
def test_each_side_has_its_blocks_one_in_each_round(sides, blocks, seed):
    order = balanced_order(sides, blocks, seed)
    assert order == balanced_order(sides, blocks, seed)
    assert [sorted(one) for one in rounds_of(order, sides)] == [list(range(sides))] * blocks


@pytest.mark.parametrize("sides", [2, 3, 4, 7])
def test_each_side_stands_in_each_place_and_follows_each_other_equally_often(sides):
    order = balanced_order(sides, (sides if sides % 2 == 0 else 2 * sides) * 2, 3)
    rounds = rounds_of(order, sides)
    places = Counter(place for one in rounds for place in enumerate(one))
    followers = Counter(pair for one in rounds for pair in pairwise(one))
    assert set(places.values()) == {len(rounds) // sides}
    assert len(followers) == sides * (sides - 1)
    assert len(set(followers.values())) == 1


def test_over_launches_the_rounds_come_in_any_order_and_no_side_is_always_first():
    orders = [balanced_order(4, 2, seed) for seed in range(30)]
    assert len({tuple(order[:4].index(side) for side in order[4:]) for order in orders}) > 1
    assert {balanced_order(3, 1, seed)[0] for seed in range(30)} == {0, 1, 2}


@pytest.mark.parametrize(("sides", "blocks"), [(0, 3), (-1, 3), (2, -1)])
def test_there_is_no_order_for_no_sides(sides, blocks):
    with pytest.raises(ValueError, match="no order"):
        balanced_order(sides, blocks)


def launch(*sides: int) -> LaunchBlocks:
    return LaunchBlocks(tuple(Block(side, (1.0 + place,)) for place, side in enumerate(sides)))


def pairs(*sides: int) -> list[tuple[float, float]]:
    return [(one.seconds[0] - 1, two.seconds[0] - 1) for one, two in launch(*sides).pairs(0, 1)]


@pytest.mark.parametrize(
    ("sides", "paired"),
    [
        ((0, 1, 1, 0, 1, 0, 0, 1), [(0, 1), (3, 2), (5, 4), (6, 7)]),
        ((0, 2, 1, 1, 0, 2), [(0, 2), (4, 3)]),  # further sides may stand between
        ((0, 0, 1, 1), [(1, 2)]),  # a block without its partner is left out
        ((0, 0), []),
    ],
)
def test_neighbours_are_paired_once(sides, paired):
    assert pairs(*sides) == paired


def test_a_block_without_calls_is_paired_with_none():
    empty = LaunchBlocks((Block(0, (1.0,)), Block(1, ()), Block(0, (2.0,)), Block(1, (3.0,))))
    assert [(one.seconds, two.seconds) for one, two in empty.pairs(0, 1)] == [((2.0,), (3.0,))]


def test_a_block_is_as_long_as_its_median_call():
    assert Block(0, (3.0, 1.0, 2.0)).median == 2.0
    assert Block(0, (4.0, 1.0, 2.0, 3.0)).median == 2.5
    with pytest.raises(ValueError, match="without calls"):
        _ = Block(0, ()).median


@given(st.lists(st.floats(1e-6, 0.02), max_size=60))
def test_samples_are_cut_into_blocks_in_order_and_whole(samples):
    blocks = in_blocks(samples, side=1)
    assert [second for block in blocks for second in block.seconds] == samples
    assert all(block.side == 1 for block in blocks)
    if len(blocks) > 1:
        assert all(sum(block.seconds) >= 0.01 for block in blocks)
        assert all(sum(block.seconds[:-1]) < 0.01 for block in blocks[:-1])


def blocks_of(plan: TurnPlan) -> int:
    """Of each side, which has as many as the other."""
    assert plan.order.count(0) == plan.order.count(1)
    return plan.order.count(0)


def test_a_budget_is_spent_in_short_blocks_that_each_side_has_equally_often():
    plan = plan_turns([0.001, 0.002], 0.6)
    assert (blocks_of(plan), plan.block_seconds, plan.most_samples) == (60, BLOCK_SECONDS, 10_000 // 60)
    assert plan_turns([0.001, 0.002], 0.6, launches=5).most_samples == 10_000 // 300
    assert plan_turns([0.001], 200.0).most_samples == 1, "never none"


@pytest.mark.parametrize(
    ("calls", "budget", "launches", "blocks", "seconds"),
    [
        # where a call is longer than a block, the longest call is the block
        ([0.001, 0.1], 0.8, 1, 8, 0.1),
        ([0.001, 0.1], 0.75, 1, 8, 0.75 / 8),  # rounds are even, so that each place has its opposite
        # a long call still gets six samples over all launches
        ([5.0, 1.0], 2.0, 1, 6, 2.0 / 6),
        ([5.0, 1.0], 2.0, 2, 4, 0.5),
        ([5.0, 1.0], 2.0, 3, 4, 0.5),
    ],
)
def test_long_calls(calls, budget, launches, blocks, seconds):
    plan = plan_turns(calls, budget, launches=launches)
    assert (blocks_of(plan), plan.block_seconds) == (blocks, pytest.approx(seconds))
    assert launches * blocks_of(plan) >= LEAST_SAMPLES


def test_each_launch_has_an_order_of_its_own():
    orders = [plan_turns([0.01] * 4, 0.06, launch=launch).order for launch in range(1, 9)]
    assert len(set(orders)) > 1
    assert plan_turns([0.01] * 4, 0.06).order == orders[0]


def block_of(*parts: tuple[int, float], noise: float = 0.0, seed: int = 0) -> list[float]:
    """Calls of a block: so many of so many seconds each, one part after the other."""
    chance = random.Random(seed)
    return [seconds * (1 + noise * chance.gauss(0, 1)) for calls, seconds in parts for _ in range(calls)]


def test_a_block_settles_where_its_calls_take_what_later_ones_take():
    blocks = [block_of((1, 1.1e-3), (7, 0.6e-3), (92, 0.4e-3), noise=0.01, seed=seed) for seed in range(4)]
    assert settling_seconds(blocks) == pytest.approx(1.1e-3 + 7 * 0.6e-3, rel=0.2)


def test_a_block_of_equal_calls_has_no_warm_in():
    """Nor, mostly, where the first call is as noisy as all others are."""

    def warm_in(noise: float, first: int = 0) -> float:
        return settling_seconds([block_of((60, 1e-3), noise=noise, seed=PROBES * first + at) for at in range(PROBES)])

    assert warm_in(0.02) == 0
    assert sum(warm_in(0.1, first) != 0 for first in range(100)) <= 20


def test_calls_that_still_change_at_the_end_do_not_settle():
    falling = [[1e-3 * (1 - 0.004 * place) for place in range(100)] for _ in range(4)]
    assert settling_seconds(falling) == pytest.approx(sum(falling[0][:50])), "the second half counts"
    assert settling_seconds([block_of((50, 1e-3), (50, 0.8e-3))] * 4) == pytest.approx(50e-3)


@pytest.mark.parametrize("blocks", [[], [[1.0]], [[1.0], [2.0, 3.0]]])
def test_of_fewer_than_two_calls_a_block_nothing_is_said(blocks):
    assert settling_seconds(blocks) == 0


def test_whole_blocks_are_looked_at_where_there_are_several_sides_and_calls_are_short():
    assert plan_probes([1e-3]).order == ()
    assert plan_probes([1e-3, 2 * LONGEST_PROBED_SECONDS]).order == ()
    plan = plan_probes([1e-3, 0.1])
    assert Counter(plan.order) == {0: PROBES, 1: PROBES}
    assert plan.block_seconds >= 0.3, "a few calls of the longer side"


def test_a_warm_in_is_part_of_the_budget_and_a_block_is_at_least_half_as_long():
    short = plan_turns([1e-3, 1e-3], 1.0)
    longer = plan_turns([1e-3, 1e-3], 1.0, warm_in_seconds=[0.0, 0.04])
    assert longer.block_seconds == pytest.approx(0.02, rel=0.1)
    spent = len(longer.order) / 2 * (longer.block_seconds + 0.04)
    assert spent == pytest.approx(1.0, rel=0.15)
    assert short.block_seconds == pytest.approx(BLOCK_SECONDS, rel=0.1)


def test_calls_that_change_within_their_blocks_are_reported():
    assert change_within([block_of((4, 1e-3), (4, 0.8e-3), noise=0.01, seed=s) for s in range(10)]) == pytest.approx(
        -0.2, abs=0.02
    )
    assert change_within([block_of((8, 1e-3), noise=0.05, seed=seed) for seed in range(10)]) is None
    assert change_within([[1.0], [2.0]]) is None


def calls(count: int, median: float = 0.004, wobble: float = 0.05, seed: int = 3) -> list[float]:
    noise = Random(seed)
    return [median * math.exp(noise.gauss(0, wobble)) for _ in range(count)]


def launch_with(samples: list[float], size: int = 5) -> LaunchBlocks:
    return LaunchBlocks(tuple(Block(0, tuple(samples[at : at + size])) for at in range(0, len(samples), size)))


def test_with_one_launch_the_median_is_that_of_the_calls_and_the_interval_that_of_the_blocks():
    samples = calls(100)
    blocks = summarise_launches([launch_with(samples)])
    found = summarise_run(samples, [launch_with(samples)])
    assert (found.median, found.unit, found.launches, found.count) == (np.median(samples), "block", 1, 100)
    ends = [(one.low / one.median, one.high / one.median) for one in (found, blocks)]
    assert ends[0] == pytest.approx(ends[1])
    assert found.relative_halfwidth == pytest.approx((ends[1][1] - ends[1][0]) / 2)


def test_over_launches_the_median_is_theirs_and_each_counts_the_same():
    short, long = calls(20, 0.004, 0.0), calls(200, 0.009, 0.0)
    found = summarise_run([*short, *long], [launch_with(short), launch_with(long)])
    assert (found.median, found.unit, found.launches, found.count) == (pytest.approx(0.006), "launch", 2, 220)
    assert found.low < 0.004 < 0.009 < found.high


def test_a_run_that_took_no_turns_is_cut_into_blocks():
    """Of 4 ms a call, a block of 10 ms has three; where a sample is of ten calls, it is a block."""
    samples = calls(60)
    cut, three = summarise_run(samples), summarise_run(samples, [launch_with(samples, 3)])
    assert cut.unit == "block"
    assert (cut.low, cut.high) == pytest.approx((three.low, three.high), rel=0.01)
    assert summarise_run(samples, calls_per_sample=10) == summarise_run(samples, [launch_with(samples, 1)])


def test_what_has_no_blocks_or_no_times_has_the_summary_of_its_calls():
    assert summarise_run([]) is None
    samples = [0.0, *calls(9)]
    found = summarise_run(samples)
    assert (found, found.unit, found.launches) == (summarise(samples), "call", 1)


def test_the_interval_over_launches_is_never_narrower_than_their_blocks_allow():
    """Two launches that agree by chance, of blocks that do not."""
    samples = calls(80, wobble=0.3)
    one, both = (summarise_launches([launch_with(samples)] * count) for count in (1, 2))
    assert both.relative_halfwidth > 0.5 * one.relative_halfwidth
    assert (both.units, one.units) == (2, 16)


def launches_of(*medians: float, noise: float = 0.01) -> list[LaunchBlocks]:
    chance = Random(1)
    return [
        LaunchBlocks(tuple(Block(0, tuple(m * (1 + noise * chance.gauss(0, 1)) for _ in range(9))) for _ in range(20)))
        for m in medians
    ]


@pytest.mark.parametrize(
    ("turns", "differs"),
    [((1.6e-3, 1.65e-3, 1.58e-3), True), ((1.02e-3, 1.03e-3, 1.01e-3), False), ((0.8e-3, 1.2e-3, 1.3e-3), False)],
)
def test_turns_that_take_longer_than_the_run_alone_by_more_than_their_interval_differ_from_it(turns, differs):
    ratio, found = turns_over_alone(launches_of(*turns), launches_of(1.00e-3, 1.01e-3, 0.99e-3))
    assert found == differs
    assert not differs or ratio == pytest.approx(1.61, rel=0.02)


def test_of_launches_that_were_not_measured_alone_nothing_is_known():
    assert turns_over_alone(launches_of(1e-3), []) is None
    assert turns_over_alone([], []) is None
    assert turns_over_alone(launches_of(1e-3), [LaunchBlocks(())]) is None


@pytest.mark.parametrize(("calm", "differs"), [(2, False), (0, True)])
def test_bursts_of_others_that_spare_some_calls_are_not_what_the_other_sides_leave(calm, differs):
    """Of each five calls, so many are of a quiet machine."""
    quiet = launch_with(calls(100, 1e-3, 0.01))
    spoiled = [took * (1.0 if at % 5 < calm else 1.5) for at, took in enumerate(calls(100, 1e-3, 0.01, 4))]
    assert turns_over_alone([launch_with(spoiled)], [quiet])[1] is differs
