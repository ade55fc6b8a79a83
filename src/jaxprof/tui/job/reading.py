"""Reads a job's folder in threads, and derives there everything that the Job screen shows.

A job that is over, or has many processes, is read from its roll-ups, if they are valid; a session is read only once its
process is opened. Otherwise the sessions are followed: each reading continues where the last one ended, so that every
event is folded once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.base.values import frozen
from jaxprof.tui import clock

if TYPE_CHECKING:
    from jaxprof.jobs.findings import JobFigures
    from jaxprof.jobs.folder import JobFollower
    from jaxprof.jobs.job import JobSteps, ProcessFile
    from jaxprof.jobs.step_grid import StepGrid

_LOSS_COLUMNS = 100
"""Columns of the grid from which the lost seconds are computed."""
_LEAST_PAUSE_SECONDS = 5.0
"""Shortest pause between two readings of the roll-ups of a running job."""
_PAUSE_FACTOR = 10.0
"""The pause between two readings of the roll-ups of a running job is this many times the duration of a reading."""


@frozen
class JobInView:
    """The result of a reading of the folder."""

    figures: JobFigures
    job_steps: JobSteps
    lost_seconds: Mapping[int, float]
    """Estimated seconds that a process's own work takes more than that of the median process, by process."""

    def steps(self, columns: int, values_of: str) -> StepGrid:
        """Return all steps of all processes in so many columns. Blocks: for threads."""
        from jaxprof.jobs.step_grid import STEP

        columns = columns if values_of == STEP else min(columns, self.job_steps.windows)
        return self.job_steps.grid(columns, values_of)


class JobReading:
    """Reads one folder. Only one thread at a time may call it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._follower: JobFollower | None = None
        """Follows the sessions, once roll-ups do not suffice."""
        self._read: dict[int, ProcessFile] = {}
        self._notices: list[str] = []
        self._seen: object = None
        """Fingerprint of the folder at the last reading of its roll-ups."""
        self._due = 0.0

    def read(self) -> JobInView | None:
        """Return the job as it is now; None if nothing has changed since the last call, or the next reading is not due.
        Blocks: for threads. Raises FileRefusedError if the folder has no session that can be read."""
        if self._follower is not None:
            return self._follow(self._follower)
        from jaxprof.jobs.folder import JobFollower, may_grow
        from jaxprof.jobs.job import SESSIONS_READ, JobSteps, read_roll_ups

        began = clock.monotonic()
        if began < self._due or (seen := _fingerprint(self.folder)) == self._seen:
            return None
        files = read_roll_ups(self.folder)
        rest = files.rest
        few = len(files.sessions) <= SESSIONS_READ
        if not files.rolled or len(rest) > SESSIONS_READ or (few and any(map(may_grow, rest.values()))):
            self._follower = JobFollower(self.folder)
            return self._follow(self._follower)
        files.read_rest()
        job = _in_view(files.job_figures(), JobSteps(files))
        self._seen = seen
        if any(process.status == "running" for process in job.figures.processes):
            ended = clock.monotonic()
            self._due = ended + max(_LEAST_PAUSE_SECONDS, _PAUSE_FACTOR * (ended - began))
        return job

    def _follow(self, follower: JobFollower) -> JobInView | None:
        """Return the job from its sessions, of which only what was added is read."""
        from jaxprof.jobs.job import JobFiles, JobSteps, ProcessFile

        changed = follower.poll()
        if not changed and follower.notices == self._notices and self._read:
            return None
        self._notices = follower.notices
        files = JobFiles(follower.folder, {}, notices=follower.notices)
        for index, member in sorted(follower.members.items()):
            if index in changed:
                self._read[index] = ProcessFile(member.path, member.session, index=index)
            files.take(self._read[index])
        return _in_view(files.job_figures(), JobSteps(files))


def _fingerprint(folder: Path) -> object:
    """Return a value that changes with every session and every roll-up in the folder."""
    from jaxprof.jobs.folder import ROLL_UP_FOLDER

    state = []
    for place in (folder, folder / ROLL_UP_FOLDER / "processes"):
        try:
            with os.scandir(place) as entries:
                state += [(entry.name, (status := entry.stat()).st_size, status.st_mtime_ns) for entry in entries]
        except OSError:  # `read_roll_ups` reports the error
            state.append((str(place), 0, 0))
    return sorted(state)


def _in_view(figures: JobFigures, steps: JobSteps) -> JobInView:
    """Return a job with the seconds that each process loses, and the notices about how its steps are numbered."""
    grid = steps.grid(_LOSS_COLUMNS)
    lost = grid.lost_seconds if len(grid.steps) else {}
    return JobInView(replace(figures, notices=(*figures.notices, *grid.notices)), steps, lost)
