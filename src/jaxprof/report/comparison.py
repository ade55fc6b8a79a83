"""Sessions compared, as tables: environments first, then run by run times, exact facts, kernels, collectives, findings.

Text and Markdown show what differs and count the rest; CSV and JSON have all of it. A row that a side does not know has
a dash there, and no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from jaxprof.analysis.difference import FigureDifference, Pair
from jaxprof.analysis.kernel_difference import KernelChange, KernelDifference, KernelDifferences
from jaxprof.analysis.run_difference import FACTS, CollectiveDifference
from jaxprof.analysis.session_difference import (
    EnvironmentDifference,
    PhaseDifference,
    ProgramDifference,
    RunComparison,
    SessionDifference,
)
from jaxprof.facts import at
from jaxprof.report.recording.words import words
from jaxprof.report.runs import parameters_text
from jaxprof.report.table import Column, Table
from jaxprof.units import UNKNOWN, bytes_, growth, integer, ratio_interval, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.memory import MemoryBuffer
    from jaxprof.analysis.programs.derive import FunctionCompiles
    from jaxprof.hlo.analysis.findings.finding import HloFinding

WIDTH: Final = 100
_LAYOUT: Final = re.compile(r"(?<=\])\{[^{}]*\}")
_FINDINGS_NAMED: Final = 4
_ROWS_SHOWN: Final = 20
_STAGES_SHOWN: Final = 6


def signed(value: float | None, text: str) -> str:
    """`text` with a plus where the value is positive."""
    return UNKNOWN if value is None else f"+{text}" if value > 0 else text


def _seconds_difference(value: float | None) -> str:
    return signed(value, "0" if value == 0 else seconds(value))


def _bytes_difference(value: float | None) -> str:
    return UNKNOWN if value is None else f"{'+' if value > 0 else '-' if value < 0 else ''}{bytes_(abs(value))}"


def figure(value: float | None, unit: str) -> str:
    """A figure of a program as people read it."""
    if unit == "byte":
        return bytes_(value)
    if unit == "second":
        return seconds(value)
    return scaled(value) if unit == "flop" or (value is not None and value >= 1e6) else integer(value)


def growth_text(fact: FigureDifference) -> str:
    """`+12 %`, `-0.40 %`, `same`; `new` for what was 0; a dash where a side is unknown."""
    if fact.differs is None:
        return UNKNOWN
    if not fact.differs:
        return "same"
    if fact.growth is None:
        return f"+{figure(fact.after, fact.unit)}"
    return growth(fact.growth)


def _ratio(row: PhaseDifference) -> str:
    times = row.times
    return UNKNOWN if times.ratio is None else ratio_interval(times.ratio, times.low, times.high)


def _verdict(row: PhaseDifference) -> str:
    reason = row.times.reason()
    return f"{row.times.verdict()}: {reason}" if reason else row.times.verdict()


ENVIRONMENT: Final[tuple[Column[EnvironmentDifference], ...]] = (
    Column("name", "environment"),
    Column("before", "first", widest=36),
    Column("after", "second", widest=36),
    Column("differs"),
)
PHASES: Final[tuple[Column[PhaseDifference], ...]] = (
    Column("phase", "phase", lambda row: row.phase),
    Column("before_seconds", "first", show=seconds),
    Column("after_seconds", "second", show=seconds),
    Column("", "speed-up", _ratio, right=True),
    Column("ratio", value=at("times.ratio")),
    Column("ratio_low", value=at("times.low")),
    Column("ratio_high", value=at("times.high")),
    Column("", "verdict", _verdict, gives_way=True),
    Column("verdict", value=lambda row: row.times.verdict()),
    Column("reason", value=lambda row: row.times.reason() or None),
)
FIGURES: Final[tuple[Column[FigureDifference], ...]] = (
    Column("fact", "exact fact", lambda row: row.code),
    Column("before", None),
    Column("after", None),
    Column("unit", value=lambda row: row.unit or None),
    Column("growth"),
    Column("differs"),
    Column("estimate"),
)
_FIGURES_SHOWN: Final[tuple[Column[FigureDifference], ...]] = (
    Column("", "exact fact", lambda row: FACTS[row.code] + (" (estimate)" if row.estimate else "")),
    Column("", "first", lambda row: figure(row.before, row.unit), right=True),
    Column("", "second", lambda row: figure(row.after, row.unit), right=True),
    Column("", "difference", growth_text, right=True),
)


def change_text(change: KernelChange) -> str:
    """`bytes 384 KiB → 502 KiB`, `operations +2 convert`."""
    if change.what == "inside":
        return "other constants or connections inside"
    if change.what == "operations":
        gone, new = (f" {sign}{text}" if text else "" for sign, text in (("-", change.before), ("+", change.after)))
        return f"operations{gone}{new}"
    before, after = (_change_value(change.what, side) for side in (change.before, change.after))
    if before == after:  # only the layouts differ
        before, after = str(change.before), str(change.after)
    return f"{change.what} {before} → {after}"


def _change_value(what: str, value: str | float | None) -> str:
    if value is None or value == "":
        return UNKNOWN
    if isinstance(value, str):
        return _LAYOUT.sub("", value) if what in ("shape", "operands") else value
    return bytes_(value) if what == "bytes" else scaled(value) if what == "flops" else integer(value)


def _changes(row: KernelDifference) -> str:
    names = "" if row.before_name == row.after_name or not row.before_name or not row.after_name else row.before_name
    former = [f"was {names}"] if names and row.status == "changed" else []
    return "; ".join([*former, *map(change_text, row.changes)])


KERNELS_COMPARED: Final[tuple[Column[KernelDifference], ...]] = (
    Column("status", "", lambda row: row.status),
    Column("before_name", value=lambda row: row.before_name or None),
    Column("after_name", value=lambda row: row.after_name or None),
    Column("", "kernel", lambda row: row.name, widest=28),
    Column("kind", value=at("kernel.kind")),
    Column("op_name", value=at("kernel.op_name")),
    Column("before_seconds", "first", show=seconds),
    Column("after_seconds", "second", show=seconds),
    Column("part_seconds", "difference", show=_seconds_difference),
    Column("speed", "", lambda row: row.speed or None),
    Column("", "what changed", _changes, gives_way=True),
    Column(
        "changes",
        value=lambda row: [{"what": one.what, "before": one.before, "after": one.after} for one in row.changes],
    ),
)
COLLECTIVES_COMPARED: Final[tuple[Column[CollectiveDifference], ...]] = (
    Column("opcode", "collective"),
    Column("group_size", "devices", show=integer),
    Column("before_count", "first", show=integer),
    Column("after_count", "second", show=integer),
    Column("before_bytes", "bytes first", show=bytes_),
    Column("after_bytes", "bytes second", show=bytes_),
    Column("differs"),
)


FINDINGS_COMPARED: Final[tuple[Column[Pair[HloFinding]], ...]] = (
    Column("status", "", lambda row: row.status),
    Column("code", "finding", at("either.code")),
    Column("before", value=at("before.message")),
    Column("after", value=at("after.message")),
    Column("", "what", at("either.message"), gives_way=True),
)
STAGES_COMPARED: Final[tuple[Column[FigureDifference], ...]] = (
    Column("stage", "compile passes", at("code")),
    Column("before_seconds", "first", at("before"), seconds),
    Column("after_seconds", "second", at("after"), seconds),
)


def _buffer(key: str) -> Any:
    return lambda row: getattr(row.either, key) or None


BUFFERS_COMPARED: Final[tuple[Column[Pair[MemoryBuffer]], ...]] = (
    Column("status", "", lambda row: row.status),
    Column("kind", "buffer", _buffer("kind")),
    Column("instruction", "of", _buffer("instruction"), widest=30),
    Column("before_bytes", "first", at("before.bytes"), bytes_),
    Column("after_bytes", "second", at("after.bytes"), bytes_),
    Column("part_bytes", "difference", lambda row: int(row.part("bytes")), _bytes_difference),
    Column("shape", "shape", _buffer("shape"), gives_way=True),
    Column("op_name", value=_buffer("op_name")),
)
FUNCTIONS_COMPARED: Final[tuple[Column[Pair[FunctionCompiles]], ...]] = (
    Column("status", "", lambda row: row.status),
    Column("function", "compiled", at("either.function"), widest=32),
    Column("before_count", "first", at("before.count"), integer),
    Column("after_count", "second", at("after.count"), integer),
    Column("before_seconds", "seconds first", at("before.seconds"), seconds),
    Column("after_seconds", "seconds second", at("after.seconds"), seconds),
    Column("", "why again", lambda row: _why(row), gives_way=True),
    Column("before_reasons", value=lambda row: _reasons(row.before)),
    Column("after_reasons", value=lambda row: _reasons(row.after)),
)
STATES_COMPARED: Final[tuple[Column[FigureDifference], ...]] = (
    Column("state", value=at("code")),
    Column("", "main thread", lambda row: words(row.code)),
    Column("before_seconds", "first", at("before"), seconds),
    Column("after_seconds", "second", at("after"), seconds),
)


def _reasons(function: Any) -> list[dict[str, Any]]:
    reasons = function.reasons if function is not None else ()
    return [{"code": reason.code, "count": reason.count, "text": reason.text} for reason in reasons]


def _why(row: Pair[FunctionCompiles]) -> str | None:
    reasons = [reason for reason in (row.after.reasons if row.after is not None else ()) if reason.code != "first"]
    return "; ".join(reason.text or reason.code for reason in reasons[:2]) or None


@dataclass(frozen=True, slots=True)
class _Sum:
    what: str
    before: float | None
    after: float | None
    unit: str

    def text(self, value: float | None) -> str:
        return scaled(value) if self.unit == "rate" else figure(value, self.unit)


def _sums(program: ProgramDifference) -> list[_Sum]:
    before, after = program.before, program.after
    sums = [
        _Sum("wall time", before.wall_seconds, after.wall_seconds, "second"),
        _Sum("steps a second", *program.steps_per_second, "rate"),
        _Sum("compilations", before.compile_count, after.compile_count, ""),
        _Sum("compile time", before.compile_seconds, after.compile_seconds, "second"),
        _Sum(
            "most live arrays",
            before.arrays.peak_bytes if before.arrays is not None else None,
            after.arrays.peak_bytes if after.arrays is not None else None,
            "byte",
        ),
    ]
    return [entry for entry in sums if entry.before is not None or entry.after is not None]


_SUMS: Final[tuple[Column[_Sum], ...]] = (
    Column("what", "program"),
    Column("", "first", lambda row: row.text(row.before), right=True),
    Column("", "second", lambda row: row.text(row.after), right=True),
    Column("before"),
    Column("after"),
)


def title(pair: RunComparison) -> str:
    """`selu jit cpu:0  ·  n = 1 000 000`, with both names where they differ."""
    before, after = pair.before, pair.after
    parameters = parameters_text(after.plan.parameters) if after.plan.how != "imported" else ""
    label = after.label if before.label == after.label else f"{before.label} → {after.label}"
    return f"{label}  ·  {parameters}" if parameters else label


def answer(pair: RunComparison) -> str:
    """The exact facts in one line: `kernels: 1 new, 2 changed, 30 the same; FLOPs +12 %`; of programs also the findings
    that only one side has."""
    difference = pair.difference
    parts: list[str] = []
    if pair.program is not None:
        counts = _counts(row.status for row in pair.program.functions)
        parts.append(f"compiled functions: {counts}" if counts else "nothing was compiled")
        found = [f"{row.either.code} {row.status}" for row in pair.program.findings if row.status != "same"]
        parts += [f"findings: {', '.join(found[:_FINDINGS_NAMED])}"] if found else []
    if difference.kernels is not None:
        parts.append(f"kernels: {kernel_counts(difference.kernels)}")
    facts = [fact for fact in difference.facts if fact.differs and fact.code not in ("kernels", "launches")]
    parts += [f"{FACTS[fact.code]} {growth_text(fact)}" for fact in facts[:4]]
    if not facts and any(fact.differs is False and fact.code in _COST for fact in difference.facts):
        parts.append("cost and memory are the same, as far as both are known")
    return "; ".join(parts) if parts else "no exact fact is known of both"


def kernel_counts(kernels: KernelDifferences) -> str:
    """`1 new, 2 changed, 30 the same`."""
    return _counts(row.status for row in kernels.rows) or "none"


_COST: Final = frozenset({"flops", "bytes", "peak"})
_WORDS: Final = {"same": "the same", "outside": "outside the HLO"}


def _counts(statuses: Iterable[str]) -> str:
    listed = list(statuses)
    order = ("new", "gone", "changed", "same", "outside")
    return ", ".join(f"{listed.count(status)} {_WORDS.get(status, status)}" for status in order if status in listed)


def tables(pair: RunComparison) -> Iterator[Table[Any]]:
    """What people see of a pair: what differs, and how many rows do not."""
    difference, program = pair.difference, pair.program
    if program is not None:
        yield Table(_SUMS, _sums(program))
        yield Table(STATES_COMPARED, [row for row in program.states if row.before or row.after])
        yield _differing(FUNCTIONS_COMPARED, program.functions, "functions")
        yield _differing(
            (
                Column("", "", lambda row: row.status),
                Column("", "finding", lambda row: row.either.message, gives_way=True),
            ),
            program.findings,
            "findings",
        )
    yield Table(PHASES, pair.phases)
    yield facts_table(difference.facts)
    if difference.kernels is not None:
        yield kernels_table(difference.kernels)
    if difference.collectives:
        yield Table(COLLECTIVES_COMPARED, difference.collectives)
    yield _differing(FINDINGS_COMPARED, difference.findings or (), "findings")
    yield _differing(BUFFERS_COMPARED, difference.buffers or (), "buffers")
    if difference.passes is not None:
        yield Table(STAGES_COMPARED, difference.passes).first(_STAGES_SHOWN, "and {} shorter ones")


def facts_table(facts: Iterable[FigureDifference]) -> Table[FigureDifference]:
    """The exact facts that are not 0 on both sides."""
    return Table(_FIGURES_SHOWN, [fact for fact in facts if fact.before or fact.after])


def kernels_table(kernels: KernelDifferences) -> Table[KernelDifference]:
    """The kernels that differ, and those with the largest parts in the difference of the times."""
    timed = kernels.difference_seconds is not None
    rows = [row for row in kernels.rows if row.status in ("new", "gone", "changed") or (timed and row.part_seconds)]
    notes: list[str] = []
    if same := len(kernels.rows) - len(rows):
        notes.append(f"kernels that are the same: {integer(same)}")
    if timed:
        notes.append(
            f"all kernels of a call: {seconds(kernels.before_seconds)} → {seconds(kernels.after_seconds)} "
            f"({_seconds_difference(kernels.difference_seconds)}); the differences of all of them add up to it. "
            "They were captured at different times."
        )
    return Table(KERNELS_COMPARED, rows, notes=tuple(notes)).first(_ROWS_SHOWN, "and {} more: --format json has all")


def named(table: Table[Any], first: str, second: str) -> Table[Any]:
    """The table with the sides' own names in its heading."""

    def title(text: str) -> str:
        return re.sub(r"\bsecond$", lambda _: second, re.sub(r"\bfirst$", lambda _: first, text))

    columns = [
        column if column.title is None else replace(column, title=title(column.title)) for column in table.columns
    ]
    return replace(table, columns=columns)


def _differing(columns: Sequence[Column[Any]], rows: Sequence[Any], what: str) -> Table[Any]:
    shown = [row for row in rows if row.status != "same"]
    same = len(rows) - len(shown)
    notes = (f"{what} that are the same: {integer(same)}",) if same else ()
    return Table(columns, shown, notes=notes).first(_ROWS_SHOWN, "and {} more: --format json has all")


def environment_table(difference: SessionDifference) -> Table[EnvironmentDifference]:
    """What differs between the environments."""
    rows = [row for row in difference.environment if row.differs]
    same = len(difference.environment) - len(rows)
    if not difference.environment:
        notes: tuple[str, ...] = ("no run reports its environment",)
    elif rows:
        notes = (f"{same} other entries are the same",) if same else ()
    else:
        notes = (f"the environments are the same ({same} entries)",)
    return Table(ENVIRONMENT, rows, notes=notes)
