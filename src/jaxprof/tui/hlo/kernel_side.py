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
from jaxprof.text import columns, safe, shorten
from jaxprof.tui.hlo.kernel_detail import figure_fact, group_facts, kernel_facts, kind_of, reason_words, source_facts
from jaxprof.tui.hlo.kernels import KernelTable
from jaxprof.tui.hlo.roofline import RooflineView
from jaxprof.tui.kit.drawing import bar, cell
from jaxprof.tui.kit.fact_list import FactLine, FactList, FactTarget, Leads, heading, paragraph
from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.icicle import IciclePane
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import TableColumn
from jaxprof.tui.kit.table_view import TableView
from jaxprof.units import bytes_, counted

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.ranking import Ranked
    from jaxprof.hlo.analysis.barriers import Barrier
    from jaxprof.hlo.analysis.findings.finding import HloFinding
    from jaxprof.tui.hlo.modules import OpenedModule
    from jaxprof.tui.kit.icicle import Icicle


_MOST_PLACES = 200
"""Most locations listed for a finding."""


NOTHING = {
    "findings": ("No findings.", "No findings in what was read.", "No findings detectable before XLA's passes."),
    "barriers": (
        "No array goes from one kernel to another.",
        "No barriers in what was read.",
        "Unknown: XLA's passes, which fuse kernels, have not run on this module.",
    ),
}
"""Text of an empty list: for a whole module, for a part of one (from which nothing follows), and for one before
XLA's passes."""


class KernelNotes(TableView[Any], keys="kernel_notes"):
    """Findings or barriers: rows about kernels, the most expensive first."""

    most = 1
    """Bytes of the row with the most bytes, at least 1."""

    def show(self, rows: Sequence[HloFinding] | Sequence[Barrier]) -> None:
        """Show the rows of another program."""
        self.most = max((row.bytes or 0 for row in rows), default=0) or 1
        self.show_rows(dict(enumerate(rows)))


def finding_list() -> KernelNotes:
    """Return an empty list of findings, which has a row for each."""
    columns: tuple[TableColumn[HloFinding], ...] = (
        TableColumn("finding", lambda finding: finding.code.replace("-", " "), 12, most=24, fits=True,
                    style="bold $accent", gap=2),
        TableColumn("what", lambda finding: finding.message, 1, weight=1),
        TableColumn("bytes", lambda finding: bytes_(finding.bytes) if finding.bytes is not None else "", 5, most=9,
                    fits=True, right=True, style="$text-muted"),
    )  # fmt: skip
    return KernelNotes(columns, id="findings")


def barrier_list() -> KernelNotes:
    """Return an empty list of barriers, which has a row for each."""

    def saving(barrier: Barrier) -> Content:
        return bar(barrier.bytes / rows.most, 6) + cell(bytes_(barrier.bytes), 10, right=True)

    columns: tuple[TableColumn[Barrier], ...] = (
        TableColumn("would save", saving, 16),
        TableColumn("written by", lambda barrier: barrier.producer, 8, weight=1, cut="middle"),
        TableColumn("", lambda barrier: "→", 1, style="$quiet"),
        TableColumn("read by", lambda barrier: barrier.consumer, 8, weight=1, cut="middle"),
        TableColumn("reason", lambda barrier: barrier.reason.replace("-", " "), 18, style="$accent"),
    )
    rows = KernelNotes(columns, id="barriers")
    return rows


# -- the facts about a row --------------------------------------------------------------------------------------------


def barrier_facts(opened: OpenedModule, barrier: Barrier, width: int) -> list[FactLine]:
    """Return everything about a barrier."""
    facts = [
        Content.styled(barrier.reason.replace("-", " "), "bold $accent"),
        *paragraph(reason_words(barrier), width),
        heading("The array"),
        Content.styled(shorten(str(barrier.shape), width), "$code-number"),
        figure_fact("would save", f"{bytes_(barrier.bytes)} a run (estimate)"),
    ]
    for label, name in (("Written by", barrier.producer), ("Read by", barrier.consumer)):
        facts.append(heading(label))
        same_name = [kernel for kernel in opened.kernels or () if kernel.name == name]
        kernel = next(
            (kernel for kernel in same_name if kernel.computation == barrier.computation),
            next(iter(same_name), None),
        )
        if kernel is None:
            facts.append(Content(shorten(name, width)))
            continue
        facts.append(Leads(Content(shorten(name, width)), FactTarget(kernel.computation, name, kernel=True)))
        facts.append(Content.styled(shorten(kind_of(kernel), width), "$secondary"))
        if kernel.source is not None:
            facts += source_facts(kernel.source, width, opened.program.recorded_seconds, around=0)
    return facts


