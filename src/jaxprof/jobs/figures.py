"""The figures of one process of a job, as a plain value without its session.

A value can be written to a table row and read back, so a job of many processes is judged without reading every session.
The sample windows of the hot loop are kept by column: a job of a thousand processes has tens of thousands of windows,
and as objects they took more time than everything that is derived from them.
"""

from __future__ import annotations

import signal
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from itertools import accumulate
from statistics import median
from typing import Any, TypeAlias

import numpy as np

from jaxprof.analysis.programs import COMPILE, COPY, DATA, DEVICE, DISPATCH, HOST, PARTS
from jaxprof.analysis.programs.functions import row_seconds
from jaxprof.analysis.programs.loop_time import HotLoop, parts_in, recompilations
from jaxprof.analysis.programs.pauses import Pause
from jaxprof.analysis.programs.result import ProgramResult
from jaxprof.analysis.programs.spots import Spots
from jaxprof.analysis.programs.standstill import Standstill
from jaxprof.analysis.programs.verdict import LEAST_SAMPLES
from jaxprof.base.grouping import totals
from jaxprof.base.units import and_more, counted
from jaxprof.base.values import frozen
from jaxprof.events import NOWHERE, STAGES, DeviceReading, SourceLocation
from jaxprof.events.finding import Finding
from jaxprof.findings.program_result import program_result
from jaxprof.findings.programs.claims import Claims
from jaxprof.findings.programs.compiling import unfinished_compile
from jaxprof.jobs.folder import is_growing
from jaxprof.session import Session
from jaxprof.session.readings import BUSY

_LAST_WINDOWS = 20
"""Sample windows that show what a process is doing now."""
Array: TypeAlias = "np.ndarray[Any, Any]"


@frozen(eq=False)
class LoopWindows:
    """The hot loop in W sample windows, in order of time, by column."""

    began_seconds: Array
    """Monotonic time at which each window began."""
    seconds: Array
    """Seconds in the loop, with first compilations; `parts` add up to this without them."""
    samples: Array
    """Number of samples that `parts` rest on."""
    parts: Array
    """W x P: seconds that go to each of `PARTS`, from samples."""
    own_seconds: Array
    """Seconds in which the main thread worked, or waited for anything but the device, by its CPU clock; else NaN."""
    first_steps: Array
    """Number of the first step that began in each window; NaN if its steps were not numbered."""

    @classmethod
    def of(cls, rows: Iterable[Sequence[float | None]] = ()) -> LoopWindows:
        """Return the windows of rows with the values in the order of the fields, and None for what is unknown."""
        width = len(fields(cls)) - 1 + len(PARTS)
        table = np.asarray(list(rows), dtype="f8").reshape(-1, width)  # None becomes NaN
        began, seconds, samples, *parts, own, steps = table.T
        return cls(began, seconds, samples, np.asarray(parts).T, own, steps)

    def part(self, name: str) -> Array:
        column: Array = self.parts[:, PARTS.index(name)]
        return column

    def select(self, rows: Array | slice) -> LoopWindows:
        """Return some of the windows: a slice, or those for which a boolean array is true."""
        return LoopWindows(*(getattr(self, field.name)[rows] for field in fields(self)))

    def __len__(self) -> int:
        return len(self.seconds)


LEAST_READINGS = 5
"""Smallest number of readings of a busy device, half a second apart; fewer may all be one moment."""


@frozen
class DeviceClock:
    """Clock of one device while it was busy."""

    device: str
    hertz: float
    """Median clock frequency."""
    throttled: float
    """Share of the readings with a reason for throttling."""
    reasons: tuple[str, ...]
    """Reasons for throttling, most frequent first."""


