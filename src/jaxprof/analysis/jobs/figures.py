"""What the findings of a job need of one of its processes: a plain value, without its session.

A value can be written to a table row and read back, so that a job of many processes is judged without reading the
session of each. The sample windows of its hot loop are kept by column: a job of a thousand processes has tens of
thousands of them, and as objects they took more time than everything that is derived from them.
"""

from __future__ import annotations

import signal
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import accumulate
from math import inf
from statistics import median
from typing import Any, Final, TypeAlias, overload

import numpy as np

from jaxprof.analysis.programs.derive import ProgramResult, program_result
from jaxprof.analysis.programs.functions import row_seconds
from jaxprof.analysis.programs.standstills import Standstill
from jaxprof.analysis.programs.verdict import (
    COMPILE,
    COPY,
    DATA,
    DEVICE,
    DISPATCH,
    HOST,
    LEAST_SAMPLES,
    PARTS,
    HotLoop,
    Spots,
    again_rows,
    parts_in,
)
from jaxprof.events import STAGES, Compiled, DeviceReading, SignatureLeaf, SourceLocation, StepsTaken
from jaxprof.last_words import raised_at
from jaxprof.session import Session
from jaxprof.session.log.job_folder import JobMember
from jaxprof.units import and_more, counted

Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True, slots=True)
class LoopWindow:
    """The hot loop in one sample window."""

    began_seconds: float
    """Monotonic, of the window."""
    seconds: float
    """Spent in the loop, first compilations included: `parts` add up to it without those."""
    samples: float
    """Number of samples that `parts` rest on."""
    parts: Mapping[str, float]
    """Seconds that go to each of `PARTS`, from samples."""
    own_seconds: float | None = None
    """Seconds in which its main thread worked, or waited for something else than the device, by its CPU clock; None if
    the system has none."""
    first_step: int | None = None
    """Number of the first step that began in it; None if its steps were not numbered."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopWindows(Sequence[LoopWindow]):
    """W windows in the order of time: each column as `LoopWindow` has it."""

    began_seconds: Array
    seconds: Array
    samples: Array
    parts: Array
    """W x P, in the order of `PARTS`."""
    own_seconds: Array
    """NaN where it is not known."""
    first_steps: Array
    """NaN where it is not known."""

    @classmethod
    def of(cls, windows: Iterable[LoopWindow]) -> LoopWindows:
        """The columns of these windows; of what has columns, itself."""
        if isinstance(windows, LoopWindows):
            return windows
        rows = tuple(windows)
        return cls(
            _column(row.began_seconds for row in rows),
            _column(row.seconds for row in rows),
            _column(row.samples for row in rows),
            np.asarray([[row.parts[part] for part in PARTS] for row in rows], dtype="f8").reshape(-1, len(PARTS)),
            _column(row.own_seconds for row in rows),
            _column(row.first_step for row in rows),
        )

    def part(self, name: str) -> Array:
        """The column of one of `PARTS`."""
        found: Array = self.parts[:, PARTS.index(name)]
        return found

    def chosen(self, rows: Array | slice) -> LoopWindows:
        """Some of them: a slice, or those for which an array of truths is true."""
        return LoopWindows(
            self.began_seconds[rows],
            self.seconds[rows],
            self.samples[rows],
            self.parts[rows],
            self.own_seconds[rows],
            self.first_steps[rows],
        )

    def __eq__(self, other: object) -> bool:
        """Whether they hold the same windows; in a comparison of arrays, what is unknown would differ from itself."""
        if not isinstance(other, LoopWindows):
            return NotImplemented
        names = [field.name for field in fields(self)]
        return all(np.array_equal(getattr(self, name), getattr(other, name), equal_nan=True) for name in names)

    __hash__ = None  # type: ignore[assignment]  # arrays can be written to

    def __len__(self) -> int:
        return len(self.seconds)

    @overload
    def __getitem__(self, at: int) -> LoopWindow: ...
    @overload
    def __getitem__(self, at: slice) -> LoopWindows: ...
    def __getitem__(self, at: int | slice) -> LoopWindow | LoopWindows:
        if isinstance(at, slice):
            return self.chosen(at)
        own, step = float(self.own_seconds[at]), float(self.first_steps[at])
        return LoopWindow(
            float(self.began_seconds[at]),
            float(self.seconds[at]),
            float(self.samples[at]),
            dict(zip(PARTS, self.parts[at].tolist(), strict=True)),
            None if np.isnan(own) else own,
            None if np.isnan(step) else int(step),
        )


def _column(values: Iterable[float | None]) -> Array:
    """NaN for what is not known."""
    return np.asarray([np.nan if value is None else value for value in values], dtype="f8")


LEAST_READINGS: Final = 5
"""Readings of a busy device, half a second apart: fewer may be one moment."""
BUSY: Final = 0.2
"""Utilisation from which on the clock is that of a device at work; an idle one saves power."""


@dataclass(frozen=True, slots=True)
class DeviceClock:
    """One device while it was busy."""

    device: str
    hertz: float
    """The median."""
    readings: int
    throttled: float
    """Share of the readings with a reason for throttling."""
    reasons: tuple[str, ...]
    """The reasons, those that were read most often first."""


def device_clocks(readings: Mapping[str, Iterable[DeviceReading]]) -> tuple[DeviceClock, ...]:
    """The clocks of the devices that were read often enough while they were busy. CPUs report no reasons, and are left
    out."""
    return tuple(_clocks(readings))


def _clocks(readings: Mapping[str, Iterable[DeviceReading]]) -> Iterator[DeviceClock]:
    for device, every in readings.items():
        if device.startswith("cpu:"):
            continue
        busy = [each for each in every if each.utilisation is not None and each.utilisation >= BUSY]
        known = [(each.clock_hertz, each.throttle_reasons) for each in busy if each.clock_hertz]
        if len(known) < LEAST_READINGS:
            continue
        yield DeviceClock(
            device,
            median(hertz for hertz, _ in known),
            len(known),
            sum(1 for _, reasons in known if reasons) / len(known),
            _most_often(reasons for _, reasons in known),
        )


def _most_often(each: Iterable[Sequence[str]]) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    for reasons in each:
        for reason in reasons:
            counts[reason] = counts.get(reason, 0) + 1
    return tuple(sorted(counts, key=lambda reason: -counts[reason]))


USEFUL, WAITING, START, FIRST, AGAIN, OUTSIDE, STOPPED, AFTER, UNSEEN = (
    "useful",
    "waiting",
    "start",
    "first_compile",
    "recompile",
    "outside_loop",
    "stopped",
    "after_failure",
    "not_seen",
)
CAUSES: Final = (USEFUL, WAITING, DATA, HOST, DISPATCH, COPY, AGAIN, FIRST, START, OUTSIDE, STOPPED, AFTER, UNSEEN)
"""What a second of a process can go to, each to one."""
IN_LOOP: Final = (DEVICE, DATA, HOST, DISPATCH, COPY)
"""The parts of the loop without what compiling takes."""


def time_of(result: ProgramResult) -> Mapping[str, float] | None:
    """The seconds of one program's wall time by cause, as far as it can be known alone: `device` stands for what is
    useful and for waiting. They add up to the wall time. None where no loop was seen, or no time passed."""
    hot = result.hot
    if hot.key is None or result.wall_seconds <= 0 or hot.seconds <= 0:
        return None
    compiling = result.main_compile_seconds
    again = min(compiling, sum(map(row_seconds, again_rows(result.compiles))))
    loop = {part: hot.parts[part] for part in IN_LOOP}
    inside = sum(loop.values())
    if inside > result.active_seconds > 0:  # shares of two sums over the same samples
        loop = {part: took * result.active_seconds / inside for part, took in loop.items()}
    time = loop | {
        AGAIN: again,
        FIRST: compiling - again,
        START: result.share("import").seconds,
        OUTSIDE: max(0.0, result.active_seconds - sum(loop.values())),
        STOPPED: result.share(STOPPED).seconds,
    }
    return time | {UNSEEN: max(0.0, result.wall_seconds - sum(time.values()))}


_SIGNALLED: Final = 128
_LEFT_OVER: Final = tuple(_SIGNALLED + number for number in (signal.SIGINT, signal.SIGABRT, signal.SIGTERM))
"""Exit codes of processes that are ended because another one has failed."""
MOST_NAMED: Final = 8
"""Processes that a sentence names."""
_WORDS_KEPT: Final = 300
_FUNCTIONS_KEPT: Final = 32
_NO_END: Final = "its session has no end: the process or its host was killed, or the file is not whole"


@dataclass(frozen=True, slots=True)
class LoopLine:
    """The line of the loop that takes most time of one part."""

    part: str
    where: SourceLocation
    seconds: float


@dataclass(frozen=True, slots=True)
class LoopFigures:
    """The hot loop of one process; of a program without a loop, the whole program."""

    where: SourceLocation | None
    """Its first line; None where there is no loop."""
    seconds: float
    """Without first compilations."""
    samples: float
    parts: Mapping[str, float]
    """Seconds that go to each of `PARTS`."""
    lines: tuple[LoopLine, ...]
    """One for each part that has a line."""

    def line_of(self, part: str) -> SourceLocation | None:
        """The line that takes most of a part; the loop's own where none is known."""
        return next((line.where for line in self.lines if line.part == part), self.where)


