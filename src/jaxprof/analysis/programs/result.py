"""The figures of a recorded program as values: time line, lines, steps, pauses, arrays, transfers, and what is derived
from them.

Findings are derived from these values and stored with them; screens and reports show them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from jaxprof.analysis.programs import HOST
from jaxprof.analysis.programs.functions import Definition, FunctionCompiles, by_function
from jaxprof.analysis.programs.pauses import (
    CAPTURE,
    SUSPENDED,
    Pause,
    merge_pauses,
    pause_times,
    with_pauses,
    without_doubted,
    without_pauses,
)
from jaxprof.analysis.programs.sentences import note_text, window_text
from jaxprof.analysis.programs.steps import IterationSeries, StepFigures, iteration_series, loops, loops_around
from jaxprof.base.grouping import grouped, totals
from jaxprof.base.text import exception_line, safe
from jaxprof.base.units import seconds
from jaxprof.base.values import frozen
from jaxprof.events import (
    NOWHERE,
    PROGRAM_STATES,
    STAGES,
    CaptureWindow,
    Compiled,
    CopiesSeen,
    DeviceReading,
    LineArrays,
    ProgramSampled,
    ProgramStopped,
    SourceLocation,
    StageRunning,
    StatementTime,
    StepsTaken,
)

if TYPE_CHECKING:
    from jaxprof.analysis.programs.loop_time import HotLoop, OutsideLoop
    from jaxprof.analysis.programs.spots import Spot, Spots
    from jaxprof.analysis.programs.standstill import Standstill
    from jaxprof.analysis.programs.verdict import Verdict
    from jaxprof.events.finding import Finding
    from jaxprof.session import RecordedProgram, Run

_Number = TypeVar("_Number", int, float)
CALLS = "calls"
"""Name of the time inside compiled functions that is not known to be a device's work; see `ProgramResult.spent`."""
NOT_SEEN = "not_seen"
"""Last share of a time line: time before the recording began, after it ended, and where nothing was recorded."""
EXACT_STATES = frozenset(STAGES)
"""States whose begin and end JAX reports; all others are estimated from stack samples."""


@frozen
class Share:
    """The part of the program's wall time that one state took."""

    state: str
    """One of `events.PROGRAM_STATES`, or `NOT_SEEN`."""
    seconds: float
    exact: bool
    """Whether JAX reported the time; False for an estimate from samples."""


@frozen
class LineTime:
    """Time that one line of the user's source took in one state, estimated from samples."""

    location: SourceLocation
    state: str
    call: str
    """Call on the line, such as `float()`, `.item()` or `train_step`; empty if unknown."""
    seconds: float


@frozen
class ProgramNote:
    """Something that was not recorded, or is the recording's own."""

    code: str
    message: str
    """Why; empty for a code of a newer version."""


@frozen
class ArrayFigures:
    """Live arrays of the process over time."""

    counts: tuple[tuple[float, int, int], ...]
    """Seconds since the program began, number of arrays, and bytes, for each count."""
    peak_count: int
    peak_bytes: int
    device_peak_bytes: Mapping[str, int]
    """Peak bytes by device; devices that do not report it are absent."""

    @property
    def first(self) -> tuple[int, int]:
        """Number and bytes of arrays at the first count."""
        return self.counts[0][1:]

    @property
    def last(self) -> tuple[int, int]:
        """Number and bytes of arrays at the last count."""
        return self.counts[-1][1:]

    @property
    def growth_a_minute(self) -> float | None:
        """Arrays per minute, from the first count to the last; None if there is only one count."""
        took = self.counts[-1][0] - self.counts[0][0]
        return 60 * (self.last[0] - self.first[0]) / took if took > 0 else None


@frozen
class MemoryCount:
    """Memory of the process at one moment."""

    seconds: float
    """Seconds since the program began."""
    host_bytes: int
    """Resident memory of the process."""
    programs: int
    """Number of compiled programs that it holds."""
    array_bytes: int
    """Bytes of its live arrays, on all devices."""


def _sum_of_known(values: Iterable[_Number | None]) -> _Number | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


TINY_OPERATIONS = 10
"""Largest number of operations in a tiny program, whose compilation (some 10 ms or more) never breaks even."""


def is_single(row: Compiled) -> bool:
    """Return whether the row is an operation called outside any jit: a primitive, or a small library function that is
    jitted on its own, such as `jnp.where`."""
    return row.op_by_op or (row.library and row.operations is not None and row.operations <= TINY_OPERATIONS)


