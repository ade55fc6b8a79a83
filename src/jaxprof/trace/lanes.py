"""From an XSpace to lanes: rows of intervals on one clock, each naming the HLO op that it belongs to, if it does.

Which lines are which differs by platform. CPU: host threads, whose events carry `hlo_op`. NVIDIA and AMD: the streams
of `/device:GPU:N`; derived lines that repeat them, and the launches on host threads, are not counted again. TPU: the
line `XLA Ops`, whose facts are on the event metadata.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jaxprof.trace.xspace import Line, Plane, Space, StatColumn

Kind = Literal["stream", "ops", "async", "thread", "modules", "steps", "host"]
NO_OP = -1

_DERIVED = {"XLA Modules": "modules", "Steps": "steps", "XLA Ops": "ops", "Async XLA Ops": "async"}
_IGNORED = re.compile(r"end: |ThreadpoolListener::")
_MODULE = re.compile(r"(?P<name>.*?)\((?P<id>-?\d+)\)$")
_DEVICE = re.compile(r"/device:(?P<platform>GPU|TPU|CUSTOM)\w*:(?P<number>\d+)")
HOST_PLANE = "/host:CPU"


@dataclass(frozen=True, slots=True)
class Op:
    """An HLO instruction as a profile names it."""

    module: str
    program: int | None
    """The program's id, as an unsigned number; None where the profile does not say."""
    name: str


@dataclass(slots=True)
class Lane:
    """One row of intervals. Times in picoseconds from the trace's origin."""

    device: str
    """`cpu`, `gpu:0`, `tpu:1`, or `host`."""
    name: str
    kind: Kind
    starts: NDArray[np.int64]
    durations: NDArray[np.int64]
    names: list[str]
    name_of: NDArray[np.int64]
    """Index into `names`, for each interval."""
    op_of: NDArray[np.int64]
    """Index into `Trace.ops`, or `NO_OP`."""
    line: Line
    correlation: NDArray[np.int64] | None = None


@dataclass(slots=True)
class Trace:
    """All lanes of a file."""

    platform: Literal["cpu", "gpu", "tpu", ""]
    """Where the HLO ops ran; empty where there are none."""
    lanes: list[Lane] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    origin_ns: int = 0
    """What the lines' clocks showed at the trace's origin."""

    def op_lanes(self) -> list[Lane]:
        """The lanes that are counted: where HLO ops ran, each once."""
        return [lane for lane in self.lanes if lane.kind in ("stream", "ops", "thread") and lane.device != "host"]


class _Ops:
    """Numbers for ops, given as they are met."""

    def __init__(self) -> None:
        self.list: list[Op] = []
        self._numbers: dict[Op, int] = {}

    def number(self, op: Op) -> int:
        found = self._numbers.get(op)
        if found is None:
            found = self._numbers[op] = len(self.list)
            self.list.append(op)
        return found


def lanes_of(space: Space) -> Trace:
    """The lanes of a space, on one clock."""
    lines = [(plane, line) for plane in space.planes for line in plane.lines if len(line)]
    origin = min((line.timestamp_ns for _, line in lines), default=0)
    trace = Trace(platform="", origin_ns=origin)
    ops = _Ops()
    for plane in space.planes:
        device = _DEVICE.match(plane.name)
        if device is not None:
            _device_lanes(plane, device, trace, ops)
    for plane in space.planes:
        if plane.name.startswith("/host:") and plane.name != "/host:metadata":
            _host_lanes(plane, trace, ops)
    trace.ops = ops.list
    return trace


def _device_lanes(plane: Plane, device: re.Match[str], trace: Trace, ops: _Ops) -> None:
    names = {line.name or line.display_name for line in plane.lines if len(line)}
    has_streams = any(name.startswith("Stream") for name in names)
    platform = device["platform"].lower().replace("custom", "gpu")
    modules = _module_names(plane)
    for line in plane.lines:
        if not len(line):
            continue
        name = line.name or line.display_name
        kind = _DERIVED.get(name, "stream" if name.startswith("Stream") else "host")
        if has_streams and kind in ("ops", "async"):
            kind = "host"  # it repeats the streams
        lane = _lane(line, trace, f"{platform}:{device['number']}", name, kind)  # type: ignore[arg-type]
        if kind == "stream":
            _ops_of_events(plane, line, lane, ops)
        elif kind == "ops":
            _ops_of_metadata(plane, line, lane, modules, ops)
        _own_clock(plane, line, lane)
        if kind in ("stream", "ops") and (lane.op_of != NO_OP).any():
            trace.platform = "tpu" if kind == "ops" and platform == "tpu" else "gpu"
        trace.lanes.append(lane)


def _host_lanes(plane: Plane, trace: Trace, ops: _Ops) -> None:
    on_device = trace.platform != ""
    for line in plane.lines:
        if not len(line):
            continue
        lane = _lane(line, trace, "host", line.name or line.display_name or "(no name)", "host")
        if not on_device:
            _ops_of_events(plane, line, lane, ops)
            if (lane.op_of != NO_OP).any():
                trace.platform = "cpu"
                lane.device, lane.kind = "cpu:0", "thread"
        trace.lanes.append(lane)


