"""Arithmetic on many time intervals at once, in integer picoseconds: unions, self times and medians over groups, and
how much a set of intervals covers of many windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jaxprof.base.values import frozen
from jaxprof.trace.model import Flags, Ints, Lane

_MOST = 1 << 62
"""Limit for sums of times; beyond it their order is used."""


@frozen
class Spans:
    """Intervals as two columns of one length, in picoseconds."""

    starts: Ints
    ends: Ints


def join(columns: Iterable[Ints]) -> Ints:
    """Return these columns one after the other; empty without any."""
    return np.concatenate([np.zeros(0, np.int64), *columns])


def positions_in(wanted: Ints, ascending: Ints) -> tuple[Ints, Flags]:
    """Return the index of each wanted value in an ascending column, and whether the column has it. The index of an
    absent value means nothing."""
    if not len(ascending):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return at, ascending[at] == wanted


def outermost(lane: Lane) -> Lane:
    """Return the intervals of a lane that lie in no other one, in order of start."""
    ordered = lane.select(np.lexsort((-lane.ends, lane.starts)))
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered.ends[1:] > np.maximum.accumulate(ordered.ends)[:-1]
    return ordered.select(first)


def self_times(starts: Ints, durations: Ints) -> Ints:
    """Return the self time of each interval on one thread, where intervals nest or follow each other: how long it is
    the interval that began last.

    If an interval extends beyond the one in which it began, only the part within counts. Linear in the number of
    intervals, however deep they nest.
    """
    if not _nest_in_order(starts, durations):
        order = nesting_order(starts, durations)
        in_given_order = np.empty_like(durations)
        in_given_order[order] = self_times(starts[order], durations[order])
        return in_given_order
    own = durations.copy()
    end = starts + own
    holds = np.append(starts[1:] < end[:-1], False)[: len(own)]
    own[holds] = 0
    holders = np.flatnonzero(holds)
    # The spans of time in which one of these intervals, ordered by start, is the one that began last.
    found: list[tuple[int, int, int]] = []
    running: list[tuple[int, int]] = []
    now = 0
    last = int(end[holders].max()) if len(holders) else 0
    spans = [*zip(starts[holders].tolist(), end[holders].tolist(), strict=True), (last, last)]
    for index, (next_start, next_end) in enumerate(spans):
        while running and now < next_start:
            reached, latest = running[-1]
            if reached <= now:
                running.pop()
                continue
            stop = min(reached, next_start)
            found.append((latest, now, stop))
            now = stop
        running.append((next_end, index))
        now = next_start
    owners, since, until = np.array(found, np.int64).reshape(-1, 3).T
    innermost = Coverage(starts, starts + own)  # disjoint: those that hold others are empty here
    np.add.at(own, holders[owners], until - since - innermost.within(since, until))
    return own


def nesting_order(starts: Ints, durations: Ints) -> Ints:
    """Return the order by start, the longer first, so each interval comes before those inside it. Cheap for sorted
    intervals."""
    return np.arange(len(starts)) if _nest_in_order(starts, durations) else np.lexsort((-durations, starts))


def _nest_in_order(starts: Ints, durations: Ints) -> bool:
    step = np.diff(starts)
    return bool(((step > 0) | ((step == 0) & (durations[1:] <= durations[:-1]))).all())


def distinct(values: Ints) -> tuple[Ints, Ints]:
    """Return the distinct values in ascending order, and the index of each value among them, as `np.unique` does.

    Numbers close together, such as ids, are counted into a table instead of sorted.
    """
    if not len(values):
        return values, values
    new = np.append(0, np.flatnonzero(values[1:] != values[:-1]) + 1)
    if 4 * len(new) < len(values):  # ids that are equal for many events in a row, such as those of runs
        different, which = distinct(values[new])
        return different, np.repeat(which, np.diff(new, append=len(values)))
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values) + 65536:  # a table would take more memory and time than a sort
        different, which = np.unique(values, return_inverse=True)
        return different, which.astype(np.int64)
    table = np.zeros(high - low + 1, np.int64)
    table[values - low] = 1
    different = np.flatnonzero(table) + low
    return different, (np.cumsum(table) - 1)[values - low]


def by_group(groups: Ints, values: Ints, count: int) -> Ints:
    """Return the order by group, and by value within a group."""
    if count >= 1 << 16:
        return np.lexsort((values, groups))
    first = np.arange(len(values)) if (np.diff(values) >= 0).all() else np.argsort(values, kind="stable")
    # For 16-bit numbers the stable sort is a radix sort.
    return first[np.argsort(groups[first].astype(np.uint16), kind="stable")]


def union_by_group(groups: Ints, starts: Ints, durations: Ints, count: int) -> Ints:
    """Return for each of `count` groups how long at least one of its intervals was running."""
    total = np.zeros(count, np.int64)
    for rows in some_groups(groups, by_group(groups, starts, count)):
        group, begin = groups[rows], starts[rows]
        end = begin + durations[rows]
        first = np.flatnonzero(np.diff(group, prepend=-1))
        total[group[first]] = np.add.reduceat(np.maximum(0, end - latest_end_before(group, begin, end)), first)
    return total


def some_groups(groups: Ints, order: Ints) -> Iterator[Ints]:
    """Yield an order by group in pieces that hold whole groups, as many as there is room for in the cache."""
    ordered = groups[order]
    starts = np.unique(np.searchsorted(ordered, ordered[:: 1 << 16])).tolist()
    return (order[begin:end] for begin, end in pairwise([*starts, len(order)]))


def latest_end_before(groups: Ints, begin: Ints, end: Ints) -> Ints:
    """Return for each interval until when earlier ones of its group last; its own start if none lasts longer.

    Groups have ascending numbers, and starts ascend within a group.
    """
    before = begin.copy()
    if not len(groups):
        return before
    new = np.diff(groups, prepend=-1) != 0
    rank = np.cumsum(new) - 1
    base = begin[new][rank]
    span = int((end - base).max()) + 1
    # Groups are laid one after the other on one axis, so that one running maximum serves all of them.
    if span * (int(rank[-1]) + 1) < _MOST:
        shift = rank * span - base
        reached = np.maximum.accumulate(end + shift) - shift
    else:
        times = np.unique(end)
        shift = rank * len(times)
        reached = times[np.maximum.accumulate(np.searchsorted(times, end) + shift) - shift]
    before[1:] = np.where(new[1:], begin[1:], np.maximum(begin[1:], reached[:-1]))
    return before


def extents_by_group(groups: Ints, starts: Ints, ends: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the first start and the last end of each of `count` groups; an empty one ends before it starts."""
    first, last = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(first, groups, starts)
    np.maximum.at(last, groups, ends)
    return first, last


