"""Plan measuring in turns: blocks of calls, the order in which sides get them, and which blocks are neighbours.

Sides that are compared live at the same time and get short blocks in turn, so that a disturbance of the machine affects
all of them alike. A block (about 10 ms) is shorter than most disturbances, and the pair of neighbouring blocks of two
sides is the smallest unit that shows their ratio.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence

from jaxprof.base.values import frozen

BLOCK_SECONDS = 0.01
"""Length of a block, unless one call is longer: beside a neighbour whose bursts last 50 to 800 ms, 150 ms blocks gave
false verdicts in 2 of 6 comparisons, and 12 ms blocks in none."""


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
SETTLED_WITHIN = 0.03
"""Calls have settled if they take as long as later ones, within this share."""
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


@frozen
class Block:
    """Successive calls of one side, made while no other side ran."""

    side: int
    """Number of the side, from 0 on."""
    seconds: tuple[float, ...]
    """Seconds of each call, in the order made."""

    @property
    def is_time(self) -> bool:
        """Whether every sample is a time: finite and above zero."""
        return not self.seconds or (math.isfinite(sum(self.seconds)) and min(self.seconds) > 0)

    @property
    def median(self) -> float:
        """Median of the calls, in seconds; only for a block with calls."""
        return middle(self.seconds)


@frozen
class LaunchBlocks:
    """The blocks of one launch (a fresh process for each side), in the order measured."""

    blocks: tuple[Block, ...]
    in_turns: bool = True
    """Whether the sides' processes lived together and their blocks took turns. If not, the sides followed each other,
    each as a short launch of its own: then only their medians can be compared, and only over several launches."""

    def of_side(self, side: int) -> list[Block]:
        return [block for block in self.blocks if block.side == side and block.seconds]

    def fast_call(self, side: int) -> float | None:
        """Return the seconds that a tenth of one side's calls fall below: the calls slowed by other processes are above
        it. None without calls."""
        calls = sorted(second for block in self.of_side(side) for second in block.seconds)
        return calls[len(calls) // 10] if calls else None

    def pairs(self, side: int, other: int) -> list[tuple[Block, Block]]:
        """Return pairs of blocks of the two sides that followed each other, each block in one pair at most, `side`'s
        first.

        Blocks of further sides may lie between them. A block whose partner is missing is left out."""
        blocks = [block for block in self.blocks if block.side in (side, other) and block.seconds]
        pairs = []
        position = 0
        while position + 1 < len(blocks):
            first, second = blocks[position : position + 2]
            if first.side == second.side:
                position += 1
                continue
            pairs.append((first, second) if first.side == side else (second, first))
            position += 2
        return pairs


def middle(values: Sequence[float]) -> float:
    """Return the median of one or more values, without NumPy, which takes forty times as long for a few values. The
    median of the least and the largest times that a float holds is still a time."""
    ordered, count = sorted(values), len(values)
    lower, upper = ordered[(count - 1) // 2], ordered[count // 2]
    return lower + (upper - lower) / 2


def in_blocks(samples: Sequence[float], side: int = 0, seconds: float = BLOCK_SECONDS) -> tuple[Block, ...]:
    """Cut the successive `samples` (seconds) of one process into blocks of at least `seconds`, or one call if that is
    longer. A shorter rest at the end joins the last block."""
    blocks: list[list[float]] = [[]]
    spent = 0.0
    for sample in samples:
        if spent >= seconds:
            blocks.append([])
            spent = 0.0
        blocks[-1].append(sample)
        spent += sample
    if len(blocks) > 1 and spent < seconds:
        left_over = blocks.pop()
        blocks[-1] += left_over
    return tuple(Block(side, tuple(block)) for block in blocks if block)


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
    rounds = max(least_blocks(launches), math.ceil(budget_seconds / (longest + warm_in)))
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


def settling_seconds(blocks: Sequence[Sequence[float]]) -> float:
    """Return how soon the calls of whole `blocks` (seconds of each call, in order) settle after the turn of another
    side. The calls are compared by their place in their block, in groups that double, with those of the second half of
    the same block. If they still change at its end, the result is half a block.

    Calls at a place have not settled if they differ in a third of the blocks, in one direction: threads that a
    scheduler woke on one core separate sometimes after 2 ms, sometimes after 40 ms. A difference counts if it exceeds
    `SETTLED_WITHIN` and the scatter of the calls. With fewer than two calls a block nothing can be seen, and the result
    is 0.
    """
    length = min((len(block) for block in blocks), default=0)
    if length < 2:
        return 0.0
    half = length // 2
    end, begin, until = 0, 0, 1
    while begin < half:
        # The calls at two places of a block differ by more than the scatter of all blocks, with one direction a third
        # of the blocks ahead of the other.
        early = slice(begin, min(until, half))
        late = slice(half, length)
        ends = [middle(block[late]) for block in blocks]
        scatter = middle([abs(call / end - 1) for block, end in zip(blocks, ends, strict=True) for call in block[late]])
        error = _ERROR_OF_MEDIAN * scatter * math.sqrt(1 / len(blocks[0][early]) + 1 / len(blocks[0][late]))
        beyond = max(SETTLED_WITHIN, _SURELY * error)
        ratios = [middle(block[early]) / end - 1 for block, end in zip(blocks, ends, strict=True)]
        slower, faster = sum(ratio > beyond for ratio in ratios), sum(ratio < -beyond for ratio in ratios)
        if abs(slower - faster) >= max(2, len(blocks) / 3):
            end = min(until, half)
        begin, until = until, 2 * until
    return middle([math.fsum(block[:end]) for block in blocks]) if end else 0.0


def change_within(blocks: Sequence[Sequence[float]]) -> float | None:
    """Return the share by which the calls in the second halves of `blocks` differ from those in the first halves; None
    if they do not, or if nothing can be seen. The middle call of an odd number counts with neither."""
    halves: tuple[list[float], list[float]] = ([], [])
    for block in blocks:
        half = len(block) // 2
        if half:
            halves[0].extend(block[:half])
            halves[1].extend(block[-half:])
    # Fewer calls show nothing.
    if len(halves[0]) < 8:
        return None
    early, late = map(middle, halves)
    error = math.hypot(*map(_error_of_median, halves))
    return late / early - 1 if abs(early - late) > max(SETTLED_WITHIN * late, _SURELY * error) else None


_SURELY = 3.0
"""A difference beyond this many standard errors is not due to chance."""


def _error_of_median(values: Sequence[float]) -> float:
    """Return the standard error of the median, from the median absolute deviation, for values that are about normal."""
    centre = middle(values)
    deviation = middle([abs(value - centre) for value in values])
    return _ERROR_OF_MEDIAN * deviation / math.sqrt(len(values))


_ERROR_OF_MEDIAN = 1.4826 * 1.2533
"""Standard error of the median of one value, in median absolute deviations."""


def least_blocks(launches: int) -> int:
    """Return the least number of blocks of a side in each of `launches`, however long its calls."""
    return max(LEAST_BLOCKS, math.ceil(LEAST_SAMPLES / launches))


def not_times(launches: Iterable[LaunchBlocks], *sides: int) -> bool:
    """Return whether any sample of these sides is not a time: zero, negative, infinite or not a number."""
    return any(not block.is_time for launch in launches for block in launch.blocks if block.side in sides)
