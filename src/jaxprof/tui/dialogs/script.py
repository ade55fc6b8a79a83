"""A program to start: a file or a module, its arguments, where it runs, and what is wanted besides the ledger.

Every field is read as it will be used while it is typed; what cannot be read is said beneath it, and nothing is run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Button, Input, Label, Static

from jaxprof.errors import UsageError
from jaxprof.safe_text import safe
from jaxprof.tui.dialogs.base import Dialog
from jaxprof.tui.script_form import (
    Form,
    read_arguments,
    read_capture,
    read_directory,
    read_function,
    read_program,
    read_transfers,
)
from jaxprof.tui.widgets.file_suggester import FileSuggester

if TYPE_CHECKING:
    from textual.app import ComposeResult


_FIELDS = (
    ("program", "train.py", "a file, or -m package.module; → completes"),
    ("arguments", "--epochs 1", "as in a shell: quotes keep blanks together"),
    ("directory", "", "where it runs; empty: where jaxprof was started"),
    ("capture", "", "5 steps, 2 s, or 2 s after 10 s; empty: only when w is pressed"),
    ("function", "", "one that is measured at the end, with the arguments of one of its calls"),
    ("transfers", "", "exact counts implicit copies (some 15 µs each)"),
)


class ScriptDialog(Dialog[Form | None]):
    """Gives what was filled in, all of which can be read; or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", tooltip="Start nothing", id="script.leave"),
        # Before the box, which would scroll where it does not fit.
        Binding("down", "app.focus_next", "Next", show=False, priority=True, id="script.next"),
        Binding("up", "app.focus_previous", "Before", show=False, priority=True, id="script.before"),
    ]

    def __init__(self, form: Form | None = None, *, question: str = "") -> None:
        super().__init__()
        self._form = form or Form()
        self._question = question

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog wide-dialog", can_focus=False) as box:
            box.border_title = "A program of yours"
            box.border_subtitle = "Enter runs it, Esc leaves"
            if self._question:
                yield Static(safe(self._question), markup=False, classes="dialog-text")
            for name, example, hint in _FIELDS:
                with Horizontal(classes="field"):
                    yield Label(name, markup=False, classes="field-name")
                    yield Input(
                        getattr(self._form, name), id=name, placeholder=example, compact=True, suggester=self._by(name)
                    )
                yield Static(hint, id=f"{name}-hint", markup=False, classes="field-hint")
            with Horizontal(classes="dialog-buttons"):
                yield Button("Leave", id="leave", compact=True)
                yield Button("Run", id="run", variant="primary", compact=True)

    def _by(self, name: str) -> FileSuggester | None:
        """Who completes a field."""
        if name == "program":
            return FileSuggester(self._directory)
        return FileSuggester(Path.cwd, folders_only=True) if name == "directory" else None

    def _directory(self) -> Path:
        """Where relative paths are meant from; also while the dialog is made, or taken away."""
        fields = self.query("#directory").results(Input)
        try:
            return read_directory(next((field.value for field in fields), ""))
        except UsageError:
            return Path.cwd()

    def _text(self, name: str) -> str:
        return self.query_one(f"#{name}", Input).value

    def on_input_changed(self, event: Input.Changed) -> None:
        name = str(event.input.id)
        if name != "program" or self.query_one("#program-hint").has_class("wrong"):
            self._check(name)  # a path is not wrong while it is typed

    def on_input_submitted(self) -> None:
        self._run()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "run":
            self._run()
        else:
            self.dismiss(None)

    def action_leave(self) -> None:
        """Starts nothing."""
        self.dismiss(None)

    def _run(self) -> None:
        """Gives the form, if every field can be read; otherwise goes to the first that cannot."""
        for name, _, _ in _FIELDS:
            if not self._check(name):
                self.query_one(f"#{name}", Input).focus()
                return
        self.dismiss(Form(**{name: self._text(name) for name, _, _ in _FIELDS}))

    def _check(self, name: str) -> bool:
        """Whether that field can be read; what is wrong stands in the place of its hint."""
        readers: dict[str, Callable[[str], object]] = {
            "program": lambda text: read_program(text, self._directory()),
            "arguments": read_arguments,
            "directory": read_directory,
            "capture": read_capture,
            "function": read_function,
            "transfers": read_transfers,
        }
        hint = self.query_one(f"#{name}-hint", Static)
        try:
            readers[name](self._text(name))
        except UsageError as error:
            hint.update(safe(f"{error.what}. {error.mend}"))
            hint.add_class("wrong")
            return False
        hint.update(next(words for field, _, words in _FIELDS if field == name))
        hint.remove_class("wrong")
        return True
