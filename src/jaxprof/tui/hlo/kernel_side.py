"""The lists of a program (kernels, findings, barriers, the roofline), with the facts about what the cursor is on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message

from jaxprof.analysis.flame import ranking_flame
from jaxprof.analysis.ranking import Ranking
from jaxprof.text import safe
from jaxprof.tui.hlo.kernel_detail import barrier_facts, finding_facts, group_facts, kernel_facts
from jaxprof.tui.hlo.kernels import KernelTable
from jaxprof.tui.hlo.roofline import RooflineView
from jaxprof.tui.kit.drawing import whole_parts
from jaxprof.tui.kit.fact_list import FactLine, FactList, FactTarget
from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.icicle import IciclePane
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import TableColumn
from jaxprof.tui.kit.table_view import TableView
from jaxprof.units import bytes_

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.ranking import Ranked
    from jaxprof.hlo.analysis.barriers import Barrier
    from jaxprof.hlo.analysis.findings.finding import HloFinding
    from jaxprof.tui.hlo.modules import OpenedModule
    from jaxprof.tui.kit.icicle import Icicle


_NOTHING = {
    "findings": ("No findings.", "No findings in what was read.", "No findings detectable before XLA's passes."),
    "barriers": (
        "No array goes from one kernel to another.",
        "No barriers in what was read.",
        "Unknown: XLA's passes, which fuse kernels, have not run on this module.",
    ),
}
"""Text of an empty list: for a whole module, for a part of one (from which nothing follows), and for one before
XLA's passes."""
_FINDINGS: tuple[TableColumn[HloFinding], ...] = (
    TableColumn("finding", lambda finding: finding.code.replace("-", " "), 12, most=24, fits=True,
                style="bold $accent", gap=2),
    TableColumn("what", lambda finding: finding.message, 1, weight=1),
    TableColumn("bytes", lambda finding: bytes_(finding.bytes) if finding.bytes is not None else "", 5, most=9,
                fits=True, right=True, style="$text-muted"),
)  # fmt: skip
_BARRIERS: tuple[TableColumn[Barrier], ...] = (
    TableColumn("would save", lambda barrier: bytes_(barrier.bytes), 10, right=True),
    TableColumn("written by", lambda barrier: barrier.producer, 8, weight=1, cut="middle"),
    TableColumn("", lambda barrier: "→", 1, style="$quiet"),
    TableColumn("read by", lambda barrier: barrier.consumer, 8, weight=1, cut="middle"),
    TableColumn("reason", lambda barrier: barrier.reason.replace("-", " "), 18, style="$accent"),
)


class KernelNotes(TableView[Any], keys="kernel_notes"):
    """Findings or barriers: rows about kernels, the most expensive first."""


LISTS = {
    "kernels": "Kernels",
    "findings": "Findings",
    "barriers": "Barriers",
    "roofline": "Roofline",
    "flame": "Flame",
}
"""Titles of the tabs by list, from left to right."""