def device_clocks(readings: Mapping[str, Iterable[DeviceReading]]) -> tuple[DeviceClock, ...]:
    """Return the clocks of devices with enough readings while busy. CPUs report no reasons, and are left out."""
    clocks: list[DeviceClock] = []
    for device, device_readings in readings.items():
        if device.startswith("cpu:"):
            continue
        busy = [each for each in device_readings if each.utilisation is not None and each.utilisation >= BUSY]
        known = sorted((each.clock_hertz, each.count, each.throttle_reasons) for each in busy if each.clock_hertz)
        upto = list(accumulate(count for _, count, _ in known))
        if not known or upto[-1] < LEAST_READINGS:
            continue
        by_frequency = totals((reason, count) for _, count, reasons in known for reason in reasons)
        clocks.append(
            DeviceClock(
                device,
                known[bisect_left(upto, upto[-1] / 2)][0],
                sum(count for _, count, reasons in known if reasons) / upto[-1],
                tuple(sorted(by_frequency, key=lambda reason: -by_frequency[reason])),
            )
        )
    return tuple(clocks)


USEFUL, WAITING, START, FIRST, AGAIN, OUTSIDE, PAUSED, STANDING, AFTER, UNSEEN = (
    "useful",
    "waiting",
    "start",
    "first_compile",
    "recompile",
    "outside_loop",
    "paused",
    "standstill",
    "after_failure",
    "not_seen",
)
CAUSES = (USEFUL, WAITING, DATA, HOST, DISPATCH, COPY, AGAIN, FIRST, START, OUTSIDE, PAUSED, STANDING, AFTER, UNSEEN)
"""Causes that a second of a process's wall time can have; each second has exactly one."""
PARTS_OF_ITS_OWN = (DATA, HOST, DISPATCH, COPY)
"""Work that a process does while the others wait for it. Compilations have a finding of their own."""
IN_LOOP = (DEVICE, *PARTS_OF_ITS_OWN)
"""Parts of the loop, without compiling."""


def time_of(result: ProgramResult) -> Mapping[str, float] | None:
    """Return the seconds of one program's wall time by cause, as far as one process alone can know. `device` stands for
    useful time and for waiting. The seconds add up to the wall time. None if no loop was seen or no time passed."""
    hot = result.hot
    if hot.key is None or result.wall_seconds <= 0 or hot.seconds <= 0:
        return None
    compiling = result.main_compile_seconds
    again = min(compiling, sum(map(row_seconds, recompilations(result.compiles))))
    loop = {part: hot.parts[part] for part in IN_LOOP}
    inside = sum(loop.values())
    if inside > result.active_seconds > 0:  # the two are sums over the same samples
        loop = {part: took * result.active_seconds / inside for part, took in loop.items()}
    time = loop | {
        AGAIN: again,
        FIRST: compiling - again,
        START: result.states["import"],
        OUTSIDE: max(0.0, result.active_seconds - sum(loop.values())),
        PAUSED: result.states[PAUSED],
    }
    return time | {UNSEEN: max(0.0, result.wall_seconds - sum(time.values()))}


_SIGNALLED = 128
ENDED_BY_OTHERS = tuple(_SIGNALLED + number for number in (signal.SIGINT, signal.SIGABRT, signal.SIGTERM))
"""Exit codes of processes that are ended because another process has failed."""
MOST_NAMED = 8
"""Largest number of processes named in a sentence."""
_ERROR_SIZE = 300
_NO_END = "its session has no end: the process or its host was killed, or the file is not whole"


@frozen
class LoopLine:
    """The line of the loop that takes most time of one part."""

    part: str
    where: SourceLocation
    seconds: float


@frozen
class LoopFigures:
    """Figures of the hot loop of one process, or of the whole program if it has no loop."""

    where: SourceLocation | None
    """First line of the loop; None if there is no loop."""
    seconds: float
    """Seconds in the loop, without first compilations and waits for a processor."""
    samples: float
    parts: Mapping[str, float]
    """Seconds that go to each of `PARTS`."""
    lines: tuple[LoopLine, ...]
    """The most expensive line of each part that has a line."""

    def line_of(self, part: str) -> SourceLocation | None:
        """Return the most expensive line of a part; the loop's first line if none is known."""
        return next((line.where for line in self.lines if line.part == part), self.where)


