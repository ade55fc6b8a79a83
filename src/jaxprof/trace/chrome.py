"""Reader of the Chrome trace that JAX writes beside its xplane (`.trace.json.gz`), and of its Perfetto copy.

Times are microseconds whatever `displayTimeUnit` says, all arguments are strings, an empty object ends the list, and
JAX stops at a million events (five million in newer versions). The file is read event by event, so the events of a
truncated file are kept.
"""

from __future__ import annotations

import codecs
import json
import re
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import numpy as np

from jaxprof.errors import FileRefusedError
from jaxprof.limits import FILE, LINES
from jaxprof.trace.lanes import DERIVED, DEVICE, HOST, MARKS, cpu_lanes, marks_in
from jaxprof.trace.launch import match_kernels
from jaxprof.trace.model import (
    ABSENT,
    NO_OP,
    PROGRAM_MASK,
    Counter,
    Ints,
    Kind,
    Lane,
    Op,
    OpNumbers,
    Platform,
    ProgramText,
    TextColumn,
    Trace,
)
from jaxprof.units import counted

EVENTS_READ: Final = 2_000_000
"""Most events that are read. JAX writes at most half of that; a larger file comes from another tool and is
truncated."""
_EVENTS_AT_ONCE: Final = 1 << 14
"""Events between two progress reports."""
_OWN_ZERO_PS: Final = 86_400 * 10**12
"""Clock values below this keep their zero: JAX counts from the start of the recording. A later clock is the
machine's."""
_PS_IN_US: Final = 1_000_000
_LIST: Final = re.compile(rb"\s*\[")
_EVENTS: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_PIECE: Final = 1 << 20
"""Bytes that are decoded at a time."""
_LONGEST: Final = 1 << 20
"""Longest event in characters. JAX writes some hundred; a few bytes of JSON can take a hundred in memory."""
_DECODE: Final = json.JSONDecoder().raw_decode
_DECODE_EXACTLY: Final = json.JSONDecoder(parse_float=Decimal).raw_decode
_FAR_TIME: Final = re.compile(rb'"ts"\s*:\s*"?(\d{13,18})[^\d]')
"""Pattern of a time beyond 115 days, usually Unix time, for which a double has no digits left for nanoseconds."""
_UNIX_US: Final = range(10**15, 4 * 10**15)
"""Microseconds that can be Unix time: the years 2001 to 2096."""
_BETWEEN: Final = re.compile(r"[\s,]*")
_WHOLE: Final = re.compile(r"-?\d{1,19}\Z")
_IDENTITY: Final = re.compile(r"-?\d{1,20}\Z")
HLO_KEY: Final = "jaxprofHlo"
_HLO_FIELDS: Final = ("module", "program", "text")
"""Fields of a program's HLO, as `exports.perfetto` writes them."""
LEFT_OUT_KEY: Final = "jaxprofLeftOut"
"""Key in `otherData`: number of intervals that the exported timeline lacked."""
_LEFT_OUT: Final = re.compile(f'"{LEFT_OUT_KEY}":(\\d{{1,18}})'.encode())
_TRACK: Final = re.compile(r" \(\d+\)$")
"""Suffix of a line that was exported as several because its events overlap."""


def _column_of_numbers() -> array[int]:
    return array("q")


@dataclass(slots=True)
class _Thread:
    """Columns of one thread of the trace while it is read."""

    starts: array[int] = field(default_factory=_column_of_numbers)
    durations: array[int] = field(default_factory=_column_of_numbers)
    ops: array[int] = field(default_factory=_column_of_numbers)
    correlations: array[int] = field(default_factory=_column_of_numbers)
    steps: array[int] = field(default_factory=_column_of_numbers)
    executions: array[int] = field(default_factory=_column_of_numbers)
    ordinals: array[int] = field(default_factory=_column_of_numbers)
    names: dict[str, int] = field(default_factory=dict)
    name_of: array[int] = field(default_factory=_column_of_numbers)
    launches: dict[str, int] = field(default_factory=dict)
    launch_of: array[int] = field(default_factory=_column_of_numbers)
    copies: dict[str, int] = field(default_factory=dict)
    copy_of: array[int] = field(default_factory=_column_of_numbers)
    numbers: tuple[array[int], ...] = ()
    """The first seven columns, in this order."""

    def __post_init__(self) -> None:
        self.numbers = (
            self.starts, self.durations, self.ops, self.correlations, self.steps, self.executions, self.ordinals
        )  # fmt: skip