class ProgramSums:
    """Spots and ledger of one program, each updated on access."""

    def __init__(self, program: RecordedProgram) -> None:
        self.program = program
        self.key: tuple[object, ...] = ()
        """Sizes of the parts of the program from which `result` was derived."""
        self.result: ProgramResult | None = None
        self._functions: dict[Definition, FunctionCompiles] = {}

    def functions(self) -> tuple[FunctionCompiles, ...]:
        return by_function(self.program.compiled, self._functions)

    def spots(self) -> tuple[Spot, ...]:
        self._spots.take(self.program.sampled)
        return self._spots.spots()

    @cached_property
    def _spots(self) -> Spots:
        from jaxprof.analysis.programs.spots import Spots  # the ledger alone needs none of it

        return Spots()


@dataclasses.dataclass(frozen=True, eq=False)
class ProgramResult:
    """Figures of one program. Each part is derived on first access."""

    run: Run
    sums: ProgramSums = dataclasses.field(repr=False)
    began_seconds: float
    """Monotonic time at which the program began."""
    announced_seconds: float
    """Reported wall time; for a program that is running or was interrupted, the time until its last event."""
    readings: Mapping[str, Sequence[DeviceReading]] = dataclasses.field(repr=False)
    """The session's readings by device, in order."""
    find: Callable[[ProgramResult], tuple[tuple[Finding, ...], tuple[Finding, ...]]] = dataclasses.field(repr=False)
    """Derives the findings and the remarks."""

    @property
    def _program(self) -> RecordedProgram:
        return self.sums.program

    @property
    def argv(self) -> tuple[str, ...]:
        """Command line of the program, as it was started."""
        started = self._program.started
        return tuple(started.argv) if started is not None else (self.run.plan.workload,)

    @property
    def how(self) -> str:
        """How the program was started: `script`, `module`, `record` or `cell`; empty if unknown."""
        return self._program.started.how if self._program.started is not None else ""

    @property
    def directory(self) -> str:
        """Folder in which the program was started; empty if unknown."""
        return self._program.started.directory if self._program.started is not None else ""

    @property
    def exit_code(self) -> int | None:
        """Exit code as a shell reports it; None while the program runs, and if it cannot be known."""
        return self._program.ended.exit_code if self._program.ended is not None else None

    @property
    def raised(self) -> tuple[str, SourceLocation, float | None]:
        """The exception that ended the program, the user's line, and the monotonic time. Without a recorded exception,
        the last traceback in the log, without a line; else an empty text. After sys.exit only the line is known."""
        ended = self._program.ended
        if ended is not None and (ended.error or ended.error_at):
            return ended.error, ended.error_at, ended.error_seconds
        lines = [line for line in self.run.log if line.stream == "stderr"]
        number = exception_line([line.text for line in lines])
        return ("", NOWHERE, None) if number is None else (lines[number].text, NOWHERE, lines[number].monotonic_seconds)

    @property
    def shadowed_by(self) -> SourceLocation:
        """The user's file that the failed program imported in place of a module of that name; `NOWHERE` without one."""
        return self._program.ended.shadowed_by if self._program.ended is not None else NOWHERE

    @property
    def memory_ran_out(self) -> tuple[str, Sequence[LineArrays]]:
        """The other lines of the message when memory ran out, and what was alive; both empty after another end."""
        ended = self._program.ended
        return (ended.error_details, ended.arrays) if ended is not None else ("", ())

    @property
    def ended(self) -> bool:
        """Whether the program, or its recording, is over."""
        return self._program.ended is not None or self.run.over

    @property
    def seen_to_its_end(self) -> bool:
        """Whether its recording ended with it, or was closed; not if it runs, or its session was cut off."""
        return self._program.ended is not None

    @cached_property
    def standstill(self) -> Standstill | None:
        """What the program has been in since its last iteration, if one is missing, or was when it was ended;
        `Standstill.is_one` says whether it stands still."""
        from jaxprof.analysis.programs.standstill import standstill

        if self.run.status == "ok" or (self._program.ended is not None and not self.run.over):
            return None
        return standstill(self._program, self.began_seconds + self.wall_seconds)

    @property
    def stalls(self) -> Sequence[tuple[SourceLocation, float]]:
        """Line and seconds of each iteration during which the program stood still for a while, and went on."""
        return self._program.stalls

    @property
    def stands_still(self) -> bool:
        return not self.ended and not self.run.deserted and self.standstill is not None and self.standstill.is_one

    @property
    def import_seconds(self) -> float | None:
        """Seconds that `import jax` took; None if jax was not imported."""
        return self._program.jax.seconds if self._program.jax is not None else None

    @cached_property
    def states(self) -> Mapping[str, float]:
        """Seconds of the main thread by each of `events.PROGRAM_STATES`."""
        seen = totals(
            (state, took) for window in self.sample_windows for state, took in window.states.items() if took > 0
        )
        return {state: seen.get(state, 0.0) for state in PROGRAM_STATES}

    @cached_property
    def _sure_pauses(self) -> Sequence[ProgramStopped]:
        return without_doubted(self._program.pauses)

    @property
    def wall_seconds(self) -> float:
        """Wall time of the program, at least the time in which it was seen: the two come from different clocks."""
        return max(self.announced_seconds, sum(self.states.values()))

    @property
    def known_wall_seconds(self) -> float | None:
        """`wall_seconds`; None if nothing followed the program's start, which is not an end after no time."""
        return self.wall_seconds if self.wall_seconds > 0 or self.seen_to_its_end else None

    @cached_property
    def timeline(self) -> tuple[Share, ...]:
        """Shares of the main thread's time, which add up to `wall_seconds`; the last share is the time not seen."""
        shares = [Share(state, took, state in EXACT_STATES) for state, took in self.states.items()]
        return (*shares, Share(NOT_SEEN, max(0.0, self.wall_seconds - sum(self.states.values())), False))

    @property
    def ending_seconds(self) -> float:
        """Seconds from the end of the recording, in the first exit handler, to that of the process. The other handlers
        run then; JAX's waits for all dispatched work. 0 if the program runs, or its recording broke off."""
        ended, windows = self._program.ended, self.sample_windows
        # With these notes, the recording ended before its program did.
        if ended is None or not windows or {note.code for note in ended.notes} & {"not_unwound", "not_recorded"}:
            return 0.0
        return max(0.0, self.began_seconds + self.announced_seconds - windows[-1].monotonic_seconds)

    @cached_property
    def spent(self) -> Mapping[str, float]:
        """Seconds of `timeline` by state, three of which are split: launching compiled functions, or what may be that
        (`CALLS`), leaves `device_busy`; time that no sample saw at its line leaves `host_busy`, unless only the host's
        own Python runs there; waits for a processor leave `waiting`."""
        seconds = {share.state: share.seconds for share in self.timeline}
        kinds = totals(
            (spot.kind, spot.seconds)
            for spot in self.spots
            if spot.kind == "preempted" or (spot.kind == "unseen" and self.hot.part(spot) != HOST)
        )
        for state, part, took in (
            ("device_busy", CALLS, sum(self.hot.launching.values())),
            ("host_busy", "unattributed", kinds.get("unseen", 0.0)),
            ("waiting", "processor_wait", kinds.get("preempted", 0.0)),
        ):
            seconds[part] = min(seconds[state], took)
            seconds[state] -= seconds[part]
        return seconds

    @cached_property
    def statements(self) -> tuple[StatementTime, ...]:
        """Loops that tracing unrolled, and imports, of the whole program, longest first."""
        seconds: dict[tuple[str, SourceLocation, str], list[float]] = {}
        for each in (each for window in self.sample_windows for each in window.statements):
            took = seconds.setdefault((each.kind, each.where, each.name), [0.0, 0.0])
            took[0] += each.seconds
            took[1] += each.jax_seconds
        merged = [
            StatementTime(kind=kind, where=where, name=name, seconds=took, jax_seconds=jax)
            for (kind, where, name), (took, jax) in seconds.items()
        ]
        return tuple(sorted(merged, key=lambda each: -each.seconds))

    @property
    def samples(self) -> int:
        """Number of samples of the main thread's stack that the estimates rest on."""
        return sum(window.samples for window in self.sample_windows)

    @property
    def own_seconds(self) -> float | None:
        """CPU seconds that the recording itself took in the program's process."""
        return _sum_of_known(window.own_seconds for window in self.sample_windows)

    @cached_property
    def lines(self) -> tuple[LineTime, ...]:
        """Time of each line in each state, longest first."""
        took = totals(((spot.location, spot.state, spot.call), spot.seconds) for spot in self.spots)
        return tuple(sorted((LineTime(*key, seconds) for key, seconds in took.items()), key=lambda line: -line.seconds))

    @cached_property
    def sample_windows(self) -> tuple[ProgramSampled, ...]:
        """Sample windows in order of time, with all pauses as a state of their own; see `with_pauses`."""
        doubted = set(self._program.pauses).difference(self._sure_pauses)
        return tuple(with_pauses(self._program.sampled, self._pause_spans, doubted, self.began_seconds))

    @cached_property
    def running(self) -> tuple[StageRunning, ...]:
        """Stages of compilations in progress, or in progress when the program was interrupted."""
        return tuple(self._program.open_stages)

    def stage_seconds(self, stage: StageRunning) -> float:
        """How long a stage that goes on has lasted so far, or until the program was ended."""
        return max(0.0, self.began_seconds + self.wall_seconds - stage.began_seconds)

    @cached_property
    def compiles(self) -> tuple[Compiled, ...]:
        return tuple(self._program.compiled)

    @cached_property
    def functions(self) -> tuple[FunctionCompiles, ...]:
        """Compilations by function, most expensive first."""
        return self.sums.functions()

    @property
    def imported_jax(self) -> bool:
        """Whether the program was seen to import JAX; without it, nothing can have been compiled."""
        return self._program.jax is not None or bool(self._program.compiled)

    @cached_property
    def compile_count(self) -> int:
        return sum(function.count for function in self.functions)

    @cached_property
    def compile_seconds(self) -> float:
        """Seconds of all stages of all ledger rows, in every thread."""
        return sum(function.seconds for function in self.functions)

    @cached_property
    def loops(self) -> tuple[StepFigures, ...]:
        """Loops of the program, longest first."""
        return loops(self._program.steps, self.steps_taken, self._program.sampled)

    @cached_property
    def iterations(self) -> IterationSeries | None:
        """Timed iterations of the hot loop; None if none was timed by itself."""
        return iteration_series(self.steps_taken, self.hot.where)

    @cached_property
    def steps_taken(self) -> Sequence[StepsTaken]:
        """Timed iterations of all loops, without the pauses of the process."""
        return without_pauses(self._program.iterations, self._pause_spans)

    @cached_property
    def transfers(self) -> tuple[CopiesSeen, ...]:
        """Implicit copies by direction and line, those seen most often first."""
        rows = (row for event in self._program.transfers for row in event.rows)
        by_line = grouped(((row.direction, row.where), row) for row in rows if row.where is not None)
        copies = [
            dataclasses.replace(
                rows[0],
                count=sum(row.count for row in rows),
                seconds=_sum_of_known(row.seconds for row in rows),
            )
            for rows in by_line.values()
        ]
        return tuple(sorted(copies, key=lambda copy: -copy.count))

    @cached_property
    def arrays(self) -> ArrayFigures | None:
        """Live arrays over time; None if they were never counted."""
        counted = self._program.arrays
        if not counted:
            return None
        devices: dict[str, int] = {}
        for event in counted:
            for device, used in event.devices.items():
                devices[device] = max(used, devices.get(device, 0))
        return ArrayFigures(
            counts=tuple((event.monotonic_seconds - self.began_seconds, event.count, event.bytes) for event in counted),
            peak_count=max(event.count for event in counted),
            peak_bytes=max(event.bytes for event in counted),
            device_peak_bytes=devices,
        )

    @cached_property
    def memory(self) -> tuple[MemoryCount, ...]:
        """Memory of the process over time, with what holds it; empty if the system does not report it."""
        return tuple(
            MemoryCount(event.monotonic_seconds - self.began_seconds, event.host_bytes, event.programs, event.bytes)
            for event in self._program.arrays
            if event.host_bytes is not None and event.programs is not None
        )

    @cached_property
    def failed_windows(self) -> tuple[CaptureWindow, ...]:
        return tuple(window for window in self._program.windows if window.state == "failed")

    @property
    def notes(self) -> tuple[ProgramNote, ...]:
        """What was not recorded, and the captures that failed."""
        notes = self._program.ended.notes if self._program.ended is not None else []
        if self.run.deserted and not self.run.over and not self._program.is_seen:
            return (ProgramNote("cut_off", "the session was cut off before anything was measured"),)
        failed = (ProgramNote("window", window_text(window)) for window in self.failed_windows)
        every = [*(ProgramNote(note.code, note_text(note)) for note in notes), *failed]
        if held := [pause for pause in self.pauses if pause.cause == CAPTURE]:
            took = seconds(sum(pause.seconds for pause in held))
            every.append(ProgramNote("held", f"the profiler of the capture held it for {took}, {pause_times(held)}"))
        return tuple(every)

    @cached_property
    def spots(self) -> tuple[Spot, ...]:
        """Spots at which the main thread was seen, as finely as they were recorded."""
        return self.sums.spots()

    @cached_property
    def hot(self) -> HotLoop:
        """Loop in which most of the program's work happens; for a program without a loop, the whole program."""
        from jaxprof.analysis.programs.loop_time import find_hot_loop, loop_figures

        key = find_hot_loop(self.spots, self._program.compiled)
        where = SourceLocation(key[0], key[2], key[1]) if key is not None else NOWHERE
        environment = self.run.environment
        devices = environment.devices if environment is not None else []
        return loop_figures(
            self.spots,
            key,
            next((loop for loop in self.loops if where and loop.where == where), StepFigures(where)),
            self._program.compiled,
            self._program.empty_call,
            shares_processors=bool(devices) and all(device.get("platform") == "cpu" for device in devices),
        )

    @cached_property
    def outside_loop(self) -> OutsideLoop | None:
        """Time of the host outside the hot loop; None if there is no loop, or no such time."""
        from jaxprof.analysis.programs.loop_time import outside_loop

        return outside_loop(self.sample_windows, self.hot.key) if self.hot.key is not None else None

    @cached_property
    def other_thread(self) -> str:
        """Thread in which the program's functions were compiled, if the main thread compiled and runs none."""
        own = [row.thread for row in self.compiles if not row.op_by_op and not row.library]
        looped = self.hot.spots if self.hot.key is not None else ()
        here = any(spot.kind in ("compiled", "inline", "call", "fed") for spot in looped)
        return own[0] if own and all(own) and not here else ""

    @cached_property
    def verdict(self) -> Verdict:
        """What bounds the hot loop; unknown if JAX works in a thread that is not sampled."""
        from jaxprof.analysis.programs.loop_time import wait_after
        from jaxprof.analysis.programs.verdict import LEAST_SAMPLES, Verdict, verdict

        if self.other_thread:
            reason = f"JAX works in {safe(self.other_thread)}, and only the main thread is sampled"
            return Verdict(None, None, None, None, reason)
        found = verdict(self.hot, timed=all(warning.code != "steps_not_counted" for warning in self.run.warnings))
        if found.kind is not None or self.hot.samples >= LEAST_SAMPLES:
            return found
        waits = wait_after(self.sample_windows, self.hot.key) if self.hot.key is not None else None
        if waits is not None and waits[1] > self.hot.own_seconds:
            line, waited = waits
            queued = f" ({seconds(self.hot.own_seconds, 2)})" if self.hot.own_seconds else ""
            waiting = f"{line.short(self.directory)} waits for it ({seconds(waited, 2)})"
            reason = f"its calls only queued work{queued}, and {waiting}"
            return dataclasses.replace(found, reason=reason, needs_seconds=None)
        if not found.seconds and self.compiles:
            return dataclasses.replace(found, reason="what it compiled ran too briefly for a sample")
        return found

    @cached_property
    def behind_seconds(self) -> float | None:
        """Seconds of the hot loop's work that its device still had to do at the loop's end; None if the device may have
        kept up with the loop, or if that is unknown.

        Work is done in the order in which it is queued. A device that needs less time for an iteration than the host
        has at most one of them left at the end; with more than that, it was busy from the first to the last, and the
        loop would take as long if the host did nothing. Where the program calls other compiled functions, or loops
        around this loop, it may have waited for other work.
        """
        from jaxprof.analysis.programs.loop_time import queued_after
        from jaxprof.analysis.programs.verdict import LEAST_SAMPLES

        key, times = self.hot.key, self.hot.times
        called = {(row.function, row.defined_at) for row in self.compiles if not (row.op_by_op or row.library)}
        if key is None or not times.count or len(called) != 1:
            return None
        took, samples = queued_after(self.sample_windows, key)
        return took if samples >= LEAST_SAMPLES and took > times.seconds / times.count else None

    @cached_property
    def pauses(self) -> tuple[Pause, ...]:
        """Pauses in which the process could not run, without the one that it is in."""
        return merge_pauses(self._sure_pauses, self.began_seconds)

    @property
    def _pause_spans(self) -> list[tuple[float, float]]:
        """Monotonic begin and end of each pause, also of the one that it is in, or was in when its recording ended. Not
        of a suspended machine, whose clock stood still as well."""
        spans = [
            (self.began_seconds + pause.began_seconds, self.began_seconds + pause.began_seconds + pause.seconds)
            for pause in self.pauses
            if pause.cause != SUSPENDED
        ]
        silence = self._program.silence
        if silence is not None and not silence.over and silence.wait.state == "T":
            began, now = silence.silent_seconds, self.began_seconds + self.announced_seconds
            if now > began and all(ended <= began for _, ended in spans):
                spans.append((began, now))
        return spans

    @cached_property
    def _found(self) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        return self.find(self)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings, those whose fix saves most first. They are derived on first access."""
        return self._found[0]

    @property
    def remarks(self) -> tuple[Finding, ...]:
        """Facts that hold for nearly every run like this one."""
        return self._found[1]

    @property
    def steps(self) -> StepFigures | None:
        """The hottest loop; None if no loop was found, or only one of a library that is not the hot loop."""
        longest = self.loops[0] if self.loops else None
        if longest is None or longest.where == self.hot.where:
            return longest
        sites = (site for spot in self.spots for site in spot.sites if site.library)
        brief = any(SourceLocation(site.file, site.loop_line, site.function) == longest.where for site in sites)
        return None if brief else longest

    def steps_per_second_of(self, other: ProgramResult) -> float | None:
        """Return the steps per second of the hottest loop; None if that of the `other` program is another loop: of a
        function of another name, or within another number of loops of it. Lines may have moved."""
        if self.steps is None:
            return None
        same = other.steps is None or self._hottest == other._hottest
        return self.steps.per_second if same else None

    @cached_property
    def _hottest(self) -> tuple[str, int]:
        where = self.loops[0].where
        return where.function, loops_around(where, self._program.sampled)

    def iterations_of(self, steps: StepFigures) -> IterationSeries | None:
        """Return the timed iterations of one of the `loops`; None if they were not timed by themselves."""
        return self.iterations if self.iterations is not None and self.iterations.where == steps.where else None

    @property
    def main_compile_seconds(self) -> float:
        """Seconds that the main thread spent in compilation stages, from the time line."""
        return sum(took for state, took in self.states.items() if state in EXACT_STATES)

    @property
    def active_seconds(self) -> float:
        """Wall time without imports, compiling, pauses and time not seen: in which the program did its work."""
        idle = {*EXACT_STATES, "import", "paused"}
        return sum(took for state, took in self.states.items() if state not in idle)

    @property
    def work_seconds(self) -> float:
        """Seconds of the program's own work and compiling; all compile time if there is no time line."""
        seen = self.active_seconds + self.main_compile_seconds
        return seen if seen > 0 else self.compile_seconds

    @property
    def samples_of_work(self) -> float:
        """Number of samples in the time in which the program did its work."""
        return sum(spot.samples for spot in self.spots if spot.kind != "import")

    def of_wall(self, seconds: float | None) -> float | None:
        """Return `seconds` as a share of the wall time; None if either is unknown or the wall time is 0."""
        return seconds / self.wall_seconds if seconds is not None and self.wall_seconds > 0 else None


def states_by_column(
    sampled: Iterable[ProgramSampled], begin: float, end: float, columns: int
) -> list[dict[str, float]]:
    """Return the share (0..1) of each state in each of the equal parts of the time from `begin` to `end`; shares add up
    to less than 1 where nothing was recorded. The order of states within a sample window is unknown, so they divide it
    evenly."""
    shares: list[dict[str, float]] = [{} for _ in range(columns)]
    for window in sampled:
        length = window.monotonic_seconds - window.began_seconds
        if length <= 0:
            continue
        first, last = (
            (at - begin) / (end - begin) * columns for at in (window.began_seconds, window.monotonic_seconds)
        )
        for column in range(max(0, int(first)), min(columns, int(last) + 1)):
            inside = min(last, column + 1) - max(first, column)
            for state, spent in window.states.items():
                if spent > 0 and inside > 0:
                    shares[column][state] = shares[column].get(state, 0.0) + inside * spent / length
    return shares
