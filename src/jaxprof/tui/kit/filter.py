"""The line for a filter or a search: hidden until `/`, applied at each key, kept by Enter, cleared by Esc."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.actions import SkipAction
from textual.message import Message
from textual.widgets import Input

from jaxprof.base.errors import UsageError
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.row_list import RowList

if TYPE_CHECKING:
    from _typeshed import SupportsLenAndGetItem


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the compiled pattern; it ignores case if it has no capitals. Raises UsageError for an invalid one."""
    flags = re.MULTILINE
    if pattern == pattern.lower():
        flags |= re.IGNORECASE
    try:
        return re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(
            f"not a regular expression: {error}", "Write \\ before a special character to search for it literally."
        ) from None


def following(ascending: SupportsLenAndGetItem[int], at: int, step: int) -> int | None:
    """Return the index of the first value after `at`, or with a negative `step` of the last one before it, wrapping at
    the ends; None without values."""
    if not len(ascending):
        return None
    return (bisect_right(ascending, at) if step > 0 else bisect_left(ascending, at) - 1) % len(ascending)


class FilterLine(Guarded, Input, keys="filter"):
    """A line above lists that filters their rows by all its words; without lists, a search line."""

    @dataclass
    class Edited(Message):
        """The text of the filter has changed, and the lists with it."""

        text: str

    class Left(Message):
        """The user finished typing."""

    def __init__(self, *lists: str, placeholder: str = "filter", chooses: bool = False) -> None:
        """`lists` are the ids of the lists to filter; focus returns to the list if there is one. `chooses`: its key
        also chooses the row under the cursor, where a filter leaves any."""
        super().__init__(placeholder=placeholder, compact=True, classes="filter")
        self.display = False
        self._lists = lists
        self._chooses = chooses

    def open(self, text: str | None = None) -> None:
        """Show the line and focus it, with `text` in place of its text if given. Its key takes precedence over the keys
        of the focused widget, so that letters that arrive together with it are typed here. Raises SkipAction if the
        line already has the focus: there `/` is text."""
        if self.screen.focused is self:
            raise SkipAction
        self.display = True
        self.value = self.value if text is None else text
        self.screen.set_focus(self)  # at once, unlike `focus`, so that the line gets the very next key

    def clear(self) -> None:
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
        self.clear()
        self._leave()

    def action_keep(self) -> None:
        self.display = bool(self.value)
        self._leave()

    def action_choose(self) -> None:
        self.action_keep()
        if self._chooses and self.value:
            self.screen.query_one(f"#{self._lists[0]}", RowList).action_choose()

    def _leave(self) -> None:
        if len(self._lists) == 1:
            self.screen.query_one(f"#{self._lists[0]}").focus()
        self.post_message(self.Left())

    def on_blur(self, event: events.Blur) -> None:
        self.display = bool(self.value)
