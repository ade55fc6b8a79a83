"""The process for whose device the others wait: in captures, it arrives last at the collectives.

Its own work happens where the others wait, inside a compiled function, so that samples of the stack cannot tell. On a
busy machine anybody arrives last now and then, and a burst of other work makes one process late for as long as it
lasts. So what counts is how much later than the others a process mostly arrives, whether that is more than what its
executions and the other processes differ by, and whether it holds over the captured time.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from statistics import fmean
from typing import Final

import numpy as np

from jaxprof.analysis.arrivals import Arrivals
from jaxprof.analysis.jobs.blocks import FALSE, LEAST_DIFFERENCE, inflation_of, spread_of
from jaxprof.analysis.jobs.figures import ProcessFigures
from jaxprof.analysis.jobs.finding import JobFinding
from jaxprof.analysis.programs.verdict import DEVICE
from jaxprof.stats.student import t_quantile
from jaxprof.units import percent, seconds

LEAST_STRETCHES: Final = 8
"""Of the ten in which it has to arrive as late: a burst that lasts for two thirds of the time is not its device."""
_ADVICE: Final = (
    "Its device has more to compute, or computes more slowly: look at the sizes of its shards, and at its clock, "
    "temperature and neighbours."
)


def last_to_arrive(
    seen: Arrivals, processes: Sequence[ProcessFigures], explained: Collection[int], compared: Collection[int]
) -> Iterator[JobFinding]:
    """The process for which the others wait at a collective, where nothing on its host explains that.

    `explained`: the processes that are late by their own work, or by compiling; `compared`: those whose own work could
    be compared at all.
    """
    hosts = {process.index: process.host for process in processes}
    for place, index in enumerate(seen.indices):
        if index in explained or not _is_late(seen, place):
            continue
        excluded = (
            "data, host, dispatch, copies and compilations do not explain that"
            if index in compared
            else "its own work on the host was not seen for long enough to exclude that"
        )
        after = seconds(fmean(seen.late_seconds[place]))
        message = (
            f"process {index} on {hosts[index]} is late: it arrives {after} after the others at {seen.name}, "
            f"last at {percent(seen.last_count[place] / seen.instances)} of {seen.instances} executions, "
            f"and the others wait {seconds(seen.caused_seconds[place])} of {seconds(seen.span_seconds)} "
            f"for it; {excluded}"
        )
        yield JobFinding("slow-device", index, message, _ADVICE, DEVICE, seen.caused_seconds[place])


def _is_late(seen: Arrivals, place: int) -> bool:
    """Whether it arrives later than the others by at least `LEAST_DIFFERENCE` of the time, nearly all of the time, and
    by more than stretches of the time vary by (successive ones may be alike) and the others differ by."""
    late = np.asarray(seen.late_seconds) * seen.instances / seen.span_seconds
    means = late.mean(axis=1)
    if means[place] < LEAST_DIFFERENCE or (late[place] >= LEAST_DIFFERENCE).sum() < LEAST_STRETCHES:
        return False
    count = late.shape[1]
    variance = inflation_of(late - means[:, None]) * late[place].var(ddof=1) / count
    others = np.delete(means, place)
    error = math.sqrt(variance + spread_of(others, float(np.median(others))))
    return bool(means[place] > t_quantile(1 - FALSE / len(means), count - 1) * error)
