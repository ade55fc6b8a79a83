"""A job in figures: its processes, what was found of them, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jaxprof.analysis.arrivals import Arrivals, arrivals
from jaxprof.analysis.collective_events import CollectiveEvents, collective_events
from jaxprof.analysis.jobs.exposed import CollectiveFigures, collective_figures, exposed
from jaxprof.analysis.jobs.failures import clocks_apart, failed_at, failures
from jaxprof.analysis.jobs.figures import ProcessFigures, process_figures
from jaxprof.analysis.jobs.finding import JobFinding
from jaxprof.analysis.jobs.goodput import Goodput, goodput
from jaxprof.analysis.jobs.late import comparable, plainly_late, stragglers
from jaxprof.analysis.jobs.recompiles import recompiles
from jaxprof.analysis.jobs.slow_device import last_to_arrive
from jaxprof.analysis.jobs.stopped import stopped
from jaxprof.analysis.jobs.throttled import throttled
from jaxprof.analysis.jobs.uneven import uneven_shards, with_cost
from jaxprof.session import Session
from jaxprof.session.log.job_folder import RecordedJob
from jaxprof.session.log.state import with_urls


@dataclass(frozen=True, slots=True)
class JobFigures:
    """A job in figures."""

    folder: str
    job: str
    count: int
    processes: tuple[ProcessFigures, ...]
    findings: tuple[JobFinding, ...]
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
    slow: list[JobFinding] = []
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
