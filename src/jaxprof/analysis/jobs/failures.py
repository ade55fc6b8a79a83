"""The process that failed first, and what the others ended with because it had gone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Final

from jaxprof.analysis.jobs.figures import ProcessFigures
from jaxprof.analysis.jobs.finding import JobFinding
from jaxprof.units import seconds

_MOST_NAMED: Final = 8
_STARTED_TOGETHER_SECONDS: Final = 10.0
"""Within which the processes of a job begin, by clocks that agree."""
_NOTICED_SECONDS: Final = 1.0
"""By how much the end of a process may be known later than the others notice it."""


def clocks_apart(began: Iterable[tuple[str, float]]) -> float:
    """By how many seconds the clocks of the hosts differ, from host and Unix time of the begin of each process: those
    of one job begin together. 0 where that is no more than starting takes."""
    by_host: dict[str, list[float]] = {}
    for host, at in began:
        by_host.setdefault(host, []).append(at)
    middles = [median(times) for times in by_host.values()]
    apart = max(middles, default=0.0) - min(middles, default=0.0)
    return apart if apart >= _STARTED_TOGETHER_SECONDS else 0.0


def failures(processes: Sequence[ProcessFigures], apart: float = 0.0) -> Iterator[JobFinding]:
    """The one that failed first, then the others by what they ended with. `apart`: seconds by which the clocks of the
    hosts differ; where that leaves open which one failed first, it is said.

    One that raised failed when it did: in a job it may hang for minutes, until JAX's runtime ends all of them in any
    order. One that was killed has no exception of its own, and those of the others come after its end.
    """
    failed = _failed(processes)
    if not failed:
        return
    first = failed[0]
    advice = "" if first.exception is not None else first.advice
    may_be_first = [
        each.index
        for each in failed[1:]
        if each.host != first.host and not _when(each)[0] - _when(first)[0] > apart and apart
    ]
    message = f"process {first.index} on {first.host}: {_failure(first)}"
    if may_be_first:
        message += (
            f" (which one failed first is not certain: the clocks of the hosts are {seconds(apart)} apart, and "
            f"{processes_named(may_be_first)} may have failed before it)"
        )
    yield JobFinding("process-failed", first.index, message, advice)
    by_error: dict[str, list[ProcessFigures]] = {}
    for process in failed[1:]:
        by_error.setdefault(_failure(process), []).append(process)
    for error, group in by_error.items():
        which = processes_named([process.index for process in group])
        after = "ended" if may_be_first else "ended after that"
        yield JobFinding("failed-after", group[0].index, f"{which} {after}: {error}", "")


def processes_named(indices: Sequence[int]) -> str:
    """`process 3`, `processes 1, 2 and 4 more`."""
    named = ", ".join(map(str, indices[:_MOST_NAMED]))
    more = f" and {len(indices) - _MOST_NAMED} more" if len(indices) > _MOST_NAMED else ""
    return f"{'process' if len(indices) == 1 else 'processes'} {named}{more}"


def failed_at(processes: Sequence[ProcessFigures]) -> float | None:
    """When the first of them failed, in Unix time by the clock of its host; None if none did, or it is not known."""
    failed = _failed(processes)
    at = _when(failed[0])[0] if failed else math.inf
    return at if math.isfinite(at) else None


def _failed(processes: Sequence[ProcessFigures]) -> list[ProcessFigures]:
    return sorted((each for each in processes if each.status in ("failed", "crashed", "interrupted")), key=_when)


def _failure(process: ProcessFigures) -> str:
    return process.exception[1] if process.exception is not None else process.error or process.status


def _when(process: ProcessFigures) -> tuple[float, int]:
    """When it failed, by the clock of its host: the earlier, if it was killed.

    The others notice within a millisecond that a process has gone, before its own end is known; and nobody kills a
    process because another one has gone.
    """
    if process.exception is not None:
        return process.exception[0], process.index
    at = math.inf if process.ended_seconds is None else process.ended_seconds
    return at - (_NOTICED_SECONDS if process.was_killed else 0.0), process.index
