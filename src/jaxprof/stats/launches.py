"""Estimate one variant's median over its launches, with an interval for the mean of further launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from jaxprof.stats.location import Location, bounded_exp, launch_mean, location, of_difference
from jaxprof.stats.summary import MedianTime, Summary, summarise
from jaxprof.stats.turns import BLOCK_SECONDS, LaunchBlocks, in_blocks, middle, not_times


def summarise_launches(launches: Sequence[LaunchBlocks]) -> MedianTime | None:
    """Return the median of side 0 over its launches; None if it has no samples, or one that is not a time.

    The median is the middle one of the launches' medians, because the mean of 44 µs in one launch and 77 µs in the next
    occurs in no launch; with one launch, it is that of its blocks.

    The interval is Student's over the logarithms of the launches' medians and never narrower than the blocks within
    them allow; with one launch it is that of its blocks, batched because neighbours are alike.
    """
    if not_times(launches, 0):
        return None
    logs = [[math.log(block.median) for block in launch.of_side(0)] for launch in launches]
    medians = [location(values) for values in logs if values]
    if not medians:
        return None
    mean, count = launch_mean(medians), len(medians)
    centre = middle([median.value for median in medians])
    half = max((spread.half_width(0.95) for spread in mean.spreads), default=None)
    return MedianTime(
        median=bounded_exp(centre),
        low=None if half is None else bounded_exp(min(centre, mean.value - half)),
        high=None if half is None else bounded_exp(max(centre, mean.value + half)),
        unit="launch" if count > 1 else "block",
        launches=count,
    )


ALONE_MARGIN = 0.03
"""Largest difference between a run's time in turns and its time alone that is not reported, as a share."""
ALONE_MARGIN_OF_ONE = 0.2
"""`ALONE_MARGIN` for one launch: its calls alone take a quarter of a second, in which others may use the machine."""


def turns_over_alone(turns: Sequence[LaunchBlocks], alone: Sequence[LaunchBlocks]) -> tuple[float, bool] | None:
    """Return a run's time in turns over its time alone (both as side 0, launch by launch), and whether the two differ:
    by more than `ALONE_MARGIN`, and by more than the 95 % interval of their ratio. None if a launch lacks one of them.
    With one launch the fast calls have to differ as well, because bursts of other programs spare some.

    If the error is not known (one launch of few blocks), they do not differ.
    """
    if not turns or len(turns) != len(alone) or not_times(turns, 0) or not_times(alone, 0):
        return None
    differences = []
    margin = ALONE_MARGIN if len(turns) > 1 else ALONE_MARGIN_OF_ONE
    for sides in zip(turns, alone, strict=True):
        logs = [[math.log(block.median) for block in launch.of_side(0)] for launch in sides]
        if not all(logs):
            return None
        one, two = map(location, logs)
        spread = of_difference(one.spread, two.spread) if one.spread and two.spread else None
        differences.append(Location(one.value - two.value, spread))
    mean = launch_mean(differences)
    half = max((spread.half_width(0.95) for spread in mean.spreads), default=math.inf)
    differ = abs(mean.value) > max(half, math.log1p(margin))
    if len(turns) == 1:
        fast = turns[0].fast_call(0), alone[0].fast_call(0)
        of_fast = math.log(fast[0] / fast[1]) if fast[0] and fast[1] else 0.0
        differ &= of_fast * math.copysign(1, mean.value) > math.log1p(margin) / 2
    return bounded_exp(mean.value), differ


def summarise_run(
    samples: Sequence[float], launches: Sequence[LaunchBlocks] = (), calls_per_sample: int = 1
) -> Summary | None:
    """Return the summary of a steady run (seconds a call); its interval is computed from launches or blocks, not calls.

    `launches` holds the run's blocks, as side 0; if a run was not measured in turns, its `samples` are cut into blocks.
    With one launch the median is that of all samples, and the blocks give its interval. None if there are no samples.
    """
    summary = summarise(samples)
    if summary is None:
        return None
    blocks = launches or [LaunchBlocks(in_blocks(samples, seconds=BLOCK_SECONDS / max(1, calls_per_sample)))]
    over_units = summarise_launches(blocks)
    if over_units is None:
        return summary
    centre = over_units.median if over_units.launches > 1 else summary.median
    bounds = [None if end is None else end / over_units.median * centre for end in (over_units.low, over_units.high)]
    return replace(
        summary, median=centre, low=bounds[0], high=bounds[1], unit=over_units.unit, launches=over_units.launches
    )
