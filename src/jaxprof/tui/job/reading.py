"""Reads a job's folder in threads, and derives there everything that the Job screen shows.

A job that is over, or has many processes, is read from its roll-ups, if they are valid; a session is read only once its
process is opened. Otherwise the sessions are followed: each reading continues where the last one ended, so that every
event is folded once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from jaxprof.analysis.arrivals import CollectiveEvents
    from jaxprof.analysis.jobs.figures import ProcessFigures
    from jaxprof.analysis.jobs.job import JobFigures
    from jaxprof.analysis.jobs.step_grid import LoopTrace, StepGrid
    from jaxprof.session import Session
    from jaxprof.session.log.job_folder import JobFollower

_LOSS_COLUMNS: Final = 100
"""Columns of the grid from which the lost seconds are computed."""
SILENT_SECONDS: Final = 30.0
"""A session without an end and without a known writer, as on another host, may still grow for this long after its
last change."""
_LEAST_PAUSE_SECONDS: Final = 5.0
"""Shortest pause between two readings of the roll-ups of a running job."""
_PAUSE_FACTOR: Final = 10.0
"""The pause between two readings of the roll-ups of a running job is this many times the duration of a reading."""


class StepsOfJob(Protocol):
    """The source of a job's steps."""

    def grid(self, columns: int, first: float | None, last: float | None, values_of: str) -> StepGrid:
        """Return the steps `first` to `last` in so many columns."""

    def windows(self, first: float | None, last: float | None) -> int:
        """Return the number of sample windows of the median process in these steps; narrower columns would only
        repeat values."""


@dataclass(frozen=True, slots=True)
class JobInView:
    """The result of a reading of the folder."""

    figures: JobFigures
    job_steps: StepsOfJob
    lost_seconds: Mapping[int, float]
    """By process, the seconds that its own work takes more than that of the median process; an estimate."""

    def steps(self, columns: int, first: float | None, last: float | None, values_of: str) -> StepGrid:
        """Return the steps `first` to `last` of all processes in so many columns. Blocks: for threads."""
        from jaxprof.analysis.jobs.step_grid import STEP

        columns = columns if values_of == STEP else min(columns, self.job_steps.windows(first, last))
        return self.job_steps.grid(columns, first, last, values_of)