def finding_facts(opened: OpenedModule, finding: HloFinding, width: int) -> list[FactLine]:
    """Return everything about a finding."""
    facts = [
        Content.styled(finding.code.replace("-", " "), "bold $accent"),
        *paragraph(finding.message, width),
        heading("What to do"),
        *paragraph(finding.advice, width),
    ]
    if finding.bytes is not None:
        facts.append(figure_fact("bytes", f"{bytes_(finding.bytes)} a run (estimate)"))
    facts.append(heading("Where", counted(len(finding.where), "place")))
    wanted = frozenset(finding.where[:_MOST_PLACES])
    by_name = {kernel.name: kernel for kernel in opened.kernels or () if kernel.name in wanted}
    for name in finding.where[:_MOST_PLACES]:
        kernel = by_name.get(name)
        place = kernel.source if kernel is not None else None
        where = f"{place.file.rpartition('/')[2]}:{place.line}" if place is not None else ""
        target = FactTarget(kernel.computation, name, kernel=True) if kernel is not None else None
        named = cell(name, max(8, width - columns(where) - 2))
        facts.append(Leads(Content.assemble(named, " ", (safe(where), "$code-name")), target))
    return facts


LISTS = {
    "kernels": "Kernels",
    "findings": "Findings",
    "barriers": "Barriers",
    "roofline": "Roofline",
    "flame": "Flame",
}
"""Titles of the tabs by list, from left to right."""

_FRAME = 3
"""Lines around the rows of a list: its frame and its heading."""
_LEAST_LINES = 5
_FACT_LINES = (10, 16)
"""Lines of the facts below a long list, on a low and on a tall terminal; the style sheet has the same figures."""


