"""The lanes of a timeline as sorted arrays, so that what is drawn costs what is shown: their rows, the kinds of
intervals, search, jumps, and the totals of a range of time.

A lane is a device stream or a group of threads. It has a row for each level of nesting of each thread; the intervals of
a row do not overlap. A lane of several rows also has a summary of its outermost intervals. The kind of an interval,
from the HLO of its kernel or else guessed from its name, decides its colour, which is only a hint. A search tries its
expression on the labels, which are few, not on the intervals. An idle stretch of a row is between two of its intervals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jaxprof.analysis.timeline import Timeline, TimelineCounter, TimelineLane, TimelineOp
from jaxprof.errors import FileRefusedError

KINDS: Final = (
    "matmul", "fusion", "reduction", "move", "collective", "kernel", "program", "dispatch", "wait", "host", "counter",
)  # fmt: skip
"""Every kind, in the order of the legend."""
COUNTER: Final = "counter"
"""The kind of a lane that shows a quantity over time."""
DEVICE_LANES: Final = frozenset({"modules", "steps", "stream", "ops", "thread", "async"})
COUNTED_LANES: Final = frozenset({"stream", "ops", "thread"})
"""The kinds of lanes that hold each kernel once: executions of programs and steps hold them again."""
WORDS: Final = {
    "move": "copies",
    "program": "programs",
    "wait": "waiting",
    "matmul": "matmul, conv",
    "counter": "counters",
}
"""Words of the legend for kinds whose own name is not used."""

_DEVICE: Final = (
    ("collective", r"all[-_ ]?(reduce|gather|to[-_ ]?all)|reduce[-_]?scatter|collective|[nr]ccl|permute|"
     r"\bp(sum|max|min)\b|\bsend|\brecv"),
    ("matmul", r"gemm|matmul|\bdot|_dot|conv(olution|[-_.\d]|$)|attention|cublas|cutlass|cudnn|xmma|fft|cholesky"),
    ("reduction", r"reduc|sort|top-?k|scatter|window|cumsum|softmax"),
    ("fusion", r"fusion|elementwise|wrapped_"),
    ("move", r"copy|transpose|transfer|mem(cpy|set)|broadcast|slice|concat|\bpad|infeed|outfeed|gather|update|bitcast"),
)  # fmt: skip
_HOST: Final = (
    ("wait", r"wait|block_?until|await|sleep|idle|synchroni"),
    ("move", r"transfer|memcpy|copy|BufferFromHost|ToLiteral|device_put"),
    ("dispatch", r"execut|launch|dispatch|enqueue|pjit|PjRt|graph"),
)


def _compiled(table: tuple[tuple[str, str], ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in table)


_DEVICE_PATTERNS = _compiled(_DEVICE)
_HOST_PATTERNS = _compiled(_HOST)


def kind_of(lane_kind: str, name: str, op: str | None = None, kernels: Mapping[str, str] | None = None) -> int:
    """Index in `KINDS` of an interval called `name` that belongs to `op`; `kernels` gives the HLO's kind of each op."""
    if lane_kind in ("modules", "steps"):
        return KINDS.index("program")
    if lane_kind not in DEVICE_LANES:
        return _first(_HOST_PATTERNS, name, "host")
    in_hlo = kernels.get(op) if kernels and op is not None else None
    return _first(_DEVICE_PATTERNS, in_hlo or op or name, "kernel")


def _first(patterns: tuple[tuple[str, re.Pattern[str]], ...], name: str, otherwise: str) -> int:
    return KINDS.index(next((kind for kind, pattern in patterns if pattern.search(name)), otherwise))


Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DEEPEST = 16
"""Levels of nesting that get a row; deeper intervals are counted, not drawn."""
LONGEST_NS = 1 << 56
"""Two years: a greater number is not a time."""
_NUMBER = re.compile(r"[-/#_ ]*-?\d+$")


