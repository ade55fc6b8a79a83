"""Report a comparison, of two sessions or of the sides of a measured one: environments, then for each run its times,
exact facts, kernels, collectives, findings.

Text shows what differs and counts the rest; JSON has everything. A value that a side does not have is a dash, and its
row has no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jaxprof.analysis.compare.difference import FACTS, Difference, FigureDifference
from jaxprof.analysis.compare.kernel_difference import KernelChange, KernelDifference, KernelDifferences
from jaxprof.analysis.compare.session_difference import (
    CollectiveDifference,
    PhaseDifference,
    ProgramDifference,
    RunDifference,
    SessionDifference,
)
from jaxprof.analysis.runs.ab import AbResult, ab_results
from jaxprof.analysis.runs.speedup import AbVersus
from jaxprof.base.grouping import Pair
from jaxprof.base.text import safe
from jaxprof.base.units import UNKNOWN, bytes_, counted, growth, integer, scaled, seconds
from jaxprof.facts import FROM_FILE, HEADER, SENTENCE, Fact, Facts, column, optional, pick, recorder, within
from jaxprof.facts.kernels import places_text
from jaxprof.facts.programs import REASONS
from jaxprof.facts.runs import OF_RUN, PARAMETERS, RUNS, TIMES_COMPARED, RunRow
from jaxprof.facts.units import (
    ANY,
    BYTES,
    COUNT,
    INDEX,
    LIST,
    NUMBER,
    OBJECT,
    ROWS,
    SECONDS,
    TEXT,
    TRUTH,
    Unit,
)
from jaxprof.report.program_words import words
from jaxprof.report.renderers import WIDE, Headline, Piece, Prose, Table, report_lines
from jaxprof.report.runs import parameters_text, problems
from jaxprof.report.sides import KEPT, PLAN, SPEC, VERSUS, SideRow, ab_head, side_rows, verdict_line
from jaxprof.session import Run, Session

if TYPE_CHECKING:
    from jaxprof.analysis.programs.functions import FunctionCompiles
    from jaxprof.finding import Finding
    from jaxprof.hlo.kernels.liveness import LiveValue

_LAYOUT = re.compile(r"(?<=\])\{[^{}]*\}")
_FINDINGS_NAMED = 4
_ROWS_SHOWN = 20
_REST = "and {} more: --format json has all"
_STAGES_SHOWN = 6


def signed(value: float | None, text: str) -> str:
    """Return `text`, the shown value, with a plus sign if the value is positive."""
    return UNKNOWN if value is None else f"+{text}" if value > 0 else text


def _seconds_difference(value: float | None) -> str:
    return signed(value, "0" if value == 0 else seconds(value))


def figure(value: float | None, unit: str) -> str:
    """Return a figure of a program as people read it."""
    if unit == "byte":
        return bytes_(value)
    if unit == "second":
        return seconds(value)
    return scaled(value) if unit in ("flop", "rate") or (value is not None and value >= 1e6) else integer(value)


def growth_text(fact: FigureDifference) -> str:
    """Return `+12 %`, `-0.40 %` or `same`; `+3` if the figure was 0 before; a dash if a side is unknown."""
    if fact.differs is None:
        return UNKNOWN
    if not fact.differs:
        return "same"
    if fact.growth is None:
        return f"+{figure(fact.after, fact.unit)}"
    return growth(fact.growth)


def _verdict(row: PhaseDifference) -> str:
    if row.times.ratio is None:
        return UNKNOWN  # a side does not have the phase
    reasons = [row.times.reason]
    if row.times.together and row.before and row.after:
        reasons.append(row.times.why_not_of_medians(row.before / row.after))
    words = "; ".join(filter(None, reasons))
    return f"{row.times.verdict}: {words}" if words else row.times.verdict


def _sides(key: str, unit: Unit, meaning: str, of: str | None = None, title: str = "") -> Iterator[Fact[Any]]:
    """Yield the facts of a figure on both sides. `of`: the attribute of a side that holds the figure, or an empty text
    for the side itself; by default the row has both figures under the facts' keys."""
    for side, word in (("before", "first"), ("after", "second")):
        read = None if of is None else f"{side}.{of}" if of else side
        yield Fact(f"{side}_{key}", unit, f"{meaning} on the {word} side", read, f"{title} {word}".lstrip())


