"""A text with navigation: from a name to its definition and its users, back and forward, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from jaxprof.text import columns, safe
from jaxprof.tui.hlo.text.document import Document, Folds
from jaxprof.tui.hlo.text.navigation import Name
from jaxprof.tui.hlo.text.text_view import PIECE, TextView
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.guard import on
from jaxprof.tui.kit.threads import in_thread

READ_AT_ONCE = 20_000
"""Lines of a text below which users are found at once; a thread searches a larger one."""
MOST_PLACES = 200
"""Places that the history remembers."""

Place = tuple[Document, int]
"""A line of a document, as the history holds it."""


class CodeView(TextView):
    """A text view in which the cursor can also choose a name of its line. Without names it is a plain text view."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("code")

    class ManyUsers(Message):
        """Requests a choice among the several users of a name."""

        def __init__(self, view: CodeView, name: str, lines: list[int]) -> None:
            super().__init__()
            self.view = view
            self.name = name
            self.lines = lines

    class UsersFound(Message, bubble=False):
        """The search for the users of a name has finished."""

        def __init__(self, document: Document, name: str, lines: list[int]) -> None:
            super().__init__()
            self.document = document
            self.name = name
            self.lines = lines

    def __init__(self, document: Document | None = None, *, id: str | None = None, classes: str | None = None) -> None:
        self._name_at = -1
        self._back: list[Place] = []
        self._forward: list[Place] = []
        super().__init__(document, id=id, classes=classes)
        self.show_document: Callable[[Document], None] = self.show
        """Called when the history leads to another document; a screen with tabs puts its own function here."""

    def unchoose(self) -> None:
        self._name_at = -1

    def jump(self, line: int) -> None:
        """Goes to a line, and remembers this place in the history."""
        self.remember()
        self.go(line, center=True)

    def remember(self) -> None:
        """Remembers this place in the history."""
        self._back.append((self.document, self.cursor))
        del self._back[:-MOST_PLACES]
        self._forward.clear()

    @property
    def chosen_name(self) -> str:
        """The chosen name in the cursor's line; empty for none."""
        name = self.marked_name()
        return name.text if name is not None else ""

    def marked_name(self) -> Name | None:
        names = self._names()
        return names[self._name_at] if 0 <= self._name_at < len(names) else None

    def _names(self) -> list[Name]:
        return list(self.document.navigation.names(safe(self.document.line(self.cursor)[:PIECE])))

    def action_name(self, step: int) -> None:
        """Chooses the next or the previous name in the line; without names, scrolls."""
        names = self._names()
        if not names:
            self.action_sideways(step)
            return
        chosen = self._name_at + step
        if self._name_at < 0 and step < 0:
            self.action_sideways(step)
            return
        self._name_at = max(-1, min(chosen, len(names) - 1))
        self.refresh_line(self.cursor)
        if self._name_at >= 0:
            name = names[self._name_at]
            line = safe(self.document.line(self.cursor)[:PIECE])
            self.reveal_columns(columns(line[: name.start]), columns(line[: name.end]))

    def action_follow(self) -> None:
        """Goes to the definition of a name; from a definition, to its users."""
        navigation = self.document.navigation
        chosen = self.chosen_name
        if chosen and chosen.lstrip("%") == navigation.defined_name(self.cursor).lstrip("%"):
            self.action_users()
            return
        name = chosen or navigation.main_name(self.cursor)
        line = navigation.definition(name, self.cursor) if name else None
        if line is None:
            self._notify_briefly(f"{name} is not defined in this text" if name else "no name in this line")
        else:
            self.jump(line)

    def action_users(self) -> None:
        """Goes to the user of a name; if there are several, asks which."""
        navigation = self.document.navigation
        document, line = self.document, self.cursor
        name = self.chosen_name or navigation.defined_name(line)
        if not name:
            self._notify_briefly("this line defines no name")
        elif document.line_count < READ_AT_ONCE:
            self._users_found(self.UsersFound(document, name, list(navigation.users(name, line))))
        else:

            def find() -> None:
                self.post_message(self.UsersFound(document, name, list(navigation.users(name, line))))

            in_thread(self, find, "users")

    @on(UsersFound)
    def _users_found(self, message: UsersFound) -> None:
        if message.document is not self.document:
            return
        if not message.lines:
            self._notify_briefly(f"nothing uses {message.name}")
        elif len(message.lines) == 1:
            self.jump(message.lines[0])
        else:
            self.post_message(self.ManyUsers(self, message.name, message.lines))

    def action_history(self, step: int) -> None:
        """Goes back to the place before the last jump, or forward again."""
        taken, given = (self._back, self._forward) if step < 0 else (self._forward, self._back)
        if not taken:
            self._notify_briefly("no place to go back to" if step < 0 else "no place to go forward to")
            return
        given.append((self.document, self.cursor))
        document, line = taken.pop()
        if document is not self.document:
            self.show_document(document)
        self.go(line, center=True)

    def forget(self) -> None:
        """Forgets the history and where documents were left, because other documents will be shown."""
        self._back.clear()
        self._forward.clear()
        self.forget_places()

    def action_fold(self) -> None:
        """Folds the block at the cursor, or opens it."""
        if self.folds.block(self.cursor) is not None:
            self.set_folds(self.folds.opened(self.cursor))
            self.go(self.cursor)
            return
        block = self.document.navigation.block(self.cursor)
        if block is None or block[0] == block[1]:
            self._notify_briefly("no block to fold here")
            return
        self.set_folds(self.folds.folded(block))
        self.go(block[0])

    def action_fold_all(self) -> None:
        """Folds all blocks, or opens all."""
        folds = Folds() if self.folds.blocks else Folds(self.document.navigation.blocks())
        block = folds.block(self.cursor)
        self.set_folds(folds)
        self.go(block[0] if block is not None else self.cursor, center=True)

    def action_copy(self) -> None:
        """Copies the statement at the cursor, as it is shown."""
        text = self.document.navigation.statement(self.cursor) or self.document.line(self.cursor)
        shown = "\n".join(safe(line) for line in text.strip().split("\n"))
        self.app.copy_to_clipboard(shown)
        self._notify_briefly(f"copied {len(shown)} characters")

    def _notify_briefly(self, text: str) -> None:
        self.notify(safe(text), markup=False, timeout=3)

    def on_click(self, event: events.Click) -> None:
        under_mouse = self.line_at(event)
        if under_mouse is None:
            return
        event.prevent_default()  # TextView would handle the click too
        line, at = under_mouse
        if line != self.cursor:
            self.go(line)
        if at < 0:
            if line in self.folds:
                self.action_fold()
            return
        text = safe(self.document.line(line)[:PIECE])
        under = (
            number
            for number, name in enumerate(self._names())
            if columns(text[: name.start]) <= at < columns(text[: name.end])
        )
        self._name_at = next(under, -1)
        self.refresh_line(line)
        if event.chain == 2 and self._name_at >= 0:
            self.action_follow()