class KernelSide(Guarded, Container):
    """One list at a time, and the facts beside or below it."""

    class Highlighted(Message):
        """Posted when the cursor moves to another kernel."""

    @dataclass
    class OpenRequested(Message):
        """Requests the text of an instruction."""

        target: FactTarget

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._opened: OpenedModule | None = None
        self._tab = "kernels"
        self._filters: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        with Vertical(id="list-box", classes="box"):
            yield FilterLine()
            yield RooflineView(id="roofline")
            yield KernelTable(id="kernels")
            yield finding_list()
            yield barrier_list()
            yield IciclePane("frames")
        with Vertical(id="fact-box", classes="box") as box:
            box.border_title = "Kernel"
            yield FactList(id="facts")

    # -- what is shown ----------------------------------------------------------------------------------------

    @property
    def tab(self) -> str:
        """The list in view, one of `LISTS`."""
        return self._tab

    @property
    def listed(self) -> bool:
        """Whether the kernels of the program are in the table."""
        return len(self.table.rows.ranking) > 0

    @property
    def ranked(self) -> Ranked | None:
        """The kernel under the cursor of the table."""
        return self.query_one(KernelTable).ranked

    @property
    def table(self) -> KernelTable:
        """The table of kernels."""
        return self.query_one(KernelTable)

    def show_program(self, opened: OpenedModule | None) -> None:
        """Show another program, which may not have been read yet."""
        self._opened = opened
        self.table.set_empty_text("Reading the HLO…" if opened is not None else "")
        self.table.show_kernels(Ranking())
        for notes in self.query(KernelNotes):
            notes.show(())
        self._show()

    def show_ranking(self, ranking: Ranking) -> None:
        """Show the kernels, once they are known or are compared with another device."""
        self.table.set_empty_text(
            "No kernels here." if self._opened is None or self._opened.whole else "No kernels in what was read."
        )
        self.table.noun = "kernel" if self._opened is None or self._opened.optimised else "operation"
        self.table.show_kernels(ranking)
        self._show()

    def show_notes(self) -> None:
        """Show findings and barriers, as far as they are known."""
        opened = self._opened
        if opened is not None:
            which = 0 if opened.whole else 1 if opened.optimised else 2
            for notes in self.query(KernelNotes):
                notes.EMPTY = NOTHING[str(notes.id)][which]  # type: ignore[misc]
                rows = opened.findings if notes.id == "findings" else opened.barriers
                if rows is not None:
                    notes.show(rows)
        self._show()

    def show_failure(self, words: str) -> None:
        """Show why there are no kernels."""
        self.table.set_empty_text(safe(words))

    def show_tab(self, tab: str) -> None:
        """Show another list."""
        self._tab = tab
        for notes in self.query(KernelNotes):
            notes.display = tab == notes.id
        self.table.display = tab in ("kernels", "roofline")
        self._flame.display = tab == "flame"
        self.set_class(tab == "flame", "-flame")
        self.query_one("#roofline").display = tab == "roofline"
        self.set_class(tab == "roofline", "-roofline")
        filtering = self.query_one(FilterLine)
        kept = self._filters.get(self._filter_key, "")
        if filtering.value != kept:
            filtering.value = kept
        filtering.display = bool(kept)
        self._show()

    def _show(self) -> None:
        """Show the facts, the pictures and the titles of the list in view."""
        self._show_facts()
        self._show_pictures()
        self._show_titles()

    @property
    def _filter_key(self) -> str:
        return "kernels" if self._tab == "roofline" else self._tab

    @property
    def _flame(self) -> IciclePane:
        return self.query_one(IciclePane)

    @property
    def current_list(self) -> RowList | Icicle:
        """The widget that takes the keys."""
        if self._tab == "flame":
            return self._flame.view
        notes = self._notes
        return notes if notes is not None else self.table

    @property
    def _notes(self) -> KernelNotes | None:
        """The findings or the barriers, if they are in view."""
        return self.query_one(f"#{self._tab}", KernelNotes) if self._tab in NOTHING else None

    def select(self, computation: str, name: str) -> bool:
        """Move the table's cursor to a kernel, even a hidden one; return False if no kernel has that name."""
        number = self.table.rows.ranking.find(name, computation)
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
        box = self.query_one("#list-box")
        opened = self._opened
        if opened is None:
            box.border_title, box.border_subtitle = "", ""
            return
        notes = self._notes
        if notes is None:
            words, below = self.table.words if opened.kernels is not None else "", self.table.arrangement
            if not opened.complete:
                words = f"the first {words}, reading the others…"
        else:
            hidden = notes.total - notes.count
            what = self._tab if notes.total != 1 else self._tab.removesuffix("s")
            words = f"{notes.total} {what}" + (f" · {hidden} hidden" if hidden else "")
            below = "bytes are estimates"
        box.border_title = Content(safe(f"{opened.program.title} · {words}" if words else opened.program.title))
        box.border_subtitle = Content(below if opened.kernels is not None else "")
        self._share_height()

    def on_resize(self) -> None:
        """Share the new height."""
        self._share_height()

    def _share_height(self) -> None:
        """Give a list that is shorter than its share only what it holds; the facts below it take the rest."""
        lists, facts, screen = self.query_one("#list-box"), self.query_one("#fact-box"), self.screen
        below = screen.has_class("-very-wide") or not screen.has_class("-wide")
        listed = self.current_list if self._tab not in ("roofline", "flame") else None  # a picture fills its share
        rows = listed.count if isinstance(listed, RowList) else self.size.height
        lines = max(_LEAST_LINES, rows + self.query_one(FilterLine).display + _FRAME)
        height, facts_lines = self.size.height, _FACT_LINES[screen.has_class("-tall")]
        share = height // 2 if screen.has_class("-very-wide") else height - facts_lines
        if below and lines < share:
            lists.styles.height, facts.styles.height = lines, "1fr"
        else:
            lists.styles.clear_rule("height")
            facts.styles.clear_rule("height")

    def _show_facts(self) -> None:
        opened = self._opened
        facts = self.query_one(FactList)
        title = "Kernel"
        if opened is None:
            facts.show(None, lambda width: ())
        elif self._tab == "findings":
            finding = self._notes.current_row if self._notes is not None else None
            title = "Finding"
            facts.show(finding, lambda width: finding_facts(opened, finding, width) if finding is not None else ())
        elif self._tab == "barriers":
            barrier = self._notes.current_row if self._notes is not None else None
            title = "Barrier"
            facts.show(barrier, lambda width: barrier_facts(opened, barrier, width) if barrier is not None else ())
        else:
            ranked, group = self.table.ranked, self.table.group
            if group is not None:
                title = "Group"
                facts.show(group.path, lambda width: group_facts(group, width))
            else:
                about = ranked.key if ranked is not None else None
                around = 0 if self.screen.has_class("-short") else 1
                facts.show(
                    about, lambda width: kernel_facts(opened, ranked, width, around) if ranked is not None else ()
                )
        self.query_one("#fact-box").border_title = title

    def _show_pictures(self) -> None:
        rows, ranked = self.table.rows, self.table.ranked
        ranking = rows.ranking
        if self._tab == "roofline":
            chosen = ranked.number if ranked is not None else None
            self.query_one(RooflineView).show_kernels(ranking, rows.numbers, rows.changes, chosen)
        elif self._tab == "flame":
            self._flame.read(ranking, lambda: ranking_flame(ranking), "No kernels here.")

    # -- messages from the lists ---------------------------------------------------------------------------------

    @on(RowList.Highlighted, "#kernels")
    def _kernel_in_view(self) -> None:
        self._show_facts()
        self._show_pictures()
        if self.ranked is not None:
            self.post_message(self.Highlighted())

    @on(KernelTable.PointRequested)
    def _point_wanted(self, message: KernelTable.PointRequested) -> None:
        if self._tab == "roofline":
            self.query_one(RooflineView).go(message.step)

    @on(RooflineView.Chosen)
    def _point_chosen(self, message: RooflineView.Chosen) -> None:
        self.table.select(message.number)

    @on(RowList.Highlighted, "#findings")
    @on(RowList.Highlighted, "#barriers")
    def _note_in_view(self) -> None:
        self._show_facts()

    @on(IciclePane.OpenRequested)
    def _frame_entered(self, message: IciclePane.OpenRequested) -> None:
        number, ranking = message.graph.tree.entries[message.node], self.table.rows.ranking
        if 0 <= number < len(ranking):
            self.post_message(self.OpenRequested(FactTarget(*ranking[number].key, kernel=True)))

    @on(KernelTable.Arranged)
    def _arranged(self) -> None:
        self._show()

    @on(RowList.Chosen, "#kernels")
    def _kernel_chosen(self) -> None:
        if self.ranked is not None:
            self.post_message(self.OpenRequested(FactTarget(*self.ranked.key, kernel=True)))
        else:
            self.table.action_open_group()

    @on(RowList.Chosen, "#findings")
    @on(RowList.Chosen, "#barriers")
    def _note_chosen(self) -> None:
        row = self._notes.current_row if self._notes is not None else None
        if self._tab == "barriers" and row is not None:
            computation, name = row.computation, row.consumer
        else:
            computation, name = "", next(iter(row.where), "") if row is not None else ""
        if name and (self.select(computation, name) or self.select("", name)):
            self.screen.call_later(self.screen.run_action, "tab('kernels')")

    @on(RowList.Chosen, "#facts")
    def _fact_chosen(self) -> None:
        target = self.query_one(FactList).target
        if target is None:
            return
        if target.kernel and self.select(target.computation, target.name):
            if self._tab not in ("kernels", "roofline"):
                self.screen.call_later(self.screen.run_action, "tab('kernels')")
            return
        self.post_message(self.OpenRequested(target))

    # -- the filter -------------------------------------------------------------------------------------------

    def open_filter(self) -> None:
        """Open the filter line of the list in view, or the search line of the flame graph."""
        if self._tab == "flame":
            self._flame.action_search()
            return
        self.query_one(FilterLine).open(self._filters.get(self._filter_key, ""))

    def clear_filter(self) -> bool:
        """Clear the filter; return False if there was none."""
        if not self._filters.get(self._filter_key):
            return False
        self.query_one(FilterLine).clear()
        self._apply("")
        return True

    @on(FilterLine.Edited)
    def _filter_edited(self, message: FilterLine.Edited) -> None:
        self._apply(message.text)

    def _apply(self, text: str) -> None:
        self._filters[self._filter_key] = text
        current = self.current_list
        if isinstance(current, KernelTable | KernelNotes):
            current.set_filter(text)
        self._show_titles()

    @on(FilterLine.Left)
    def _filter_left(self) -> None:
        self.current_list.focus()