@dataclass(frozen=True, slots=True)
class CompiledAgain:
    """A function of the user that was compiled more than once."""

    function: str
    defined_line: int | None
    count: int
    """Without its first compilation."""
    seconds: float
    """Of these compilations, as JAX announced them."""
    reason: str
    """Of the last one that has any; empty without."""
    called_from: SourceLocation | None


@dataclass(frozen=True, slots=True)
class OwnArguments:
    """A function of the user that was compiled once, and its arguments that lie on one device: those of this process
    alone, or replicated."""

    function: str
    defined_line: int | None
    bytes: int
    arguments: tuple[tuple[str, str, int], ...]
    """Name, type (`f32[32,128]`) and bytes, the largest first."""
    called_from: SourceLocation | None


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """One process of a job."""

    index: int
    host: str
    path: str
    """Of its session."""
    status: str
    """As of a run: `ok`, `failed`, `crashed`, `cancelled`; `running`, or `interrupted` where its session has no end;
    `unknown` where it has recorded no program."""
    error: str
    advice: str
    """With its last words, if it failed."""
    ended_seconds: float | None = None
    """Unix time of its end by the clock of its host; None if it is not known."""
    exception: tuple[float, str] | None = None
    """When it wrote the traceback of its last exception, in Unix time, and the line that names it, if it failed; None
    without one."""
    exit_code: int | None = None
    wall_seconds: float | None = None
    """None, as all that follow, if its session has no program."""
    steps_per_second: float | None = None
    step_median_seconds: float | None = None
    compile_count: int | None = None
    compile_seconds: float | None = None
    again: tuple[CompiledAgain, ...] | None = None
    """JAX's own functions and those of libraries left out."""
    own_arguments: tuple[OwnArguments, ...] | None = None
    """Of at most `_FUNCTIONS_KEPT` functions, the largest first."""
    loop: LoopFigures | None = None
    windows: Sequence[LoopWindow] = ()
    """Those in which it was in the loop, in the order of time."""
    clock_offset_seconds: float = 0.0
    """Unix time less the monotonic time of its host."""
    stops: tuple[Standstill, ...] = ()
    """When it did not run, and could not."""
    clocks: tuple[DeviceClock, ...] = ()
    """Of the devices of its host, as far as they report them."""
    time: Mapping[str, float] | None = None
    """Seconds of its wall time by cause, as `wall_time.time_of` has them; None where no loop was seen."""
    notices: tuple[str, ...] = ()
    """What of its session could not be used."""

    @property
    def was_killed(self) -> bool:
        """Whether it ended without having had a say: by a signal that neither JAX nor a launcher sends to those that
        are left over, or together with what recorded it."""
        code = self.exit_code
        return self.status == "interrupted" or (code is not None and code > _SIGNALLED and code not in _LEFT_OVER)

    @property
    def shares(self) -> Mapping[str, float] | None:
        """What its loop's time goes to, by `PARTS`; None with too few samples."""
        loop = self.loop
        if loop is None or loop.samples < LEAST_SAMPLES or loop.seconds <= 0:
            return None
        return {part: loop.parts[part] / loop.seconds for part in PARTS}

    @property
    def compiled_again(self) -> int | None:
        """How many compilations were not the first of their function; None if it is not known."""
        return None if self.again is None else sum(each.count for each in self.again)