@dataclass(frozen=True, slots=True)
class Busy:
    """The total length of some intervals up to any time, whether or not they overlap."""

    starts: Ints
    ends: Ints
    """Sorted independently: the n-th end need not belong to the n-th start."""
    _before_start: Ints
    _before_end: Ints

    @classmethod
    def of(cls, starts: Ints, ends: Ints) -> Busy:
        """From intervals in any order."""
        starts, ends = np.sort(starts), np.sort(ends)
        return cls(starts, ends, _prefix(starts), _prefix(ends))

    def until(self, times: Ints) -> Ints:
        """Nanoseconds up to each of `times`; overlapping intervals all count."""
        begun = np.searchsorted(self.starts, times, "right")
        over = np.searchsorted(self.ends, times, "right")
        result: Ints = times * (begun - over) - self._before_start[begun] + self._before_end[over]
        return result

    def between(self, begin: int, end: int) -> int:
        """Nanoseconds in a range of time."""
        until = self.until(np.array([begin, end], np.int64))
        return int(until[1] - until[0])


def _prefix(values: Ints) -> Ints:
    sums = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=sums[1:])
    return sums


@dataclass(frozen=True, slots=True)
class LaneRow:
    """Intervals in order of their start. Nanoseconds since the start of the timeline."""

    name: str
    """The thread or stream."""
    level: int
    """The depth of nesting, 0 for the outermost."""
    starts: Ints
    ends: Ints
    label: Ints
    """Index in the lane's labels."""
    busy: Mapping[int, Busy]
    """The intervals of each kind, by the index of the kind."""
    own: Floats
    """The self time of each interval: without that of the intervals one level deeper."""
    capacity: int = 1
    """How many intervals may run at once: above 1 in a summary of several threads, whose intervals overlap."""
    correlation: Ints | None = None
    """The id that a launch shares with its kernel; -1 for other intervals."""
    values: Floats | None = None
    """For a counter, its value in each interval, which ends when the value changes."""

    def at(self, time: int) -> int | None:
        """Index of the interval at a time, the last to begin if there are several; None in a gap."""
        last = int(np.searchsorted(self.starts, time, "right"))
        first = last - 1 if self.capacity == 1 else max(0, last - 4096)
        for index in range(last - 1, max(-1, first - 1), -1):
            if self.ends[index] > time:
                return index
        return None

    def inside(self, begin: int, end: int) -> slice:
        """The intervals of a row of one thread that are at least partly in a range: they do not overlap, so their ends
        ascend as well."""
        first = int(np.searchsorted(self.ends, begin, "right"))
        return slice(first, max(first, int(np.searchsorted(self.starts, end, "left"))))

    def near(self, time: int, step: int) -> int | None:
        """Index of the first interval that begins after `time` (`step` > 0), or of the last that begins before it."""
        if step > 0:
            index = int(np.searchsorted(self.starts, time, "right"))
            return index if index < len(self.starts) else None
        index = int(np.searchsorted(self.starts, time, "left")) - 1
        return index if index >= 0 else None


@dataclass(frozen=True, slots=True)
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
    """The row that is drawn while the lane is closed; for a lane of one row, that row."""
    active: Busy
    """When anything ran, at any depth; of several threads each counts. Where intervals are left out, how much of each
    small part of the profile."""
    hidden: int = 0
    """Intervals that are nested too deep to be drawn."""
    unit: str = ""
    """The unit of a counter; empty for other lanes."""
    left_out: int | None = 0
    """Intervals that the timeline lacks, which `active` has; None where it is not known whether it lacks some."""

    @property
    def on_device(self) -> bool:
        """Whether kernels run in this lane, so that gaps are meaningful."""
        return self.kind in DEVICE_LANES

    @property
    def opens(self) -> bool:
        """Whether the lane has more rows than its summary."""
        return len(self.rows) > 1


