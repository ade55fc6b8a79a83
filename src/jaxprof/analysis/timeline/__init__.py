"""A profile over time: its lanes, who called whom, and its steps.

Here: the timeline of a run, read from its text with the standard library only; `docs/traces.md` describes the format. A
text from an edited or damaged file is refused as a whole, not drawn in part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import accumulate
from typing import Any

from jaxprof.base.errors import FileRefusedError, JaxprofError
from jaxprof.base.limits import VALUES
from jaxprof.base.values import frozen
from jaxprof.session import Run, Session

TEXT_NAME = "timeline"
"""Name of the run's text that holds the timeline: `session.text(run, TEXT_NAME)`."""
VERSION = 1


@frozen
class TimelineOp:
    """An HLO op that intervals belong to."""

    module: str
    program: str | None
    """Id of the program in decimal digits, because it may exceed JSON's numbers."""
    name: str


@frozen
class TimelineLane:
    """One row: intervals by start in nanoseconds, and longer intervals first if they begin together."""

    device: str
    """Device: `gpu:0`, `cpu:0` or `host`, with `NAME/` in front if several hosts are shown together."""
    name: str
    kind: str
    """Kind: `modules`, `steps`, `stream`, `ops`, `async`, `thread` or `host`."""
    labels: list[tuple[str, int | None]]
    """Names, each with the index of its op in `Timeline.ops`, or None."""
    label_of: list[int]
    starts: list[int]
    durations: list[int]
    executions: list[int] | None = None
    """`run_id`, the execution of its program that an interval belongs to; None if the profile does not say."""
    correlations: list[int] | None = None
    """Id that a launch on the host and its kernel share, -1 for other intervals; None if no interval has one."""
    steps: dict[int, int] = field(default_factory=dict)
    """Numbers of step annotations, by the interval's index."""
    left_out: int = 0
    """Number of the lane's intervals that are left out here."""
    active: tuple[list[int], list[int]] | None = None
    """Begins of equal parts of the profile, and the time covered in each; None if no interval is left out."""

    def __len__(self) -> int:
        return len(self.starts)


@frozen
class TimelineCounter:
    """A quantity over time: each value holds from its time on. Times ascend, in nanoseconds."""

    device: str
    name: str
    unit: str
    """Unit: `bytes`, `watts`, or the profile's own name."""
    times: list[int]
    values: list[float]


@frozen
class Timeline:
    """All lanes of a profile on one clock. Its zero is where the profile's own clocks begin: no event comes earlier."""

    started_unix_ns: int | None
    """Unix time in nanoseconds at which the recording began; None if the profile does not say."""
    left_out: int
    """Number of the profile's intervals, the shortest ones, that are left out here."""
    ops: list[TimelineOp]
    lanes: list[TimelineLane]
    counters: list[TimelineCounter] = field(default_factory=list)


def session_timelines(session: Session, notices: list[str]) -> Iterator[tuple[Run, Timeline]]:
    """Yield the timelines of a session, each with its run; a damaged one is left out, with a notice."""
    for run in session.runs.values():
        if TEXT_NAME not in run.texts:
            continue
        try:
            timeline = read_timeline(session.text(run.id, TEXT_NAME) or "")
        except JaxprofError as error:
            notices.append(f"the timeline of run {run.id} was left out: {error.what}")
            continue
        yield run, timeline


def read_timeline(text: str) -> Timeline:
    """Return the timeline in `text`. Raises FileRefusedError if it holds none, one of a newer format, or more values
    than the limit `values` allows."""
    if text.count(",") > VALUES.most:  # checked before parsing: values take twenty times the memory
        raise FileRefusedError(f"the timeline of this session has {VALUES.words}", VALUES.hint)
    try:
        data = json.loads(text)
        if data["version"] != VERSION:
            raise FileRefusedError(
                f"the timeline has format version {data['version']}, and this jaxprof reads version {VERSION}",
                "Update jaxprof.",
            )
        return Timeline(
            started_unix_ns=data["started_unix_ns"],
            left_out=data["left_out"],
            ops=[TimelineOp(module, program, name) for module, program, name in data["ops"]],
            lanes=[_lane(lane, len(data["ops"])) for lane in data["lanes"]],
            counters=[_counter(counter) for counter in data.get("counters", ())],
        )
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
        raise FileRefusedError(f"the timeline of this session is damaged: {error}") from error


def _lane(data: dict[str, Any], ops: int) -> TimelineLane:
    labels = [(str(name), op) for name, op in data["labels"]]
    for name in ("device", "name", "kind"):
        if not isinstance(data[name], str):
            raise TypeError(f"a lane's {name} is not text")
    for name in ("label", "start", "duration"):
        if not set(map(type, data[name])) <= {int, float}:
            raise TypeError(f"a lane's {name} has more than numbers")
    active = data.get("active")
    if active is not None:
        busy = [int(took) for took in active["busy"]]
        starts = [int(active["start"]) + int(active["step"]) * number for number in range(len(busy))]
        active = (starts, busy)
    lane = TimelineLane(
        device=data["device"],
        name=data["name"],
        kind=data["kind"],
        labels=labels,
        label_of=data["label"],
        starts=list(accumulate(data["start"])),
        durations=data["duration"],
        executions=_cumulative(data.get("execution")),
        correlations=_cumulative(data.get("correlation")),
        steps={int(at): int(number) for at, number in data.get("steps", ())},
        left_out=int(data.get("left_out", 0)),
        active=active,
    )
    columns = (lane.label_of, lane.starts, lane.durations, lane.executions, lane.correlations)
    sizes = {len(column) for column in columns if column is not None}
    known_ops = all(op is None or 0 <= op < ops for _, op in labels)
    known_labels = not lane.label_of or (min(lane.label_of) >= 0 and max(lane.label_of) < len(labels))
    if len(sizes) != 1 or not known_ops or not known_labels:
        raise ValueError(f"the columns of lane {lane.name!r} do not match")
    return lane