class _Reader:
    """Collector of a file's events."""

    def __init__(self, zero_us: int = 0) -> None:
        """Read times relative to `zero_us` on the file's clock."""
        self.zero_us = zero_us
        self.threads: dict[tuple[int, int], _Thread] = {}
        self.process_names: dict[int, str] = {}
        self.thread_names: dict[tuple[int, int], str] = {}
        self.counters: dict[tuple[int, str, str], list[tuple[int, float]]] = {}
        """Times and values of each counter, by process, name and unit."""
        self.ops = OpNumbers()
        self._numbers: dict[tuple[Any, Any, Any], int] = {}
        """Index of each op, by its arguments as they stand in the file."""
        self.events = 0
        self.refused = 0
        self.beyond = 0
        """Number of events on threads, and samples of counters, beyond the limit `lines`."""
        self._samples = 0

    def take(self, event: Any) -> None:
        """Add one event; count and leave out anything that is not an event of the format."""
        if not isinstance(event, dict):
            self.refused += 1
            return
        try:
            kind = event.get("ph")
            if kind == "M":
                self._name(event)
            elif kind == "X":
                self._interval(event)
            elif kind == "C":
                self._count(event)
        except (TypeError, ValueError, OverflowError, LookupError, AttributeError):
            self.refused += 1

    def _name(self, event: dict[str, Any]) -> None:
        given = str(event["args"].get("name", "")) if event["name"] in ("process_name", "thread_name") else ""
        if event["name"] == "process_name":
            self.process_names[int(event["pid"])] = given
        elif event["name"] == "thread_name":
            self.thread_names[int(event["pid"]), int(event["tid"])] = given

    def _interval(self, event: dict[str, Any]) -> None:
        arguments = event.get("args") or {}
        name = str(event["name"])
        values = (
            self._time(event["ts"]),
            _picoseconds(event.get("dur", 0)),
            self._op(name, arguments),
            _whole(arguments.get("correlation_id"), ABSENT),
            _whole(arguments.get("step_num"), ABSENT),
            _whole(arguments.get("run_id"), 0),
            _whole(arguments.get("device_ordinal"), 0),
        )
        place = (int(event["pid"]), int(event["tid"]))
        thread = self.threads.get(place)
        if thread is None:
            if len(self.threads) >= LINES.most:
                self.beyond += 1
                return
            thread = self.threads[place] = _Thread()
        # Nothing below can fail, so the columns keep the same length.
        for column, value in zip(thread.numbers, values, strict=True):
            column.append(value)
        thread.name_of.append(thread.names.setdefault(name, len(thread.names)))
        thread.launch_of.append(_text(thread.launches, arguments.get("kernel_details")))
        thread.copy_of.append(_text(thread.copies, arguments.get("memcpy_details")))
        self.events += 1

    def _count(self, event: dict[str, Any]) -> None:
        time, process, name = self._time(event["ts"]), int(event["pid"]), str(event["name"])
        for unit, value in event["args"].items():
            number, key = float(value), (process, name, str(unit))
            self._samples += 1
            if self._samples > EVENTS_READ or (key not in self.counters and len(self.counters) >= LINES.most):
                self.beyond += 1
                continue
            self.counters.setdefault(key, []).append((time, number))

    def _time(self, microseconds: Any) -> int:
        return _picoseconds(Decimal(microseconds) - self.zero_us if self.zero_us else microseconds)

    def _op(self, name: str, arguments: dict[str, Any]) -> int:
        if "hlo_op" in arguments:
            if MARKS.match(name):
                return NO_OP
            key = (arguments["hlo_op"], arguments.get("hlo_module", ""), arguments.get("program_id"))
        elif "hlo_category" in arguments or "long_name" in arguments:  # TPU: the event is the op
            key = (name, arguments.get("hlo_module", ""), None)
        else:
            return NO_OP
        number = self._numbers.get(key)
        if number is None:
            program = _program(key[2])
            number = self._numbers[key] = self.ops.number(Op(module=str(key[1]), program=program, name=str(key[0])))
        return number


