"""The line for typing a filter, and the search of a text of any size with a regular expression.

The line is hidden until `/`, applied at every key, kept with Enter, cleared with Esc. A search goes in pieces, so that
a thread can do it and be stopped: from a place to the end and then from the beginning to that place, so that the next
match is known first. Matches are offsets in an array, eight bytes each. Empty matches do not count.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from textual import events
from textual.actions import SkipAction
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Input

from jaxprof.errors import UsageError
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.row_list import RowList

_PIECE = 1 << 18
"""Characters per piece: about a millisecond, during which the thread holds the interpreter lock."""
MOST = 1_000_000
"""Matches kept; a search that finds more reports so."""


def compiled(pattern: str) -> re.Pattern[str]:
    """The compiled pattern; it ignores case if it has no capitals. Raises UsageError for an invalid one."""
    flags = re.MULTILINE
    if pattern == pattern.lower():
        flags |= re.IGNORECASE
    try:
        return re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(
            f"not a regular expression: {error}", "Write \\ before a character to search for it as it is."
        ) from None


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


class FilterLine(Guarded, Input):
    """One line above lists, which shows only their rows that have all its words; or a search line, without lists."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("filter")

    class Edited(Message):
        """The text of the filter has changed, and the lists with it."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Left(Message):
        """The user finished typing."""

    def __init__(self, *lists: str, placeholder: str = "filter") -> None:
        """`lists` are the ids of what it filters: it takes the focus back, if it is one."""
        super().__init__(placeholder=placeholder, compact=True, classes="filter")
        self.display = False
        self._lists = lists

    def open(self, text: str | None = None) -> None:
        """Shows the line and focuses it, with other words than before if given. Its key goes before those of whatever
        has the focus, so that letters which arrive together with it are typed here. Raises SkipAction where it has the
        focus already: there `/` is text."""
        if self.screen.focused is self:
            raise SkipAction
        self.display = True
        self.value = self.value if text is None else text
        self.screen.set_focus(self)  # at once, unlike `focus`: this line gets the very next key

    def clear(self) -> None:
        """Shows everything again."""
        self.value = ""
        self.display = False
        self._apply("")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.display:
            self._apply(event.value)

    def _apply(self, text: str) -> None:
        for name in self._lists:
            self.screen.query_one(f"#{name}", RowList).set_filter(text)
        self.post_message(self.Edited(text))

    def action_clear_filter(self) -> None:
        """Clears the filter and goes back to the list."""
        self.clear()
        self._leave()

    def action_keep(self) -> None:
        """Goes back to the list and keeps the filter."""
        self.display = bool(self.value)
        self._leave()

    def _leave(self) -> None:
        if len(self._lists) == 1:
            self.screen.query_one(f"#{self._lists[0]}").focus()
        self.post_message(self.Left())

    def on_blur(self, event: events.Blur) -> None:
        self.display = bool(self.value)
