"""The facts about a kernel or a group of kernels, for the pane beside the lists.

The source line comes first, because readers look for it first. Estimates are labelled as estimates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.base.recorded_source import recorded_lines
from jaxprof.base.text import columns, safe, shorten
from jaxprof.base.units import UNKNOWN, bytes_, counted, percent, scaled, seconds
from jaxprof.hlo.kernels.origin import HloSourceLocation, Origin
from jaxprof.hlo.text.syntax import short_text
from jaxprof.report.kernels import times
from jaxprof.tui.hlo.stage_side import colour_line
from jaxprof.tui.kit.drawing import cell, hang
from jaxprof.tui.kit.fact_list import FactLine, FactTarget, Leads, heading
from jaxprof.tui.kit.python_source import source_facts

if TYPE_CHECKING:
    from jaxprof.analysis.kernels.ranking import KernelGroup, Ranked
    from jaxprof.events.finding import Finding
    from jaxprof.hlo.kernels.kernels import Kernel
    from jaxprof.tui.hlo.modules import OpenedModule

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
    parts = (
        _origins(kernel, width, opened.program.sources, around),
        _cost(ranked, width),
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
    by_place: dict[HloSourceLocation | None, Origin] = {}
    for origin in located:
        by_place.setdefault(origin.source, origin)
    others = [*list(by_place.values())[1:], *(origin for origin in kernel.origins if origin.source is None)]
    if others:
        how = "that it runs" if kernel.runs_kernels else "fused into it"
        facts.append(heading("Also from", f"{counted(len(others), 'more place')} {how}"))
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


def _cost(ranked: Ranked, width: int) -> list[FactLine]:
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
    return [heading("Cost", f"estimate from the shapes{count}"), *_figures(figures, width)]


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
    facts = [heading(finding.code.replace("-", " "), counted(len(finding.kernels), "place"))]
    wanted = frozenset(finding.kernels[:MOST_LISTED])
    by_name = {kernel.name: kernel for kernel in opened.kernels or () if kernel.name in wanted}
    for name in finding.kernels[:MOST_LISTED]:
        kernel = by_name.get(name)
        source = kernel.source if kernel is not None else None
        target = FactTarget(kernel.computation, name, kernel=True) if kernel is not None else None
        facts.append(_name_line(name, source.short if source is not None else "", "$code-name", width, target))
    return facts