def _picoseconds(microseconds: Any) -> int:
    """Convert microseconds. Raises ValueError or OverflowError if the argument is not a time."""
    picoseconds = round(float(microseconds) * _PS_IN_US)
    if not -(1 << 62) < picoseconds < 1 << 62:
        raise OverflowError(f"{microseconds} us")
    return picoseconds


def _whole(value: Any, default: int) -> int:
    if value is None:
        return default
    text = str(value)
    number = int(text) if _WHOLE.match(text) else default
    return number if -(1 << 63) <= number < 1 << 63 else default


def _text(numbers: dict[str, int], value: Any) -> int:
    return numbers.setdefault(str(value), len(numbers)) if value is not None else ABSENT


class _Window:
    """JSON text that is decoded piece by piece; decoding it whole would take a second and a third copy of the file."""

    def __init__(self, raw: memoryview, begin: int, *, exactly: bool = False) -> None:
        """Decode `raw` from `begin` on. `exactly` keeps all digits of numbers, which takes longer."""
        self._raw, self._next = raw, begin
        self._parse = _DECODE_EXACTLY if exactly else _DECODE
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.text = ""
        """Decoded text; what is before `at` has been read."""
        self.at = 0

    def share(self) -> float:
        """Return the share of the file that is decoded."""
        return self._next / max(1, len(self._raw))

    def more(self, longest: int) -> bool:
        """Decode another piece. False at the end, or if `longest` characters are decoded and not yet read."""
        if self._next >= len(self._raw) or len(self.text) - self.at >= longest:
            return False
        size = max(_PIECE, len(self.text) - self.at)  # doubled, so a long text takes linear time
        piece = self._raw[self._next : self._next + size]
        self._next += len(piece)
        self.text = self.text[self.at :] + self._decode(piece, final=self._next >= len(self._raw))
        self.at = 0
        return True

    def skip(self) -> str:
        """Skip white space and commas, and return the next character; empty at the end."""
        while True:
            self.at = _BETWEEN.match(self.text, self.at).end()  # type: ignore[union-attr]
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more(_LONGEST):
                return ""

    def value(self, longest: int) -> Any:
        """Return the next value. Raises ValueError if it is damaged or longer than `longest`, and RecursionError."""
        while True:
            try:
                value, end = self._parse(self.text, self.at)
            except ValueError:
                if not self.more(longest):
                    raise
                continue
            if end == len(self.text) and self.more(longest):  # a number may continue
                continue
            self.at = end
            return value


def parse_chrome(
    raw: bytes | bytearray | memoryview, name: str, advance: Callable[[float], None] = lambda share: None
) -> Trace:
    """Return the trace in the JSON text `raw`; `advance` is called regularly with the share that is read, and may
    raise.

    Raises FileRefusedError if the text holds no trace events.
    """
    begin = _LIST.match(raw) or _EVENTS.search(raw)
    if begin is None:
        raise FileRefusedError(
            f"{name} is JSON, but not a Chrome trace: it has no traceEvents",
            "It should be the .trace.json.gz that jax.profiler writes under plugins/profile/<run>/.",
        )
    with memoryview(raw) as view:
        far = _FAR_TIME.search(raw, begin.end(), begin.end() + _PIECE)
        window = _Window(view, begin.end(), exactly=far is not None)
        reader, problem = _events(window, advance, int(far[1]) if far is not None else 0)
        if not reader.events:
            why = problem or "it has no event with a duration"
            raise FileRefusedError(f"{name} holds no usable trace: {why}", "Record it again.")
        programs = [] if problem else _modules(window)
    trace = _trace(reader)
    trace.programs = programs
    trace.problems += [text for text in (problem,) if text]
    if left_out := _LEFT_OUT.search(raw, 0, begin.end()):
        count = int(left_out[1])
        trace.warnings.append(f"{counted(count, 'event')} of the profile, the shortest, were dropped by the export")
    if reader.refused:
        trace.problems.append(f"{reader.refused} events are not Chrome trace events, and are left out")
    if reader.beyond:
        trace.problems.append(f"{LINES.words}: {reader.beyond} events are left out. {LINES.hint}")
    return trace


