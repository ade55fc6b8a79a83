"""A program in figures, as values: its time line, lines, steps, arrays, transfers, and what was derived beside it.

Findings are derived from them and stored beside them; screens and reports show them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Final, TypeVar

from jaxprof.analysis.programs.functions import FunctionCompiles, FunctionLedger
from jaxprof.analysis.programs.passes import PassSeries, pass_series
from jaxprof.analysis.programs.standstills import Standstill, standstills
from jaxprof.events import (
    PROGRAM_STATES,
    STAGES,
    ArraysCounted,
    Compiled,
    CopiesSeen,
    Note,
    ProgramSampled,
    SampledLine,
    SourceLocation,
    StageRunning,
    StepsCounted,
    StepsTaken,
    TransfersSeen,
)
from jaxprof.light_dataclass import dataclass

if TYPE_CHECKING:
    from jaxprof.analysis.finding import Finding
    from jaxprof.analysis.programs.verdict import HotLoop, Spot, Spots, Verdict
    from jaxprof.session import RecordedProgram, Run

_Number = TypeVar("_Number", int, float)
NOT_SEEN: Final = "not_seen"
"""The last share of a time line: before the recording began, after it ended, and where nothing was recorded."""
EXACT_STATES: Final = frozenset(STAGES)
"""States whose begin and end JAX announces; the others are estimated from samples of the stack."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one state took of the program's wall time."""

    state: str
    """One of `events.PROGRAM_STATES`, or `NOT_SEEN`."""
    seconds: float
    exact: bool
    """Announced by JAX; False for an estimate from samples."""


@dataclass(frozen=True, slots=True)
class LineTime:
    """What one line of the user's source took, in one state: an estimate from samples."""

    place: SourceLocation
    state: str
    call: str
    """What the line calls: `float()`, `.item()`, `train_step`; empty if unknown."""
    seconds: float
    windows: int
    """In how many sample windows of the recording it was seen."""


@dataclass(frozen=True, slots=True)
class StepFigures:
    """One loop of the program."""

    count: int
    seconds: float
    median_seconds: float | None
    jitter: float | None
    """Median absolute deviation of the single steps over their median; None for fewer than five."""
    where: SourceLocation | None
    name: str
    """Name of a step annotation; empty for a loop."""
    found_by: str
    """`monitoring`, `annotation`, or in older sessions `tracing` (in short spells)."""
    per_second: float | None = None
    """Steps a second: by all steps that were told or counted by their number, where there are any; None for spells that
    can miss the steps that wait, for a processor or for the device, and for steps that fill less than half of the time
    in which samples saw the loop."""


@dataclass(frozen=True, slots=True)
class ArrayFigures:
    """The live arrays of the process over time."""

    counts: tuple[tuple[float, int, int], ...]
    """Seconds since the program began, arrays, bytes."""
    peak_count: int
    peak_bytes: int
    device_peak_bytes: Mapping[str, int]
    """By device; devices that do not report it are absent."""

    @property
    def first(self) -> tuple[int, int]:
        """Arrays and bytes when they were first counted."""
        return self.counts[0][1:]

    @property
    def last(self) -> tuple[int, int]:
        """Arrays and bytes when they were last counted."""
        return self.counts[-1][1:]

    @property
    def growth_a_minute(self) -> float | None:
        """Arrays a minute, from the first count to the last; None for a single one."""
        took = self.counts[-1][0] - self.counts[0][0]
        return 60 * (self.last[0] - self.first[0]) / took if took > 0 else None


@dataclass(frozen=True, slots=True)
class Transfer:
    """Copies in one direction from one source: at one place, or of one type."""

    direction: str
    """`host_to_device`, `device_to_host` or `device_to_device`."""
    source: str
    """`guard`: JAX's transfer guard counted them; `samples`: the count is of samples of the stack."""
    where: SourceLocation | None
    count: int
    bytes: int | None
    """Of all copies; None unless the size of each is known: copies that the guard counts without a type have a row of
    their own."""
    seconds: float | None
    type: str = ""
    """`f32[4]`, if the guard logged it."""


