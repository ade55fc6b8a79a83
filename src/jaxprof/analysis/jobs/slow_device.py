"""The process for whose device the others wait: in captures, it arrives last at the collectives.

Its own work happens where the others wait, inside a compiled function, so that samples of the stack cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from statistics import median
from typing import Final

from jaxprof.analysis.arrivals import Arrivals
from jaxprof.analysis.jobs.blocks import LEAST_DIFFERENCE
from jaxprof.analysis.jobs.figures import ProcessFigures
from jaxprof.analysis.jobs.finding import JobFinding
from jaxprof.analysis.programs.verdict import DEVICE
from jaxprof.units import percent, seconds

CERTAIN: Final = 4.0
"""Standard errors by which it arrives last more often than by chance."""
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
    count = len(seen.indices)
    by_chance = 1 / count + CERTAIN * math.sqrt((1 - 1 / count) / count / seen.instances)
    for place, index in enumerate(seen.indices):
        others = [caused for other, caused in enumerate(seen.caused_seconds) if other != place]
        more = seen.caused_seconds[place] - median(others)
        share = seen.last_count[place] / seen.instances
        if index in explained or share < max(0.5, by_chance) or more < LEAST_DIFFERENCE * seen.span_seconds:
            continue
        excluded = (
            "data, host, dispatch, copies and compilations do not explain that"
            if index in compared
            else "its own work on the host was not seen for long enough to exclude that"
        )
        message = (
            f"process {index} on {hosts[index]} is late: it arrives last at {percent(share)} of {seen.instances} "
            f"executions of {seen.name}, and the others wait {seconds(seen.caused_seconds[place])} of "
            f"{seconds(seen.span_seconds)} for it; {excluded}"
        )
        yield JobFinding("slow-device", index, message, _ADVICE, DEVICE, seen.caused_seconds[place])
