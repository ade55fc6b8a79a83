"""Facts, one line each; some lead to an instruction. Drawing costs only what is in view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual.content import Content

from jaxprof.text import safe
from jaxprof.tui.kit.row_list import RowList


@dataclass(frozen=True, slots=True)
class FactTarget:
    """Where a fact leads: an instruction of the optimised HLO."""

    computation: str
    name: str
    kernel: bool = False
    """Whether the instruction is a kernel of the table."""
    run: str = ""
    """Id of the run that has the HLO; empty for the run in view."""


@dataclass(frozen=True, slots=True)
class Leads:
    """A line that may lead to an instruction."""

    content: Content
    target: FactTarget | None


FactLine = Content | Leads
Facts = Callable[[int], Sequence[FactLine]]
"""Function that makes the facts for a width."""


def heading(text: str, note: str = "") -> FactLine:
    """Return the title of a section."""
    return Content.assemble((text, "bold $primary"), (f"  {safe(note)}" if note else "", "$text-muted"))


class FactList(RowList[int], keys="facts"):
    """Facts with a cursor; Enter follows the fact under it."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._facts: Facts = lambda width: ()
        self._lines: tuple[int, Sequence[FactLine]] = (0, ())
        self._about: object = None

    def show(self, about: object, facts: Facts) -> None:
        """Show the facts about a subject; the cursor stays if the subject is the same as before."""
        fresh = about != self._about
        self._about, self._facts = about, facts
        self.rebuild()
        if fresh:
            self.move_to(0)
            self.scroll_to(y=0, animate=False)

    def rebuild(self) -> None:
        """Make the lines again for the current size."""
        width = max(16, self.size.width)
        self._lines = (width, tuple(self._facts(width - 2)))
        self.set_keys(list(range(len(self._lines[1]))))

    def on_resize(self) -> None:
        if max(16, self.size.width) != self._lines[0]:
            self.rebuild()

    @property
    def target(self) -> FactTarget | None:
        """Target of the line under the cursor; None if it leads nowhere."""
        line = self._lines[1][self.cursor] if self.cursor < len(self._lines[1]) else None
        return line.target if isinstance(line, Leads) else None

    def draw_row(self, index: int, width: int) -> Content:
        line = self._lines[1][index] if index < len(self._lines[1]) else Content("")
        content = line.content if isinstance(line, Leads) else line
        return Content(" ") + content.truncate(max(1, width - 1), ellipsis=True)