def share_beside(process: ProcessFigures, others: Iterable[ProcessFigures], part: str) -> tuple[float, float] | None:
    """A part's share of the loop of a process and the median of the others': what its table, its findings and the view
    beside the others show. None where too little was seen of either."""
    theirs = [each.shares[part] for each in others if each.shares is not None]
    return (process.shares[part], median(theirs)) if process.shares is not None and theirs else None


def process_figures(member: JobMember[Session]) -> ProcessFigures:
    """The figures of one process, from its session."""
    session = member.session
    host, path = session.header.host, str(member.path)
    run = next(iter(session.programs), None)
    notices = [] if member.live else list(session.notices)  # the last line of one that grows may be half written
    if run is None:
        return ProcessFigures(
            member.index, host, path, "unknown", "it has recorded no program", "", notices=tuple(notices)
        )
    result = program_result(session, run.id)
    end, at = run.end(deserted=not member.live), run.ended_seconds
    status, error = end.status, end.error
    offset = session.header.wall_seconds - session.header.monotonic_seconds
    if not run.over and not member.live:
        error, at = _NO_END, session.last_seconds
    steps = result.steps
    windows = list(_windows(result, run.program.passes if run.program is not None else ()))
    forward = list(_forward(windows))
    if len(forward) < len(windows):
        notices.append(f"its clock went back: {counted(len(windows) - len(forward), 'sample window')} left out")
    return ProcessFigures(
        index=member.index,
        host=host,
        path=path,
        status=status,
        error=error,
        advice=run.advice,
        ended_seconds=at + offset if at is not None else None,
        exception=_exception(result, offset) if status in ("failed", "crashed", "interrupted") else None,
        exit_code=result.exit_code,
        wall_seconds=result.wall_seconds,
        steps_per_second=steps.per_second if steps is not None else None,
        step_median_seconds=steps.median_seconds if steps is not None else None,
        compile_count=result.compile_count,
        compile_seconds=result.compile_seconds,
        again=tuple(_again(result.compiles)),
        own_arguments=_own_arguments(result.compiles),
        loop=_loop(result.hot),
        windows=LoopWindows.of(forward),
        clock_offset_seconds=offset,
        stops=result.stops,
        clocks=device_clocks(session.readings),
        time=time_of(result),
        notices=tuple(notices),
    )


