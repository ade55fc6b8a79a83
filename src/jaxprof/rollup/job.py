"""Derive the figures of a job from the roll-ups of its processes, and from the sessions of processes without one.

A roll-up is used if it holds all of its session. While a job of many processes runs, the latest roll-ups are used, with
a notice of their age; of a few running processes the sessions themselves are read.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jaxprof.analysis.jobs.figures import LoopWindows, ProcessFigures, processes_named
from jaxprof.analysis.jobs.job import JobFigures, figures_of
from jaxprof.errors import FileRefusedError
from jaxprof.rollup import FOLDER
from jaxprof.session import Session
from jaxprof.session.log import load
from jaxprof.session.log.job_folder import (
    JobMember,
    ProcessReport,
    agreed,
    copies_in,
    job_sessions,
    no_session_in,
    process_report,
)
from jaxprof.session.log.reader import is_live
from jaxprof.session.log.state import with_urls
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.analysis.arrivals import CollectiveEvents
    from jaxprof.analysis.jobs.step_grid import LoopTrace
    from jaxprof.rollup.reading import RolledUp

SESSIONS_READ: Final = 16
"""Most sessions of running processes that are read whole; of more processes the latest roll-ups are used."""


def has_extra() -> bool:
    """Return whether the extra `query` is installed, which reading and writing roll-ups needs."""
    return all(find_spec(name) is not None for name in ("duckdb", "pyarrow"))


@dataclass(frozen=True, slots=True)
class MemberFigures:
    """What is derived from the session of one process."""

    figures: ProcessFigures
    trace: LoopTrace | None
    captures: Mapping[str, CollectiveEvents]
    began_seconds: float
    """When the recording began, in Unix time."""

    @classmethod
    def of(cls, member: JobMember[Session]) -> MemberFigures:
        """Derive the figures of a process."""
        from jaxprof.analysis.arrivals import collective_events
        from jaxprof.analysis.jobs.figures import process_figures
        from jaxprof.analysis.jobs.step_grid import loop_trace

        figures, events = process_figures(member), collective_events(member.index, member.session)
        return cls(figures, loop_trace(member, figures), events, member.session.header.wall_seconds)


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
        """Sessions of processes of which nothing was read so far."""
        return {index: path for index, path in self.sessions.items() if index not in self.figures}

    def take(self, read: MemberFigures) -> None:
        """Add what was derived from a session."""
        index = read.figures.index
        self.figures[index] = read.figures
        if read.trace is not None:
            self.traces[index] = read.trace
        self.began.append((read.figures.host, read.began_seconds))
        self.captures.append(read.captures)

    def read_rest(self) -> None:
        """Read the sessions of processes of which nothing was read so far. One that cannot be read adds a notice."""
        for index, path in self.rest.items():
            _take_session(self, index, path)

    def job_figures(self) -> JobFigures:
        """Return the figures of the job. Raises FileRefusedError if nothing of it was read."""
        if not self.figures:
            raise no_session_in(self.folder)
        notices = list(self.notices)
        copies = copies_in(self.reported, notices)
        job, count = agreed([process for process in self.reported if process.index not in copies], notices)
        processes = tuple(self.figures[index] for index in sorted(self.figures) if index not in copies)
        return figures_of(str(self.folder), job, count, processes, self.captures, self.began, notices)


def read_roll_ups(folder: Path) -> JobFiles:
    """Read the roll-ups in the folder of a job, and no session. Raises FileRefusedError if the folder cannot be
    read."""
    listed, notices = job_sessions(folder)
    files = JobFiles(folder, dict(listed), notices=notices)
    if (folder / FOLDER).is_dir():
        if has_extra():
            _take_roll_ups(files)
        elif len(listed) > SESSIONS_READ:
            notices.append("its roll-ups cannot be read without the extra `query`: the sessions are read")
    return files


def read_job_files(folder: Path) -> JobFiles:
    """Read the roll-ups of a job, and the sessions of processes without one. Raises FileRefusedError if the folder
    cannot be read."""
    files = read_roll_ups(folder)
    files.read_rest()
    return files


def read_job_figures(folder: Path) -> JobFigures:
    """Return the figures of the job in a folder. Raises FileRefusedError if nothing in it can be read."""
    return read_job_files(folder).job_figures()


def outdated(folder: Path, *, every: bool = False) -> tuple[list[Path], list[str]]:
    """Return the sessions of a job whose roll-up is missing or does not hold all of them (with `every`, all sessions),
    and notices of what was left out. Needs the extra `query`. Raises FileRefusedError if the folder has no session."""
    from jaxprof.rollup.reading import connected, processes_in, read_processes

    sessions, notices = job_sessions(folder)
    if not sessions:
        raise no_session_in(folder)
    with connected(folder) as connection:
        rolled = {} if every else read_processes(connection, folder, [])
        for index in without_parts(rolled, processes_in(connection, folder, "parts")):
            del rolled[index]
    return [path for index, path in sessions if index not in rolled or not rolled[index].is_of(path)], notices


def without_parts(rolled: Mapping[int, RolledUp], there: Container[int]) -> list[int]:
    """Return the processes whose roll-up lacks its table `parts`: it counts sample windows, but the process is not in
    `there`, the processes with rows in that table."""
    return [index for index, roll_up in rolled.items() if roll_up.windows and index not in there]


def rows_without_sessions(folder: Path) -> dict[Path, Any]:
    """Return the rows of the table of processes for the sessions that a roll-up holds whole, by session. Needs the
    extra `query`. Raises FileRefusedError if the folder cannot be read."""
    from jaxprof.rollup.reading import connected, process_rows, read_processes

    if not (folder / FOLDER).is_dir():
        return {}
    sessions = dict(job_sessions(folder)[0])
    with connected(folder) as connection:
        rolled = read_processes(connection, folder, [])
        whole = [index for index, path in sessions.items() if index in rolled and rolled[index].is_of(path)]
        rows = process_rows(connection, folder, whole)
    return {sessions[index]: _with_path(row, sessions[index]) for index, row in rows.items()}


def _with_path(row: Any, path: Path) -> Any:
    index = row.schema.get_field_index("path")
    return row.set_column(index, row.schema.field(index), [[with_urls(str(path))]])


def usable(rolled: Mapping[int, RolledUp], sessions: Mapping[int, Path]) -> tuple[set[int], float | None]:
    """Return the processes whose roll-up is used, and the age in seconds of the oldest one of a running process; None
    if no process runs."""
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


def _take_roll_ups(files: JobFiles) -> None:
    from jaxprof.rollup.reading import connected, read_collectives, read_processes, read_windows

    folder, sessions = files.folder, files.sessions
    with connected(folder) as connection:
        rolled = read_processes(connection, folder, files.notices)
        chosen, age = usable(rolled, sessions)
        files.rolled = {index: rolled[index] for index in sorted(chosen)}
        windows = read_windows(connection, folder, files.rolled, files.notices)
        for index in without_parts(rolled, windows):
            if index in sessions:
                files.rolled.pop(index, None)  # a table is damaged or not there yet: the session is read instead
        hosts = {index: roll_up.figures.host for index, roll_up in files.rolled.items()}
        if hosts:  # without one, all roll-ups are of another version, and a notice says so
            files.captures += read_collectives(connection, folder, hosts, files.notices)
    for index, roll_up in files.rolled.items():
        figures, count = roll_up.figures, roll_up.process_count or 0
        path = sessions.get(index, folder / roll_up.path)
        files.figures[index] = replace(
            figures, index=index, path=str(path), windows=windows.get(index, LoopWindows.of())
        )
        files.began.append((figures.host, roll_up.began_seconds))
        files.reported.append(ProcessReport(index, roll_up.job, count, roll_up.jaxprof, roll_up.session_id))
    alone = sorted(index for index in chosen if index not in sessions)
    if alone:
        files.notices.append(f"of {processes_named(alone)} only the roll-up exists")
    if age is not None:
        files.notices.append(f"the job is running: figures of its processes are up to {seconds(age)} old")


def _take_session(files: JobFiles, index: int, path: Path) -> None:
    try:
        session = load(path, Session)
    except FileRefusedError as error:
        files.notices.append(error.what)
        return
    member = JobMember(index, path, session, not session.complete and is_live(path))
    files.take(MemberFigures.of(member))
    files.reported.append(process_report(member))
