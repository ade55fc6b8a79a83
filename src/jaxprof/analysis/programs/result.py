"""A program in figures, as a value: findings are derived from it and stored in it; screens and reports show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from jaxprof.analysis.programs.functions import FunctionCompiles
from jaxprof.analysis.programs.parts import (
    EXACT_STATES,
    NOT_SEEN,
    ArrayFigures,
    LineTime,
    Share,
    StepFigures,
    Transfer,
    segments,
)
from jaxprof.analysis.programs.passes import PassSeries
from jaxprof.analysis.programs.spots import Spot
from jaxprof.analysis.programs.stops import Standstill
from jaxprof.analysis.programs.verdict import HotLoop, Verdict
from jaxprof.events import Compiled, Note, ProgramSampled, SourceLocation, StageRunning
from jaxprof.session import Run

TINY_OPERATIONS: Final = 10
"""A program of at most this many operations: compiling it (some 10 ms or more) never breaks even."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A fact about this run and nearly every run like it: worth knowing, and shown below the findings."""

    code: str
    message: str
    advice: str
    seconds: float | None = None
    """What it is about, of the wall time; None if it is no time."""


@dataclass(frozen=True, slots=True)
class ProgramFinding:
    """One thing that is worth changing in a program."""

    code: str
    message: str
    advice: str
    """What to change, and where."""
    where: SourceLocation | None
    """The line to change; None if there is no such line."""
    seconds: float | None = None
    """What it cost in this run; None if unknown. No second is in two findings."""
    saves_seconds: float | None = None
    """How many of these seconds changing it would have saved, an estimate: the findings are ranked by it."""
    estimate: bool = False
    """Whether `seconds` rests on samples of the stack rather than on what JAX announced."""
    others: tuple[SourceLocation, ...] = ()
    """More lines that the finding is about."""
    function: str = ""
    """The compiled function whose rows of the ledger it rests on; empty for a finding about lines."""
    announced_seconds: float = 0.0
    """Of the `seconds` of an estimate, those that JAX announced."""
    bytes: int | None = None
    """Memory that it costs; None if that is unknown, or not what it costs."""


def finding(
    code: str,
    message: str,
    advice: str,
    places: tuple[SourceLocation | None, ...],
    *,
    seconds: float | None = None,
    saves: float | None = None,
    estimate: bool = False,
    function: str = "",
    announced: float = 0.0,
    held: int | None = None,
) -> ProgramFinding:
    """A finding at `places`: each once, unknown ones left out."""
    distinct = tuple(dict.fromkeys(place for place in places if place is not None))
    return ProgramFinding(
        code,
        message,
        advice,
        distinct[0] if distinct else None,
        seconds,
        saves,
        estimate,
        distinct[1:],
        function,
        announced,
        held,
    )


def is_single(row: Compiled) -> bool:
    """Whether it is an operation that was called outside any jit: a primitive, or a small library function, such as
    `jnp.where`, which is jitted on its own."""
    return row.op_by_op or (row.library and row.operations is not None and row.operations <= TINY_OPERATIONS)


def seconds_by_place(lines: Iterable[LineTime]) -> dict[SourceLocation, float]:
    """The time at each line of the source, whatever the line calls; the longest first."""
    by_place: dict[SourceLocation, float] = {}
    for line in lines:
        by_place[line.place] = by_place.get(line.place, 0.0) + line.seconds
    return dict(sorted(by_place.items(), key=lambda item: -item[1]))


