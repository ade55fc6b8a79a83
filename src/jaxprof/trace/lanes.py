"""Turn an XSpace into lanes: rows of intervals on one clock, each with the HLO op that it belongs to, if any.

The lines that matter differ by platform. CPU: host threads, whose events carry `hlo_op`. NVIDIA and AMD: the streams of
`/device:GPU:N`; derived lines that repeat them, and launches on host threads, are not counted again. TPU: the line `XLA
Ops`, whose facts are in the event metadata.

Events of a line are decoded on request. A thread of the host may have millions that name no HLO op, and most views need
only those that do: a search of the bytes finds the events with a certain statistic, without a walk over the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from jaxprof.base.errors import HloError
from jaxprof.hlo.text.wire import DELIMITED, VARINT, Blob, Message, TruncatedError, fields, to_signed, varint
from jaxprof.trace.events import (
    BYTES_TAG,
    EVENT_METADATA_ID,
    EVENT_OFFSET_PS,
    OWN_CLOCK,
    STAT_TAG,
    TEXT_TAG,
    Events,
    follow_clock,
    ops_of_events,
    ops_of_metadata,
    use_own_clock,
)
from jaxprof.trace.intervals import distinct
from jaxprof.trace.launch import match_kernels, split_graphs
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
from jaxprof.trace.xspace import (
    HEAD,
    PADDING,
    STAT_DOUBLE,
    STAT_ID,
    STAT_INT64,
    STAT_REFERENCE,
    STAT_UINT64,
    Bytes,
    Plane,
    Positions,
    Space,
    varints,
)

LINE_ID, LINE_NAME, LINE_TIMESTAMP_NS, LINE_EVENTS, LINE_DISPLAY_NAME = 1, 2, 3, 4, 11
_EVENT_TAG = (LINE_EVENTS << 3) | DELIMITED
_PIECE = 1 << 18
"""Bytes that are searched at once."""
_BLOCK = 1 << 22
"""Bytes of a line that are read at once."""
_VALUE_TAGS = np.zeros(256, np.bool_)
"""Tags with which the value of a statistic may begin."""
_VALUE_TAGS[[STAT_DOUBLE << 3 | 1, STAT_UINT64 << 3, STAT_INT64 << 3, TEXT_TAG, BYTES_TAG, STAT_REFERENCE << 3]] = True


class PlaneLine:
    """One row of a plane: a thread of the host, a stream of a device, or a derived row."""

    def __init__(self, plane: Plane, begin: int, end: int) -> None:
        self.plane = plane
        self._data = plane.space.data
        self.id = 0
        self.name = ""
        self.display_name = ""
        self.timestamp_ns = 0
        self.damage = ""
        """Damage that was found; the events before it are kept. Empty if there is none."""
        self._bounds = (begin, end)
        plane.space.load(begin, begin + HEAD)
        while begin < end and self._data[begin] != _EVENT_TAG:
            begin = self._field(begin, end)
        self._begin = begin
        """Offset of the first event; that of the line's end if it has none."""
        self.length = 0
        """Number of events in the blocks that were read."""
        if not (self.name and self.timestamp_ns):
            for _ in self.blocks():
                pass  # the line's name may come after its events

    def _field(self, at: int, end: int) -> int:
        """Read one of the line's own fields, and return its end. Raises TruncatedError."""
        blob = self.plane.space.blob
        number, kind, content, after = next(fields(blob, at, end))
        if kind == VARINT:
            value = to_signed(varint(blob, content)[0])
            if number == LINE_ID:
                self.id = value
            elif number == LINE_TIMESTAMP_NS:
                self.timestamp_ns = value
        elif kind == DELIMITED and number in (LINE_NAME, LINE_DISPLAY_NAME):
            text = self.plane.space.text(content, after)
            if number == LINE_NAME:
                self.name = text
            else:
                self.display_name = text
        self.plane.space.load(after, after + HEAD)
        return after

    @property
    def has_events(self) -> bool:
        """Whether there is any event; known without a walk over them."""
        return self._begin < self._bounds[1]

    def blocks(self) -> Iterator[tuple[Positions, int]]:
        """Yield where events begin in the file, block by block, and the end of each block. Counts them in `length`, and
        notes damage."""
        data, space, end = self._data, self.plane.space, self._bounds[1]
        at, size, self.length, self.damage = self._begin, _BLOCK, 0, ""
        try:
            while at < end:
                space.load(at, at + size + HEAD)
                if data[at] != _EVENT_TAG:
                    at = self._field(at, end)
                    continue
                starts, after = event_starts(space.blob, data, at, min(at + size, end))
                if not len(starts):
                    length, after = varint(space.blob, at + 1)
                    if after + length > end:
                        raise TruncatedError(f"an event is longer than its line, which ends at byte {end}")
                    starts, after = np.array([at]), after + length
                    space.load(at, after + HEAD)
                self.length += len(starts)
                yield starts, after
                space.release(at, after)
                # Less at once after a guess was wrong, so that the work lost stays in proportion.
                size, at = min(_BLOCK, max(2 * (after - at), 1 << 10)), after
        except (TruncatedError, IndexError) as error:
            self.damage = str(error)

    def events(self, *names: str) -> Events:
        """Return all events, with these statistics."""
        events = Events(self.plane, *names)
        for starts, _ in self.blocks():
            events.add(starts)
        return events

    def rows_with(self, starts: Positions, end: int, *names: str) -> Positions:
        """Return the indexes in a block of the events that may have one of these statistics: all that have one, and
        others, in which the same bytes mean something else; all events where so many have one that to read them all is
        faster than the search."""
        wanted = list(self.plane.stat_ids(*names))
        found = [np.zeros(0, np.int64)]
        count = 0
        for piece in range(int(starts[0]), end, _PIECE) if wanted else ():
            found.append(self._stats_in(piece, min(piece + _PIECE, end), wanted))
            count += len(found[-1])
            if 3 * count > np.searchsorted(starts, piece + _PIECE):
                return np.arange(len(starts))
        rows = np.searchsorted(starts, np.concatenate(found), side="right") - 1
        return rows[np.diff(rows, prepend=-1) > 0]

    def _stats_in(self, begin: int, end: int, wanted: list[int]) -> Positions:
        """Return the positions at which a wanted statistic may begin: TAG LENGTH, then 08 ID TAG and the value."""
        data = self._data
        first = data[
            begin + 1 : end + 1
        ]  # first byte of the id; the others are compared once most candidates are ruled out
        begins = np.logical_or.reduce([first == (key if key < 0x80 else key & 0x7F | 0x80) for key in wanted])
        at = begin + np.flatnonzero((data[begin:end] == STAT_ID << 3) & begins)
        at = at[(data[at - 2] == STAT_TAG) | (data[at - 3] == STAT_TAG)]
        ids, behind = varints(data, at + 1)
        there = np.isin(ids, np.array(wanted, np.uint64)) & _VALUE_TAGS[data[behind]]
        at, behind = at[there], behind[there]
        whole = data[behind] & 7 != VARINT
        stops = varints(data, behind + 1)[1]
        # A number ends where the statistic does if the statistic's length is one byte, as it is for numbers.
        fits: Positions = at[whole | (at + data[at - 1] == stops)]
        return fits


