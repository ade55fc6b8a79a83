"""What each XLA pass changed, as plain dicts and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxprof.hlo.passes import ModulePasses, PassChange
from jaxprof.report.table import table
from jaxprof.safe_text import safe
from jaxprof.units import UNKNOWN, integer

OPCODES_IN_TEXT = 6
_SIGNS = {"changed": "~", "new": "+", "gone": "-"}


def passes_json(found: tuple[ModulePasses, ...]) -> dict[str, Any]:
    """Every state that XLA wrote down, with what changed since the one before."""
    return {
        "modules": [
            {"module": one.module, "name": one.name, "passes": [_pass_json(change) for change in one.passes]}
            for one in found
        ]
    }


def _pass_json(change: PassChange) -> dict[str, Any]:
    by_status: dict[str, list[Any]] = {"changed": [], "new": [], "gone": []}
    for one in change.differences:
        pair = {"before": one.before, "after": one.after}
        by_status[one.status].append(pair if one.status == "changed" else one.after or one.before)
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


def passes_text(found: tuple[ModulePasses, ...]) -> Iterator[str]:
    """A table for each module: the states that differ from the one before, and how many do not."""
    for at, module in enumerate(found):
        shown = [change for change in module.passes if change.changed or change.problem]
        first = module.passes[0] if module.passes else None
        if at:
            yield ""
        yield safe(
            f"{module.module} {module.name}: {len(module.passes)} states, {len(shown)} differ from the one before"
        )
        if first is not None and not first.opcodes_before and not first.problem:
            yield safe(f"  begins with {integer(sum(first.opcodes_after.values()))} instructions ({first.name})")
        if not shown:
            continue
        rows: list[tuple[str, ...]] = [("no", "pipeline", "pass", "instructions", "computations", "opcodes")]
        rows += [_row(change) for change in shown]
        yield from table(rows, right=(0,), widest=(0, 44, 44, 0, 0, 70))


def _row(change: PassChange) -> tuple[str, ...]:
    number = UNKNOWN if change.number is None else str(change.number)
    if change.problem:
        return (number, change.pipeline or UNKNOWN, change.name, UNKNOWN, UNKNOWN, change.problem)
    counts = {status: sum(one.status == status for one in change.differences) for status in _SIGNS}
    before, after = sum(change.opcodes_before.values()), sum(change.opcodes_after.values())
    moved = list(change.opcode_changes.items())
    said = [f"{by:+d} {name}" for name, by in moved[:OPCODES_IN_TEXT]]
    more = [f"and {len(moved) - OPCODES_IN_TEXT} more"] if len(moved) > OPCODES_IN_TEXT else []
    return (
        number,
        change.pipeline or UNKNOWN,
        change.name,
        f"{integer(before)} -> {integer(after)}",
        " ".join(f"{_SIGNS[status]}{count}" for status, count in counts.items() if count) or UNKNOWN,
        ", ".join(said + more) or UNKNOWN,
    )
