"""The search of a text of any size with a regular expression.

It goes in pieces, so that a thread can do it and be stopped: from a place to the end and then from the beginning to
that place, so that the next match is known first. Matches are offsets in an array, eight bytes each. Empty matches do
not count.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

_PIECE = 1 << 18
"""Characters per piece: about a millisecond, during which the thread holds the interpreter lock."""
MOST = 1_000_000
"""Matches kept; a search that finds more reports so."""


def pieces(text: str, start: int) -> Iterator[tuple[int, int]]:
    """The pieces to search, which end at line breaks: from `start` on, then those before it."""
    for begin, limit in ((start, len(text)), (0, start)):
        at = begin
        while at < limit:
            end = text.find("\n", min(at + _PIECE, limit), limit)
            end = limit if end < 0 else end + 1
            yield at, end
            at = end


def matches(text: str, pattern: re.Pattern[str], piece: tuple[int, int]) -> list[int]:
    """The offsets of the matches in a piece of the text."""
    return [match.start() for match in pattern.finditer(text, *piece) if match.end() > match.start()]


@dataclass(slots=True)
class Hits:
    """The matches of a search so far."""

    pattern: re.Pattern[str]
    start: int
    """Where it began."""
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    """Sorted once the search is over; until then those from `start` on come first."""
    over: bool = False
    complete: bool = True
    """False where there are more matches than are kept."""

    def take(self, offsets: list[int]) -> None:
        """Adds the matches of one piece."""
        self.offsets.extend(offsets[: MOST - len(self.offsets)])
        self.complete = self.complete and len(self.offsets) < MOST

    def finish(self) -> None:
        """Sorts the matches after the last piece."""
        self.offsets = array("Q", sorted(self.offsets))
        self.over = True

    def following(self, offset: int, step: int) -> int | None:
        """The index of the next or previous match from `offset`, wrapping around the text; None without any."""
        if not self.offsets:
            return None
        if not self.over:
            return 0
        if step > 0:
            return bisect_right(self.offsets, offset) % len(self.offsets)
        return (bisect_left(self.offsets, offset) - 1) % len(self.offsets)

    def words(self, index: int | None) -> str:
        """`3 of 128`, `none`, `1 000 000 or more`."""
        count = len(self.offsets)
        shown = f"{count:,}".replace(",", "\u202f") + ("" if self.complete else " or more")
        if not self.over:
            return f"{shown}…"
        if not count:
            return "none"
        return f"{index + 1} of {shown}" if index is not None else shown