def readable_lines(plane: Plane) -> tuple[list[PlaneLine], list[str]]:
    """Return the plane's lines, with events not yet decoded, and what is wrong with the lines that are lost."""
    readable, problems = [], []
    for begin, end in plane.lines:
        try:
            readable.append(PlaneLine(plane, begin, end))
        except (TruncatedError, IndexError) as error:
            problems.append(str(error))
    return readable, problems


_CHUNK = 51 << 6
"""Bytes between the starts of two walks: an odd number of cache lines, because walks that are a power of two apart
compete for the same few lines of the cache."""
_WINDOW = 128
"""Number of bytes in which a tag to begin at is searched."""
_PAIRS = np.arange(1 << 16)
_STEPS = np.where(
    _PAIRS & 0x80, np.where(_PAIRS >> 15, 0, (_PAIRS & 0x7F) + (_PAIRS >> 8 << 7) + 3), (_PAIRS & 0x7F) + 2
)
"""Bytes from an event to the next one, by the two bytes after its tag; 0 if its length takes more than these."""


def event_starts(blob: Blob, data: Bytes, at: int, end: int) -> tuple[Positions, int]:
    """Return the starts of events that follow each other from `at` on and end by `end`, and where the last one ends.

    Events can only be followed one by one, and half a million of them take a quarter of a second in Python. So one
    NumPy step follows many walks, which begin at guesses: an event's tag is also that of a statistic in an event, so a
    walk that begins at any such tag reaches the event's end, and there the next event. A walk counts only if the one
    before it ends exactly where it begins; the events end early where it does not, or where an event is too long.
    """
    count = (end - at - 1) // _CHUNK - 1
    if count < 4:  # walks that are worth a NumPy step
        return _follow(blob, at, end)
    beyond = len(data) - PADDING + 1

    def step(here: Positions) -> Positions:
        length = data[here + 1]
        if length.max(initial=0) >= 0x80:
            return _STEPS[length + (data[here + 2].astype(np.int64) << 8)]
        return length + np.int64(2)

    windows = np.ndarray((count, _WINDOW + 6), np.uint8, data, at + _CHUNK, (_CHUNK, 1)).copy()
    short, ids, offsets = windows < 0x80, windows == EVENT_METADATA_ID << 3, windows == EVENT_OFFSET_PS << 3

    def either(place: int, one: Flags, two: Flags) -> Flags:
        """Return which number of one byte at a place is followed by `one`, or of two bytes by `two`."""
        is_short = short[:, place : place + one.shape[1]]
        return (is_short & one) | (two & ~is_short)

    tags = windows[:, :_WINDOW] == _EVENT_TAG
    # An event begins with an id and an offset, which no statistic has.
    heads = ids[:, :-3] & either(1, offsets[:, 2:-1], offsets[:, 3:])
    events = tags & either(1, heads[:, 2:-1], heads[:, 3:])
    plain = 2 * np.count_nonzero(events.any(axis=1)) > count  # as all are that the profiler writes today
    found_in = events if plain else tags
    guesses = (at + _CHUNK * np.arange(1, count + 1) + found_in.argmax(axis=1))[found_in.any(axis=1)]
    for _ in range(0 if plain else 24):  # after so many links a walk has left the event in which it began
        guesses = np.minimum(guesses + step(guesses), end)
        guesses = guesses[data[guesses] == _EVENT_TAG]
    walks = np.sort(np.append(guesses, at))
    walks = walks[np.diff(walks, prepend=-1) > 0]  # of so few numbers faster than `np.unique`
    stops = np.append(walks[1:], end)
    found = [walks]
    while len(found) < _CHUNK:  # events of two bytes take half as many steps from one walk to the next
        steps = step(found[-1]) * (found[-1] < stops)
        if not steps.any():
            break
        found.append(np.minimum(found[-1] + steps, beyond))
    wrong = np.flatnonzero(found[-1][:-1] != stops[:-1])
    rows = np.array(found)[:, : int(wrong[0]) + 1 if len(wrong) else None].T
    starts, after = rows[:, :-1][rows[:, 1:] > rows[:, :-1]], int(rows[-1, -1])
    # A walk goes on from a field of the line as if that were an event: what follows such a field is not known.
    other = np.flatnonzero(data[starts] != _EVENT_TAG)
    if len(other):
        starts, after = starts[: other[0]], int(starts[other[0]])
    return (starts, after) if after <= end else (starts[:-1], int(starts[-1]))  # only the last one can reach past it


