"""A program in figures: where its wall time went, what it compiled and why, its steps, arrays, transfers, findings.

Derived when it is shown, and kept until an event has come. Times are seconds; what is not known is None.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from jaxprof.events import Compiled, ProgramSampled, StageRunning
from jaxprof.results.programs.findings import Finding, findings
from jaxprof.results.programs.functions import FunctionCompiles, FunctionLedger, ReasonCount
from jaxprof.results.programs.parts import (
    EXACT_STATES,
    NOT_SEEN,
    ArrayFigures,
    LineTime,
    Share,
    StepFigures,
    Totals,
    Transfer,
    array_figures,
    loops,
    segments,
    time_line,
    transfers,
)
from jaxprof.results.programs.places import Place
from jaxprof.session import Program, Run, Session

__all__ = [
    "NOT_SEEN",
    "ArrayFigures",
    "Finding",
    "FunctionCompiles",
    "LineTime",
    "Note",
    "Place",
    "ProgramResult",
    "ReasonCount",
    "Share",
    "StepFigures",
    "Transfer",
    "is_program",
    "program_result",
    "programs",
]

_KEPT_LIMIT = 16


@dataclass(frozen=True, slots=True)
class Note:
    """What was not seen, and why."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """What is derived from one program."""

    run: Run
    argv: tuple[str, ...]
    how: str
    """`script`, `module`, `record` or `cell`; empty where that is not known."""
    directory: str
    exit_code: int | None
    """As a shell has it; None while it runs, and where it cannot be known."""
    began_seconds: float
    """Monotonic."""
    wall_seconds: float
    """Of a program that is running, or was cut off: until its last event."""
    ended: bool
    timeline: tuple[Share, ...]
    """Adds up to `wall_seconds`; the last share is what was not seen. Of the main thread."""
    samples: int
    """Of the main thread's stack, that the estimates rest on."""
    stretches: tuple[ProgramSampled, ...]
    running: tuple[StageRunning, ...]
    """Stages of compilations that go on; of a program that was cut off, those that it was in."""
    lines: tuple[LineTime, ...]
    compiles: tuple[Compiled, ...]
    functions: tuple[FunctionCompiles, ...]
    """By what they cost in all, the dearest first."""
    compile_count: int
    compile_seconds: float
    """Of all stages of all rows, in every thread."""
    loops: tuple[StepFigures, ...]
    transfers: tuple[Transfer, ...]
    arrays: ArrayFigures | None
    own_seconds: float | None
    """CPU time that the recording itself took in the program."""
    import_seconds: float | None
    """What `import jax` took; None where jax was not imported."""
    notes: tuple[Note, ...]
    findings: tuple[Finding, ...] = ()
    """Those that cost most first."""

    @property
    def steps(self) -> StepFigures | None:
        """The hottest loop; None where none was found."""
        return self.loops[0] if self.loops else None

    def share(self, state: str) -> Share:
        """The share of a state. Raises KeyError for a word that is no state."""
        for one in self.timeline:
            if one.state == state:
                return one
        raise KeyError(state)

    @property
    def main_compile_seconds(self) -> float:
        """What the main thread spent in the stages of compiling, from the time line."""
        return sum(one.seconds for one in self.timeline if one.state in EXACT_STATES)

    @property
    def active_seconds(self) -> float:
        """The wall time without imports, compiling and what was not seen: when the program did its work."""
        idle = {*EXACT_STATES, "import", NOT_SEEN}
        return sum(one.seconds for one in self.timeline if one.state not in idle)

    def of_wall(self, seconds: float | None) -> float | None:
        """`seconds` as a share of the wall time; None where either is unknown or there was no time."""
        return seconds / self.wall_seconds if seconds is not None and self.wall_seconds > 0 else None

    def segments(self) -> Iterator[tuple[str, float]]:
        """The time line in the order of time: (state, seconds), together the wall time."""
        return segments(self.stretches, self.began_seconds, self.wall_seconds)


