"""The things of two sides that belong together, by the best key that they share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Paired = TypeVar("Paired")


def paired(
    ours: Sequence[Paired], theirs: Sequence[Paired], keys: Sequence[Callable[[Paired], Hashable]]
) -> list[tuple[Paired | None, Paired | None]]:
    """Pairs whose keys are equal, by the first key first, in order; a key that is None matches nothing.

    In the order of `theirs`, those of `ours` that belong to none at the end. Each is in one pair.
    """
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