class ProgramTotals:
    """Sums over the sample windows of one program. Takes each window once, so an update costs only the new ones."""

    __slots__ = ("_lines", "consumed", "own_seconds", "samples", "states")

    def __init__(self) -> None:
        self.consumed = 0
        self.samples = 0
        self.own_seconds: float | None = None
        self.states: dict[str, float] = dict.fromkeys(PROGRAM_STATES, 0.0)
        self._lines: dict[tuple[SourceLocation, str, str], tuple[float, int]] = {}

    def take(self, sampled: Sequence[ProgramSampled]) -> None:
        """Adds the sample windows that have arrived since the last call."""
        for window in sampled[self.consumed :]:
            self.samples += window.samples
            if window.own_seconds is not None:
                self.own_seconds = (self.own_seconds or 0.0) + window.own_seconds
            for state, seconds in window.states.items():
                if state in self.states and seconds > 0:
                    self.states[state] += seconds
            for line in window.lines:
                self._take_line(line)
        self.consumed = len(sampled)

    def _take_line(self, line: SampledLine) -> None:
        if line.file:
            key = (line.place, line.state, line.call)
            took, windows = self._lines.get(key, (0.0, 0))
            self._lines[key] = (took + line.seconds, windows + 1)

    def copy(self) -> ProgramTotals:
        """The sums as they are now."""
        copied = ProgramTotals()
        copied.consumed, copied.samples, copied.own_seconds = self.consumed, self.samples, self.own_seconds
        copied.states, copied._lines = dict(self.states), dict(self._lines)
        return copied

    def lines(self) -> tuple[LineTime, ...]:
        """The lines, those that took most first."""
        times = [LineTime(*key, *value) for key, value in self._lines.items()]
        return tuple(sorted(times, key=lambda line: -line.seconds))


def time_line(states: Mapping[str, float], wall_seconds: float) -> tuple[Share, ...]:
    """The share of every state of `PROGRAM_STATES` and of what was not seen; they add up to `wall_seconds`, which must
    be at least the sum of the states."""
    shares = [Share(state, states.get(state, 0.0), state in EXACT_STATES) for state in PROGRAM_STATES]
    missing = max(0.0, wall_seconds - sum(share.seconds for share in shares))
    return (*shares, Share(NOT_SEEN, missing, False))


def segments(
    sampled: Iterable[ProgramSampled], began_seconds: float, wall_seconds: float
) -> Iterator[tuple[str, float]]:
    """The time line in the order of time, as (state, seconds). The order of the states within a sample window is not
    known: they stand in the order of `PROGRAM_STATES`."""
    at, end = began_seconds, began_seconds + wall_seconds
    for window in sampled:
        if window.began_seconds > at:
            yield NOT_SEEN, window.began_seconds - at
        for state in PROGRAM_STATES:
            seconds = window.states.get(state, 0.0)
            if seconds > 0:
                yield state, seconds
        at = max(at, window.monotonic_seconds)
    if end > at:
        yield NOT_SEEN, end - at


_FEW_STEPS = 5
"""Number of single steps below which no jitter is given."""


BRIEF_SECONDS = 100e-6
"""Mean iteration below which spells of a few hundred say nothing of the time between them: they begin when the thread
has a processor, and end before it loses it."""


LEAST_TOLD = 0.5
"""Share of a loop's time by samples that the steps that were told must fill, to stand for all of them: the first steps
of a loop that queues its calls take microseconds, and those after them as long as the device."""


def loops(
    counted: Sequence[StepsCounted], taken: Sequence[StepsTaken] = (), sampled: Sequence[ProgramSampled] = ()
) -> tuple[StepFigures, ...]:
    """The loops of a program, those that took most time first; of equal ones, those that the program itself named.
    `taken`: their steps one by one, where these were told. `sampled`: where the program was, as a second witness of
    how long it was in them."""
    grouped: dict[tuple[SourceLocation | None, str, str], list[StepsCounted]] = {}
    for event in counted:
        key = (event.where or None, event.name, event.found_by)
        grouped.setdefault(key, []).append(event)
    steps: dict[SourceLocation, tuple[int, float]] = {}
    for each in taken:
        count, took = steps.get(each.where, (0, 0.0))
        steps[each.where] = (count + each.count, took + sum(each.seconds))
    seen = _sampled_seconds(sampled, taken)
    figures = [
        _loop(where, name, by, events, steps.get(where), seen.get(where, 0.0))
        if where is not None
        else _loop(where, name, by, events, None)
        for (where, name, by), events in grouped.items()
    ]
    return tuple(sorted(figures, key=lambda loop: (-loop.seconds, loop.found_by != "annotation")))


def _sampled_seconds(sampled: Sequence[ProgramSampled], taken: Sequence[StepsTaken]) -> dict[SourceLocation, float]:
    """For how long samples saw the program in each loop, from when its first step was told."""
    first: dict[SourceLocation, float] = {}
    for each in taken:
        first[each.where] = min(each.began_seconds, first.get(each.where, each.began_seconds))
    seconds: dict[SourceLocation, float] = {}
    for window in sampled:
        followed = {where for where, began in first.items() if window.began_seconds >= began}
        for line in window.lines:
            sites = [window.sites[index] for index in line.sites if 0 <= index < len(window.sites)]
            heads = {SourceLocation(site.file, site.loop_line, site.function) for site in sites if site is not None}
            for where in heads & followed:
                seconds[where] = seconds.get(where, 0.0) + line.seconds
    return seconds


