"""What the wall time of all processes of a job went to: how much of it was useful, and what took the rest.

Useful is the device part of the hot loop: compiled functions, and waiting for their results. It is an estimate from
samples, and an upper bound. A collective in which a process waits for another one is inside a compiled function; taken
off for that is by how much the device part of a process exceeds that of the process with the least, where they are in
the loop for as long as each other. Waiting that all of them share stays in it, and so does what a device computes more
slowly than it could.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from jaxprof.analysis.jobs.figures import ProcessFigures
from jaxprof.analysis.jobs.loop_windows import LoopWindows
from jaxprof.analysis.jobs.wall_time import AFTER, AGAIN, CAUSES, IN_LOOP, OUTSIDE, STOPPED, UNSEEN, USEFUL, WAITING
from jaxprof.analysis.programs.verdict import COMPILE, DEVICE, PARTS

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
