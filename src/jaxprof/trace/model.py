"""A profile after reading: lanes of intervals on one clock, and HLO ops.

Times are integer picoseconds from the trace's origin. Nothing here knows a file format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jaxprof.base.units import counted
from jaxprof.base.values import frozen

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Kind = Literal["stream", "ops", "async", "thread", "modules", "steps", "host"]
Platform = Literal["cpu", "gpu", "tpu", ""]
NO_OP = -1
ABSENT = -1
"""Marks a missing value in columns of indices and of numbers that are never negative."""
PS = 1e-12
"""Seconds per picosecond."""
LONGEST_PS = 10**18
"""Eleven days: an interval that is longer, or begins later, is damage."""
PROGRAM_MASK = 0xFFFF_FFFF_FFFF_FFFF
"""Mask that makes a program id unsigned; some writers keep it in a signed field."""


Program = tuple[str, int | None]
"""Name and program id of a module."""
_PROGRAM = re.compile(r"(?P<name>.*?)\((?P<id>-?\d{1,20})\)$", re.DOTALL)


def program_of(name: str) -> Program:
    """Return the program that a profile calls `jit_f(1219…)`; without an id if the name has none."""
    match = _PROGRAM.match(name)
    return (match["name"], int(match["id"]) & PROGRAM_MASK) if match else (name, None)


@frozen
class Op:
    """An HLO instruction as a profile names it."""

    module: str
    program: int | None
    """Program id, as an unsigned number; None if the profile does not say."""
    name: str


OpNumbers = dict[Op, int]
"""Numbers of ops, in the order of their first occurrence."""


@frozen
class TextColumn:
    """A text for each interval of a lane; equal texts are kept once."""

    texts: list[str]
    which: Ints
    """Index into `texts`, or `ABSENT`."""

    def at(self, row: int) -> str:
        """Return the text of one interval; empty if it has none."""
        return self.texts[int(self.which[row])] if self.which[row] != ABSENT else ""

    def __getitem__(self, rows: Ints | Flags) -> TextColumn:
        return TextColumn(self.texts, self.which[rows])


@dataclass(slots=True)
class Lane:
    """One row of intervals."""

    device: str
    """`cpu:0`, `gpu:0`, `tpu:1`, or `host`."""
    name: str
    kind: Kind
    starts: Ints
    durations: Ints
    names: list[str]
    name_of: Ints
    """Index into `names`, for each interval."""
    op_of: Ints
    """Index into `Trace.ops`, or `NO_OP`. On a host lane: the op that a launch is for."""
    correlation: Ints | None = None
    """Id that joins a launch on the host with its kernel on the device; `ABSENT` if there is none."""
    step: Ints | None = None
    """`step_num` of a step annotation; `ABSENT` for other events."""
    execution: Ints | None = None
    """`run_id`: the execution of its program that an op belongs to; any integer, 0 if the profile does not say."""
    launch: TextColumn | None = None
    """`kernel_details`: grid, block, registers and the like of a GPU kernel."""
    copy: TextColumn | None = None
    """`memcpy_details` of a GPU's copies."""
    in_graph: Flags | None = None
    """Whether a CUDA graph launched the kernel or copy, on a stream."""
    thread: int = 0
    """Thread id of a host lane, shared by a thread and the row of its launches; 0 if unknown."""

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def ends(self) -> Ints:
        """End of each interval, in picoseconds."""
        return self.starts + self.durations

    @property
    def correlations(self) -> Ints:
        """Correlation id of each interval, or `ABSENT`."""
        return np.full(len(self), ABSENT, np.int64) if self.correlation is None else self.correlation

    @property
    def executions(self) -> Ints:
        """`run_id` of each interval, or 0."""
        return np.zeros(len(self), np.int64) if self.execution is None else self.execution

    def matching(self, test: Callable[[str], object]) -> Flags:
        """Return which intervals have a name that passes the test; each different name is tested once."""
        return np.array([bool(test(name)) for name in self.names], np.bool_)[self.name_of]

    def select(self, rows: Ints | Flags) -> Lane:
        """Return a lane of these intervals (their indices, or a flag for each interval), in the given order; the lane
        itself if all are flagged."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        columns = {name: getattr(self, name) for name in _COLUMNS}
        return replace(self, **{name: column[rows] for name, column in columns.items() if column is not None})


_COLUMNS = (
    "starts", "durations", "name_of", "op_of", "correlation", "step", "execution", "launch", "copy", "in_graph",
)  # fmt: skip
"""Fields of a lane that have a value for each interval."""


@frozen
class Counter:
    """A quantity over time: each value holds from its time on."""

    device: str
    name: str
    unit: str
    """`bytes`, `watts`, or the profile's own word."""
    times: Ints
    """Picoseconds, ascending."""
    values: NDArray[np.float64]


@frozen
class ProgramProto:
    """An HLO module that a profile contains."""

    name: str
    program: int
    proto: bytes
    """An `HloProto`."""


