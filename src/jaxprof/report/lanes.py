"""What each lane of a timeline did in a range of time, and the kernels that took it, as text, JSON or CSV."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from jaxprof.analysis.lanes.rows import Lanes, lanes_of
from jaxprof.analysis.lanes.totals import (
    DeviceTotals,
    LaneTotals,
    NameTotal,
    RangeTotals,
    device_totals,
    range_totals,
)
from jaxprof.analysis.timeline import TEXT_NAME, read_timeline
from jaxprof.errors import UsageError
from jaxprof.facts import at
from jaxprof.report.renderers import records, text_lines, to_csv_text
from jaxprof.report.table import Column, Table, joined, pick
from jaxprof.session import Run, Session
from jaxprof.text import safe
from jaxprof.units import integer, percent, seconds

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


def _names(row: LaneOfRange) -> list[dict[str, Any]]:
    return [
        {"name": one.name, "count": one.count, "self_seconds": one.self_ns * _NS} for one in row.totals.names[:_NAMES]
    ]


def _idle_seconds(row: LaneOfRange) -> float | None:
    return None if row.totals.idle_ns is None else row.totals.idle_ns * _NS


DEVICES: Final[tuple[Column[DeviceTotals], ...]] = (
    Column("device", "device"),
    Column("busy_share", "busy", show=percent),
    Column("busy_seconds", "busy", lambda row: None if row.busy_ns is None else row.busy_ns * _NS, seconds),
    Column("idle_seconds", "idle", lambda row: None if row.idle_ns is None else row.idle_ns * _NS, seconds),
)
LANES: Final[tuple[Column[LaneOfRange], ...]] = (
    Column("device", "device"),
    Column("lane", "lane", widest=40),
    Column("kind"),
    Column("threads", "threads", at("totals.threads"), integer),
    Column("busy_share", "busy", at("totals.busy_share"), percent),
    Column("busy_seconds", "busy", lambda row: row.totals.busy_ns * _NS, seconds),
    Column("idle_seconds", "idle", _idle_seconds, seconds),
    Column("count", "events", at("totals.count"), integer),
    Column("left_out", value=at("totals.left_out")),
    Column("", "most", lambda row: row.totals.names[0].name if row.totals.names else None, widest=40),
    Column("names", value=_names),
)
KERNELS: Final[tuple[Column[KernelOfRange], ...]] = (
    Column("device", "device"),
    Column("self_seconds", "self", lambda row: row.total.self_ns * _NS, seconds),
    Column("share", "of range", lambda row: row.total.self_ns / max(1, row.span_ns), percent),
    Column("count", "times", at("total.count"), integer),
    Column("name", "kernel", at("total.name"), widest=60),
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
    return {
        "runs": [
            {
                "run": one.run.id,
                "label": one.run.label,
                "begin_seconds": one.totals.begin * _NS,
                "end_seconds": one.totals.end * _NS,
                "left_out": one.left_out,
                "devices": list(records(Table(DEVICES, one.devices))),
                "lanes": list(records(Table(LANES, one.lanes))),
                "kernels": list(records(Table(KERNELS, one.kernels))),
            }
            for one in found
        ]
    }


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
    columns = pick(
        LANES, "device", "lane", "kind", "threads", "busy_share", "busy_seconds", "idle_seconds", "count", "left_out"
    )
    return to_csv_text(joined("run", columns, ((one.run.id, one.lanes) for one in found)))
