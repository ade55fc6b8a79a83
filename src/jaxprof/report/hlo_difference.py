"""Compare two HLO modules, as text (a diff with some lines around each change) and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.base.text import safe
from jaxprof.base.units import counted
from jaxprof.facts.comparisons import kernel_counts
from jaxprof.findings.compare.session_difference import module_difference
from jaxprof.hlo.text.model import Instruction, Module
from jaxprof.hlo.text_difference import text_difference
from jaxprof.report.comparison import facts_table, kernels_table
from jaxprof.report.renderers import Piece

_CONTEXT_LINES = 2
"""Unchanged lines that are shown before and after each change."""
NO_DIFFERENCE = "no difference in the computation: names, numbering and source locations are ignored"
_SETTINGS_SHOWN = 12
_SIGNS = {"same": " ", "new": "+", "gone": "-"}


def difference_pieces(before: Module, after: Module) -> Iterator[Piece]:
    """Yield the report: the kernels, the exact figures, then the text, a line at a time."""
    difference = text_difference(before, after)
    # how the same result is computed: the schedule, settings of kernels, the code of custom kernels
    for name, ours, theirs in difference.reordered:
        yield safe(f"%{name} runs in another order: the first that differ are %{ours} and %{theirs}")
    for setting in difference.settings[:_SETTINGS_SHOWN]:
        yield safe(f"%{setting.kernel}: {setting.name} {setting.before or '-'} → {setting.after or '-'}")
    if len(difference.settings) > _SETTINGS_SHOWN:
        yield f"and {len(difference.settings) - _SETTINGS_SHOWN} more settings of kernels"
    if difference.code:
        named = ", ".join(f"%{name}" for name in difference.code[:3])
        yield safe(
            f"the code of {counted(len(difference.code), 'custom kernel')} has different bytes ({named}): whether it "
            "computes the same is unknown, because the code includes source line numbers"
        )
    if difference.reordered or difference.settings or difference.code:
        yield ""
    if not difference.differs:
        yield NO_DIFFERENCE
        return
    exact = module_difference(before, after)
    if exact.kernels is not None and exact.kernels.rows:
        yield f"kernels: {kernel_counts(exact.kernels)}"
        yield from (kernels_table(exact.kernels), facts_table(exact), "")
    for attribute in difference.header:
        yield safe(f"- {attribute.name}={attribute.before}") if attribute.before else safe(f"- no {attribute.name}")
        yield safe(f"+ {attribute.name}={attribute.after}") if attribute.after else safe(f"+ no {attribute.name}")
    for number, computation in enumerate(difference.computations):
        if number or difference.header:
            yield ""
        pair = computation.computation
        names = dict.fromkeys(f"%{side.name}" for side in (pair.before, pair.after) if side is not None)
        yield safe(f"@@ {' → '.join(names)}: {pair.status}")
        shown: set[int] = set()
        for number, line in enumerate(computation.lines):
            if line.status != "same":
                shown.update(
                    range(max(0, number - _CONTEXT_LINES), min(len(computation.lines), number + _CONTEXT_LINES + 1))
                )
        last = -1
        for number, line in enumerate(computation.lines):
            if number not in shown:
                continue
            if number > last + 1:
                yield "  ..."
            last = number
            if line.status == "changed" and line.before is not None and line.after is not None:
                yield safe(f"- {_text(line.before)}")
                yield safe(f"+ {_text(line.after)}")
            else:
                yield safe(f"{_SIGNS[line.status]} {_text(line.either)}")
        if last < len(computation.lines) - 1:
            yield "  ..."


def _text(instruction: Instruction) -> str:
    """Return the instruction's line without its source location and the settings of the backend and frontend."""
    text = instruction.text
    for key in ("metadata", "backend_config", "frontend_attributes"):
        if key in instruction.attributes:
            text = text.replace(f", {key}={instruction.attributes[key]}", "")
    return text