@dataclass(slots=True)
class Trace:
    """The content of a file.

    A thread of the host can have millions of events that only a timeline shows, so these are read only when `lanes` is
    called.
    """

    platform: Platform = ""
    """Platform on which the HLO ops ran; empty if there are none."""
    ready: list[Lane] = field(default_factory=list)
    """Lanes that were read: at least those of the devices."""
    pending: list[Callable[[], Iterable[Lane]]] = field(default_factory=list)
    """Functions that read the remaining lanes."""
    annotations: list[Lane] = field(default_factory=list)
    """Step annotations of the host's lanes, and nothing else."""
    launches: list[Lane] = field(default_factory=list)
    """Events of the host's lanes that have a correlation id or name an HLO op, if the op itself ran on a device."""
    ops: list[Op] = field(default_factory=list)
    nameless: set[int] = field(default_factory=set)
    """Ops that stand for kernels of CUDA graphs whose HLO op is unknown: they have the name of the kernel."""
    renamed: int = 0
    """Number of kernels of CUDA graphs whose op was found by the kernel's name."""
    programs: list[ProgramProto] = field(default_factory=list)
    devices: dict[str, dict[str, int | float | str]] = field(default_factory=dict)
    """What the profile says about each device, by the lane's device: vendor, clock, memory bandwidth, peak FLOP/s."""
    counters: list[Counter] = field(default_factory=list)
    """Counters read with the host's threads (bytes of their allocators) or from a device's samples."""
    origin_ns: int = 0
    """Clock of the lines at the trace's origin, in nanoseconds."""
    started_unix_ns: int | None = None
    """Wall-clock time at which the profiling began, in Unix nanoseconds; None if unknown."""
    read: int = 0
    """Number of events in the lines read so far."""
    python_tracer: bool = False
    """Whether the trace holds calls of Python functions."""
    problems: list[str] = field(default_factory=list)
    """Descriptions of what could not be read."""
    lost_names: list[str] = field(default_factory=list)
    """Planes whose events have no names, because the file was truncated before them."""
    errors: list[str] = field(default_factory=list)
    """Errors that the profiler itself reports."""
    warnings: list[str] = field(default_factory=list)
    """Warnings of the profiler itself, mostly about dropped events."""
    tracers: dict[str, int] = field(default_factory=dict)
    """Tracing levels of the recording, if the profile says them: `host`, `device`, `python`, `hlo`."""
    bytes: int = 0
    """Size of the file."""
    notes: dict[str, str] = field(default_factory=dict)
    """Facts about the recording, such as `jaxlib_version`."""

    def check(self, lane: Lane) -> list[Lane]:
        """Return the lane without intervals at impossible times, which are recorded as a problem; no lane if nothing is
        left."""
        good = (
            (lane.durations >= 0)
            & (lane.durations < LONGEST_PS)
            & (lane.starts > -LONGEST_PS // 1000)
            & (lane.starts < LONGEST_PS)
        )
        dropped = len(lane) - int(np.count_nonzero(good))
        if dropped:
            self.problems.append(
                f"{lane.device} {lane.name}: {counted(dropped, 'event')} left out, whose times are impossible"
            )
            lane = lane.select(good)
        return [lane] if len(lane) else []

    @property
    def lanes(self) -> list[Lane]:
        """All lanes; reads the remaining ones."""
        self.read_rest()
        return self.ready

    def read_rest(self, advance: Callable[[float], None] = lambda share: None) -> None:
        """Read the remaining lanes; `advance` gets the share that is done after each, and may raise."""
        whole = len(self.pending)
        while self.pending:
            self.ready += self.pending.pop(0)()
            advance(1 - len(self.pending) / whole)

    @property
    def events(self) -> int:
        """Number of events in the file, more than the lanes' intervals, which leave out the profiler's own marks."""
        _ = self.lanes
        return self.read

    def on_device(self, device: str) -> list[Lane]:
        """Return all lanes of a device, which are always read."""
        return [lane for lane in self.ready if lane.device == device]

    def op_lanes(self) -> list[Lane]:
        """Return the lanes on which HLO ops ran; these are the ones counted, each once."""
        return [lane for lane in self.ready if lane.kind in ("stream", "ops", "thread")]

    @property
    def streams(self) -> list[Lane]:
        """Streams of GPUs, which are always read."""
        return [lane for lane in self.ready if lane.kind == "stream"]

    @property
    def threads(self) -> list[Lane]:
        """Threads of the host; reads the remaining lanes."""
        return [lane for lane in self.lanes if lane.kind == "host"]

    def programs_of_ops(self) -> tuple[list[Program], Ints]:
        """Return the distinct programs of the ops, and the index of each op's program."""
        numbers: dict[Program, int] = {}
        which = [numbers.setdefault((op.module, op.program), len(numbers)) for op in self.ops]
        return list(numbers), np.array(which, np.int64)

    def ops_on(self, device: str) -> list[Lane]:
        """Return the lanes on which HLO ops ran on a device, with the intervals that name an op."""
        lanes = [lane.select(lane.op_of != NO_OP) for lane in self.op_lanes() if lane.device == device]
        return [lane for lane in lanes if len(lane)]

    @property
    def span_ps(self) -> tuple[int, int] | None:
        """Start of the first interval and end of the last; None for a trace without any."""
        return span_of(self.lanes)


def span_of(lanes: Iterable[Lane]) -> tuple[int, int] | None:
    """Return the start of the first interval and the end of the last, in picoseconds; None without any."""
    spans = [(int(lane.starts.min()), int(lane.ends.max())) for lane in lanes if len(lane)]
    return (min(begin for begin, _ in spans), max(end for _, end in spans)) if spans else None


def program_proto(trace: Trace, name: str, program: int | None) -> ProgramProto | None:
    """Return the HLO of a program by its id, or, if the profile has no id, by a name that only one module has."""
    identified = next((held for held in trace.programs if held.program == program), None)
    named = [held for held in trace.programs if held.name == name]
    return named[0] if identified is None and len(named) == 1 else identified