def _follow(blob: Blob, at: int, end: int) -> tuple[Positions, int]:
    """Do the same event by event."""
    starts: list[int] = []
    while at < end and blob[at] == _EVENT_TAG:
        try:
            length, after = varint(blob, at + 1)
        except TruncatedError:
            break
        if after + length > end:
            break
        starts.append(at)
        at = after + length
    return np.array(starts, np.int64), at


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
_OP_STATS = ("hlo_op", "hlo_module", "program_id", "correlation_id", "run_id")
_STREAM_STATS = (*_OP_STATS, "kernel_details", "memcpy_details", "cuda_graph_node_id")
_THREAD_STATS = (*_OP_STATS, "device_ordinal", "step_num", "memcpy_details")
_TRACERS = {2: "host", 3: "device", 4: "python", 7: "hlo"}
"""Fields of `ProfileOptions` (tsl/profiler/protobuf/profiler_options.proto)."""
_DAMAGE = (HloError, IndexError, ValueError, OverflowError)
"""Exceptions that reading a damaged message raises."""


def lanes_of(space: Space, advance: Callable[[float], None] = lambda share: None, *, whole: bool = False) -> Trace:
    """Return the lanes of a space, on one clock. `problems` names what cannot be read.

    `whole` says that the threads of the host are wanted too. `advance` is called plane by plane with the share that is
    done, and may raise.
    """
    trace = Trace(problems=space.problems)
    trace.errors, trace.warnings = list(space.errors), list(space.warnings)
    trace.lost_names = [plane.name for plane in space.planes if plane.lost_names]
    # Each plane is read twice: for its lines, then for their events.
    size, done = max(1, 2 * sum(plane.size for plane in space.planes)), 0

    def count(plane: Plane) -> None:
        nonlocal done
        done += plane.size
        advance(done / size)

    lines: dict[int, list[PlaneLine]] = {}
    for plane in space.planes:
        lines[id(plane)], damaged = readable_lines(plane)
        trace.problems += [f"{plane.name}: a line cannot be read: {problem}" for problem in damaged]
        count(plane)
    stamps = [line.timestamp_ns for of_plane in lines.values() for line in of_plane if line.has_events]
    # A clock that is days away from the others is damage.
    middle = sorted(stamps)[len(stamps) // 2] if stamps else 0
    trace.origin_ns = min((stamp for stamp in stamps if abs(stamp - middle) < LONGEST_PS // 1000), default=0)
    ops: OpNumbers = {}
    for plane in space.planes:
        device = _DEVICE.match(plane.name)
        if device is not None:
            _device_lanes(plane, lines[id(plane)], device, trace, ops)
        elif plane.name == _METADATA_PLANE:
            with _note_damage(trace, plane.name):
                _programs(plane, trace)
        elif plane.name == _TASK_PLANE:
            with _note_damage(trace, plane.name):
                # When the profiling began, and the profiler's options (a `ProfileOptions` message).
                started = plane.stats.get("profile_start_time")
                if isinstance(started, int) and 0 < started < 1 << 62:  # until 2116
                    trace.started_unix_ns = started
                options = plane.stats.get("profile_options")
                if isinstance(options, bytes):
                    message = Message(options)
                    trace.tracers = {name: message.number(number) for number, name in _TRACERS.items()}
        if not _is_host(plane):
            count(plane)
    for plane in space.planes:
        if _is_host(plane):
            _host_lanes(plane, lines[id(plane)], trace, ops, whole=whole)
            count(plane)
    trace.ops = list(ops)
    match_kernels(trace)
    split_graphs(trace)
    return trace


def _is_host(plane: Plane) -> bool:
    return plane.name.startswith("/host:") and plane.name != _METADATA_PLANE


def _count(trace: Trace, line: PlaneLine) -> None:
    trace.read += line.length
    if line.damage and not line.plane.cut:
        trace.problems.append(f"{line.plane.name}: the rest of {line.name or 'a line'} cannot be read: {line.damage}")


@contextmanager
def _note_damage(trace: Trace, where: str) -> Iterator[None]:
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
    with _note_damage(trace, plane.name):
        # Names of programs by id, from events such as `jit_f(1219…)`.
        for line in lines:
            if line.name != "XLA Modules":
                continue
            for key in distinct(line.events().metadata_ids)[0].tolist():
                metadata = plane.event_metadata.get(key)
                module, program = program_of(metadata.name if metadata is not None else "")
                if program is not None:
                    modules[program] = module
    read_lanes: list[Lane] = []
    without_clock: list[Lane] = []
    clocks: list[tuple[Ints, Ints]] = []

    def read(line: PlaneLine) -> None:
        name = line.name or line.display_name
        kind: Kind = _KINDS.get(name, "stream" if name.startswith("Stream") else _HOST)
        events = line.events(*(_STREAM_STATS if kind == "stream" else OWN_CLOCK if platform == "tpu" else ()))
        _count(trace, line)
        if name == _COUNTERS or (has_streams and kind in ("ops", "async")):
            return  # the latter repeat the streams' events
        lane = _lane(line, events, trace, label, name, kind)
        if kind == "stream":
            ops_of_events(events, lane, ops)
            lane.in_graph = events.stat("cuda_graph_node_id").present
            lane.launch = events.stat("kernel_details").texts()
            lane.copy = events.stat("memcpy_details").texts()
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
        trace.ready += trace.check(lane)


def _read_each(lines: list[PlaneLine], read: Callable[[PlaneLine], object], trace: Trace, plane: Plane) -> None:
    """Read the lines that have events; the damage of one is reported, and the others are read."""
    for line in lines:
        if line.has_events:
            with _note_damage(trace, f"{plane.name} {line.name}"):
                read(line)


def _host_lanes(plane: Plane, lines: list[PlaneLine], trace: Trace, ops: OpNumbers, *, whole: bool) -> None:
    """Read what names an op, a step or a launch. The rest of each thread is read at once if the `whole` is wanted, else
    by a second walk when all lanes are requested."""
    on_device = trace.platform != ""
    is_mark = plane.flags_of(_MARKS.match)

    def read(line: PlaneLine) -> None:
        if line.name == _COUNTERS:
            for _ in line.blocks():
                pass
            _count(trace, line)
            return
        if whole:
            lane = _thread(line, trace, ops, on_device=on_device)
            trace.pending.append(lambda: finish(line, lane))
            return
        events = Events(plane, *_THREAD_STATS)
        for starts, end in line.blocks():
            rows = line.rows_with(starts, end, "hlo_op", "correlation_id", "step_num", "memcpy_details")
            events.add(starts[rows], is_mark)
        _op_lane(line, events, trace, ops, on_device=on_device)

        def rest() -> list[Lane]:
            with _note_damage(trace, f"{plane.name} {line.name}"):
                # What names an op, a step or a launch is in the trace already.
                known = replace(trace, ready=[], annotations=[], launches=[], problems=[])
                return finish(line, _thread(line, known, ops, on_device=on_device))
            return []

        trace.pending.append(rest)

    def finish(line: PlaneLine, lane: Lane) -> list[Lane]:
        _count(trace, line)
        with _note_damage(trace, f"{plane.name} {line.name}"):
            _read_allocated_bytes(trace, line)
        return trace.check(lane)

    _read_each(lines, read, trace, plane)
    if any(event.name.startswith("$") for event in plane.event_metadata.values()):
        trace.python_tracer = True


def _thread(line: PlaneLine, trace: Trace, ops: OpNumbers, *, on_device: bool) -> Lane:
    """Return the lane of a thread, without a CPU's own ops, which form lanes of that device. Adds what `_op_lane` adds
    to the trace."""
    events, marked = Events(line.plane), Events(line.plane, *_THREAD_STATS)
    is_mark = line.plane.flags_of(_MARKS.match)
    found = [np.zeros(0, np.int64)]
    for starts, _ in line.blocks():
        found.append(events.add(starts, is_mark, marked))
    with_ops, own = _op_lane(line, marked, trace, ops, on_device=on_device)
    columns = {name: getattr(with_ops, name) for name in ("op_of", "correlation", "step")}
    name = with_ops.name
    del marked, with_ops  # for a thread of ops they take as much memory as all that is returned
    rows = np.concatenate(found)
    kept = np.ones(len(events), np.bool_)
    kept[rows[own]] = False
    lane = _lane(line, events, trace, _HOST, name, _HOST, kept if own.any() else slice(None))
    others = rows[~own] - np.searchsorted(rows[own], rows[~own])
    for column, values in columns.items() if len(rows) else ():
        if values is not None:
            spread = np.full(len(lane), ABSENT, np.int64)
            spread[others] = values[~own]
            setattr(lane, column, spread)
    return lane


def _read_allocated_bytes(trace: Trace, line: PlaneLine) -> None:
    """Read the bytes that each allocator had given out, from the marks of allocations on a thread."""
    events = Events(line.plane, "bytes_allocated", "allocator_name")
    for starts, end in line.blocks() if line.plane.stat_ids("bytes_allocated") else ():
        events.add(starts[line.rows_with(starts, end, "bytes_allocated")])
    held = events.stat("bytes_allocated")
    rows = np.flatnonzero(held.present)
    if not len(rows):
        return
    times = events.starts_ps + (line.timestamp_ns - trace.origin_ns) * 1000
    values, names = held.integers(0).astype(np.float64), events.stat("allocator_name").texts()
    which = np.zeros(len(events), np.int64) if names is None else names.which
    for number in np.unique(which[rows]).tolist():
        name = names.texts[number] if names is not None and number >= 0 else "allocator"
        own = rows[which[rows] == number]
        own = own[np.argsort(times[own], kind="stable")]
        trace.counters.append(Counter(_HOST, f"{name} allocated", "bytes", times[own], values[own]))


def _op_lane(line: PlaneLine, events: Events, trace: Trace, ops: OpNumbers, *, on_device: bool) -> tuple[Lane, Flags]:
    """Return the lane of some events of a thread with their ops, steps and launches, and which of them are a CPU's own
    ops.

    Adds these ops, the steps and the launches to the trace.
    """
    lane = _lane(line, events, trace, _HOST, line.name or line.display_name or "(no name)", _HOST)
    own = np.zeros(len(lane), np.bool_)
    if not len(lane):
        return lane, own
    ops_of_events(events, lane, ops)
    steps = events.stat("step_num")
    if steps.present.any():
        lane.step = steps.integers(ABSENT)
        trace.annotations.append(lane.select(lane.step != ABSENT))
    lane.copy = events.stat("memcpy_details").texts()
    launches = np.zeros(len(lane), np.bool_) if lane.correlation is None else lane.correlation != ABSENT
    if not on_device:
        own = (lane.op_of != NO_OP) & ~launches
    launched = ~own & (launches | (lane.op_of != NO_OP))
    if launched.any():
        trace.launches.append(lane.select(launched))
    if own.any():
        trace.platform = "cpu"
        # A thread serves all CPU devices of a process.
        numbers = events.stat("device_ordinal").integers(0)
        for number in distinct(numbers[own])[0].tolist():
            part = replace(lane.select(own & (numbers == number)), device=f"cpu:{number}", kind="thread")
            trace.ready += trace.check(part)
    return lane, own


def _lane(
    line: PlaneLine, events: Events, trace: Trace, device: str, name: str, kind: Kind, rows: Flags | slice = slice(None)
) -> Lane:
    ids, name_of = distinct(events.metadata_ids[rows])
    shift = (line.timestamp_ns - trace.origin_ns) * 1000
    return Lane(
        device=device,
        name=name,
        kind=kind,
        starts=events.starts_ps[rows] + shift,
        durations=events.durations_ps[rows],
        names=[line.plane.event_name(key) for key in ids.tolist()],
        name_of=name_of,
        op_of=np.full(len(name_of), NO_OP, np.int64),
        thread=line.id,
    )


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
