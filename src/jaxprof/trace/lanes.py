"""From an XSpace to lanes: rows of intervals on one clock, each naming the HLO op that it belongs to, if it does.

Which lines are which differs by platform. CPU: host threads, whose events carry `hlo_op`. NVIDIA and AMD: the streams
of `/device:GPU:N`; derived lines that repeat them, and the launches on host threads, are not counted again. TPU: the
line `XLA Ops`, whose facts are on the event metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jaxprof.trace.columns import examples, integers, keys, text_at, text_column
from jaxprof.trace.intervals import distinct
from jaxprof.trace.line import Line, StatColumn
from jaxprof.trace.matching import match_kernels
from jaxprof.trace.model import (
    ABSENT,
    LONGEST_PS,
    NO_OP,
    PROGRAM_MASK,
    Ints,
    Kind,
    Lane,
    Op,
    OpNumbers,
    ProgramText,
    Trace,
    sound,
)
from jaxprof.trace.varints import VARINT, TruncatedError, fields, padded, varint
from jaxprof.trace.xspace import Plane, Space

DERIVED: Final[dict[str, Kind]] = {
    "XLA Modules": "modules",
    "Steps": "steps",
    "XLA Ops": "ops",
    "Async XLA Ops": "async",
}
MARKS = re.compile(r"end: |ThreadpoolListener::")
"""Events that the profiler writes for itself: the far end of an arrow, when a thread of a pool woke up."""
MODULE = re.compile(r"(?P<name>.*?)\((?P<id>-?\d+)\)$", re.DOTALL)
DEVICE = re.compile(r"/device:(?P<platform>GPU|TPU|CUSTOM)\w*:(?P<number>\d+)")
METADATA_PLANE, TASK_PLANE = "/host:metadata", "Task Environment"
HOST: Final = "host"
_OP_STATS = ("hlo_op", "hlo_module", "program_id", "correlation_id", "run_id", "device_ordinal")
_TRACERS: Final = {2: "host", 3: "device", 4: "python", 7: "hlo"}
"""Fields of `ProfileOptions` (tsl/profiler/protobuf/profiler_options.proto)."""
_DAMAGE = (TruncatedError, IndexError, ValueError, OverflowError)
"""What reading a damaged message raises."""


def lanes_of(space: Space) -> Trace:
    """The lanes of a space, on one clock. What cannot be read of it is named in `problems`."""
    trace = Trace(hosts=list(space.hosts), problems=space.problems)
    trace.errors, trace.warnings = list(space.errors), list(space.warnings)
    lines = {id(plane): _readable_lines(plane, trace) for plane in space.planes}
    stamps = [line.timestamp_ns for found in lines.values() for line in found if len(line)]
    trace.origin_ns = _origin(stamps)
    ops = OpNumbers()
    for plane in space.planes:
        device = DEVICE.match(plane.name)
        if device is not None:
            _device_lanes(plane, lines[id(plane)], device, trace, ops)
        elif plane.name == METADATA_PLANE:
            _guarded(trace, plane.name, _programs, plane, trace)
        elif plane.name == TASK_PLANE:
            _guarded(trace, plane.name, _recording, plane, trace)
    for plane in space.planes:
        if plane.name.startswith("/host:") and plane.name != METADATA_PLANE:
            _host_lanes(plane, lines[id(plane)], trace, ops)
    trace.ops = ops.list
    match_kernels(trace)
    return trace


def _origin(stamps: list[int]) -> int:
    """The earliest of the lines' clocks; one that is days away from the others is damage."""
    middle = sorted(stamps)[len(stamps) // 2] if stamps else 0
    return min((stamp for stamp in stamps if abs(stamp - middle) < LONGEST_PS // 1000), default=0)


def _readable_lines(plane: Plane, trace: Trace) -> list[Line]:
    found, damaged = plane.readable_lines()
    trace.problems += [f"{plane.name}: a line cannot be read: {problem}" for problem in damaged]
    trace.events += sum(len(line) for line in found)
    return found


def _guarded(trace: Trace, where: str, read: Callable[..., None], *arguments: object) -> None:
    """Calls `read`, and notes where damage stopped it."""
    try:
        read(*arguments)
    except _DAMAGE as error:
        trace.problems.append(f"{where} is damaged: {error}")


def _add(trace: Trace, lane: Lane) -> None:
    """Takes a lane in, without what cannot be a time."""
    good, dropped = sound(lane)
    if dropped:
        trace.problems.append(f"{lane.device} {lane.name}: {dropped} events have impossible times and are left out")
    if len(good):
        trace.lanes.append(good)


def _device_lanes(plane: Plane, lines: list[Line], device: re.Match[str], trace: Trace, ops: OpNumbers) -> None:
    names = {line.name or line.display_name for line in lines if len(line)}
    has_streams = any(name.startswith("Stream") for name in names)
    platform = device["platform"].lower().replace("custom", "gpu")
    label = f"{platform}:{device['number']}"
    trace.devices[label] = {name: value for name, value in plane.stats.items() if not isinstance(value, bytes)}
    modules: dict[int, str] = {}
    _guarded(trace, plane.name, _module_names, plane, lines, modules)

    def read(line: Line) -> None:
        name = line.name or line.display_name
        kind: Kind = DERIVED.get(name, "stream" if name.startswith("Stream") else HOST)
        if has_streams and kind in ("ops", "async"):
            return  # it repeats the streams
        lane = _lane(line, trace, label, name, kind)
        if kind == "stream":
            columns = line.stats(plane.stat_ids(*_OP_STATS, "kernel_details", "memcpy_details"))
            _ops_of_events(plane, columns, lane, ops)
            lane.launch = text_column(plane, columns.get("kernel_details"))
            lane.copy = text_column(plane, columns.get("memcpy_details"))
        elif kind in ("ops", "async"):
            _ops_of_metadata(plane, line, lane, modules, ops)
        if platform == "tpu":
            _own_clock(plane, line, lane)
        if kind in ("stream", "ops") and (lane.op_of != NO_OP).any():
            trace.platform = "tpu" if kind == "ops" and platform == "tpu" else "gpu"
        _add(trace, lane)

    for line in lines:
        if len(line):
            _guarded(trace, f"{plane.name} {line.name}", read, line)


def _host_lanes(plane: Plane, lines: list[Line], trace: Trace, ops: OpNumbers) -> None:
    on_device = trace.platform != ""

    def read(line: Line) -> None:
        lane = _lane(line, trace, HOST, line.name or line.display_name or "(no name)", HOST)
        marks = np.array([bool(MARKS.match(name)) for name in lane.names], np.bool_)[lane.name_of]
        columns = line.stats(plane.stat_ids(*_OP_STATS, "step_num", "memcpy_details"), ~marks)
        _ops_of_events(plane, columns, lane, ops)
        step = columns.get("step_num")
        if step is not None and step.present.any():
            lane.step = integers(plane, step, ABSENT)
        lane.copy = text_column(plane, columns.get("memcpy_details"))
        launches = np.zeros(len(lane), np.bool_) if lane.correlation is None else lane.correlation != ABSENT
        own = (lane.op_of != NO_OP) & ~launches if not on_device else np.zeros(len(lane), np.bool_)
        _add(trace, lane.select(np.flatnonzero(~own & ~marks)))
        if own.any():
            trace.platform = "cpu"
            _add_cpu_lanes(plane, lane, np.flatnonzero(own), columns.get("device_ordinal"), trace)

    for line in lines:
        if len(line):
            _guarded(trace, f"{plane.name} {line.name}", read, line)


def _add_cpu_lanes(plane: Plane, lane: Lane, rows: Ints, ordinal: StatColumn | None, trace: Trace) -> None:
    """The ops of one thread; threads serve all CPU devices of a process, so that one may make several lanes."""
    numbers = integers(plane, ordinal, 0)[rows] if ordinal is not None else np.zeros(len(rows), np.int64)
    for number in np.unique(numbers).tolist():
        part = lane.select(rows[numbers == number])
        part.device, part.kind = f"cpu:{number}", "thread"
        _add(trace, part)


def _lane(line: Line, trace: Trace, device: str, name: str, kind: Kind) -> Lane:
    metadata = line.plane.event_metadata
    ids, name_of = distinct(line.metadata_ids)
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
        name_of=name_of,
        op_of=np.full(len(line), NO_OP, np.int64),
    )


def _ops_of_events(plane: Plane, columns: dict[str, StatColumn], lane: Lane, ops: OpNumbers) -> None:
    """GPU and CPU: the event's own statistics name the op."""
    correlation = columns.get("correlation_id")
    if correlation is not None and correlation.present.any():
        lane.correlation = integers(plane, correlation, ABSENT)
    op, module, program = columns.get("hlo_op"), columns.get("hlo_module"), columns.get("program_id")
    if op is None or not op.present.any():
        return
    if (execution := columns.get("run_id")) is not None:
        lane.execution = integers(plane, execution, 0)
    rows = np.flatnonzero(op.present)
    which = distinct(keys(op, rows))[1]
    for column in (module, program):
        if column is not None:
            different, more = distinct(keys(column, rows))
            which = distinct(which * len(different) + more)[1]
    first = examples(which)
    numbers = np.empty(len(first), np.int64)
    for index, example in enumerate(rows[first].tolist()):
        name = text_at(plane, op, example)
        if not name:
            numbers[index] = NO_OP
            continue
        identity = text_at(plane, program, example)
        numbers[index] = ops.number(
            Op(
                module=text_at(plane, module, example),
                program=int(identity) & PROGRAM_MASK if identity.lstrip("-").isdecimal() else None,
                name=name,
            )
        )
    lane.op_of[rows] = numbers[which]


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


def _module_names(plane: Plane, lines: list[Line], found: dict[int, str]) -> None:
    """Takes the names of programs by id, from events such as `jit_f(1219…)`, into `found`."""
    for line in lines:
        if line.name != "XLA Modules":
            continue
        for key in distinct(line.metadata_ids)[0].tolist():
            known = plane.event_metadata.get(key)
            match = MODULE.match(known.name) if known is not None else None
            if match:
                found[int(match["id"]) & PROGRAM_MASK] = match["name"]


def _ops_of_metadata(plane: Plane, line: Line, lane: Lane, modules: dict[int, str], ops: OpNumbers) -> None:
    """TPU: the event's metadata names the op, its program, and what it costs."""
    ids, which = distinct(line.metadata_ids)
    numbers: NDArray[np.int64] = np.full(len(ids), NO_OP, np.int64)
    for index, key in enumerate(ids.tolist()):
        known = plane.event_metadata.get(key)
        program = known.stats.get("program_id") if known is not None else None
        if known is None or not isinstance(program, int):
            continue
        identity = program & PROGRAM_MASK
        name = _instruction(known.name) if lane.kind == "async" else known.display_name or _instruction(known.name)
        numbers[index] = ops.number(Op(module=modules.get(identity, ""), program=identity, name=name))
    lane.op_of[:] = numbers[which]


def _recording(plane: Plane, trace: Trace) -> None:
    """When the profiling began, and what the profiler was asked for: a `ProfileOptions` message."""
    started = plane.stats.get("profile_start_time")
    trace.started_unix_ns = started if isinstance(started, int) and 0 < started < 1 << 62 else None
    options = plane.stats.get("profile_options")
    if isinstance(options, bytes):
        asked = dict.fromkeys(_TRACERS.values(), 0)
        data = padded(options)
        for number, kind, content, _ in fields(data, 0, len(options)):
            if kind == VARINT and number in _TRACERS:
                asked[_TRACERS[number]] = varint(data, content)[0]
        trace.tracers = asked


def _instruction(line: str) -> str:
    """The name in a line of HLO: `copy-start.2` of `%copy-start.2 = (...) copy-start(...)`."""
    return line.lstrip("%").split(" ", 1)[0]


def _programs(plane: Plane, trace: Trace) -> None:
    """The HLO modules of a profile: the metadata's name is `jit_f(ID)`, its key or `program_id` is the id."""
    trace.notes |= {name: str(value) for name, value in plane.stats.items() if name.endswith("_version")}
    for key, known in plane.event_metadata.items():
        proto = known.stats.get("Hlo Proto")
        if not isinstance(proto, bytes):
            continue
        match = MODULE.match(known.name)
        program = known.stats.get("program_id")
        if not isinstance(program, int):
            program = int(match["id"]) if match else key
        name = match["name"] if match else known.name
        trace.programs.append(ProgramText(name=name, program=program & PROGRAM_MASK, proto=proto))
