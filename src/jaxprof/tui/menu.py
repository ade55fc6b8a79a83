"""The menu: everything that can be done here, in words, each with its letter; actions on the row come first, then those
of the screen.

It is made of the bindings that work now, and of the letters of the key table; dimmed entries say why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.containers import Vertical
from textual.content import Content
from textual.events import Key

from jaxprof.tui.keys import ACTIONS, key_of, letter_of
from jaxprof.tui.kit.dialogs import Dialog
from jaxprof.tui.kit.guard import on
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import TableColumn
from jaxprof.tui.kit.table_view import TableView
from jaxprof.tui.profiler import ModeScreen

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.dom import DOMNode
    from textual.screen import Screen

MOST_ROWS = 17
"""Most rows for which a terminal of 24 lines has room, with the frame."""


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """One action of the menu."""

    letter: str
    label: str
    does: str
    action: str
    node: DOMNode
    enabled: bool

    @property
    def note(self) -> str:
        """What the action does, or why it does nothing now."""
        if self.enabled:
            return self.does
        why = self.node.why_not(self.action) if isinstance(self.node, ModeScreen) else ""
        return f"not now: {why or 'there is nothing here for it'}"


def entries(screen: Screen[Any]) -> Iterator[MenuEntry]:
    """Yield the actions of a screen that have a letter, those of the focused row first."""
    seen = set()
    for active in screen.active_bindings.values():
        binding = active.binding
        known = ACTIONS.get(binding.id or "")
        letter = letter_of(known) if known is not None else ""
        if letter and binding.id not in seen:
            seen.add(binding.id)
            yield MenuEntry(letter, binding.description, binding.tooltip, binding.action, active.node, active.enabled)


class MenuList(TableView[MenuEntry]):
    """The lines of the menu."""

    def __init__(self, listed: list[MenuEntry]) -> None:
        super().__init__(
            (
                TableColumn("letter", lambda entry: (entry.letter, self._style(entry, "bold $primary")), 1, gap=2),
                TableColumn("label", lambda entry: (entry.label, self._style(entry, "bold")), 12, fits=True, gap=2),
                TableColumn("note", lambda entry: (entry.note, self._style(entry, "$text-muted")), 1, weight=1),
            ),
            titles=False,
        )
        self._listed = listed

    def _style(self, entry: MenuEntry, usual: str) -> str:
        return usual if entry.enabled else "$text-disabled"

    def on_mount(self) -> None:
        self.show_rows(dict(enumerate(self._listed)))


class Menu(Dialog[MenuEntry], keys="menu"):
    """Returns the chosen action, or None. A letter chooses its line."""

    def __init__(self, below: Screen[Any]) -> None:
        super().__init__()
        self._entries = list(entries(below))

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide-dialog menu") as box:
            box.border_title = "What can be done here"
            box.border_subtitle = Content(f"a letter or Enter does it, {key_of('dialog.leave')} closes")
            rows = MenuList(self._entries)
            rows.styles.height = max(1, min(len(self._entries), MOST_ROWS))
            yield rows

    def on_mount(self) -> None:
        self.query_one(MenuList).focus()

    def on_key(self, event: Key) -> None:
        """Run the action of a letter; the menu is the only place that has as many letters as it has lines."""
        letter = event.character or ""
        for entry in self._entries:
            if entry.letter == letter:
                event.stop()
                self.dismiss(entry)
                return
        if letter and letter in "mq":
            event.stop()
            self.dismiss(None)

    @on(RowList.Chosen)
    def action_choose(self) -> None:
        entry = self.query_one(MenuList).current_row
        if entry is not None:
            self.dismiss(entry)


def open_menu(app: Any) -> None:
    """Open the menu of the screen in view, and run the action chosen there."""
    below = app.screen

    def do(entry: MenuEntry | None) -> None:
        if entry is not None:
            app.call_next(partial(app.run_action, entry.action, entry.node))

    app.push_screen(Menu(below), do)
