"""Modal dialogs that ask for a line of text, a path, yes or no, one of several lines, or a form. Each returns one
value, or None after Escape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import events
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static

from jaxprof.errors import JaxprofError
from jaxprof.files import with_home
from jaxprof.text import safe, safe_lines
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import TableColumn
from jaxprof.tui.kit.table_view import TableView
from jaxprof.tui.theme import STYLES

if TYPE_CHECKING:
    from textual.app import App, ComposeResult


Answer = TypeVar("Answer")


class Dialog(Guarded, ModalScreen[Answer], keys="dialog"):
    """Base class of every dialog. Its stylesheet is read when the first dialog opens."""

    CSS_PATH = STYLES

    def ask(self, app: App[Any], take: Callable[[Answer], object]) -> None:
        """Open the dialog over `app`; `take` gets the answer, unless it is missing or no."""

        def answered(answer: Answer | None) -> None:
            if answer is not None and answer is not False:
                take(answer)

        app.push_screen(self, answered)

    def action_leave(self) -> None:
        self.dismiss(None)

    def field(self, name: str, label: str, value: str, hint: str, placeholder: str = "") -> ComposeResult:
        """Yield an input line with its label and hint."""
        with Horizontal(classes="field"):
            yield Label(safe(label), markup=False, classes="field-name")
            yield Input(value, id=name, placeholder=placeholder, compact=True)
        yield Static(safe(hint), id=f"{name}-hint", markup=False, classes="field-hint")

    def buttons(self, take: str, other: str = "") -> ComposeResult:
        """Yield the button that cancels, one that does something else, and the button that accepts the answer."""
        with Horizontal(classes="dialog-buttons"):
            if other:
                yield Button(other, id="other", compact=True)
            yield Button("Cancel", id="leave", compact=True)
            yield Button(take, id="take", variant="primary", compact=True)


def form_keys(enter: str, *more: str) -> str:
    """Return the keys of a form, for its frame: `↑ ↓ next field, ^r resets, Enter applies, Esc cancels`."""
    return ", ".join(("↑ ↓ next field", *more, f"Enter {enter}", f"{key_of('dialog.leave')} cancels"))


class TextDialog(Dialog[None]):
    """A scrolling text over the screen that asks nothing. Subclasses provide its `lines`."""

    CLASSES: ClassVar[str] = "dialog wide-dialog"

    def __init__(self, title: str, keys: str) -> None:
        """`keys` is the text about the keys on the frame."""
        super().__init__()
        self._title, self._keys = title, keys

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes=self.CLASSES) as box:
            box.border_title, box.border_subtitle = Content(safe(self._title)), self._keys
            yield Lines()

    def on_mount(self) -> None:
        self.show(None)
        self.query_one(VerticalScroll).focus()

    def show(self, key: object) -> None:
        """Draw the lines if `key` has changed."""
        self.query_one(Lines).show(key, self.lines)

    def lines(self, width: int) -> list[Content]:
        """Return the text in `width` columns."""
        raise NotImplementedError


class AskText(Dialog[str]):
    """Asks for a line of text."""

    def __init__(self, title: str, text: str, value: str, enter: str, advice: str = "", placeholder: str = "") -> None:
        super().__init__()
        self._title, self._text, self._value, self._enter = title, text, value, enter
        self._advice, self._placeholder = advice, placeholder

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = Content(safe(self._title))
            box.border_subtitle = f"{self._enter}, {key_of('dialog.leave')} cancels"
            yield Static(safe(self._text), markup=False, classes="dialog-text")
            if self._advice:
                yield Static(safe(self._advice), markup=False, classes="dialog-advice")
            yield Input(safe(self._value), placeholder=self._placeholder, compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)

    def ask_until(self, app: Any, take: Callable[[str], object]) -> None:
        """Ask, and ask again with what was typed if `take` raises JaxprofError."""

        def taken(text: str) -> None:
            try:
                take(text)
            except JaxprofError as error:
                app.tell(error)
                again = AskText(self._title, self._text, text, self._enter, self._advice, self._placeholder)
                again.ask_until(app, take)

        self.ask(app, taken)


class SaveAs(AskText):
    """Asks for the path of a file to write."""

    def __init__(self, title: str, text: str, advice: str, place: Path) -> None:
        super().__init__(title, text, str(place), "Enter saves", advice, "folder or file")

    def ask_for_path(self, app: App[Any], take: Callable[[Path], object]) -> None:
        """Open the dialog over `app`; `take` gets the path, unless none was given."""
        self.ask(app, lambda text: take(with_home(text)))


class Confirm(Dialog[bool], keys="confirm"):
    """Asks a yes-or-no question. Returns True for yes. Escape means no, and no has the focus, so that a stray key
    destroys nothing."""

    def __init__(self, title: str, question: str, yes: str, no: str = "No") -> None:
        super().__init__()
        self._title, self._question, self._yes, self._no = title, question, yes, no

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = self._title
            box.border_subtitle = f"← → other button, Enter presses it, {key_of('dialog.leave')} answers no"
            yield Static("\n".join(safe_lines(self._question)), markup=False, classes="dialog-text")
            with Horizontal(classes="dialog-buttons"):
                yield Button(_with_key("no", self._no), id="no", compact=True)
                yield Button(_with_key("yes", self._yes), id="yes", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


def _with_key(answer: str, label: str) -> Content:
    """Return a button's label with the key that presses it."""
    return Content.assemble((key_of(f"confirm.{answer}"), "bold underline"), f"  {label}")