STATUS: Fact[Any] = Fact("status", TEXT, "new, gone, changed, same; outside (not of the HLO)", title="")
ENVIRONMENT: Facts[Difference[str]] = (
    Fact("name", TEXT, "Name of what may differ in the environment", "code", "environment"),
    Fact("before", TEXT, "What the first side has", title="first", widest=36),
    Fact("after", TEXT, "What the second side has", title="second", widest=36),
    Fact("differs", TRUTH, "Whether they differ; null if one is unknown"),
)
PHASES: Facts[PhaseDifference] = (
    Fact("phase", TEXT, "Name of the phase", "code", "phase"),
    *_sides("seconds", SECONDS, "Time", ""),
    column("speed-up", "times.ratio_text", right=True),
    *within("times", pick(TIMES_COMPARED, "speedup", "speedup_low", "speedup_high")),
    column("verdict", _verdict, gives_way=True),
    *within("times", pick(TIMES_COMPARED, "verdict", "reason")),
)
FIGURES: Facts[FigureDifference] = (
    Fact("fact", TEXT, "Which figure: flops, accessed_bytes, peak_bytes, kernels, compiles", "code"),
    Fact("before", NUMBER, "What the first side has"),
    Fact("after", NUMBER, "What the second side has"),
    Fact("unit", TEXT, "Its unit: second, byte, flop; null for a count"),
    Fact("growth", NUMBER, "The second over the first, less 1"),
    Fact("differs", TRUTH, "Whether they differ; null if one is unknown"),
    Fact("estimate", TRUTH, "Whether it is an estimate"),
)
_BOTH_SHOWN: Facts[FigureDifference] = (
    column("first", lambda row: figure(row.before, row.unit), right=True),
    column("second", lambda row: figure(row.after, row.unit), right=True),
)
_FIGURES_SHOWN: Facts[FigureDifference] = (
    column("exact fact", lambda row: FACTS[row.code].title + (" (estimate)" if row.estimate else "")),
    *_BOTH_SHOWN,
    column("difference", growth_text, right=True),
)


def change_text(change: KernelChange) -> str:
    """Return one change of a kernel in words: `bytes 384 KiB → 502 KiB`, `operations +2 convert`."""
    if change.code == "inside":
        return "other constants or connections inside"
    if change.code == "operations":
        gone, new = (f" {sign}{text}" if text else "" for sign, text in (("-", change.before), ("+", change.after)))
        return f"operations{gone}{new}"
    before, after = (_change_value(change.code, side) for side in (change.before, change.after))
    if before == after:  # only the layouts differ
        before, after = str(change.before), str(change.after)
    return f"{change.code} {before} → {after}"


def _change_value(what: str, value: str | float | None) -> str:
    if value is None or value == "":
        return UNKNOWN
    if isinstance(value, str):
        return _LAYOUT.sub("", value) if what in ("shape", "operands") else value
    return bytes_(value) if what == "bytes" else scaled(value) if what == "flops" else integer(value)


def _changes(row: KernelDifference) -> str:
    renamed = row.before_name and row.after_name and row.before_name != row.after_name
    parts = [f"was {row.before_name}"] if renamed and row.status == "changed" else []
    return "; ".join([*parts, *map(change_text, row.changes)])


def _source_lines(row: KernelDifference) -> str | None:
    return places_text(row.kernel.sources) if row.kernel is not None and row.kernel.sources else None


