"""The figures of a job: its processes, their findings, what their wall time went to, and what is missing.

Useful wall time is the device part of the hot loop: compiled functions, and waiting for their results. It is an
estimate from samples, and an upper bound. A collective in which a process waits for another one is inside a compiled
function. This waiting is subtracted as the excess of a process's device part over the smallest device part, if all
processes are in the loop equally long. Time that all processes wait together counts as useful, and so does time that a
device computes more slowly than it could.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from jaxprof.analysis.arrivals import Arrivals, CollectiveEvents, arrivals
from jaxprof.analysis.explain.catalogue import with_fix
from jaxprof.analysis.jobs.figures import (
    AFTER,
    AGAIN,
    CAUSES,
    IN_LOOP,
    OUTSIDE,
    STOPPED,
    UNSEEN,
    USEFUL,
    WAITING,
    ProcessFigures,
)
from jaxprof.analysis.jobs.findings import (
    clocks_apart,
    exposed,
    failed_at,
    failures,
    last_to_arrive,
    recompiles,
    stopped,
    throttled,
)
from jaxprof.analysis.jobs.late import IN_STEP, clearly_late, comparable, stragglers
from jaxprof.analysis.programs.loop_time import COMPILE, DEVICE, PARTS
from jaxprof.finding import Finding
from jaxprof.session.log.state import with_urls

_LEAST_WAITING: Final = 0.05
"""Share of the loop by which device parts differ by chance; a smaller difference does not count as waiting."""


@dataclass(frozen=True, slots=True)
class Goodput:
    """Wall time of the processes of a job by cause, over the processes whose time is known."""

    seconds: float
    """Seconds of wall time, summed over the processes."""
    processes: int
    """Number of processes that were seen in a loop; the others are left out."""
    causes: Mapping[str, float]
    """Seconds by each of `CAUSES`, which add up to `seconds`."""

    @property
    def shares(self) -> Mapping[str, float]:
        """Shares of the wall time by cause, which add up to 1."""
        return {cause: took / self.seconds for cause, took in self.causes.items()}


def goodput(processes: Sequence[ProcessFigures], failed_at: float | None) -> Goodput | None:
    """Return the job's goodput; None if no process was seen in a loop.

    `failed_at` is the Unix time at which the first process failed; time of the others after that is not useful. If the
    clocks of hosts differ, they shift that moment.
    """
    known = [process for process in processes if process.time is not None and process.wall_seconds]
    if not known:
        return None
    times = [_split_at_failure(process, failed_at) for process in known]
    causes = dict.fromkeys(CAUSES, 0.0)
    for time, waited in zip(times, _waiting_seconds(known, times), strict=True):
        for cause, took in time.items():
            causes[USEFUL if cause == DEVICE else cause] += took
        causes[USEFUL] -= waited
        causes[WAITING] += waited
    return Goodput(sum(causes.values()), len(known), causes)


def _split_at_failure(process: ProcessFigures, failed_at: float | None) -> Mapping[str, float]:
    """Return the time of a process by cause, with everything after the failure under its own cause."""
    time = dict(process.time or {})
    if failed_at is None or process.ended_seconds is None or process.ended_seconds <= failed_at:
        return time
    whole = sum(time.values())
    after = min(whole, process.ended_seconds - failed_at)
    windows = process.windows
    began = windows.began_seconds + process.clock_offset_seconds
    until = np.append(began[1:], process.ended_seconds)[: len(began)]
    left = until - np.maximum(began, failed_at)
    shares = np.divide(left, until - began, out=np.zeros(len(began)), where=left > 0)
    parts = dict(zip(PARTS, (shares @ windows.parts).tolist(), strict=True))
    after_failure = {**{part: parts[part] for part in IN_LOOP}, AGAIN: parts[COMPILE]}
    taken = 0.0
    for cause in (*after_failure, UNSEEN, OUTSIDE):  # first the time seen in the loop, then the time not seen there
        moved = min(time[cause], after_failure.get(cause, after), after - taken)
        time[cause] -= moved
        taken += moved
    return time | {AFTER: taken}


def _waiting_seconds(processes: Sequence[ProcessFigures], times: Sequence[Mapping[str, float]]) -> list[float]:
    """Return how long each process waited for others inside compiled functions, as far as it shows."""
    loops = [sum(time[part] for part in (*IN_LOOP, AGAIN)) + time[STOPPED] for time in times]
    lines = {process.loop.where for process in processes if process.loop is not None}
    together = len(processes) > 1 and len(lines) == 1 and max(loops) <= IN_STEP * min(loops)
    if not together:
        return [0.0] * len(times)
    least = min(time[DEVICE] for time in times)
    excess = [time[DEVICE] - least for time in times]
    return [each if each >= _LEAST_WAITING * loop else 0.0 for each, loop in zip(excess, loops, strict=True)]


@dataclass(frozen=True, slots=True)
class JobFigures:
    """Figures of a job."""

    folder: str
    job: str
    count: int
    processes: tuple[ProcessFigures, ...]
    findings: tuple[Finding, ...]
    notices: tuple[str, ...]
    """What is missing, or could not be compared."""
    goodput: Goodput | None = None
    """Wall time of the processes by cause; None if no process was seen in a loop."""
    compared: int = 0
    """Number of processes whose own work could be compared with that of the others."""
    collectives: tuple[Arrivals, ...] = ()
    """Arrivals at the collectives with the most total time, if several processes captured them."""

    @property
    def arrivals(self) -> Arrivals | None:
        """Arrivals at the collective with the most total time; None if fewer than two processes captured it."""
        return self.collectives[0] if self.collectives else None

    @property
    def names_somebody(self) -> bool:
        """Whether a finding names one of the processes."""
        return any(finding.index is not None for finding in self.findings)


def figures_of(
    folder: str,
    job: str,
    count: int,
    processes: tuple[ProcessFigures, ...],
    captures: Iterable[Mapping[str, CollectiveEvents]],
    began: Iterable[tuple[str, float]],
    missing: Iterable[str],
) -> JobFigures:
    """Return all figures of a job from those of its processes and the collectives in their `captures`. `began` holds
    the host and the Unix start time of each process; `missing` holds a line for each part that could not be read."""
    notices = list(missing)
    notices += (f"process {each.index}: {each.error}" for each in processes if each.status == "unknown")
    notices += (f"process {each.index}: {notice}" for each in processes for notice in each.notices)
    compared = comparable(processes, notices)
    again, late = list(recompiles(processes)), list(stragglers(compared))
    late += clearly_late(processes, {finding.index for finding in late})
    collectives = tuple(arrivals(captures, notices))
    if collectives:
        explained = {finding.index for finding in (*again, *late) if finding.index is not None}
        late += last_to_arrive(collectives[0], processes, explained, {process.index for process in compared})
    apart = clocks_apart(began)
    found = (*failures(processes, apart), *stopped(processes), *again, *late, *throttled(processes))
    return JobFigures(
        with_urls(folder),
        job,
        count,
        processes,
        tuple(map(with_fix, (*found, *exposed(collectives)))),
        tuple(map(with_urls, notices)),
        goodput(processes, None if apart else failed_at(processes)),
        len(compared),
        collectives,
    )