class JobReading:
    """Reads one folder. Only one thread at a time may call it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rolled: _RolledUp | None = _RolledUp(folder)
        """None once the sessions have to be followed."""
        self._sessions: _Sessions | None = None

    def read(self) -> JobInView | None:
        """Return the job as it is now; None if nothing has changed since the last call. Blocks: for threads.

        Raises FileRefusedError if the folder has no session that can be read.
        """
        if self._rolled is not None:
            job = self._rolled.read()
            if self._rolled.serves:
                return job
            self._rolled = None
        if self._sessions is None:
            self._sessions = _Sessions(self.folder)
        return self._sessions.read()


class _RolledUp:
    """Reads a job from its roll-ups, and from the few sessions that have none."""

    def __init__(self, folder: Path) -> None:
        self.serves = True
        """Whether roll-ups suffice; if not, the sessions have to be followed."""
        self._folder = folder
        self._seen: object = None
        self._due = 0.0

    def read(self) -> JobInView | None:
        """Return the job as it is now; None if nothing has changed, if the next reading is not due, or if `serves`
        becomes False.

        Raises FileRefusedError if the folder cannot be read.
        """
        from jaxprof.rollup.grid import JobSteps
        from jaxprof.rollup.job import SESSIONS_READ, read_roll_ups

        began = time.monotonic()
        if began < self._due or (seen := _fingerprint(self._folder)) == self._seen:
            return None
        files = read_roll_ups(self._folder)
        rest = files.rest
        few = len(files.sessions) <= SESSIONS_READ
        if not files.rolled or len(rest) > SESSIONS_READ or (few and any(map(_may_grow, rest.values()))):
            self.serves = False
            return None
        files.read_rest()
        steps = JobSteps(files)
        job = _in_view(files.job_figures(), steps)
        self._seen = seen
        if any(process.status == "running" for process in job.figures.processes):
            ended = time.monotonic()
            self._due = ended + max(_LEAST_PAUSE_SECONDS, _PAUSE_FACTOR * (ended - began))
        return job


def _fingerprint(folder: Path) -> object:
    """Return a value that changes with every session and every roll-up in the folder."""
    from jaxprof.rollup import FOLDER

    state = []
    for place in (folder, folder / FOLDER / "processes"):
        try:
            with os.scandir(place) as entries:
                state += [(entry.name, (status := entry.stat()).st_size, status.st_mtime_ns) for entry in entries]
        except OSError:  # `read_roll_ups` reports the error
            state.append((str(place), 0, 0))
    return sorted(state)


def _may_grow(session: Path) -> bool:
    from jaxprof.session.log.reader import is_live

    try:
        return is_live(session) or time.time() - session.stat().st_mtime < SILENT_SECONDS
    except OSError:
        return False


@dataclass(slots=True)
class _Sessions:
    """Follows the sessions of a job."""

    folder: Path
    _follower: JobFollower[Session] | None = None
    _figures: dict[int, ProcessFigures] = field(default_factory=dict)
    _traces: dict[int, LoopTrace | None] = field(default_factory=dict)
    _captures: dict[int, Mapping[str, CollectiveEvents]] = field(default_factory=dict)
    _notices: tuple[str, ...] | None = None

    def read(self) -> JobInView | None:
        """Return the job as `JobReading.read` does."""
        from jaxprof.analysis.arrivals import collective_events
        from jaxprof.analysis.jobs.figures import process_figures
        from jaxprof.analysis.jobs.job import figures_of
        from jaxprof.analysis.jobs.step_grid import aligned, loop_trace
        from jaxprof.session import Session
        from jaxprof.session.log.job_folder import JobFollower

        if self._follower is None:
            self._follower = JobFollower(self.folder, Session)
        changed = self._follower.poll()
        job = self._follower.job
        if not changed and job.notices == self._notices:
            return None
        self._notices = job.notices
        for member in job.members:
            index = member.index
            if index in changed:
                self._figures[index] = process_figures(member)
                self._traces[index] = loop_trace(member, self._figures[index])
                self._captures[index] = collective_events(index, member.session)
        here = [member.index for member in job.members]
        began = [(member.session.header.host, member.session.header.wall_seconds) for member in job.members]
        processes = tuple(self._figures[index] for index in here)
        captures = [self._captures[index] for index in here]
        figures = figures_of(str(job.folder), job.job, job.count, processes, captures, began, job.notices)
        traces, notices = aligned([trace for index in here if (trace := self._traces[index]) is not None])
        steps = _Traces(traces, tuple(here), notices)
        return _in_view(figures, steps)


@dataclass(frozen=True, slots=True)
class _Traces:
    """Steps from sessions that were read."""

    traces: tuple[LoopTrace, ...]
    indices: tuple[int, ...]
    """Indices of all processes."""
    notices: tuple[str, ...]
    """Notices on sessions that were not aligned with the others by their step numbers."""

    def grid(self, columns: int, first: float | None, last: float | None, values_of: str) -> StepGrid:
        """Return the grid as `StepsOfJob.grid` does."""
        from jaxprof.analysis.jobs.step_grid import grid_of_traces

        grid = grid_of_traces(self.traces, self.indices, columns, first, last, values_of)
        return replace(grid, notices=(*grid.notices, *self.notices))

    def windows(self, first: float | None, last: float | None) -> int:
        """Return the number of sample windows as `StepsOfJob.windows` does, at least 1."""
        counts = [trace.windows_between(first, last) for trace in self.traces]
        return max(1, round(median(counts))) if counts else 1


def _in_view(figures: JobFigures, steps: StepsOfJob) -> JobInView:
    """Return a job with the seconds that each process loses, and the notices about how its steps were aligned."""
    from jaxprof.analysis.jobs.step_grid import OWN

    grid = steps.grid(_LOSS_COLUMNS, None, None, OWN)
    lost = grid.lost_seconds if len(grid.steps) else {}
    return JobInView(replace(figures, notices=(*figures.notices, *grid.notices)), steps, lost)