@dataclass(frozen=True, slots=True)
class Lanes:
    """A whole timeline, host lanes first."""

    lanes: tuple[LaneGroup, ...]
    ops: Sequence[TimelineOp]
    begin: int
    end: int
    left_out: int
    kinds: tuple[int, ...] = field(default=())
    """The kinds that occur, in the order of the legend."""

    @property
    def intervals(self) -> int:
        """The number of intervals in all rows."""
        return sum(len(row.starts) for lane in self.lanes for row in lane.rows)


def lanes_of(
    timeline: Timeline, kernels: Mapping[str, str] | None = None, readings: Sequence[TimelineCounter] = ()
) -> Lanes:
    """The arrays of a timeline; `kernels` gives the HLO's kind of a kernel by its name, `readings` are more counters.

    Raises FileRefusedError if a time or a value of the timeline is not a usable number.
    """
    groups: dict[tuple[str, str, str], list[TimelineLane]] = {}
    for lane in timeline.lanes:
        if len(lane):
            groups.setdefault(_group(lane), []).append(lane)
    try:
        lanes = [_lane(title, members, timeline.ops, kernels) for (_, _, title), members in groups.items()]
        end = max((int(row.ends.max()) for lane in lanes for row in lane.rows), default=0)
        lanes += [_counter(counter, end) for counter in (*timeline.counters, *readings) if counter.times]
    except (TypeError, ValueError, OverflowError) as error:
        raise FileRefusedError(f"the timeline of this session is damaged: {error}") from error
    lanes.sort(key=_order)
    ends = [int(row.ends.max()) for lane in lanes for row in lane.rows]
    starts = [int(row.starts[0]) for lane in lanes for row in lane.rows]
    present = sorted({kind for lane in lanes for row in lane.rows for kind in row.busy})
    begin = min(starts, default=0)
    return Lanes(tuple(lanes), timeline.ops, begin, max(ends, default=begin + 1), timeline.left_out, tuple(present))


def _order(lane: LaneGroup) -> tuple[bool, str, float]:
    """The hosts first, the busiest thread first; then the devices, each with its counters before its lanes."""
    if lane.kind == COUNTER:
        return not lane.device.endswith("host"), lane.device, -1.0 if not lane.device.endswith("host") else 0.0
    return (
        lane.on_device,
        lane.device,
        0.0 if lane.on_device else -float((lane.summary.ends - lane.summary.starts).sum()),
    )


def _counter(counter: TimelineCounter, end: int) -> LaneGroup:
    """A lane whose intervals reach from one value to the next, the last to the end of the recording."""
    starts = _times(counter.times)
    order = np.argsort(starts, kind="stable")
    starts, values = starts[order], np.asarray(counter.values, np.float64)[order]
    if not np.isfinite(values).all():
        raise ValueError("a counter has a value that is not a finite number")
    ends = np.maximum(np.append(starts[1:], max(end, int(starts[-1]) + 1)), starts)
    kind = KINDS.index(COUNTER)
    label = np.zeros(len(starts), np.int64)
    held = Busy.of(starts, ends)
    row = LaneRow(counter.name, 0, starts, ends, label, {kind: held}, (ends - starts).astype(np.float64), values=values)
    return LaneGroup(
        counter.device, COUNTER, counter.name, [(counter.name, None)], [kind], (row,), row, held, unit=counter.unit
    )


def _group(lane: TimelineLane) -> tuple[str, str, str]:
    """The key that groups the threads of one pool; each stream or line of a device has a key of its own."""
    name = _NUMBER.sub("", lane.name) or lane.name if lane.kind in ("thread", "host") else lane.name
    return lane.device, lane.kind, name


