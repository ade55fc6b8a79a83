"""The line for typing a filter: hidden until `/`, applied at every key, kept with Enter, cleared with Esc."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.actions import SkipAction
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Input

from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.guard import Guarded


class FilterLine(Guarded, Input):
    """One line above a list."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("filter")

    class Edited(Message):
        """The text of the filter has changed."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Left(Message):
        """The user finished typing."""

    def __init__(self) -> None:
        super().__init__(placeholder="filter", compact=True, classes="filter")
        self.display = False

    def open(self, text: str) -> None:
        """Shows the line and focuses it. Its key goes before those of whatever has the focus, so that letters which
        arrive together with it are typed here. Raises SkipAction where it has the focus already: there `/` is text."""
        if self.screen.focused is self:
            raise SkipAction
        self.display = True
        self.value = text
        self.screen.set_focus(self)  # at once, unlike `focus`: this line gets the very next key

    def clear(self) -> None:
        """Shows everything again."""
        self.value = ""
        self.display = False
        self.post_message(self.Edited(""))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.display:
            self.post_message(self.Edited(event.value))

    def action_clear_filter(self) -> None:
        """Clears the filter and goes back to the list."""
        self.clear()
        self.post_message(self.Left())

    def action_keep(self) -> None:
        """Goes back to the list and keeps the filter."""
        self.display = bool(self.value)
        self.post_message(self.Left())

    def on_blur(self, event: events.Blur) -> None:
        self.display = bool(self.value)