def _loop(
    where: SourceLocation | None,
    name: str,
    found_by: str,
    events: Sequence[StepsCounted],
    steps: tuple[int, float] | None,
    sampled_seconds: float = 0.0,
) -> StepFigures:
    single = [seconds for event in events for seconds in event.intervals_seconds]
    middle = median(single) if single else None
    jitter = None
    if middle and len(single) >= _FEW_STEPS:
        jitter = median(abs(seconds - middle) for seconds in single) / middle
    count, took = sum(event.count for event in events), sum(event.seconds for event in events)
    brief = found_by == "monitoring" and took < BRIEF_SECONDS * count
    rated = steps if steps is not None and steps[1] > 0 else (count, 0.0 if brief or found_by == "tracing" else took)
    if rated is steps and rated[1] < LEAST_TOLD * sampled_seconds:
        rated = (count, 0.0)
    return StepFigures(
        count=count,
        seconds=took,
        per_second=rated[0] / rated[1] if rated[1] > 0 else None,
        median_seconds=middle,
        jitter=jitter,
        where=where,
        name=name,
        found_by=found_by,
    )


def array_figures(counted: Sequence[ArraysCounted], began_seconds: float) -> ArrayFigures | None:
    """The live arrays over time; None if they were never counted."""
    if not counted:
        return None
    devices: dict[str, int] = {}
    for event in counted:
        for device, used in event.devices.items():
            devices[device] = max(used, devices.get(device, 0))
    return ArrayFigures(
        counts=tuple((event.monotonic_seconds - began_seconds, event.count, event.bytes) for event in counted),
        peak_count=max(event.count for event in counted),
        peak_bytes=max(event.bytes for event in counted),
        device_peak_bytes=devices,
    )


def transfers(seen: Sequence[TransfersSeen]) -> tuple[Transfer, ...]:
    """The copies, added up by direction, source, place and type: those that JAX counted first, then by bytes and count.
    The guard's counts without known bytes stay apart from those with known bytes."""
    grouped: dict[tuple[str, str, SourceLocation | None, str, bool], list[CopiesSeen]] = {}
    for event in seen:
        for row in event.rows:
            unknown = row.source == "guard" and row.bytes is None
            where = SourceLocation(row.file, row.line, row.function) if row.file else None
            key = (row.direction, row.source, where, row.type, unknown)
            grouped.setdefault(key, []).append(row)
    copies = [
        Transfer(
            direction=direction,
            source=source,
            where=where,
            count=sum(row.count for row in rows),
            bytes=_total(row.bytes for row in rows),
            seconds=_total(row.seconds for row in rows),
            type=kind,
        )
        for (direction, source, where, kind, _), rows in grouped.items()
    ]
    return tuple(sorted(copies, key=_order))


def _order(copy: Transfer) -> tuple[bool, bool, int, int]:
    """Copies of unknown size first: they may be the largest."""
    counted = copy.source == "guard"
    return (not counted, counted and copy.bytes is not None, -(copy.bytes or 0), -copy.count)