def _forward(windows: Iterable[LoopWindow]) -> Iterator[LoopWindow]:
    """Those that began after all before them."""
    latest = -inf
    for window in windows:
        if window.began_seconds >= latest:
            latest = window.began_seconds
            yield window


def _exception(result: ProgramResult, offset: float) -> tuple[float, str] | None:
    """When the program raised the exception that ended it, in Unix time, and its name, message and line; of one whose
    recording does not say so, the last traceback in its log."""
    run = result.run
    ended = run.program.ended if run.program is not None else None
    if ended is not None and ended.error and ended.error_seconds is not None:
        at = f" at {ended.error_at.short(result.directory)}" if ended.error_at else ""
        return ended.error_seconds + offset, ended.error[:_WORDS_KEPT] + at
    lines = [line for line in run.log if line.stream == "stderr"]
    number = raised_at([line.text for line in lines])
    return (lines[number].monotonic_seconds + offset, lines[number].text[:_WORDS_KEPT]) if number is not None else None


def _again(rows: Sequence[Compiled]) -> Iterator[CompiledAgain]:
    by_function: dict[tuple[str, int | None], list[Compiled]] = {}
    for row in rows:
        if row.reason_code != "first" and not (row.op_by_op or row.library):
            by_function.setdefault((row.function, row.defined_at.line), []).append(row)
    for (function, line), again in by_function.items():
        reason = next((row.reason for row in reversed(again) if row.reason), "")
        took = sum(map(row_seconds, again))
        count = sum(row.count for row in again)
        yield CompiledAgain(function, line, count, took, reason, again[-1].called_from or None)