@frozen
class CompiledAgain:
    """A function of the user that was compiled more than once."""

    function: str
    defined_line: int | None
    count: int
    """Number of compilations after the first."""
    seconds: float
    """Seconds of these recompilations, as JAX reported them."""
    reason: str
    """Reason of most of these recompilations, as text."""
    called_from: SourceLocation | None
    """Line that called most of the recompilations for that reason."""


@frozen
class ProcessFigures:
    index: int
    host: str
    path: str
    """Path of the process's session."""
    status: str
    """Status as of a run: `ok`, `failed`, `crashed`, `cancelled`, `running`; `interrupted` if the session has no end;
    `unknown` if no program was recorded."""
    error: str
    advice: str
    """Fix for the error, with the process's last words, if it failed."""
    ended_seconds: float | None = None
    """Unix time of the end by the clock of its host; None if unknown."""
    exception: tuple[float, str] | None = None
    """Unix time at which a failed process wrote its last traceback, and the line that names the exception; or None."""
    exit_code: int | None = None
    wall_seconds: float | None = None
    """Seconds of wall time; like all later fields, None if the session has no program."""
    steps_per_second: float | None = None
    step_count: int | None = None
    """Steps of the hot loop, each counted; None if they were not."""
    step_median_seconds: float | None = None
    compile_count: int | None = None
    compile_seconds: float | None = None
    again: tuple[CompiledAgain, ...] | None = None
    """Recompiled functions of the user, without JAX's own functions and those of libraries."""
    loop: LoopFigures | None = None
    windows: LoopWindows = field(default_factory=LoopWindows.of, compare=False)
    """Sample windows with time in the loop."""
    clock_offset_seconds: float = 0.0
    """Unix time minus the monotonic time of the host."""
    pauses: tuple[Pause, ...] = ()
    """Pauses in which the process could not run."""
    clocks: tuple[DeviceClock, ...] = ()
    """Clocks of the devices of the process's host, if they report them."""
    time: Mapping[str, float] | None = None
    """Seconds of the wall time by cause, as `time_of` computes them; None if no loop was seen."""
    notices: tuple[str, ...] = ()
    """What could not be used of the session."""
    standstill: Standstill | None = None
    """What it has been in since its last iteration, if one is missing, or was when it ended."""
    last_step: int | None = None
    """Number of the last iteration that was timed; None if they are not numbered."""
    compiling: Finding | None = None
    """The compilation that its main thread is in, or was in when it ended, before an iteration can be missing; only one
    that takes long."""
    longest_compile_seconds: float = 0.0
    last_line: SourceLocation = NOWHERE
    """The user's line with the most time in the last sample windows."""
    is_over: bool = False
    """Whether its program has ended, though its process may wait for others in its exit handlers."""
    ending_seconds: float = 0.0
    """Seconds from the end of its program to that of the process, in its exit handlers."""
    directory: str = ""
    """Folder in which its program was started."""

    @property
    def shares(self) -> Mapping[str, float] | None:
        """Share of the loop's time of each of `PARTS`; None if there are too few samples."""
        loop = self.loop
        if loop is None or loop.samples < LEAST_SAMPLES or loop.seconds <= 0:
            return None
        return {part: loop.parts[part] / loop.seconds for part in PARTS}

    @property
    def compiled_again(self) -> int | None:
        """Number of compilations after the first of their function; None if unknown."""
        return None if self.again is None else sum(each.count for each in self.again)


def same_loop(process: ProcessFigures, other: ProcessFigures) -> bool:
    """Return whether both were seen in a loop at the same line, or both in a program without a loop."""
    return process.loop is not None and other.loop is not None and process.loop.where == other.loop.where


