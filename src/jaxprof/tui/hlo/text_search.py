"""Searches a text of any size with a regular expression.

The search goes piece by piece, so that a thread can run it and stop: from the cursor to the end, then from the
beginning to the cursor, so that the next match is known first. Matches are offsets in an array, eight bytes each. Empty
matches do not count.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

_PIECE = 1 << 18
"""Characters per piece. A piece takes about a millisecond, during which the thread holds the interpreter lock."""
MOST = 1_000_000
"""Most matches kept; a search with more of them is marked as incomplete."""


def pieces(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Return the pieces to search, which end at line breaks: from `start` on, then those before it."""
    for begin, limit in ((start, len(text)), (0, start)):
        at = begin
        while at < limit:
            end = text.find("\n", min(at + _PIECE, limit), limit)
            end = limit if end < 0 else end + 1
            yield at, end
            at = end


def matches(text: str, pattern: re.Pattern[str], piece: tuple[int, int]) -> list[int]:
    """Return the offsets of the matches in a piece of the text."""
    return [match.start() for match in pattern.finditer(text, *piece) if match.end() > match.start()]


@dataclass(slots=True)
class Hits:
    """The matches of a search so far."""

    pattern: re.Pattern[str]
    start: int
    """Offset at which the search began."""
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    """Offsets of the matches. Sorted once the search is over; until then, those from `start` on come first."""
    over: bool = False
    complete: bool = True
    """False if there are more matches than are kept."""

    def take(self, offsets: list[int]) -> None:
        """Add the matches of one piece."""
        self.offsets.extend(offsets[: MOST - len(self.offsets)])
        self.complete = self.complete and len(self.offsets) < MOST

    def finish(self) -> None:
        """Sort the matches after the last piece."""
        self.offsets = array("Q", sorted(self.offsets))
        self.over = True

    def following(self, offset: int, step: int) -> int | None:
        """Return the index of the next or previous match from `offset`, wrapping around the text; None without any."""
        if not self.offsets:
            return None
        if not self.over:
            return 0
        if step > 0:
            return bisect_right(self.offsets, offset) % len(self.offsets)
        return (bisect_left(self.offsets, offset) - 1) % len(self.offsets)

    def words(self, index: int | None) -> str:
        """Return the state of the search: `3 of 128`, `none` or `1 000 000 or more`."""
        count = len(self.offsets)
        shown = f"{count:,}".replace(",", "\u202f") + ("" if self.complete else " or more")
        if not self.over:
            return f"{shown}…"
        if not count:
            return "none"
        return f"{index + 1} of {shown}" if index is not None else shown