def _own_arguments(rows: Sequence[Compiled]) -> tuple[OwnArguments, ...]:
    by_function: dict[tuple[str, int | None], list[Compiled]] = {}
    for row in rows:
        if not (row.op_by_op or row.library or row.signature_more):
            by_function.setdefault((row.function, row.defined_at.line), []).append(row)
    found = []
    for (function, line), compiled in by_function.items():
        if len(compiled) == 1 and compiled[0].count == 1:
            sizes = sorted(_on_one_device(compiled[0].signature), key=lambda each: -each[2])
            whole = sum(size for _, _, size in sizes)
            found.append(OwnArguments(function, line, whole, tuple(sizes), compiled[0].called_from or None))
    return tuple(sorted(found, key=lambda each: -each.bytes)[:_FUNCTIONS_KEPT])


def _on_one_device(signature: Sequence[SignatureLeaf]) -> Iterator[tuple[str, str, int]]:
    """Name, type and bytes of the arrays that are not spread over devices."""
    from jaxprof.hlo.shape import parse_shape

    for leaf in signature:
        if not leaf.static and " over " not in leaf.sharding:
            with suppress(ValueError):  # of a type that is no array's, such as a key's
                yield leaf.name, leaf.type, parse_shape(leaf.type).bytes


def _loop(hot: HotLoop) -> LoopFigures:
    by_part: dict[str, dict[SourceLocation, float]] = {}
    for spot in hot.spots:
        if spot.place:
            lines = by_part.setdefault(hot.part(spot), {})
            lines[spot.place] = lines.get(spot.place, 0.0) + spot.seconds
    slowest = {part: max(lines, key=lambda place: lines[place]) for part, lines in by_part.items()}
    return LoopFigures(
        hot.where,
        hot.seconds,
        hot.samples,
        hot.parts,
        tuple(LoopLine(part, place, by_part[part][place]) for part, place in slowest.items()),
    )


def _windows(result: ProgramResult, passes: Sequence[StepsTaken]) -> Iterator[LoopWindow]:
    hot, sampled = result.hot, result.sample_windows
    begins = [window.began_seconds for window in sampled]
    again = _compiled_again(result.compiles, begins)
    steps = _first_steps([taken for taken in passes if taken.where == hot.where], begins)
    for window, compiling, step in zip(sampled, again, steps, strict=True):
        found = Spots()
        found.take([window])
        spots = [spot for spot in found.spots() if spot.kind != "import"]
        if hot.key is not None:
            spots = [spot for spot in spots if spot.site_in(hot.key) is not None]
        parts = parts_in(hot, spots)
        staged = sum(spot.seconds for spot in spots if spot.kind in STAGES)
        steady = sum(parts.values())
        if staged + steady > 0:
            parts[COMPILE] = min(staged, compiling)
            samples = sum(spot.samples for spot in spots)
            waited = window.device_wait_seconds
            own = max(0.0, steady - waited) if waited is not None else None
            yield LoopWindow(window.began_seconds, staged + steady, samples, parts, own, step)


def _first_steps(passes: Sequence[StepsTaken], begins: Sequence[float]) -> list[int | None]:
    """By sample window: the number of the first pass that began in it or later; None where none did."""
    times: list[float] = []
    numbers: list[int] = []
    for taken in sorted(passes, key=lambda each: each.began_seconds):
        counts = taken.counts or [1] * len(taken.seconds)
        times += accumulate(taken.seconds[:-1], initial=taken.began_seconds)
        numbers += accumulate(counts[:-1], initial=taken.first)
    places = [bisect_left(times, at) for at in begins]
    return [numbers[place] if place < len(numbers) else None for place in places]


def _compiled_again(rows: Sequence[Compiled], begins: Sequence[float]) -> list[float]:
    """By sample window: the seconds of the main thread's compilations that were not the first of their function. A row
    of many is spread over its time."""
    seconds = [0.0] * len(begins)
    for row in again_rows(rows):
        took = row_seconds(row)
        length = max(took, row.monotonic_seconds - row.began_seconds) if row.count > 1 else took
        at, end = row.began_seconds, row.began_seconds + length
        number = max(0, bisect_right(begins, at) - 1)
        while at < end and number < len(begins):
            until = min(end, begins[number + 1]) if number + 1 < len(begins) else end
            seconds[number] += took * max(0.0, until - at) / length
            at, number = max(at, until), number + 1
    return seconds


def processes_named(indices: Sequence[int]) -> str:
    """`process 3`, `processes 1, 2 and 4 more`."""
    return f"{'process' if len(indices) == 1 else 'processes'} {and_more(list(map(str, indices)), MOST_NAMED)}"
