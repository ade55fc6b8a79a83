"""The parts of a program's figures, as values: its time line, the lines of its source, its steps, arrays, transfers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Final, TypeVar

from jaxprof.events import (
    PROGRAM_STATES,
    STAGES,
    ArraysCounted,
    CopiesSeen,
    ProgramSampled,
    SampledLine,
    SourceLocation,
    StepsCounted,
    StepsTaken,
    TransfersSeen,
)
from jaxprof.light_dataclass import dataclass

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
    can miss the steps that wait, for a processor or for the device."""


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


def loops(counted: Sequence[StepsCounted], taken: Sequence[StepsTaken] = ()) -> tuple[StepFigures, ...]:
    """The loops of a program, those that took most time first; of equal ones, those that the program itself named.
    `taken`: their steps one by one, where these were told."""
    grouped: dict[tuple[SourceLocation | None, str, str], list[StepsCounted]] = {}
    for event in counted:
        key = (event.where or None, event.name, event.found_by)
        grouped.setdefault(key, []).append(event)
    steps: dict[SourceLocation, tuple[int, float]] = {}
    for each in taken:
        count, took = steps.get(each.where, (0, 0.0))
        steps[each.where] = (count + each.count, took + sum(each.seconds))
    figures = [
        _loop(where, name, by, events, steps.get(where) if where is not None else None)
        for (where, name, by), events in grouped.items()
    ]
    return tuple(sorted(figures, key=lambda loop: (-loop.seconds, loop.found_by != "annotation")))


def _loop(
    where: SourceLocation | None,
    name: str,
    found_by: str,
    events: Sequence[StepsCounted],
    steps: tuple[int, float] | None,
) -> StepFigures:
    single = [seconds for event in events for seconds in event.intervals_seconds]
    middle = median(single) if single else None
    jitter = None
    if middle and len(single) >= _FEW_STEPS:
        jitter = median(abs(seconds - middle) for seconds in single) / middle
    count, took = sum(event.count for event in events), sum(event.seconds for event in events)
    brief = found_by == "monitoring" and took < BRIEF_SECONDS * count
    rated = steps if steps is not None and steps[1] > 0 else (count, 0.0 if brief or found_by == "tracing" else took)
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
