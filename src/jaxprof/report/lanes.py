"""What each lane of a timeline did in a range of time, and the kernels that took it, as text, JSON or CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from jaxprof.analysis.lanes.rows import Lanes, lanes_of
from jaxprof.analysis.lanes.totals import DeviceTotals, LaneTotals, NameTotal, RangeTotals, device_totals, range_totals
from jaxprof.analysis.timeline import TEXT_NAME, read_timeline
from jaxprof.errors import UsageError
from jaxprof.facts import RUN, Fact, at, column, recorder
from jaxprof.facts.units import COUNT, ROWS, SECONDS, SHARE, TEXT
from jaxprof.report.renderers import text_lines, to_csv_text
from jaxprof.report.table import Table, joined
from jaxprof.session import Run, Session
from jaxprof.text import safe
from jaxprof.units import integer, seconds

NO_TIMELINE: Final = "This session has no timeline."
_NS: Final = 1e-9
_NAMES: Final = 10
"""Names of a lane that are listed: JSON has no more, so that a lane of a thousand functions stays short."""
_LANES_SHOWN, _KERNELS_SHOWN = 40, 20


@dataclass(frozen=True, slots=True)
class LaneOfRange:
    """A lane with its totals."""

    device: str
    lane: str
    kind: str
    totals: LaneTotals


@dataclass(frozen=True, slots=True)
class KernelOfRange:
    """What ran on a device under one name."""

    device: str
    total: NameTotal
    span_ns: int


@dataclass(frozen=True, slots=True)
class RunRange:
    """The range of a run's timeline."""

    run: Run
    totals: RangeTotals
    lanes: tuple[LaneOfRange, ...]
    kernels: tuple[KernelOfRange, ...]
    devices: tuple[DeviceTotals, ...]
    left_out: int
    """Intervals that the timeline lacks."""


def _seconds(key: str) -> Callable[[Any], float | None]:
    read = at(key)
    return lambda row: None if (took := read(row)) is None else took * _NS


DEVICES: Final[tuple[Fact[DeviceTotals], ...]] = (
    Fact("device", TEXT, "gpu:0, cpu:0", title="device"),
    Fact("busy_share", SHARE, "Busy share of the range; of several threads their mean", title="busy"),
    Fact("busy_seconds", SECONDS, "How long it was busy", _seconds("busy_ns"), "busy"),
    Fact("idle_seconds", SECONDS, "How long it was idle", _seconds("idle_ns"), "idle"),
)
LANES: Final[tuple[Fact[LaneOfRange], ...]] = (
    Fact("device", TEXT, "gpu:0, cpu:0, host", title="device"),
    Fact("lane", TEXT, "The stream, thread or line", title="lane", widest=40),
    Fact("kind", TEXT, "modules, steps, stream, ops, async, thread, host"),
    Fact("threads", COUNT, "How many threads it has", at("totals.threads"), "threads"),
    Fact("busy_share", SHARE, "Busy share of the range; of several threads their mean", at("totals.busy_share"),
         "busy"),
    Fact("busy_seconds", SECONDS, "How long anything ran; of several threads their sum", _seconds("totals.busy_ns"),
         "busy"),
    Fact("idle_seconds", SECONDS, "How long nothing ran; of several threads their sum", _seconds("totals.idle_ns"),
         "idle"),
    Fact("count", COUNT, "Events that are at least partly in the range", at("totals.count"), "events"),
    Fact("left_out", COUNT, "Its intervals that the timeline lacks, the shortest", at("totals.left_out")),
    column("most", lambda row: row.totals.names[0].name if row.totals.names else None, widest=40),
    Fact("names", ROWS, "What took most of it, without what is nested inside",
         lambda row: row.totals.names[:_NAMES], inside=(
             Fact("name", TEXT, "What ran"),
             Fact("count", COUNT, "How often it ran"),
             Fact("self_seconds", SECONDS, "How long, without what ran inside it", _seconds("self_ns")),
         )),
)  # fmt: skip
KERNELS: Final[tuple[Fact[KernelOfRange], ...]] = (
    Fact("device", TEXT, "gpu:0, cpu:0", title="device"),
    Fact("self_seconds", SECONDS, "Time of its kernels, without what ran inside them", _seconds("total.self_ns"),
         "self"),
    Fact("share", SHARE, "Share of the range", lambda row: row.total.self_ns / max(1, row.span_ns), "of range"),
    Fact("count", COUNT, "Executions", at("total.count"), "times"),
    Fact("name", TEXT, "Name of the kernel", at("total.name"), "kernel", widest=60),
)  # fmt: skip
RANGE: Final[tuple[Fact[RunRange], ...]] = (
    RUN,
    Fact("label", TEXT, "Name of the run for people", at("run.label")),
    Fact("begin_seconds", SECONDS, "When the range begins, on the clock of the timeline", _seconds("totals.begin")),
    Fact("end_seconds", SECONDS, "When it ends", _seconds("totals.end")),
    Fact("left_out", COUNT, "The shortest intervals of the profile, which the timeline lacks"),
    Fact("devices", ROWS, "Its devices, over all of their streams or threads", inside=DEVICES),
    Fact("lanes", ROWS, "Its lanes", inside=LANES),
    Fact("kernels", ROWS, "The kernels of its devices, the longest first", inside=KERNELS),
)


