"""What belongs to one key, as a list or as a sum, in the order in which the keys first appear."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
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
