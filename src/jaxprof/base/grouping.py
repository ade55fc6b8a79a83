"""Group and total items by key, in the order in which the keys first appear; pair the items of two sides; thin a long
list of sizes but keep its peaks.

Sessions, runs, computations, instructions, kernels, buffers, ledgers, jobs and findings are all paired here, by keys
that begin with the surest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Generic, Literal, TypeAlias, TypeVar

from jaxprof.base.values import frozen

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")
_Number = TypeVar("_Number", int, float)


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    groups: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def totals(pairs: Iterable[tuple[_Key, _Number]]) -> dict[_Key, _Number]:
    sums: dict[_Key, _Number] = {}
    for key, value in pairs:
        sums[key] = sums[key] + value if key in sums else value
    return sums


def peaks(sizes: Sequence[int], most: int) -> Sequence[int]:
    """Return the indices of at most `most` sizes: the highest of each section."""
    if len(sizes) <= most:
        return range(len(sizes))
    edges = [number * len(sizes) // most for number in range(most + 1)]
    return [max(range(low, high), key=sizes.__getitem__) for low, high in pairwise(edges)]


def thin_out(sizes: Sequence[int], most: int) -> list[int]:
    """Return at most `most` sizes, with every peak."""
    return [sizes[at] for at in peaks(sizes, most)]


Existence: TypeAlias = Literal["same", "changed", "new", "gone", "unclear"]
"""`unclear`: only one side has it, and that may be chance, or the other side was not seen to its end."""
Paired = TypeVar("Paired")


@frozen
class Pair(Generic[Paired]):
    """Things of two sides that belong together; if only one side has one, the other is None."""

    status: Existence
    before: Paired | None
    after: Paired | None

    @property
    def either(self) -> Paired:
        """The thing of the second side; if it is gone, that of the first."""
        one = self.after if self.after is not None else self.before
        assert one is not None
        return one

    def part(self, figure: str) -> float:
        """Return the contribution to the difference of a figure's sums (such as `bytes`): after minus before."""
        before, after = (0 if side is None else getattr(side, figure) for side in (self.before, self.after))
        return float(after - before)


def pairs(
    ours: Sequence[Paired],
    theirs: Sequence[Paired],
    keys: Sequence[Callable[[Paired], Hashable]],
    content: Callable[[Paired], object],
) -> list[Pair[Paired]]:
    """Return the pairs of `pair_up` with their status; pairs with equal `content` are the same."""
    rows: list[Pair[Paired]] = []
    for before, after in pair_up(ours, theirs, keys):
        if before is None or after is None:
            rows.append(Pair("new" if before is None else "gone", before, after))
        else:
            rows.append(Pair("same" if content(before) == content(after) else "changed", before, after))
    return rows


def pair_up(
    ours: Sequence[Paired], theirs: Sequence[Paired], keys: Sequence[Callable[[Paired], Hashable]]
) -> list[tuple[Paired | None, Paired | None]]:
    """Pair items with equal keys, first by the first key; a key of None matches nothing. The pairs are in the order of
    `theirs`, with unmatched items of `ours` at the end. Each item is in one pair."""
    partner: dict[int, Paired] = {}
    left, right = list(enumerate(ours)), list(enumerate(theirs))
    for key in keys:
        waiting: dict[Hashable, list[int]] = defaultdict(list)
        for number, one in reversed(left):
            waiting[key(one)].append(number)
        waiting.pop(None, None)
        taken: set[int] = set()
        for number, other in right:
            same = waiting.get(key(other))
            if same:
                taken.add(same[-1])
                partner[number] = ours[same.pop()]
        left = [item for item in left if item[0] not in taken]
        right = [item for item in right if item[0] not in partner]
    return [*((partner.get(number), other) for number, other in enumerate(theirs)), *((one, None) for _, one in left)]
