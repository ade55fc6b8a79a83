"""The line for typing a filter of lists, or a search: hidden until `/`, applied at every key, kept with Enter, cleared
with Esc."""

from __future__ import annotations

import re
from dataclasses import dataclass

from textual import events
from textual.actions import SkipAction
from textual.message import Message
from textual.widgets import Input

from jaxprof.errors import UsageError
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.row_list import RowList


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


class FilterLine(Guarded, Input, keys="filter"):
    """One line above lists, which shows only their rows that have all its words; or a search line, without lists."""

    @dataclass
    class Edited(Message):
        """The text of the filter has changed, and the lists with it."""

        text: str

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
        self.clear()
        self._leave()

    def action_keep(self) -> None:
        self.display = bool(self.value)
        self._leave()

    def _leave(self) -> None:
        if len(self._lists) == 1:
            self.screen.query_one(f"#{self._lists[0]}").focus()
        self.post_message(self.Left())

    def on_blur(self, event: events.Blur) -> None:
        self.display = bool(self.value)
