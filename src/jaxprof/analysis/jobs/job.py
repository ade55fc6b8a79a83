"""A job in figures: its processes, what was found of them, what their wall time went to, and what is missing.

Useful wall time is the device part of the hot loop: compiled functions, and waiting for their results. It is an
estimate from samples, and an upper bound. A collective in which a process waits for another one is inside a compiled
function; taken off for that is by how much the device part of a process exceeds that of the process with the least,
where they are in the loop for as long as each other. Waiting that all of them share stays in it, and so does what a
device computes more slowly than it could.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from jaxprof.analysis.arrivals import Arrivals, CollectiveEvents, arrivals, collective_events
from jaxprof.analysis.finding import Finding
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
    LoopWindows,
    ProcessFigures,
    process_figures,
    share_beside,
)
from jaxprof.analysis.jobs.findings import (
    CollectiveFigures,
    clocks_apart,
    collective_figures,
    exposed,
    failed_at,
    failures,
    last_to_arrive,
    recompiles,
    stopped,
    throttled,
    uneven_shards,
    with_cost,
)
from jaxprof.analysis.jobs.late import comparable, plainly_late, stragglers
from jaxprof.analysis.programs.verdict import COMPILE, DEVICE, PARTS
from jaxprof.events import SourceLocation
from jaxprof.session import Session
from jaxprof.session.log.job_folder import RecordedJob
from jaxprof.session.log.state import with_urls

_IN_STEP: Final = 1.15
_LEAST_WAITING: Final = 0.05
"""Share of the loop by which device parts differ by chance: below it, nothing is called waiting."""


@dataclass(frozen=True, slots=True)
class Goodput:
    """The wall time of the processes that are known, added up."""

    seconds: float
    """Of all of them together."""
    processes: int
    """How many of them were seen in a loop. The others are left out."""
    causes: Mapping[str, float]
    """Seconds by each of `CAUSES`; they add up to `seconds`."""

    @property
    def shares(self) -> Mapping[str, float]:
        """The same as shares of the wall time, which add up to 1."""
        return {cause: took / self.seconds for cause, took in self.causes.items()}


def goodput(processes: Sequence[ProcessFigures], failed_at: float | None) -> Goodput | None:
    """The job's goodput; None if no process was seen in a loop. `failed_at`: when its first process failed, in Unix
    time; what the others do from then on is not useful. Clocks of hosts that differ shift that moment."""
    known = [process for process in processes if process.time is not None and process.wall_seconds]
    if not known:
        return None
    times = [_until_failure(process, failed_at) for process in known]
    causes = dict.fromkeys(CAUSES, 0.0)
    for time, waited in zip(times, _waited(known, times), strict=True):
        for cause, took in time.items():
            causes[USEFUL if cause == DEVICE else cause] += took
        causes[USEFUL] -= waited
        causes[WAITING] += waited
    return Goodput(sum(causes.values()), len(known), causes)


def _until_failure(process: ProcessFigures, failed_at: float | None) -> Mapping[str, float]:
    """The time of a process, of which all that comes after the failure goes to that."""
    time = dict(process.time or {})
    if failed_at is None or process.ended_seconds is None or process.ended_seconds <= failed_at:
        return time
    whole = sum(time.values())
    after = min(whole, process.ended_seconds - failed_at)
    windows = LoopWindows.of(process.windows)
    began = windows.began_seconds + process.clock_offset_seconds
    until = np.append(began[1:], process.ended_seconds)[: len(began)]
    left = until - np.maximum(began, failed_at)
    shares = np.divide(left, until - began, out=np.zeros(len(began)), where=left > 0)
    parts = dict(zip(PARTS, (shares @ windows.parts).tolist(), strict=True))
    late = {**{part: parts[part] for part in IN_LOOP}, AGAIN: parts[COMPILE]}
    taken = 0.0
    for cause in (*late, UNSEEN, OUTSIDE):  # what was seen of it in the loop, then what was not
        moved = min(time[cause], late.get(cause, after), after - taken)
        time[cause] -= moved
        taken += moved
    return time | {AFTER: taken}


def _waited(processes: Sequence[ProcessFigures], times: Sequence[Mapping[str, float]]) -> list[float]:
    """For how long each waited for others inside compiled functions, as far as that shows."""
    loops = [sum(time[part] for part in (*IN_LOOP, AGAIN)) + time[STOPPED] for time in times]
    lines = {process.loop.where for process in processes if process.loop is not None}
    together = len(processes) > 1 and len(lines) == 1 and max(loops) <= _IN_STEP * min(loops)
    if not together:
        return [0.0] * len(times)
    least = min(time[DEVICE] for time in times)
    more = [time[DEVICE] - least for time in times]
    return [each if each >= _LEAST_WAITING * loop else 0.0 for each, loop in zip(more, loops, strict=True)]


@dataclass(frozen=True, slots=True)
class PartBeside:
    """One part of the loop."""

    part: str
    share: float
    """Of its loop, on this process; an estimate from samples."""
    others_share: float
    """The median of the others."""
    more_seconds: float
    """What this process spends in it beyond that share; negative where it is less."""
    where: SourceLocation | None
    """The line that takes most of it on this process."""


@dataclass(frozen=True, slots=True)
class CompiledBeside:
    """A function that was compiled more than once, here or there."""

    function: str
    count: int
    """Compilations on this process after the first; exact."""
    others_most: int
    """The most that any other process has."""
    seconds: float
    reason: str
    called_from: SourceLocation | None


@dataclass(frozen=True, slots=True)
class BesideOthers:
    """What distinguishes a process."""

    index: int
    parts: tuple[PartBeside, ...] | None
    """The largest difference first; None where too little was seen of its loop, or of any other."""
    compiled: tuple[CompiledBeside, ...]
    """What it compiled again, the most beyond the others first."""


def beside_others(processes: Sequence[ProcessFigures], index: int) -> BesideOthers | None:
    """The process with that index beside the others; None if it is not there."""
    process = next((each for each in processes if each.index == index), None)
    if process is None:
        return None
    others = [each for each in processes if each is not process]
    return BesideOthers(index, _parts(process, others), tuple(_compiled(process, others)))


def _parts(process: ProcessFigures, others: Sequence[ProcessFigures]) -> tuple[PartBeside, ...] | None:
    loop = process.loop
    rows = []
    for part in PARTS:
        found = share_beside(process, others, part)
        if found is None or loop is None:
            return None
        share, usual = found
        more = (share - usual) * loop.seconds
        rows.append(PartBeside(part, share, usual, more, loop.line_of(part) if share else None))
    return tuple(sorted(rows, key=lambda row: -row.more_seconds))


def _compiled(process: ProcessFigures, others: Sequence[ProcessFigures]) -> list[CompiledBeside]:
    most: dict[tuple[str, int | None], int] = {}
    for other in others:
        for each in other.again or ():
            key = each.function, each.defined_line
            most[key] = max(most.get(key, 0), each.count)
    rows = [
        CompiledBeside(
            each.function,
            each.count,
            most.get((each.function, each.defined_line), 0),
            each.seconds,
            each.reason,
            each.called_from,
        )
        for each in process.again or ()
    ]
    return sorted(rows, key=lambda row: (row.others_most - row.count, -row.seconds))


@dataclass(frozen=True, slots=True)
class JobFigures:
    """A job in figures."""

    folder: str
    job: str
    count: int
    processes: tuple[ProcessFigures, ...]
    findings: tuple[Finding, ...]
    arrivals: Arrivals | None
    """At the collective that took most time; None if fewer than two processes have captured it."""
    notices: tuple[str, ...]
    """What is missing, or could not be compared."""
    goodput: Goodput | None = None
    """What the wall time of its processes went to; None if none of them was seen in a loop."""
    compared: int = 0
    """How many processes' own work could be compared with that of the others."""
    collectives: tuple[CollectiveFigures, ...] = ()
    """Those that took most time, where several processes have captured them."""

    @property
    def names_somebody(self) -> bool:
        """Whether something was found of one of its processes."""
        return any(finding.index is not None for finding in self.findings)


