"""A program in figures: where its wall time went, what it compiled and why, its steps, arrays, transfers, findings.

Derived when it is shown, and kept until the next event arrives. Times are seconds; unknown values are None.
"""

from __future__ import annotations

from typing import Final

from jaxprof.analysis.finding import Finding
from jaxprof.analysis.programs.functions import FunctionCompiles, FunctionLedger, ReasonCount
from jaxprof.analysis.programs.result import (
    NOT_SEEN,
    ArrayFigures,
    LineTime,
    ProgramResult,
    ProgramTotals,
    Share,
    StepFigures,
    Transfer,
    array_figures,
    loops,
    pass_series,
    stops,
    time_line,
    transfers,
)
from jaxprof.analysis.programs.verdict import Spots, Verdict, find_hot_loop, line_times, loop_figures, verdict
from jaxprof.events import Note, SourceLocation
from jaxprof.light_dataclass import dataclass, field
from jaxprof.session import RecordedProgram, Run, Session

__all__ = [
    "NOT_SEEN",
    "ArrayFigures",
    "FunctionCompiles",
    "LineTime",
    "Note",
    "ProgramResult",
    "ReasonCount",
    "Share",
    "SourceLocation",
    "StepFigures",
    "Transfer",
    "Verdict",
    "program_result",
]

_KEPT_LIMIT = 16


@dataclass(slots=True)
class _Kept:
    """A program's result, what it was derived from, and the sums over its sample windows and its ledger so far."""

    program: RecordedProgram
    totals: ProgramTotals = field(default_factory=ProgramTotals)
    ledger: FunctionLedger = field(default_factory=FunctionLedger)
    spots: Spots = field(default_factory=Spots)
    key: tuple[object, ...] = ()
    result: ProgramResult | None = None


_kept: dict[int, _Kept] = {}


def program_result(session: Session, run_id: str) -> ProgramResult:
    """The figures of a program. Raises KeyError for an unknown id.

    A run that is not a program, or whose program has sent nothing yet, gives a result in which nothing was seen.
    """
    run = session.runs[run_id]
    program = run.program if run.program is not None else RecordedProgram()
    kept = _kept.get(id(program))
    if kept is None or kept.program is not program:  # an id can be reused once its object is gone
        if len(_kept) >= _KEPT_LIMIT:
            _kept.clear()
        kept = _Kept(program)
        if run.program is not None:
            _kept[id(program)] = kept
    key = _key(session, run, program)
    if kept.result is None or kept.key != key or kept.result.run is not run:
        kept.totals.take(program.sampled)
        kept.ledger.take(program.compiled)
        kept.spots.take(program.sampled)
        kept.key, kept.result = key, _derive(session, run, program, kept)
    return kept.result


def _key(session: Session, run: Run, program: RecordedProgram) -> tuple[object, ...]:
    """Changes with every event that the result depends on; the clock of a running program counts in half seconds."""
    lengths = (
        len(program.compiled),
        len(program.sampled),
        len(program.steps),
        len(program.passes),
        len(program.arrays),
        len(program.transfers),
        len(program.windows),
        len(program.stops),
    )
    clock = int(2 * session.last_seconds) if program.ended is None else id(program.ended)
    running = tuple(map(id, program.running.values()))
    return (*lengths, running, id(program.started), id(program.jax), clock, run.status, run.started_seconds)


