"""Read a job from its folder: its figures, and its steps.

A job is what the sessions of its processes say. Where roll-ups lie beside them, they save reading a session: a roll-up
is used if it holds all of it. While a job of many processes runs, the latest roll-ups are used, with a notice of their
age; the sessions of a few running processes are read themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Literal

import numpy as np

from jaxprof.base.errors import FileRefusedError
from jaxprof.base.units import seconds
from jaxprof.findings.program_result import program_result
from jaxprof.jobs.arrivals import CollectiveEvents, collective_events
from jaxprof.jobs.figures import LoopWindows, ProcessFigures, process_figures, processes_named
from jaxprof.jobs.findings import JobFigures, figures_of
from jaxprof.jobs.folder import (
    ROLL_UP_FOLDER,
    ProcessReport,
    copies_in,
    has_extra,
    job_identity,
    job_sessions,
    no_session_in,
)
from jaxprof.jobs.step_grid import (
    MOST_BLOCKS,
    OWN,
    PARTS_OF,
    LoopTrace,
    StepGrid,
    add_trace,
    assemble_grid,
    column_edges,
    in_columns,
    no_sums,
    trace_of,
)
from jaxprof.session import Session, load
from jaxprof.session.lines import is_live

if TYPE_CHECKING:
    from jaxprof.jobs.roll_ups import RolledUp


@dataclass(frozen=True)
class ProcessFile:
    """The session of one process of a job, with results that are derived on demand."""

    path: Path
    session: Session
    index: int
    bytes: int = 0
    """Size of the session's file before it was read."""
    modified_ns: int = 0

    @cached_property
    def figures(self) -> ProcessFigures:
        return process_figures(self.index, str(self.path), self.session)

    @cached_property
    def trace(self) -> LoopTrace | None:
        """Hot loop of the process; None if none was seen."""
        run = next((run for run in self.session.programs if run.program is not None), None)
        if run is None or run.program is None:
            return None
        where = self.figures.loop.where if self.figures.loop is not None else None
        taken = program_result(self.session, run.id).steps_taken
        return trace_of(where, self.figures.windows, taken, run.program.steps)

    @cached_property
    def captures(self) -> Mapping[str, CollectiveEvents]:
        """Captured collectives of the process by name."""
        return collective_events(self.index, self.session)

    @property
    def clock_seconds(self) -> float:
        """Unix time minus the monotonic time of the session."""
        return self.session.header.wall_seconds - self.session.header.monotonic_seconds

    @cached_property
    def extent(self) -> tuple[float | None, float | None]:
        """Begin and end of the hot loop, in the unit of the trace; None for both without a loop."""
        extent = self.trace.extent if self.trace is not None else None
        return extent if extent is not None else (None, None)


_LEAST_BLOCKS = 4
"""Fewest blocks of several steps in a column of a grid: a block on a bound is then a small part of a column."""
SESSIONS_READ = 16
"""Most sessions of running processes that are read whole; for more processes the latest roll-ups are used."""


