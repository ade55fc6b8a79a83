"""The lanes of a timeline as sorted arrays, so that drawing costs what is shown, not what exists.

A lane is a device stream or a group of threads. It has a row for each level of nesting of each thread; the intervals of
a row do not overlap. A lane of several rows also has a summary of its outermost intervals. The totals of a range cost
one pass over its intervals. Jumps go to the longest idle times of a row, and a search is by the name of an interval or
of its op, or from a launch on the host to its kernel and back, which share a correlation id. A device that worked has a
lane of its own before its others, `device busy`: when anything ran on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from jaxprof.analysis.timeline import (
    BUSY,
    COUNTED_LANES,
    COUNTER,
    DEVICE_LANES,
    KINDS,
    WORK_LANES,
    Timeline,
    TimelineCounter,
    TimelineLane,
    TimelineOp,
    kind_of,
)
from jaxprof.base.errors import FileRefusedError
from jaxprof.base.grouping import grouped
from jaxprof.base.values import frozen
from jaxprof.trace.intervals import Coverage, join
from jaxprof.trace.model import Ints

Floats = NDArray[np.float64]

DEEPEST = 16
"""Number of nesting levels that have a row; deeper intervals are not drawn."""
_NUMBER = re.compile(r"[-/#_ ]*-?\d+$")


@frozen
class Busy:
    """Total length of some intervals up to any time, whether or not they overlap."""

    starts: Ints
    ends: Ints
    """Ends, sorted independently of the starts: the n-th end need not belong to the n-th start."""
    _before_start: Ints
    _before_end: Ints

    @classmethod
    def of(cls, starts: Ints, ends: Ints) -> Busy:
        """Build from intervals in any order."""
        starts, ends = np.sort(starts), np.sort(ends)
        return cls(starts, ends, np.append(0, np.cumsum(starts)), np.append(0, np.cumsum(ends)))

    def until(self, times: Ints) -> Ints:
        """Return the nanoseconds up to each of `times`; overlapping intervals all count."""
        begun = np.searchsorted(self.starts, times, "right")
        over = np.searchsorted(self.ends, times, "right")
        result: Ints = times * (begun - over) - self._before_start[begun] + self._before_end[over]
        return result

    def between(self, begin: int, end: int) -> int:
        """Return the nanoseconds within a range of time."""
        until = self.until(np.array([begin, end], np.int64))
        return int(until[1] - until[0])


@frozen
class LaneRow:
    """Intervals in order of their start, in nanoseconds since the start of the timeline."""

    name: str
    """Name of the thread or stream."""
    level: int
    """Depth of nesting, 0 for the outermost."""
    starts: Ints
    ends: Ints
    label: Ints
    """Index in the lane's labels."""
    busy: Mapping[int, Busy]
    """Intervals of each kind, by the index of the kind."""
    capacity: int = 1
    """Number of intervals that may run at once; above 1 in a summary of several threads, whose intervals overlap."""
    correlation: Ints | None = None
    """Id that a launch shares with its kernel; -1 for other intervals."""
    values: Floats | None = None
    """Value of a counter in each interval, which ends when the value changes; None for other rows."""

    def at(self, time: int) -> int | None:
        """Return the index of the interval at a time, the last to begin if there are several; None in a gap."""
        last = int(np.searchsorted(self.starts, time, "right"))
        first = last - 1 if self.capacity == 1 else max(0, last - 4096)
        for index in range(last - 1, max(-1, first - 1), -1):
            if self.ends[index] > time:
                return index
        return None

    def inside(self, begin: int, end: int) -> slice:
        """Return the intervals that are at least partly in a range, for a row of one thread. Such intervals do not
        overlap, so their ends ascend as well."""
        first = int(np.searchsorted(self.ends, begin, "right"))
        return slice(first, max(first, int(np.searchsorted(self.starts, end, "left"))))

    def is_in_range(self, begin: int, end: int) -> bool:
        part = self.inside(begin, end)
        return bool(part.start < part.stop)

    def near(self, time: int, step: int) -> int | None:
        """Return the first interval after `time` (`step` > 0), or the last one before it, by their begins."""
        if step > 0:
            index = int(np.searchsorted(self.starts, time, "right"))
            return index if index < len(self.starts) else None
        index = int(np.searchsorted(self.starts, time, "left")) - 1
        return index if index >= 0 else None


