"""The summary of a steady run: the median of its calls, with the interval of its blocks or launches."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest

from jaxprof.stats import Block, LaunchBlocks, summarise, summarise_launches, summarise_run, turns_over_alone


def calls(count: int, median: float = 0.004, wobble: float = 0.05, seed: int = 3) -> list[float]:
    noise = Random(seed)
    return [median * math.exp(noise.gauss(0, wobble)) for _ in range(count)]


def launch(samples: list[float], size: int = 5) -> LaunchBlocks:
    return LaunchBlocks(tuple(Block(0, tuple(samples[at : at + size])) for at in range(0, len(samples), size)))


def test_with_one_launch_the_median_is_that_of_the_calls_and_the_interval_that_of_the_blocks() -> None:
    samples = calls(100)
    over_blocks = summarise_launches([launch(samples)])
    found = summarise_run(samples, [launch(samples)])
    assert found is not None
    assert over_blocks is not None
    assert (found.median, found.unit, found.launches, found.count) == (np.median(samples), "block", 1, 100)
    assert found.low is not None
    assert found.low / found.median == pytest.approx(over_blocks.low / over_blocks.median)  # type: ignore[operator]
    assert found.high / found.median == pytest.approx(over_blocks.high / over_blocks.median)  # type: ignore[operator]
    assert found.relative_halfwidth == pytest.approx(over_blocks.relative_halfwidth)
    assert over_blocks.relative_halfwidth == pytest.approx(
        (over_blocks.high - over_blocks.low) / 2 / over_blocks.median  # type: ignore[operator]
    )


def test_over_launches_the_median_is_theirs_and_each_counts_the_same() -> None:
    short, long = calls(20, 0.004, 0.0), calls(200, 0.009, 0.0)
    found = summarise_run([*short, *long], [launch(short), launch(long)])
    assert found is not None
    assert found.median == pytest.approx(0.006)
    assert (found.unit, found.launches, found.count) == ("launch", 2, 220)
    assert found.low < 0.004 < 0.009 < found.high  # type: ignore[operator]


def test_a_run_that_took_no_turns_is_cut_into_blocks() -> None:
    samples = calls(60)
    cut = summarise_run(samples)
    assert cut is not None
    assert cut.unit == "block"
    # Of 4 ms a call, a block of 10 ms has three; where a sample is of ten calls, it is a block.
    three = summarise_run(samples, [launch(samples, 3)])
    assert three is not None
    assert (cut.low, cut.high) == (pytest.approx(three.low, rel=0.01), pytest.approx(three.high, rel=0.01))
    assert summarise_run(samples, calls_per_sample=10) == summarise_run(samples, [launch(samples, 1)])


def test_what_has_no_blocks_or_no_times_has_the_summary_of_its_calls() -> None:
    assert summarise_run([]) is None
    samples = [0.0, *calls(9)]
    found = summarise_run(samples)
    assert found == summarise(samples)
    assert found is not None
    assert (found.unit, found.launches) == ("call", 1)


def test_the_interval_over_launches_is_never_narrower_than_their_blocks_allow() -> None:
    """Two launches that agree by chance, of blocks that do not."""
    samples = calls(80, wobble=0.3)
    found = summarise_launches([launch(samples), launch(samples)])
    one = summarise_launches([launch(samples)])
    assert found is not None
    assert one is not None
    assert found.relative_halfwidth > 0.5 * one.relative_halfwidth  # type: ignore[operator]
    assert (found.units, one.units) == (2, 16)


def launches_of(*medians: float, noise: float = 0.01) -> list[LaunchBlocks]:
    chance = Random(1)
    return [
        LaunchBlocks(tuple(Block(0, tuple(m * (1 + noise * chance.gauss(0, 1)) for _ in range(9))) for _ in range(20)))
        for m in medians
    ]


def test_turns_that_take_longer_than_the_run_alone_differ_from_it() -> None:
    alone = launches_of(1.00e-3, 1.01e-3, 0.99e-3)
    ratio, differs = turns_over_alone(launches_of(1.6e-3, 1.65e-3, 1.58e-3), alone) or (0, False)
    assert differs
    assert ratio == pytest.approx(1.61, rel=0.02)


def test_turns_within_their_interval_or_close_by_do_not_differ_from_the_run_alone() -> None:
    alone = launches_of(1.00e-3, 1.01e-3, 0.99e-3)
    for turns in (launches_of(1.02e-3, 1.03e-3, 1.01e-3), launches_of(0.8e-3, 1.2e-3, 1.3e-3)):
        found = turns_over_alone(turns, alone)
        assert found is not None
        assert not found[1]


def test_of_launches_that_were_not_measured_alone_nothing_is_known() -> None:
    assert turns_over_alone(launches_of(1e-3), []) is None
    assert turns_over_alone([], []) is None
    assert turns_over_alone(launches_of(1e-3), [LaunchBlocks(())]) is None


def test_bursts_of_others_that_spare_some_calls_are_not_what_the_other_sides_leave() -> None:
    quiet = [launch(calls(100, 1e-3, 0.01))]
    for calm in (2, 0):  # of each five calls, so many are of a quiet machine
        spoiled = [
            launch([second * (1.0 if at % 5 < calm else 1.5) for at, second in enumerate(calls(100, 1e-3, 0.01, 4))])
        ]
        _ratio, differs = turns_over_alone(spoiled, quiet) or (0, None)
        assert differs is (calm == 0)
