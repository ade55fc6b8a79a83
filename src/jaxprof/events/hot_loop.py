"""Choose a program's hot loop, the same way in the recorder, which times it, and in the readers of its recording.

It is the innermost loop that holds most of the program's loop time and most of its work with JAX: not a loop inside a
data loader, which does not call JAX, and not the loop over epochs around the loop over batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

KEEPS = 0.7
"""Share of the outer loop's seconds, and of its work with JAX, that an inner loop must hold to be chosen instead."""

_Key = TypeVar("_Key")


def hot_loop(seen: Iterable[tuple[tuple[_Key, ...], float, bool]]) -> _Key | None:
    """Return the loop with most of the work. Each sample is (loops around a place, innermost first; seconds; whether
    JAX worked).

    None if JAX works in no loop.
    """
    seconds: dict[_Key, float] = {}
    work: dict[_Key, float] = {}
    depth: dict[_Key, int] = {}
    for around, took, works in seen:
        for index, key in enumerate(around):
            seconds[key] = seconds.get(key, 0.0) + took
            depth[key] = max(depth.get(key, 0), index)
            if works:
                work[key] = work.get(key, 0.0) + took
    if not work:
        return None
    root = max(work, key=lambda key: (seconds[key], depth[key]))
    inside = [key for key in work if work[key] >= KEEPS * work[root] and seconds[key] >= KEEPS * seconds[root]]
    return min(inside, key=lambda key: (depth[key], seconds[key]))
