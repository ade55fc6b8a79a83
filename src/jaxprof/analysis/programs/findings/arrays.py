"""Memory: live arrays that keep growing in number or size, and donated arrays that no output can reuse."""

from __future__ import annotations

from itertools import accumulate, pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.programs.result import ProgramFinding, finding
from jaxprof.text import safe
from jaxprof.units import bytes_, integer, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jaxprof.analysis.programs.findings.claims import Claims
    from jaxprof.analysis.programs.result import ProgramResult

COUNTS: Final = 6
"""Counts after the start that a slope needs."""
START: Final = 0.25
"""Share of the counts that belong to the start, when every program makes its arrays; they are left out."""
RISES: Final = 0.8
"""Share of the counts that must be equal to or above the previous one: a cache that is filled and emptied fails
this."""
GROWN: Final = 0.2
"""Growth since just after the start, in arrays or in bytes."""
GROWN_ARRAYS: Final = 50
"""The least growth in arrays; or, for a few large ones, `GROWN_BYTES`."""
LEAST_BYTES: Final = 1 << 20
"""What they must hold together: some hundred scalars, kept to be fetched at the end, are no leak."""
MANY_ARRAYS: Final = 5_000
"""Or this many arrays: each costs its Python objects, whatever it holds."""
ONE_JUMP: Final = 0.5
"""Share of the growth that one count may add: parameters that are joined by their gradients once, or by the state of an
optimizer, are no leak."""
GROWN_BYTES: Final = 64 << 20
UNUSED_BYTES: Final = 1 << 20
"""Size of donated arrays below which reusing their memory gains nothing."""
_LEAVES_NAMED: Final = 3
_PAIRS_OF: Final = 60
"""Number of counts that the slope is taken from, evenly spread if there are more: the pairs grow with the square."""


def arrays_grow(result: ProgramResult, _claims: Claims) -> Iterator[ProgramFinding]:
    """The number of live arrays, or their bytes, rises to the end of the program."""
    if result.arrays is None:
        return
    counts = result.arrays.counts[int(START * len(result.arrays.counts)) :]
    if len(counts) < COUNTS:
        return
    times = [at for at, _, _ in counts]
    numbers, sizes = [float(count) for _, count, _ in counts], [float(size) for _, _, size in counts]
    by_number = _grows(numbers, GROWN_ARRAYS) and (
        sizes[-1] - sizes[0] >= LEAST_BYTES or numbers[-1] - numbers[0] >= MANY_ARRAYS
    )
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
        f"live arrays keep growing: {integer(numbers[0])} ({bytes_(sizes[0])}) to {integer(numbers[-1])} "
        f"({bytes_(sizes[-1])}) in {seconds(times[-1] - times[0])}, {rate} a minute; {percent(_rising(chosen))} of "
        f"{len(counts)} counts rose or stayed level",
        "Something keeps what each step makes: a list of losses, states or gradients, a closure, or a cache. Keep "
        "numbers (jax.device_get every N steps) instead of arrays, and drop references to old states.",
        (loop.where if loop is not None else None,),
        estimate=True,
        held=int(sizes[-1] - sizes[0]),
    )


def unused_donation(result: ProgramResult, _claims: Claims) -> Iterator[ProgramFinding]:
    """Arrays were donated that no output of the program can reuse: their memory is wasted."""
    for function in result.functions:
        rows = [row for row in function.rows if row.unused_donations]
        sizes = [(sum(leaf.bytes or 0 for leaf in row.unused_donations), row) for row in rows]
        size, row = max(sizes, key=lambda item: item[0], default=(0, None))
        if row is None or size < UNUSED_BYTES:
            continue
        leaves = sorted(row.unused_donations, key=lambda leaf: -(leaf.bytes or 0))
        named = ", ".join(f"{leaf.name}: {leaf.type}" for leaf in leaves[:_LEAVES_NAMED])
        more = f" and {len(leaves) - _LEAVES_NAMED} more" if len(leaves) > _LEAVES_NAMED else ""
        yield finding(
            "unused_donation",
            f"`{safe(function.function)}` donates {bytes_(size)} that no output can reuse ({safe(named)}{more}): the "
            "caller loses the arrays, and no memory is saved",
            "Donate (donate_argnums) only arrays that come back with the same shape and dtype, or return the new "
            "array with the dtype of the old one.",
            (function.called_from, function.defined_at),
            function=function.function,
            held=size,
        )


def _grows(values: Sequence[float], least: float) -> bool:
    """Whether the numbers rise all the way: enough in total, in most counts, and in the second half as in the first."""
    grown = values[-1] - values[0]
    if grown < least or grown < GROWN * values[0] or _rising(values) < RISES:
        return False
    highest, lowest = list(accumulate(values, max)), list(accumulate(reversed(values), min))[::-1]
    if max(after - before for before, after in zip(highest, lowest[1:], strict=False)) > ONE_JUMP * grown:
        return False
    half = len(values) // 2
    return values[-1] - values[half] >= grown / 4  # growth that stops after a while is a start that took longer


def _rising(values: Sequence[float]) -> float:
    steps = list(pairwise(values))
    return sum(after >= before for before, after in steps) / len(steps)


def _slope(times: Sequence[float], values: Sequence[float]) -> float:
    """The median slope of all pairs, per second (Theil and Sen): a single outlier does not move it."""
    stride = max(1, len(times) // _PAIRS_OF)
    points = list(zip(times, values, strict=True))[::stride]
    slopes = [
        (later - earlier) / (end - start)
        for at, (start, earlier) in enumerate(points)
        for end, later in points[at + 1 :]
        if end > start
    ]
    return median(slopes) if slopes else 0.0