KERNELS_COMPARED: Facts[KernelDifference] = (
    STATUS,
    Fact("before_name", TEXT, "Its name on the first side"),
    Fact("after_name", TEXT, "Its name on the second side"),
    column("kernel", "name", widest=28),
    Fact("kind", TEXT, "loop fusion, GEMM, all-reduce, ...", "kernel.kind"),
    Fact("op_name", TEXT, "JAX's path", "kernel.op_name"),
    *_sides("seconds", SECONDS, "Time in one call"),
    Fact("part_seconds", SECONDS, "What it adds to the difference", title="difference", show=_seconds_difference),
    Fact("speed", TEXT, "faster or slower, where its times say so", title=""),
    column("line", _source_lines, widest=24),
    Fact("file", TEXT, "File of the source line that it comes from", "kernel.source.file"),
    Fact("line", INDEX, "Line of the source that it comes from", "kernel.source.line"),
    column("what changed", _changes, gives_way=True),
    Fact("changes", ROWS, "What differs", inside=(
        Fact("what", TEXT, "Which property of the kernel", "code"),
        Fact("before", ANY, "The property on the first side"),
        Fact("after", ANY, "The property on the second side"),
    )),
)  # fmt: skip
COLLECTIVES_COMPARED: Facts[CollectiveDifference] = (
    Fact("opcode", TEXT, "The HLO operation", title="collective"),
    Fact("group_size", COUNT, "Devices that take part", title="devices"),
    *_sides("count", COUNT, "Executions in one call"),
    *_sides("bytes", BYTES, "Bytes of all of them", title="bytes"),
    Fact("differs", TRUTH, "Whether they differ; null if one is unknown"),
)
FINDINGS_COMPARED: Facts[Pair[Finding]] = (
    STATUS,
    Fact("code", TEXT, "What kind it is, as the documents list them", "either.code", "finding"),
    Fact("before", TEXT, "The finding on the first side, in a sentence", "before.message"),
    Fact("after", TEXT, "The finding on the second side, in a sentence", "after.message"),
    column("what", "either.message", gives_way=True),
)
STAGES_COMPARED: Facts[FigureDifference] = (
    Fact("stage", TEXT, "Stage of the compiler", "code", "compile passes"),
    *_sides("seconds", SECONDS, "Self time, over all threads,", ""),
)
BUFFERS_COMPARED: Facts[Pair[LiveValue]] = (
    STATUS,
    Fact("kind", TEXT, "argument, output, temporary, constant", "either.kind", "buffer"),
    Fact("instruction", TEXT, "The HLO instruction that makes it", "either.instruction", "of", widest=30),
    *_sides("bytes", BYTES, "Size", "bytes"),
    Fact("part_bytes", BYTES, "What it adds to the difference of the peaks", lambda row: int(row.part("bytes")),
         "difference", show=lambda value: signed(value, bytes_(value))),
    Fact("shape", TEXT, "Its type and shape", "either.shape", "shape", gives_way=True),
    Fact("op_name", TEXT, "JAX's path", "either.op_name"),
)  # fmt: skip


def _why_again(row: Pair[FunctionCompiles]) -> str | None:
    reasons = [reason for reason in (row.after.reasons if row.after is not None else ()) if reason.code != "first"]
    return "; ".join(reason.text or reason.code for reason in reasons[:2]) or None


FUNCTIONS_COMPARED: Facts[Pair[FunctionCompiles]] = (
    STATUS,
    Fact("function", TEXT, "JAX's name of the function", "either.function", "compiled", widest=32),
    *_sides("count", COUNT, "Compilations", "count"),
    *_sides("seconds", SECONDS, "Time of the compilations", "seconds", "seconds"),
    column("why again", _why_again, gives_way=True),
    *(
        Fact(f"{side}_reasons", ROWS, f"Why the {word} side compiled", f"{side}.reasons", inside=REASONS)
        for side, word in (("before", "first"), ("after", "second"))
    ),
)
STATES_COMPARED: Facts[FigureDifference] = (
    Fact("state", TEXT, "What the main thread's time was spent on", "code"),
    column("main thread", lambda row: words(row.code)),
    *_sides("seconds", SECONDS, "Time", ""),
)
PROGRAM_FINDINGS_COMPARED: Facts[Pair[Finding]] = (
    STATUS,
    Fact("code", TEXT, "What kind it is, as the documents list them", "either.code"),
    column("finding", "either.message", gives_way=True),
    *(replace(fact, title=None) for fact in _sides("seconds", SECONDS, "What it cost", "seconds")),
    Fact("message", TEXT, "The sentence, with its figures", "either.message"),
)


