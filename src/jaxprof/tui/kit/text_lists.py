"""Lists of text: facts, one line each, of which some lead to an instruction; and claims about a program or a job, one
per row, with the cost, what was observed, where, and the fix. Drawing costs only what is in view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from textual.content import Content

from jaxprof.base.text import safe
from jaxprof.base.units import bytes_, seconds
from jaxprof.base.values import frozen
from jaxprof.tui.kit.drawing import cell, wrap_content
from jaxprof.tui.kit.format import location_text
from jaxprof.tui.kit.row_list import RowList

if TYPE_CHECKING:
    from jaxprof.events.finding import Finding


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


_COST = 8
_INDENT = _COST + 4
"""Columns before the text: a mark, the cost, and the blanks around them."""
_STYLES = {"!": "$warning", "✗": "bold $error", "✓": "$better"}


@frozen
class Claim:
    text: str
    mark: str = ""
    """`!` for missing data, `✗` for a finding of a job, `✓` if nothing was found."""
    cost: str = ""
    location: str = ""
    fix: str = ""
    about: Any = None
    """What Enter leads to: a process or a line; None for nothing."""
    saves_seconds: float | None = None
    """Seconds that the fix would save, at most what the finding cost; None if that is unknown."""
    style: str = "bold"

    @property
    def key(self) -> tuple[str, str, str]:
        """Key of its row: functions of one name, such as two lambdas, have findings of the same text."""
        return self.mark, self.text, self.location


def claim_of(finding: Finding, about: Any, mark: str = "", directory: str = "") -> Claim:
    cost = bytes_(finding.bytes) if finding.bytes is not None else ""
    if finding.seconds is not None:
        cost = seconds(finding.seconds)
    saves = f"; would save about {seconds(finding.saves_part, 2)}" if finding.saves_part is not None else ""
    saved = finding.saves_part if finding.saves_part is not None else finding.seconds
    at = location_text(finding.where, directory)
    return Claim(finding.message + saves, mark, cost, at, finding.fix, about, saves_seconds=saved)


class ClaimList(RowList[Claim]):
    """The first line of each claim, and the lines below it, for all claims if there is room."""

    UNFOLDS = True

    def show(self, claims: Iterable[Claim]) -> None:
        self.show_rows({claim.key: claim for claim in claims})

    def haystack(self, row: Claim) -> str:
        return f"{row.text} {row.location} {row.fix}"

    def _lines_at(self, index: int, width: int) -> list[Content]:
        claim = self.row(self.row_key(index))
        if claim is None:
            return []
        parts = ((claim.text, claim.style), (claim.location, "$primary"), (claim.fix, "$text-muted"))
        room = max(12, width - _INDENT)
        lines = [
            line for text, style in parts if text for line in wrap_content(Content.styled(safe(text), style), room)
        ]
        indent = Content(" " * _INDENT)
        return [_head(claim) + (lines[0] if lines else ""), *(indent + line for line in lines[1:])]

    def lines_wanted(self, width: int, most: int) -> int:
        """Return how many of `most` lines the list needs: enough for all claims, or if they do not fit, for the longest
        one in full and one line of each other claim."""
        counts = [len(self._lines_at(index, width)) for index in range(self.count)] or [1]
        return max(1, min(most, sum(counts) if sum(counts) <= most else len(counts) - 1 + max(counts)))

    def first_line(self, index: int, row: Claim, width: int) -> Content:
        if index in self._below:
            return self._lines_at(index, width)[0]
        return _head(row) + cell(row.text, width - _INDENT, row.style)

    def below(self, index: int, width: int) -> Sequence[Content]:
        return self._lines_at(index, width)[1:]


def _head(claim: Claim) -> Content:
    cost = cell(claim.cost, _COST, "bold $warning", right=True)
    return Content.assemble(" ", (claim.mark or " ", _STYLES.get(claim.mark, "")), cost, "  ")
