"""The tables of recorded programs, and the findings about all that a session holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from jaxprof.analysis.explain.commands import command, program_verified, run_verified
from jaxprof.analysis.explain.programs import program_cost
from jaxprof.analysis.explain.runs import measured_longer
from jaxprof.analysis.programs.derive import ProgramResult, program_result
from jaxprof.analysis.run_result import result
from jaxprof.errors import JaxprofError
from jaxprof.facts import (
    BYTES,
    COUNT,
    LIST,
    SECONDS,
    SHARE,
    TEXT,
    TRUTH,
    Fact,
    Relation,
    SessionFile,
    Unit,
    at,
)
from jaxprof.report.recording.tables import COMPILES, FINDINGS, LINES, RUN, TRANSFERS, VIEWS, ProgramRow, rows_of
from jaxprof.report.table import Column, described
from jaxprof.session import Run, Session

_OF_PROGRAM: Final = Fact("run", TEXT, "Id of the program's run, unique within its session: r1", RUN.reader())


def _table(
    name: str,
    meaning: str,
    columns: tuple[Column[ProgramRow], ...],
    items: Callable[[ProgramResult], tuple[object, ...]],
    *listed: tuple[str, Unit, str],
) -> Relation:
    def rows(file: SessionFile) -> Iterator[ProgramRow]:
        for run in file.session.programs:
            program = program_result(file.session, run.id)
            yield from rows_of(program, items(program))

    return Relation(name, meaning, (_OF_PROGRAM, *described(columns, *listed)), rows)


COMPILES_TABLE: Final = _table(
    "compiles",
    "The compile ledger of recorded programs: a row for each compilation, with the reason",
    COMPILES,
    at("compiles"),
    ("function", TEXT, "JAX's name of the compiled function"),
    ("called_from", TEXT, "file:line of the call that compiled it"),
    ("called_in", TEXT, "The function of that line"),
    ("defined_at", TEXT, "file:line of its definition"),
    ("began_seconds", SECONDS, "When it began, since the program began"),
    ("trace_seconds", SECONDS, "Python to jaxpr; NULL if it did not happen"),
    ("lower_seconds", SECONDS, "jaxpr to StableHLO; NULL if it did not happen"),
    ("compile_seconds", SECONDS, "StableHLO to an executable; NULL if it did not happen"),
    ("cache", TEXT, "The persistent compilation cache: hit, miss, off"),
    ("saved_seconds", SECONDS, "What a hit of it saved"),
    ("reason_code", TEXT, "first, shape, dtype, static_argument, new_function, closure, ..."),
    ("reason", TEXT, "Why it was compiled again, in words; NULL for the first time"),
    ("signature", LIST, "The arguments, as a JSON list"),
    ("numpy_bytes", BYTES, "What each call copies from NumPy arrays to the device"),
    ("operations", COUNT, "Operations of its StableHLO"),
    ("constants", LIST, "Large constants in it, as a JSON list"),
    ("unused_donations", LIST, "Donated arguments that no output can take, as a JSON list"),
    ("thread", TEXT, "The thread; NULL for the main one"),
    ("op_by_op", TRUTH, "Whether it is a single operation, outside any jit"),
    ("library", TRUTH, "Whether it is defined in a library"),
    ("count", COUNT, "Compilations in this row; more than 1 in a long ledger"),
)
TRANSFERS_TABLE: Final = _table(
    "transfers",
    "Implicit copies between host and device in recorded programs",
    TRANSFERS,
    at("transfers"),
    ("direction", TEXT, "host_to_device, device_to_host, device_to_device"),
    ("type", TEXT, "f32[4]; NULL if unknown"),
    ("count", COUNT, "How many; of samples the number of samples"),
    ("bytes", BYTES, "Of all of them"),
    ("seconds", SECONDS, "Of all of them; an estimate"),
    ("where=place", TEXT, "file:line"),
    ("source", TEXT, "guard: JAX counted them; samples: seen in samples of the stack"),
)
LINES_TABLE: Final = _table(
    "lines",
    "The lines of recorded programs at which the main thread spent its time: estimates from samples",
    LINES,
    at("lines"),
    ("where=place", TEXT, "file:line"),
    ("function", TEXT, "The function of that line"),
    ("state", TEXT, "data, trace, lower, compile, transfer, device_busy, host_busy, waiting"),
    ("call", TEXT, "What is called there"),
    ("seconds", SECONDS, "Time at that line in that state"),
)
STATES_TABLE: Final = _table(
    "states",
    "Where the wall time of recorded programs went: the states of the main thread, which add up to it",
    VIEWS["timeline"][0],
    at("timeline"),
    (
        "state",
        TEXT,
        "import, data, trace, lower, compile, transfer, device_busy, host_busy, waiting, stopped, not_seen",
    ),
    ("seconds", SECONDS, "Time in that state"),
    ("share", SHARE, "Share of the wall time, in 0..1"),
    ("exact", TRUTH, "Whether JAX announced it; the others are estimates"),
)


@dataclass(frozen=True, slots=True)
class _Finding:
    run: str
    source: str
    code: str
    message: str
    advice: str
    place: str | None = None
    seconds: float | None = None
    saves_seconds: float | None = None
    bytes: int | None = None
    estimate: bool | None = None
    low_seconds: float | None = None
    high_seconds: float | None = None
    verify: str | None = None


def _findings(file: SessionFile) -> Iterator[_Finding]:
    session, name = file.session, file.name
    columns = {column.key: column.reader() for column in FINDINGS}
    for run in session.runs.values():
        if run.plan.how == "program" or run.program is not None:
            program = program_result(session, run.id)
            for row in rows_of(program, program.findings):
                cost = program_cost(program, row.item)
                yield _Finding(
                    run.id,
                    "program",
                    **{key: columns[key](row) for key in ("code", "message", "advice", "seconds", "saves_seconds")},
                    place=columns["where"](row),
                    bytes=cost.bytes,
                    estimate=columns["estimate"](row),
                    low_seconds=cost.low,
                    high_seconds=cost.high,
                    verify=program_verified(name, program),
                )
        yield from _of_hlo(session, run, name)
        again = measured_longer(name, run) or None
        for warning in result(session, run.id).warnings:
            yield _Finding(run.id, "measurement", warning.code, warning.message, warning.advice, verify=again)


def _of_hlo(session: Session, run: Run, name: str) -> Iterator[_Finding]:
    """The findings about the run's HLO; none without HLO that can be read."""
    if "hlo" not in run.texts:
        return
    from jaxprof.hlo.analysis.findings.catalogue import findings
    from jaxprof.hlo.open.parsed import modules

    try:
        text = session.text(run.id, "hlo")
        found = findings(modules(text)[0]) if text else ()
    except JaxprofError:
        return
    verify = run_verified(name, run) if run.plan.how not in ("program", "imported") else command("explain", name)
    for one in found:
        place = ", ".join(one.where) or None
        yield _Finding(run.id, "hlo", one.code, one.message, one.advice, place, bytes=one.bytes, verify=verify)


FINDINGS_TABLE: Final = Relation(
    "findings",
    "What is worth changing: findings about programs and HLO, and warnings about measurements",
    (
        Fact("run", TEXT, "Id of the run, unique within its session: r2"),
        Fact("source", TEXT, "program, hlo, or measurement (a warning: the figures mean less than they seem to)"),
        Fact("code", TEXT, "What kind it is, as the documents list them"),
        Fact("message", TEXT, "The sentence, with its figures"),
        Fact("advice", TEXT, "What to do about it"),
        Fact("place", TEXT, "file:line of a program, kernels of HLO"),
        Fact("seconds", SECONDS, "What it cost in this run; no second is in two findings of a program"),
        Fact("saves_seconds", SECONDS, "What changing it would save: an estimate"),
        Fact("bytes", BYTES, "Traffic of one call that it accounts for; of a program, memory that it holds"),
        Fact("estimate", TRUTH, "Whether seconds is an estimate"),
        Fact("low_seconds", SECONDS, "Lower bound of the 95 % interval of seconds; null if exact or of unknown error"),
        Fact("high_seconds", SECONDS, "Upper bound of that interval"),
        Fact("verify", TEXT, "The command that shows whether a change helped; null if none can"),
    ),
    _findings,
)
