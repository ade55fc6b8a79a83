"""The lanes of a timeline as sorted arrays, so that a frame costs what it shows and not what there is.

A lane is a device stream or a group of threads. Its rows are its threads, one for each level of nesting, and none of a
row's intervals overlap; a lane of several rows has a summary of its outermost intervals besides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jaxprof.errors import FileRefusedError
from jaxprof.results.timeline import Timeline, TimelineLane, TimelineOp
from jaxprof.tui.timeline.kinds import DEVICE_LANES, KINDS, kind_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DEEPEST = 16
"""Levels of nesting that get a row; what is nested deeper is counted and said, not drawn."""
LONGEST_NS = 1 << 56
"""Two years: a later time is none."""
_NUMBER = re.compile(r"[-/#_ ]*-?\d+$")


@dataclass(frozen=True, slots=True)
class Busy:
    """How long some intervals have taken up to any time, whether or not they overlap."""

    starts: Ints
    ends: Ints
    """Sorted for itself: the n-th end need not belong to the n-th start."""
    _before_start: Ints
    _before_end: Ints

    @classmethod
    def of(cls, starts: Ints, ends: Ints) -> Busy:
        """Of intervals in any order."""
        starts, ends = np.sort(starts), np.sort(ends)
        return cls(starts, ends, _prefix(starts), _prefix(ends))

    def until(self, times: Ints) -> Ints:
        """Nanoseconds up to each of `times`; overlapping intervals count each."""
        begun = np.searchsorted(self.starts, times, "right")
        over = np.searchsorted(self.ends, times, "right")
        result: Ints = times * (begun - over) - self._before_start[begun] + self._before_end[over]
        return result


def _prefix(values: Ints) -> Ints:
    found = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=found[1:])
    return found


@dataclass(frozen=True, slots=True)
class Row:
    """Intervals in order of their start. Nanoseconds since the timeline's begin."""

    name: str
    """The thread or stream."""
    level: int
    """How deep they are nested, 0 for the outermost."""
    starts: Ints
    ends: Ints
    label: Ints
    """Index in the lane's labels."""
    busy: Mapping[int, Busy]
    """By the index of the kind."""
    capacity: int = 1
    """How many may run at once: above 1 in a summary of several threads, whose intervals overlap."""

    def at(self, time: int) -> int | None:
        """Index of the interval at that time, the one that began last; None in a gap."""
        last = int(np.searchsorted(self.starts, time, "right"))
        first = last - 1 if self.capacity == 1 else max(0, last - 4096)
        for index in range(last - 1, max(-1, first - 1), -1):
            if self.ends[index] > time:
                return index
        return None

    def near(self, time: int, step: int) -> int | None:
        """Index of the first interval that begins after `time`, or of the last one that ended by it."""
        if step > 0:
            index = int(np.searchsorted(self.starts, time, "right"))
            return index if index < len(self.starts) else None
        index = int(np.searchsorted(self.starts, time, "left")) - 1
        return index if index >= 0 else None


@dataclass(frozen=True, slots=True)
class Lane:
    """One stream, or the threads of one pool."""

    device: str
    kind: str
    title: str
    labels: Sequence[tuple[str, int | None]]
    """Names, each with the index of its op, or None."""
    kind_of_label: Sequence[int]
    rows: tuple[Row, ...]
    summary: Row
    """What stands for the lane when it is closed; the only row of a lane that has but one."""
    hidden: int = 0
    """Intervals that are nested too deep to be drawn."""

    @property
    def on_device(self) -> bool:
        """Whether kernels run here, so that gaps mean something."""
        return self.kind in DEVICE_LANES

    @property
    def opens(self) -> bool:
        """Whether there is more than the summary."""
        return len(self.rows) > 1


@dataclass(frozen=True, slots=True)
class Lanes:
    """A whole timeline, host lanes first."""

    lanes: tuple[Lane, ...]
    ops: Sequence[TimelineOp]
    begin: int
    end: int
    left_out: int
    kinds: tuple[int, ...] = field(default=())
    """Those that occur, in the order of the legend."""

    @property
    def intervals(self) -> int:
        """How many there are in all rows."""
        return sum(len(row.starts) for lane in self.lanes for row in lane.rows)


