"""A profile once it is read, whatever its format: lanes of intervals on one clock, and HLO ops.

Times are integer picoseconds from the trace's origin. Nothing here knows a file format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jaxprof.units import counted

Ints = NDArray[np.int64]
Kind = Literal["stream", "ops", "async", "thread", "modules", "steps", "host"]
Platform = Literal["cpu", "gpu", "tpu", ""]
NO_OP = -1
ABSENT = -1
"""No value, in columns of indices and of numbers that are never negative."""
PS = 1e-12
"""Seconds in a picosecond."""
LONGEST_PS = 10**18
"""Eleven days: an interval that is longer, or begins later, is damage."""
PROGRAM_MASK = 0xFFFF_FFFF_FFFF_FFFF
"""Program ids are unsigned; some writers keep them in signed fields."""


@dataclass(frozen=True, slots=True)
class Op:
    """An HLO instruction as a profile names it."""

    module: str
    program: int | None
    """The program's id, as an unsigned number; None where the profile does not say."""
    name: str


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A text for each interval of a lane; each different text is kept once."""

    texts: list[str]
    which: Ints
    """Index into `texts`, or `ABSENT`."""

    def select(self, rows: Ints) -> TextColumn:
        """The column of some rows only."""
        return TextColumn(self.texts, self.which[rows])


@dataclass(slots=True)
class Lane:
    """One row of intervals."""

    device: str
    """`cpu:0`, `gpu:0`, `tpu:1`, or `host`; with `NAME/` before it where several hosts are open together."""
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
    """The id that joins a launch on the host with its kernel on the device; `ABSENT` where there is none."""
    step: Ints | None = None
    """`step_num` of a step annotation; `ABSENT` for other events."""
    execution: Ints | None = None
    """`run_id`: which execution of its program an op belongs to; any integer, 0 where the profile does not say."""
    launch: TextColumn | None = None
    """`kernel_details`: grid, block, registers and the like of a GPU kernel."""
    copy: TextColumn | None = None
    """`memcpy_details` of a GPU's copies."""

    guessed: NDArray[np.bool_] | None = None
    """Where `op_of` is a guess."""
    thread: int = 0
    """For a host lane: the thread's id, which a thread and the row of its launches share; 0 where unknown."""

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def ends(self) -> Ints:
        """When each interval ended."""
        return self.starts + self.durations

    def select(self, rows: Ints) -> Lane:
        """A lane of some intervals of this one (their indices), in the same order."""

        def part(column: Ints | None) -> Ints | None:
            return None if column is None else column[rows]

        return Lane(
            device=self.device,
            name=self.name,
            kind=self.kind,
            starts=self.starts[rows],
            durations=self.durations[rows],
            names=self.names,
            name_of=self.name_of[rows],
            op_of=self.op_of[rows],
            correlation=part(self.correlation),
            step=part(self.step),
            execution=part(self.execution),
            launch=None if self.launch is None else self.launch.select(rows),
            copy=None if self.copy is None else self.copy.select(rows),
            guessed=None if self.guessed is None else self.guessed[rows],
            thread=self.thread,
        )


@dataclass(frozen=True, slots=True)
class Counter:
    """A quantity over time: each value holds from its time on."""

    device: str
    name: str
    unit: str
    """`bytes`, `watts` or what the profile calls it."""
    times: Ints
    """Picoseconds, ascending."""
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ProgramText:
    """An HLO module that lies in a profile."""

    name: str
    program: int | None
    proto: bytes = b""
    """An `HloProto`; empty where the text is given."""
    text: str = ""
    """HLO text, from a trace that jaxprof exported; empty where the proto is given."""