def _lane(line: Line, trace: Trace, device: str, name: str, kind: Kind) -> Lane:
    plane = line.plane
    ids, name_of = np.unique(line.metadata_ids, return_inverse=True)
    metadata = plane.event_metadata
    texts = []
    for key in ids.tolist():
        known = metadata.get(key)
        texts.append((known.display_name or known.name) if known is not None else f"event {key}")
    shift = (line.timestamp_ns - trace.origin_ns) * 1000
    return Lane(
        device=device,
        name=name,
        kind=kind,
        starts=line.starts_ps + shift,
        durations=line.durations_ps,
        names=texts,
        name_of=name_of.astype(np.int64),
        op_of=np.full(len(line), NO_OP, np.int64),
        line=line,
    )


def _ops_of_events(plane: Plane, line: Line, lane: Lane, ops: _Ops) -> None:
    """GPU and CPU: the event's own statistics name the op."""
    wanted = plane.stat_ids("hlo_op", "hlo_module", "program_id", "correlation_id")
    columns = line.stats(wanted)
    op, module, program = columns.get("hlo_op"), columns.get("hlo_module"), columns.get("program_id")
    correlation = columns.get("correlation_id")
    if correlation is not None and correlation.present.any():
        lane.correlation = np.where(correlation.present, correlation.number, -1)
    if op is None or not op.present.any():
        return
    ignored = np.array([bool(_IGNORED.match(name)) for name in lane.names])[lane.name_of]
    rows = np.flatnonzero(op.present & ~ignored)
    keys = np.stack([_keys(op, rows), _keys(module, rows), _keys(program, rows)])
    different, which = np.unique(keys, axis=1, return_inverse=True)
    first = np.full(different.shape[1], len(rows), np.int64)
    np.minimum.at(first, which.ravel(), np.arange(len(rows)))
    numbers = np.empty(different.shape[1], np.int64)
    for index, example in enumerate(rows[first].tolist()):
        identity = int(program.number[example]) if program is not None and program.present[example] else None
        numbers[index] = ops.number(
            Op(
                module=_text(plane, module, example),
                program=None if identity is None else identity & 0xFFFF_FFFF_FFFF_FFFF,
                name=_text(plane, op, example),
            )
        )
    lane.op_of[rows] = numbers[which.ravel()]


def _keys(column: StatColumn | None, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers that are equal where the statistic is: references and integers as they are, texts by their hash."""
    if column is None:
        return np.zeros(len(rows), np.int64)
    keys = column.number[rows].copy()
    textual = np.flatnonzero(column.text_end[rows])
    if len(textual):
        blob = column.blob
        at, end = column.number[rows], column.text_end[rows]
        keys[textual] = [hash(bytes(blob[at[index] : end[index]])) for index in textual.tolist()]
    return keys


def _text(plane: Plane, column: StatColumn | None, row: int) -> str:
    if column is None or not column.present[row]:
        return ""
    if column.text_end[row]:
        return plane.space.text(int(column.number[row]), int(column.text_end[row]))
    if column.is_reference[row]:
        return plane.stat_names.get(int(column.number[row]), "")
    return str(int(column.number[row]))


def _own_clock(plane: Plane, line: Line, lane: Lane) -> None:
    """TPU: what the device's own clock says; the event's times are converted to the host's clock, which drifts.

    The lane is moved as a whole, so that it stands beside the host's lanes and its intervals still nest.
    """
    columns = line.stats(plane.stat_ids("device_duration_ps", "device_offset_ps"))
    duration, offset = columns.get("device_duration_ps"), columns.get("device_offset_ps")
    if duration is None or offset is None or not (duration.present & offset.present).all():
        return
    shift = int(np.median(lane.starts - offset.number))
    lane.starts, lane.durations = offset.number + shift, duration.number


def _module_names(plane: Plane) -> dict[int, str]:
    """Names of programs by id, from events such as `jit_f(1219…)`."""
    found = {}
    for line in plane.lines:
        if line.name != "XLA Modules":
            continue
        for key in np.unique(line.metadata_ids).tolist():
            known = plane.event_metadata.get(key)
            match = _MODULE.match(known.name) if known is not None else None
            if match:
                found[int(match["id"]) & 0xFFFF_FFFF_FFFF_FFFF] = match["name"]
    return found


def _ops_of_metadata(plane: Plane, line: Line, lane: Lane, modules: dict[int, str], ops: _Ops) -> None:
    """TPU: the event's metadata names the op, its program, and what it costs."""
    ids, which = np.unique(line.metadata_ids, return_inverse=True)
    numbers = np.full(len(ids), NO_OP, np.int64)
    for index, key in enumerate(ids.tolist()):
        known = plane.event_metadata.get(key)
        if known is None:
            continue
        program = known.stats.get("program_id")
        if not isinstance(program, int):
            continue
        identity = program & 0xFFFF_FFFF_FFFF_FFFF
        name = known.display_name or known.name.lstrip("%").split(" ", 1)[0]
        numbers[index] = ops.number(Op(module=modules.get(identity, ""), program=identity, name=name))
    lane.op_of[:] = numbers[which]
