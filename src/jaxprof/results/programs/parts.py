"""The parts of a program's figures, as values: its time line, the lines of its source, its steps, arrays, transfers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from jaxprof.events import PROGRAM_STATES, STAGES, ArraysCounted, ProgramSampled, StepsCounted, TransfersSeen
from jaxprof.results.programs.places import Place, place

NOT_SEEN: Final = "not_seen"
"""The last share of a time line: before the recording began, after it ended, and where nothing was recorded."""
EXACT_STATES: Final = frozenset(STAGES)
"""JAX announces when these begin and end; the other states are estimated from samples of the stack."""


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

    place: Place
    state: str
    call: str
    """What is called there: `float()`, `.item()`, `train_step`; empty where that is not known."""
    seconds: float
    stretches: int
    """In how many stretches of the recording it was seen."""


@dataclass(frozen=True, slots=True)
class StepFigures:
    """One loop of the program."""

    count: int
    seconds: float
    median_seconds: float | None
    jitter: float | None
    """Median absolute deviation of the single steps over their median; None for fewer than five."""
    where: Place | None
    name: str
    """Of a step annotation; empty for a loop."""
    found_by: str
    """`monitoring` or `annotation`."""

    @property
    def per_second(self) -> float | None:
        """Steps a second, over all of its time."""
        return self.count / self.seconds if self.seconds > 0 else None


@dataclass(frozen=True, slots=True)
class ArrayFigures:
    """The live arrays of the process over time."""

    counts: tuple[tuple[float, int, int], ...]
    """Seconds since the program began, arrays, bytes."""
    peak_count: int
    peak_bytes: int
    device_peak_bytes: Mapping[str, int]
    """By device; devices that do not tell are absent."""

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
    """Copies of one direction that were seen in one way: at one place, or of one type."""

    direction: str
    """`host_to_device`, `device_to_host` or `device_to_device`."""
    source: str
    """`guard`: JAX's transfer guard counted them; `samples`: the count is of samples of the stack."""
    where: Place | None
    count: int
    bytes: int | None
    """Of all of them; None where that is not known of each: those that the guard counts without their type have none,
    and a row of their own."""
    seconds: float | None
    type: str = ""
    """`f32[4]`, where the guard told it."""


class Totals:
    """Sums over the stretches of one program. Takes each stretch once, so a program of hours costs what is new."""

    __slots__ = ("_lines", "consumed", "own_seconds", "samples", "states")

    def __init__(self) -> None:
        self.consumed = 0
        self.samples = 0
        self.own_seconds: float | None = None
        self.states: dict[str, float] = dict.fromkeys(PROGRAM_STATES, 0.0)
        self._lines: dict[tuple[Place, str, str], tuple[float, int]] = {}

    def take(self, sampled: Sequence[ProgramSampled]) -> None:
        """Adds the stretches that have come since."""
        for stretch in sampled[self.consumed :]:
            self.samples += stretch.samples
            if stretch.own_seconds is not None:
                self.own_seconds = (self.own_seconds or 0.0) + stretch.own_seconds
            for state, seconds in stretch.states.items():
                if state in self.states and seconds > 0:
                    self.states[state] += seconds
            for line in stretch.lines:
                self._take_line(line)
        self.consumed = len(sampled)

    def _take_line(self, line: Mapping[str, Any]) -> None:
        where, seconds = place(line), line.get("seconds")
        if where is None or not isinstance(seconds, int | float):
            return
        key = (where, str(line.get("state") or ""), str(line.get("call") or ""))
        took, stretches = self._lines.get(key, (0.0, 0))
        self._lines[key] = (took + seconds, stretches + 1)

    def lines(self) -> tuple[LineTime, ...]:
        """The lines, the one that took most first."""
        found = [LineTime(*key, *value) for key, value in self._lines.items()]
        return tuple(sorted(found, key=lambda line: -line.seconds))