def _events(window: _Window, advance: Callable[[float], None], zero_us: int) -> tuple[_Reader, str]:
    """Return the events of the list, and what is wrong with it."""
    reader, read = _Reader(zero_us), 0
    while (character := window.skip()) != "]":
        if read >= EVENTS_READ:
            return reader, f"more than {EVENTS_READ} events: the rest is left out"
        try:
            if not character:
                raise ValueError("truncated")
            event = window.value(_LONGEST)
        except (ValueError, RecursionError):
            return reader, f"the file is damaged or truncated after {read} events, or one has more than 1 MiB"
        read += 1
        reader.take(event)
        if read % _EVENTS_AT_ONCE == 0:
            advance(window.share())
    window.at += 1
    return reader, ""


def _modules(window: _Window) -> list[ProgramText]:
    """Return the HLO that jaxprof exports after the events; empty for a trace from elsewhere. Values are read as
    strings only, because anything else could unpack to much more than the file."""
    found: list[ProgramText] = []
    try:
        if window.skip() != '"' or window.value(_LONGEST) != HLO_KEY:
            return []
        _expect(window, ":[")
        while window.skip() == "{":
            window.at += 1
            fields: dict[str, str | None] = dict.fromkeys(_HLO_FIELDS)
            while window.skip() == '"':
                key = _text_value(window)
                _expect(window, ":")
                value = _text_value(window)
                if key in fields:
                    fields[key] = value
            _expect(window, "}")
            name, program, text = fields.values()
            if text:
                found.append(ProgramText(name=name or "", program=_program(program), text=text))
    except (ValueError, RecursionError):
        return []
    return found


def _expect(window: _Window, characters: str) -> None:
    for character in characters:
        if window.skip() != character:
            raise ValueError(f"{character} expected")
        window.at += 1


def _text_value(window: _Window) -> str | None:
    """Return the next string or null. Raises ValueError for anything else."""
    if window.skip() not in ('"', "n"):
        raise ValueError("a text expected")
    value: str | None = window.value(FILE.most)
    return value


def _program(value: Any) -> int | None:
    """Return a program id as in `Op.program`; unsigned, so strings of more than 19 digits count as well."""
    text = str(value)
    return int(text) & PROGRAM_MASK if value is not None and _IDENTITY.match(text) else None


