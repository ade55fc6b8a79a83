"""One of several lines is chosen: a run, a user of a value, a device. Typing narrows the list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from jaxprof.safe_text import columns, safe
from jaxprof.tui.dialogs.base import Dialog
from jaxprof.tui.widgets.drawing import cell
from jaxprof.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from textual.app import ComposeResult

FILTER_FROM = 8
"""With fewer lines there is nothing to type."""


@dataclass(frozen=True, slots=True)
class Option:
    """A line: what it is, and what is said of it."""

    label: str
    note: str = ""


class Options(RowList):
    """The lines that the filter leaves."""

    EMPTY = "Nothing has these words."

    def __init__(self, options: Sequence[Option]) -> None:
        super().__init__()
        self._options = options
        self._label = max((columns(safe(option.label)) for option in options), default=0)

    def on_mount(self) -> None:
        self.narrow("")

    def narrow(self, text: str) -> None:
        """Keeps the lines with all these words."""
        words = text.casefold().split()
        self.set_keys(
            [
                number
                for number, option in enumerate(self._options)
                if all(word in f"{option.label} {option.note}".casefold() for word in words)
            ]
        )

    def draw_row(self, index: int, width: int) -> Content:
        number = self.keys[index]
        assert isinstance(number, int)
        option = self._options[number]
        label = min(self._label, max(12, width // 2) if option.note else width - 2)
        return Content.assemble(
            " ", cell(option.label, label, "bold"), "  ", cell(option.note, max(1, width - label - 4), "$text-muted")
        )


class Choose(Dialog[int | None]):
    """Gives the number of the chosen line, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", tooltip="Leave without a choice", id="choose.leave"),
        Binding("enter", "choose", "Choose", tooltip="Take this one", id="choose.take", priority=True),
        Binding("up", "move(-1)", "Up", show=False, id="choose.up", priority=True),
        Binding("down", "move(1)", "Down", show=False, id="choose.down", priority=True),
    ]

    def __init__(self, title: str, options: Sequence[Option], current: int = 0) -> None:
        super().__init__()
        self._title, self._options, self._current = title, options, current

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide-dialog choose") as box:
            box.border_title = Content(safe(self._title))
            box.border_subtitle = "Enter chooses, Esc leaves"
            if len(self._options) >= FILTER_FROM:
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
        self.query_one(Options).narrow(event.value)

    def action_move(self, step: int) -> None:
        """One line up or down, also while the filter is typed."""
        self.query_one(Options).action_move(step)

    def action_choose(self) -> None:
        """Takes the line under the cursor."""
        number = self.query_one(Options).current
        if isinstance(number, int):
            self.dismiss(number)

    def action_leave(self) -> None:
        """Leaves without a choice."""
        self.dismiss(None)

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        self.action_choose()

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.dismiss(None)
