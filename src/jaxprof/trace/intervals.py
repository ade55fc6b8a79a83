"""Arithmetic of time intervals in bulk: unions, self times, medians, each over groups. Integers of picoseconds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
_MOST = 1 << 62


def self_times(starts: Ints, durations: Ints) -> Ints:
    """Of intervals on one thread, which nest (or follow each other): each one's time without those inside it.

    Of an interval that reaches out of the one that it began in, the part within it counts. Never below 0.
    """
    order = nesting_order(starts, durations)
    begin, length = starts[order], durations[order]
    end = begin + length
    own = length.copy()
    containers = np.flatnonzero(begin[1:] < end[:-1])
    last = np.searchsorted(begin, end, side="left")
    for index in containers[::-1].tolist():  # the innermost first: what lies inside has its own time already
        within = slice(index + 1, int(last[index]))
        inside = int(own[within].sum()) - max(0, int(end[within].max()) - int(end[index]))
        own[index] = max(0, int(length[index]) - inside)
    found = np.empty_like(own)
    found[order] = own
    return found


def nesting_order(starts: Ints, durations: Ints) -> Ints:
    """By start, the longer first: each interval comes before those inside it. Cheap where that is so already."""
    step = np.diff(starts)
    if ((step > 0) | ((step == 0) & (durations[1:] <= durations[:-1]))).all():
        return np.arange(len(starts))
    return np.lexsort((-durations, starts))


def distinct(values: Ints) -> tuple[Ints, Ints]:
    """The different values in ascending order, and the index of each value among them: as `np.unique`.

    Numbers that lie close together, as ids do, are counted into a table instead of sorted.
    """
    if not len(values):
        return values, values
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values) + 65536:
        found, which = np.unique(values, return_inverse=True)
        return found, which.astype(np.int64)
    table = np.zeros(high - low + 1, np.int64)
    table[values - low] = 1
    found = np.flatnonzero(table) + low
    return found, (np.cumsum(table) - 1)[values - low]


def _by_group(groups: Ints, values: Ints, count: int) -> Ints:
    """The order by group, within a group by value."""
    if count >= 1 << 16:
        return np.lexsort((values, groups))
    first = np.arange(len(values)) if (np.diff(values) >= 0).all() else np.argsort(values, kind="stable")
    # Of 16-bit numbers the stable sort is a radix sort.
    return first[np.argsort(groups[first].astype(np.uint16), kind="stable")]


def union_by_group(groups: Ints, starts: Ints, durations: Ints, count: int) -> Ints:
    """For each of `count` groups, how long at least one of its intervals was going on."""
    total = np.zeros(count, np.int64)
    if not len(groups):
        return total
    order = _by_group(groups, starts, count)
    group, begin = groups[order], starts[order]
    end = begin + durations[order]
    origin = begin.min()
    span = int(end.max() - origin) + 1
    if span * (int(count) + 1) >= _MOST:
        return _union_one_by_one(group, begin, end, count)
    # Groups are laid one behind the other on one axis, so that one running maximum serves all of them.
    shift = _ranks(group) * span - origin
    reached = np.maximum.accumulate(end + shift)
    before = np.empty_like(reached)
    before[0], before[1:] = begin[0] + shift[0], reached[:-1]
    new = np.maximum(0, (end + shift) - np.maximum(begin + shift, before))
    np.add.at(total, group, new)
    return total


def _union_one_by_one(group: Ints, begin: Ints, end: Ints, count: int) -> Ints:
    """Where all groups behind each other would not fit into 64 bits: one group after the other."""
    total = np.zeros(count, np.int64)
    borders = np.searchsorted(group, np.arange(count + 1))
    for number in np.unique(group).tolist():
        part = slice(int(borders[number]), int(borders[number + 1]))
        reached = np.maximum.accumulate(end[part])
        before = np.concatenate([begin[part][:1], reached[:-1]])
        total[number] = np.maximum(0, end[part] - np.maximum(begin[part], before)).sum()
    return total


def union(starts: Ints, durations: Ints) -> int:
    """How long at least one interval was going on."""
    return int(union_by_group(np.zeros(len(starts), np.int64), starts, durations, 1)[0])


def _ranks(sorted_groups: Ints) -> Ints:
    """Consecutive numbers for the groups, so that few groups of large numbers do not overflow."""
    changes = np.empty(len(sorted_groups), np.int64)
    changes[0] = 0
    changes[1:] = sorted_groups[1:] != sorted_groups[:-1]
    return np.cumsum(changes)


def medians_by_group(groups: Ints, values: Ints, count: int) -> tuple[NDArray[np.float64], Ints, Ints]:
    """Median, least and greatest value of each group; NaN and 0 for an empty one."""
    order = _by_group(groups, values, count)
    group, value = groups[order], values[order]
    numbers = np.bincount(group, minlength=count)
    first = np.concatenate([[0], np.cumsum(numbers)[:-1]]).astype(np.int64)
    there = numbers > 0
    median = np.full(count, np.nan)
    least, greatest = np.zeros(count, np.int64), np.zeros(count, np.int64)
    low = first[there] + (numbers[there] - 1) // 2
    high = first[there] + numbers[there] // 2
    median[there] = (value[low] + value[high]) / 2
    least[there] = value[first[there]]
    greatest[there] = value[first[there] + numbers[there] - 1]
    return median, least, greatest


def gaps(starts: Ints, durations: Ints) -> tuple[Ints, Ints]:
    """Where nothing went on between the first start and the last end: starts and durations of those gaps."""
    if len(starts) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(starts, kind="stable")
    begin = starts[order]
    reached = np.maximum.accumulate(begin + durations[order])
    free = begin[1:] - reached[:-1]
    there = free > 0
    return reached[:-1][there], free[there]
