"""Arrays that become more and more: a leak, or a list that keeps what each step made."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from jaxprof.results.programs.findings.finding import Finding, finding
from jaxprof.units import bytes_, integer, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jaxprof.results.programs.derive import ProgramResult

COUNTS: Final = 6
"""Counts after the start that a slope needs."""
START: Final = 0.25
"""Of the counts are the start, in which every program makes its arrays; they are left out."""
RISES: Final = 0.8
"""Share of the counts that must be above the one before, or equal: a cache that is filled and emptied does not do
that."""
GROWN: Final = 0.2
"""Growth over what was there after the start, in arrays or in bytes."""
GROWN_ARRAYS: Final = 50
"""And the least growth in arrays; or, of a few large ones, `GROWN_BYTES`."""
GROWN_BYTES: Final = 64 << 20
_PAIRS_OF: Final = 60
"""Counts that the slope is taken from; of more, evenly spread ones: the pairs grow with the square."""


def arrays_grow(result: ProgramResult) -> Iterator[Finding]:
    """The number of live arrays, or their bytes, rises to the end of the program."""
    if result.arrays is None:
        return
    counts = result.arrays.counts[int(START * len(result.arrays.counts)) :]
    if len(counts) < COUNTS:
        return
    times = [at for at, _, _ in counts]
    numbers, sizes = [float(count) for _, count, _ in counts], [float(size) for _, _, size in counts]
    by_number = _grows(numbers, GROWN_ARRAYS)
    if not by_number and not _grows(sizes, GROWN_BYTES):
        return
    chosen = numbers if by_number else sizes
    slope = _slope(times, chosen)
    if slope <= 0:
        return
    rate = f"{integer(60 * slope)} arrays" if by_number else bytes_(60 * slope)
    loop = result.steps
    yield finding(
        "arrays_grow",
        f"live arrays grow to the end: {integer(numbers[0])} ({bytes_(sizes[0])}) to {integer(numbers[-1])} "
        f"({bytes_(sizes[-1])}) in {seconds(times[-1] - times[0])}, {rate} a minute; {percent(_rising(chosen))} of "
        f"{len(counts)} counts rose or stayed",
        "Something keeps what each step made: a list of losses, states or gradients, a closure, a cache. Keep numbers "
        "(jax.device_get every N steps) instead of arrays, and let old states go.",
        (loop.where if loop is not None else None,),
        estimate=True,
    )


def _grows(values: Sequence[float], least: float) -> bool:
    """Whether they rise all the way: enough in all, in most counts, and in the last half as in the first."""
    grown = values[-1] - values[0]
    if grown < least or grown < GROWN * values[0] or _rising(values) < RISES:
        return False
    half = len(values) // 2
    return values[-1] - values[half] >= grown / 4  # what grew at first and then stayed is a start that took longer


def _rising(values: Sequence[float]) -> float:
    steps = list(pairwise(values))
    return sum(after >= before for before, after in steps) / len(steps)


def _slope(times: Sequence[float], values: Sequence[float]) -> float:
    """The median slope of all pairs, a second (Theil and Sen): one odd count does not move it."""
    stride = max(1, len(times) // _PAIRS_OF)
    points = list(zip(times, values, strict=True))[::stride]
    slopes = [
        (later - earlier) / (end - start)
        for at, (start, earlier) in enumerate(points)
        for end, later in points[at + 1 :]
        if end > start
    ]
    return median(slopes) if slopes else 0.0
