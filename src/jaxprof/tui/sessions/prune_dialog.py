"""Which sessions to delete: how many to keep, up to which age, within how much space. Shows the result first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, Label, Static

from jaxprof import units
from jaxprof.errors import UsageError
from jaxprof.session.log.library import total_bytes
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.dialogs import Dialog, form_keys

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.session.log import Library

MIB = 1 << 20
_FIELDS = (
    ("keep", "keep the newest", "number of sessions, of any age; empty: all"),
    ("days", "not older than", "days; empty: any age"),
    ("space", "within", "MiB in total; empty: no limit"),
)


class Prune(Dialog[list[Path] | None]):
    """Returns the files to delete, or None."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("form")

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library
        self._doomed: list[Path] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide-dialog") as box:
            box.border_title = "Prune sessions"
            box.border_subtitle = form_keys("goes to Delete")
            for name, label, hint in _FIELDS:
                with Horizontal(classes="field"):
                    yield Label(label, markup=False, classes="field-name prune-name")
                    yield Input(id=name, compact=True, placeholder=hint)
            said = "Sessions that are being written are never deleted."
            yield Static(said, markup=False, classes="dialog-said")
            yield Static("", id="said", markup=False, classes="dialog-said")
            with Horizontal(classes="dialog-buttons"):
                yield Button("Cancel", id="leave", compact=True)
                yield Button("Delete", id="delete", variant="error", compact=True, disabled=True)

    def on_mount(self) -> None:
        self._count()

    def on_input_changed(self) -> None:
        self._count()

    def on_input_submitted(self) -> None:
        self.query_one("#delete", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(self._doomed if event.button.id == "delete" else None)

    def _count(self) -> None:
        """Shows how many sessions would be deleted."""
        message = self.query_one("#said", Static)
        try:
            keep, days, space = (self._number(name) for name, _, _ in _FIELDS)
        except UsageError as error:
            self._doomed = []
            message.update(str(error))
            message.add_class("wrong")
        else:
            message.remove_class("wrong")
            self._doomed = self._library.prunable(
                keep=None if keep is None else int(keep),
                older_than_days=days,
                max_bytes=None if space is None else int(space * MIB),
            )
            size = total_bytes(self._doomed)
            count = len(self._doomed)
            message.update(
                f"{units.counted(count, 'session')} would be deleted, {units.bytes_(size)}."
                if count
                else "Nothing would be deleted."
            )
        self.query_one("#delete", Button).disabled = not self._doomed

    def _number(self, name: str) -> float | None:
        text = self.query_one(f"#{name}", Input).value.strip()
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < 1e12:
            raise UsageError(f"{text!r} is not a number from 0 up")
        return value