@dataclass(slots=True)
class _Kept:
    """A program's result, what it was derived from, and the sums over its stretches and its ledger so far."""

    program: Program
    totals: Totals = field(default_factory=Totals)
    ledger: FunctionLedger = field(default_factory=FunctionLedger)
    key: tuple[object, ...] = ()
    result: ProgramResult | None = None


_kept: dict[int, _Kept] = {}


def programs(session: Session) -> list[Run]:
    """The runs that are programs, in the order of the plan."""
    return [run for run in session.runs.values() if is_program(run)]


def is_program(run: Run) -> bool:
    """Whether the run is a program of the user's, recorded while it ran."""
    return run.plan.how == "program" or run.program is not None


def program_result(session: Session, run_id: str) -> ProgramResult:
    """The figures of a program. Raises KeyError for an unknown id.

    A run that is no program, or of whose program nothing has come yet, gives a result in which nothing was seen.
    """
    run = session.runs[run_id]
    program = run.program if run.program is not None else Program()
    kept = _kept.get(id(program))
    if kept is None or kept.program is not program:  # an id can be given to another one, once this is gone
        if len(_kept) >= _KEPT_LIMIT:
            _kept.clear()
        kept = _Kept(program)
        if run.program is not None:
            _kept[id(program)] = kept
    key = _key(session, run, program)
    if kept.result is None or kept.key != key or kept.result.run is not run:
        kept.totals.take(program.sampled)
        kept.ledger.take(program.compiled)
        bare = _derive(session, run, program, kept)
        kept.key, kept.result = key, replace(bare, findings=findings(bare))
    return kept.result


def _key(session: Session, run: Run, program: Program) -> tuple[object, ...]:
    """Changes with every event that the result depends on; the clock of one that runs counts in half seconds."""
    lengths = (
        len(program.compiled),
        len(program.sampled),
        len(program.steps),
        len(program.arrays),
        len(program.transfers),
        len(program.windows),
    )
    clock = int(2 * session.last_seconds) if program.ended is None else id(program.ended)
    running = tuple(map(id, program.running.values()))
    return (*lengths, running, id(program.started), id(program.jax), clock, run.status, run.started_seconds)


def _derive(session: Session, run: Run, program: Program, kept: _Kept) -> ProgramResult:
    started, ended = program.started, program.ended
    last = _last(session, run)
    began = _began(run, program, last)
    told = ended.wall_seconds if ended is not None else max(0.0, last - began)
    totals, functions = kept.totals, kept.ledger.functions()
    wall = max(told, sum(totals.states.values()))  # two clocks: it cannot have been seen for longer than it lived
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
        stretches=tuple(program.sampled),
        running=tuple(program.running.values()),
        lines=totals.lines(),
        compiles=tuple(program.compiled),
        functions=functions,
        compile_count=sum(one.count for one in functions),
        compile_seconds=sum(one.seconds for one in functions),
        loops=loops(program.steps),
        transfers=transfers(program.transfers),
        arrays=array_figures(program.arrays, began),
        own_seconds=totals.own_seconds,
        import_seconds=program.jax.seconds if program.jax is not None else None,
        notes=_notes(program),
    )


def _began(run: Run, program: Program, last: float) -> float:
    """The start of its process where that is known, else of the recording, else of the first thing that was seen; of a
    program that has not begun the `last` moment there is."""
    known = [
        at
        for at in (
            run.started_seconds,
            program.started.monotonic_seconds if program.started is not None else None,
            program.sampled[0].began_seconds if program.sampled else None,
        )
        if at
    ]
    return min(known, default=last)


def _last(session: Session, run: Run) -> float:
    return run.ended_seconds if run.over and run.ended_seconds is not None else session.last_seconds


def _notes(program: Program) -> tuple[Note, ...]:
    notes = program.ended.notes if program.ended is not None else []
    failed = [Note("window", window.note) for window in program.windows if window.state == "failed"]
    return (*(Note(str(note.get("code") or ""), str(note.get("message") or "")) for note in notes), *failed)
