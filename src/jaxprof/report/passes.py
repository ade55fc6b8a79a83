"""What each XLA pass changed, as plain dicts and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from jaxprof.hlo.passes import ModulePasses, PassChange
from jaxprof.report.renderers import text_lines
from jaxprof.report.table import Column, Table
from jaxprof.text import safe
from jaxprof.units import counted, integer

OPCODES_IN_TEXT = 6
_SIGNS = {"changed": "~", "new": "+", "gone": "-"}


def passes_json(modules: tuple[ModulePasses, ...]) -> dict[str, Any]:
    """Every state that XLA dumped, with the changes since the previous one."""
    return {
        "modules": [
            {"module": module.module, "name": module.name, "passes": [_pass_json(change) for change in module.passes]}
            for module in modules
        ]
    }


def _pass_json(change: PassChange) -> dict[str, Any]:
    by_status: dict[str, list[Any]] = {"changed": [], "new": [], "gone": []}
    for difference in change.differences:
        pair = {"before": difference.before, "after": difference.after}
        by_status[difference.status].append(
            pair if difference.status == "changed" else difference.after or difference.before
        )
    first = not change.opcodes_before
    return {
        "number": change.number,
        "pipeline": change.pipeline or None,
        "pass": change.name,
        "changed": None if first or change.problem else change.changed,
        "instructions_before": None if first else sum(change.opcodes_before.values()),
        "instructions_after": None if change.problem else sum(change.opcodes_after.values()),
        "opcodes": {
            name: [change.opcodes_before.get(name, 0), change.opcodes_after.get(name, 0)]
            for name in change.opcode_changes
        },
        "computations": {"same": change.same, **by_status},
        "file": change.file,
        "problem": change.problem or None,
    }


def passes_text(modules: tuple[ModulePasses, ...]) -> Iterator[str]:
    """A table for each module: the states that differ from the one before, and how many do not."""
    for at, module in enumerate(modules):
        shown = [change for change in module.passes if change.changed or change.problem]
        first = module.passes[0] if module.passes else None
        if at:
            yield ""
        yield safe(
            f"{module.module} {module.name}: {len(module.passes)} states, {len(shown)} differ from the one before"
        )
        if first is not None and not first.opcodes_before and not first.problem:
            yield safe(f"  begins with {counted(sum(first.opcodes_after.values()), 'instruction')} ({first.name})")
        if not shown:
            continue
        yield from text_lines(Table(_PASSES, shown))


def _instructions(change: PassChange) -> str | None:
    if change.problem:
        return None
    before, after = sum(change.opcodes_before.values()), sum(change.opcodes_after.values())
    return f"{integer(before)} -> {integer(after)}"


def _computations(change: PassChange) -> str | None:
    if change.problem:
        return None
    counts = {status: sum(difference.status == status for difference in change.differences) for status in _SIGNS}
    return " ".join(f"{_SIGNS[status]}{count}" for status, count in counts.items() if count)


def _opcodes(change: PassChange) -> str:
    moved = list(change.opcode_changes.items())
    moves = [f"{by:+d} {name}" for name, by in moved[:OPCODES_IN_TEXT]]
    more = [f"and {len(moved) - OPCODES_IN_TEXT} more"] if len(moved) > OPCODES_IN_TEXT else []
    return change.problem or ", ".join(moves + more)


_PASSES: Final[tuple[Column[PassChange], ...]] = (
    Column("number", "no", right=True),
    Column("pipeline", "pipeline", widest=44),
    Column("name", "pass", widest=44),
    Column("", "instructions", _instructions),
    Column("", "computations", _computations),
    Column("", "opcodes", _opcodes, widest=70),
)