def title(pair: RunDifference) -> str:
    """Return the heading of a pair, `selu jit cpu:0  ·  n = 1 000 000`, with both labels if they differ."""
    before, after = pair.before, pair.after
    parameters = parameters_text(after.plan.parameters) if after.plan.how != "imported" else ""
    label = after.label if before.label == after.label else f"{before.label} → {after.label}"
    return f"{label}  ·  {parameters}" if parameters else label


def answer(pair: RunDifference) -> str:
    """Return the exact facts in one line, `kernels: 1 new, 2 changed, 30 the same; FLOPs +12 %`; for programs also the
    findings that only one side has."""
    parts: list[str] = []
    if pair.program is not None:
        counts = _counts(row.status for row in pair.program.functions)
        parts.append(f"compiled functions: {counts}" if counts else "nothing was compiled")
        findings = [f"{row.either.code} {row.status}" for row in pair.program.findings if row.status != "same"]
        parts += [f"findings: {', '.join(findings[:_FINDINGS_NAMED])}"] if findings else []
    if pair.kernels is not None:
        parts.append(f"kernels: {kernel_counts(pair.kernels)}")
    facts = [fact for fact in pair.facts if fact.differs and fact.code not in ("kernels", "kernel_launches")]
    parts += [f"{FACTS[fact.code].title} {growth_text(fact)}" for fact in facts[:4]]
    if not facts and any(fact.differs is False and fact.code in _COST for fact in pair.facts):
        parts.append("cost and memory are the same, as far as both are known")
    return "; ".join(parts) if parts else "no exact fact is known of both"


def kernel_counts(kernels: KernelDifferences) -> str:
    """Count the kernels by status: `1 new, 2 gone, 2 changed, 30 the same`."""
    return _counts(row.status for row in kernels.rows) or "none"


_COST = frozenset({"flops", "accessed_bytes", "peak_bytes"})
_WORDS = {"same": "the same", "outside": "outside the HLO"}


def _counts(statuses: Iterable[str]) -> str:
    listed = list(statuses)
    order = ("new", "gone", "changed", "same", "outside")
    return ", ".join(f"{listed.count(status)} {_WORDS.get(status, status)}" for status in order if status in listed)


def tables(pair: RunDifference) -> Iterator[Table[Any]]:
    """Yield the tables of a pair for people: what differs, and a note of how many rows do not."""
    program = pair.program
    if program is not None:
        known = [row for row in program.sums if row.before is not None or row.after is not None]
        yield Table((column("program", "code"), *_BOTH_SHOWN), known)
        yield Table(STATES_COMPARED, [row for row in program.states if row.before or row.after])
        yield _differing(FUNCTIONS_COMPARED, program.functions, "functions")
        yield _differing(PROGRAM_FINDINGS_COMPARED, program.findings, "findings")
    yield Table(PHASES, pair.phases)
    yield facts_table(pair.facts)
    if pair.kernels is not None:
        yield kernels_table(pair.kernels)
    if pair.collectives:
        yield Table(COLLECTIVES_COMPARED, pair.collectives)
    yield _differing(FINDINGS_COMPARED, pair.findings or (), "findings")
    yield _differing(BUFFERS_COMPARED, pair.buffers or (), "buffers")
    if pair.passes is not None:
        yield Table(STAGES_COMPARED, pair.passes, most=_STAGES_SHOWN, rest="and {} shorter ones")


def facts_table(facts: Iterable[FigureDifference]) -> Table[FigureDifference]:
    """Return the table of the exact facts, without those that are 0 or unknown on both sides."""
    return Table(_FIGURES_SHOWN, [fact for fact in facts if fact.before or fact.after])


