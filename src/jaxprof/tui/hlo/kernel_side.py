"""The lists of a program (kernels, findings, the roofline), with the facts about what the cursor is on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.containers import Container, Vertical
from textual.content import Content

from jaxprof.analysis.ranking import Ranking
from jaxprof.finding import Finding
from jaxprof.text import safe
from jaxprof.tui.hlo.kernel_detail import finding_facts, group_facts, kernel_facts
from jaxprof.tui.hlo.kernels import KernelTable
from jaxprof.tui.hlo.roofline import neighbour, roofline_plot
from jaxprof.tui.kit.drawing import whole_parts
from jaxprof.tui.kit.fact_list import FactList, Facts, FactTarget
from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.picture import Picture
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import TableColumn
from jaxprof.tui.kit.table_view import TableView
from jaxprof.units import bytes_, counted, integer

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.tui.hlo.modules import OpenedModule


_FINDINGS: tuple[TableColumn[Finding], ...] = (
    TableColumn("finding", lambda finding: finding.code.replace("-", " "), 12, most=24, fits=True,
                style="bold $accent", gap=2),
    TableColumn("what", lambda finding: finding.message, 1, weight=1),
    TableColumn("bytes", lambda finding: bytes_(finding.bytes) if finding.bytes is not None else "", 5, most=9,
                fits=True, right=True, style="$text-muted"),
)  # fmt: skip


class HloFindings(TableView[Finding], keys="hlo_findings"):
    """The findings of a module, the most expensive first."""


LISTS = {"kernels": "Kernels", "findings": "Findings", "roofline": "Roofline"}
"""Titles of the tabs by list, from left to right."""


class KernelSide(Guarded, Container, keys="roofline"):
    """One list at a time, and the facts beside or below it."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._opened: OpenedModule | None = None
        self.tab = "kernels"
        """The list in view, one of `LISTS`."""

    def compose(self) -> ComposeResult:
        with Vertical(id="list-box", classes="box"):
            yield FilterLine("kernels", "findings")
            yield Picture(id="roofline")
            yield KernelTable(id="kernels")
            yield HloFindings(_FINDINGS, id="findings")
        with Vertical(id="fact-box", classes="box"):
            yield FactList(id="facts")

    # -- what is shown ----------------------------------------------------------------------------------------

    @property
    def table(self) -> KernelTable:
        """The table of kernels."""
        return self.query_one(KernelTable)

    @property
    def _findings(self) -> HloFindings:
        return self.query_one(HloFindings)

    @property
    def current_list(self) -> KernelTable | HloFindings:
        """The list that takes the keys."""
        return self._findings if self.tab == "findings" else self.table

    def show_program(self, opened: OpenedModule | None) -> None:
        """Show another program, which may not have been read yet."""
        self._opened = opened
        self.table.show_kernels(Ranking(), "Reading the HLO…" if opened is not None else "")
        self._findings.empty = ""
        self._findings.show_rows({})
        self._show()

    def show_ranking(self, opened: OpenedModule, ranking: Ranking) -> None:
        """Show the kernels, once they are known or are compared with another device."""
        self.table.noun = "kernel" if opened.optimised else "operation"
        self.table.show_kernels(ranking, "No kernels here." if opened.whole else "No kernels in what was read.")
        self._show()

    def show_findings(self, opened: OpenedModule) -> None:
        """Show the findings, once they are known. From a module that was read in part, nothing follows."""
        if opened.findings is not None:
            where = " in what was read" if opened.optimised else " detectable before XLA's passes"
            self._findings.empty = f"No findings{'' if opened.whole else where}."
            self._findings.show_rows(dict(enumerate(opened.findings)))
            self._findings.refresh()
        self._show()

    def show_failure(self, words: str) -> None:
        """Show why there are no kernels."""
        self.table.show_kernels(Ranking(), safe(words))

    def show_tab(self, tab: str) -> None:
        """Show another list."""
        self.tab = tab
        self._findings.display = tab == "findings"
        self.table.display = tab != "findings"
        self.set_class(tab == "roofline", "-roofline")
        self._show()

    def select(self, computation: str, name: str) -> bool:
        """Move the table's cursor to a kernel, even a hidden one; return False if no kernel has that name."""
        ranking = self.table.ranking
        number = next((at for where in (computation, "") if (at := ranking.find(name, where)) is not None), None)
        if number is None:
            return False
        if not self.table.select(number):
            self.query_one(FilterLine).clear()
            self.table.group_by("none")
        return self.table.select(number)

    @property
    def _plotted(self) -> tuple[Ranking, Sequence[int], int | None]:
        """What the roofline shows: kernels by their numbers, and the chosen one."""
        ranked = self.table.ranked
        return self.table.ranking, self.table.filtered, ranked.number if ranked is not None else None

    @on(KernelTable.Sorted)
    @on(FilterLine.Edited)
    @on(RowList.Highlighted, "#kernels, #findings")
    def _show(self) -> None:
        """Show the facts, the roofline and the titles of the list in view."""
        self._show_facts()
        if self.tab == "roofline":
            ranking, numbers, chosen = self._plotted
            key = (id(ranking), id(numbers), chosen)  # the drawing holds both: nothing else has their identities
            self.query_one("#roofline", Picture).show(key, partial(roofline_plot, ranking, numbers, chosen))
        self._show_titles()

    def _show_titles(self) -> None:
        box, opened = self.query_one("#list-box"), self._opened
        words, below = "", list[str]()
        if opened is not None and self.tab == "findings":
            hidden = f" · {integer(self._findings.hidden)} hidden" if self._findings.hidden else ""
            words, below = counted(self._findings.total, "finding") + hidden, ["bytes are estimates"]
        elif opened is not None and opened.kernels is not None:
            words, below = self.table.words, self.table.order
            words = words if opened.complete else f"the first {words}, reading the others…"
        title = opened.program.title if opened is not None else ""
        box.border_title = Content(safe(" · ".join(filter(None, (title, words)))))
        box.border_subtitle = whole_parts(below, box.size.width - 4)

    def on_resize(self) -> None:
        """Fit the titles."""
        self._show_titles()

    def _show_facts(self) -> None:
        opened, finding, ranked, group = self._opened, self._findings.current_row, self.table.ranked, self.table.group
        about: object = None
        facts: Facts | None = None
        title = "Kernel"
        if self.tab == "findings":
            title = "Finding"
            if opened is not None and finding is not None:
                about, facts = finding, partial(finding_facts, opened, finding)
        elif group is not None:
            title, about, facts = "Group", group.path, partial(group_facts, group)
        elif opened is not None and ranked is not None:
            around = 0 if self.screen.has_class("-short") else 1
            about, facts = ranked.key, partial(kernel_facts, opened, ranked, around=around)
        self.query_one(FactList).show(about, facts or (lambda width: ()))
        self.query_one("#fact-box").border_title = title

    # -- keys and messages from the lists ----------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the keys of the roofline while it is not in view."""
        if action == "point":
            return self.tab == "roofline" and len(self.table.ranking) > 0
        return super().check_action(action, parameters)

    def action_point(self, step: int) -> None:
        number = neighbour(*self._plotted, step)
        if number is not None:
            self.table.select(number)

    def chosen(self, rows: RowList) -> FactTarget | None:
        """Return what the row that was chosen in a list leads to; a group of kernels opens or closes instead."""
        finding, ranked = self._findings.current_row, self.table.ranked
        if isinstance(rows, FactList):
            return rows.target
        if isinstance(rows, HloFindings):
            return FactTarget("", finding.kernels[0], kernel=True) if finding is not None and finding.kernels else None
        if ranked is None:
            self.table.action_open_group()
        return FactTarget(*ranked.key) if ranked is not None else None

    @on(FilterLine.Left)
    def _filter_left(self) -> None:
        self.current_list.focus()
