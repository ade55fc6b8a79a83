"""Facts, one line each; some lead to an instruction. Drawing costs only what is in view."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from jaxprof.text import safe
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.row_list import RowList


@dataclass(frozen=True, slots=True)
class FactTarget:
    """Where a fact leads: an instruction of the optimised HLO."""

    computation: str
    name: str
    kernel: bool = False
    """Whether it is a kernel of the table."""
    run: str = ""
    """The run that has the HLO; empty for the run in view."""


@dataclass(frozen=True, slots=True)
class FactLine:
    """One line."""

    content: Content
    target: FactTarget | None = None


Facts = Callable[[int], Sequence[FactLine]]
"""The facts for a width."""


def paragraph(text: str, width: int, style: str = "", indent: str = "") -> list[FactLine]:
    """Text from outside, made safe and wrapped to `width`."""
    lines = textwrap.wrap(safe(text), max(12, width), initial_indent=indent, subsequent_indent=indent) or [""]
    return [FactLine(Content.styled(line, style)) for line in lines]


def heading(text: str, note: str = "") -> FactLine:
    """The title of a section."""
    return FactLine(Content.assemble((text, "bold $primary"), (f"  {safe(note)}" if note else "", "$text-muted")))


class FactList(RowList):
    """Facts with a cursor; Enter follows the fact under it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("facts")

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._make: Facts = lambda width: ()
        self._made: tuple[int, Sequence[FactLine]] = (0, ())
        self._about: object = None

    def show(self, about: object, facts: Facts) -> None:
        """Shows the facts about a subject; the cursor stays if the subject is the same as before."""
        fresh = about != self._about
        self._about, self._make = about, facts
        self.rebuild()
        if fresh:
            self.move_to(0)
            self.scroll_to(y=0, animate=False)

    def rebuild(self) -> None:
        """Makes the lines again, for the present size."""
        width = max(16, self.size.width)
        self._made = (width, tuple(self._make(width - 2)))
        self.set_keys(list(range(len(self._made[1]))))

    def on_resize(self) -> None:
        if max(16, self.size.width) != self._made[0]:
            self.rebuild()

    @property
    def target(self) -> FactTarget | None:
        """The target of the line under the cursor; None if it leads nowhere."""
        facts = self._made[1]
        return facts[self.cursor].target if self.cursor < len(facts) else None

    def draw_row(self, index: int, width: int) -> Content:
        facts = self._made[1]
        content = facts[index].content if index < len(facts) else Content("")
        return Content(" ") + content.truncate(max(1, width - 1), ellipsis=True)
