"""A text to be looked at, of any size: its lines by number, its language, and the ways through it.

Nothing is split or copied: a line is cut out when it is shown. Building a document reads the text once (for the number
of its lines and the widest one), which takes a tenth of a second for a million lines and belongs into a thread when
the text is large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from jaxprof.hlo.source import Source
from jaxprof.safe_text import columns, safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxprof.hlo.lexer import Language

_BLOCK = 1 << 20
_LONG = 1 << 14
"""Lines longer than this are never measured in columns, only in characters."""
_GROUP, _GROUPS = 32, 16
"""Lines that are cut out together, because finding the first one costs more than the others; and how many groups of
them are kept."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a line as shown: from character `start` to before `end`."""

    start: int
    end: int
    text: str


class Navigation(Protocol):
    """The ways through a text. Lines count from 0; a way that does not exist is None or empty, never an error."""

    def names(self, line: str) -> Sequence[Name]:
        """The names in a line of the text that can be followed, from left to right."""
        ...

    def main_name(self, number: int) -> str:
        """What to follow from line `number` when no name in it was chosen: what it calls, or its first operand."""
        ...

    def defined_name(self, number: int) -> str:
        """The name that line `number` defines; empty where it defines none."""
        ...

    def definition(self, name: str, number: int) -> int | None:
        """The line where `name`, as line `number` means it, is defined."""
        ...

    def users(self, name: str, number: int) -> Sequence[int]:
        """The lines that use `name`, as line `number` means it."""
        ...

    def block(self, number: int) -> tuple[int, int] | None:
        """First and last line of the block that holds line `number`, its header included."""
        ...

    def blocks(self) -> Sequence[tuple[int, int]]:
        """All blocks that do not lie in another one, in order."""
        ...

    def statement(self, number: int) -> str:
        """The whole statement that line `number` belongs to, as written."""
        ...


class NoWays:
    """For texts without names and blocks: a log."""

    def names(self, line: str) -> Sequence[Name]:
        return ()

    def main_name(self, number: int) -> str:
        return ""

    def defined_name(self, number: int) -> str:
        return ""

    def definition(self, name: str, number: int) -> int | None:
        return None

    def users(self, name: str, number: int) -> Sequence[int]:
        return ()

    def block(self, number: int) -> tuple[int, int] | None:
        return None

    def blocks(self) -> Sequence[tuple[int, int]]:
        return ()

    def statement(self, number: int) -> str:
        return ""


class Document:
    """One text with its lines, counted from 0."""

    def __init__(self, text: str, language: Language | None = None, ways: Navigation | None = None) -> None:
        self.source = Source(text)
        self.language = language
        """What its lines are coloured as; None for plain text."""
        self.ways: Navigation = ways or NoWays()
        self.line_count = max(1, self.source.line_count)
        self._lines: dict[int, list[str]] = {}
        self.widest = _widest(text)
        """Columns of the widest line; of very long lines their characters."""

    @property
    def text(self) -> str:
        return self.source.text

    def line(self, number: int) -> str:
        """Line `number` as it stands in the text; empty outside of it."""
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
    """Block by block, so that only a part of the lines exists at a time."""
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
