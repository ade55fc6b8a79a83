"""Facts of a comparison: of two sessions run by run, of the sides of a measured one, and of two HLO modules.

A value that a side does not have is None, and its row has no difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

from jaxprof.analysis.programs.functions import FunctionCompiles
from jaxprof.analysis.runs.ab import AbResult, ab_results
from jaxprof.base.grouping import Pair
from jaxprof.base.text import safe
from jaxprof.base.units import UNKNOWN, bytes_, growth, integer, percent, ratio, scaled, seconds
from jaxprof.events.finding import Finding
from jaxprof.facts import FROM_FILE, HEADER, SENTENCE, Fact, Facts, column, optional, pick, recorder, within
from jaxprof.facts.kernels import lines_text
from jaxprof.facts.programs import REASONS
from jaxprof.facts.runs import OF_RUN, PARAMETERS, RUNS, TIMES_COMPARED
from jaxprof.facts.sides import KEPT, PLAN, SPEC, VERSUS, SideRow, side_rows
from jaxprof.facts.units import (
    AMOUNT,
    ANY,
    BYTES,
    COUNT,
    FLOPS,
    INDEX,
    LIST,
    NUMBER,
    OBJECT,
    RATE,
    REUSED_BYTES,
    ROWS,
    SECONDS,
    TEXT,
    TRUTH,
    Unit,
)
from jaxprof.findings.compare import Difference, FigureDifference
from jaxprof.findings.compare.kernel_difference import KernelChange, KernelDifference, KernelDifferences
from jaxprof.findings.compare.program_difference import ARGUMENTS, CODE, SCRIPT, ProgramDifference
from jaxprof.findings.compare.session_difference import (
    CollectiveDifference,
    ModuleDifference,
    PhaseDifference,
    RunDifference,
    SessionDifference,
    ab_difference,
    module_difference,
)
from jaxprof.hlo.text.model import Module
from jaxprof.session import Run, Session
from jaxprof.stats.comparison import ONE_LAUNCH

if TYPE_CHECKING:
    from jaxprof.hlo.kernels.liveness import LiveValue
    from jaxprof.hlo.text_difference import ComputationLines

_LAYOUT = re.compile(r"(?<=\])\{[^{}]*\}")
_FINDINGS_NAMED = 4


def with_sign(value: float | None, text: str) -> str:
    """Return `text`, the shown value, with a plus sign if the value is positive."""
    if value is None:
        return UNKNOWN
    return f"+{text}" if value > 0 else text


def seconds_difference(value: float | None) -> str:
    return with_sign(value, "0" if value == 0 else seconds(value))


def _exact(key: str, unit: Unit, title: str, meaning: str) -> Fact[Mapping[str, float]]:
    return Fact(key, unit, meaning, lambda known: known.get(key), title)


EXACT: Facts[Mapping[str, float]] = (
    _exact("kernels", AMOUNT, "kernels", "Kernels that the program consists of"),
    _exact("kernel_launches", AMOUNT, "kernel launches", "Executions of kernels in one call"),
    _exact("flops", FLOPS, "FLOPs", "Floating-point operations of one call"),
    _exact("accessed_bytes", BYTES, "bytes accessed", "Bytes that kernels read and write in one call"),
    _exact("transcendentals", AMOUNT, "transcendentals", "Evaluations of exp, log, tanh... in one call"),
    # The CPU compiler computes 16-bit floats in float32, which hides an upcast in all other figures.
    _exact("product_bytes", BYTES, "operands of products",
           "Operands of matrix products and convolutions, in the dtypes that the program requests"),
    _exact("peak_bytes", BYTES, "peak memory", "Largest memory that one call holds at once"),
    _exact("argument_bytes", BYTES, "arguments", "Memory of the arguments"),
    _exact("output_bytes", BYTES, "outputs", "Memory of the results"),
    _exact("temporary_bytes", BYTES, "temporaries", "Memory of what one call makes and drops"),
    _exact("constant_bytes", BYTES, "constants", "Memory of constants"),
    _exact("alias_bytes", REUSED_BYTES, "donated memory", "Memory of donated arguments that results reuse"),
    _exact("generated_code_bytes", BYTES, "generated code", "Size of the machine code"),
    _exact("collectives", AMOUNT, "collectives", "Executions of collectives in one call"),
    _exact("collective_bytes", BYTES, "bytes exchanged", "Bytes that collectives exchange in one call"),
    _exact("compiles", AMOUNT, "compiles", "Programs that one launch compiles"),
)  # fmt: skip
"""Exact facts of a compiled program, read from what is known of it by key."""
TIMES: Facts[Any] = (
    Fact("run", SECONDS, "Time of a call", title="time of a call"),
    Fact("first_run", SECONDS, "Time of the first call", title="first call"),
    Fact("trace", SECONDS, "Time of tracing", title="trace"),
    Fact("lower", SECONDS, "Time of lowering", title="lower"),
    Fact("compile", SECONDS, "Time of compiling", title="compile"),
)
"""Phases of a call that may have a limit, by code."""
SUMS: Facts[Any] = (
    Fact("steps_per_second", RATE, "Steps of the hottest loop a second", title="steps a second"),
    Fact("wall_seconds", SECONDS, "Wall time", title="wall time"),
    Fact("compiles", AMOUNT, "Compilations", title="compilations"),
    Fact("compiling_seconds", SECONDS, "Time of all stages of all compilations", title="compile time"),
    Fact("arrays_peak_bytes", BYTES, "The most bytes that live arrays held at once", title="most live arrays"),
)
_UNITS = {fact.key: fact.unit for fact in (*SUMS, *EXACT, *TIMES)}


def exact_facts(difference: ModuleDifference) -> list[FigureDifference]:
    """Return the exact facts that at least one side knows, in the order of `EXACT`."""
    return [difference.facts[fact.key] for fact in EXACT if fact.key in difference.facts]


def figure_text(row: FigureDifference, side: Literal["before", "after"]) -> str:
    return _UNITS[row.code].show(getattr(row, side))


def growth_text(fact: FigureDifference) -> str:
    """Return `+12 %`, `-0.40 %` or `same`; `+3` if the figure was 0 before; a dash if a side is unknown."""
    if fact.differs is None:
        return UNKNOWN
    if not fact.differs:
        return "same"
    if fact.growth is None:
        return f"+{figure_text(fact, 'after')}"
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
        read = None if of is None else f"{side}.{of}".rstrip(".")
        yield Fact(f"{side}_{key}", unit, f"{meaning} on the {word} side", read, f"{title} {word}".lstrip())


STATUS: Fact[Any] = Fact(
    "status", TEXT, "new, gone, changed, same; outside (not of the HLO); unclear (chance, or a side cut off)", title=""
)
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
    Fact("unit", TEXT, "Its unit: second, byte, flop; null for a count", lambda row: _UNITS[row.code].name),
    Fact("growth", NUMBER, "The second over the first, less 1"),
    Fact("differs", TRUTH, "Whether they differ; null if one is unknown"),
    Fact("estimate", TRUTH, "Whether it is an estimate"),
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
    return {"bytes": bytes_, "flops": scaled}.get(what, integer)(value)


def _changes(row: KernelDifference) -> str:
    renamed = row.before_name and row.after_name and row.before_name != row.after_name
    parts = [f"was {row.before_name}"] if renamed and row.status == "changed" else []
    return "; ".join([*parts, *map(change_text, row.changes)])


KERNELS_COMPARED: Facts[KernelDifference] = (
    STATUS,
    Fact("before_name", TEXT, "Its name on the first side"),
    Fact("after_name", TEXT, "Its name on the second side"),
    column("kernel", "name", widest=28),
    Fact("kind", TEXT, "loop fusion, GEMM, all-reduce, ...", "kernel.kind"),
    Fact("op_name", TEXT, "JAX's path", "kernel.op_name"),
    *_sides("seconds", SECONDS, "Time in one call"),
    Fact("part_seconds", SECONDS, "What it adds to the difference", title="difference", show=seconds_difference),
    Fact("speed", TEXT, "faster or slower, where its times say so", title=""),
    column("line", lambda row: lines_text(row.kernel.sources) if row.kernel and row.kernel.sources else None,
           widest=24),
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
         "difference", show=lambda value: with_sign(value, bytes_(value))),
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
    *_sides("seconds", SECONDS, "Time", ""),
)
PROGRAM_FINDINGS_COMPARED: Facts[Pair[Finding]] = (
    STATUS,
    Fact("code", TEXT, "What kind it is, as the documents list them", "either.code"),
    column("finding", "either.message", gives_way=True),
    *(replace(fact, title=None) for fact in _sides("seconds", SECONDS, "What it cost", "seconds")),
    Fact("message", TEXT, "The sentence, with its figures", "either.message"),
)


_SHIFTS_NAMED = 2


def program_change_text(change: Difference[str]) -> str:
    """Return one difference between two programs in words: `different arguments: none → --epochs 4`."""
    if change.code == CODE:
        return f"different code: {change.after}"
    before, after = change.before or "none", change.after or "none"
    kind = {SCRIPT: "different scripts: ", ARGUMENTS: "different arguments: "}.get(change.code, f"{change.code} ")
    return safe(f"{kind}{before} → {after}")


def program_answer(program: ProgramDifference) -> Iterator[str]:
    """Yield what differs between two programs, first what explains the rest: how they were started, which is faster,
    where the time went. What is the same is mentioned only if nothing differs."""
    yield from map(program_change_text, program.changes)
    pace, speedup = program.pace, program.speedup
    if pace is not None and speedup is not None:
        subject = "a step of the second" if pace.code == "step_seconds" else "the second program"
        words = {
            "faster": f"{subject} is {ratio(speedup).rstrip('×')} times as fast",
            "slower": f"{subject} takes {ratio(1 / speedup).rstrip('×')} times as long",
            "same": f"{subject} takes as long, within the {percent(ONE_LAUNCH)} by which two recordings may differ",
        }[program.verdict or "same"]
        yield f"{words}: {seconds(pace.before)} → {seconds(pace.after)}"
    bounds = [side.verdict.kind for side in (program.before, program.after)]
    if None not in bounds and bounds[0] != bounds[1]:
        yield f"{bounds[0]} → {bounds[1]}"
    for row in program.shifts[:_SHIFTS_NAMED]:
        yield f"{row.code.replace('_', ' ')} {seconds(row.before)} → {seconds(row.after)}"
    counts = _counts(row.status for row in program.functions)
    differ = any(row.status != "same" for row in program.functions)
    if differ or not (program.changes or program.shifts or program.verdict in ("faster", "slower")):
        yield f"compiled functions: {counts}" if counts else "nothing was compiled"
    findings = [f"{row.either.code} {row.status}" for row in program.findings if row.status in ("new", "gone")]
    if findings:
        yield f"findings: {', '.join(findings[:_FINDINGS_NAMED])}"


def answer(pair: RunDifference) -> str:
    """Return what differs in one line, `kernels: 1 new, 2 changed, 30 the same; FLOPs +12 %`: of programs the times of
    their recordings, too, of all others exact facts."""
    parts = list(program_answer(pair.program)) if pair.program is not None else []
    if pair.kernels is not None:
        parts.append(f"kernels: {kernel_counts(pair.kernels)}")
    differing = [fact for fact in EXACT[2:] if (row := pair.facts.get(fact.key)) is not None and row.differs]
    parts += [f"{fact.title} {growth_text(pair.facts[fact.key])}" for fact in differing[:4]]
    if not differing and any(fact.differs is False and fact.code in _COST for fact in pair.facts.values()):
        parts.append("cost and memory are the same, as far as both are known")
    return "; ".join(parts) if parts else "no exact fact is known of both"


def kernel_counts(kernels: KernelDifferences) -> str:
    """Count the kernels by status: `1 new, 2 gone, 2 changed, 30 the same`."""
    return _counts(row.status for row in kernels.rows) or "none"


_COST = frozenset({"flops", "accessed_bytes", "peak_bytes"})
_WORDS = {"same": "the same", "outside": "outside the HLO", "unclear": "not seen on a side that was cut off"}


def _counts(statuses: Iterable[str]) -> str:
    listed = list(statuses)
    order = ("new", "gone", "changed", "unclear", "same", "outside")
    return ", ".join(f"{listed.count(status)} {_WORDS.get(status, status)}" for status in order if status in listed)


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


def _sum(code: str) -> Callable[[ProgramDifference], FigureDifference]:
    return lambda difference: next(row for row in difference.sums if row.code == code)


_PROGRAM: Facts[ProgramDifference] = (
    Fact(
        "changes",
        ROWS,
        "What differs between the programs themselves",
        inside=(
            Fact("what", TEXT, "script, arguments, code, jax, jaxlib", "code"),
            Fact("before", TEXT, "What the first program has; of code the files that differ"),
            Fact("after", TEXT, "What the second program has"),
        ),
    ),
    Fact("verdict", TEXT, "faster, slower or same, of the second; null if unknown"),
    Fact("speedup", NUMBER, "How many times as fast the second is"),
    Fact("pace", TEXT, "What decides that: step_seconds or wall_seconds", "pace.code"),
    *(Fact(fact.key, OBJECT, fact.meaning, _sum(fact.key), inside=_OF_BOTH) for fact in SUMS),
    Fact("functions", ROWS, "What was compiled, by function", inside=FUNCTIONS_COMPARED),
    Fact("timeline", ROWS, "What the main thread's time was spent on", "states", inside=STATES_COMPARED),
    Fact("findings", ROWS, "What is worth changing", inside=PROGRAM_FINDINGS_COMPARED),
)


PAIR: Facts[RunDifference] = (
    Fact("before", OBJECT, "The first run", inside=RUN_COMPARED),
    Fact("after", OBJECT, "The second run", inside=RUN_COMPARED),
    Fact("side", OBJECT, "How the two compare, where they were measured in turns", inside=VERSUS),
    Fact("unlike", LIST, "Why the two runs are not the same measurement"),
    Fact("differs", TRUTH, "Whether they differ in exact facts; null if unknown"),
    Fact("answer", TEXT, "What differs in exact facts, in a line", answer),
    Fact("phases", ROWS, "The phases of a call", inside=PHASES),
    Fact("facts", ROWS, "Exact figures, which have no noise", exact_facts, inside=FIGURES),
    Fact("kernels", ROWS, "Kernels", "kernels.rows", inside=KERNELS_COMPARED),
    Fact("kernels_seconds", OBJECT, "Time of all kernels of a call",
         lambda pair: pair.kernels if pair.kernels and pair.kernels.difference_seconds is not None else None, inside=(
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


def comparable_environment(difference: SessionDifference) -> tuple[list[Difference[str]], bool]:
    """Return what of the environments can be compared, and whether one side reports no JAX, so has no such settings."""
    versions = next((row for row in difference.environment if row.code == "jax"), None)
    one_sided = versions is not None and None in (versions.before, versions.after)
    known = [row for row in difference.environment if not one_sided or None not in (row.before, row.after)]
    return known, one_sided


_VERSUS: Facts[SessionDifference] = (
    *within(lambda difference: difference.runs[0], (
        *within("side", VERSUS),
        *(fact for fact in PAIR if fact.key != "side"),
    )),
    Fact("environment", ROWS, "What differs between the environments",
         lambda difference: [row for row in comparable_environment(difference)[0] if row.differs], inside=ENVIRONMENT),
)  # fmt: skip
_MEASURED_SIDE: Facts[SideRow] = (
    *SPEC,
    *within(
        "result",
        (
            *pick(RUNS.facts, "workload", "variant", "device"),
            Fact("python", TEXT, "Version of Python", "run.python"),
            Fact("jax", TEXT, "Version of jax", "run.environment.jax"),
            *pick(RUNS.facts, "status", "error"),
            Fact("median_seconds", SECONDS, "Median time of a call", "summary.median"),
            Fact("ci95_low_seconds", SECONDS, "Lower bound of the 95 % interval of that median", "summary.low"),
            Fact("ci95_high_seconds", SECONDS, "Upper bound of the 95 % interval of that median", "summary.high"),
            Fact("warnings", ROWS, "Warnings: why the figures are less certain than they look", inside=SENTENCE[:2]),
        ),
    ),
)  # fmt: skip
AB: Facts[AbResult] = (
    *PLAN,
    Fact("versus", ROWS, "Each side beside A",
         lambda result: [ab_difference(result, versus) for versus in result.versus], inside=_VERSUS),
    Fact("sides", ROWS, "What was compared", side_rows, inside=_MEASURED_SIDE),
)  # fmt: skip
ab_json = recorder(AB)
"""Return a measured comparison as JSON-ready data: times in seconds, shares from 0 to 1, None for unknown."""


_SIDES: Facts[Any] = (Fact("before", TEXT, "What the first side has"), Fact("after", TEXT, "What the second side has"))


_COMPUTATION: Facts[ComputationLines] = (
    *within("computation", (
        STATUS,
        Fact("before", TEXT, "Name on the first side", "before.name"),
        Fact("after", TEXT, "Name on the second side", "after.name"),
    )),
    Fact("lines", ROWS, "Lines that differ",
         lambda computation: [line for line in computation.lines if line.status != "same"], inside=(
             STATUS,
             Fact("before", TEXT, "The line of the first side", "before.text"),
             Fact("after", TEXT, "The line of the second side", "after.text"),
         )),
)  # fmt: skip
HLO_DIFFERENCE: Facts[Any] = (
    Fact("before", TEXT, "Name of the first module", "before.name"),
    Fact("after", TEXT, "Name of the second module", "after.name"),
    *within(
        "text",
        (
            Fact("differs", TRUTH, "Whether they differ in the computation"),
            Fact("header", ROWS, "Attributes of the module that differ",
                 inside=(Fact("name", TEXT, "Name of the attribute"), *_SIDES)),
            Fact("computations", ROWS, "Computations that differ", inside=_COMPUTATION),
            Fact("kernel_settings", ROWS, "How XLA emits kernels that compute the same: tiles, warps, algorithms",
                 "settings", inside=(
                     Fact("kernel", TEXT, "The kernel, by its instruction's name"),
                     Fact("name", TEXT, "Name of the setting"),
                     *_SIDES,
                 )),
            Fact("custom_code", LIST, "Custom kernels whose code has different bytes", "code"),
            Fact("reordered", ROWS, "Computations that run in another order", inside=(
                Fact("computation", TEXT, "Its name", itemgetter(0)),
                Fact("before", TEXT, "The first instruction that differs, on the first side", itemgetter(1)),
                Fact("after", TEXT, "The first instruction that differs, on the second side", itemgetter(2)),
            )),
        ),
    ),
    Fact("facts", ROWS, "Exact figures", lambda row: exact_facts(row.exact), inside=FIGURES),
    Fact("kernels", ROWS, "Kernels; null if unknown", "exact.kernels.rows", inside=KERNELS_COMPARED),
)  # fmt: skip


def difference_row(before: Module, after: Module) -> dict[str, Any]:
    """Return what the facts of a difference read, by attribute."""
    from jaxprof.hlo.text_difference import text_difference

    text, exact = text_difference(before, after), module_difference(before, after)
    return {"before": before, "after": after, "text": text, "exact": exact}
