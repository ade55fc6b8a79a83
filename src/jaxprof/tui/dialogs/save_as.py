"""Where a file shall go: asked when a session is copied, and when the place where it is written has failed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from jaxprof.safe_text import safe
from jaxprof.tui.dialogs.base import Dialog

if TYPE_CHECKING:
    from textual.app import ComposeResult


class SaveAs(Dialog[Path | None]):
    """Gives a path, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Not now", tooltip="Leave without an answer", id="save_as.leave"),
    ]

    def __init__(self, title: str, text: str, advice: str, place: Path) -> None:
        super().__init__()
        self._title, self._text, self._advice, self._place = title, text, advice, place

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = self._title
            box.border_subtitle = "Enter saves, Esc leaves"
            yield Static(safe(self._text), markup=False, classes="dialog-text")
            if self._advice:
                yield Static(safe(self._advice), markup=False, classes="dialog-advice")
            yield Input(safe(str(self._place)), placeholder="folder or file", compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        text = event.value.strip()
        if text:
            self.dismiss(Path(text).expanduser())

    def action_leave(self) -> None:
        """Leaves without an answer."""
        self.dismiss(None)
