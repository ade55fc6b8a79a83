"""Facts, one line each; some lead to an instruction. Drawing costs only what is in view."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.content import Content

from jaxprof.base.text import safe
from jaxprof.base.values import frozen
from jaxprof.tui.kit.row_list import RowList


@frozen
class FactTarget:
    """Where a fact leads: an instruction of the optimised HLO."""

    computation: str
    name: str
    kernel: bool = False
    run: str = ""
    """Id of the run that has the HLO; empty for the run in view."""


@frozen
class Leads:
    content: Content
    target: FactTarget | None


FactLine = Content | Leads
Facts = Callable[[int], Sequence[FactLine]]


def heading(text: str, note: str = "") -> FactLine:
    return Content.assemble((text, "bold $primary"), (f"  {safe(note)}" if note else "", "$text-muted"))


class FactList(RowList[FactLine], keys="facts"):
    """Facts with a cursor; Enter follows the fact under it."""

    _facts: Facts = staticmethod(lambda width: ())
    _about: object = None
    _width = 0

    def show(self, about: object, facts: Facts) -> None:
        fresh = about != self._about
        self._about, self._facts = about, facts
        self.rebuild()
        if fresh:
            self.move_to(0)
            self.scroll_to(y=0, animate=False)

    def rebuild(self) -> None:
        self._width = max(16, self.size.width)
        self.show_rows(dict(enumerate(self._facts(self._width - 2))))

    def on_resize(self) -> None:
        if max(16, self.size.width) != self._width:
            self.rebuild()

    @property
    def target(self) -> FactTarget | None:
        return self.current_row.target if isinstance(self.current_row, Leads) else None

    def first_line(self, index: int, row: FactLine, width: int) -> Content:
        content = row.content if isinstance(row, Leads) else row
        return Content(" ") + content.truncate(max(1, width - 1), ellipsis=True)
