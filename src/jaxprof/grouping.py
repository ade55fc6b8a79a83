"""What belongs to one key, as a list or as a sum, in the order in which the keys first appear; and a long list of sizes
thinned without the loss of a peak.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")
_Number = TypeVar("_Number", int, float)


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Return the values of each key."""
    groups: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def totals(pairs: Iterable[tuple[_Key, _Number]]) -> dict[_Key, _Number]:
    """Return the sum of the values of each key."""
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


def thinned(sizes: Sequence[int], most: int) -> list[int]:
    """Return at most `most` sizes, with every peak."""
    return [sizes[at] for at in peaks(sizes, most)]
