"""One text and its lines: from an offset to a line number and back, without a table of a million offsets.

A line index as a list costs more than the text of short lines that it indexes. Here only the number of lines before
each block of 64 KiB is kept; inside a block `str.count` and `str.find` run at memory speed (a few microseconds).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

_BLOCK: Final = 1 << 16


class Source:
    """An immutable text with its line numbers. Lines count from 1 and end with `\\n`."""

    __slots__ = ("_before", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._before: list[int] | None = None

    def _lines_before(self) -> list[int]:
        if self._before is None:
            text = self.text
            counts = (text.count("\n", at, at + _BLOCK) for at in range(0, len(text), _BLOCK))
            self._before = list(accumulate(counts, initial=1))
        return self._before

    def line(self, offset: int) -> int:
        """Return the number of the line that holds the character at `offset`."""
        block = min(max(offset, 0), len(self.text)) // _BLOCK
        return self._lines_before()[block] + self.text.count("\n", block * _BLOCK, offset)

    @property
    def line_count(self) -> int:
        """Lines in the text; a `\\n` at its very end begins no further one."""
        breaks = self._lines_before()[-1] - 1
        return breaks + (0 if not self.text or self.text.endswith("\n") else 1)

    def offset(self, line: int) -> int:
        """Return where line number `line` begins; the length of the text for a line after the last."""
        before = self._lines_before()
        if line <= 1:
            return 0
        # The break that ends the line before this one lies in the last block with fewer breaks before it.
        block = bisect_right(before, line - 1) - 1
        at = block * _BLOCK
        for _ in range(line - before[block]):
            line_end = self.text.find("\n", at)
            if line_end < 0:
                return len(self.text)
            at = line_end + 1
        return at

    def lines(self, first: int, count: int) -> list[str]:
        """Return at most `count` lines from number `first` on, without their line ends."""
        at = self.offset(first)
        lines: list[str] = []
        while len(lines) < count and at < len(self.text):
            end = self.text.find("\n", at)
            end = len(self.text) if end < 0 else end
            lines.append(self.text[at:end])
            at = end + 1
        return lines


@dataclass(frozen=True, slots=True)
class Problem:
    """A place that could not be read, and what was expected there. The rest of the module is still read."""

    line: int
    """Line in the given file or text, counted from 1."""
    message: str
    text: str
    """The beginning of the text there."""
    cut_off: bool = False
    """Whether the text ends there, in the middle of something."""