def kernels_table(kernels: KernelDifferences) -> Table[KernelDifference]:
    """Return the table of the kernels that differ, and of those that take part in the difference of the times."""
    timed = kernels.difference_seconds is not None
    rows = [row for row in kernels.rows if row.status in ("new", "gone", "changed") or (timed and row.part_seconds)]
    notes: list[str] = []
    if same := len(kernels.rows) - len(rows):
        notes.append(f"kernels that are the same: {integer(same)}")
    if timed:
        notes.append(
            f"all kernels of a call: {seconds(kernels.before_seconds)} → {seconds(kernels.after_seconds)} "
            f"({_seconds_difference(kernels.difference_seconds)}); the differences of all kernels add up to this. "
            "The two sides were captured at different times."
        )
    return Table(KERNELS_COMPARED, rows, notes=tuple(notes), most=_ROWS_SHOWN, rest=_REST)


def named(table: Table[Any], first: str, second: str) -> Table[Any]:
    """Return the table with the names of the sides, `first` and `second`, in its heading."""

    def with_names(text: str) -> str:
        return re.sub(r"\bsecond$", lambda _: second, re.sub(r"\bfirst$", lambda _: first, text))

    columns = [fact if fact.title is None else replace(fact, title=with_names(fact.title)) for fact in table.columns]
    return replace(table, columns=columns)


def _differing(columns: Sequence[Fact[Any]], rows: Sequence[Any], what: str) -> Table[Any]:
    shown = [row for row in rows if row.status != "same"]
    same = len(rows) - len(shown)
    notes = (f"{what} that are the same: {integer(same)}",) if same else ()
    return Table(columns, shown, notes=notes, most=_ROWS_SHOWN, rest=_REST)


def environment_table(difference: SessionDifference) -> Table[Difference[str]]:
    """Return the table of what differs between the environments. A NumPy run has no JAX, and no settings of it that
    could differ from those of the other side."""
    versions = next((row for row in difference.environment if row.code == "jax"), None)
    one_sided = versions is not None and None in (versions.before, versions.after)
    compared = [
        row for row in difference.environment if not one_sided or (row.before is not None and row.after is not None)
    ]
    rows = [row for row in compared if row.differs]
    same = len(compared) - len(rows)
    notes = ["one side reports no JAX, whose settings are left out"] if one_sided else []
    if not compared:
        notes = ["one side reports no environment" if difference.environment else "no run reports its environment"]
    elif rows and same:
        notes.append(f"{counted(same, 'other entry is', 'other entries are')} the same")
    elif not rows:
        notes.append(f"the environments are the same ({counted(same, 'entry', 'entries')})")
    return Table(ENVIRONMENT, rows, notes=tuple(notes))


def _notes(difference: SessionDifference) -> Iterator[str]:
    for session in (difference.before, difference.after):
        yield from (f"note: {notice}" for notice in session.notices)
    if not difference.runs:
        yield "No run of the first session matches a run of the second: " + _why_no_pair(difference)
    for side, runs in (("first", difference.only_before), ("second", difference.only_after)):
        for run in runs:
            parameters = parameters_text(run.plan.parameters)
            yield f"only in the {side} session: {run.id} {run.label}{f' ({parameters})' if parameters else ''}"


def _why_no_pair(difference: SessionDifference) -> str:
    for side, session in (("first", difference.before), ("second", difference.after)):
        if not session.runs:
            return f"the {side} has no runs."
    first, second = (next(iter(session.runs)) for session in (difference.before, difference.after))
    return (
        "workload, variant, kind of device and parameters must be equal. To compare two runs all the same, name a run "
        f"of each: jaxprof compare FIRST:{first} SECOND:{second}."
    )


def _session_line(name: str, session: Session) -> str:
    header = session.header
    return safe(f"{name}: {header.session}  ·  {header.created}  ·  {header.host}  ·  {session.state_words}")


