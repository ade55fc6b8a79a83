"""Report what each lane of a timeline did in a range of time, and which kernels took that time: text, JSON or CSV."""

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
_PART_OF_END: Final = 10
"""A range of a smaller part of its end's time needs more digits."""
_NAMES: Final = 10
"""Most names of a lane in JSON, so that a lane with a thousand functions stays short."""
_LANES_SHOWN, _KERNELS_SHOWN = 40, 20


@dataclass(frozen=True, slots=True)
class LaneOfRange:
    """A lane with its totals over the range."""

    device: str
    lane: str
    kind: str
    totals: LaneTotals


@dataclass(frozen=True, slots=True)
class KernelOfRange:
    """All executions of a kernel on a device in the range."""

    device: str
    total: NameTotal
    span_ns: int
    """Length of the range."""


@dataclass(frozen=True, slots=True)
class RunRange:
    """What a run did in a range of its timeline."""

    run: Run
    totals: RangeTotals
    lanes: tuple[LaneOfRange, ...]
    kernels: tuple[KernelOfRange, ...]
    devices: tuple[DeviceTotals, ...]
    left_out: int
    """Number of intervals of the profile that the timeline lacks, the shortest ones."""


def _seconds(key: str) -> Callable[[Any], float | None]:
    read = at(key)
    return lambda row: None if (took := read(row)) is None else took * _NS


DEVICES: Final[tuple[Fact[DeviceTotals], ...]] = (
    Fact("device", TEXT, "gpu:0, cpu:0", title="device"),
    Fact("busy_share", SHARE, "Busy share of the range; of several threads their mean", title="share"),
    Fact("busy_seconds", SECONDS, "How long it was busy", _seconds("busy_ns"), "busy"),
    Fact("idle_seconds", SECONDS, "How long it was idle", _seconds("idle_ns"), "idle"),
)
LANES: Final[tuple[Fact[LaneOfRange], ...]] = (
    Fact("device", TEXT, "gpu:0, cpu:0, host", title="device"),
    Fact("lane", TEXT, "The stream, thread or line", title="lane", widest=40),
    Fact("kind", TEXT, "modules, steps, stream, ops, async, thread, host"),
    Fact("threads", COUNT, "How many threads it has", at("totals.threads"), "threads"),
    Fact("busy_share", SHARE, "Busy share of the range; of several threads their mean", at("totals.busy_share"),
         "share"),
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
    """Return the totals of every run with a timeline, from `begin` to `end` in seconds; None is the begin or end of its
    timeline.

    Raises UsageError for a range that is empty or lies outside of every timeline; FileRefusedError for a damaged one.
    """
    timelines = [
        (run, lanes_of(read_timeline(text)))
        for run in session.runs.values()
        if (text := session.text(run.id, TEXT_NAME))
    ]
    if begin is not None and end is not None and begin >= end:
        raise UsageError(f"the range ends at {seconds(end)}, before it begins", "Give the earlier time to --from.")
    in_range = [found for run, lanes in timelines if (found := _range(run, lanes, begin, end)) is not None]
    if timelines and not in_range:
        spans = ", ".join(f"{seconds(lanes.begin * _NS, 5)} to {seconds(lanes.end * _NS, 5)}" for _, lanes in timelines)
        raise UsageError("nothing was recorded in this range", f"The timeline is from {spans}.")
    return in_range


def _range(run: Run, lanes: Lanes, begin: float | None, end: float | None) -> RunRange | None:
    low = lanes.begin if begin is None else max(lanes.begin, round(begin / _NS))
    high = lanes.end if end is None else min(lanes.end, round(end / _NS))
    if low >= high:
        return None
    totals = range_totals(lanes, low, high)
    with_totals = [(lanes.lanes[of_lane.lane], of_lane) for of_lane in totals.lanes]
    rows = tuple(LaneOfRange(lane.device, lane.title, lane.kind, of_lane) for lane, of_lane in with_totals)
    kernels = [
        KernelOfRange(device, total, totals.span_ns)
        for device in dict.fromkeys(lane.device for lane in lanes.lanes)
        for total in totals.kernels(lanes, device)
    ]
    kernels.sort(key=lambda row: -row.total.self_ns)
    return RunRange(run, totals, rows, tuple(kernels), device_totals(lanes, low, high), lanes.left_out)


def lanes_json(runs: list[RunRange]) -> dict[str, Any]:
    """Return the lanes of each run, with the names that took most of each, and the kernels of its devices, as
    JSON-ready data."""
    return {"runs": list(map(recorder(RANGE), runs))}


def lanes_text(runs: list[RunRange]) -> str:
    """Return the lanes and kernels of each run as text. Lanes in which nothing ran are counted, not listed."""
    return "\n\n".join("\n".join(_lines(run)) for run in runs) if runs else NO_TIMELINE


def _lines(of_run: RunRange) -> Iterator[str]:
    run, totals, lanes = of_run.run, of_run.totals, of_run.lanes
    digits = 3 if totals.span_ns * _PART_OF_END >= totals.end else 5  # a short range late in a long timeline
    begin, end = (seconds(time * _NS, digits) for time in (totals.begin, totals.end))
    yield safe(f"{run.id} {run.label}, {seconds(totals.span_ns * _NS)} from {begin} to {end}")
    active = [row for row in lanes if row.totals.count or (row.totals.left_out and row.totals.busy_ns)]
    idle = sum(row.totals.left_out == 0 for row in lanes if not row.totals.count)
    notes: tuple[str, ...] = (f"idle throughout: {idle} of {len(lanes)} lanes",) if idle else ()
    if of_run.left_out:
        notes += (
            f"{integer(of_run.left_out)} shortest intervals of the profile are not in this timeline: events, names and "
            "times of kernels exclude them; busy and idle include them",
        )
    yield from text_lines(Table(LANES, active, notes=notes).first(_LANES_SHOWN, "and {} more lanes"))
    if of_run.devices:
        yield ""
        yield from text_lines(Table(DEVICES, of_run.devices).first(_LANES_SHOWN, "and {} more devices"))
    if of_run.kernels:
        yield ""
        yield from text_lines(Table(KERNELS, of_run.kernels).first(_KERNELS_SHOWN, "and {} more kernels"))


def lanes_csv(runs: list[RunRange]) -> str:
    """Return a row for each lane of each run."""
    columns = [fact for fact in LANES if fact.key != "names"]
    return to_csv_text(joined("run", columns, ((of_run.run.id, of_run.lanes) for of_run in runs)))
