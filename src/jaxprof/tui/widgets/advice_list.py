"""Findings about a program: what it costs, what was seen, what to do about it, and at which line. The dearest first."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from jaxprof.safe_text import safe
from jaxprof.tui.widgets.drawing import cell
from jaxprof.tui.widgets.hot_lines import LineWanted
from jaxprof.tui.widgets.place_text import place_in_full, place_text
from jaxprof.tui.widgets.row_list import RowList
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.results.programs.derive import Finding

COST = 9


class AdviceList(RowList):
    """Several lines a finding, of which the first can be stood on."""

    EMPTY = "Nothing to remark."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "enter", "Source", tooltip="The line that it speaks of", id="advice.enter"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._findings: Sequence[Finding] = ()
        self._directory = ""
        self._only = ""
        self._drawn: dict[Hashable, Content] = {}
        self._width = 0

    def show(self, findings: Sequence[Finding], directory: str = "") -> None:
        """Shows these findings."""
        if tuple(findings) != tuple(self._findings):
            self._findings, self._directory = tuple(findings), directory
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
        for number, finding in enumerate(self._findings):
            text = f"{finding.code} {finding.message} {finding.advice} {place_in_full(finding.where)}".casefold()
            if all(word in text for word in words):
                if drawn:
                    drawn[number, -1] = Content("")
                for index, line in enumerate(_lines(finding, self._directory, width)):
                    drawn[number, index] = line
        self._drawn = drawn
        self.set_keys(list(drawn))

    def selectable(self, index: int) -> bool:
        key = self._keys[index]
        return isinstance(key, tuple) and key[1] == 0

    def draw_row(self, index: int, width: int) -> Content:
        return self._drawn[self._keys[index]].truncate(width, ellipsis=True)

    @property
    def finding(self) -> Finding | None:
        """The one under the cursor."""
        key = self.current
        return self._findings[key[0]] if isinstance(key, tuple) else None

    def action_enter(self) -> None:
        """Shows the line that it speaks of."""
        finding = self.finding
        if finding is not None and finding.where is not None:
            self.post_message(LineWanted(finding.where))

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        """A double click shows it too."""
        message.stop()
        self.action_enter()


def _lines(finding: Finding, directory: str, width: int) -> list[Content]:
    """Its cost, what was seen, and what mends it."""
    place = place_text(finding.where, directory)
    cost = cell(seconds(finding.seconds) if finding.seconds is not None else "", COST, "bold $warning", right=True)
    room = max(12, width - COST - 3)
    said = textwrap.wrap(safe(finding.message), room) or [""]
    lines = [Content.assemble(cost, "  ", (said[0], "bold"))]
    indent = " " * (COST + 2)
    lines += [Content.assemble(indent, (line, "bold")) for line in said[1:]]
    advice = safe(finding.advice)
    if place:
        lines.append(Content.assemble(indent, (place, "$primary")))
    lines += [Content.assemble(indent, (line, "$text-muted")) for line in textwrap.wrap(advice, room)]
    return lines
