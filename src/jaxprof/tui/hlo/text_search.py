"""Searches a text of any size with a regular expression.

The search goes piece by piece, so that a thread can be stopped and lets others work. Matches are offsets in an array,
eight bytes each. Empty matches do not count.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from jaxprof.units import integer

_PIECE = 1 << 18
"""Characters per piece. A piece takes about a millisecond, during which the thread holds the interpreter lock."""
MOST = 1_000_000
"""Most matches kept; a search with more of them is marked as incomplete."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The matches of a search."""

    pattern: re.Pattern[str]
    offsets: array[int]
    """Offsets of the matches, ascending."""
    complete: bool = True
    """False if there are more matches than are kept."""

    def following(self, offset: int, step: int) -> int | None:
        """Return the index of the next or previous match from `offset`, wrapping around the text; None without any."""
        if not self.offsets:
            return None
        if step > 0:
            return bisect_right(self.offsets, offset) % len(self.offsets)
        return (bisect_left(self.offsets, offset) - 1) % len(self.offsets)

    def words(self, index: int | None) -> str:
        """Return the state of the search: `3 of 128`, `none` or `1 000 000 or more`."""
        if not self.offsets:
            return "none"
        shown = integer(len(self.offsets)) + ("" if self.complete else " or more")
        return f"{index + 1} of {shown}" if index is not None else shown


def search(text: str, pattern: re.Pattern[str], wanted: Callable[[], bool] = lambda: True) -> Hits | None:
    """Return the matches of a pattern in a text; None once the search is no longer `wanted`. Blocks: for threads."""
    offsets, at = array("Q"), 0
    while at < len(text) and len(offsets) < MOST:
        if not wanted():
            return None
        end = text.find("\n", min(at + _PIECE, len(text)))
        end = len(text) if end < 0 else end + 1
        found = (match for match in pattern.finditer(text, at, end) if match.end() > match.start())
        offsets.extend(match.start() for match in found)
        at = end
    return Hits(pattern, offsets[:MOST], complete=len(offsets) < MOST)