@frozen
class LaneGroup:
    """One stream, or the threads of one pool."""

    device: str
    kind: str
    title: str
    labels: Sequence[tuple[str, int | None]]
    """Names, each with the index of its op, or None without one."""
    kind_of_label: Sequence[int]
    rows: tuple[LaneRow, ...]
    summary: LaneRow
    """Row that is drawn while the lane is collapsed; for a lane of one row, that row."""
    active: Busy
    """Times in which anything ran, at any depth; each of several threads counts. If intervals are left out, this is the
    busy time of each small part of the profile."""
    unit: str = ""
    """Unit of a counter; empty for other lanes."""
    left_out: int | None = 0
    """Number of intervals that `active` includes but the timeline lacks; None if unknown."""

    @property
    def on_device(self) -> bool:
        """Whether kernels run in this lane, so that gaps are meaningful."""
        return self.kind in DEVICE_LANES

    @property
    def opens(self) -> bool:
        """Whether the lane has more rows than its summary."""
        return len(self.rows) > 1

    def name_of(self, row: LaneRow, index: int) -> str:
        return self.labels[int(row.label[index])][0]


@frozen
class Lanes:
    """A whole timeline, device lanes first."""

    lanes: tuple[LaneGroup, ...]
    ops: Sequence[TimelineOp]
    begin: int
    end: int
    left_out: int
    kinds: tuple[int, ...] = field(default=())
    """Kinds that occur, in the order of the legend."""

    @property
    def intervals(self) -> int:
        """Number of intervals in all rows, without the values of counters and the times in which a device was busy."""
        return sum(len(row.starts) for lane in self.lanes if lane.kind not in (COUNTER, BUSY) for row in lane.rows)


NO_LANES = Lanes((), (), 0, 1, 0)
"""A timeline without events."""


def lanes_of(
    timeline: Timeline, kernels: Mapping[str, str] | None = None, readings: Sequence[TimelineCounter] = ()
) -> Lanes:
    """Return the arrays of a timeline; `kernels` maps kernel names to kinds in the HLO, `readings` are more counters.
    Raises FileRefusedError if a time or a value of the timeline is not a usable number."""
    groups: dict[tuple[str, str, str], list[TimelineLane]] = {}
    for each in filter(len, timeline.lanes):
        # The threads of one pool, `pool/3`, are a group; each stream or line of a device has its own.
        name = _NUMBER.sub("", each.name) if each.kind in ("thread", "host") else each.name
        groups.setdefault((each.device, each.kind, name or each.name), []).append(each)
    working = grouped((lane.device, lane) for lane in timeline.lanes if len(lane) and lane.kind in WORK_LANES)
    try:
        lanes: list[LaneGroup] = []
        for device, members in working.items():
            # When anything ran in these lanes of a device; with intervals left out, its idle gaps are unknown.
            work = Coverage.over(Coverage.of(*_intervals(member)) for member in members)
            kind, title = KINDS.index(BUSY), "device busy"
            label = np.zeros(len(work.starts), np.int64)
            row = _row(title, 0, np.array([kind], np.int64), work.starts, work.ends, label)
            left_out = None if any(member.left_out for member in members) else 0
            busy = row.busy[kind]
            lanes.append(LaneGroup(device, BUSY, title, [(BUSY, None)], [kind], (row,), row, busy, left_out=left_out))
        lanes += [_lane(title, members, timeline.ops, kernels) for (_, _, title), members in groups.items()]
        end = max((int(row.ends.max()) for lane in lanes for row in lane.rows), default=0)
        for counter in (*timeline.counters, *readings):
            if not counter.times:
                continue
            # Intervals from one value to the next, the last to the end of the recording.
            since = _times(counter.times)
            order = np.argsort(since, kind="stable")
            since, values = since[order], np.asarray(counter.values, np.float64)[order]
            if not np.isfinite(values).all():
                raise ValueError("a counter has a value that is not a finite number")
            until = np.maximum(np.append(since[1:], max(end, int(since[-1]) + 1)), since)
            kind = KINDS.index(COUNTER)
            label = np.zeros(len(since), np.int64)
            held = Busy.of(since, until)
            device, title, unit = counter.device, counter.name, counter.unit
            row = LaneRow(title, 0, since, until, label, {kind: held}, values=values)
            lanes.append(LaneGroup(device, COUNTER, title, [(title, None)], [kind], (row,), row, held, unit=unit))
    except (TypeError, ValueError, OverflowError) as error:
        raise FileRefusedError(f"the timeline of this session is damaged: {error}") from error
    lanes.sort(key=_order)
    ends = [int(row.ends.max()) for lane in lanes for row in lane.rows]
    starts = [int(row.starts[0]) for lane in lanes for row in lane.rows]
    present = sorted({kind for lane in lanes for row in lane.rows for kind in row.busy})
    begin = min(starts, default=0)
    return Lanes(tuple(lanes), timeline.ops, begin, max(ends, default=begin + 1), timeline.left_out, tuple(present))