def _lane(
    title: str, members: list[TimelineLane], ops: Sequence[TimelineOp], kernels: Mapping[str, str] | None
) -> LaneGroup:
    first = members[0]
    labels: list[tuple[str, int | None]] = []
    rows: list[LaneRow] = []
    kinds = np.zeros(0, np.int64)
    active: list[tuple[Ints, Ints]] = []
    hidden = 0
    lacking = [member.left_out for member in members]
    for member in members:
        offset = len(labels)
        labels += member.labels
        more = [kind_of(first.kind, name, None if op is None else ops[op].name, kernels) for name, op in member.labels]
        kinds = np.concatenate([kinds, np.array(more, np.int64)])
        starts = _times(member.starts)
        ends = starts + np.maximum(_times(member.durations), 1)
        label = np.asarray(member.label_of, np.int64) + offset
        order = np.lexsort((-ends, starts))
        joined = None if member.correlations is None else np.asarray(member.correlations, np.int64)[order]
        active.append(united(starts[order], ends[order]) if member.active is None else _parts(*member.active))
        levels, deeper = _levels(member.name, starts[order], ends[order], label[order], kinds, joined)
        rows += levels
        hidden += deeper
    return LaneGroup(
        first.device,
        first.kind,
        title,
        labels,
        kinds.tolist(),
        tuple(rows),
        _summary(title, rows, kinds),
        Busy.of(*(np.concatenate(column) for column in zip(*active, strict=True))),
        hidden,
        left_out=None if None in lacking else sum(number or 0 for number in lacking),
    )


def _parts(begins: list[int], busy: list[int]) -> tuple[Ints, Ints]:
    starts, took = _times(begins), _times(busy)
    return starts[took > 0], (starts + took)[took > 0]


def _times(values: list[int]) -> Ints:
    times = np.asarray(values, np.int64)
    if times.ndim != 1 or np.abs(times).max(initial=0) > LONGEST_NS:
        raise ValueError("not a list of times")
    return times


