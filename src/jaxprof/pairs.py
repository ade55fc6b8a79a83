"""Things of two sides that belong together: how each comparison finds what is the same, changed, new or gone.

Sessions, runs, computations, instructions, kernels, buffers, ledgers, jobs and findings are all paired here, by keys
that begin with the surest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

Existence: TypeAlias = Literal["same", "changed", "new", "gone"]
Paired = TypeVar("Paired")


@dataclass(frozen=True, slots=True)
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
    """Return the pairs of `paired` with their status; pairs with equal `content` are the same."""
    rows: list[Pair[Paired]] = []
    for before, after in paired(ours, theirs, keys):
        if before is None or after is None:
            rows.append(Pair("new" if before is None else "gone", before, after))
        else:
            rows.append(Pair("same" if content(before) == content(after) else "changed", before, after))
    return rows


def paired(
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
