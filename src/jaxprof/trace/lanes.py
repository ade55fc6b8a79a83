"""Turn an XSpace into lanes: rows of intervals on one clock, each with the HLO op that it belongs to, if any.

The lines that matter differ by platform. CPU: host threads, whose events carry `hlo_op`. NVIDIA and AMD: the streams of
`/device:GPU:N`; derived lines that repeat them, and launches on host threads, are not counted again. TPU: the line `XLA
Ops`, whose facts are in the event metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from jaxprof.base.errors import HloError
from jaxprof.hlo.text.wire import Message
from jaxprof.trace.events import (
    Events,
    follow_clock,
    ops_of_events,
    ops_of_metadata,
    use_own_clock,
)
from jaxprof.trace.intervals import distinct
from jaxprof.trace.launch import match_kernels, split_graphs
from jaxprof.trace.line import PlaneLine, readable_lines
from jaxprof.trace.model import (
    ABSENT,
    LONGEST_PS,
    NO_OP,
    PROGRAM_MASK,
    Counter,
    Flags,
    Ints,
    Kind,
    Lane,
    OpNumbers,
    ProgramProto,
    Trace,
    program_of,
)
from jaxprof.trace.xspace import Plane, Space

_KINDS: dict[str, Kind] = {
    "XLA Modules": "modules",
    "Steps": "steps",
    "XLA Ops": "ops",
    "Async XLA Ops": "async",
}
_MARKS = re.compile(r"end: |ThreadpoolListener::")
"""Events that the profiler writes for itself: the far end of an arrow, or the wake-up of a pool's thread."""
_DEVICE = re.compile(r"/device:(?P<platform>GPU|TPU|CUSTOM)\w*:(?P<number>\d+)")
_METADATA_PLANE, _TASK_PLANE = "/host:metadata", "Task Environment"
_HOST: Kind = "host"
_COUNTERS = "_counters_"
"""Line with samples of a device's counters (power, performance), which are no intervals."""
_OP_STATS = ("hlo_op", "hlo_module", "program_id", "correlation_id", "run_id", "device_ordinal")
_TRACERS = {2: "host", 3: "device", 4: "python", 7: "hlo"}
"""Fields of `ProfileOptions` (tsl/profiler/protobuf/profiler_options.proto)."""
_DAMAGE = (HloError, IndexError, ValueError, OverflowError)
"""Exceptions that reading a damaged message raises."""


def lanes_of(space: Space, advance: Callable[[float], None] = lambda share: None) -> Trace:
    """Return the lanes of a space, on one clock. `problems` names what cannot be read.

    `advance` is called plane by plane with the share that is done, and may raise.
    """
    trace = Trace(problems=space.problems)
    trace.errors, trace.warnings = list(space.errors), list(space.warnings)
    trace.lost_names = [plane.name for plane in space.planes if plane.lost_names]
    # Each plane is read twice: for its lines, then for their events.
    whole, done = max(1, 2 * sum(plane.size for plane in space.planes)), 0

    def count(plane: Plane) -> None:
        nonlocal done
        done += plane.size
        advance(done / whole)

    lines: dict[int, list[PlaneLine]] = {}
    for plane in space.planes:
        lines[id(plane)], damaged = readable_lines(plane)
        trace.problems += [f"{plane.name}: a line cannot be read: {problem}" for problem in damaged]
        count(plane)
    stamps = [line.timestamp_ns for of_plane in lines.values() for line in of_plane if line.has_events]
    trace.origin_ns = _origin(stamps)
    ops: OpNumbers = {}
    for plane in space.planes:
        device = _DEVICE.match(plane.name)
        if device is not None:
            _device_lanes(plane, lines[id(plane)], device, trace, ops)
        elif plane.name == _METADATA_PLANE:
            with _guarded(trace, plane.name):
                _programs(plane, trace)
        elif plane.name == _TASK_PLANE:
            with _guarded(trace, plane.name):
                _recording(plane, trace)
        if not _is_host(plane):
            count(plane)
    for plane in space.planes:
        if _is_host(plane):
            _host_lanes(plane, lines[id(plane)], trace, ops)
            count(plane)
    trace.ops = list(ops)
    match_kernels(trace)
    split_graphs(trace)
    return trace


def _is_host(plane: Plane) -> bool:
    return plane.name.startswith("/host:") and plane.name != _METADATA_PLANE


