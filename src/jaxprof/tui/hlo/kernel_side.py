"""The lists of a program (kernels, findings, the roofline), with the facts about what the cursor is on: the source line
first, because readers look for it first. Estimates are labelled as estimates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.containers import Container, Vertical
from textual.content import Content

from jaxprof.analysis.kernels.ranking import KernelGroup, Ranked, Ranking, roofline_ceilings, roofline_points
from jaxprof.base.grouping import grouped
from jaxprof.base.recorded_source import recorded_lines
from jaxprof.base.text import columns, safe, shorten
from jaxprof.base.units import UNKNOWN, bytes_, counted, integer, percent, scaled, seconds
from jaxprof.hlo.kernels.origin import HloSourceLocation, Origin
from jaxprof.hlo.text import short_text
from jaxprof.report.kernels import times
from jaxprof.tui.hlo.kernels import KernelTable, label_of
from jaxprof.tui.hlo.stage_side import colour_line
from jaxprof.tui.keys import in_words
from jaxprof.tui.kit.drawing import cell, hang, whole_parts
from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.picture import Lines, Picture, show_titles
from jaxprof.tui.kit.plots import Axis, Mark, PlotLine, count_tick, line_plot, nothing
from jaxprof.tui.kit.python_source import source_facts
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.text_lists import ClaimList, FactLine, FactList, Facts, FactTarget, Leads, claim_of, heading

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.events.finding import Finding
    from jaxprof.hlo.kernels.kernels import Kernel
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


MOST_LISTED, MOST_BARRIERS = 200, 12
_LABEL = 12

# -- a kernel ---------------------------------------------------------------------------------------------------------


def kernel_facts(opened: OpenedModule, ranked: Ranked, width: int, around: int = 1) -> list[FactLine]:
    """Return everything about a kernel: source, cost, findings, what is inside, and why it was not fused further."""
    kernel = ranked.kernel
    here = FactTarget(kernel.computation, kernel.name)
    facts: list[FactLine] = [
        Leads(Content.styled(shorten(kernel.name, width), "bold"), here),
        Content.assemble(
            (shorten(kind_of(kernel), width), "$secondary"),
            (f" · {kernel.path.direction}" if kernel.path.direction else "", "$text-muted"),
            (" · recomputed" if kernel.path.recomputed else "", "$warning"),
            "  ",
            (safe(str(kernel.shape)), "$code-number"),
        ),
    ]
    findings: list[FactLine] = []
    for finding in opened.findings or ():
        if kernel.name in finding.kernels:
            if not findings:
                findings.append(heading("Findings"))
            findings += hang(Content.styled("! ", "bold $warning"), finding.message, width)
            findings += hang(Content("  "), finding.fix, width, "$text-muted")
    kernel, roof, over = ranked.kernel, ranked.roof, ranked.over
    figures = {"FLOPs": "unknown: a library call reports none"}
    if kernel.flops is not None:
        figures["FLOPs"] = scaled(kernel.flops) + (" (approximately)" if kernel.estimated else "")
        if kernel.transcendentals:
            figures["FLOPs"] += f" + {scaled(kernel.transcendentals)} transcendental"
    moved = f"{bytes_(kernel.bytes_read)} read + {bytes_(kernel.bytes_written)} written"
    figures["bytes"] = f"{bytes_(kernel.bytes)} = {moved}"
    figures["intensity"] = f"{scaled(kernel.intensity)} FLOP/B" if kernel.intensity is not None else UNKNOWN
    if roof is not None:
        figures["intensity"] += f" (the ridge is at {scaled(roof.ridge)})" if roof.ridge is not None else ""
        figures["at least"] = seconds(ranked.least_once) + (f", bound by {ranked.bound}" if ranked.bound else "")
    if over is not None and over.bound_seconds is not None and over.link:
        figures["links"] = f"at least {seconds(over.bound_seconds)} over {over.link}"
    if ranked.measured_seconds is not None:
        of_roof = ranked.least_seconds / ranked.measured_seconds if ranked.least_seconds else None
        reached = f": {percent(of_roof)} of the roofline" if of_roof is not None else ""
        figures["measured"] = f"{seconds(ranked.measured_seconds)} a call with the profiler, the mean{reached}"
    if kernel.precision and kernel.precision != "default":
        figures["precision"] = kernel.precision
    if kernel.asynchronous:
        figures[""] = "asynchronous: it overlaps with what follows"
    count = "" if kernel.count == 1 else f"; for one of {times(ranked)} executions"
    parts = (
        _origins(kernel, width, opened.program.sources, around),
        [heading("Cost", f"estimate from the shapes{count}"), *_figures(figures, width)],
        findings,
        _barriers(opened, kernel, width),
        _inside(opened, kernel, width),
    )
    for number, part in enumerate(parts):
        if number and part and around:  # without room, no blank lines
            facts.append(Content(""))
        facts += part
    return facts


def kind_of(kernel: Kernel) -> str:
    """Return the kind of a kernel, with its opcode and its library where they say more."""
    implied = kernel.opcode in ("fusion", "custom-call") or kernel.kind.casefold().replace(" ", "-") == kernel.opcode
    words = kernel.kind if implied else f"{kernel.kind} ({kernel.opcode})"
    return f"{words} by {kernel.target}" if kernel.target and kernel.target != kernel.kind else words


def _origins(kernel: Kernel, width: int, sources: Mapping[str, str], around: int) -> list[FactLine]:
    facts: list[FactLine] = []
    located = sorted((origin for origin in kernel.origins if origin.source), key=lambda origin: not origin.is_own)
    first = next(iter(located), None)
    if first is None or first.source is None:
        facts.append(Content.styled("the module does not record its source line", "$quiet"))
    else:
        function = first.frame.function.rpartition("<locals>.")[2] if first.frame is not None else ""
        facts += source_facts(first.source, width, sources, function, around, first.library)
    if kernel.op_name:
        facts += hang(Content(""), kernel.op_name, width, "$text-muted")
    by_source: dict[HloSourceLocation | None, Origin] = {}
    for origin in located:
        by_source.setdefault(origin.source, origin)
    others = [*list(by_source.values())[1:], *(origin for origin in kernel.origins if origin.source is None)]
    if others:
        how = "that it runs" if kernel.runs_kernels else "fused into it"
        facts.append(heading("Also from", f"{counted(len(others), 'more location')} {how}"))
        for origin in others[:MOST_LISTED]:
            where = origin.source
            at = cell(where.short if where is not None else UNKNOWN, min(24, max(12, width // 3)), "$code-name")
            lines = recorded_lines(*where, sources) if where is not None else ()
            code = shorten((lines[0][1].strip() if lines else origin.op_name) or UNKNOWN, max(8, width - 29))
            direction = " ∂" if origin.path.direction == "backward" else ""
            facts.append(Content.assemble("  ", at, " ", (code, "$text-muted"), direction))
        facts += _and_more(len(others) - MOST_LISTED)
    return facts


def _name_line(name: str, beside: str, style: str, width: int, target: FactTarget | None) -> FactLine:
    room = max(8, width - columns(safe(beside)) - 1)
    return Leads(Content.assemble(cell(name, room), " ", (safe(beside), style)), target)


def _and_more(count: int) -> list[FactLine]:
    return [Content.styled(f"  and {count} more", "$quiet")] if count > 0 else []


def _figures(figures: Mapping[str, str], width: int) -> list[FactLine]:
    heads = {label: Content.styled(f"{label:<{_LABEL}}", "$text-muted") for label in figures}
    return [line for label, text in figures.items() for line in hang(heads[label], text, width)]


# -- what is inside ---------------------------------------------------------------------------------------------------


def _inside(opened: OpenedModule, kernel: Kernel, width: int) -> list[FactLine]:
    instruction = opened.instruction(kernel.computation, kernel.name)
    if instruction is None:
        return []
    called = instruction.callees() if instruction.opcode == "fusion" else ()
    fused = [inner for computation in called for inner in computation.instructions] or [instruction]
    facts = [heading("Inside", f"{counted(kernel.instructions, 'instruction')}, the result last")]
    for inner in fused[:MOST_LISTED]:
        text = short_text(inner.text).strip()
        if inner.parameter_number is not None and inner.parameter_number < len(instruction.operands):
            text += f" = %{instruction.operands[inner.parameter_number]}"
        facts.append(Leads(colour_line(shorten(text, width)), FactTarget(inner.computation.name, inner.name)))
    return [*facts, *_and_more(len(fused) - MOST_LISTED)]


# -- why not fused ----------------------------------------------------------------------------------------------------


def _barriers(opened: OpenedModule, kernel: Kernel, width: int) -> list[FactLine]:
    if opened.barriers is None:
        words = "analysing…" if not opened.over else "unknown"
        return [heading("Not fused with"), Content.styled(words, "$quiet")]
    near = [each for each in opened.barriers.get(kernel.name, ()) if each.computation == kernel.computation]
    if not near:
        return []
    facts = [heading("Not fused with", "saving in bytes (estimate)")]
    for barrier in near[:MOST_BARRIERS]:
        other = barrier.producer if barrier.consumer == kernel.name else barrier.consumer
        arrow = "←" if barrier.consumer == kernel.name else "→"
        target = FactTarget(barrier.computation, other, kernel=True)
        facts.append(_name_line(f"{arrow} {other}", bytes_(barrier.bytes), "$accent", width, target))
        facts += hang(Content("    "), barrier.why, width, "$text-muted")
    return [*facts, *_and_more(len(near) - MOST_BARRIERS)]


def group_facts(group: KernelGroup, width: int, sources: Mapping[str, str]) -> list[FactLine]:
    """Return a group of kernels, as sums; the table has its kernels."""
    title = group.path[-1]
    facts: list[FactLine] = [
        *hang(Content(""), title, width, "bold"),
        Content.styled(counted(group.count, "kernel"), "$secondary"),
    ]
    file, colon, line = title.rpartition(":")
    if colon and line.isdecimal() and len(line) < 19:
        facts += source_facts(HloSourceLocation(file, int(line)), width, sources)[1:]
    figures = {
        "share": percent(group.share), "FLOPs": scaled(group.total("flops")), "bytes": bytes_(group.total("bytes"))
    }  # fmt: skip
    least = group.total("least")
    figures |= {"at least": seconds(least)} if least is not None else {}
    return [*facts, heading("Cost", "estimate from the shapes; for all executions"), *_figures(figures, width)]


def finding_facts(opened: OpenedModule, finding: Finding, width: int) -> list[FactLine]:
    facts = [heading(finding.code.replace("-", " "), counted(len(finding.kernels), "instruction"))]
    wanted = frozenset(finding.kernels[:MOST_LISTED])
    by_name = {kernel.name: kernel for kernel in opened.kernels or () if kernel.name in wanted}
    for name in finding.kernels[:MOST_LISTED]:
        kernel = by_name.get(name)
        source = kernel.source if kernel is not None else None
        target = FactTarget(kernel.computation, name, kernel=True) if kernel is not None else None
        facts.append(_name_line(name, source.short if source is not None else "", "$code-name", width, target))
    return facts
