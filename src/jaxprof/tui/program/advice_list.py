"""Findings about a program, the most expensive first: the cost, what was seen, what to do about it, and at which line.

Not a table: a finding is a paragraph of several lines.
"""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.content import Content

from jaxprof.text import safe
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.drawing import cell
from jaxprof.tui.kit.format import place_in_full, place_text
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.program.line_profile import LineRequested
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.analysis.programs.derive import ProgramFinding, Remark

COST = 9


class AdviceList(RowList):
    """Several lines per finding; the cursor stops only on the first."""

    EMPTY = "No findings."
    BINDINGS: ClassVar[list[BindingType]] = bindings("advice")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._findings: Sequence[ProgramFinding] = ()
        self._verdict = ""
        self._remarks: Sequence[Remark] = ()
        self._directory = ""
        self._only = ""
        self._drawn: dict[Hashable, Content] = {}
        self._width = 0

    def show(
        self,
        findings: Sequence[ProgramFinding],
        directory: str = "",
        *,
        verdict: str = "",
        remarks: Sequence[Remark] = (),
    ) -> None:
        """Shows the `verdict` (what bounds the loop), the findings, and `remarks` that are true of most programs."""
        if (tuple(findings), verdict, tuple(remarks)) != (self._findings, self._verdict, self._remarks):
            self._findings, self._directory = tuple(findings), directory
            self._verdict, self._remarks = verdict, tuple(remarks)
            self._list()

    def set_filter(self, text: str) -> None:
        """Shows only findings with all these words."""
        self._only = text.casefold()
        self._list()

    def on_resize(self) -> None:
        if self.size.width != self._width:
            self._list()

    def _list(self) -> None:
        self._width = self.size.width
        width, words = max(24, self.size.width - 2), self._only.split()
        drawn: dict[Hashable, Content] = {}
        if self._verdict and not words:
            for index, line in enumerate(textwrap.wrap(safe(self._verdict), width)):
                drawn["verdict", 1 + index] = Content.styled(line, "bold $primary")
        for number, finding in enumerate(self._findings):
            text = f"{finding.code} {finding.message} {finding.advice} {place_in_full(finding.where)}".casefold()
            if all(word in text for word in words):
                if drawn:
                    drawn[number, -1] = Content("")
                for index, content in enumerate(_lines(finding, self._directory, width)):
                    drawn[number, index] = content
        for number, remark in enumerate(() if words else self._remarks):
            drawn["remark", -1 - number] = Content("")
            for index, text in enumerate(textwrap.wrap(safe(f"{remark.message}. {remark.advice}"), width)):
                drawn["remark", number, 1 + index] = Content.styled(text, "$text-muted")
        self._drawn = drawn
        self.set_keys(list(drawn))

    def selectable(self, index: int) -> bool:
        key = self._keys[index]
        return isinstance(key, tuple) and len(key) == 2 and key[1] == 0

    def draw_row(self, index: int, width: int) -> Content:
        return self._drawn[self._keys[index]].truncate(width, ellipsis=True)

    @property
    def finding(self) -> ProgramFinding | None:
        """The finding under the cursor."""
        key = self.current
        return self._findings[key[0]] if isinstance(key, tuple) and isinstance(key[0], int) else None

    def action_enter(self) -> None:
        """Shows the source line of the finding."""
        finding = self.finding
        if finding is not None and finding.where is not None:
            self.post_message(LineRequested(finding.where))

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        """Shows the source line on a double click too."""
        message.stop()
        self.action_enter()


def _lines(finding: ProgramFinding, directory: str, width: int) -> list[Content]:
    """The cost, what was seen, where, and the advice."""
    place = place_text(finding.where, directory)
    cost = cell(seconds(finding.seconds) if finding.seconds is not None else "", COST, "bold $warning", right=True)
    saves = f"; would save about {seconds(finding.saves_seconds, 2)}" if finding.saves_seconds else ""
    room = max(12, width - COST - 3)
    message = textwrap.wrap(safe(finding.message + saves), room) or [""]
    lines = [Content.assemble(cost, "  ", (message[0], "bold"))]
    indent = " " * (COST + 2)
    lines += [Content.assemble(indent, (line, "bold")) for line in message[1:]]
    advice = safe(finding.advice)
    if place:
        lines.append(Content.assemble(indent, (place, "$primary")))
    lines += [Content.assemble(indent, (line, "$text-muted")) for line in textwrap.wrap(advice, room)]
    return lines
