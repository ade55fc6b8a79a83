"""Show what each XLA pass changed, as JSON-ready data and as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from jaxprof.facts import Fact, at, column, recorder
from jaxprof.facts.units import BY_NAME, COUNT, INDEX, LIST, OBJECT, ROWS, TEXT, TRUTH
from jaxprof.hlo.passes import ModulePasses, PassChange
from jaxprof.report.renderers import text_lines
from jaxprof.report.table import Table
from jaxprof.text import safe
from jaxprof.units import counted, integer

OPCODES_IN_TEXT = 6
_SIGNS = {"changed": "~", "new": "+", "gone": "-"}


def passes_text(modules: tuple[ModulePasses, ...]) -> Iterator[str]:
    """Yield a table for each module with the states that differ from the one before, and a count of all states."""
    for number, module in enumerate(modules):
        shown = [change for change in module.passes if change.changed or change.problem]
        first = module.passes[0] if module.passes else None
        if number:
            yield ""
        yield safe(
            f"{module.module} {module.name}: {len(module.passes)} states, {len(shown)} differ from the one before"
        )
        if first is not None and not first.opcodes_before and not first.problem:
            yield safe(f"  begins with {counted(sum(first.opcodes_after.values()), 'instruction')} ({first.name})")
        yield from text_lines(Table(PASSES, shown))


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
    changes = [f"{by:+d} {name}" for name, by in change.opcode_changes.items()]
    more = [f"and {len(changes) - OPCODES_IN_TEXT} more"] if len(changes) > OPCODES_IN_TEXT else []
    return change.problem or ", ".join(changes[:OPCODES_IN_TEXT] + more)


def _with_status(status: str) -> Callable[[PassChange], list[Any]]:
    return lambda change: [difference for difference in change.differences if difference.status == status]


def _names(status: str) -> Callable[[PassChange], list[str]]:
    with_status = _with_status(status)
    return lambda change: [difference.either for difference in with_status(change)]


def _opcode_counts(change: PassChange) -> dict[str, list[int]]:
    before, after = change.opcodes_before, change.opcodes_after
    return {name: [before.get(name, 0), after.get(name, 0)] for name in change.opcode_changes}


def _is_first(change: PassChange) -> bool:
    return not change.opcodes_before


_NAMES: Final[tuple[Fact[Any], ...]] = (
    Fact("before", TEXT, "Its name before"),
    Fact("after", TEXT, "Its name after"),
)
PASSES: Final[tuple[Fact[PassChange], ...]] = (
    Fact("number", INDEX, "Its place, from 0", title="no"),
    Fact("pipeline", TEXT, "The pipeline that the pass belongs to", title="pipeline", widest=44),
    Fact("pass", TEXT, "Name of the pass", at("name"), "pass", widest=44),
    Fact("changed", TRUTH, "Whether it changed anything; null for the first state",
         lambda change: None if _is_first(change) or change.problem else change.changed),
    Fact("instructions_before", COUNT, "Instructions before it",
         lambda change: None if _is_first(change) else sum(change.opcodes_before.values())),
    Fact("instructions_after", COUNT, "Instructions after it",
         lambda change: None if change.problem else sum(change.opcodes_after.values())),
    column("instructions", _instructions),
    column("computations", _computations),
    column("opcodes", _opcodes, widest=70),
    Fact("opcodes", BY_NAME, "How often each opcode occurs whose number changed: [before, after]",
         _opcode_counts),
    Fact("computations", OBJECT, "Its computations", lambda change: change, inside=(
        Fact("same", COUNT, "How many computations are the same"),
        Fact("changed", ROWS, "Computations that it changed", _with_status("changed"), inside=_NAMES),
        Fact("new", LIST, "Names of computations that are new", _names("new")),
        Fact("gone", LIST, "Names of computations that are gone", _names("gone")),
    )),
    Fact("file", TEXT, "The file of the dump"),
    Fact("problem", TEXT, "Why it cannot be read"),
)  # fmt: skip
MODULE: Final[tuple[Fact[ModulePasses], ...]] = (
    Fact("module", TEXT, "Number of the module in the dump"),
    Fact("name", TEXT, "Its name"),
    Fact("passes", ROWS, "Each state that XLA wrote", inside=PASSES),
)


def passes_json(modules: tuple[ModulePasses, ...]) -> dict[str, Any]:
    """Return every state that XLA dumped, with the changes since the previous one, as JSON-ready data."""
    return {"modules": list(map(recorder(MODULE), modules))}
