"""The lists of a program (kernels, findings, barriers, the roofline), with the facts about what the cursor is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message

from jaxprof.safe_text import safe
from jaxprof.tui.programs.ranking import Ranking
from jaxprof.tui.widgets.fact_list import FactList, Target
from jaxprof.tui.widgets.filter_line import FilterLine
from jaxprof.tui.widgets.kernel_detail import barrier_facts, finding_facts, group_facts, kernel_facts
from jaxprof.tui.widgets.kernel_table import KernelTable
from jaxprof.tui.widgets.picture import Picture
from jaxprof.tui.widgets.remark_list import BarrierList, FindingList, RemarkList
from jaxprof.tui.widgets.roofline_plot import roofline_plot
from jaxprof.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.tui.programs.opened import Opened
    from jaxprof.tui.programs.ranking import Ranked

LISTS = ("kernels", "findings", "barriers", "roofline")


class KernelSide(Container):
    """One list at a time, and the facts beside or below it."""

    class Looked(Message):
        """The cursor came to another kernel."""

        def __init__(self, ranked: Ranked) -> None:
            super().__init__()
            self.ranked = ranked

    class Wanted(Message):
        """The text of an instruction is to be shown."""

        def __init__(self, target: Target) -> None:
            super().__init__()
            self.target = target

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._opened: Opened | None = None
        self._ranking = Ranking()
        self._tab = "kernels"
        self._filters: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        with Vertical(id="list-box", classes="box"):
            yield FilterLine()
            yield Picture(id="roofline")
            yield KernelTable(id="kernels")
            yield FindingList(id="findings")
            yield BarrierList(id="barriers")
        with Vertical(id="fact-box", classes="box") as box:
            box.border_title = "Kernel"
            yield FactList(id="facts")

    # -- what is shown ----------------------------------------------------------------------------------------

    @property
    def tab(self) -> str:
        """Which of `LISTS` is in view."""
        return self._tab

    @property
    def listed(self) -> bool:
        """Whether the kernels of the program are in the table."""
        return bool(self._ranking.kernels)

    @property
    def ranked(self) -> Ranked | None:
        """The kernel under the cursor of the table."""
        return self.query_one(KernelTable).ranked

    @property
    def table(self) -> KernelTable:
        """The table of kernels."""
        return self.query_one(KernelTable)

    def show_program(self, opened: Opened | None) -> None:
        """Shows another program, of which nothing may be known yet."""
        self._opened = opened
        self._ranking = Ranking()
        self.table.say("Reading the HLO…" if opened is not None else "")
        self.table.show_kernels(self._ranking)
        self.query_one(FindingList).show_findings(())
        self.query_one(BarrierList).show_barriers(())
        self._show_facts()
        self._show_titles()

    def show_ranking(self, ranking: Ranking) -> None:
        """The kernels are known, or are held against another device."""
        self._ranking = ranking
        self.table.say("No kernels here.")
        self.table.show_kernels(ranking)
        self._show_facts()
        self._show_roofline()
        self._show_titles()

    def show_remarks(self) -> None:
        """Findings or barriers became known."""
        opened = self._opened
        if opened is not None and opened.findings is not None:
            self.query_one(FindingList).show_findings(opened.findings)
        if opened is not None and opened.barriers is not None:
            self.query_one(BarrierList).show_barriers(opened.barriers)
        self._show_facts()
        self._show_titles()

    def fail(self, words: str) -> None:
        """Says why there are no kernels."""
        self.table.say(safe(words))

    def show_tab(self, tab: str) -> None:
        """Shows another list."""
        self._tab = tab
        for name in ("findings", "barriers"):
            self.query_one(f"#{name}").display = tab == name
        self.table.display = tab in ("kernels", "roofline")
        self.query_one("#roofline").display = tab == "roofline"
        self.set_class(tab == "roofline", "-roofline")
        filtering = self.query_one(FilterLine)
        kept = self._filters.get(self._filter_key, "")
        if filtering.value != kept:
            filtering.value = kept
        filtering.display = bool(kept)
        self._show_facts()
        self._show_roofline()
        self._show_titles()

    @property
    def _filter_key(self) -> str:
        return "kernels" if self._tab == "roofline" else self._tab

    @property
    def current_list(self) -> RowList:
        """The list that takes the keys."""
        if self._tab == "findings":
            return self.query_one(FindingList)
        return self.query_one(BarrierList) if self._tab == "barriers" else self.table

    def select(self, computation: str, name: str) -> bool:
        """Puts the table's cursor on a kernel, also if the filter hides it; False if there is none of that name."""
        keys = [
            row.key
            for row in self._ranking.kernels
            if row.kernel.name == name and computation in ("", row.kernel.computation)
        ]
        if not keys:
            return False
        if not self.table.select(keys[0]):
            self.clear_filter()
            self.table.group_by("none")
        return self.table.select(keys[0])

    def _show_titles(self) -> None:
        box = self.query_one("#list-box")
        opened = self._opened
        if opened is None:
            box.border_title, box.border_subtitle = "", ""
            return
        counted = {"findings": self.query_one(FindingList), "barriers": self.query_one(BarrierList)}.get(self._tab)
        if counted is None:
            words, below = self.table.words if opened.kernels is not None else "", self.table.arrangement
        else:
            hidden = counted.total - len(counted.keys)
            what = self._tab if counted.total != 1 else self._tab.removesuffix("s")
            words = f"{counted.total} {what}" + (f" · {hidden} hidden" if hidden else "")
            below = "bytes are estimates"
        box.border_title = Content(safe(f"{opened.program.label} · {words}" if words else opened.program.label))
        box.border_subtitle = Content(below if opened.kernels is not None else "")

    def _show_facts(self) -> None:
        opened = self._opened
        facts = self.query_one(FactList)
        title = "Kernel"
        if opened is None:
            facts.show(None, lambda width: ())
        elif self._tab == "findings":
            finding = self.query_one(FindingList).finding
            title = "Finding"
            facts.show(finding, lambda width: finding_facts(opened, finding, width) if finding is not None else ())
        elif self._tab == "barriers":
            barrier = self.query_one(BarrierList).barrier
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

    def _show_roofline(self) -> None:
        if self._tab != "roofline":
            return
        ranking = self._ranking
        rows = self.table.rows
        chosen = self.table.ranked.key if self.table.ranked is not None else None
        key = (id(ranking), tuple(row.key for row in rows), chosen)
        picture = self.query_one("#roofline", Picture)
        picture.show(key, lambda width, height: roofline_plot(rows, ranking.device, chosen, width, height))

    # -- what the lists say ------------------------------------------------------------------------------------

    @on(RowList.Highlighted, "#kernels")
    def _kernel_in_view(self) -> None:
        self._show_facts()
        self._show_roofline()
        if self.ranked is not None:
            self.post_message(self.Looked(self.ranked))

    @on(RowList.Highlighted, "#findings")
    @on(RowList.Highlighted, "#barriers")
    def _remark_in_view(self) -> None:
        self._show_facts()

    @on(KernelTable.Arranged)
    def _arranged(self) -> None:
        self._show_facts()
        self._show_roofline()
        self._show_titles()

    @on(KernelTable.Entered)
    def _kernel_entered(self, message: KernelTable.Entered) -> None:
        self.post_message(self.Wanted(Target(*message.ranked.key, kernel=True)))

    @on(RemarkList.Entered)
    def _remark_entered(self, message: RemarkList.Entered) -> None:
        if self.select(message.computation, message.name) or self.select("", message.name):
            self.screen.call_later(self.screen.run_action, "tab('kernels')")

    @on(FactList.Followed)
    def _fact_followed(self, message: FactList.Followed) -> None:
        target = message.target
        if target.kernel and self.select(target.computation, target.name):
            if self._tab not in ("kernels", "roofline"):
                self.screen.call_later(self.screen.run_action, "tab('kernels')")
            return
        self.post_message(self.Wanted(target))

    # -- the filter -------------------------------------------------------------------------------------------

    def open_filter(self) -> None:
        """Opens the line for the filter of the list in view."""
        line = self.query_one(FilterLine)
        line.open(self._filters.get(self._filter_key, ""))
        self.screen.set_focus(line)

    def clear_filter(self) -> bool:
        """Shows everything again; False where nothing was filtered."""
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
        if isinstance(current, KernelTable | RemarkList):
            current.set_filter(text)
        self._show_titles()

    @on(FilterLine.Left)
    def _filter_left(self) -> None:
        self.current_list.focus()
