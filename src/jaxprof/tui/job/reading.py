"""A job's folder, read in threads: what the screen shows of it is made here, and nothing on the thread that draws.

A job that is over, or has many processes, is read from its roll-ups, as far as they count; only the process that is
opened is then read as a session. Otherwise each session is folded once, however often it grows: a reading goes on from
where the last one was.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from jaxprof.analysis.arrivals import CollectiveEvents
    from jaxprof.analysis.jobs.figures import ProcessFigures
    from jaxprof.analysis.jobs.job import JobFigures
    from jaxprof.analysis.jobs.step_grid import LoopTrace, ProcessPasses, Standing, StepGrid
    from jaxprof.session import Session
    from jaxprof.session.log.job_folder import JobFollower

Progress: TypeAlias = Callable[[int, int], object]
_COLUMNS: Final = 100
"""Stretches in which what a process loses is looked for."""
SILENT_SECONDS: Final = 30.0
"""A session without an end that nobody is seen to write, as on another host, may still grow for so long."""
_LEAST_PAUSE_SECONDS: Final = 5.0
_PAUSE: Final = 10.0
"""Between readings of the roll-ups of a job that runs, so many times what one takes."""


class StepsOfJob(Protocol):
    """Where the steps of a job come from."""

    def grid(self, columns: int, first: float | None, last: float | None, values_of: str) -> StepGrid:
        """The steps `first` to `last` in so many columns."""

    def windows(self, first: float | None, last: float | None) -> int:
        """How many sample windows the middle process has in them: in narrower columns they would only repeat."""


@dataclass(frozen=True, slots=True)
class JobInView:
    """What a reading found."""

    figures: JobFigures
    job_steps: StepsOfJob
    lost_seconds: Mapping[int, float]
    """By process: what its own work takes more than that of the median process; an estimate."""

    def host_of(self, index: int) -> str:
        """The host of a process; empty if it is not there."""
        return next((each.host for each in self.figures.processes if each.index == index), "")

    def steps(self, columns: int, first: float | None, last: float | None, values_of: str) -> Standing:
        """The steps of all processes in so many columns, `first` to `last` of them. Blocks: for threads."""
        from jaxprof.analysis.jobs.step_grid import STEP, standing

        columns = columns if values_of == STEP else min(columns, self.job_steps.windows(first, last))
        return standing(self.job_steps.grid(columns, first, last, values_of))


class JobReading:
    """One folder. One thread at a time reads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rolled: _RolledUp | None = _RolledUp(folder)
        """None from the first time that the sessions are to be followed."""
        self._sessions: _Sessions | None = None

    def read(self, progress: Progress = lambda done, count: None) -> JobInView | None:
        """The job as it is now; None if nothing has changed since the last call. Blocks: for threads, in which
        `progress` hears how many sessions were looked at, of how many.

        Raises FileRefusedError if the folder has no session that can be read.
        """
        if self._rolled is not None:
            found = self._rolled.read()
            if self._rolled.serves:
                return found
            self._rolled = None
        if self._sessions is None:
            self._sessions = _Sessions(self.folder)
        return self._sessions.read(progress)


class _RolledUp:
    """A job from its roll-ups, and from the few sessions that have none."""

    def __init__(self, folder: Path) -> None:
        self.serves = True
        """Whether the job can be shown so; otherwise its sessions are to be followed."""
        self._folder = folder
        self._seen: object = None
        self._due = 0.0

    def read(self) -> JobInView | None:
        """The job as it is now; None if nothing has changed, or too little time has gone by, or it cannot be shown so.
        Raises FileRefusedError if the folder cannot be read."""
        from jaxprof.rollup.grid import JobSteps
        from jaxprof.rollup.job import SESSIONS_READ, read_roll_ups

        began = time.monotonic()
        if began < self._due or (seen := _state_of(self._folder)) == self._seen:
            return None
        files = read_roll_ups(self._folder)
        rest = files.rest
        few = len(files.sessions) <= SESSIONS_READ
        if not files.rolled or len(rest) > SESSIONS_READ or (few and any(map(_may_grow, rest.values()))):
            self.serves = False
            return None
        files.read_rest()
        steps = JobSteps(files)
        found = _in_view(files.job_figures(), steps)
        self._seen = seen
        if any(process.status == "running" for process in found.figures.processes):
            ended = time.monotonic()
            self._due = ended + max(_LEAST_PAUSE_SECONDS, _PAUSE * (ended - began))
        return found