def united(starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Intervals in order of their start, with those that touch or overlap as one."""
    reach = np.maximum.accumulate(ends)
    first = np.append(0, np.flatnonzero(starts[1:] > reach[:-1]) + 1)
    return starts[first], reach[np.append(first[1:] - 1, len(starts) - 1)]


def covered(starts: Ints, ends: Ints, begins: Ints, stops: Ints) -> Ints:
    """How much of each range (`begins`, `stops`) is in the intervals, which do not overlap, in nanoseconds."""
    busy = Busy(starts, ends, _prefix(starts), _prefix(ends))
    return busy.until(stops) - busy.until(begins)


def _levels(
    name: str, starts: Ints, ends: Ints, label: Ints, kinds: Ints, correlation: Ints | None
) -> tuple[list[LaneRow], int]:
    """A row for each level of nesting, and the number of intervals deeper than `DEEPEST`.

    An interval that begins before an earlier one has ended goes a level deeper.
    """
    levels: list[tuple[Ints, Ints, Ints, Ints | None]] = []
    while len(starts) and len(levels) < DEEPEST:
        reach = np.maximum.accumulate(ends)
        top = np.ones(len(starts), np.bool_)
        top[1:] = starts[1:] >= reach[:-1]
        levels.append((starts[top], ends[top], label[top], None if correlation is None else correlation[top]))
        starts, ends, label = starts[~top], ends[~top], label[~top]
        correlation = None if correlation is None else correlation[~top]
    rows = []
    for level, (begun, over, labels, joined) in enumerate(levels):
        own = over - begun
        if level + 1 < len(levels):
            own = own - covered(*levels[level + 1][:2], begun, over)
        rows.append(_row(name, level, begun, over, labels, kinds, own, correlation=joined))
    return rows, len(starts)


def _row(
    name: str,
    level: int,
    starts: Ints,
    ends: Ints,
    label: Ints,
    kinds: Ints,
    own: Ints,
    capacity: int = 1,
    correlation: Ints | None = None,
) -> LaneRow:
    of_kind = kinds[label]
    busy = {int(kind): Busy.of(starts[of_kind == kind], ends[of_kind == kind]) for kind in np.unique(of_kind)}
    return LaneRow(name, level, starts, ends, label, busy, own.astype(np.float64), capacity, correlation)


def _summary(title: str, rows: list[LaneRow], kinds: Ints) -> LaneRow:
    outermost = [row for row in rows if row.level == 0]
    if len(outermost) == 1:
        return outermost[0]
    starts = np.concatenate([row.starts for row in outermost])
    order = np.argsort(starts, kind="stable")
    ends, label, own = (
        np.concatenate([getattr(row, name) for row in outermost])[order] for name in ("ends", "label", "own")
    )
    return _row(title, 0, starts[order], ends, label, kinds, own, len(outermost))


Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Matches:
    """All intervals that match by their own name or that of their op, in order of their start."""

    starts: Ints
    ends: Ints
    lane: Ints
    row: Ints
    index: Ints
    busy: dict[tuple[int, int], Busy]
    """The matches of each row, and of each lane's summary as row -1."""

    def __len__(self) -> int:
        return len(self.starts)

    def following(self, time: int, step: int) -> int | None:
        """Index of the match after or before `time`, wrapping at the ends; None without matches."""
        if not len(self):
            return None
        if step > 0:
            return int(np.searchsorted(self.starts, time, "right")) % len(self)
        return (int(np.searchsorted(self.starts, time, "left")) - 1) % len(self)

    @property
    def median_ns(self) -> float:
        """The length of the middle one; of two in the middle, their mean. Raises ValueError without matches."""
        if not len(self):
            raise ValueError("no matches have no median")
        return float(np.median(self.ends - self.starts))

    def place_of(self, start: int, lane: int) -> int:
        """Index of the match that begins at `start`, the one in `lane` if several do."""
        first, last = (int(np.searchsorted(self.starts, start, side)) for side in ("left", "right"))
        return next((at for at in range(first, last) if self.lane[at] == lane), first)


def search(lanes: Lanes, pattern: re.Pattern[str]) -> Matches:
    """The matches of an expression in all lanes."""
    return _found(
        lanes, lambda lane: np.array([_matches(lanes, name, op, pattern) for name, op in lane.labels], np.bool_)
    )


def same(lanes: Lanes, of: LaneGroup, label: int) -> Matches:
    """The intervals of a device, or of a host, that are the same as those with a label of one of its lanes: of the
    same op, or, where they have none, of the same name."""
    name, op = of.labels[label]

    def wanted(lane: LaneGroup) -> Bools:
        if lane.device != of.device or (lane.kind in COUNTED_LANES) != (of.kind in COUNTED_LANES):
            return np.zeros(len(lane.labels), np.bool_)
        return np.array([(op is None or op == other) and (op is not None or name == named)
                         for named, other in lane.labels], np.bool_)  # fmt: skip

    return _found(lanes, wanted)


def _found(lanes: Lanes, wanted_of: Callable[[LaneGroup], Bools]) -> Matches:
    """The intervals with the wanted labels of each lane."""
    starts, ends, places, busy = [], [], [], {}
    for at, lane in enumerate(lanes.lanes):
        wanted = wanted_of(lane)
        if not wanted.any():
            continue
        for number, row in enumerate(lane.rows):
            hits = np.flatnonzero(wanted[row.label])
            if len(hits):
                starts.append(row.starts[hits])
                ends.append(row.ends[hits])
                places.append(np.stack([np.full(len(hits), at), np.full(len(hits), number), hits]))
                busy[at, number] = Busy.of(row.starts[hits], row.ends[hits])
        _summarise(lane, at, wanted, busy)
    if not starts:
        nothing = np.zeros(0, np.int64)
        return Matches(nothing, nothing, nothing, nothing, nothing, {})
    begun, over, place = np.concatenate(starts), np.concatenate(ends), np.concatenate(places, axis=1)
    order = np.argsort(begun, kind="stable")
    return Matches(begun[order], over[order], place[0][order], place[1][order], place[2][order], busy)


def _matches(lanes: Lanes, name: str, op: int | None, pattern: re.Pattern[str]) -> bool:
    return bool(pattern.search(name) or (op is not None and pattern.search(lanes.ops[op].name)))


def _summarise(lane: LaneGroup, at: int, wanted: np.ndarray, busy: dict[tuple[int, int], Busy]) -> None:
    """Adds the matches of a closed lane, which come from rows of any depth."""
    rows: list[LaneRow] = list(lane.rows)
    starts = np.concatenate([row.starts[wanted[row.label]] for row in rows])
    ends = np.concatenate([row.ends[wanted[row.label]] for row in rows])
    busy[at, -1] = Busy.of(starts, ends)


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link: an interval of a row of a lane."""

    lane: int
    row: int
    index: int


@dataclass(frozen=True, slots=True)
class Links:
    """The ends of all links, in order of their correlation id; all arrays have the same length."""

    correlation: Ints
    lane: Ints
    row: Ints
    index: Ints
    on_device: Ints

    @classmethod
    def of(cls, lanes: Lanes) -> Links:
        """The links of all rows."""
        parts = []
        for at, lane in enumerate(lanes.lanes):
            for number, row in enumerate(lane.rows):
                if row.correlation is None:
                    continue
                there = np.flatnonzero(row.correlation >= 0)
                count = len(there)
                parts.append(
                    (row.correlation[there], np.full(count, at), np.full(count, number), there,
                     np.full(count, int(lane.on_device)))
                )  # fmt: skip
        nothing = np.zeros(0, np.int64)
        columns = [np.concatenate([nothing, *column]) for column in zip(*parts, strict=True)] or [nothing] * 5
        order = np.argsort(columns[0], kind="stable")
        return cls(*(column[order] for column in columns))

    def other_end(self, lanes: Lanes, end: End) -> End | None:
        """The first kernel of a launch, or the launch of a kernel; None if there is none."""
        row = lanes.lanes[end.lane].rows[end.row]
        if row.correlation is None or row.correlation[end.index] < 0:
            return None
        wanted = row.correlation[end.index]
        low, high = (
            np.searchsorted(self.correlation, wanted, "left"),
            np.searchsorted(self.correlation, wanted, "right"),
        )
        here = int(lanes.lanes[end.lane].on_device)
        others = [n for n in range(int(low), int(high)) if self.on_device[n] != here]
        if not others:
            return None
        starts = [int(self._starts(lanes, n)) for n in others]
        first = others[int(np.argmin(starts))]
        return End(int(self.lane[first]), int(self.row[first]), int(self.index[first]))

    def _starts(self, lanes: Lanes, number: int) -> int:
        return int(lanes.lanes[int(self.lane[number])].rows[int(self.row[number])].starts[int(self.index[number])])


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of a row: an interval, or a time in which nothing ran."""

    begin: int
    end: int
    rank: int = 0
    """Its place among the pieces of its kind by length, from 1 for the longest; 0 where they were not compared."""
    of: int = 0
    """How many pieces of its kind the row has; 0 where they were not counted."""


def idle_stretches(row: LaneRow) -> tuple[Ints, Ints]:
    """Begins and ends of the times between the first and the last interval in which nothing ran."""
    starts, ends = united(row.starts, row.ends)
    return ends[:-1], starts[1:]


def idle_around(row: LaneRow, time: int) -> tuple[int | None, int | None]:
    """Where the idle stretch at a time begins and ends; None before the first interval, or after the last one."""
    after = int(np.searchsorted(row.starts, time, "right"))
    begin = int(row.ends[:after].max()) if after else None
    return begin, int(row.starts[after]) if after < len(row.starts) else None


def next_idle(row: LaneRow, time: int, step: int, least: int) -> Stretch | None:
    """The first idle stretch that begins after `time` (`step` > 0), or the last that begins before it, and that lasts
    at least `least` nanoseconds; None without one."""
    begins, ends = idle_stretches(row)
    long = np.flatnonzero(ends - begins >= least)
    at = int(np.searchsorted(begins[long], time, "right" if step > 0 else "left")) - (step < 0)
    if not 0 <= at < len(long):
        return None
    return Stretch(int(begins[long[at]]), int(ends[long[at]]))


def longest_idle(row: LaneRow, before: Stretch | None = None) -> Stretch | None:
    """The longest idle stretch; with `before`, the longest of those that come after it in that order."""
    return _longest(*idle_stretches(row), before)


def longest_interval(row: LaneRow, before: Stretch | None = None) -> Stretch | None:
    """The longest interval; with `before`, the longest of those that come after it. Of a counter, its highest
    value."""
    return _longest(row.starts, row.ends, before, row.values)


def _longest(begins: Ints, ends: Ints, before: Stretch | None, values: object = None) -> Stretch | None:
    """The piece with the greatest length, or value, after `before`, the earlier of two that are equal; from the
    shortest back to the longest. One pass for each press of a key: sorting a million takes twenty times as long."""
    if not len(begins):
        return None
    sizes = ends - begins if values is None else np.asarray(values)
    left = np.ones(len(begins), np.bool_)
    if before is not None and before.rank < len(begins):
        own = sizes[np.flatnonzero((begins == before.begin) & (ends == before.end))[0]]
        left = (sizes < own) | ((sizes == own) & (begins > before.begin))
    which = np.flatnonzero(left)
    at = int(which[sizes[which].argmax()])
    return Stretch(int(begins[at]), int(ends[at]), len(begins) - len(which) + 1, len(begins))


@dataclass(frozen=True, slots=True)
class NameTotal:
    """The intervals of one name in a range."""

    name: str
    kind: int
    """Index in `KINDS`."""
    count: int
    self_ns: int
    """Time within the range, without that of intervals nested inside."""


@dataclass(frozen=True, slots=True)
class LaneTotals:
    """The totals of a lane in a range."""

    lane: int
    """Index in `Lanes.lanes`."""
    span_ns: int
    busy_ns: int
    """Time in which anything ran; for several threads, their sum."""
    threads: int
    count: int
    """Intervals that are at least partly in the range."""
    names: tuple[NameTotal, ...]
    """The longest first."""
    left_out: int | None = 0
    """As `LaneGroup.left_out`, of the whole timeline: `count` and `names` are without them."""

    @property
    def busy_share(self) -> float | None:
        """Busy share of the range, 0..1; for several threads, their mean. None where intervals may lack."""
        return None if self.left_out is None else self.busy_ns / max(1, self.span_ns * self.threads)

    @property
    def idle_ns(self) -> int | None:
        """Time in which nothing ran; for several threads, their sum. None where intervals may lack."""
        return None if self.left_out is None else self.span_ns * self.threads - self.busy_ns


@dataclass(frozen=True, slots=True)
class DeviceTotals:
    """A device in a range, whatever the number of its streams or threads."""

    device: str
    span_ns: int
    busy_ns: int | None
    """Time in which any of them ran something; None where intervals are left out."""

    @property
    def busy_share(self) -> float | None:
        """Busy share of the range, 0..1."""
        return None if self.busy_ns is None else self.busy_ns / max(1, self.span_ns)

    @property
    def idle_ns(self) -> int | None:
        """Time in which none of them ran anything."""
        return None if self.busy_ns is None else self.span_ns - self.busy_ns


@dataclass(frozen=True, slots=True)
class RangeTotals:
    """The totals of all lanes in a range."""

    begin: int
    end: int
    lanes: tuple[LaneTotals, ...]
    """In the order of the timeline, without counters."""

    @property
    def span_ns(self) -> int:
        """Length of the range."""
        return self.end - self.begin

    def of(self, lane: int) -> LaneTotals | None:
        """The totals of a lane; None for a counter."""
        return next((found for found in self.lanes if found.lane == lane), None)

    def kernels(self, lanes: Lanes, device: str) -> tuple[NameTotal, ...]:
        """What ran on a device, over all of its lanes that hold each kernel once, the longest first."""
        there = [found for found in self.lanes if lanes.lanes[found.lane].device == device]
        return _merged(
            total for found in there if lanes.lanes[found.lane].kind in COUNTED_LANES for total in found.names
        )


def range_totals(lanes: Lanes, begin: int, end: int) -> RangeTotals:
    """The totals from `begin` to `end` (nanoseconds) of every lane that is not a counter."""
    return RangeTotals(
        begin,
        end,
        tuple(totals(at, lane, begin, end) for at, lane in enumerate(lanes.lanes) if lane.summary.values is None),
    )


def device_totals(lanes: Lanes, begin: int, end: int) -> tuple[DeviceTotals, ...]:
    """The totals of each device from `begin` to `end`, over all of its lanes that hold each kernel once."""
    found = []
    for device in dict.fromkeys(lane.device for lane in lanes.lanes if lane.kind in COUNTED_LANES):
        own = [lane for lane in lanes.lanes if lane.device == device and lane.kind in COUNTED_LANES]
        rows = [row for lane in own for row in lane.rows if row.level == 0]
        parts = [(row.starts[part], row.ends[part]) for row in rows for part in [row.inside(begin, end)]]
        starts, ends = (np.concatenate(column) for column in zip(*parts, strict=True))
        busy = 0
        if len(starts):
            order = np.argsort(starts, kind="stable")
            starts, ends = united(starts[order], ends[order])
            busy = int((np.minimum(ends, end) - np.maximum(starts, begin)).sum())
        whole = all(lane.left_out == 0 for lane in own)
        found.append(DeviceTotals(device, end - begin, busy if whole else None))
    return tuple(found)


def totals(at: int, lane: LaneGroup, begin: int, end: int) -> LaneTotals:
    """The totals of lane number `at` in a range."""
    took, counts = np.zeros(len(lane.labels)), np.zeros(len(lane.labels), np.int64)
    for number, row in enumerate(lane.rows):
        part = row.inside(begin, end)
        if part.start == part.stop:
            continue
        label = row.label[part]
        counts += np.bincount(label, minlength=len(counts))
        took += np.bincount(label, weights=row.own[part], minlength=len(took))
        for index in {part.start, part.stop - 1}:
            took[row.label[index]] += _own_within(lane.rows, number, index, begin, end) - row.own[index]
    names = _merged(
        NameTotal(lane.labels[label][0], lane.kind_of_label[label], int(counts[label]), round(float(took[label])))
        for label in np.flatnonzero(counts).tolist()
    )
    threads = sum(row.level == 0 for row in lane.rows)
    busy = lane.active.between(begin, end)
    return LaneTotals(at, end - begin, busy, threads, int(counts.sum()), names, lane.left_out)


def _own_within(rows: Sequence[LaneRow], number: int, index: int, begin: int, end: int) -> float:
    """The self time of one interval within a range, which may begin or end inside of it."""
    row = rows[number]
    start, stop = max(int(row.starts[index]), begin), min(int(row.ends[index]), end)
    below = rows[number + 1] if number + 1 < len(rows) and rows[number + 1].level == row.level + 1 else None
    if below is None:
        return stop - start
    part = below.inside(start, stop)
    edges = np.array([[start], [stop]], np.int64)
    return stop - start - int(covered(below.starts[part], below.ends[part], *edges)[0])


def _merged(totals: Iterable[NameTotal]) -> tuple[NameTotal, ...]:
    """One for each name, the longest first."""
    by_name: dict[str, NameTotal] = {}
    for total in totals:
        known = by_name.get(total.name)
        if known is not None:
            total = NameTotal(total.name, known.kind, known.count + total.count, known.self_ns + total.self_ns)
        by_name[total.name] = total
    return tuple(sorted(by_name.values(), key=lambda total: (-total.self_ns, total.name)))