def _origin(stamps: list[int]) -> int:
    """Return the earliest of the lines' clocks, ignoring one that is days away from the others, which is damage."""
    middle = sorted(stamps)[len(stamps) // 2] if stamps else 0
    return min((stamp for stamp in stamps if abs(stamp - middle) < LONGEST_PS // 1000), default=0)


def _count(trace: Trace, line: PlaneLine) -> None:
    """Count a line that has now been read completely."""
    trace.read += len(line)
    if line.damage and not line.plane.cut:
        trace.problems.append(f"{line.plane.name}: the rest of {line.name or 'a line'} cannot be read: {line.damage}")


@contextmanager
def _guarded(trace: Trace, where: str) -> Iterator[None]:
    """Record as a problem where damage stopped the reading inside."""
    try:
        yield
    except _DAMAGE as error:
        trace.problems.append(f"{where} is damaged: {error}")


def _device_lanes(plane: Plane, lines: list[PlaneLine], device: re.Match[str], trace: Trace, ops: OpNumbers) -> None:
    names = {line.name or line.display_name for line in lines if line.has_events}
    has_streams = any(name.startswith("Stream") for name in names)
    platform = device["platform"].lower().replace("custom", "gpu")
    label = f"{platform}:{device['number']}"
    trace.devices[label] = {name: value for name, value in plane.stats.items() if not isinstance(value, bytes)}
    modules: dict[int, str] = {}
    with _guarded(trace, plane.name):
        _module_names(plane, lines, modules)
    read_lanes: list[Lane] = []
    without_clock: list[Lane] = []
    clocks: list[tuple[Ints, Ints]] = []

    def read(line: PlaneLine) -> None:
        _count(trace, line)
        name = line.name or line.display_name
        kind: Kind = _KINDS.get(name, "stream" if name.startswith("Stream") else _HOST)
        if name == _COUNTERS or (has_streams and kind in ("ops", "async")):
            return  # the latter repeat the streams' events
        events = line.events
        lane = _lane(line, events, trace, label, name, kind)
        if kind == "stream":
            columns = events.stats(*_OP_STATS, "kernel_details", "memcpy_details", "cuda_graph_node_id")
            ops_of_events(columns, lane, ops)
            lane.in_graph = columns["cuda_graph_node_id"].present
            lane.launch = columns["kernel_details"].texts()
            lane.copy = columns["memcpy_details"].texts()
        elif kind in ("ops", "async"):
            ops_of_metadata(plane, events, lane, modules, ops)
        if platform == "tpu":
            clock = use_own_clock(events, lane)
            if clock is None:
                without_clock.append(lane)
            elif kind == "ops":
                clocks.append(clock)
        if kind in ("stream", "ops") and (lane.op_of != NO_OP).any():
            trace.platform = "tpu" if kind == "ops" and platform == "tpu" else "gpu"
        read_lanes.append(lane)

    _read_each(lines, read, trace, plane)
    for lane in without_clock if clocks else ():
        follow_clock(lane, clocks[0])
    for lane in read_lanes:
        trace.ready += trace.checked(lane)


def _read_each(lines: list[PlaneLine], read: Callable[[PlaneLine], object], trace: Trace, plane: Plane) -> None:
    """Read the lines that have events; the damage of one is reported, and the others are read."""
    for line in lines:
        if line.has_events:
            with _guarded(trace, f"{plane.name} {line.name}"):
                read(line)


def _host_lanes(plane: Plane, lines: list[PlaneLine], trace: Trace, ops: OpNumbers) -> None:
    """Read what names an op, a step or a launch. The rest of each thread is read when all lanes are requested."""
    on_device = trace.platform != ""

    def read(line: PlaneLine) -> None:
        if line.name == _COUNTERS:
            _count(trace, line)
            return
        rows = line.rows_with("hlo_op", "correlation_id", "step_num", "memcpy_details")
        lane, own = _marked(line, rows, trace, ops, on_device=on_device)

        def rest() -> list[Lane]:
            lanes: list[Lane] = []
            with _guarded(trace, f"{plane.name} {line.name}"):
                lanes = _whole_thread(trace, line, lane, rows, own)
            with _guarded(trace, f"{plane.name} {line.name}"):
                _read_allocated_bytes(trace, line)
            return lanes

        trace.pending.append(rest)

    _read_each(lines, read, trace, plane)
    if any(event.name.startswith("$") for event in plane.event_metadata.values()):
        trace.python_tracer = True


def _whole_thread(trace: Trace, line: PlaneLine, marked: Lane, rows: Ints, own: Flags) -> list[Lane]:
    """Return the lane of a thread. `marked` holds the events `rows` of the thread; those flagged in `own`, a CPU's own
    ops, form lanes of that device instead."""
    _count(trace, line)
    lane = _lane(line, line.events, trace, _HOST, marked.name, _HOST)
    kept = ~lane.matching(_MARKS.match)
    kept[rows[own]] = False
    if len(rows):
        lane.op_of[rows] = marked.op_of
        lane.correlation = _spread(marked.correlation, rows, len(lane))
        lane.step = _spread(marked.step, rows, len(lane))
    return trace.checked(lane if kept.all() else lane.select(kept))


def _read_allocated_bytes(trace: Trace, line: PlaneLine) -> None:
    """Read the bytes that each allocator had given out, from the marks of allocations on a thread."""
    events = line.some(line.rows_with("bytes_allocated"))
    held, allocator = events.stats("bytes_allocated", "allocator_name").values()
    rows = np.flatnonzero(held.present)
    if not len(rows):
        return
    times = events.starts_ps + (line.timestamp_ns - trace.origin_ns) * 1000
    values, names = held.integers(0).astype(np.float64), allocator.texts()
    which = np.zeros(len(events), np.int64) if names is None else names.which
    for number in np.unique(which[rows]).tolist():
        name = names.texts[number] if names is not None and number >= 0 else "allocator"
        own = rows[which[rows] == number]
        own = own[np.argsort(times[own], kind="stable")]
        trace.counters.append(Counter(_HOST, f"{name} allocated", "bytes", times[own], values[own]))


def _spread(column: Ints | None, rows: Ints, count: int) -> Ints | None:
    """Expand a column of some rows to all rows."""
    if column is None:
        return None
    spread = np.full(count, ABSENT, np.int64)
    spread[rows] = column
    return spread


def _marked(line: PlaneLine, rows: Ints, trace: Trace, ops: OpNumbers, *, on_device: bool) -> tuple[Lane, Flags]:
    """Return the lane of some events of a thread with their ops, steps and launches, and which of them are a CPU's own
    ops.

    Adds these ops, the steps and the launches to the trace.
    """
    events = line.some(rows)
    lane = _lane(line, events, trace, _HOST, line.name or line.display_name or "(no name)", _HOST)
    own = np.zeros(len(lane), np.bool_)
    if not len(rows):
        return lane, own
    marks = lane.matching(_MARKS.match)
    columns = events.stats(*_OP_STATS, "step_num", "memcpy_details")
    ops_of_events(columns, lane, ops)
    lane.op_of[marks] = NO_OP
    if columns["step_num"].present.any():
        lane.step = columns["step_num"].integers(ABSENT)
        trace.annotations.append(lane.select((lane.step != ABSENT) & ~marks))
    lane.copy = columns["memcpy_details"].texts()
    launches = np.zeros(len(lane), np.bool_) if lane.correlation is None else lane.correlation != ABSENT
    if not on_device:
        own = (lane.op_of != NO_OP) & ~launches
    launched = ~own & ~marks & (launches | (lane.op_of != NO_OP))
    if launched.any():
        trace.launches.append(lane.select(launched))
    if own.any():
        trace.platform = "cpu"
        trace.ready += _cpu_lanes(lane, np.flatnonzero(own), columns["device_ordinal"].integers(0)[own], trace)
    return lane, own


def _cpu_lanes(lane: Lane, rows: Ints, numbers: Ints, trace: Trace) -> list[Lane]:
    """Return the ops `rows` of one thread as lanes. A thread serves all CPU devices of a process, so there may be
    several: `numbers` has the device of each op."""
    lanes = []
    for number in np.unique(numbers).tolist():
        part = lane.select(rows[numbers == number])
        part.device, part.kind = f"cpu:{number}", "thread"
        lanes += trace.checked(part)
    return lanes


def _lane(line: PlaneLine, events: Events, trace: Trace, device: str, name: str, kind: Kind) -> Lane:
    ids, name_of = distinct(events.metadata_ids)
    shift = (line.timestamp_ns - trace.origin_ns) * 1000
    return Lane(
        device=device,
        name=name,
        kind=kind,
        starts=events.starts_ps + shift,
        durations=events.durations_ps,
        names=[line.plane.event_name(key) for key in ids.tolist()],
        name_of=name_of,
        op_of=np.full(len(events), NO_OP, np.int64),
        thread=line.id,
    )


def _module_names(plane: Plane, lines: list[PlaneLine], names: dict[int, str]) -> None:
    """Add the names of programs, by id, to `names`, from events such as `jit_f(1219…)`."""
    for line in lines:
        if line.name != "XLA Modules":
            continue
        for key in distinct(line.events.metadata_ids)[0].tolist():
            event = plane.event_metadata.get(key)
            name, program = program_of(event.name if event is not None else "")
            if program is not None:
                names[program] = name


def _recording(plane: Plane, trace: Trace) -> None:
    """Read when the profiling began, and the profiler's options (a `ProfileOptions` message)."""
    started = plane.stats.get("profile_start_time")
    trace.started_unix_ns = started if isinstance(started, int) and 0 < started < 1 << 62 else None
    options = plane.stats.get("profile_options")
    if isinstance(options, bytes):
        message = Message(options)
        trace.tracers = {name: message.number(number) for number, name in _TRACERS.items()}


def _programs(plane: Plane, trace: Trace) -> None:
    """Read the HLO modules of a profile: the metadata's name is `jit_f(ID)`; its key or `program_id` is the id."""
    trace.notes |= {name: str(value) for name, value in plane.stats.items() if name.endswith("_version")}
    for key, metadata in plane.event_metadata.items():
        proto = metadata.stats.get("Hlo Proto")
        if not isinstance(proto, bytes):
            continue
        name, program = program_of(metadata.name)
        stated = metadata.stats.get("program_id")
        if isinstance(stated, int) or program is None:
            program = stated if isinstance(stated, int) else key
        trace.programs.append(ProgramProto(name=name, program=program & PROGRAM_MASK, proto=proto))