def _state_of(folder: Path) -> object:
    """Changes with every session and every roll-up in the folder."""
    from jaxprof.rollup import FOLDER

    state = []
    for place in (folder, folder / FOLDER / "processes"):
        try:
            with os.scandir(place) as entries:
                state += [(entry.name, (status := entry.stat()).st_size, status.st_mtime_ns) for entry in entries]
        except OSError:  # reading it says why
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
    """A job whose sessions are followed."""

    folder: Path
    _follower: JobFollower[Session] | None = None
    _figures: dict[int, ProcessFigures] = field(default_factory=dict)
    _traces: dict[int, LoopTrace | None] = field(default_factory=dict)
    _passes: dict[int, ProcessPasses | None] = field(default_factory=dict)
    _captures: dict[int, Mapping[str, CollectiveEvents]] = field(default_factory=dict)
    _notices: tuple[str, ...] | None = None

    def read(self, progress: Progress) -> JobInView | None:
        """As `JobReading.read`."""
        from jaxprof.analysis.arrivals import collective_events
        from jaxprof.analysis.jobs.figures import process_figures
        from jaxprof.analysis.jobs.job import figures_of
        from jaxprof.analysis.jobs.step_grid import alignment_notices, alignments, loop_trace, passes_of
        from jaxprof.session import Session
        from jaxprof.session.log.job_folder import JobFollower

        if self._follower is None:
            self._follower = JobFollower(self.folder, Session)
        changed = self._follower.poll(progress)
        job = self._follower.job
        if not changed and job.notices == self._notices:
            return None
        self._notices = job.notices
        for member in job.members:
            index = member.index
            if index in changed:
                self._figures[index] = process_figures(member)
                self._traces[index] = loop_trace(member, self._figures[index])
                self._passes[index] = passes_of(member)
                self._captures[index] = collective_events(index, member.session)
        here = [member.index for member in job.members]
        began = [(member.session.header.host, member.session.header.wall_seconds) for member in job.members]
        processes = tuple(self._figures[index] for index in here)
        captures = [self._captures[index] for index in here]
        figures = figures_of(str(job.folder), job.job, job.count, processes, captures, began, job.notices)
        laid = alignments([passes for index in here if (passes := self._passes[index]) is not None])
        shifts = {each.index: each.shift for each in laid}
        traces = [trace.shifted(shifts.get(index, 0)) for index in here if (trace := self._traces[index]) is not None]
        steps = _Traces(tuple(traces), tuple(here), alignment_notices(laid))
        return _in_view(figures, steps)


@dataclass(frozen=True, slots=True)
class _Traces:
    """The steps of sessions that were read."""

    traces: tuple[LoopTrace, ...]
    indices: tuple[int, ...]
    """Of all processes."""
    notices: tuple[str, ...]
    """Which of them were not laid beside the others by their numbers."""

    def grid(self, columns: int, first: float | None, last: float | None, values_of: str) -> StepGrid:
        """As `StepsOfJob.grid`."""
        from jaxprof.analysis.jobs.step_grid import grid_of_traces

        grid = grid_of_traces(self.traces, self.indices, columns, first, last, values_of)
        return replace(grid, notices=(*grid.notices, *self.notices))

    def windows(self, first: float | None, last: float | None) -> int:
        """As `StepsOfJob.windows`, at least 1."""
        counts = [trace.windows_between(first, last) for trace in self.traces]
        return max(1, round(median(counts))) if counts else 1


def _in_view(figures: JobFigures, steps: StepsOfJob) -> JobInView:
    """A job with what its steps cost, and what is to be said of how they lie beside each other."""
    from jaxprof.analysis.jobs.step_grid import OWN, lost_seconds, standing

    grid = steps.grid(_COLUMNS, None, None, OWN)
    lost = lost_seconds(standing(grid)) if len(grid.steps) else {}
    return JobInView(replace(figures, notices=(*figures.notices, *grid.notices)), steps, lost)