def lanes_of(timeline: Timeline, kernels: Mapping[str, str] | None = None) -> Lanes:
    """The arrays of a timeline; `kernels` gives the HLO's kind of a kernel by its name.

    Raises FileRefusedError where what should be a time is none.
    """
    groups: dict[tuple[str, str, str], list[TimelineLane]] = {}
    for lane in timeline.lanes:
        if len(lane):
            groups.setdefault(_group(lane), []).append(lane)
    try:
        lanes = [_lane(title, members, timeline.ops, kernels) for (_, _, title), members in groups.items()]
    except (TypeError, ValueError, OverflowError) as error:
        raise FileRefusedError(f"the timeline of this session is damaged: {error}") from error
    lanes.sort(key=lambda lane: (lane.on_device, lane.device, -_total(lane) if not lane.on_device else 0.0))
    ends = [int(row.ends.max()) for lane in lanes for row in lane.rows]
    starts = [int(row.starts[0]) for lane in lanes for row in lane.rows]
    present = sorted({kind for lane in lanes for row in lane.rows for kind in row.busy})
    begin = min(starts, default=0)
    return Lanes(tuple(lanes), timeline.ops, begin, max(ends, default=begin + 1), timeline.left_out, tuple(present))


def _total(lane: Lane) -> float:
    return float((lane.summary.ends - lane.summary.starts).sum())


def _group(lane: TimelineLane) -> tuple[str, str, str]:
    """Threads of one pool go together; streams and the lines of a device stand for themselves."""
    name = _NUMBER.sub("", lane.name) or lane.name if lane.kind in ("thread", "host") else lane.name
    return lane.device, lane.kind, name


def _lane(
    title: str, members: list[TimelineLane], ops: Sequence[TimelineOp], kernels: Mapping[str, str] | None
) -> Lane:
    first = members[0]
    labels: list[tuple[str, int | None]] = []
    rows: list[Row] = []
    kinds = np.zeros(0, np.int64)
    hidden = 0
    for member in members:
        offset = len(labels)
        labels += member.labels
        more = [kind_of(first.kind, name, None if op is None else ops[op].name, kernels) for name, op in member.labels]
        kinds = np.concatenate([kinds, np.array(more, np.int64)])
        starts = _times(member.starts)
        ends = starts + np.maximum(_times(member.durations), 1)
        label = np.asarray(member.label_of, np.int64) + offset
        order = np.lexsort((-ends, starts))
        found, left = _levels(member.name, starts[order], ends[order], label[order], kinds)
        rows += found
        hidden += left
    return Lane(
        first.device,
        first.kind,
        title,
        labels,
        kinds.tolist(),
        tuple(rows),
        _summary(title, rows, kinds),
        hidden,
    )


def _times(values: list[int]) -> Ints:
    found = np.asarray(values, np.int64)
    if found.ndim != 1 or np.abs(found).max(initial=0) > LONGEST_NS:
        raise ValueError("not a list of times")
    return found


def _levels(name: str, starts: Ints, ends: Ints, label: Ints, kinds: Ints) -> tuple[list[Row], int]:
    """A row for each level of nesting: what begins before an earlier interval has ended goes a level deeper."""
    rows: list[Row] = []
    while len(starts) and len(rows) < DEEPEST:
        reach = np.maximum.accumulate(ends)
        top = np.ones(len(starts), np.bool_)
        top[1:] = starts[1:] >= reach[:-1]
        rows.append(_row(name, len(rows), starts[top], ends[top], label[top], kinds))
        starts, ends, label = starts[~top], ends[~top], label[~top]
    return rows, len(starts)


def _row(name: str, level: int, starts: Ints, ends: Ints, label: Ints, kinds: Ints, capacity: int = 1) -> Row:
    of_kind = kinds[label]
    busy = {int(kind): Busy.of(starts[of_kind == kind], ends[of_kind == kind]) for kind in np.unique(of_kind)}
    return Row(name, level, starts, ends, label, busy, capacity)


def _summary(title: str, rows: list[Row], kinds: Ints) -> Row:
    outermost = [row for row in rows if row.level == 0]
    if len(outermost) == 1:
        return outermost[0]
    starts = np.concatenate([row.starts for row in outermost])
    order = np.argsort(starts, kind="stable")
    ends, label = (np.concatenate([getattr(row, name) for row in outermost])[order] for name in ("ends", "label"))
    return _row(title, 0, starts[order], ends, label, kinds, len(outermost))


def kind_name(lane: Lane, label: int) -> str:
    """The kind of an interval with that label, in one word."""
    return KINDS[lane.kind_of_label[label]]