def _derive(session: Session, run: Run, program: RecordedProgram, kept: _Kept) -> ProgramResult:
    started, ended = program.started, program.ended
    last = _last(session, run)
    began = _began(run, program, last)
    announced = ended.wall_seconds if ended is not None else max(0.0, last - began)
    totals, functions = kept.totals, kept.ledger.functions()
    spots = kept.spots.spots()
    key = find_hot_loop(spots, program.compiled)
    hot = loop_figures(spots, key, line_times(program.steps, key), program.compiled)
    # two clocks: a program cannot have been seen for longer than it lived
    wall = max(announced, sum(totals.states.values()))
    return ProgramResult(
        run=run,
        argv=tuple(started.argv) if started is not None else (run.plan.workload,),
        how=started.how if started is not None else "",
        directory=started.directory if started is not None else "",
        exit_code=ended.exit_code if ended is not None else None,
        began_seconds=began,
        wall_seconds=wall,
        ended=ended is not None or run.over,
        timeline=time_line(totals.states, wall),
        samples=totals.samples,
        sample_windows=tuple(program.sampled),
        running=tuple(program.running.values()),
        lines=totals.lines(),
        compiles=tuple(program.compiled),
        functions=functions,
        compile_count=sum(function.count for function in functions),
        compile_seconds=sum(function.seconds for function in functions),
        loops=loops(program.steps, program.passes),
        passes=pass_series(program.passes, hot.where),
        transfers=transfers(program.transfers),
        arrays=array_figures(program.arrays, began),
        own_seconds=totals.own_seconds,
        import_seconds=program.jax.seconds if program.jax is not None else None,
        notes=_notes(program),
        spots=spots,
        hot=hot,
        verdict=verdict(hot, timed=all(warning.code != "steps_not_counted" for warning in run.warnings)),
        stops=stops(program.stops, began),
        find=_findings,
        remark=_remarks,
    )


def _findings(program: ProgramResult) -> tuple[Finding, ...]:
    from jaxprof.analysis.programs.findings import findings

    return findings(program)


def _remarks(program: ProgramResult) -> tuple[Finding, ...]:
    from jaxprof.analysis.programs.findings import remarks

    return remarks(program)


def _began(run: Run, program: RecordedProgram, last: float) -> float:
    """The start of its process if known, else of the recording, else of the first event; for a
    program that has not begun, the `last` moment there is. A recording within a program begins when it is set up."""
    within = program.started is not None and program.started.how in ("record", "cell")
    if within and program.sampled and program.sampled[0].began_seconds:
        return program.sampled[0].began_seconds
    moments = [
        at
        for at in (
            run.started_seconds,
            program.started.monotonic_seconds if program.started is not None else None,
            program.sampled[0].began_seconds if program.sampled else None,
        )
        if at
    ]
    return min(moments, default=last)


def _last(session: Session, run: Run) -> float:
    return run.ended_seconds if run.over and run.ended_seconds is not None else session.last_seconds


def _notes(program: RecordedProgram) -> tuple[Note, ...]:
    notes = program.ended.notes if program.ended is not None else []
    failed = [Note("window", window.note) for window in program.windows if window.state == "failed"]
    return (*notes, *failed)


_WARNINGS: Final = ("function_not_called", "function_not_kept", "function_not_measured")


@dataclass(frozen=True, slots=True)
class AskedFunction:
    """A function of the program that `--function` named."""

    name: str
    """The name, as it was given."""
    run: str
    """The id of its run; empty if no call of it was kept."""
    status: str
    """Status of its run; `not_measured` where there is none, `pending` before the program's end."""
    error: str
    """Why there are no figures; empty if there are."""
    advice: str


def asked_function(session: Session, run: Run) -> AskedFunction | None:
    """Whether that function was measured, and if not, why; None if the recording of program `run` names no function."""
    started = run.program.started if run.program is not None else None
    name = str(started.options.get("function") or "") if started is not None else ""
    if not name:
        return None
    measured = [
        other for other in session.runs.values() if other.program is None and other.plan.how in ("jit", "eager")
    ]
    if measured:
        first = measured[0]
        return AskedFunction(name, first.id, first.status, "" if first.status == "ok" else first.error, first.advice)
    warnings = [warning for warning in run.warnings if warning.code in _WARNINGS]
    if warnings:
        return AskedFunction(name, "", "not_measured", warnings[0].message, warnings[0].advice)
    if not run.over:
        return AskedFunction(name, "", "pending", "", "")
    return AskedFunction(name, "", "not_measured", "the program did not end normally", "")