def _order(lane: LaneGroup) -> tuple[bool, str, bool, float]:
    """Order lanes: devices first, then hosts, the busiest thread on top; the counters of each come last."""
    if lane.kind == COUNTER:
        return lane.device.endswith("host"), lane.device, True, 0.0
    own = 0.0 if lane.on_device else -float((lane.summary.ends - lane.summary.starts).sum())
    return not lane.on_device, lane.device, False, own


def _intervals(member: TimelineLane) -> tuple[Ints, Ints]:
    """Return the starts and ends of a lane's intervals, each at least a nanosecond long."""
    starts = _times(member.starts)
    return starts, starts + np.maximum(_times(member.durations), 1)


def _lane(
    title: str, members: list[TimelineLane], ops: Sequence[TimelineOp], kernels: Mapping[str, str] | None
) -> LaneGroup:
    device, kind = members[0].device, members[0].kind
    labels = [label for member in members for label in member.labels]
    kinds = np.array(
        [kind_of(kind, name, None if op is None else ops[op].name, kernels) for name, op in labels], np.int64
    )
    rows: list[LaneRow] = []
    active: list[Coverage] = []
    offset = 0
    for member in members:
        starts, ends = _intervals(member)
        if member.active is None:
            active.append(Coverage.of(starts, ends))
        else:
            begins, took = map(_times, member.active)
            active.append(Coverage(begins[took > 0], (begins + took)[took > 0]))
        # Among intervals that begin together, the longest contains the others, so it comes first.
        order = np.lexsort((-ends, starts))
        columns = [starts[order], ends[order], np.asarray(member.label_of, np.int64)[order] + offset]
        if member.correlations is not None:
            columns.append(np.asarray(member.correlations, np.int64)[order])
        rows += [_row(member.name, level, kinds, *held) for level, held in enumerate(_levels(columns))]
        offset += len(member.labels)
    outermost = [row for row in rows if row.level == 0]
    summary = outermost[0] if outermost else None
    if summary is None or len(outermost) > 1:
        # A collapsed lane of several threads shows the outermost intervals of all of them in one row.
        together = zip(*((row.starts, row.ends, row.label) for row in outermost), strict=True)
        joint = [join(column) for column in together]
        order = np.argsort(joint[0], kind="stable")
        summary = _row(title, 0, kinds, *(column[order] for column in joint), capacity=len(outermost))
    return LaneGroup(
        device,
        kind,
        title,
        labels,
        kinds.tolist(),
        tuple(rows),
        summary,
        Busy.of(join(part.starts for part in active), join(part.ends for part in active)),
        left_out=sum(member.left_out for member in members),
    )


def _times(values: list[int]) -> Ints:
    times = np.asarray(values, np.int64)
    # A number above two years in nanoseconds is not a time.
    if times.ndim != 1 or np.abs(times).max(initial=0) > 1 << 56:
        raise ValueError("not a list of times")
    return times


