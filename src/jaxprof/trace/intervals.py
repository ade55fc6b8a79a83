"""Arithmetic of time intervals in bulk: unions, self times, medians, each over groups. Integers of picoseconds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def self_times(starts: Ints, durations: Ints) -> Ints:
    """Of intervals on one thread, which nest (or follow each other): each one's time without those inside it.

    Intervals that overlap without nesting, as rounding makes them, count their inside part once: never below 0.
    """
    order = np.lexsort((-durations, starts))
    begin, length = starts[order], durations[order]
    end = begin + length
    own = length.copy()
    containers = np.flatnonzero(begin[1:] < end[:-1])
    last = np.searchsorted(begin, end, side="left")
    for index in containers[::-1].tolist():  # the innermost first: what lies inside has its own time already
        inside = int(own[index + 1 : last[index]].sum())
        own[index] = max(0, int(length[index]) - inside)
    found = np.empty_like(own)
    found[order] = own
    return found


def union_by_group(groups: Ints, starts: Ints, durations: Ints, count: int) -> Ints:
    """For each of `count` groups, how long at least one of its intervals was going on."""
    total = np.zeros(count, np.int64)
    if not len(groups):
        return total
    order = np.lexsort((starts, groups))
    group, begin = groups[order], starts[order]
    end = begin + durations[order]
    origin = begin.min()
    span = int(end.max() - origin) + 1
    # Groups are laid one behind the other on one axis, so that one running maximum serves all of them.
    shift = _ranks(group) * span - origin
    reached = np.maximum.accumulate(end + shift)
    before = np.empty_like(reached)
    before[0], before[1:] = begin[0] + shift[0], reached[:-1]
    new = np.maximum(0, (end + shift) - np.maximum(begin + shift, before))
    np.add.at(total, group, new)
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
    order = np.lexsort((values, groups))
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
