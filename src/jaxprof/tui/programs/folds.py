"""Folded blocks: which rows of a view show which lines of a text. Immutable, so that nothing can be half folded."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate


class Folds:
    """Blocks of which only the first line is shown. Lines and rows count from 0; blocks do not overlap."""

    def __init__(self, blocks: Iterable[tuple[int, int]] = ()) -> None:
        self.blocks = tuple(sorted((first, last) for first, last in blocks if last > first))
        self._firsts = [first for first, _ in self.blocks]
        self._hidden = [0, *accumulate(last - first for first, last in self.blocks)]
        self._rows = [first - hidden for first, hidden in zip(self._firsts, self._hidden, strict=False)]

    def __contains__(self, line: int) -> bool:
        """Whether that line is the header of a folded block."""
        at = bisect_left(self._firsts, line)
        return at < len(self._firsts) and self._firsts[at] == line

    @property
    def hidden(self) -> int:
        """How many lines are not shown."""
        return self._hidden[-1]

    def line(self, row: int) -> int:
        """The line that is shown in a row."""
        at = bisect_left(self._rows, row)
        return row + self._hidden[at]

    def row(self, line: int) -> int:
        """The row that shows a line; for a hidden line that of its block's header."""
        at = bisect_right(self._firsts, line)
        if at and line <= self.blocks[at - 1][1]:
            return self._rows[at - 1]
        return line - self._hidden[at]

    def block(self, line: int) -> tuple[int, int] | None:
        """The folded block that holds a line."""
        at = bisect_right(self._firsts, line) - 1
        if at >= 0 and self.blocks[at][0] <= line <= self.blocks[at][1]:
            return self.blocks[at]
        return None

    def folded(self, block: tuple[int, int]) -> Folds:
        """With that block folded; folded blocks inside it are swallowed."""
        kept = [one for one in self.blocks if not (block[0] <= one[0] and one[1] <= block[1])]
        return Folds([*kept, block])

    def opened(self, line: int) -> Folds:
        """With the block that holds that line open."""
        found = self.block(line)
        return Folds(one for one in self.blocks if one != found)
