"""The facts about a kernel or a group of kernels, for the pane beside the lists.

The source line comes first, because readers look for it first. Estimates are labelled as estimates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import nlargest
from math import isnan
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.facts.kernels import places_text
from jaxprof.hlo.analysis.origin import HloSourceLocation
from jaxprof.hlo.analysis.tree import tree
from jaxprof.report.kernels import times
from jaxprof.text import columns, safe, shorten
from jaxprof.tui.kit.drawing import cell, hang
from jaxprof.tui.kit.fact_list import FactLine, FactTarget, Leads, heading, paragraph
from jaxprof.tui.kit.python_source import excerpt, numbered
from jaxprof.units import UNKNOWN, bytes_, counted, percent, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.ranking import KernelGroup, Ranked
    from jaxprof.hlo.analysis.barriers import Barrier
    from jaxprof.hlo.analysis.findings.finding import HloFinding
    from jaxprof.hlo.analysis.kernels import Kernel
    from jaxprof.hlo.analysis.origin import Origin
    from jaxprof.hlo.analysis.tree import TreeRow
    from jaxprof.tui.hlo.modules import OpenedModule

MOST_ORIGINS = 200
MOST_BARRIERS = 12
MOST_MEMBERS = 200
MOST_PLACES = 200
"""Most locations listed for a finding."""
_LABEL = 12

# -- a kernel ---------------------------------------------------------------------------------------------------------


def kernel_facts(opened: OpenedModule, ranked: Ranked, width: int, around: int = 1) -> list[FactLine]:
    """Return everything about a kernel: its source, its cost, what is inside, and why it was not fused further."""
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
    parts = (
        _origins(kernel, width, opened.program.recorded_seconds, around),
        _cost(ranked, width),
        _inside(opened, kernel, width),
        _barriers(opened, kernel, width),
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


def _origins(kernel: Kernel, width: int, recorded_seconds: float | None, around: int) -> list[FactLine]:
    facts: list[FactLine] = []
    located = sorted((origin for origin in kernel.origins if origin.source), key=lambda origin: not origin.is_own)
    first = next(iter(located), None)
    if first is None or first.source is None:
        facts.append(Content.styled("the module does not record its source line", "$quiet"))
    else:
        facts += source_facts(first.source, width, recorded_seconds, _function(first), around)
    if kernel.op_name:
        facts += paragraph(kernel.op_name, width, "$text-muted")
    by_place: dict[HloSourceLocation | None, Origin] = {}
    for origin in located:
        by_place.setdefault(origin.source, origin)
    others = [*list(by_place.values())[1:], *(origin for origin in kernel.origins if origin.source is None)]
    if others:
        facts.append(heading("Also from", f"{counted(len(others), 'more place')} fused into it"))
        facts += [_origin(origin, width) for origin in others[:MOST_ORIGINS]]
        facts += _and_more(len(others) - MOST_ORIGINS)
    return facts


def _named(name: str, beside: str, style: str, width: int, target: FactTarget | None) -> FactLine:
    """Return the line of a kernel with something beside it, which leads to the kernel."""
    room = max(8, width - columns(safe(beside)) - 1)
    return Leads(Content.assemble(cell(name, room), " ", (safe(beside), style)), target)


def _and_more(count: int) -> list[FactLine]:
    return [Content.styled(f"  and {count} more", "$quiet")] if count > 0 else []


def _function(origin: Origin) -> str:
    return origin.frame.function.rpartition("<locals>.")[2] if origin.frame is not None else ""


def _origin(origin: Origin, width: int) -> Content:
    place = origin.source
    text = cell(places_text([place]) if place is not None else UNKNOWN, min(24, max(12, width // 3)), "$code-name")
    lines = excerpt(place, 0).lines if place is not None else ()
    code = lines[0][1].strip() if lines else origin.op_name
    direction = " ∂" if origin.path.direction == "backward" else ""
    return Content.assemble("  ", text, " ", (shorten(code or UNKNOWN, max(8, width - 29)), "$text-muted"), direction)


def place_content(place: HloSourceLocation, width: int, function: str = "") -> Content:
    """Return a source location such as `…/model.py:88 in attention`, its path shortened at the start."""
    tail = f":{place.line}" + (f" in {function}" if function else "")
    room = max(8, width - columns(safe(tail)))
    file = safe(place.file)
    if columns(file) > room:
        file = "…" + file[-(room - 1) :]
    return Content.assemble((file, "$code-name"), (safe(tail), "bold $code-name"))


def source_facts(
    place: HloSourceLocation, width: int, recorded_seconds: float | None, function: str = "", around: int = 1
) -> list[FactLine]:
    """Return a source place, with its lines when the file can be read here."""
    facts: list[FactLine] = [place_content(place, width, function)]
    source = excerpt(place, around)
    indent = min((len(line) - len(line.lstrip()) for _, line in source.lines if line.strip()), default=0)
    lines = [(number, line[indent:][:400]) for number, line in source.lines if line.strip() or number == place.line]
    facts += numbered(lines, place.line, width, dim=True)
    if source.modified_seconds is None:
        facts.append(Content.styled("  the file is not on this machine", "$quiet"))
    elif not source.lines:
        facts.append(Content.styled("  the file no longer has this line", "$warning"))
    elif recorded_seconds is not None and source.modified_seconds > recorded_seconds + 1:
        facts.append(Content.styled("  file changed since the recording: line may differ", "$warning"))
    return facts


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
        estimate = f"estimate {seconds(over.estimate_seconds)}, as a {over.way}"
        figures["links"] = f"at least {seconds(over.bound_seconds)} over {over.link}; {estimate}"
    if ranked.measured_seconds is not None:
        of_roof = ranked.least_seconds / ranked.measured_seconds if ranked.least_seconds else None
        reached = f": {percent(of_roof)} of the roofline" if of_roof is not None else ""
        figures["measured"] = f"{seconds(ranked.measured_seconds)} a call, the mean{reached}"
    if kernel.precision and kernel.precision != "default":
        figures["precision"] = kernel.precision
    if kernel.launches is not None:
        figures["launches"] = ", ".join(kernel.launches.parts)
    if kernel.asynchronous:
        figures[""] = "asynchronous: it overlaps with what follows"
    count = "" if kernel.count == 1 else f"; for one of {times(ranked)} executions"
    return [heading("Cost", f"estimate from the shapes{count}"), *_figures(figures, width)]


def _figures(figures: Mapping[str, str], width: int) -> list[FactLine]:
    """Return figures with their labels."""
    heads = {label: Content.styled(f"{label:<{_LABEL}}", "$text-muted") for label in figures}
    return [line for label, text in figures.items() for line in hang(heads[label], text, width)]


# -- what is inside ---------------------------------------------------------------------------------------------------


def _inside(opened: OpenedModule, kernel: Kernel, width: int) -> list[FactLine]:
    instruction = opened.instruction(kernel.computation, kernel.name)
    if instruction is None:
        return []
    rows = tree(instruction)
    facts = [heading("Inside", f"{counted(kernel.instructions, 'instruction')}, from the result down")]
    facts += [
        Leads(_row(prefix, row, width), FactTarget(row.computation, row.name))
        for prefix, row in zip(branches(rows), rows, strict=True)
    ]
    return facts


def branches(rows: Sequence[TreeRow]) -> list[str]:
    """Return what is drawn before each row of a tree.

    An only child is not indented but gets an arrow: a chain of a hundred operations takes a hundred lines, not columns.
    """
    parents: list[int] = []
    path: list[int] = []
    for number, row in enumerate(rows):
        del path[row.depth :]
        parents.append(path[-1] if path else -1)
        path.append(number)
    left = Counter(parents)
    with_one_child = {parent for parent, count in left.items() if count == 1}
    prefixes: list[str] = []
    inner: list[str] = []
    """For each row, how the prefixes of its children begin."""
    for parent in parents:
        left[parent] -= 1
        before = inner[parent] if parent >= 0 else ""
        mark, further = ("├ ", "│ ") if left[parent] else ("└ ", "  ")
        if parent in with_one_child:
            mark, further = "← " if parent >= 0 else "", ""
        prefixes.append(before + mark)
        inner.append(before + further)
    return prefixes


def _row(prefix: str, row: TreeRow, width: int) -> Content:
    if len(prefix) > width // 2:
        prefix = f"{row.depth:>3}… "
    parts: list[Content | tuple[str, str] | str] = [(prefix, "$quiet")]
    style = "$text-muted" if row.opcode == "parameter" else "bold $code-name"
    shape = safe(str(row.shape.without_layout()))
    opcode = "" if row.opcode == "parameter" else f"{safe(row.opcode)} "
    parts.append((opcode, style))
    parts.append((shorten(shape, max(4, width - len(prefix) - columns(opcode))), "$code-number"))
    if row.opcode == "parameter":
        parts.append((f" %{safe(row.operand or row.name)}", "$text-muted"))
    if row.constants:
        parts.append((f" ({safe(', '.join(row.constants))})", "$code-string"))
    if row.seen:
        parts.append((" (above)", "$quiet"))
    elif row.shared and row.depth:
        parts.append((" (shared)", "$quiet"))
    if row.source is not None:
        parts.append((f"  :{row.source.line}", "$quiet"))
    return Content.assemble(*parts)


# -- why not fused ----------------------------------------------------------------------------------------------------


def _barriers(opened: OpenedModule, kernel: Kernel, width: int) -> list[FactLine]:
    if opened.barriers is None:
        words = "analysing…" if not opened.over else "unknown"
        return [heading("Not fused with"), Content.styled(words, "$quiet")]
    near = opened.barrier_index.of(kernel.computation, kernel.name)
    if not near:
        return []
    facts = [heading("Not fused with", "saving in bytes (estimate)")]
    for barrier in near[:MOST_BARRIERS]:
        other = barrier.producer if barrier.consumer == kernel.name else barrier.consumer
        arrow = "←" if barrier.consumer == kernel.name else "→"
        target = FactTarget(barrier.computation, other, kernel=True)
        facts.append(_named(f"{arrow} {other}", bytes_(barrier.bytes), "$accent", width, target))
        facts += paragraph(reason_words(barrier), width, "$text-muted", indent="    ")
    return [*facts, *_and_more(len(near) - MOST_BARRIERS)]


def reason_words(barrier: Barrier) -> str:
    """Return the reason without the names of the two kernels, which are shown beside it."""
    return barrier.words.partition(": ")[2] or barrier.words


def group_facts(group: KernelGroup, width: int) -> list[FactLine]:
    """Return everything about a group of kernels, as sums."""
    members = group.all
    weights = group.ranking.column("weight")
    heaviest = nlargest(MOST_MEMBERS, members, key=lambda number: 0.0 if isnan(weights[number]) else weights[number])
    title = group.path[-1]
    facts = [
        *paragraph(title, width, "bold"),
        Content.styled(counted(len(members), "kernel"), "$secondary"),
    ]
    file, colon, line = title.rpartition(":")
    if colon and line.isdecimal() and len(line) < 19:
        facts += source_facts(HloSourceLocation(file, int(line)), width, None)[1:]
    figures = {
        "share": percent(group.share), "FLOPs": scaled(group.total("flops")), "bytes": bytes_(group.total("bytes"))
    }  # fmt: skip
    least = group.total("least")
    figures |= {"at least": seconds(least)} if least is not None else {}
    facts += [heading("Cost", "estimate from the shapes; for all executions"), *_figures(figures, width)]
    facts.append(heading("Kernels"))
    for row in group.ranking.rows(heaviest):
        share = "<0.1 %" if row.share is not None and row.share < 0.001 else percent(row.share)
        target = FactTarget(row.kernel.computation, row.kernel.name, kernel=True)
        facts.append(_named(row.kernel.name, share, "$text-muted", width, target))
    return facts


# -- a barrier or a finding --------------------------------------------------------------------------------------------


def barrier_facts(opened: OpenedModule, barrier: Barrier, width: int) -> list[FactLine]:
    """Return everything about a barrier."""
    facts = [
        Content.styled(barrier.reason.replace("-", " "), "bold $accent"),
        *paragraph(reason_words(barrier), width),
        heading("The array"),
        Content.styled(shorten(str(barrier.shape), width), "$code-number"),
        *_figures({"would save": f"{bytes_(barrier.bytes)} a run (estimate)"}, width),
    ]
    for label, name in (("Written by", barrier.producer), ("Read by", barrier.consumer)):
        facts.append(heading(label))
        same_name = (kernel for kernel in opened.kernels or () if kernel.name == name)
        kernel = min(same_name, key=lambda kernel: kernel.computation != barrier.computation, default=None)
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
        facts += _figures({"bytes": f"{bytes_(finding.bytes)} a run (estimate)"}, width)
    facts.append(heading("Where", counted(len(finding.where), "place")))
    wanted = frozenset(finding.where[:MOST_PLACES])
    by_name = {kernel.name: kernel for kernel in opened.kernels or () if kernel.name in wanted}
    for name in finding.where[:MOST_PLACES]:
        kernel = by_name.get(name)
        place = kernel.source if kernel is not None else None
        target = FactTarget(kernel.computation, name, kernel=True) if kernel is not None else None
        facts.append(_named(name, places_text([place]) if place is not None else "", "$code-name", width, target))
    return facts
