"""A text with ways through it: from a name to its definition and its users, back and forward, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events, on
from textual.binding import Binding, BindingType
from textual.message import Message

from jaxprof.safe_text import columns, safe
from jaxprof.tui.programs.document import Document, Name
from jaxprof.tui.programs.folds import Folds
from jaxprof.tui.widgets.text_view import PIECE, TextView

READ_AT_ONCE = 20_000
"""Lines of a text up to which users are looked for at once; in a larger one that is done in a thread."""
MOST_PLACES = 200
"""Places that the way back remembers."""

Place = tuple[Document, int]
"""A line of a document: what the way back is made of."""


class CodeView(TextView):
    """A text view with a cursor on a name too, once one was chosen. Without names it is a text view."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "name(-1)", "Name before", show=False, tooltip="Choose the name before", id="text.left"),
        Binding("right", "name(1)", "Next name", show=False, tooltip="Choose the next name", id="text.right"),
        Binding("enter", "follow", "Definition",
                tooltip="To the definition of the chosen name, or of what the line calls or takes", id="text.follow"),
        Binding("u", "users", "Users", tooltip="To what uses the chosen name, or the line's value", id="text.users"),
        Binding("left_square_bracket,alt+left", "history(-1)", "Back", key_display="[",
                tooltip="Back to where you came from", id="text.back"),
        Binding("right_square_bracket,alt+right", "history(1)", "Forward", key_display="]", show=False,
                tooltip="Forward again", id="text.forward"),
        Binding("z", "fold", "Fold", tooltip="Fold or open the computation at the cursor", id="text.fold"),
        Binding("Z", "fold_all", "Fold all", show=False, tooltip="Fold or open all computations", id="text.fold_all"),
        Binding("y", "copy", "Copy", show=False, tooltip="Copy the instruction at the cursor", id="text.copy"),
    ]  # fmt: skip

    class ManyUsers(Message):
        """A name has several users: one is to be chosen."""

        def __init__(self, view: CodeView, name: str, lines: list[int]) -> None:
            super().__init__()
            self.view = view
            self.name = name
            self.lines = lines

        @property
        def control(self) -> CodeView:
            return self.view

    class UsersFound(Message, bubble=False):
        """The users of a name were looked for."""

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
        """What the way back calls to show another document; a screen that has tabs puts itself here."""

    def unchoose(self) -> None:
        self._name_at = -1

    def jump(self, line: int) -> None:
        """To a line, from which the way back leads here."""
        self.remember()
        self.go(line, center=True)

    def remember(self) -> None:
        """Notes this place, for the way back."""
        self._back.append((self.document, self.cursor))
        del self._back[:-MOST_PLACES]
        self._forward.clear()

    @property
    def chosen_name(self) -> str:
        """The name that was chosen in the cursor's line; empty for none."""
        name = self.marked_name()
        return name.text if name is not None else ""

    def marked_name(self) -> Name | None:
        names = self._names()
        return names[self._name_at] if 0 <= self._name_at < len(names) else None

    def _names(self) -> list[Name]:
        return list(self.document.ways.names(safe(self.document.line(self.cursor)[:PIECE])))

    def action_name(self, step: int) -> None:
        """Chooses the next name in the line, or the one before; without names, scrolls."""
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
        """To the definition of a name; from a definition, to its users."""
        ways = self.document.ways
        chosen = self.chosen_name
        if chosen and chosen.lstrip("%") == ways.defined_name(self.cursor).lstrip("%"):
            self.action_users()
            return
        name = chosen or ways.main_name(self.cursor)
        line = ways.definition(name, self.cursor) if name else None
        if line is None:
            self._tell(f"{name} is not defined in this text" if name else "no name in this line")
        else:
            self.jump(line)

    def action_users(self) -> None:
        """To the one user of a name, or asks which of them."""
        ways = self.document.ways
        document, line = self.document, self.cursor
        name = self.chosen_name or ways.defined_name(line)
        if not name:
            self._tell("this line defines no name")
        elif document.line_count < READ_AT_ONCE:
            self._users_found(self.UsersFound(document, name, list(ways.users(name, line))))
        else:

            def find() -> None:
                self.post_message(self.UsersFound(document, name, list(ways.users(name, line))))

            self.run_worker(find, name="users", group="users", exclusive=True, thread=True)

    @on(UsersFound)
    def _users_found(self, message: UsersFound) -> None:
        if message.document is not self.document:
            return
        if not message.lines:
            self._tell(f"nothing uses {message.name}")
        elif len(message.lines) == 1:
            self.jump(message.lines[0])
        else:
            self.post_message(self.ManyUsers(self, message.name, message.lines))

    def action_history(self, step: int) -> None:
        """Back to the place before the last jump, or forward again."""
        taken, given = (self._back, self._forward) if step < 0 else (self._forward, self._back)
        if not taken:
            self._tell("no place to go back to" if step < 0 else "no place to go forward to")
            return
        given.append((self.document, self.cursor))
        document, line = taken.pop()
        if document is not self.document:
            self.show_document(document)
        self.go(line, center=True)

    def forget(self) -> None:
        """Forgets the way back and where documents were left: other documents will be shown."""
        self._back.clear()
        self._forward.clear()
        self.forget_places()

    def action_fold(self) -> None:
        """Folds the block at the cursor, or opens it."""
        if self.folds.block(self.cursor) is not None:
            self.set_folds(self.folds.opened(self.cursor))
            self.go(self.cursor)
            return
        block = self.document.ways.block(self.cursor)
        if block is None or block[0] == block[1]:
            self._tell("no block to fold here")
            return
        self.set_folds(self.folds.folded(block))
        self.go(block[0])

    def action_fold_all(self) -> None:
        """Folds all blocks, or opens all."""
        folds = Folds() if self.folds.blocks else Folds(self.document.ways.blocks())
        block = folds.block(self.cursor)
        self.set_folds(folds)
        self.go(block[0] if block is not None else self.cursor, center=True)

    def action_copy(self) -> None:
        """Copies the statement at the cursor, as it is shown."""
        text = self.document.ways.statement(self.cursor) or self.document.line(self.cursor)
        shown = "\n".join(safe(line) for line in text.strip().split("\n"))
        self.app.copy_to_clipboard(shown)
        self._tell(f"copied {len(shown)} characters")

    def _tell(self, text: str) -> None:
        self.notify(safe(text), markup=False, timeout=3)

    def on_click(self, event: events.Click) -> None:
        found = self.line_at(event)
        if found is None:
            return
        event.prevent_default()  # the view's own handling of a click
        line, at = found
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