def ranges(session: Session, begin: float | None, end: float | None) -> list[RunRange]:
    """The totals of every run with a timeline, from `begin` to `end` in seconds; None is its own begin or end.

    Raises UsageError for a range that is empty or lies outside of every timeline; FileRefusedError for a damaged one.
    """
    timelines = [
        (run, lanes_of(read_timeline(text)))
        for run in session.runs.values()
        if (text := session.text(run.id, TEXT_NAME))
    ]
    if begin is not None and end is not None and begin >= end:
        raise UsageError(f"the range ends at {seconds(end)}, before it begins", "--from is the earlier time.")
    found = [one for run, lanes in timelines if (one := _range(run, lanes, begin, end)) is not None]
    if timelines and not found:
        spans = ", ".join(f"{seconds(lanes.begin * _NS, 5)} to {seconds(lanes.end * _NS, 5)}" for _, lanes in timelines)
        raise UsageError("nothing was recorded in this range", f"The timeline is from {spans}.")
    return found


def _range(run: Run, lanes: Lanes, begin: float | None, end: float | None) -> RunRange | None:
    low = lanes.begin if begin is None else max(lanes.begin, round(begin / _NS))
    high = lanes.end if end is None else min(lanes.end, round(end / _NS))
    if low >= high:
        return None
    totals = range_totals(lanes, low, high)
    rows = [LaneOfRange((lane := lanes.lanes[one.lane]).device, lane.title, lane.kind, one) for one in totals.lanes]
    kernels = [
        KernelOfRange(device, total, totals.span_ns)
        for device in dict.fromkeys(lane.device for lane in lanes.lanes)
        for total in totals.kernels(lanes, device)
    ]
    kernels.sort(key=lambda row: -row.total.self_ns)
    return RunRange(run, totals, tuple(rows), tuple(kernels), device_totals(lanes, low, high), lanes.left_out)


def lanes_json(found: list[RunRange]) -> dict[str, Any]:
    """The lanes of each run, with the names that took most of each, and the kernels of its devices."""
    return {"runs": list(map(recorder(RANGE), found))}


def lanes_text(found: list[RunRange]) -> str:
    """The same for people: lanes in which nothing ran are counted, not listed."""
    return "\n\n".join("\n".join(_lines(one)) for one in found) if found else NO_TIMELINE


def _lines(one: RunRange) -> Iterator[str]:
    begin, end = (seconds(time * _NS, 5) for time in (one.totals.begin, one.totals.end))
    yield safe(f"{one.run.id} {one.run.label}, {seconds(one.totals.span_ns * _NS)} from {begin} to {end}")
    ran = [row for row in one.lanes if row.totals.count or (row.totals.left_out and row.totals.busy_ns)]
    quiet = sum(row.totals.left_out == 0 for row in one.lanes if not row.totals.count)
    notes: tuple[str, ...] = (f"idle throughout: {quiet} of {len(one.lanes)} lanes",) if quiet else ()
    if one.left_out:
        notes += (
            f"{integer(one.left_out)} shortest intervals of the profile are not in this timeline: events, names and "
            "times of kernels are without them, busy and idle are with them",
        )
    yield from text_lines(Table(LANES, ran, notes=notes).first(_LANES_SHOWN, "and {} more lanes"))
    if one.devices:
        yield ""
        yield from text_lines(Table(DEVICES, one.devices).first(_LANES_SHOWN, "and {} more devices"))
    if one.kernels:
        yield ""
        yield from text_lines(Table(KERNELS, one.kernels).first(_KERNELS_SHOWN, "and {} more kernels"))


def lanes_csv(found: list[RunRange]) -> str:
    """A row for each lane."""
    columns = [fact for fact in LANES if fact.key != "names"]
    return to_csv_text(joined("run", columns, ((one.run.id, one.lanes) for one in found)))
