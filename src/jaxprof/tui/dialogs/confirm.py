"""A question with yes and no. Escape is no, and no has the focus: nothing is destroyed by a key too many."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Static

from jaxprof.safe_text import safe_lines
from jaxprof.tui.dialogs.base import Dialog

if TYPE_CHECKING:
    from textual.app import ComposeResult


class Confirm(Dialog[bool]):
    """Gives True for yes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "answer(False)", "No", tooltip="Leave everything as it is", id="confirm.no"),
        Binding("y", "answer(True)", "Yes", tooltip="Do it", id="confirm.yes"),
        Binding("left,right", "app.focus_next", "Other", show=False, id="confirm.other"),
    ]

    def __init__(self, title: str, question: str, yes: str, no: str = "No") -> None:
        super().__init__()
        self._title, self._question, self._yes, self._no = title, question, yes, no

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = self._title
            yield Static("\n".join(safe_lines(self._question)), markup=False, classes="dialog-text")
            with Horizontal(classes="dialog-buttons"):
                yield Button(self._no, id="no", compact=True)
                yield Button(self._yes, id="yes", variant="error", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        """Answers by key."""
        self.dismiss(yes)