def comparison_pieces(difference: SessionDifference) -> Iterator[Piece]:
    """Yield the report on two sessions."""
    if difference.before is difference.after:  # two of its runs
        yield _session_line("session", difference.before)
    else:
        for name, session in (("first", difference.before), ("second", difference.after)):
            yield _session_line(name, session)
            yield from (Prose(verdict_line(kept), hang=2) for result in ab_results(session) for kept in result.versus)
    yield from ("", environment_table(difference))
    for pair in difference.runs:
        yield from ("", Headline(title(pair)))
        if pair.side is not None:
            yield Prose(verdict_line(pair.side))
        yield Prose(answer(pair))
        yield from (Prose(f"not the same measurement: {reason}") for reason in pair.unlike)
        yield from _apart(tables(pair))
    if notes := list(_notes(difference)):
        yield ""
        yield from (Prose(note, "", 2) for note in notes)


def _apart(listed: Iterable[Table[Any]]) -> Iterator[Piece]:
    """Yield the tables that are not empty, with an empty line before each."""
    for table in listed:
        if table.rows or table.notes:
            yield from ("", table)


RUN_COMPARED: Facts[Run] = (
    Fact("run", TEXT, "Id of the run", "id"),
    *pick(OF_RUN, "workload", "variant", "device"),
    PARAMETERS,
    Fact("status", TEXT, "How it ended", "shown.status"),
)
_SIDE: Facts[Session] = (
    *HEADER,
    replace(FROM_FILE, read="from_file"),
    Fact("state", TEXT, "complete, interrupted, or the signal that ended it"),
    Fact("notices", LIST, "What of the session could not be read"),
    Fact("comparisons", ROWS, "Measured comparisons that it holds", ab_results, inside=KEPT),
)
_OF_BOTH: Facts[Any] = (
    Fact("before", NUMBER, "The figure of the first program"),
    Fact("after", NUMBER, "The figure of the second program"),
)


def _sum(key: str, meaning: str, code: str) -> Fact[ProgramDifference]:
    def read(difference: ProgramDifference) -> FigureDifference:
        return next(row for row in difference.sums if row.code == code)

    return Fact(key, OBJECT, meaning, read, inside=_OF_BOTH)


_PROGRAM: Facts[ProgramDifference] = (
    _sum("steps_per_second", "Steps of the hottest loop a second", "steps a second"),
    _sum("wall_seconds", "Wall time", "wall time"),
    _sum("compiles", "Compilations", "compilations"),
    _sum("compiling_seconds", "Time of all stages of all compilations", "compile time"),
    _sum("arrays_peak_bytes", "The most bytes that live arrays held at once", "most live arrays"),
    Fact("functions", ROWS, "What was compiled, by function", inside=FUNCTIONS_COMPARED),
    Fact("timeline", ROWS, "What the main thread's time was spent on", "states", inside=STATES_COMPARED),
    Fact("findings", ROWS, "What is worth changing", inside=PROGRAM_FINDINGS_COMPARED),
)


def _timed_kernels(pair: RunDifference) -> KernelDifferences | None:
    """Return the kernels of a pair; None unless the times of all of them are known."""
    kernels = pair.kernels
    return None if kernels is None or kernels.difference_seconds is None else kernels