def medians_by_group(groups: Ints, values: Ints, count: int) -> tuple[NDArray[np.float64], Ints, Ints]:
    """Return median, least and greatest value of each group; NaN and 0 for an empty one."""
    value = values[np.argsort(groups.astype(np.uint16) if count <= 1 << 16 else groups, kind="stable")]
    numbers = np.bincount(groups, minlength=count)
    median = np.full(count, np.nan)
    least, greatest = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for group, own in enumerate(np.split(value, np.cumsum(numbers)[:-1])):
        if number := len(own):
            middle = (number - 1) // 2, number // 2
            own.partition((0, *middle, number - 1))  # a fifth of the time of a sort
            median[group] = (own[middle[0]] + own[middle[1]]) / 2
            least[group], greatest[group] = own[0], own[-1]
    return median, least, greatest


class Coverage(Spans):
    """Disjoint intervals in order; one search finds how much they cover up to any moment."""

    __slots__ = ()

    @staticmethod
    def of(starts: Ints, ends: Ints) -> Coverage:
        """Return the union of these intervals; empty ones are left out."""
        there = ends > starts
        begin, end = starts[there], ends[there]
        if not len(begin):
            return Coverage(begin, end)
        if (begin[1:] < begin[:-1]).any():
            order = np.argsort(begin, kind="stable")
            begin, end = begin[order], end[order]
        end = np.maximum.accumulate(end)
        new = np.concatenate([[True], begin[1:] > end[:-1]])
        last = np.concatenate([np.flatnonzero(new)[1:] - 1, [len(begin) - 1]])
        return Coverage(begin[new], end[last])

    @staticmethod
    def over(parts: Iterable[Spans | Lane]) -> Coverage:
        """Return the union of the intervals of all parts."""
        each = list(parts)
        return Coverage.of(join(part.starts for part in each), join(part.ends for part in each))

    def __or__(self, other: Coverage) -> Coverage:
        if not (len(self.starts) and len(other.starts)):
            return other if len(other.starts) else self
        return Coverage.of(np.concatenate([self.starts, other.starts]), np.concatenate([self.ends, other.ends]))

    def __and__(self, other: Coverage) -> Coverage:
        """Return the intersection of both; a common part begins and ends where one of them does within the other."""
        pairs = ((self, other), (other, self))
        starts = join(one.starts[by.holding(one.starts, one.starts + 1)] for one, by in pairs)
        ends = join(one.ends[by.holding(one.ends - 1, one.ends)] for one, by in pairs)
        return Coverage(np.unique(starts), np.unique(ends))

    def __sub__(self, other: Coverage) -> Coverage:
        """Return this coverage without the other."""
        if not len(self.starts):
            return self
        begin, end = np.array([self.starts[0]]), np.array([self.ends[-1]])
        return self & Coverage.of(np.concatenate([begin, other.ends]), np.concatenate([other.starts, end]))

    @property
    def total(self) -> int:
        return int((self.ends - self.starts).sum())

    def within(self, starts: Ints, ends: Ints) -> Ints:
        """Return how much of each window from `starts` to `ends` is covered."""
        before, after = np.split(self._until(np.concatenate([starts, ends])), 2)
        return after - before

    def holding(self, starts: Ints, ends: Ints) -> Flags:
        """Return which of these windows are covered completely."""
        if not len(self.starts):
            return np.zeros(len(starts), np.bool_)
        index = np.maximum(np.searchsorted(self.starts, starts, side="right") - 1, 0)
        held: Flags = (self.starts[index] <= starts) & (ends <= self.ends[index])
        return held

    def _until(self, moments: Ints) -> Ints:
        if not len(self.starts):
            return np.zeros(len(moments), np.int64)
        whole = np.concatenate([[0], np.cumsum(self.ends - self.starts)])
        index = np.searchsorted(self.starts, moments, side="right")
        previous = np.maximum(index - 1, 0)
        inside = np.clip(moments - self.starts[previous], 0, self.ends[previous] - self.starts[previous])
        covered: Ints = np.where(index > 0, whole[previous] + inside, 0)
        return covered


def holds_others(starts: Ints, durations: Ints) -> Flags:
    """Return which intervals of one thread hold another one (a while loop holds the ops of its body)."""
    order = nesting_order(starts, durations)
    begin, length = starts[order], durations[order]
    holding = np.zeros(len(starts), np.bool_)
    if len(order) > 1:
        holding[order[:-1]] = (begin[1:] < begin[:-1] + length[:-1]) & (length[1:] > 0)
    return holding