def share_beside(process: ProcessFigures, others: Iterable[ProcessFigures], part: str) -> tuple[float, float] | None:
    """Return a part's share of the loop and the median share of the others, as tables, findings and views show it. None
    if too little was seen of either."""
    theirs = [each.shares[part] for each in others if each.shares is not None]
    return (process.shares[part], median(theirs)) if process.shares is not None and theirs else None


def process_figures(index: int, path: str, session: Session) -> ProcessFigures:
    host, growing = session.header.host, is_growing(session)
    run = next(iter(session.programs), None)
    notices = [] if growing else list(session.notices)  # the last line of a growing session may be incomplete
    if run is None:
        return ProcessFigures(index, host, path, "unknown", "it has recorded no program", "", notices=tuple(notices))
    result = program_result(session, run.id)
    end, at = run.shown, run.ended_seconds
    status, error = end.status, end.error
    offset = session.header.wall_seconds - session.header.monotonic_seconds
    # Nobody writes the session any more, and it says nothing of an end: the last event is the last sign of life.
    if not run.over and not growing:
        error, at = _NO_END, session.last_seconds
    raised = None
    text, where, raised_at = result.raised
    if status == "running" and text and result.ended:  # its process waits for the others, and will fail
        status, error = "failed", text[:_ERROR_SIZE]
    if status in ("failed", "crashed", "interrupted") and raised_at is not None:
        raised = raised_at + offset, text[:_ERROR_SIZE] + (f" at {where.short(result.directory)}" if where else "")
    again = []
    for function in result.functions:
        reasons = [reason for reason in function.reasons if reason.code != "first"]
        if reasons and not (function.op_by_op or function.library):
            line = function.defined_at.line if function.defined_at is not None else None
            count, took = sum(reason.count for reason in reasons), sum(reason.seconds for reason in reasons)
            most = reasons[0]
            again.append(CompiledAgain(function.function, line, count, took, most.text, most.called_from))
    steps = result.steps
    windows = LoopWindows.of(_loop_windows(result))
    # Windows are compared by time, so that those after a clock that was set back cannot be.
    forward = windows.select(windows.began_seconds >= np.maximum.accumulate(windows.began_seconds))
    if len(forward) < len(windows):
        notices.append(f"its clock went back: {counted(len(windows) - len(forward), 'sample window')} left out")
    return ProcessFigures(
        index=index,
        host=host,
        path=path,
        status=status,
        error=error,
        advice=run.hint,
        ended_seconds=at + offset if at is not None else None,
        exception=raised,
        exit_code=result.exit_code,
        wall_seconds=result.known_wall_seconds,
        steps_per_second=steps.per_second if steps is not None else None,
        step_count=result.iterations.count if result.iterations is not None else None,
        step_median_seconds=steps.median_seconds if steps is not None else None,
        compile_count=result.compile_count,
        compile_seconds=result.compile_seconds,
        again=tuple(again),
        loop=_loop(result.hot),
        windows=forward,
        clock_offset_seconds=offset,
        pauses=result.pauses,
        clocks=device_clocks(session.readings),
        time=time_of(result),
        notices=tuple(notices),
        standstill=result.standstill,
        last_step=result.iterations.last if result.iterations is not None and result.iterations.numbered_by else None,
        compiling=next(unfinished_compile.find(result, Claims(result)), None) if result.standstill is None else None,
        longest_compile_seconds=max(map(row_seconds, result.compiles), default=0.0),
        last_line=_last_line(result),
        is_over=result.ended or run.over,
        ending_seconds=result.ending_seconds,
        directory=result.directory,
    )


def _last_line(result: ProgramResult) -> SourceLocation:
    lines = [line for window in result.sample_windows[-_LAST_WINDOWS:] for line in window.lines if line.file]
    took = totals((line.location, line.seconds) for line in lines)
    return max(took, key=lambda line: took[line], default=NOWHERE)