PAIR: Facts[RunDifference] = (
    Fact("before", OBJECT, "The first run", inside=RUN_COMPARED),
    Fact("after", OBJECT, "The second run", inside=RUN_COMPARED),
    Fact("side", OBJECT, "How the two compare, where they were measured in turns", inside=VERSUS),
    Fact("unlike", LIST, "Why the two runs are not the same measurement"),
    Fact("differs", TRUTH, "Whether they differ in exact facts; null if unknown"),
    Fact("answer", TEXT, "What differs in exact facts, in a line", answer),
    Fact("phases", ROWS, "The phases of a call", inside=PHASES),
    Fact("facts", ROWS, "Exact figures, which have no noise", inside=FIGURES),
    Fact("kernels", ROWS, "Kernels", "kernels.rows", inside=KERNELS_COMPARED),
    Fact("kernels_seconds", OBJECT, "Time of all kernels of a call", _timed_kernels, inside=(
        Fact("before", SECONDS, "Time of all kernels on the first side", "before_seconds"),
        Fact("after", SECONDS, "Time of all kernels on the second side", "after_seconds"),
        Fact("difference", SECONDS, "The second less the first", "difference_seconds"),
    )),
    Fact("collectives", ROWS, "Collectives", inside=COLLECTIVES_COMPARED),
    Fact("findings", ROWS, "What is worth changing in the HLO", inside=FINDINGS_COMPARED),
    Fact("buffers", ROWS, "Buffers", inside=BUFFERS_COMPARED),
    Fact("compile_stages", ROWS, "Stages of the compiler", "passes", inside=STAGES_COMPARED),
    optional("program", OBJECT, "What differs between two recorded programs", inside=_PROGRAM),
)  # fmt: skip
DIFFERENCE: Facts[SessionDifference] = (
    Fact("before", OBJECT, "The first session", inside=_SIDE),
    Fact("after", OBJECT, "The second session", inside=_SIDE),
    Fact("environment", ROWS, "Versions, devices, machine and settings", inside=ENVIRONMENT),
    Fact("runs", ROWS, "Runs that belong together", inside=PAIR),
    Fact("only_before", ROWS, "Runs that only the first session has", inside=RUN_COMPARED),
    Fact("only_after", ROWS, "Runs that only the second session has", inside=RUN_COMPARED),
)


def ab_lines(result: AbResult) -> Iterator[str]:
    """Yield the report of a measured comparison as text."""
    differences = (piece for versus in result.versus for piece in _all_differences(result, versus))
    sides = (RunRow(side.run.plan.side, side) for side in result.sides)
    yield from report_lines((*ab_head(result), *differences, *problems(sides), ""), WIDE)


def _all_differences(result: AbResult, versus: AbVersus) -> Iterator[Piece]:
    """Yield what differs between A and one side: the environments, exact facts, kernels, and last the phases."""
    difference = result.difference(versus)
    (pair,) = difference.runs
    yield from ("", Prose(f"A → {versus.label}: {answer(pair)}", hang=2))
    listed = list(tables(pair))
    times = [table for table in listed if table.columns is PHASES]
    exact = [table for table in listed if table.columns is not PHASES]
    yield from _apart(named(table, "A", versus.label) for table in (environment_table(difference), *exact, *times))


_VERSUS: Facts[SessionDifference] = (
    *within(lambda difference: difference.runs[0], (
        *within("side", VERSUS),
        *(fact for fact in PAIR if fact.key != "side"),
    )),
    Fact("environment", ROWS, "What differs between the environments",
         lambda difference: environment_table(difference).rows, inside=ENVIRONMENT),
)  # fmt: skip
_MEASURED_SIDE: Facts[SideRow] = (
    *SPEC,
    *within(
        "result",
        (
            *pick(RUNS.facts, "workload", "variant", "device"),
            Fact("python", TEXT, "Version of Python", "run.python"),
            Fact("jax", TEXT, "Version of jax", "run.environment.jax"),
            Fact("status", TEXT, "How it ended", "run.shown.status"),
            Fact("error", TEXT, "Why it failed", "run.shown.error"),
            Fact("median_seconds", SECONDS, "Median time of a call", "summary.median"),
            Fact("ci95_low_seconds", SECONDS, "Lower bound of the 95 % interval of that median", "summary.low"),
            Fact("ci95_high_seconds", SECONDS, "Upper bound of the 95 % interval of that median", "summary.high"),
            Fact("warnings", ROWS, "Warnings: why the figures are less certain than they look", inside=SENTENCE[:2]),
        ),
    ),
)  # fmt: skip
AB: Facts[AbResult] = (
    *PLAN,
    Fact("versus", ROWS, "Each side beside A", lambda result: list(map(result.difference, result.versus)),
         inside=_VERSUS),
    Fact("sides", ROWS, "What was compared", side_rows, inside=_MEASURED_SIDE),
)  # fmt: skip
ab_json = recorder(AB)
"""Return a measured comparison as JSON-ready data: times in seconds, shares from 0 to 1, None for unknown."""