def _counter(data: dict[str, Any]) -> TimelineCounter:
    times, values = list(accumulate(data["time"])), [float(value) for value in data["value"]]
    if len(times) != len(values):
        raise ValueError(f"the columns of counter {data['name']!r} do not match")
    return TimelineCounter(str(data["device"]), str(data["name"]), str(data["unit"]), times, values)


def _cumulative(differences: list[int] | None) -> list[int] | None:
    return None if differences is None else list(accumulate(differences))


_QUANTITIES = (("memory", "bytes", "memory_used_bytes"), ("power", "watts", "power_watts"))


def readings_within(session: Session, timeline: Timeline) -> list[TimelineCounter]:
    """Return memory and power of each device during the recording; empty if its begin is unknown, or none read."""
    header = session.header
    if timeline.started_unix_ns is None:
        return []
    end = max((start + took for lane in timeline.lanes
               for start, took in zip(lane.starts[-1:], lane.durations[-1:], strict=True)), default=0)  # fmt: skip
    shift = header.wall_seconds - header.monotonic_seconds
    counters = []
    for device, readings in session.readings.items():
        for name, unit, key in _QUANTITIES:
            values = [
                (round((reading.monotonic_seconds + shift) * 1e9) - timeline.started_unix_ns, float(value))
                for reading in readings
                if (value := getattr(reading, key)) is not None
            ]
            inside = sorted((time, value) for time, value in values if 0 <= time <= end)
            if inside:
                times, numbers = (list(column) for column in zip(*inside, strict=True))
                counters.append(TimelineCounter(device.replace("cuda:", "gpu:"), name, unit, times, numbers))
    return counters


def tracks_of(lane: TimelineLane) -> tuple[list[int], int]:
    """Divide a lane's intervals into tracks in which they nest. Returns each interval's track, and their number."""
    tracks: list[list[int]] = [[]]
    numbers = []
    for start, duration in zip(lane.starts, lane.durations, strict=True):
        end = start + duration
        for number, open_ends in enumerate(tracks):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            # It lies inside the innermost open interval of the track, or none is open.
            if not open_ends or open_ends[-1] >= end:
                numbers.append(number)
                break
        else:
            open_ends = []
            numbers.append(len(tracks))
            tracks.append(open_ends)
        open_ends.append(end)
    return numbers, len(tracks)


KINDS = (
    "matmul, conv", "fusion", "reduction", "copies", "collective", "kernel", "programs", "dispatch", "waiting", "host",
    "counters", "busy",
)  # fmt: skip
"""Every kind, as the legend names it, in its order."""
COUNTER = "counters"
"""Kind of a lane that shows a quantity over time."""
BUSY = "busy"
"""Kind of a lane that shows when anything ran on a device."""
DEVICE_LANES = frozenset({"modules", "steps", "stream", "ops", "thread", "async", BUSY})
COUNTED_LANES = frozenset({"stream", "ops", "thread"})
"""Kinds of lanes that hold each kernel once; executions of programs and steps hold them again."""
WORK_LANES = COUNTED_LANES | {"async"}
"""Kinds of lanes in which a device works, as its busy time counts it: kernels, collectives and copies."""

_DEVICE = (
    ("collective", r"all[-_ ]?(reduce|gather|to[-_ ]?all)|reduce[-_]?scatter|collective|[nr]ccl|permute|"
     r"\bp(sum|max|min)\b|\bsend|\brecv"),
    ("matmul, conv", r"gemm|matmul|\bdot|_dot|conv(olution|[-_.\d]|$)|attention|cublas|cutlass|cudnn|xmma|fft|"
     r"cholesky"),
    ("reduction", r"reduc|sort|top-?k|scatter|window|cumsum|softmax"),
    ("fusion", r"fusion|elementwise|wrapped_"),
    ("copies", r"copy|transpose|transfer|mem(cpy|set)|broadcast|slice|concat|\bpad|infeed|outfeed|gather|update|"
     r"bitcast"),
)  # fmt: skip
_HOST = (
    ("waiting", r"wait|block_?until|await|sleep|idle|synchroni"),
    ("copies", r"transfer|memcpy|copy|BufferFromHost|ToLiteral|device_put"),
    ("dispatch", r"execut|launch|dispatch|enqueue|pjit|PjRt|graph"),
)


def kind_of(lane_kind: str, name: str, op: str | None = None, kernels: Mapping[str, str] | None = None) -> int:
    """Return the index in `KINDS` of an interval `name` of `op`. `kernels`: kind of each op in the HLO."""
    if lane_kind in ("modules", "steps"):
        return KINDS.index("programs")
    if lane_kind not in DEVICE_LANES:
        return _first(_HOST, name, "host")
    in_hlo = kernels.get(op) if kernels and op is not None else None
    return _first(_DEVICE, in_hlo or op or name, "kernel")


def _first(patterns: tuple[tuple[str, str], ...], name: str, otherwise: str) -> int:
    found = (kind for kind, pattern in patterns if re.search(pattern, name, re.IGNORECASE))
    return KINDS.index(next(found, otherwise))
