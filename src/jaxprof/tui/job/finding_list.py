"""What is wrong with a job, on top of its screen: what is missing first, then the findings, each whole below its row.

Not a table: what is said is a paragraph of several lines. One line of it stands where there is no room for more.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.content import Content

from jaxprof.text import safe
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.drawing import cell
from jaxprof.tui.kit.row_list import RowList
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.analysis.jobs.job import JobFigures

_COST = 8
_INDENT = _COST + 4
"""Columns before what is said: a mark, the cost, and the blanks around them."""
_STYLES = {"!": "$warning", "✗": "bold $error", "✓": "$better"}


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that is said of a job."""

    mark: str
    """`!` what is missing, `✗` a finding, `✓` that nothing was found."""
    text: str
    cost: str = ""
    place: str = ""
    advice: str = ""
    index: int | None = None
    """The process that it is about."""


def said_of(job: JobFigures) -> list[Said]:
    """What is missing, then what was found, or what could be compared without finding anything."""
    from jaxprof.report.hosts import nothing_found

    said = [Said("!", notice) for notice in job.notices]
    for finding in job.findings:
        cost = seconds(finding.seconds) if finding.seconds is not None else ""
        place = finding.where.short() if finding.where else ""
        said.append(Said("✗", finding.message, cost, place, finding.advice, finding.index))
    if not job.names_somebody and (words := nothing_found(job)):
        said.append(Said("✓", words))
    return said


class JobFindings(RowList):
    """One row for each thing said; the others of its lines below it."""

    EMPTY = "Nothing is known of this job yet."
    UNFOLDS = True
    BINDINGS: ClassVar[list[BindingType]] = bindings("job_findings")

    class Opened(RowList.Highlighted):
        """The user wants to see the process of a finding."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._said: dict[Hashable, Said] = {}

    def show(self, said: Sequence[Said]) -> None:
        """Shows what is to be said of a job."""
        by_key: dict[Hashable, Said] = {(one.mark, one.text): one for one in said}
        if by_key != self._said:
            self._said = by_key
            self.set_keys(list(self._said))

    @property
    def said(self) -> Said | None:
        """What is under the cursor."""
        return self._said.get(self.current) if self.keys else None

    def lines_wanted(self, width: int, most: int) -> int:
        """How many of `most` lines it takes: for all that is said, or where that does not fit, for the longest whole
        beside a line of each other."""
        each = [len(_lines(said, width)) for said in self._said.values()] or [1]
        return max(1, min(most, sum(each) if sum(each) <= most else len(each) - 1 + max(each)))

    def draw_row(self, index: int, width: int) -> Content:
        said = self._said[self._keys[index]]
        if index in self._below:
            return _lines(said, width)[0]
        return _head(said) + cell(said.text, width - _INDENT, _weight(said))

    def below(self, index: int, width: int) -> Sequence[Content]:
        return _lines(self._said[self._keys[index]], width)[1:]

    def action_open(self) -> None:
        """Opens the session of the process under the cursor."""
        if self.said is not None and self.said.index is not None:
            self.post_message(self.Opened(self, self.cursor))

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        message.stop()
        self.action_open()


def _head(said: Said) -> Content:
    cost = cell(said.cost, _COST, "bold $warning", right=True)
    return Content.assemble(" ", (said.mark, _STYLES.get(said.mark, "")), cost, "  ")


def _weight(said: Said) -> str:
    return "bold" if said.mark == "✗" else ""


def _lines(said: Said, width: int) -> list[Content]:
    """All lines: what was seen with what it cost, at which line, and the advice."""
    room = max(12, width - _INDENT)
    lines = Content.styled(safe(said.text), _weight(said)).wrap(room) or [Content("")]
    if said.place:
        lines += Content.styled(safe(said.place), "$primary").wrap(room)
    if said.advice:
        lines += Content.styled(safe(said.advice), "$text-muted").wrap(room)
    indent = Content(" " * _INDENT)
    return [_head(said) + lines[0], *(indent + line for line in lines[1:])]