FILTER_FROM = 8
"""Least number of lines for which there is a filter."""


@dataclass(frozen=True, slots=True)
class Option:
    """A choice with its label and a note."""

    label: str
    note: str = ""


class Options(TableView[Option]):
    """The options that match the filter."""

    FILTERED = "No line matches."

    def __init__(self, options: Sequence[Option]) -> None:
        super().__init__(
            (
                TableColumn("label", lambda option: option.label, 12, fits=True, style="bold", gap=2),
                TableColumn("note", lambda option: option.note, 1, weight=1, style="$text-muted"),
            ),
            titles=False,
        )
        self._options = options

    def on_mount(self) -> None:
        self.show_rows(dict(enumerate(self._options)))


class Choose(Dialog[int], keys="choose"):
    """Asks for one of several lines; typing narrows the list. Returns the index of the chosen line."""

    def __init__(self, title: str, options: Sequence[Option], current: int = 0) -> None:
        super().__init__()
        self._title, self._options, self._current = title, options, current

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide-dialog choose") as box:
            box.border_title = Content(safe(self._title))
            filtered = len(self._options) >= FILTER_FROM
            keys = f"↑ ↓ move, Enter chooses, {key_of('dialog.leave')} cancels"
            box.border_subtitle = f"type to filter, {keys}" if filtered else keys
            if filtered:
                yield Input(placeholder="filter", compact=True)
            yield Options(self._options)

    def on_mount(self) -> None:
        options = self.query_one(Options)
        options.styles.height = min(len(self._options), 16)
        options.move_to(self._current)
        if not self.query(Input):
            options.focus()

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        event.stop()
        self.query_one(Options).set_filter(event.value)

    def action_move(self, step: int) -> None:
        self.query_one(Options).action_move(step)

    def action_choose(self) -> None:
        number = self.query_one(Options).current
        if isinstance(number, int):
            self.dismiss(number)

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        self.action_choose()

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.dismiss(None)


Filled = TypeVar("Filled")


class FormDialog(Dialog[Filled], keys="form"):
    """Base class of a form whose fields are parsed as the user types: a hint or an error stands beneath each field.

    Subclasses parse the fields and build the answer from all of them.
    """

    def read(self, name: str, text: str) -> str:
        """Return the hint beneath a valid field. Raises JaxprofError for an invalid one."""
        raise NotImplementedError

    def filled(self) -> Filled:
        """Return the answer; every field is valid. Raises JaxprofError if fields contradict each other."""
        raise NotImplementedError

    def is_checked_while_typed(self, name: str) -> bool:
        """Return whether the error of a field shows before the user has finished typing it."""
        return True

    # -- for subclasses ---------------------------------------------------------------------------------------

    def value(self, name: str) -> str:
        """Return the text of a field."""
        return self.query_one(f"#{name}", Input).value.strip()

    def refuse(self, name: str, error: JaxprofError) -> None:
        """Show an error beneath a field."""
        hint = self.query_one(f"#{name}-hint", Static)
        hint.update(safe(f"{error.what}. {error.hint}" if error.hint else error.what))
        hint.add_class("wrong")

    # -- keys and mouse ---------------------------------------------------------------------------------------

    def on_input_changed(self, event: Input.Changed) -> None:
        name = str(event.input.id)
        if self.is_checked_while_typed(name):
            self._check(name)

    def on_input_submitted(self) -> None:
        self._take()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "take":
            self._take()
        elif event.button.id == "leave":
            self.dismiss(None)

    def _take(self) -> None:
        """Return the answer if every field is valid; otherwise focus the first invalid one."""
        for field in self.query(Input):
            if not self._check(str(field.id)):
                field.focus()
                return
        try:
            answer = self.filled()
        except JaxprofError as error:
            self.refuse(str(self.query(Input).first().id), error)
        else:
            self.dismiss(answer)

    def _check(self, name: str) -> bool:
        try:
            usual = self.read(name, self.value(name))
        except JaxprofError as error:
            self.refuse(name, error)
            return False
        hint = self.query_one(f"#{name}-hint", Static)
        hint.update(safe(usual))
        hint.remove_class("wrong")
        return True
