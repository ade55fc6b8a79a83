"""What a set of intervals covers, asked for many windows at once. Integers of picoseconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxprof.trace.intervals import nesting_order
from jaxprof.trace.model import Ints


@dataclass(frozen=True, slots=True)
class Coverage:
    """Disjoint intervals in order; what they cover up to any moment is one search away."""

    starts: Ints
    ends: Ints

    @staticmethod
    def of(starts: Ints, ends: Ints) -> Coverage:
        """The union of these intervals; those of no length are left out."""
        there = ends > starts
        begin, end = starts[there], ends[there]
        if not len(begin):
            return Coverage(begin, end)
        order = np.argsort(begin, kind="stable")
        begin, end = begin[order], np.maximum.accumulate(end[order])
        new = np.concatenate([[True], begin[1:] > end[:-1]])
        last = np.concatenate([np.flatnonzero(new)[1:] - 1, [len(begin) - 1]])
        return Coverage(begin[new], end[last])

    def __or__(self, other: Coverage) -> Coverage:
        return Coverage.of(np.concatenate([self.starts, other.starts]), np.concatenate([self.ends, other.ends]))

    def within(self, starts: Ints, ends: Ints) -> Ints:
        """How much of each window from `starts` to `ends` is covered."""
        return self._until(ends) - self._until(starts)

    def _until(self, moments: Ints) -> Ints:
        if not len(self.starts):
            return np.zeros(len(moments), np.int64)
        whole = np.concatenate([[0], np.cumsum(self.ends - self.starts)])
        index = np.searchsorted(self.starts, moments, side="right")
        previous = np.maximum(index - 1, 0)
        inside = np.clip(moments - self.starts[previous], 0, self.ends[previous] - self.starts[previous])
        found: Ints = np.where(index > 0, whole[previous] + inside, 0)
        return found


def holds_others(starts: Ints, durations: Ints) -> NDArray[np.bool_]:
    """Which intervals of one thread hold another one (a while loop holds the ops of its body)."""
    order = nesting_order(starts, durations)
    begin, length = starts[order], durations[order]
    found = np.zeros(len(starts), np.bool_)
    if len(order) > 1:
        found[order[:-1]] = (begin[1:] < begin[:-1] + length[:-1]) & (length[1:] > 0)
    return found