@dataclass(frozen=True)
class ProgramResult:
    """One program in figures."""

    run: Run
    argv: tuple[str, ...]
    how: str
    """`script`, `module`, `record` or `cell`; empty if unknown."""
    directory: str
    exit_code: int | None
    """As a shell reports it; None while the program runs, and where it cannot be known."""
    began_seconds: float
    """Monotonic."""
    wall_seconds: float
    """Until the last event, for a program that is running or was interrupted."""
    ended: bool
    timeline: tuple[Share, ...]
    """The main thread's time; adds up to `wall_seconds`; the last share is what was not seen."""
    samples: int
    """Number of samples of the main thread's stack that the estimates rest on."""
    sample_windows: tuple[ProgramSampled, ...]
    running: tuple[StageRunning, ...]
    """Stages of compilations in progress; for a program that was interrupted, those in progress at that time."""
    lines: tuple[LineTime, ...]
    compiles: tuple[Compiled, ...]
    functions: tuple[FunctionCompiles, ...]
    """By total cost, the most expensive first."""
    compile_count: int
    compile_seconds: float
    """The sum over all stages of all rows, in every thread."""
    loops: tuple[StepFigures, ...]
    passes: PassSeries | None
    """Of the hot loop; None where none was timed by itself."""
    transfers: tuple[Transfer, ...]
    arrays: ArrayFigures | None
    own_seconds: float | None
    """CPU time that the recording itself took in the program's process."""
    import_seconds: float | None
    """What `import jax` took; None where jax was not imported."""
    notes: tuple[Note, ...]
    spots: tuple[Spot, ...]
    """Where the main thread was, as finely as it was recorded."""
    hot: HotLoop
    """The loop in which most of the program's work happens; for a program without a loop, the whole program."""
    verdict: Verdict
    """What bounds that loop."""
    stops: tuple[Standstill, ...] = ()
    """When it did not run, and could not."""
    find: Callable[[ProgramResult], tuple[ProgramFinding, ...]] = field(
        default=lambda program: (), repr=False, compare=False
    )
    remark: Callable[[ProgramResult], tuple[Remark, ...]] = field(default=lambda program: (), repr=False, compare=False)

    @cached_property
    def findings(self) -> tuple[ProgramFinding, ...]:
        """Those whose fix would save most come first. They are looked for on first use."""
        return self.find(self)

    @cached_property
    def remarks(self) -> tuple[Remark, ...]:
        """Facts about nearly every run like this one."""
        return self.remark(self)

    @property
    def steps(self) -> StepFigures | None:
        """The hottest loop; None if none was found."""
        return self.loops[0] if self.loops else None

    def passes_of(self, steps: StepFigures) -> PassSeries | None:
        """The passes of one of the `loops`; None where they were not timed by themselves."""
        return self.passes if self.passes is not None and self.passes.where == steps.where else None

    def share(self, state: str) -> Share:
        """The share of a state. Raises KeyError for an unknown state."""
        for share in self.timeline:
            if share.state == state:
                return share
        raise KeyError(state)

    @property
    def main_compile_seconds(self) -> float:
        """The time that the main thread spent in the stages of compiling, from the time line."""
        return sum(share.seconds for share in self.timeline if share.state in EXACT_STATES)

    @property
    def active_seconds(self) -> float:
        """The wall time without imports, compiling and what was not seen: when the program did its work."""
        idle = {*EXACT_STATES, "import", "stopped", NOT_SEEN}
        return sum(share.seconds for share in self.timeline if share.state not in idle)

    @property
    def work_seconds(self) -> float:
        """The program's own seconds, without imports and what was not seen; where there is no time line, all compile
        time."""
        seen = self.active_seconds + self.main_compile_seconds
        return seen if seen > 0 else self.compile_seconds

    @property
    def samples_of_work(self) -> float:
        """Number of samples in the time in which the program did its work."""
        return sum(spot.samples for spot in self.spots if spot.kind != "import")

    def of_wall(self, seconds: float | None) -> float | None:
        """`seconds` as a share of the wall time; None if either is unknown or there was no time."""
        return seconds / self.wall_seconds if seconds is not None and self.wall_seconds > 0 else None

    def segments(self) -> Iterator[tuple[str, float]]:
        """The time line in the order of time: (state, seconds), which add up to the wall time."""
        return segments(self.sample_windows, self.began_seconds, self.wall_seconds)
