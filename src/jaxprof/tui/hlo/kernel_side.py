"""The lists of a program (kernels, findings, the roofline), with the facts about what the cursor is on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.containers import Container, Vertical
from textual.content import Content

from jaxprof.analysis.kernels.ranking import Ranking, roofline_ceilings, roofline_points
from jaxprof.base.grouping import grouped
from jaxprof.base.text import safe, shorten
from jaxprof.base.units import counted, integer, scaled
from jaxprof.tui.hlo.kernel_detail import finding_facts, group_facts, kernel_facts
from jaxprof.tui.hlo.kernels import KernelTable, label_of
from jaxprof.tui.keys import in_words
from jaxprof.tui.kit.claims import ClaimList, claim_of
from jaxprof.tui.kit.drawing import whole_parts
from jaxprof.tui.kit.fact_list import FactList, Facts, FactTarget
from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.picture import Lines, Picture, show_titles
from jaxprof.tui.kit.plots import Axis, Mark, PlotLine, count_tick, line_plot, nothing
from jaxprof.tui.kit.row_list import RowList

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.events.finding import Finding
    from jaxprof.tui.hlo.modules import OpenedModule


class HloFindings(ClaimList, keys="hlo_findings"):
    """The findings of a module, the most expensive first."""


LISTS = {"kernels": "Kernels", "findings": "Findings", "roofline": "Roofline"}


class KernelSide(Guarded, Container):
    """One list at a time, and the facts beside or below it."""

    _opened: OpenedModule | None = None
    tab = "kernels"

    def compose(self) -> ComposeResult:
        with Vertical(id="list-box", classes="box"):
            yield FilterLine("kernels", "findings")
            yield Lines(id="kinds")
            yield Picture(id="roofline")
            yield KernelTable()
            yield HloFindings(id="findings")
        with Vertical(id="fact-box", classes="box"):
            yield FactList(id="facts")

    # -- what is shown ----------------------------------------------------------------------------------------

    @property
    def table(self) -> KernelTable:
        return self.query_one(KernelTable)

    @property
    def _findings(self) -> HloFindings:
        return self.query_one(HloFindings)

    @property
    def _finding(self) -> Finding | None:
        claim = self._findings.current_row
        return claim.about if claim is not None else None

    @property
    def current_list(self) -> KernelTable | HloFindings:
        return self._findings if self.tab == "findings" else self.table

    def show_program(self, opened: OpenedModule | None) -> None:
        """Show another program, which may not have been read yet."""
        self._opened = opened
        self.table.show_kernels(Ranking(), "Reading the HLO…" if opened is not None else "")
        self._findings.empty = ""
        self._findings.show(())
        self._show()

    def show_first(self, opened: OpenedModule) -> None:
        """Show the first kernels of a large module, and how many were read by now."""
        if not len(self.table.ranking):
            self.table.show_kernels(Ranking(opened.first, is_whole=False), "")
        self._show_titles()

    def show_ranking(self, opened: OpenedModule, ranking: Ranking) -> None:
        """Show the kernels, once they are known or are compared with another device."""
        self.table.noun = "kernel" if opened.optimised else "operation"
        self.table.show_kernels(ranking, "No kernels here." if opened.whole else "No kernels in what was read.")
        self._show()

    def show_findings(self, opened: OpenedModule) -> None:
        """Show the findings, once they are known. From a module that was read in part, nothing follows."""
        if opened.findings is not None:
            where = " in what was read" if opened.optimised else " detectable before XLA's passes"
            self._findings.show_empty(f"No findings{'' if opened.whole else where}.")
            self._findings.show(claim_of(finding, finding) for finding in opened.findings)
        self._show()

    def show_tab(self, tab: str) -> None:
        self.tab = tab
        self._findings.display = tab == "findings"
        self.table.display = tab != "findings"
        self.set_class(tab == "findings", "-findings")
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

    @on(KernelTable.Sorted)
    @on(FilterLine.Edited)
    @on(RowList.Highlighted, "#kernels, #findings")
    def _show(self) -> None:
        opened, finding, ranked, group = self._opened, self._finding, self.table.ranked, self.table.group
        about: object = None
        facts: Facts | None = None
        title = "Kernel"
        if self.tab == "findings":
            title = "Finding"
            if opened is not None and finding is not None:
                about, facts = finding, partial(finding_facts, opened, finding)
        elif opened is not None and group is not None:
            title, about, facts = "Group", group.path, partial(group_facts, group, sources=opened.program.sources)
        elif opened is not None and ranked is not None:
            around = 0 if self.screen.has_class("-short") else 1
            about, facts = ranked.key, partial(kernel_facts, opened, ranked, around=around)
        self.query_one(FactList).show(about, facts or (lambda width: ()))
        show_titles(self.query_one("#fact-box"), Content(title))
        self.query_one("#kinds", Lines).show(self.table.kinds if self.tab == "kernels" else lambda width: ())
        if self.tab == "roofline":
            ranked = self.table.ranked
            chosen = ranked.number if ranked is not None else None
            plot = partial(roofline_plot, self.table.ranking, self.table.filtered, chosen)
            self.query_one("#roofline", Picture).show(plot)
        self._show_titles()

    def _show_titles(self) -> None:
        box, opened = self.query_one("#list-box"), self._opened
        words, below = "", list[str]()
        if opened is not None and self.tab == "findings":
            hidden = f" · {integer(self._findings.hidden)} hidden" if self._findings.hidden else ""
            words, below = counted(self._findings.total, "finding") + hidden, ["bytes are estimates"]
        elif opened is not None and opened.kernels is not None:
            words, below = self.table.words, self.table.order
        elif opened is not None and opened.first:
            words = f"reading, {counted(opened.read, self.table.noun)} so far"
            below = [f"the first {integer(len(opened.first))}, {self.table.UNSORTED}"]
        title = opened.program.title if opened is not None else ""
        titles = Content(safe(" · ".join(filter(None, (title, words)))))
        show_titles(box, titles, whole_parts(below, box.size.width - 4))

    def on_resize(self) -> None:
        self._show_titles()

    # -- messages from the lists ----------------------------------------------------------------------

    def target_of(self, rows: RowList[Any]) -> FactTarget | None:
        """Return what the row that was chosen in a list leads to; a group of kernels opens or closes instead."""
        finding, ranked = self._finding, self.table.ranked
        if isinstance(rows, FactList):
            return rows.target
        if isinstance(rows, HloFindings):
            return FactTarget("", finding.kernels[0], kernel=True) if finding is not None and finding.kernels else None
        if ranked is None:
            self.table.action_open()
        return FactTarget(*ranked.key) if ranked is not None else None


# -- the roofline ---------------------------------------------------------------------------------------------

_BEYOND = 3.0
"""Factor by which the ceilings reach beyond the kernels."""
_MARKS = {"memory": ("●", "$phase-transfer"), "compute": ("◆", "$phase-compile")}
_OTHER = ("○", "$quiet")
_NAMED = 3
"""Kernels with the largest shares, which are named beside the one under the cursor."""


def roofline_plot(ranking: Ranking, numbers: Sequence[int], chosen: int | None, width: int, height: int) -> Content:
    device = ranking.device
    if device is None:
        other = f"Press {in_words('hlo.device')} to choose a known device to compare the kernels with"
        mine = "`jaxprof run gemm-peak triad` measures those of this machine"
        return nothing(f"The ceilings of this device are unknown. {other}; {mine}.", width, height)
    points, without = roofline_points(ranking, numbers)
    roofs = roofline_ceilings(ranking, numbers, device)
    if not roofs:
        return nothing("no known ceiling", width, height)
    # The memory slope goes up to the highest peak, and each peak from its ridge on; all have their names.
    bandwidth, top = device.bandwidth, roofs[0][1]
    intensities = [*(point.intensity for point in points), *(peak / bandwidth for _, peak in roofs)]
    low, high = min(intensities) / _BEYOND, max(intensities) * _BEYOND
    lines = [PlotLine("", ((low, low * bandwidth), (top / bandwidth, top)), "$phase-transfer")]
    middle = math.sqrt(low * top / bandwidth)
    marks = [Mark(middle, middle * bandwidth, scaled(bandwidth, "B/s"), "$text-muted", "")]
    for peak, names in grouped((peak, name) for name, peak in roofs).items():
        ridge = ((peak / bandwidth, peak), (high, peak))
        lines.append(PlotLine("", ridge, "$phase-compile", dotted=peak != top))
        marks.append(Mark(high, peak, f"{', '.join(names)} {scaled(peak, 'FLOP/s')}", "$text-muted", ""))
    by_bound = grouped((point.bound, (point.intensity, point.flops_per_second)) for point in points)
    for bound in dict.fromkeys((*_MARKS, *by_bound)):
        marker, style = _MARKS.get(bound, _OTHER)
        lines.append(PlotLine(bound, tuple(by_bound.get(bound, ())), style, marker, joined=False))
    here = next((point for point in points if chosen in point.numbers), None)
    for point in dict.fromkeys((here, *reversed(points[-_NAMED:]))):
        if point is not None:
            number, style = (chosen, "bold $accent") if point is here else (point.numbers[0], "$foreground")
            name = shorten(label_of(ranking[number or 0]), 40)
            marks.append(Mark(point.intensity, point.flops_per_second, name, style))
    left_out = f", {counted(without, 'kernel')} not plotted" if without else ""
    x, y = Axis("FLOP/B", count_tick, log=True), Axis(f"{device.title}{left_out}: FLOP/s", count_tick, log=True)
    above = sum(len(point.numbers) for point in points if point.is_above)
    if not above:
        return line_plot(lines, x, y, width, height, marks)
    words = f"{counted(above, 'kernel')} above the roof: served by a cache, or the ceilings are not this device's"
    note = Content.styled(words, "$warning").truncate(width, ellipsis=True)
    return Content("\n").join([note, line_plot(lines, x, y, width, height - 1, marks)])