@dataclass(slots=True)
class JobFiles:
    """What was read of the folder of a job. Mappings have the index of a process as their key."""

    folder: Path
    sessions: Mapping[int, Path]
    rolled: dict[int, RolledUp] = field(default_factory=dict)
    """Roll-ups that are used."""
    figures: dict[int, ProcessFigures] = field(default_factory=dict)
    traces: dict[int, LoopTrace] = field(default_factory=dict)
    """Hot loops of the sessions that were read."""
    reported: list[ProcessReport] = field(default_factory=list)
    """What each process reports about its job."""
    began: list[tuple[str, float]] = field(default_factory=list)
    """Host of each process, and when its recording began, in Unix time."""
    captures: list[Mapping[str, CollectiveEvents]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def rest(self) -> dict[int, Path]:
        """Sessions of which nothing was read so far."""
        return {index: path for index, path in self.sessions.items() if index not in self.figures}

    def take(self, read: ProcessFile) -> None:
        """Add what is derived from the session of a process."""
        self.figures[read.index] = read.figures
        if read.trace is not None:
            self.traces[read.index] = read.trace
        header = read.session.header
        self.began.append((read.figures.host, header.wall_seconds))
        self.captures.append(read.captures)
        count = read.session.process_count
        self.reported.append(ProcessReport(read.index, header.job, count, header.jaxprof, header.session))

    def read_rest(self) -> None:
        """Read the sessions of which nothing was read so far. One that cannot be read adds a notice."""
        for index, path in self.rest.items():
            try:
                session = load(path, Session)
            except FileRefusedError as error:
                self.notices.append(error.what)
            else:
                self.take(ProcessFile(path, session, index=index))

    def job_figures(self) -> JobFigures:
        """Return the figures of the job. Raises FileRefusedError if nothing of it was read."""
        if not self.figures:
            raise no_session_in(self.folder)
        notices = list(self.notices)
        copies = copies_in(self.reported, notices)
        job, count = job_identity([process for process in self.reported if process.index not in copies], notices)
        processes = tuple(self.figures[index] for index in sorted(self.figures) if index not in copies)
        return figures_of(str(self.folder), job, count, processes, self.captures, self.began, notices)


class JobSteps:
    """The steps of a job whose files were read."""

    def __init__(self, files: JobFiles) -> None:
        self._folder = files.folder
        loops = {index: roll_up for index, roll_up in files.rolled.items() if roll_up.unit and roll_up.extent}
        both: dict[int, RolledUp | LoopTrace] = {**loops, **files.traces}
        numbered = sum(loop.unit == "step" for loop in both.values())
        self._unit: Literal["step", "time"] = "step" if 2 * numbered > len(both) else "time"
        self._used = {index: loop for index, loop in sorted(both.items()) if loop.unit == self._unit}
        self._left_out = sorted(both.keys() - self._used.keys())
        self._indices = sorted({*files.figures, *files.sessions})

    def grid(self, columns: int = 100, values_of: str = OWN) -> StepGrid:
        """Return all steps in at most `columns` columns. Raises KeyError for `values_of` that a grid cannot show."""
        parts = PARTS_OF[values_of]
        extents = {index: extent for index, loop in self._used.items() if (extent := loop.extent) is not None}
        rolled = [index for index in extents if not isinstance(self._used[index], LoopTrace)]
        if rolled and any(extents[index][1] - extents[index][0] > MOST_BLOCKS for index in rolled):
            columns = min(columns, MOST_BLOCKS // _LEAST_BLOCKS)
        edges = column_edges(extents.values(), columns, whole=self._unit == "step")
        rows = {index: row for row, index in enumerate(self._indices)}
        sums = no_sums(len(rows), len(edges) - 1)
        notices: list[str] = []
        blocks = None
        if rolled:
            from jaxprof.jobs.roll_ups import open_roll_ups

            with open_roll_ups(self._folder, notices) as roll_ups:
                blocks = roll_ups.blocks(rolled, parts)
        if blocks is not None:
            processes, begins, ends, *values = blocks
            at = np.searchsorted(rolled, processes)
            firsts, lasts = np.transpose([extents[index] for index in rolled])
            places = np.stack([np.maximum(begins, firsts[at]), np.minimum(ends, lasts[at])], axis=1)
            row_of = np.asarray([rows[index] for index in rolled])[at]
            sums += in_columns(places, edges, *values, rows=row_of, count=len(rows))
        for index, loop in self._used.items():
            if isinstance(loop, LoopTrace):
                add_trace(sums, rows[index], loop, edges, parts)
        counters = {loop.numbered_by or "" for loop in self._used.values()}
        grid = assemble_grid(self._indices, edges, sums, self._unit, values_of, counters, extents, self._left_out)
        return replace(grid, notices=(*notices, *grid.notices))

    @property
    def windows(self) -> int:
        """Number of sample windows of the median process, at least 1: narrower columns would only repeat values."""
        loops = self._used.values()
        counts = [len(loop.windows) if isinstance(loop, LoopTrace) else loop.windows for loop in loops]
        return max(1, round(median(counts))) if counts else 1


def read_roll_ups(folder: Path) -> JobFiles:
    """Read the roll-ups of a job, and no session. Raises FileRefusedError if the folder cannot be read."""
    listed, notices = job_sessions(folder)
    files = JobFiles(folder, dict(listed), notices=notices)
    if not (folder / ROLL_UP_FOLDER).is_dir():
        return files
    if not has_extra():
        if len(listed) > SESSIONS_READ:
            notices.append("its roll-ups cannot be read without the extra `query`: the sessions are read")
        return files
    from jaxprof.jobs.roll_ups import open_roll_ups, without_parts

    sessions = files.sessions
    with open_roll_ups(folder, notices) as roll_ups:
        rolled = roll_ups.processes()
        chosen, age = usable(rolled, sessions)
        files.rolled = {index: rolled[index] for index in sorted(chosen)}
        windows = roll_ups.windows(files.rolled)
        for index in without_parts(rolled, windows):
            if index in sessions:
                files.rolled.pop(index, None)  # a table is damaged or not there yet: the session is read instead
        hosts = {index: roll_up.figures.host for index, roll_up in files.rolled.items()}
        if hosts:  # without one, all roll-ups are of another version, and a notice says so
            files.captures += roll_ups.collectives(hosts)
    for index, roll_up in files.rolled.items():
        figures, count = roll_up.figures, roll_up.process_count or 0
        path = sessions.get(index, folder / Path(roll_up.path).name)
        files.figures[index] = replace(
            figures, index=index, path=str(path), windows=windows.get(index, LoopWindows.of())
        )
        files.began.append((figures.host, roll_up.began_unix_seconds))
        files.reported.append(ProcessReport(index, roll_up.job, count, roll_up.jaxprof, roll_up.session_id))
    alone = sorted(index for index in chosen if index not in sessions)
    if alone:
        notices.append(f"of {processes_named(alone)} only the roll-up exists")
    if age is not None:
        notices.append(f"the job is running: figures of its processes are up to {seconds(age)} old")
    return files


def read_job_files(folder: Path) -> JobFiles:
    """Read a job's roll-ups, and the sessions without one. Raises FileRefusedError if the folder cannot be read."""
    files = read_roll_ups(folder)
    files.read_rest()
    return files


def read_job_figures(folder: Path) -> JobFigures:
    """Return the figures of the job in a folder. Raises FileRefusedError if nothing in it can be read."""
    return read_job_files(folder).job_figures()


def usable(rolled: Mapping[int, RolledUp], sessions: Mapping[int, Path]) -> tuple[set[int], float | None]:
    """Return the processes whose roll-up is used, and the oldest age in seconds of one that runs, or None."""
    whole = {index for index, roll_up in rolled.items() if index not in sessions or roll_up.is_of(sessions[index])}
    rest = [index for index in sessions if index not in whole]
    if len(rest) <= SESSIONS_READ:
        return whole, None
    running = {
        index
        for index in rest
        if index in rolled and rolled[index].path == sessions[index].name and is_live(sessions[index])
    }
    age = max((rolled[index].age_seconds for index in running), default=None)
    return whole | running, age