def time_line(states: Mapping[str, float], wall_seconds: float) -> tuple[Share, ...]:
    """Every state of `PROGRAM_STATES` and what was not seen; together `wall_seconds`, which is at least their sum."""
    shares = [Share(state, states.get(state, 0.0), state in EXACT_STATES) for state in PROGRAM_STATES]
    missing = max(0.0, wall_seconds - sum(share.seconds for share in shares))
    return (*shares, Share(NOT_SEEN, missing, False))


def segments(
    sampled: Iterable[ProgramSampled], began_seconds: float, wall_seconds: float
) -> Iterator[tuple[str, float]]:
    """The time line in the order of time, as (state, seconds). Within a stretch the order of the states is not known:
    they stand in that of `PROGRAM_STATES`."""
    at, end = began_seconds, began_seconds + wall_seconds
    for stretch in sampled:
        if stretch.began_seconds > at:
            yield NOT_SEEN, stretch.began_seconds - at
        for state in PROGRAM_STATES:
            seconds = stretch.states.get(state, 0.0)
            if seconds > 0:
                yield state, seconds
        at = max(at, stretch.monotonic_seconds)
    if end > at:
        yield NOT_SEEN, end - at


_FEW_STEPS = 5
"""Fewer single steps than this give no jitter."""


def loops(counted: Sequence[StepsCounted]) -> tuple[StepFigures, ...]:
    """The loops of a program, the one that took most time first; of two, one that the program named itself."""
    grouped: dict[tuple[Place | None, str, str], list[StepsCounted]] = {}
    for event in counted:
        name = event.where.get("name")
        key = (place(event.where), name if isinstance(name, str) else "", event.found_by)
        grouped.setdefault(key, []).append(event)
    found = [_loop(where, name, by, events) for (where, name, by), events in grouped.items()]
    return tuple(sorted(found, key=lambda one: (-one.seconds, one.found_by != "annotation")))


def _loop(where: Place | None, name: str, found_by: str, events: Sequence[StepsCounted]) -> StepFigures:
    single = [seconds for event in events for seconds in event.intervals_seconds]
    middle = median(single) if single else None
    jitter = None
    if middle and len(single) >= _FEW_STEPS:
        jitter = median(abs(seconds - middle) for seconds in single) / middle
    return StepFigures(
        count=sum(event.count for event in events),
        seconds=sum(event.seconds for event in events),
        median_seconds=middle,
        jitter=jitter,
        where=where,
        name=name,
        found_by=found_by,
    )


def array_figures(counted: Sequence[ArraysCounted], began_seconds: float) -> ArrayFigures | None:
    """The live arrays over time; None where they were never counted."""
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
    """The copies, added up by direction, source, place and type: those that JAX counted first, then by bytes
    and count. Counts of the guard whose bytes are not known stay apart from those whose are."""
    grouped: dict[tuple[str, str, Place | None, str, bool], list[Mapping[str, Any]]] = {}
    for event in seen:
        for row in event.rows:
            source, kind = str(row.get("source") or ""), str(row.get("type") or "")
            unknown = source == "guard" and row.get("bytes") is None
            key = (str(row.get("direction") or "unknown"), source, place(row), kind, unknown)
            grouped.setdefault(key, []).append(row)
    found = [
        Transfer(
            direction=direction,
            source=source,
            where=where,
            count=sum(int(row.get("count") or 0) for row in rows),
            bytes=None if (moved := _total(rows, "bytes")) is None else int(moved),
            seconds=_total(rows, "seconds"),
            type=kind,
        )
        for (direction, source, where, kind, _), rows in grouped.items()
    ]
    return tuple(sorted(found, key=_order))


def _order(one: Transfer) -> tuple[bool, bool, int, int]:
    """Those of unknown size first: they may be the most."""
    counted = one.source == "guard"
    return (not counted, counted and one.bytes is not None, -(one.bytes or 0), -one.count)


def _total(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """The sum of what is known; None where nothing is."""
    known = [value for row in rows if isinstance(value := row.get(name), int | float)]
    return sum(known) if known else None