def _total(values: Iterable[_Number | None]) -> _Number | None:
    """The sum of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


TINY_OPERATIONS: Final = 10
"""A program of at most this many operations: compiling it (some 10 ms or more) never breaks even."""


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


class ProgramSums:
    """The sums over the sample windows and the ledger of one program, each brought up to date when it is asked for."""

    def __init__(self, program: RecordedProgram) -> None:
        self.program = program
        self._totals, self._ledger = ProgramTotals(), FunctionLedger()

    @property
    def totals(self) -> ProgramTotals:
        """What the sample windows add up to."""
        self._totals.take(self.program.sampled)
        return self._totals

    def functions(self) -> tuple[FunctionCompiles, ...]:
        """What was compiled, by function."""
        self._ledger.take(self.program.compiled)
        return self._ledger.functions()

    def spots(self) -> tuple[Spot, ...]:
        """Where the main thread was."""
        self._spots.take(self.program.sampled)
        return self._spots.spots()

    @cached_property
    def _spots(self) -> Spots:
        from jaxprof.analysis.programs.verdict import Spots  # the ledger alone needs none of it

        return Spots()


@dataclasses.dataclass(frozen=True, eq=False)
class ProgramResult:
    """One program in figures. Each part is derived when it is first asked for."""

    run: Run
    sums: ProgramSums = dataclasses.field(repr=False)
    began_seconds: float
    """Monotonic."""
    announced_seconds: float
    """Wall time as it was announced; until the last event, for a program that is running or was interrupted."""
    find: Callable[[ProgramResult], tuple[Finding, ...]] = dataclasses.field(repr=False)
    remark: Callable[[ProgramResult], tuple[Finding, ...]] = dataclasses.field(repr=False)

    @property
    def _program(self) -> RecordedProgram:
        return self.sums.program

    @property
    def argv(self) -> tuple[str, ...]:
        """As it was started."""
        started = self._program.started
        return tuple(started.argv) if started is not None else (self.run.plan.workload,)

    @property
    def how(self) -> str:
        """`script`, `module`, `record` or `cell`; empty if unknown."""
        return self._program.started.how if self._program.started is not None else ""

    @property
    def directory(self) -> str:
        """The folder that it was started in; empty if unknown."""
        return self._program.started.directory if self._program.started is not None else ""

    @property
    def exit_code(self) -> int | None:
        """As a shell reports it; None while the program runs, and where it cannot be known."""
        return self._program.ended.exit_code if self._program.ended is not None else None

    @property
    def ended(self) -> bool:
        """Whether it, or the recording of it, is over."""
        return self._program.ended is not None or self.run.over

    @property
    def import_seconds(self) -> float | None:
        """What `import jax` took; None where jax was not imported."""
        return self._program.jax.seconds if self._program.jax is not None else None

    @cached_property
    def _totals(self) -> ProgramTotals:
        return self.sums.totals.copy()

    @property
    def wall_seconds(self) -> float:
        """Two clocks: a program cannot have been seen for longer than it lived."""
        return max(self.announced_seconds, sum(self._totals.states.values()))

    @cached_property
    def timeline(self) -> tuple[Share, ...]:
        """The main thread's time; adds up to `wall_seconds`; the last share is what was not seen."""
        return time_line(self._totals.states, self.wall_seconds)

    @property
    def samples(self) -> int:
        """Number of samples of the main thread's stack that the estimates rest on."""
        return self._totals.samples

    @property
    def own_seconds(self) -> float | None:
        """CPU time that the recording itself took in the program's process."""
        return self._totals.own_seconds

    @cached_property
    def lines(self) -> tuple[LineTime, ...]:
        """What each line took, the longest first."""
        return self._totals.lines()

    @cached_property
    def sample_windows(self) -> tuple[ProgramSampled, ...]:
        """In the order of time."""
        return tuple(self._program.sampled)

    @cached_property
    def running(self) -> tuple[StageRunning, ...]:
        """Stages of compilations in progress; for a program that was interrupted, those in progress at that time."""
        return tuple(self._program.running.values())

    @cached_property
    def compiles(self) -> tuple[Compiled, ...]:
        """The ledger."""
        return tuple(self._program.compiled)

    @cached_property
    def functions(self) -> tuple[FunctionCompiles, ...]:
        """By total cost, the most expensive first."""
        return self.sums.functions()

    @cached_property
    def compile_count(self) -> int:
        """How many compilations there were."""
        return sum(function.count for function in self.functions)

    @cached_property
    def compile_seconds(self) -> float:
        """The sum over all stages of all rows, in every thread."""
        return sum(function.seconds for function in self.functions)

    @cached_property
    def loops(self) -> tuple[StepFigures, ...]:
        """The loops, those that took most time first."""
        return loops(self._program.steps, self._program.passes, self._program.sampled)

    @cached_property
    def passes(self) -> PassSeries | None:
        """Of the hot loop; None where none was timed by itself."""
        return pass_series(self._program.passes, self.hot.where)

    @cached_property
    def transfers(self) -> tuple[Transfer, ...]:
        """The copies, those that JAX counted first."""
        return transfers(self._program.transfers)

    @cached_property
    def arrays(self) -> ArrayFigures | None:
        """The live arrays; None if they were never counted."""
        return array_figures(self._program.arrays, self.began_seconds)

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """What the recorder says of itself, and of captures that failed."""
        notes = self._program.ended.notes if self._program.ended is not None else []
        failed = [Note("window", window.note) for window in self._program.windows if window.state == "failed"]
        return (*notes, *failed)

    @cached_property
    def spots(self) -> tuple[Spot, ...]:
        """Where the main thread was, as finely as it was recorded."""
        return self.sums.spots()

    @cached_property
    def hot(self) -> HotLoop:
        """The loop in which most of the program's work happens; for a program without a loop, the whole program."""
        from jaxprof.analysis.programs.verdict import find_hot_loop, line_times, loop_figures

        key = find_hot_loop(self.spots, self._program.compiled)
        return loop_figures(self.spots, key, line_times(self._program.steps, key), self._program.compiled)

    @cached_property
    def verdict(self) -> Verdict:
        """What bounds that loop."""
        from jaxprof.analysis.programs.verdict import verdict

        return verdict(self.hot, timed=all(warning.code != "steps_not_counted" for warning in self.run.warnings))

    @cached_property
    def stops(self) -> tuple[Standstill, ...]:
        """When it did not run, and could not."""
        return standstills(self._program.stops, self.began_seconds)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Those whose fix would save most come first. They are looked for on first use."""
        return self.find(self)

    @cached_property
    def remarks(self) -> tuple[Finding, ...]:
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
