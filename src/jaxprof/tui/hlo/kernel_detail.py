"""The facts about a kernel or a group of kernels, for the pane beside the lists.

The source line comes first, because readers look for it first. Estimates are labelled as estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from math import isnan
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.hlo.analysis.origin import HloSourceLocation
from jaxprof.hlo.analysis.tree import tree
from jaxprof.report.kernels import times
from jaxprof.text import columns, safe, shorten
from jaxprof.tui.kit.drawing import cell
from jaxprof.tui.kit.fact_list import FactLine, FactTarget, Leads, heading, paragraph
from jaxprof.tui.kit.python_source import excerpt, numbered
from jaxprof.units import UNKNOWN, bytes_, counted, percent, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.ranking import KernelGroup, Ranked
    from jaxprof.hlo.analysis.barriers import Barrier
    from jaxprof.hlo.analysis.kernels import Kernel
    from jaxprof.hlo.analysis.origin import Origin
    from jaxprof.hlo.analysis.tree import TreeRow
    from jaxprof.tui.hlo.modules import OpenedModule

MOST_ORIGINS = 200
MOST_BARRIERS = 12
MOST_MEMBERS = 200
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
    shown = {first.source} if first is not None else set()
    others: list[Origin] = []
    for origin in [*located, *(origin for origin in kernel.origins if origin.source is None)]:
        if origin is not first and (origin.source is None or origin.source not in shown):
            shown.add(origin.source)
            others.append(origin)
    if others:
        facts.append(heading("Also from", f"{counted(len(others), 'more place')} fused into it"))
        facts += [_origin(origin, width) for origin in others[:MOST_ORIGINS]]
        if len(others) > MOST_ORIGINS:
            facts.append(Content.styled(f"  and {len(others) - MOST_ORIGINS} more", "$quiet"))
    return facts


def _function(origin: Origin) -> str:
    return origin.frame.function.rpartition("<locals>.")[2] if origin.frame is not None else ""


def _origin(origin: Origin, width: int) -> Content:
    place = origin.source
    where = f"{place.file.rpartition('/')[2]}:{place.line}" if place is not None else UNKNOWN
    text = cell(where, min(24, max(12, width // 3)), "$code-name")
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
    kernel = ranked.kernel
    roof = ranked.roof
    count = "" if kernel.count == 1 else f"for one of {times(ranked)} executions"
    facts = [heading("Cost", "; ".join(part for part in ("estimate from the shapes", count) if part))]
    flops = scaled(kernel.flops) + (" (approximately)" if kernel.estimated else "")
    if kernel.transcendentals:
        flops += f" + {scaled(kernel.transcendentals)} transcendental"
    facts.append(figure_fact("FLOPs", flops if kernel.flops is not None else "unknown: a library call reports none"))
    parts = [bytes_(kernel.bytes), f"= {bytes_(kernel.bytes_read)} read", f"+ {bytes_(kernel.bytes_written)} written"]
    fits = columns(" ".join(parts)) <= width - _LABEL
    lines = [" ".join(parts)] if fits else parts
    facts += [figure_fact("" if number else "bytes", line) for number, line in enumerate(lines)]
    intensity = f"{scaled(kernel.intensity)} FLOP/B" if kernel.intensity is not None else UNKNOWN
    if roof is not None and roof.ridge is not None:
        intensity += f" (the ridge is at {scaled(roof.ridge)})"
    facts.append(figure_fact("intensity", intensity))
    if roof is not None:
        bound = f", bound by {ranked.bound}" if ranked.bound else ""
        facts.append(figure_fact("at least", f"{seconds(ranked.least_once)}{bound}"))
    facts += _links(ranked)
    if ranked.measured_seconds is not None:
        of_roof = ranked.least_seconds / ranked.measured_seconds if ranked.least_seconds else None
        reached = f": {percent(of_roof)} of the roofline" if of_roof is not None else ""
        facts.append(figure_fact("measured", f"{seconds(ranked.measured_seconds)} a call, the mean{reached}"))
    if kernel.precision and kernel.precision != "default":
        facts.append(figure_fact("precision", kernel.precision))
    if (launches := kernel.launches) is not None:
        facts += [figure_fact("" if number else "launches", part) for number, part in enumerate(launches.parts)]
    if kernel.asynchronous:
        facts.append(figure_fact("", "asynchronous: it overlaps with what follows"))
    return facts


def _links(ranked: Ranked) -> list[FactLine]:
    """Return the time of a collective over the links: the bound and the estimate."""
    over = ranked.over
    if over is None or over.bound_seconds is None or not over.link:
        return []
    return [
        figure_fact("links", f"at least {seconds(over.bound_seconds)} over {over.link}"),
        figure_fact("", f"estimate {seconds(over.estimate_seconds)}, as a {over.way}"),
    ]


def figure_fact(label: str, text: str) -> FactLine:
    """Return a figure with its label."""
    return Content.assemble((f"{label:<{_LABEL}}", "$text-muted"), safe(text))


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
    children: list[int] = [0] * len(rows)
    parents: list[int] = []
    stack: list[int] = []
    for number, row in enumerate(rows):
        del stack[row.depth :]
        parents.append(stack[-1] if stack else -1)
        if stack:
            children[stack[-1]] += 1
        stack.append(number)
    left = children.copy()
    prefixes: list[str] = []
    inner: list[str] = []
    """For each row, how the prefixes of its children begin."""
    for number in range(len(rows)):
        parent = parents[number]
        if parent < 0:
            prefixes.append("")
            inner.append("")
            continue
        left[parent] -= 1
        if children[parent] == 1:
            prefixes.append(inner[parent] + "← ")
            inner.append(inner[parent])
        else:
            last = left[parent] == 0
            prefixes.append(inner[parent] + ("└ " if last else "├ "))
            inner.append(inner[parent] + ("  " if last else "│ "))
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
        size = bytes_(barrier.bytes)
        name = cell(other, max(8, width - 3 - len(size)))
        facts.append(Leads(Content.assemble((f"{arrow} ", "$text-muted"), name, " ", (size, "$accent")), target))
        facts += paragraph(reason_words(barrier), width, "$text-muted", indent="    ")
    if len(near) > MOST_BARRIERS:
        facts.append(Content.styled(f"  and {len(near) - MOST_BARRIERS} more", "$quiet"))
    return facts


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
    facts += [
        heading("Cost", "estimate from the shapes; for all executions"),
        figure_fact("share", percent(group.share)),
        figure_fact("FLOPs", scaled(group.total("flops"))),
        figure_fact("bytes", bytes_(group.total("bytes"))),
    ]
    least = group.total("least")
    if least is not None:
        facts.append(figure_fact("at least", seconds(least)))
    facts.append(heading("Kernels"))
    for row in group.ranking.rows(heaviest):
        share = "<0.1 %" if row.share is not None and row.share < 0.001 else percent(row.share)
        name = cell(row.kernel.name, max(8, width - len(share) - 1))
        target = FactTarget(row.kernel.computation, row.kernel.name, kernel=True)
        facts.append(Leads(Content.assemble(name, " ", (share, "$text-muted")), target))
    return facts
