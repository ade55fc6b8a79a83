"""Facts of a recorded program: what it compiled, copied and waited for, its findings, and the program as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from jaxprof.analysis.programs.result import ProgramResult
from jaxprof.analysis.programs.sentences import compile_reason
from jaxprof.base.values import frozen
from jaxprof.events import SourceLocation
from jaxprof.facts import OF_FINDING, RUN, SENTENCE, Fact, Facts, Relation, RunItems, columns, optional, pick, within
from jaxprof.facts.units import (
    BY_NAME,
    BYTES,
    COUNT,
    INDEX,
    LIST,
    NUMBER,
    NUMBER_BY_NAME,
    OBJECT,
    RATE,
    ROWS,
    SECONDS,
    SHARE,
    TEXT,
    TRUTH,
)
from jaxprof.findings.program_result import program_result
from jaxprof.session import Run, Session

COUNTS_KEPT = 200
"""Most counts of the live arrays in the JSON, evenly spaced if there were more."""


@frozen
class ProgramRow:
    """One of several items of a program: a compilation, a finding, a copy, a state or a line."""

    program: ProgramResult
    item: Any

    @property
    def run(self) -> Run:
        return self.program.run

    def short(self, where: SourceLocation | None) -> str | None:
        """Return a source location relative to the working folder of the program; None if unknown."""
        return where.short(self.program.directory) if where else None


ProgramFact = Fact[ProgramRow]


def rows_of(program: ProgramResult, items: Iterable[Any]) -> list[ProgramRow]:
    return [ProgramRow(program, item) for item in items]


def share(row: ProgramRow) -> float | None:
    """Return the share of an item in the wall time of its program; None if unknown."""
    return row.program.of_wall(row.item.seconds)


SHARE_OF_WALL: ProgramFact = Fact("share", SHARE, "Share of the wall time, in 0..1", share, "share")
_ARRAY: Facts[Any] = (Fact("type", TEXT, "Its dtype and shape, f32[4]"), Fact("bytes", BYTES, "Its size"))
_ARGUMENT: Facts[Any] = (
    Fact("name", TEXT, "Its name"),
    Fact("type", TEXT, "Its dtype and shape, or a static value"),
    optional("static", TRUTH, "It is a static argument"),
    optional("weak_type", TRUTH, "Its dtype gives way to others'"),
    optional("sharding", TEXT, "How it is sharded"),
    Fact("from", TEXT, "numpy: it is copied to the device at each call", lambda leaf: "numpy", when="from_numpy"),
    Fact("bytes", BYTES, "Size of the NumPy array", when="from_numpy"),
    optional("narrowed", TEXT, "Dtype of the NumPy array, which each call converts"),
    optional("replaced", TRUTH, "Only the first call passes it from NumPy: params = step(params)"),
    optional("zero_copy", TRUTH, "A CPU uses the NumPy array in place"),
)
_NAMED: Facts[Any] = (
    Fact("function", TEXT, "JAX's name of the compiled function"),
    Fact("called_from", TEXT, "file:line of the call that compiled it", "called_from.text"),
    Fact("called_in", TEXT, "The function that the line is in", "called_from.function"),
    Fact("defined_at", TEXT, "file:line of its definition", "defined_at.text"),
)
_OF_KIND: Facts[Any] = (
    Fact("op_by_op", TRUTH, "Whether it is a single operation, outside any jit"),
    Fact("library", TRUTH, "Whether it is defined in a library"),
)
COMPILES: tuple[ProgramFact, ...] = (
    *within("item", _NAMED),
    Fact("began_seconds", SECONDS, "When it began, since the program began",
         lambda row: row.item.began_seconds - row.program.began_seconds if row.item.began_seconds else None, "at"),
    *within("item", (
        Fact("trace_seconds", SECONDS, "Python to jaxpr; null if it did not happen", title="trace"),
        Fact("lower_seconds", SECONDS, "jaxpr to StableHLO; null if it did not happen", title="lower"),
        Fact("compile_seconds", SECONDS, "StableHLO to an executable; null if it did not happen", title="compile"),
        Fact("cache", TEXT, "The persistent compilation cache: hit, miss, off", title="cache"),
        Fact("saved_seconds", SECONDS, "Time that a hit of the cache saved"),
        Fact("reason", TEXT, "Why it was compiled again, in words; null for the first time", compile_reason),
        Fact("reason_code", TEXT, "first, shape, dtype, weak_type, structure, static_argument, new_function, closure, "
             "sharding, config, ..."),
        Fact("made_at", TEXT, "file:line that calls the factory, which makes the function anew each time",
             "made_at.text"),
        Fact("factory", TEXT, "The function that makes it"),
        Fact("closure", ROWS, "Variables of the factory that have changed", inside=(
            Fact("name", TEXT, "Its name"),
            Fact("before", TEXT, "The value at the earlier compilation"),
            Fact("now", TEXT, "The value now"),
        )),
        Fact("cleared_at", TEXT, "file:line of the last jax.clear_caches()", "cleared_at.text"),
        Fact("signature", ROWS, "The arguments", inside=_ARGUMENT),
        Fact("signature_more", COUNT, "Arguments that are not listed"),
        Fact("numpy_bytes", BYTES, "What each call copies from NumPy arrays to the device"),
        Fact("unused_donations", ROWS, "Donated arguments that no output can take",
             inside=(Fact("name", TEXT, "Its name"), *_ARRAY)),
        Fact("operations", COUNT, "Operations of its StableHLO"),
        Fact("made_by", ROWS, "Lines that made most of its operations, if it is large", inside=(
            Fact("place", TEXT, "file:line", "location.text"),
            Fact("name", TEXT, "JAX's name of the operations"),
            Fact("share", SHARE, "Of all operations, by a sample of them"),
        )),
        Fact("constants", ROWS, "Large constants in it", inside=_ARRAY),
        Fact("thread", TEXT, "The thread; null for the main one"),
        *_OF_KIND,
        Fact("count", COUNT, "Compilations in this row; more than 1 in a long ledger"),
    )),
)  # fmt: skip
FINDINGS: tuple[ProgramFact, ...] = tuple(within("item", (
    *SENTENCE,
    Fact("place", TEXT, "file:line to change", "where.text"),
    *OF_FINDING,
    Fact("estimate", TRUTH, "Whether seconds is an estimate"),
)))  # fmt: skip
TRANSFERS: tuple[ProgramFact, ...] = tuple(within("item", (
    Fact("direction", TEXT, "host_to_device, device_to_host"),
    Fact("count", COUNT, "Samples of the stack in which such a copy was seen"),
    Fact("seconds", SECONDS, "Time of all of these copies, those to the host with the wait for the value: an estimate"),
    Fact("place", TEXT, "file:line", "where.text"),
)))  # fmt: skip
TIMELINE: tuple[ProgramFact, ...] = (
    *within("item", (
        Fact("state", TEXT,
             "import, data, trace, lower, compile, transfer, device_busy, host_busy, waiting, paused, not_seen"),
        Fact("seconds", SECONDS, "Time in that state"),
    )),
    SHARE_OF_WALL,
    Fact("exact", TRUTH, "Whether JAX announced it; else it is an estimate from samples", "item.exact"),
)  # fmt: skip
LINES: tuple[ProgramFact, ...] = (
    *within("item", (
        Fact("place", TEXT, "file:line", "location.text"),
        Fact("function", TEXT, "The function that the line is in", "location.function", "in", widest=18),
        Fact("state", TEXT, "data, trace, lower, compile, transfer, device_busy, host_busy, waiting"),
        Fact("call", TEXT, "What is called there", title="calls", widest=24),
        Fact("seconds", SECONDS, "Time at that line in that state"),
    )),
    SHARE_OF_WALL,
)  # fmt: skip


def _items(key: str, session: Session, run: Run) -> list[ProgramRow] | None:
    if not run.is_program:
        return None
    program = program_result(session, run.id)
    return rows_of(program, getattr(program, key))


VIEWS = {
    key: RunItems(facts, partial(_items, key))
    for key, facts in (
        ("compiles", COMPILES), ("findings", FINDINGS), ("transfers", TRANSFERS), ("timeline", TIMELINE),
    )
}  # fmt: skip
"""Items of a program that can be printed alone, by the attribute with the items."""


def _rows(key: str, meaning: str, facts: tuple[ProgramFact, ...]) -> Fact[ProgramResult]:
    return Fact(key, ROWS, meaning, lambda program: rows_of(program, getattr(program, key)), inside=facts)


_WHERE: Fact[Any] = Fact("place", TEXT, "file:line of its first line", "where.text")
LOOP: Facts[Any] = (
    _WHERE,
    Fact("timed_count", COUNT, "Steps with a reported time; all counted ones are in timed_steps", "count"),
    Fact("timed_seconds", SECONDS, "Time of these steps", "seconds"),
    Fact("per_second", RATE, "Steps a second"),
    Fact("median_seconds", SECONDS, "Median step"),
    Fact("jitter", NUMBER, "Median absolute deviation over the median of the steps"),
)
_STAGE: Facts[Any] = (
    Fact("count", COUNT, "How often it happened"),
    Fact("minimum_seconds", SECONDS, "The shortest", "minimum"),
    Fact("median_seconds", SECONDS, "The median", "median"),
    Fact("maximum_seconds", SECONDS, "The longest", "maximum"),
)
REASONS: Facts[Any] = (
    Fact("reason_code", TEXT, "first, shape, dtype, static_argument, ...", "code"),
    Fact("count", COUNT, "Compilations"),
    Fact("seconds", SECONDS, "Time of these compilations"),
    Fact("reason", TEXT, "The reason in words", "text"),
)
_FUNCTION: tuple[ProgramFact, ...] = (
    *within("item", (
        *pick(_NAMED, "function", "called_from", "defined_at"),
        Fact("count", COUNT, "Compilations"),
        Fact("seconds", SECONDS, "Time of all of them"),
    )),
    SHARE_OF_WALL,
    *within("item", (
        Fact("stages", BY_NAME, "trace, lower and compile of one compilation", lambda function: function.spreads(),
             inside=_STAGE),
        Fact("reasons", ROWS, "Why it was compiled, the most frequent reason first", inside=REASONS),
        *_OF_KIND,
    )),
)  # fmt: skip
_VERDICT: Facts[ProgramResult] = (
    *within("verdict", (
        Fact("kind", TEXT, "device-bound, data-bound, and so on, or idle; null if unknown"),
        Fact("share", SHARE, "Share of the loop that it accounts for; if idle, of the program's time"),
        Fact("share_low", SHARE, "Lower bound of the 95 % interval of the share", "low"),
        Fact("share_high", SHARE, "Upper bound of the 95 % interval", "high"),
    )),
    Fact("place", TEXT, "file:line of the first line of the hot loop", "hot.where.text"),
    Fact("last_line", INDEX, "Last line of the hot loop", "hot.last_line"),
    *within("verdict", (
        Fact("reason", TEXT, "Why there is no verdict"),
        Fact("needs_seconds", SECONDS, "Length of a recording that would be enough"),
        Fact("seconds", SECONDS, "Time in the loop; if idle, with the time that the program waited"),
    )),
    Fact("parts", NUMBER_BY_NAME, "Seconds of the loop by part", lambda program: dict(program.hot.parts)),
    Fact("unknown_seconds", SECONDS, "Time that no clock assigns to a part", "hot.unknown"),
    Fact("preempted_seconds", SECONDS, "Time beside these in which it waited for a processor", "hot.preempted"),
)  # fmt: skip


PROGRAM: Facts[ProgramResult] = (
    Fact("argv", LIST, "The program's sys.argv"),
    Fact("how", TEXT, "script, module, record or cell"),
    Fact("directory", TEXT, "The working folder"),
    Fact("exit_code", INDEX, "As in a shell, 128 + n after signal n; null while it runs, and if it cannot be known"),
    Fact("wall_seconds", SECONDS, "From its start to its end; null if nothing followed its start",
         "known_wall_seconds"),
    Fact("verdict", OBJECT, "What bounds the hot loop, or why that is unknown", lambda program: program,
         inside=_VERDICT),
    Fact("empty_call_seconds", SECONDS, "CPU time of an empty call of a compiled function; null if it was not needed",
         "sums.program.empty_call.seconds"),
    Fact("remarks", ROWS, "Remarks that apply to nearly every run", inside=SENTENCE),
    _rows("timeline", "What the main thread's time was spent on", TIMELINE),
    Fact("stack_samples", COUNT, "Samples of the stack", "samples"),
    Fact("import_seconds", SECONDS, "Time to import jax; null if it was there before"),
    Fact("compile_count", COUNT, "Compilations, in every thread"),
    Fact("compiling_seconds", SECONDS, "Time of all stages of all compilations", "compile_seconds"),
    _rows("functions", "What was compiled, by function, the most expensive first", _FUNCTION),
    _rows("lines", "Lines of the source, those that took most first: estimates from samples", LINES),
    Fact("hot_loop", OBJECT, "The hottest loop", "steps", inside=LOOP),
    Fact("loops", ROWS, "Loops of the program", inside=LOOP),
    Fact("timed_steps", OBJECT, "The steps of the hot loop, each timed; null if they were not", "iterations", inside=(
        _WHERE,
        Fact("numbered_by", TEXT, "The variable that numbers the steps; null if they are counted from the first seen"),
        Fact("first", INDEX, "Number of the first timed step"),
        Fact("last", INDEX, "Number of the last timed step"),
        Fact("count", COUNT, "Steps from the first timed one to the last"),
        Fact("timed", COUNT, "Steps that were timed"),
        Fact("seconds", SECONDS, "Time of these steps"),
        Fact("found_by", TEXT, "monitoring, or number where the times are those of samples"),
    )),
    Fact("arrays", OBJECT, "Live arrays", inside=(
        Fact("peak_count", COUNT, "The most live arrays at once"),
        Fact("peak_bytes", BYTES, "The most bytes that live arrays held at once"),
        Fact("growth_a_minute", NUMBER, "How many more there are after a minute"),
        Fact("device_peak_bytes", NUMBER_BY_NAME, "The most that each device held",
             lambda arrays: dict(arrays.device_peak_bytes)),
        Fact("counts", ROWS, "The live arrays over time",  # every nth, and the last
             lambda arrays: [*arrays.counts[: -1 : -(-len(arrays.counts) // COUNTS_KEPT)], arrays.counts[-1]], inside=(
            Fact("at_seconds", SECONDS, "When they were counted, since the program began", lambda count: count[0]),
            Fact("count", COUNT, "How many live arrays there were", lambda count: count[1]),
            Fact("bytes", BYTES, "Bytes that they held", lambda count: count[2]),
        )),
    )),
    Fact("pauses", ROWS, "Pauses, in which the program could not run", inside=(
        Fact("began_seconds", SECONDS, "When it was paused, since the program began"),
        Fact("seconds", SECONDS, "How long the pause was"),
        Fact("cause", TEXT, "signal, unknown (seen from within alone) or suspended (the machine slept)"),
    )),
    Fact("own_seconds", SECONDS, "CPU time of the recording itself"),
    Fact("notes", ROWS, "What was not seen, and why", inside=SENTENCE[:2]),
)  # fmt: skip
ASKED: Facts[Any] = (
    Fact("name", TEXT, "Its name"),
    Fact("run", TEXT, "Id of the run that measured it"),
    Fact("status", TEXT, "ok, failed, not_measured, pending"),
    Fact("error", TEXT, "Why it was not measured"),
    Fact("hint", TEXT, "What to do about that"),
)
RELATIONS = (
    VIEWS["compiles"].relation(
        "compiles", "The compile ledger of recorded programs: a row for each compilation, with the reason"
    ),
    RunItems(LINES, partial(_items, "lines")).relation(
        "lines", "The lines of recorded programs at which the main thread spent its time: estimates from samples"
    ),
    RunItems(LOOP, lambda session, run: program_result(session, run.id).loops if run.is_program else None).relation(
        "loops", "The loops of recorded programs, the one that took most time first"
    ),
    VIEWS["timeline"].relation(
        "states", "Where the wall time of recorded programs went: the states of the main thread, which add up to it"
    ),
    Relation(
        "programs",
        "The recorded programs themselves, a row each: how they ended, and what bounds their hot loops",
        (RUN, *columns(fact for fact in PROGRAM if fact.unit is not ROWS)),
        lambda file: (program_result(file.session, run.id) for run in file.session.programs),
    ),
    VIEWS["transfers"].relation("transfers", "Implicit copies between host and device in recorded programs"),
)