def _levels(columns: Sequence[Ints]) -> Iterator[list[Ints]]:
    """Yield the columns of each level of nesting down to `DEEPEST`, of columns that begin with ordered starts and ends.
    An interval that begins before the one above has ended goes one level deeper."""
    for _ in range(DEEPEST):
        starts, ends, *_ = columns
        if not len(starts):
            return
        # The first interval, and each that is the first to begin after the end of the one before it in this row.
        reached = np.maximum.accumulate(ends)
        first = np.append(0, np.flatnonzero(starts[1:] >= reached[:-1]) + 1)
        if (reached[np.append(first[1:] - 1, -1)] != ends[first]).any():  # not all others lie within these
            after = np.searchsorted(starts, ends).tolist()
            at, row = 0, []
            while at < len(after):
                row.append(at)
                at = after[at]
            first = np.array(row, np.int64)
        top = np.zeros(len(starts), np.bool_)
        top[first] = True
        yield [column[top] for column in columns]
        columns = [column[~top] for column in columns]


def _row(
    name: str, level: int, kinds: Ints, starts: Ints, ends: Ints, label: Ints, correlation: Ints | None = None,
    *,
    capacity: int = 1,
) -> LaneRow:  # fmt: skip
    of_kind = kinds[label]
    busy = {int(kind): Busy.of(starts[of_kind == kind], ends[of_kind == kind]) for kind in np.unique(of_kind)}
    return LaneRow(name, level, starts, ends, label, busy, capacity, correlation)


@frozen
class NameTotal:
    """The intervals of one name in a range."""

    name: str
    count: int
    self_ns: int
    """Nanoseconds within the range, without intervals nested inside."""


@frozen
class LaneTotals:
    lane: int
    """Index in `Lanes.lanes`."""
    span_ns: int
    busy_ns: int
    """Nanoseconds in which anything ran, summed over threads."""
    threads: int
    count: int
    """Number of intervals that are at least partly in the range."""
    names: tuple[NameTotal, ...]
    """Names, longest time first."""
    left_out: int | None = 0
    """`LaneGroup.left_out` for the whole timeline; `count` and `names` are without these intervals."""

    @property
    def busy_share(self) -> float | None:
        """Busy share of the range, from 0 to 1, as the mean over threads. None if intervals may be missing."""
        return None if self.left_out is None else self.busy_ns / max(1, self.span_ns * self.threads)

    @property
    def idle_ns(self) -> int | None:
        """Nanoseconds in which nothing ran, summed over threads. None if intervals may be missing."""
        return None if self.left_out is None else self.span_ns * self.threads - self.busy_ns


def range_totals(lanes: Lanes, begin: int, end: int) -> list[LaneTotals]:
    """Return the totals from `begin` to `end` (nanoseconds) of every lane but counters, in their order."""
    totals = []
    for at, lane in enumerate(lanes.lanes):
        if lane.summary.values is not None:
            continue
        took, counts = np.zeros(len(lane.labels)), np.zeros(len(lane.labels), np.int64)
        nests = lane.kind != "stream"  # kernels of one stream may overlap without one holding the other
        for row, below in zip(lane.rows, [*lane.rows[1:], None], strict=True):
            part = row.inside(begin, end)
            starts, ends, label = np.maximum(row.starts[part], begin), np.minimum(row.ends[part], end), row.label[part]
            own = ends - starts
            if nests and below is not None and below.level == row.level + 1:
                nested = below.inside(begin, end)
                own = own - Coverage(below.starts[nested], below.ends[nested]).within(starts, ends)
            counts += np.bincount(label, minlength=len(counts))
            took += np.bincount(label, weights=own, minlength=len(took))
        names = _merge(
            NameTotal(lane.labels[label][0], int(counts[label]), round(float(took[label])))
            for label in np.flatnonzero(counts).tolist()
        )
        threads = sum(row.level == 0 for row in lane.rows)
        busy = lane.active.between(begin, end)
        totals.append(LaneTotals(at, end - begin, busy, threads, int(counts.sum()), names, lane.left_out))
    return totals


def kernels_on(lanes: Lanes, device: str, totals: Iterable[LaneTotals]) -> tuple[NameTotal, ...]:
    """Return what ran on a device, over all lanes that hold each kernel once, longest time first."""
    held = [found for found in totals if lanes.lanes[found.lane].kind in COUNTED_LANES]
    return _merge(total for found in held if lanes.lanes[found.lane].device == device for total in found.names)


def _merge(totals: Iterable[NameTotal]) -> tuple[NameTotal, ...]:
    by_name: dict[str, NameTotal] = {}
    for total in totals:
        known = by_name.get(total.name, NameTotal(total.name, 0, 0))
        by_name[total.name] = NameTotal(total.name, known.count + total.count, known.self_ns + total.self_ns)
    return tuple(sorted(by_name.values(), key=lambda total: (-total.self_ns, total.name)))


