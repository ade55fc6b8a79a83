from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.stats import BLOCK_SECONDS, Block, LaunchBlocks, balanced_order, in_blocks, plan_turns
from jaxprof.stats.turns import (
    LEAST_SAMPLES,
    LONGEST_PROBED_SECONDS,
    PROBES,
    change_within,
    plan_probes,
    settling_seconds,
)


def test_two_sides_take_turns_in_abba_baab() -> None:
    assert {balanced_order(2, 4, seed) for seed in range(20)} == {(0, 1, 1, 0, 1, 0, 0, 1), (1, 0, 0, 1, 0, 1, 1, 0)}


@given(st.integers(1, 9), st.integers(0, 40), st.integers(0, 5))
def test_each_side_has_its_blocks_one_in_each_round(sides: int, blocks: int, seed: int) -> None:
    order = balanced_order(sides, blocks, seed)
    assert order == balanced_order(sides, blocks, seed)
    rounds = [order[at : at + sides] for at in range(0, len(order), sides)]
    assert len(rounds) == blocks
    assert all(sorted(one) == list(range(sides)) for one in rounds)


@pytest.mark.parametrize("sides", range(2, 8))
def test_each_side_stands_in_each_place_and_follows_each_other_equally_often(sides: int) -> None:
    whole = sides if sides % 2 == 0 else 2 * sides
    order = balanced_order(sides, whole * 2, 3)
    rounds = [order[at : at + sides] for at in range(0, len(order), sides)]
    places = Counter((place, side) for one in rounds for place, side in enumerate(one))
    assert set(places.values()) == {len(rounds) // sides}
    followers = Counter(pair for one in rounds for pair in pairwise(one))
    if sides > 2:
        assert len(followers) == sides * (sides - 1)
    assert len(set(followers.values())) == 1


def test_neither_of_two_sides_gains_from_a_steady_or_a_bending_drift() -> None:
    order = balanced_order(2, 4)
    for power in (1, 2):
        times = [sum(at**power for at, side in enumerate(order) if side == wanted) for wanted in (0, 1)]
        assert times[0] == times[1]


def test_over_launches_the_rounds_of_an_unfinished_square_come_in_any_order() -> None:
    orders = [balanced_order(4, 2, seed) for seed in range(30)]
    assert len({tuple(order[:4].index(side) for side in order[4:]) for order in orders}) > 1


def test_over_launches_no_side_is_always_first() -> None:
    assert {balanced_order(3, 1, seed)[0] for seed in range(30)} == {0, 1, 2}


@pytest.mark.parametrize(("sides", "blocks"), [(0, 3), (-1, 3), (2, -1)])
def test_there_is_no_order_for_no_sides(sides: int, blocks: int) -> None:
    with pytest.raises(ValueError, match="no order"):
        balanced_order(sides, blocks)


def launch(*sides: int) -> LaunchBlocks:
    return LaunchBlocks(tuple(Block(side, (1.0 + place,)) for place, side in enumerate(sides)))


def pairs(*sides: int) -> list[tuple[float, float]]:
    return [(one.seconds[0] - 1, two.seconds[0] - 1) for one, two in launch(*sides).pairs(0, 1)]


def test_neighbours_are_paired_once() -> None:
    assert pairs(0, 1, 1, 0, 1, 0, 0, 1) == [(0, 1), (3, 2), (5, 4), (6, 7)]


def test_further_sides_may_stand_between() -> None:
    assert pairs(0, 2, 1, 1, 0, 2) == [(0, 2), (4, 3)]


def test_a_block_without_its_partner_is_left_out() -> None:
    assert pairs(0, 0, 1, 1) == [(1, 2)]
    assert pairs(0, 0) == []
    empty = LaunchBlocks((Block(0, (1.0,)), Block(1, ()), Block(0, (2.0,)), Block(1, (3.0,))))
    assert [(one.seconds, two.seconds) for one, two in empty.pairs(0, 1)] == [((2.0,), (3.0,))]


def test_a_block_is_as_long_as_its_median_call() -> None:
    assert Block(0, (3.0, 1.0, 2.0)).median == 2.0
    assert Block(0, (4.0, 1.0, 2.0, 3.0)).median == 2.5
    with pytest.raises(ValueError, match="without calls"):
        _ = Block(0, ()).median


@given(st.lists(st.floats(1e-6, 0.02), max_size=60))
def test_samples_are_cut_into_blocks_in_order_and_whole(samples: list[float]) -> None:
    blocks = in_blocks(samples, side=1)
    assert [second for block in blocks for second in block.seconds] == samples
    assert all(block.side == 1 for block in blocks)
    if len(blocks) > 1:
        assert all(sum(block.seconds) >= 0.01 for block in blocks)
        assert all(sum(block.seconds[:-1]) < 0.01 for block in blocks[:-1])


def test_a_budget_is_spent_in_short_blocks_that_each_side_has_equally_often() -> None:
    plan = plan_turns([0.001, 0.002], 0.6)
    assert plan.order.count(0) == plan.order.count(1) == 60
    assert plan.block_seconds == BLOCK_SECONDS
    assert plan.most_samples == 10_000 // 60
    assert plan_turns([0.001, 0.002], 0.6, launches=5).most_samples == 10_000 // 300
    assert plan_turns([0.001], 200.0).most_samples == 1, "never none"


def test_where_a_call_is_longer_than_a_block_the_longest_call_is_the_block() -> None:
    plan = plan_turns([0.001, 0.1], 0.8)
    assert plan.order.count(0) == plan.order.count(1) == 8
    assert plan.block_seconds == pytest.approx(0.1)
    assert plan_turns([0.001, 0.1], 0.75).order.count(0) == 8, "rounds are even, so that each place has its opposite"
    assert plan_turns([0.001, 0.1], 0.75).block_seconds == pytest.approx(0.75 / 8)


def test_a_long_call_still_gets_six_samples_over_all_launches() -> None:
    """Four calls of two seconds, in the one launch of the published train step, said next to nothing."""
    for launches, in_each in ((1, 6), (2, 4), (3, 4)):
        plan = plan_turns([5.0, 1.0], 2.0, launches=launches)
        assert plan.order.count(0) == plan.order.count(1) == in_each
        assert launches * in_each >= LEAST_SAMPLES
    assert plan_turns([5.0, 1.0], 2.0, launches=2).block_seconds == 0.5


def test_each_launch_has_an_order_of_its_own() -> None:
    orders = [plan_turns([0.01] * 4, 0.06, launch=launch).order for launch in range(1, 9)]
    assert len(set(orders)) > 1
    assert plan_turns([0.01] * 4, 0.06).order == orders[0]


def block_of(*parts: tuple[int, float], noise: float = 0.0, seed: int = 0) -> list[float]:
    """Calls of a block: so many of so many seconds each, one part after the other."""
    chance = random.Random(seed)
    return [seconds * (1 + noise * chance.gauss(0, 1)) for calls, seconds in parts for _ in range(calls)]


def test_a_block_settles_where_its_calls_take_what_later_ones_take() -> None:
    blocks = [block_of((1, 1.1e-3), (7, 0.6e-3), (92, 0.4e-3), noise=0.01, seed=seed) for seed in range(4)]
    assert settling_seconds(blocks) == pytest.approx(1.1e-3 + 7 * 0.6e-3, rel=0.2)


def test_a_block_of_equal_calls_has_no_warm_in() -> None:
    """Nor, mostly, where the first call is as noisy as all others are."""
    assert settling_seconds([block_of((100, 1e-3), noise=0.02, seed=seed) for seed in range(PROBES)]) == 0
    noisy = [
        settling_seconds([block_of((60, 1e-3), noise=0.1, seed=PROBES * one + seed) for seed in range(PROBES)])
        for one in range(100)
    ]
    assert sum(found != 0 for found in noisy) <= 20


def test_calls_that_still_change_at_the_end_do_not_settle() -> None:
    falling = [[1e-3 * (1 - 0.004 * place) for place in range(100)] for _ in range(4)]
    half = sum(falling[0][:50])
    assert settling_seconds(falling) == pytest.approx(half), "the second half counts"
    assert settling_seconds([block_of((50, 1e-3), (50, 0.8e-3))] * 4) == pytest.approx(50e-3)


@pytest.mark.parametrize("blocks", [[], [[1.0]], [[1.0], [2.0, 3.0]]])
def test_of_fewer_than_two_calls_a_block_nothing_is_said(blocks: list[list[float]]) -> None:
    assert settling_seconds(blocks) == 0


def test_whole_blocks_are_looked_at_where_there_are_several_sides_and_calls_are_short() -> None:
    assert plan_probes([1e-3]).order == ()
    assert plan_probes([1e-3, 2 * LONGEST_PROBED_SECONDS]).order == ()
    plan = plan_probes([1e-3, 0.1])
    assert Counter(plan.order) == {0: PROBES, 1: PROBES}
    assert plan.block_seconds >= 0.3, "a few calls of the longer side"


def test_a_warm_in_is_part_of_the_budget_and_a_block_is_at_least_half_as_long() -> None:
    short = plan_turns([1e-3, 1e-3], 1.0)
    longer = plan_turns([1e-3, 1e-3], 1.0, warm_in_seconds=[0.0, 0.04])
    assert longer.block_seconds == pytest.approx(0.02, rel=0.1)
    spent = len(longer.order) / 2 * (longer.block_seconds + 0.04)
    assert spent == pytest.approx(1.0, rel=0.15)
    assert short.block_seconds == pytest.approx(BLOCK_SECONDS, rel=0.1)


def test_calls_that_change_within_their_blocks_are_reported() -> None:
    assert change_within([block_of((4, 1e-3), (4, 0.8e-3), noise=0.01, seed=s) for s in range(10)]) == pytest.approx(
        -0.2, abs=0.02
    )
    assert change_within([block_of((8, 1e-3), noise=0.05, seed=seed) for seed in range(10)]) is None
    assert change_within([[1.0], [2.0]]) is None