class KernelSide(Guarded, Container, keys="roofline"):
    """One list at a time, and the facts beside or below it."""

    class Highlighted(Message):
        """Posted when the cursor moves to another kernel."""

    @dataclass
    class OpenRequested(Message):
        """Requests a kernel of the table, or the text of an instruction."""

        target: FactTarget

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._opened: OpenedModule | None = None
        self.tab = "kernels"
        """The list in view, one of `LISTS`."""

    def compose(self) -> ComposeResult:
        with Vertical(id="list-box", classes="box"):
            yield FilterLine("kernels", *_NOTHING)
            yield RooflineView(id="roofline")
            yield KernelTable(id="kernels")
            yield KernelNotes(_FINDINGS, id="findings")
            yield KernelNotes(_BARRIERS, id="barriers")
            yield IciclePane("frames")
        with Vertical(id="fact-box", classes="box"):
            yield FactList(id="facts")

    # -- what is shown ----------------------------------------------------------------------------------------

    @property
    def listed(self) -> bool:
        """Whether the kernels of the program are in the table."""
        return len(self.table.rows.ranking) > 0

    @property
    def ranked(self) -> Ranked | None:
        """The kernel under the cursor of the table."""
        return self.table.ranked

    @property
    def table(self) -> KernelTable:
        """The table of kernels."""
        return self.query_one(KernelTable)

    def show_program(self, opened: OpenedModule | None) -> None:
        """Show another program, which may not have been read yet."""
        self._opened = opened
        self.table.show_kernels(Ranking(), "Reading the HLO…" if opened is not None else "")
        for notes in self.query(KernelNotes):
            notes.empty = ""
            notes.show_rows({})
        self._show()

    def show_ranking(self, opened: OpenedModule, ranking: Ranking) -> None:
        """Show the kernels, once they are known or are compared with another device."""
        self.table.noun = "kernel" if opened.optimised else "operation"
        self.table.show_kernels(ranking, "No kernels here." if opened.whole else "No kernels in what was read.")
        self._show()

    def show_notes(self, opened: OpenedModule) -> None:
        """Show findings and barriers, as far as they are known."""
        which = 0 if opened.whole else 1 if opened.optimised else 2
        for notes in self.query(KernelNotes):
            rows: Sequence[Any] | None = opened.findings if notes.id == "findings" else opened.barriers
            if rows is not None:
                notes.empty = _NOTHING[str(notes.id)][which]
                notes.show_rows(dict(enumerate(rows)))
                notes.refresh()
        self._show()

    def show_failure(self, words: str) -> None:
        """Show why there are no kernels."""
        self.table.show_kernels(Ranking(), safe(words))

    def show_tab(self, tab: str) -> None:
        """Show another list."""
        self.tab = tab
        for notes in self.query(KernelNotes):
            notes.display = tab == notes.id
        self.table.display = tab in ("kernels", "roofline")
        self._flame.display = tab == "flame"
        for picture in ("flame", "roofline"):
            self.set_class(tab == picture, f"-{picture}")
        self._show()

    def _show(self) -> None:
        """Show the facts, the pictures and the titles of the list in view."""
        self._show_facts()
        self._show_pictures()
        self._show_titles()

    @property
    def _flame(self) -> IciclePane:
        return self.query_one(IciclePane)

    @property
    def current_list(self) -> RowList | Icicle:
        """The widget that takes the keys."""
        if self.tab == "flame":
            return self._flame.view
        notes = self._notes
        return notes if notes is not None else self.table

    @property
    def _notes(self) -> KernelNotes | None:
        """The findings or the barriers, if they are in view."""
        return self.query_one(f"#{self.tab}", KernelNotes) if self.tab in _NOTHING else None

    def select(self, computation: str, name: str) -> bool:
        """Move the table's cursor to a kernel, even a hidden one; return False if no kernel has that name."""
        ranking = self.table.rows.ranking
        number = next((at for where in (computation, "") if (at := ranking.find(name, where)) is not None), None)
        if number is None:
            return False
        if not self.table.select(number):
            self.clear_filter()
            self.table.group_by("none")
        return self.table.select(number)

    def csv(self) -> str:
        """Return the rows of the table as shown, with the columns that `jaxprof hlo --format csv` prints."""
        from jaxprof.report.kernels import kernels_table
        from jaxprof.report.renderers import to_csv_text

        label = self._opened.program.title if self._opened is not None else ""
        rows = self.table.rows
        return to_csv_text(kernels_table([(label, rows.ranking.rows(rows.numbers))]))

    def _show_titles(self) -> None:
        box, opened, notes = self.query_one("#list-box"), self._opened, self._notes
        if opened is None:
            box.border_title = box.border_subtitle = ""
            return
        if notes is None:
            words, below = self.table.words if opened.kernels is not None else "", self.table.arrangement
            words = words if opened.complete else f"the first {words}, reading the others…"
        else:
            what = self.tab if notes.total != 1 else self.tab.removesuffix("s")
            words = f"{notes.total} {what}" + (f" · {notes.hidden} hidden" if notes.hidden else "")
            below = ["bytes are estimates"]
        box.border_title = Content(safe(" · ".join(filter(None, (opened.program.title, words)))))
        box.border_subtitle = whole_parts(below, box.size.width - 4) if opened.kernels is not None else ""

    def on_resize(self) -> None:
        """Fit the titles."""
        self._show_titles()

    @on(RowList.Highlighted, "#findings")
    @on(RowList.Highlighted, "#barriers")
    def _show_facts(self) -> None:
        around = 0 if self.screen.has_class("-short") else 1
        note = self._notes.current_row if self._notes is not None else None
        ranked, group = self.table.ranked, self.table.group
        opened, about, title = self._opened, None, self.tab.removesuffix("s").capitalize()

        def lines(width: int) -> Sequence[FactLine]:
            if opened is None:
                return ()
            if self._notes is not None:
                facts = finding_facts if self.tab == "findings" else barrier_facts
                return facts(opened, note, width) if note is not None else ()
            if group is not None:
                return group_facts(group, width)
            return kernel_facts(opened, ranked, width, around) if ranked is not None else ()

        if self._notes is None:
            about, title = (group.path, "Group") if group is not None else (ranked and ranked.key, "Kernel")
        self.query_one(FactList).show(about or note, lines)
        self.query_one("#fact-box").border_title = title

    def _show_pictures(self) -> None:
        rows, ranked = self.table.rows, self.table.ranked
        ranking = rows.ranking
        if self.tab == "roofline":
            chosen = ranked.number if ranked is not None else None
            self.query_one(RooflineView).show_kernels(ranking, rows.numbers, rows.changes, chosen)
        elif self.tab == "flame":
            self._flame.read(ranking, lambda: ranking_flame(ranking), "No kernels here.")

    # -- keys and messages from the lists ----------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the keys of the roofline while it is not in view."""
        if action == "point":
            return self.tab == "roofline" and self.listed
        return super().check_action(action, parameters)

    def action_point(self, step: int) -> None:
        self.query_one(RooflineView).go(step)

    @on(RooflineView.Chosen)
    def _point_chosen(self, message: RooflineView.Chosen) -> None:
        self.table.select(message.number)

    @on(RowList.Highlighted, "#kernels")
    def _kernel_in_view(self) -> None:
        self._show_facts()
        self._show_pictures()
        if self.ranked is not None:
            self.post_message(self.Highlighted())

    @on(IciclePane.OpenRequested)
    def _frame_entered(self, message: IciclePane.OpenRequested) -> None:
        number, ranking = message.graph.tree.entries[message.node], self.table.rows.ranking
        if 0 <= number < len(ranking):
            self.post_message(self.OpenRequested(FactTarget(*ranking[number].key)))

    @on(KernelTable.Arranged)
    def _arranged(self) -> None:
        self._show()

    @on(RowList.Chosen, "#kernels")
    def _kernel_chosen(self) -> None:
        if self.ranked is not None:
            self.post_message(self.OpenRequested(FactTarget(*self.ranked.key)))
        else:
            self.table.action_open_group()

    @on(RowList.Chosen, "#findings")
    @on(RowList.Chosen, "#barriers")
    def _note_chosen(self) -> None:
        row = self._notes.current_row if self._notes is not None else None
        if row is None:
            return
        barrier = self.tab == "barriers"
        computation, name = (row.computation, row.consumer) if barrier else ("", next(iter(row.where), ""))
        if name:
            self.post_message(self.OpenRequested(FactTarget(computation, name, kernel=True)))

    @on(RowList.Chosen, "#facts")
    def _fact_chosen(self) -> None:
        target = self.query_one(FactList).target
        if target is not None:
            self.post_message(self.OpenRequested(target))

    # -- the filter -------------------------------------------------------------------------------------------

    def open_filter(self) -> None:
        """Open the filter line of the lists, or the search line of the flame graph."""
        if self.tab == "flame":
            self._flame.action_search()
        else:
            self.query_one(FilterLine).open()

    def clear_filter(self) -> bool:
        """Clear the filter; return False if there was none."""
        line = self.query_one(FilterLine)
        filtered = bool(line.value)
        line.clear()
        return filtered

    @on(FilterLine.Edited)
    def _filter_edited(self) -> None:
        self._show_titles()

    @on(FilterLine.Left)
    def _filter_left(self) -> None:
        self.current_list.focus()
