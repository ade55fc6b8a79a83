"""A text of any size to be shown: its lines by number, its language, its navigation, and its folded blocks.

Nothing is split or copied: a line is sliced when it is shown. Building a document reads the text once (for the number
of lines and the widest line); that takes a tenth of a second for a million lines, so build a large one in a thread.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING

from jaxprof.hlo.source import Source
from jaxprof.text import columns, safe
from jaxprof.tui.hlo.text.navigation import Navigation

if TYPE_CHECKING:
    from jaxprof.hlo.read.lexer import Language


_BLOCK = 1 << 20
_LONG = 1 << 14
"""Non-ASCII lines longer than this are measured in characters, not in columns."""
_GROUP, _GROUPS = 32, 16
"""Lines that are sliced together, because finding the first costs more than the others; and groups that are kept."""


class Document:
    """One text with its lines, counted from 0."""

    def __init__(self, text: str, language: Language | None = None, navigation: Navigation | None = None) -> None:
        self.source = Source(text)
        self.language = language
        """The language that colours its lines; None for plain text."""
        self.navigation = navigation or Navigation()
        self.line_count = max(1, self.source.line_count)
        self._lines: dict[int, list[str]] = {}
        self.widest = _widest(text)
        """Columns of the widest line; for very long lines, characters."""

    @property
    def text(self) -> str:
        return self.source.text

    def line(self, number: int) -> str:
        """Line `number`; empty outside of the text."""
        if not 0 <= number < self.line_count:
            return ""
        group, place = divmod(number, _GROUP)
        lines = self._lines.get(group)
        if lines is None:
            if len(self._lines) >= _GROUPS:
                self._lines.clear()
            lines = self._lines[group] = self.source.lines(group * _GROUP + 1, _GROUP)
        return lines[place] if place < len(lines) else ""

    def offset(self, number: int) -> int:
        """Where line `number` begins in the text."""
        return self.source.offset(number + 1)

    def number(self, offset: int) -> int:
        """The line that holds the character at `offset`."""
        return self.source.line(offset) - 1


def column(raw: str, offset: int) -> int:
    """The column at which character `offset` of a line is shown."""
    return columns(safe(raw[:offset]))


def _widest(text: str) -> int:
    """Works block by block, so that only part of the lines exists at a time."""
    widest = at = 0
    while at < len(text):
        end = text.find("\n", at + _BLOCK)
        end = len(text) if end < 0 else end
        lines = text[at:end].split("\n")
        if text[at:end].isascii():
            widest = max(widest, max(map(len, lines)))
        else:
            widest = max(widest, max(len(line) if len(line) > _LONG else columns(safe(line)) for line in lines))
        at = end + 1
    return widest


class Folds:
    """Blocks that show only their first line. Lines and rows count from 0; blocks do not overlap.

    Immutable, so nothing is ever half folded.
    """

    def __init__(self, blocks: Iterable[tuple[int, int]] = ()) -> None:
        self.blocks = tuple(sorted((first, last) for first, last in blocks if last > first))
        self._firsts = [first for first, _ in self.blocks]
        self._hidden = [0, *accumulate(last - first for first, last in self.blocks)]
        self._rows = [first - hidden for first, hidden in zip(self._firsts, self._hidden, strict=False)]

    def __contains__(self, line: int) -> bool:
        """Whether a line is the header of a folded block."""
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
        """The row that shows a line; for a hidden line, the row of its block's header."""
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
        """A copy with a block folded; it absorbs folded blocks inside it."""
        outside = [(first, last) for first, last in self.blocks if not (block[0] <= first and last <= block[1])]
        return Folds([*outside, block])

    def opened(self, line: int) -> Folds:
        """A copy in which the block that holds a line is open."""
        holder = self.block(line)
        return Folds(block for block in self.blocks if block != holder)