IdleTime = tuple[int, int]
"""Begin and end of an idle time of a row, between two intervals."""


def idle_around(row: LaneRow, time: int) -> tuple[int | None, int | None]:
    """Return where the idle time at `time` begins and ends; None before the first interval, or after the last one."""
    after = int(np.searchsorted(row.starts, time, "right"))
    begin = int(row.ends[:after].max()) if after else None
    return begin, int(row.starts[after]) if after < len(row.starts) else None


def longest_idle(row: LaneRow, before: IdleTime | None = None) -> IdleTime | None:
    """Return the longest idle time; with `before`, the one that follows it in order of length. Equal ones keep
    the order of time; after the shortest comes the longest again.

    One pass for each key press: sorting a million idle times takes twenty times as long.
    """
    ran = Coverage.of(row.starts, row.ends)
    begins, ends = ran.ends[:-1], ran.starts[1:]
    if not len(begins):
        return None
    sizes = ends - begins
    remaining = np.ones(len(begins), np.bool_)
    if before is not None and (begins == before[0]).any():
        size = before[1] - before[0]
        remaining = (sizes < size) | ((sizes == size) & (begins > before[0]))
    candidates = np.flatnonzero(remaining) if remaining.any() else np.arange(len(begins))
    at = int(candidates[sizes[candidates].argmax()])
    return int(begins[at]), int(ends[at])


@frozen
class End:
    """An interval in a row of a lane: a match of a search, or one end of a link."""

    lane: int
    row: int
    index: int


@frozen
class Matches:
    """All intervals that match by their own name or that of their op, in order of their start."""

    starts: Ints
    ends: Ints
    numbers: Ints
    """Lane, row and index of each match, M x 3, as in `End`."""
    busy: dict[tuple[int, int], Busy]
    """Matches of each row, and of each lane's summary as row -1."""

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def median_ns(self) -> float:
        """Median length in nanoseconds; NaN without matches."""
        return float(np.median(self.ends - self.starts))

    def end(self, number: int) -> End:
        return End(*self.numbers[number].tolist())


def search(lanes: Lanes, pattern: re.Pattern[str]) -> Matches:
    found: list[tuple[Ints, Ints, Ints]] = []
    busy: dict[tuple[int, int], Busy] = {}
    for at, lane in enumerate(lanes.lanes):
        matches = (
            pattern.search(name) or (op is not None and pattern.search(lanes.ops[op].name)) for name, op in lane.labels
        )
        wanted = np.array([bool(match) for match in matches], np.bool_)
        hits = [np.flatnonzero(wanted[row.label]) for row in lane.rows]
        of_lane = [
            (row.starts[hit], row.ends[hit], np.stack([np.full_like(hit, at), np.full_like(hit, number), hit], 1))
            for number, (row, hit) in enumerate(zip(lane.rows, hits, strict=True))
        ]
        busy |= {(at, number): Busy.of(*row[:2]) for number, row in enumerate(of_lane) if len(row[0])}
        if wanted.any():
            busy[at, -1] = Busy.of(*(join(row[side] for row in of_lane) for side in (0, 1)))
        found += of_lane
    starts, ends = (join(row[side] for row in found) for side in (0, 1))
    order = np.argsort(starts, kind="stable")
    numbers = np.concatenate([np.zeros((0, 3), np.int64), *(row[2] for row in found)])
    return Matches(starts[order], ends[order], numbers[order], busy)


def other_end(lanes: Lanes, end: End) -> End | None:
    """Return the first kernel of a launch, or the launch of a kernel, in one pass over the rows; None without one."""
    here = lanes.lanes[end.lane]
    correlation = here.rows[end.row].correlation
    if correlation is None or correlation[end.index] < 0:
        return None
    others = [
        (int(row.starts[index]), End(at, number, index))
        for at, lane in enumerate(lanes.lanes)
        if lane.on_device != here.on_device
        for number, row in enumerate(lane.rows)
        if row.correlation is not None
        for index in np.flatnonzero(row.correlation == correlation[end.index]).tolist()
    ]
    return min(others, key=itemgetter(0))[1] if others else None
