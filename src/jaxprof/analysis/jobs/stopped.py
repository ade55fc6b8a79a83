"""Processes of a job that were stopped, and what the others waited meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from jaxprof.analysis.jobs.figures import ProcessFigures
from jaxprof.analysis.jobs.finding import JobFinding
from jaxprof.analysis.programs.stops import SIGNAL, SUSPENDED, UNKNOWN
from jaxprof.units import seconds

_WAITED: Final = 0.5
"""Share of a stop by which the loops of the others must be longer: then it is the stop that they waited for."""
_HOW: Final = {
    SIGNAL: "stopped by a signal",
    UNKNOWN: "stood still, by a signal that stopped its recording too, or with its container",
    SUSPENDED: "did not run while its machine was suspended",
}
_ADVICE: Final = (
    "Look for what stops it: SIGSTOP or SIGTSTP, a batch system that suspends, a container that is frozen, a machine "
    "that sleeps. None of its lines takes this time."
)


def stopped(processes: Sequence[ProcessFigures]) -> Iterator[JobFinding]:
    """A finding for each process that was stopped; one for all of them where none went on."""
    found = [process for process in processes if process.stops]
    if len(found) == len(processes) > 1:
        first = found[0]
        took = median(_stopped_seconds(process) for process in found)
        message = f"all {len(found)} processes did not run for {seconds(took)}: {_how(first)}, {_when(first)}"
        yield JobFinding("process-stopped", first.index, message, _ADVICE, seconds=took)
        return
    for process in found:
        took = _stopped_seconds(process)
        waited = _waited(process, [other for other in processes if not other.stops])
        message = f"process {process.index} on {process.host} {_how(process)} for {seconds(took)}, {_when(process)}" + (
            f"; the others wait {seconds(waited)} for it" if waited is not None else ""
        )
        yield JobFinding("process-stopped", process.index, message, _ADVICE, seconds=took)


def _stopped_seconds(process: ProcessFigures) -> float:
    return sum(stop.seconds for stop in process.stops)


def _how(process: ProcessFigures) -> str:
    cause = max(process.stops, key=lambda stop: stop.seconds).cause
    return f"was {_HOW[cause]}" if cause == SIGNAL else _HOW.get(cause, _HOW[UNKNOWN])


def _when(process: ProcessFigures) -> str:
    first = f"{seconds(process.stops[0].began_seconds)} after it began"
    return first if len(process.stops) == 1 else f"{len(process.stops)} times, first {first}"


def _waited(process: ProcessFigures, others: Sequence[ProcessFigures]) -> float | None:
    """By how much longer the others are in the same loop than the process that was stopped, without its stop: an
    estimate of what they waited for it. None if they were not seen to."""
    loops = [other.loop.seconds for other in others if _same_loop(process, other) and other.loop is not None]
    if process.loop is None or not loops:
        return None
    took = _stopped_seconds(process)
    more = median(loops) - process.loop.seconds
    return min(more, took) if more >= _WAITED * took else None


def _same_loop(process: ProcessFigures, other: ProcessFigures) -> bool:
    mine, theirs = process.loop, other.loop
    return mine is not None and theirs is not None and mine.where is not None and mine.where == theirs.where
