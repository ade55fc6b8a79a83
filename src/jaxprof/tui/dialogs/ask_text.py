"""One line of text is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from jaxprof.safe_text import safe
from jaxprof.tui.dialogs.base import Dialog

if TYPE_CHECKING:
    from textual.app import ComposeResult


class AskText(Dialog[str | None]):
    """Gives the text, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", tooltip="Leave everything as it was", id="ask.leave"),
    ]

    def __init__(self, title: str, text: str, value: str, enter: str) -> None:
        super().__init__()
        self._title, self._text, self._value, self._enter = title, text, value, enter

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = self._title
            box.border_subtitle = f"{self._enter}, Esc leaves"
            yield Static(safe(self._text), markup=False, classes="dialog-text")
            yield Input(safe(self._value), compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)

    def action_leave(self) -> None:
        """Leaves everything as it was."""
        self.dismiss(None)