@dataclass(slots=True)
class Trace:
    """All of a file, or of the files of several hosts.

    A thread of the host can have millions of events that only a timeline shows, so they are read only when `lanes` is
    called.
    """

    platform: Platform = ""
    """Where the HLO ops ran; empty where there are none."""
    ready: list[Lane] = field(default_factory=list)
    """The lanes that were read: at least those of the devices."""
    pending: list[Callable[[], Iterable[Lane]]] = field(default_factory=list)
    """Functions that read the other lanes."""
    annotations: list[Lane] = field(default_factory=list)
    """The step annotations of the host's lanes, and nothing else."""
    launches: list[Lane] = field(default_factory=list)
    """The events of the host's lanes that have a correlation id or name an HLO op, where the op itself ran on a
    device."""
    ops: list[Op] = field(default_factory=list)
    programs: list[ProgramText] = field(default_factory=list)
    devices: dict[str, dict[str, int | float | str]] = field(default_factory=dict)
    """What the profile says of each device, by lane's device: vendor, clock, memory bandwidth, peak FLOP/s."""
    counters: list[Counter] = field(default_factory=list)
    """Counters that were read with the threads of the hosts: the bytes of their allocators."""
    hosts: list[str] = field(default_factory=list)
    origin_ns: int = 0
    """What the lines' clocks showed at the trace's origin."""
    started_unix_ns: int | None = None
    """When the profiling began, by the wall clock."""
    read: int = 0
    """Events of the lines that were read so far."""
    python_tracer: bool = False
    """Whether it holds calls of Python functions."""
    problems: list[str] = field(default_factory=list)
    """What could not be read, a line each."""
    lost_names: list[str] = field(default_factory=list)
    """Planes whose events have no names, because the file was truncated before them."""
    errors: list[str] = field(default_factory=list)
    """What the profiler itself says went wrong."""
    warnings: list[str] = field(default_factory=list)
    """What the profiler itself warns of: events that it dropped, above all."""
    tracers: dict[str, int] = field(default_factory=dict)
    """Tracing levels that the profiler recorded with, where it says so: `host`, `device`, `python`, `hlo`."""
    chrome: bool = False
    """Read from a Chrome trace, which holds less than an xplane."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Size of the files in bytes, by path."""
    notes: dict[str, str] = field(default_factory=dict)
    """Facts of the recording, such as `jaxlib_version`."""

    def checked(self, lane: Lane) -> list[Lane]:
        """The lane without intervals with impossible times, which are a problem; no lane where nothing is left."""
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
            lane = lane.select(np.flatnonzero(good))
        return [lane] if len(lane) else []

    @property
    def lanes(self) -> list[Lane]:
        """All lanes."""
        self.read_rest()
        return self.ready

    def read_rest(self, advance: Callable[[float], None] = lambda share: None) -> None:
        """Reads the lanes that wait; `advance` is given the share that is done after each, and may raise."""
        whole = len(self.pending)
        while self.pending:
            self.ready += self.pending.pop(0)()
            advance(1 - len(self.pending) / whole)

    @property
    def events(self) -> int:
        """Events in the file; more than the lanes' intervals, which leave the profiler's own marks out."""
        _ = self.lanes
        return self.read

    def on_device(self, device: str) -> list[Lane]:
        """All lanes of a device: these are always read."""
        return [lane for lane in self.ready if lane.device == device]

    def op_lanes(self) -> list[Lane]:
        """The lanes that are counted: where HLO ops ran, each once."""
        return [lane for lane in self.ready if lane.kind in ("stream", "ops", "thread")]

    @property
    def span_ps(self) -> tuple[int, int] | None:
        """When the first interval began and the last ended; None for a trace without any."""
        spans = [(int(lane.starts.min()), int(lane.ends.max())) for lane in self.lanes if len(lane)]
        return (min(begin for begin, _ in spans), max(end for _, end in spans)) if spans else None


def program_text(trace: Trace, name: str, program: int | None) -> ProgramText | None:
    """The HLO of a program: by its id, or where the profile has no id, by a name that only one module has."""
    if program is not None:
        of_identity = [text for text in trace.programs if text.program == program]
        if of_identity:
            return of_identity[0]
    named = [text for text in trace.programs if text.name == name]
    return named[0] if len(named) == 1 else None


class OpNumbers:
    """Numbers for ops, in the order in which they are met."""

    def __init__(self) -> None:
        self.list: list[Op] = []
        self._numbers: dict[Op, int] = {}

    def number(self, op: Op) -> int:
        """The index of `op` in `list`."""
        index = self._numbers.get(op)
        if index is None:
            index = self._numbers[op] = len(self.list)
            self.list.append(op)
        return index
