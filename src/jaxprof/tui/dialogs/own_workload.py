"""A workload of the user's own: a target and, where it declares none, the specs of its arguments.

The user's code is imported in a child, never here; what is wrong with it is shown, and the dialog stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Button, Input, Label, Static

from jaxprof.errors import JaxprofError, UsageError
from jaxprof.safe_text import safe_lines
from jaxprof.tui.dialogs.base import Dialog
from jaxprof.workloads.model import WorkloadCard

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.worker import Interpreter

Added = tuple[list[WorkloadCard], tuple[str, ...]]
Describe = Callable[["Interpreter", Sequence[str], Sequence[str]], list[WorkloadCard]]


def describe_in_child(interpreter: Interpreter, targets: Sequence[str], arguments: Sequence[str]) -> list[WorkloadCard]:
    """The cards of `targets`. Blocks."""
    from jaxprof.worker import describe

    return describe(interpreter, targets, arguments)


class OwnWorkload(Dialog[Added | None]):
    """Gives the cards that were found, and the argument specs that they need."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", tooltip="Add nothing", id="own.leave"),
        Binding("down", "app.focus_next", "Next", show=False, id="own.next"),
        Binding("up", "app.focus_previous", "Before", show=False, id="own.before"),
    ]

    class Described(Message):
        """The child has answered."""

        def __init__(self, cards: list[WorkloadCard], arguments: tuple[str, ...], error: JaxprofError | None) -> None:
            super().__init__()
            self.cards = cards
            self.arguments = arguments
            self.error = error

    def __init__(
        self, interpreter: Callable[[], Interpreter], folder: Path, describe: Describe = describe_in_child
    ) -> None:
        super().__init__()
        self._interpreter = interpreter
        self._folder = folder
        self._describe = describe
        self._waiting = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide-dialog") as box:
            box.border_title = "A workload of yours"
            box.border_subtitle = "Enter adds, Esc leaves"
            with Horizontal(classes="field"):
                yield Label("target", markup=False, classes="field-name")
                yield Input(id="target", placeholder="train.py:step", compact=True)
            yield Static("path/to/file.py:function or package.module:function", markup=False, classes="field-hint")
            with Horizontal(classes="field"):
                yield Label("arguments", markup=False, classes="field-name")
                yield Input(id="arguments", placeholder="f32[1024,1024] i32[8]", compact=True)
            yield Static(
                "one spec for each argument; empty where @jaxprof.workload declares them",
                markup=False,
                classes="field-hint",
            )
            yield Static("", id="said", markup=False, classes="dialog-said")
            with Horizontal(classes="dialog-buttons"):
                yield Button("Leave", id="leave", compact=True)
                yield Button("Add", id="add", variant="primary", compact=True)

    def on_input_submitted(self) -> None:
        self._ask()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "add":
            self._ask()
        else:
            self.dismiss(None)

    def action_leave(self) -> None:
        """Adds nothing."""
        self.dismiss(None)

    def _ask(self) -> None:
        if self._waiting:
            return
        target = self.query_one("#target", Input).value.strip()
        try:
            target = whole_target(target, self._folder)
        except UsageError as error:
            self._say(error)
            return
        arguments = tuple(split_specs(self.query_one("#arguments", Input).value))
        self._waiting = True
        said = self.query_one("#said", Static)
        said.remove_class("wrong")
        said.update("importing it in a child…")
        self.run_worker(lambda: self._describe_in_thread(target, arguments), name="describe", thread=True)

    def _describe_in_thread(self, target: str, arguments: tuple[str, ...]) -> None:
        try:
            cards = self._describe(self._interpreter(), [target], arguments)
        except JaxprofError as error:
            self.post_message(self.Described([], arguments, error))
            return
        self.post_message(self.Described(cards, arguments, None))

    def on_own_workload_described(self, message: Described) -> None:
        self._waiting = False
        if message.error is not None:
            self._say(message.error)
        else:
            self.dismiss((message.cards, message.arguments))

    def _say(self, error: JaxprofError) -> None:
        said = self.query_one("#said", Static)
        said.add_class("wrong")
        said.update("\n".join(safe_lines(str(error))))


def whole_target(text: str, folder: Path) -> str:
    """The target that `text` means; a relative path is meant from `folder`. Raises UsageError."""
    if not text:
        raise UsageError("no target is given", "Give path/to/file.py:function or package.module:function.")
    place, colon, function = text.rpartition(":")
    if not colon or not function.isidentifier():
        raise UsageError(f"{text!r} names no function", "Put its name behind a colon: train.py:step.")
    if not place.endswith(".py"):
        return text
    path = (folder / Path(place).expanduser()).resolve()
    if not path.is_file():
        raise UsageError(f"there is no file {path}", "The path is meant from the folder in which jaxprof was started.")
    return f"{path}:{function}"


def split_specs(text: str) -> list[str]:
    """The specs in `text`, set apart by blanks, semicolons, or commas outside of brackets."""
    return [part for part in re.split(r"[;\s]+|,(?![^\[]*\])", text) if part]