def _trace(reader: _Reader) -> Trace:
    trace = Trace(ops=reader.ops.list, read=reader.events, chrome=True)
    pending: list[tuple[Lane, _Thread, str]] = []
    for (process, number), thread in reader.threads.items():
        plane = reader.process_names.get(process, f"process {process}")
        line = reader.thread_names.get((process, number), f"thread {number}")
        device = DEVICE.match(plane)
        lane = _lane(thread, line, device, number)
        if device is not None:
            trace.devices.setdefault(lane.device, {})
        pending.append((lane, thread, plane))
    streams = {lane.device for lane, _, _ in pending if lane.kind == "stream"}
    platforms: set[Platform] = set()
    for lane, _, _ in pending:
        if lane.kind in ("stream", "ops") and (lane.op_of != NO_OP).any():
            platforms.add("tpu" if lane.kind == "ops" and lane.device.startswith("tpu") else "gpu")
    trace.platform = next(iter(sorted(platforms)), "")
    earliest = min(int(lane.starts.min()) for lane, _, _ in pending)
    origin = 0 if 0 <= earliest < _OWN_ZERO_PS and not reader.zero_us else earliest
    if reader.zero_us in _UNIX_US:
        trace.started_unix_ns = reader.zero_us * 1000 + earliest // 1000
    for lane, thread, plane in pending:
        lane.starts -= origin
        if lane.device == HOST:
            _add_host(trace, lane, thread, ops_here=plane.startswith("/host") and not platforms)
        elif not (lane.device in streams and lane.kind in ("ops", "async")):
            trace.ready += trace.checked(lane)
    for (process, name, unit), samples in reader.counters.items():
        times, values = (np.array(column) for column in zip(*sorted(samples), strict=True))
        where = _device(reader.process_names.get(process, ""))
        trace.counters.append(Counter(where, name, unit, times.astype(np.int64) - origin, values.astype(np.float64)))
    for lane in trace.ready:
        if lane.kind != HOST:
            continue
        trace.python_tracer = trace.python_tracer or any(name.startswith("$") for name in lane.names)
        if lane.step is not None:
            trace.annotations.append(lane.select(np.flatnonzero(lane.step != ABSENT)))
        launched = lane.op_of != NO_OP
        if lane.correlation is not None:
            launched |= lane.correlation != ABSENT
        if launched.any():
            trace.launches.append(lane.select(np.flatnonzero(launched)))
    match_kernels(trace)
    return trace


def _device(plane: str) -> str:
    """Return `gpu:0` for `/device:GPU:0`, and `host` for any other name."""
    named = DEVICE.match(plane)
    return f"{named['platform'].lower().replace('custom', 'gpu')}:{named['number']}" if named is not None else HOST


def _lane(thread: _Thread, line: str, device: re.Match[str] | None, number: int) -> Lane:
    kind: Kind = HOST
    label: str = HOST
    if device is not None:
        kind = DERIVED.get(_TRACK.sub("", line), "stream" if line.startswith("Stream") else HOST)
        label = _device(device[0])
    correlation, steps, executions = (
        np.array(column, np.int64) for column in (thread.correlations, thread.steps, thread.executions)
    )
    on_host_row = device is not None and kind in (HOST, "modules", "steps")
    ops = np.array(thread.ops, np.int64)
    return Lane(
        device=label,
        name=line,
        kind=kind,
        starts=np.array(thread.starts, np.int64),
        durations=np.array(thread.durations, np.int64),
        names=list(thread.names),
        name_of=np.array(thread.name_of, np.int64),
        op_of=np.full(len(ops), NO_OP, np.int64) if on_host_row else ops,
        correlation=correlation if (correlation != ABSENT).any() else None,
        step=steps if (steps != ABSENT).any() else None,
        execution=executions if executions.any() else None,
        launch=_column(thread.launches, thread.launch_of),
        copy=_column(thread.copies, thread.copy_of),
        thread=number,
    )


def _column(texts: dict[str, int], which: array[int]) -> TextColumn | None:
    return TextColumn(list(texts), np.array(which, np.int64)) if texts else None


def _add_host(trace: Trace, lane: Lane, thread: _Thread, *, ops_here: bool) -> None:
    """Add a host thread. On CPU its ops form separate lanes, one for each device that the thread served."""
    marks = marks_in(lane)
    launches = np.zeros(len(lane), np.bool_) if lane.correlation is None else lane.correlation != ABSENT
    own = (lane.op_of != NO_OP) & ~launches & ops_here
    trace.ready += trace.checked(lane.select(np.flatnonzero(~own & ~marks)))
    rows: Ints = np.flatnonzero(own)
    if len(rows):
        trace.platform = "cpu"
    trace.ready += cpu_lanes(lane, rows, np.array(thread.ordinals, np.int64)[rows], trace)
