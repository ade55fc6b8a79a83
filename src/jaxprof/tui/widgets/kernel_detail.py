"""What is to be said of a kernel, a group of kernels, a finding or a barrier: facts for the pane beside the lists.

The source line comes first, because that is what people look for. Estimates are called estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.hlo.analysis import Place
from jaxprof.hlo.analysis.tree import tree
from jaxprof.safe_text import columns, safe, shorten
from jaxprof.tui.programs.source_file import excerpt
from jaxprof.tui.widgets.drawing import cell
from jaxprof.tui.widgets.fact_list import Fact, Target, heading, paragraph
from jaxprof.tui.widgets.kernel_table import times
from jaxprof.tui.widgets.python_source import highlighted
from jaxprof.units import UNKNOWN, bytes_, integer, percent, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.hlo.analysis import Barrier, Finding, Kernel, Origin, Row
    from jaxprof.tui.programs.opened import Opened
    from jaxprof.tui.programs.ranking import Group, Ranked

MOST_ORIGINS = 6
MOST_BARRIERS = 12
MOST_MEMBERS = 200
_LABEL = 12

__all__ = ["barrier_facts", "finding_facts", "group_facts", "kernel_facts", "place_content", "source_facts"]


# -- a kernel ---------------------------------------------------------------------------------------------------------


def kernel_facts(opened: Opened, ranked: Ranked, width: int, around: int = 1) -> list[Fact]:
    """Everything about a kernel: where it came from, what it costs, what is inside, why it is not larger."""
    kernel = ranked.kernel
    here = Target(kernel.computation, kernel.name)
    facts = [
        Fact(Content.styled(shorten(kernel.name, width), "bold"), here),
        Fact(
            Content.assemble(
                (shorten(_kind(kernel), width), "$secondary"),
                (f" · {kernel.path.direction}" if kernel.path.direction else "", "$text-muted"),
                (" · recomputed" if kernel.path.recomputed else "", "$warning"),
                "  ",
                (safe(str(kernel.shape)), "$code-number"),
            )
        ),
    ]
    parts = (
        _origins(kernel, width, opened.program.recorded_seconds, around),
        _cost(ranked, width),
        _inside(opened, kernel, width),
        _barriers(opened, kernel, width),
    )
    for number, part in enumerate(parts):
        if number and part and around:  # where there is room
            facts.append(Fact(Content("")))
        facts += part
    return facts


def _kind(kernel: Kernel) -> str:
    told = kernel.opcode in ("fusion", "custom-call") or kernel.kind.casefold().replace(" ", "-") == kernel.opcode
    words = kernel.kind if told else f"{kernel.kind} ({kernel.opcode})"
    return f"{words} by {kernel.target}" if kernel.target and kernel.target != kernel.kind else words


def _origins(kernel: Kernel, width: int, recorded_seconds: float | None, around: int) -> list[Fact]:
    facts: list[Fact] = []
    first = next((origin for origin in kernel.origins if origin.source is not None), None)
    if first is None or first.source is None:
        facts.append(Fact(Content.styled("the module does not say from which line it came", "$quiet")))
    else:
        facts += source_facts(first.source, width, recorded_seconds, _function(first), around)
    if kernel.op_name:
        facts += paragraph(kernel.op_name, width, "$text-muted")
    others = [origin for origin in kernel.origins if origin is not first]
    if others:
        facts.append(heading("Also from", f"{len(others)} more place{'s' if len(others) != 1 else ''} fused into it"))
        for origin in others[:MOST_ORIGINS]:
            facts.append(Fact(_origin(origin, width)))
        if len(others) > MOST_ORIGINS:
            facts.append(Fact(Content.styled(f"  and {len(others) - MOST_ORIGINS} more", "$quiet")))
    return facts


def _function(origin: Origin) -> str:
    return origin.stack[0].function.rpartition("<locals>.")[2] if origin.stack else ""


def _origin(origin: Origin, width: int) -> Content:
    place = origin.source
    where = f"{place.file.rpartition('/')[2]}:{place.line}" if place is not None else UNKNOWN
    text = cell(where, min(24, max(12, width // 3)), "$code-name")
    lines = excerpt(place, 0).lines if place is not None else ()
    said = lines[0][1].strip() if lines else origin.op_name
    direction = " ∂" if origin.path.direction == "backward" else ""
    return Content.assemble("  ", text, " ", (shorten(said or UNKNOWN, max(8, width - 29)), "$text-muted"), direction)


def place_content(place: Place, width: int, function: str = "") -> Content:
    """`…/model.py:88 in attention`, the end of the path kept."""
    tail = f":{place.line}" + (f" in {function}" if function else "")
    room = max(8, width - columns(safe(tail)))
    file = safe(place.file)
    if columns(file) > room:
        file = "…" + file[-(room - 1) :]
    return Content.assemble((file, "$code-name"), (safe(tail), "bold $code-name"))


def source_facts(
    place: Place, width: int, recorded_seconds: float | None, function: str = "", around: int = 1
) -> list[Fact]:
    """A place with the lines themselves, when the file can be read here."""
    facts = [Fact(place_content(place, width, function))]
    found = excerpt(place, around)
    numbers = max((len(str(number)) for number, _ in found.lines), default=1)
    indent = min((len(line) - len(line.lstrip()) for _, line in found.lines if line.strip()), default=0)
    for number, line in found.lines:
        there = number == place.line
        if not there and not line.strip():
            continue
        text = highlighted(line[indent:][:400]) if line.strip() else Content("")
        mark = Content.styled(f"{'▸' if there else ' '}{number:>{numbers}} ", "bold $accent" if there else "$quiet")
        facts.append(Fact(Content.assemble(mark, text if there else text.stylize("dim"))))
    if found.modified_seconds is None:
        facts.append(Fact(Content.styled("  the file is not on this machine", "$quiet")))
    elif not found.lines:
        facts.append(Fact(Content.styled("  the file has no such line any more", "$warning")))
    elif recorded_seconds is not None and found.modified_seconds > recorded_seconds + 1:
        facts.append(Fact(Content.styled("  the file was changed since: the line may be another", "$warning")))
    return facts


def _cost(ranked: Ranked, width: int) -> list[Fact]:
    kernel = ranked.kernel
    roof = ranked.roof
    count = "" if kernel.count == 1 else f"of one of {times(ranked)} executions"
    facts = [heading("Cost", "; ".join(part for part in ("estimate from the shapes", count) if part))]
    flops = scaled(kernel.flops) + (" (approximately)" if kernel.estimated else "")
    if kernel.transcendentals:
        flops += f" + {scaled(kernel.transcendentals)} transcendental"
    facts.append(_figure("FLOPs", flops if kernel.flops is not None else "unknown: the library does not tell"))
    moved = f"{bytes_(kernel.bytes)} = {bytes_(kernel.bytes_read)} read + {bytes_(kernel.bytes_written)} written"
    facts.append(_figure("bytes", shorten(moved, max(8, width - _LABEL))))
    intensity = f"{scaled(kernel.intensity)} FLOP/B" if kernel.intensity is not None else UNKNOWN
    if roof is not None and roof.ridge is not None:
        intensity += f" (the ridge is at {scaled(roof.ridge)})"
    facts.append(_figure("intensity", intensity))
    if roof is not None:
        bound = f", bound by {roof.bound}" if roof.bound else ""
        facts.append(_figure("least time", f"{seconds(roof.least_seconds)}{bound}"))
    if ranked.measured_seconds is not None:
        of_roof = ranked.least_seconds / ranked.measured_seconds if ranked.least_seconds else None
        reached = f": {percent(of_roof)} of the roofline" if of_roof is not None else ""
        facts.append(_figure("measured", f"{seconds(ranked.measured_seconds)}{reached}"))
    if kernel.precision and kernel.precision != "default":
        facts.append(_figure("precision", kernel.precision))
    if kernel.asynchronous:
        facts.append(_figure("", "asynchronous: it overlaps with what follows"))
    return facts


def _figure(label: str, text: str) -> Fact:
    return Fact(Content.assemble((f"{label:<{_LABEL}}", "$text-muted"), safe(text)))


# -- what is inside ---------------------------------------------------------------------------------------------------


def _inside(opened: Opened, kernel: Kernel, width: int) -> list[Fact]:
    instruction = opened.instruction(kernel.computation, kernel.name)
    if instruction is None:
        return []
    rows = tree(instruction)
    count = kernel.instructions
    facts = [heading("Inside", f"{integer(count)} instruction{'s' if count != 1 else ''}, from the result down")]
    facts += [
        Fact(_row(prefix, row, width), Target(row.computation, row.name))
        for prefix, row in zip(branches(rows), rows, strict=True)
    ]
    return facts


def branches(rows: Sequence[Row]) -> list[str]:
    """What is drawn before each row of a tree. An only child stands under its parent with an arrow, not further in:
    a chain of a hundred operations is a hundred lines, and not a hundred columns."""
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
    found: list[str] = []
    inner: list[str] = []
    """For each row what its children begin with."""
    for number in range(len(rows)):
        parent = parents[number]
        if parent < 0:
            found.append("")
            inner.append("")
            continue
        left[parent] -= 1
        if children[parent] == 1:
            found.append(inner[parent] + "← ")
            inner.append(inner[parent])
        else:
            last = left[parent] == 0
            found.append(inner[parent] + ("└ " if last else "├ "))
            inner.append(inner[parent] + ("  " if last else "│ "))
    return found


def _row(prefix: str, row: Row, width: int) -> Content:
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


def _barriers(opened: Opened, kernel: Kernel, width: int) -> list[Fact]:
    if opened.barriers is None:
        words = "being worked out…" if not opened.over else "not known"
        return [heading("Not fused with"), Fact(Content.styled(words, "$quiet"))]
    near = [
        barrier
        for barrier in opened.barriers
        if kernel.name in (barrier.producer, barrier.consumer) and barrier.computation == kernel.computation
    ]
    if not near:
        return []
    facts = [heading("Not fused with", "and the bytes that it would save (estimate)")]
    for barrier in near[:MOST_BARRIERS]:
        other = barrier.producer if barrier.consumer == kernel.name else barrier.consumer
        arrow = "←" if barrier.consumer == kernel.name else "→"
        target = Target(barrier.computation, other, kernel=True)
        size = bytes_(barrier.bytes)
        name = cell(other, max(8, width - 3 - len(size)))
        facts.append(Fact(Content.assemble((f"{arrow} ", "$text-muted"), name, " ", (size, "$accent")), target))
        facts += paragraph(reason_words(barrier), width, "$text-muted", indent="    ")
    if len(near) > MOST_BARRIERS:
        facts.append(Fact(Content.styled(f"  and {len(near) - MOST_BARRIERS} more", "$quiet")))
    return facts


def reason_words(barrier: Barrier) -> str:
    """The reason without the names of the two kernels, which stand beside it."""
    return barrier.words.partition(": ")[2] or barrier.words


def barrier_facts(opened: Opened, barrier: Barrier, width: int) -> list[Fact]:
    """Everything about a barrier."""
    facts = [
        Fact(Content.styled(barrier.reason.replace("-", " "), "bold $accent")),
        *paragraph(reason_words(barrier), width),
        heading("The array"),
        Fact(Content.styled(shorten(str(barrier.shape), width), "$code-number")),
        _figure("would save", f"{bytes_(barrier.bytes)} a run (estimate)"),
    ]
    for label, name in (("Written by", barrier.producer), ("Read by", barrier.consumer)):
        facts.append(heading(label))
        kernel = next(
            (k for k in opened.kernels or () if k.name == name and k.computation == barrier.computation),
            next((k for k in opened.kernels or () if k.name == name), None),
        )
        if kernel is None:
            facts.append(Fact(Content(shorten(name, width))))
            continue
        facts.append(Fact(Content(shorten(name, width)), Target(kernel.computation, name, kernel=True)))
        facts.append(Fact(Content.styled(shorten(_kind(kernel), width), "$secondary")))
        if kernel.source is not None:
            facts += source_facts(kernel.source, width, opened.program.recorded_seconds, around=0)
    return facts


def finding_facts(opened: Opened, finding: Finding, width: int) -> list[Fact]:
    """Everything about a finding."""
    facts = [
        Fact(Content.styled(finding.code.replace("-", " "), "bold $accent")),
        *paragraph(finding.message, width),
        heading("What to do"),
        *paragraph(finding.advice, width),
    ]
    if finding.bytes is not None:
        facts.append(_figure("bytes", f"{bytes_(finding.bytes)} a run (estimate)"))
    facts.append(heading("Where", f"{len(finding.where)} place{'s' if len(finding.where) != 1 else ''}"))
    by_name = {kernel.name: kernel for kernel in opened.kernels or ()}
    for name in finding.where[:MOST_MEMBERS]:
        kernel = by_name.get(name)
        place = kernel.source if kernel is not None else None
        where = f"{place.file.rpartition('/')[2]}:{place.line}" if place is not None else ""
        target = Target(kernel.computation, name, kernel=True) if kernel is not None else None
        named = cell(name, max(8, width - columns(where) - 2))
        facts.append(Fact(Content.assemble(named, " ", (safe(where), "$code-name")), target))
    return facts


def group_facts(group: Group, width: int) -> list[Fact]:
    """What a group of kernels is together."""
    members = sorted(group.all, key=lambda row: -(row.weight or 0.0))
    title = group.path[-1]
    facts = [
        *paragraph(title, width, "bold"),
        Fact(Content.styled(f"{integer(len(members))} kernel{'s' if len(members) != 1 else ''}", "$secondary")),
    ]
    file, colon, line = title.rpartition(":")
    if colon and line.isdecimal():
        facts += source_facts(Place(file, int(line)), width, None)[1:]
    facts += [
        heading("Cost", "estimate from the shapes; of all executions"),
        _figure("share", percent(group.total(lambda row: row.share))),
        _figure("FLOPs", scaled(group.total(lambda row: row.kernel.total_flops))),
        _figure("bytes", bytes_(group.total(lambda row: row.kernel.total_bytes))),
    ]
    least = group.total(lambda row: row.least_seconds)
    if least is not None:
        facts.append(_figure("least time", seconds(least)))
    facts.append(heading("Kernels"))
    for row in members[:MOST_MEMBERS]:
        share = "<0.1 %" if row.share is not None and row.share < 0.001 else percent(row.share)
        name = cell(row.kernel.name, max(8, width - len(share) - 1))
        target = Target(row.kernel.computation, row.kernel.name, kernel=True)
        facts.append(Fact(Content.assemble(name, " ", (share, "$text-muted")), target))
    return facts