def job_figures(job: RecordedJob[Session]) -> JobFigures:
    """Everything that can be said of a job from the sessions of its processes."""
    captures = (collective_events(member.index, member.session) for member in job.members)
    processes = tuple(map(process_figures, job.members))
    began = [(member.session.header.host, member.session.header.wall_seconds) for member in job.members]
    return figures_of(str(job.folder), job.job, job.count, processes, captures, began, job.notices)


def figures_of(
    folder: str,
    job: str,
    count: int,
    processes: tuple[ProcessFigures, ...],
    captures: Iterable[Mapping[str, CollectiveEvents]],
    began: Iterable[tuple[str, float]],
    missing: Iterable[str],
) -> JobFigures:
    """Everything that can be said of a job from the figures of its processes and the collectives in their `captures`;
    `began`: by process, its host and when it began, in Unix time; `missing`: what could not be read, a line each."""
    notices = list(missing)
    notices += (f"process {each.index}: {each.error}" for each in processes if each.status == "unknown")
    notices += (f"process {each.index}: {notice}" for each in processes for notice in each.notices)
    compared = comparable(processes, notices)
    alone, late = list(recompiles(processes)), list(stragglers(compared))
    late += plainly_late(processes, {finding.index for finding in late})
    by_collective = arrivals(captures, notices)
    at_collectives = by_collective[0] if by_collective else None
    slow: list[Finding] = []
    if at_collectives is not None:
        explained = {finding.index for finding in (*alone, *late) if finding.index is not None}
        slow += last_to_arrive(at_collectives, processes, explained, {process.index for process in compared})
    late += with_cost(list(uneven_shards(processes)), slow)
    apart = clocks_apart(began)
    exchanges = collective_figures(by_collective, {process.host for process in processes})
    of_processes = (*failures(processes, apart), *stopped(processes), *alone, *late, *throttled(processes))
    return JobFigures(
        with_urls(folder),
        job,
        count,
        processes,
        (*of_processes, *exposed(exchanges)),
        at_collectives,
        tuple(map(with_urls, notices)),
        goodput(processes, None if apart else failed_at(processes)),
        len(compared),
        exchanges,
    )
