"""Plan measuring in turns: blocks of calls, the order in which sides get them, and which blocks are neighbours.

Sides that are compared live at the same time and get short blocks in turn, so that a disturbance of the machine affects
all of them alike. A block (about 10 ms) is shorter than most disturbances, and the pair of neighbouring blocks of two
sides is the smallest unit that shows their ratio.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from jaxprof.base.values import frozen
from jaxprof.stats.blocks import BLOCK_SECONDS

PROBES = 6
"""Number of whole blocks of each side that show how soon its calls settle."""
PROBE_SECONDS = 0.08
"""Length of such a block. A million numbers through an elementwise function took 1.5 times as long after another
process's turn, and settled after 2 to 40 ms, varying from turn to turn (its threads shared a core until then); a matrix
product settled after 2 ms."""
LONGEST_PROBED_SECONDS = 0.25
"""Longest call that is probed. Cold caches delay a longer call only a little, so its first call counts."""
UNPROBED_WARM_IN_SECONDS = 0.03
"""Warm-in of a short call measured beside one too long to be probed."""
ALONE_SECONDS = 0.25
"""Time for which each side is measured alone before any turn, as a control of the turns."""
ALONE_SHARE = 0.4
"""Largest share of a side's budget in a launch for measuring it alone."""
ALONE_SAMPLES = 2_000
ALONE_WARM_IN_SECONDS = 0.02
LEAST_BLOCKS = 4
"""Least number of blocks of a side in a launch, however long its calls: two rounds there and back."""
LEAST_SAMPLES = 6
"""Least number of samples of a side over all launches: four calls of two seconds showed almost nothing."""
MOST_SAMPLES = 10_000
"""Largest number of samples of a side over all launches."""


def block_order(sides: int, blocks: int, seed: int = 0) -> tuple[int, ...]:
    """Return the side of each block: `blocks` for each of `sides` sides, `sides` × `blocks` in all.

    The order is made of rounds in which each side has one block. Two sides: ABBA BAAB or BAAB ABBA, so that neither a
    steady nor a bending drift favours one. More: the rounds of a Williams square, in which each side takes each place,
    and follows each other side, equally often (E. J. Williams, "Experimental designs balanced for the estimation of
    residual effects of treatments", 1949). `seed` determines which side is called A and the order of the rounds: a
    different seed for each launch evens out what an unfinished square leaves.
    """
    shuffled = random.Random(seed)
    order: list[int] = []
    while len(order) < sides * blocks:
        names = list(range(sides))
        shuffled.shuffle(names)
        rounds: list[tuple[int, ...]] = [(0, 1), (1, 0), (1, 0), (0, 1)]
        if sides != 2:
            zigzag = [(index + 1) // 2 if index % 2 else -(index // 2) % sides for index in range(sides)]
            rounds = [tuple((index + shift) % sides for index in zigzag) for shift in range(sides)]
            if sides % 2:  # each pair of sides is in each order equally often in twice as many rounds
                rounds += [row[::-1] for row in rounds]
            shuffled.shuffle(rounds)
        order += [names[index] for row in rounds for index in row]
    return tuple(order[: sides * blocks])


@frozen
class TurnPlan:
    """The turns of one launch."""

    order: tuple[int, ...]
    """Number of the side that has each block."""
    block_seconds: float
    most_samples: int
    """Largest number of samples of a block."""


def plan_turns(
    call_seconds: Sequence[float],
    budget_seconds: float,
    *,
    launch: int = 1,
    launches: int = 1,
    block_seconds: float = BLOCK_SECONDS,
    warm_in_seconds: Sequence[float] = (),
) -> TurnPlan:
    """Plan the turns of sides whose samples take `call_seconds` each, in one of `launches`. Each side has
    `budget_seconds` in it, including the time its calls take to settle in each block (`warm_in_seconds`). Blocks last
    `block_seconds`, or as long as the longest sample, or half the longest warm-in: many short blocks show more than few
    long ones."""
    warm_in = max(warm_in_seconds, default=0.0)
    longest = max(block_seconds, warm_in / 2, *call_seconds)
    # Each side has enough blocks in all launches together, however long its calls.
    least = max(LEAST_BLOCKS, math.ceil(LEAST_SAMPLES / launches))
    rounds = max(least, math.ceil(budget_seconds / (longest + warm_in)))
    rounds += rounds % 2
    return TurnPlan(
        order=block_order(len(call_seconds), rounds, seed=launch),
        block_seconds=max(longest if warm_in else block_seconds, budget_seconds / rounds - warm_in),
        most_samples=max(1, MOST_SAMPLES // (rounds * launches)),
    )


def plan_probes(call_seconds: Sequence[float]) -> TurnPlan:
    """Plan whole blocks that show how soon the calls of each side settle after the turn of another: before the turns
    that count, once for each program. The plan is empty for one side alone, and if a call is too long to be probed."""
    probed = len(call_seconds) > 1 and max(call_seconds) <= LONGEST_PROBED_SECONDS
    return TurnPlan(
        order=block_order(len(call_seconds), PROBES) if probed else (),
        block_seconds=max(PROBE_SECONDS, 3 * max(call_seconds)) if probed else 0.0,
        most_samples=MOST_SAMPLES // PROBES,
    )