def figures_json(figures: ProcessFigures) -> str:
    """Return the figures as JSON, for a cell of a table, without the sample windows, which are a table of their own."""
    import msgspec

    stored = msgspec.to_builtins(replace(figures, windows=LoopWindows.of()), enc_hook=np.ndarray.tolist)
    return msgspec.json.encode(stored | {"windows": []}).decode()


def figures_from_json(text: str) -> ProcessFigures:
    """Return the figures that `figures_json` wrote. Raises msgspec.MsgspecError for another text."""
    import msgspec

    stored = msgspec.json.decode(text, type=dict[str, Any])
    stored.pop("windows", None)
    return msgspec.convert(stored, ProcessFigures)


def _loop(hot: HotLoop) -> LoopFigures:
    at = totals(((hot.part(spot), spot.location), spot.seconds) for spot in hot.spots if spot.location)
    slowest: dict[str, LoopLine] = {}
    for (part, line), took in at.items():
        if part not in slowest or took > slowest[part].seconds:
            slowest[part] = LoopLine(part, line, took)
    return LoopFigures(
        hot.where,
        hot.own_seconds,
        hot.samples,
        hot.parts,
        tuple(slowest.values()),
    )


def _loop_windows(result: ProgramResult) -> Iterator[Sequence[float | None]]:
    hot, sampled = result.hot, result.sample_windows
    begins = [window.began_seconds for window in sampled]
    # Seconds of the main thread's compilations that were not the first of their function. The time of a row with many
    # compilations is spread over its duration.
    again = [0.0] * len(begins)
    for row in recompilations(result.compiles):
        took = row_seconds(row)
        length = max(took, row.monotonic_seconds - row.began_seconds) if row.count > 1 else took
        at, end = row.began_seconds, row.began_seconds + length
        number = max(0, bisect_right(begins, at) - 1)
        while at < end and number < len(begins):
            until = min(end, begins[number + 1]) if number + 1 < len(begins) else end
            again[number] += took * max(0.0, until - at) / length
            at, number = max(at, until), number + 1
    times: list[float] = []
    numbers: list[int] = []
    events = (each for each in result.steps_taken if each.where == hot.where)
    for taken in sorted(events, key=lambda each: each.began_seconds):
        counts = taken.counts or [1] * len(taken.seconds)
        times += accumulate(taken.seconds[:-1], initial=taken.began_seconds)
        numbers += accumulate(counts[:-1], initial=taken.first)
    # By sample window, the number of the first iteration that began in it or later.
    firsts = [bisect_left(times, at) for at in begins]
    steps = [numbers[first] if first < len(numbers) else None for first in firsts]
    for window, compiling, step in zip(sampled, again, steps, strict=True):
        # A window by itself: what it shares with the others is merged in `result.spots`, without the times.
        window_spots = Spots()
        window_spots.take([window])
        spots = [spot for spot in window_spots.spots() if spot.kind != "import"]
        if hot.key is not None:
            spots = [spot for spot in spots if spot.site_in(hot.key) is not None]
        parts = parts_in(hot, spots)
        staged = sum(spot.seconds for spot in spots if spot.kind in STAGES)
        steady = sum(parts.values())
        if staged + steady > 0:
            # Samples say that the loop compiled, and the ledger how much of that was again: first compilations are no
            # lateness.
            parts[COMPILE] = min(staged, compiling)
            samples = sum(spot.samples for spot in spots)
            waited = window.device_wait_seconds
            # What the device did not block, at whatever line: clocks show a process's own work better than samples.
            own = max(0.0, steady - waited) if waited is not None else None
            in_parts = [parts[part] for part in PARTS]
            yield window.began_seconds, staged + steady, samples, *in_parts, own, step


def processes_named(indices: Sequence[int]) -> str:
    """Return text such as `process 3` or `processes 1, 2 and 4 more`."""
    return f"{'process' if len(indices) == 1 else 'processes'} {and_more(list(map(str, indices)), MOST_NAMED)}"
