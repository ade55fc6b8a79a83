"""Searching a text of any size with a regular expression, in pieces, so that a thread can do it and be stopped.

Matches are kept as offsets in an array of eight bytes each. A match of no characters is none. The search goes from a
place to the end and then from the beginning to that place, so that the next match is known first.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxprof.errors import UsageError

_PIECE = 1 << 18
"""Characters that are searched in one go: about a millisecond, for as long as a thread holds the interpreter."""
MOST = 1_000_000
"""Matches that are kept; a search that finds more says so."""


def compiled(pattern: str) -> re.Pattern[str]:
    """The expression; without capitals in it, capitals do not matter. Raises UsageError for a broken one."""
    flags = re.MULTILINE
    if pattern == pattern.lower():
        flags |= re.IGNORECASE
    try:
        return re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"not a regular expression: {error}", "Write \\ before a character that is meant.") from None


def pieces(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Where to search, piece by piece and never across the end of a line: from `start` on, then what lies before."""
    for begin, limit in ((start, len(text)), (0, start)):
        at = begin
        while at < limit:
            end = text.find("\n", min(at + _PIECE, limit), limit)
            end = limit if end < 0 else end + 1
            yield at, end
            at = end


def matches(text: str, pattern: re.Pattern[str], piece: tuple[int, int]) -> list[int]:
    """Where matches begin in a piece of the text."""
    return [found.start() for found in pattern.finditer(text, *piece) if found.end() > found.start()]


@dataclass(slots=True)
class Hits:
    """What a search has found so far."""

    pattern: re.Pattern[str]
    start: int
    """Where it began."""
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    """In order, once the search is over; until then first those from `start` on."""
    over: bool = False
    complete: bool = True
    """False where there are more matches than are kept."""

    def take(self, found: list[int]) -> None:
        """Adds the matches of one piece."""
        self.offsets.extend(found[: MOST - len(self.offsets)])
        self.complete = self.complete and len(self.offsets) < MOST

    def finish(self) -> None:
        """All pieces were searched."""
        self.offsets = array("Q", sorted(self.offsets))
        self.over = True

    def following(self, offset: int, step: int) -> int | None:
        """Index of the next match behind `offset`, or of the one before it, going on at the other end of the text."""
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
