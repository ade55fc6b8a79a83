"""The figures of a job from the roll-ups of its processes, and from the sessions of those that have none.

A roll-up counts where it holds all of its session. While a job of many processes runs, what was rolled up last has to
do, and is said to be that old; of a few processes the sessions themselves are read.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jaxprof.analysis.jobs.figures import ProcessFigures, processes_named
from jaxprof.analysis.jobs.job import JobFigures, figures_of
from jaxprof.errors import FileRefusedError
from jaxprof.rollup import FOLDER
from jaxprof.session import Session
from jaxprof.session.log import load
from jaxprof.session.log.job_folder import (
    JobMember,
    ProcessSaid,
    agreed,
    copies_in,
    job_sessions,
    no_session_in,
    process_said,
)
from jaxprof.session.log.reader import is_live
from jaxprof.session.log.state import with_urls
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.analysis.arrivals import CollectiveEvents
    from jaxprof.analysis.jobs.step_grid import LoopTrace
    from jaxprof.rollup.reading import RolledUp

SESSIONS_READ: Final = 16
"""So many sessions of running processes are read whole; of more, what was rolled up last has to do."""


def has_extra() -> bool:
    """Whether roll-ups can be written and read: they need the extra `query`."""
    return all(find_spec(name) is not None for name in ("duckdb", "pyarrow"))


@dataclass(slots=True)
class JobFiles:
    """What was read of the folder of a job, by process."""

    folder: Path
    sessions: Mapping[int, Path]
    rolled: dict[int, RolledUp] = field(default_factory=dict)
    """The roll-ups that count."""
    figures: dict[int, ProcessFigures] = field(default_factory=dict)
    traces: dict[int, LoopTrace] = field(default_factory=dict)
    """Of sessions that were read, where a loop was seen."""
    said: list[ProcessSaid] = field(default_factory=list)
    began: list[tuple[str, float]] = field(default_factory=list)
    """Host, and when the recording began, in Unix time."""
    captures: list[Mapping[str, CollectiveEvents]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def rest(self) -> dict[int, Path]:
        """The sessions of which nothing was read so far."""
        return {index: path for index, path in self.sessions.items() if index not in self.figures}

    def read_rest(self) -> None:
        """Reads them; of those that cannot be read there is a notice."""
        for index, path in self.rest.items():
            _take_session(self, index, path)

    def job_figures(self) -> JobFigures:
        """The job in figures. Raises FileRefusedError if nothing of it was read."""
        if not self.figures:
            raise no_session_in(self.folder)
        notices = list(self.notices)
        copies = copies_in(self.said, notices)
        job, count = agreed([each for each in self.said if each.index not in copies], notices)
        processes = tuple(self.figures[index] for index in sorted(self.figures) if index not in copies)
        return figures_of(str(self.folder), job, count, processes, self.captures, self.began, notices)


def read_roll_ups(folder: Path) -> JobFiles:
    """What the roll-ups in the folder of a job hold; no session is read. Raises FileRefusedError if the folder cannot
    be read."""
    listed, notices = job_sessions(folder)
    found = JobFiles(folder, dict(listed), notices=notices)
    if (folder / FOLDER).is_dir():
        if has_extra():
            _take_roll_ups(found)
        elif len(listed) > SESSIONS_READ:
            notices.append("its roll-ups cannot be read without the extra `query`: the sessions are read")
    return found


def read_job_files(folder: Path) -> JobFiles:
    """The roll-ups of a job, and the sessions of those that have none. Raises FileRefusedError if the folder cannot be
    read."""
    found = read_roll_ups(folder)
    found.read_rest()
    return found


def read_job_figures(folder: Path) -> JobFigures:
    """The job in figures. Raises FileRefusedError if there is nothing in the folder that can be read."""
    return read_job_files(folder).job_figures()


def outdated(folder: Path, *, every: bool = False) -> tuple[list[Path], list[str]]:
    """The sessions of a job whose roll-up does not hold all of them (or all sessions, with `every`), and what was left
    out. Needs the extra. Raises FileRefusedError if the folder has no session."""
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
    """The processes whose roll-up is not whole: it tells of sample windows, and none of them is there."""
    return [index for index, each in rolled.items() if each.windows and index not in there]


def rows_without_sessions(folder: Path) -> dict[Path, Any]:
    """By session, the row of the table of processes, of those of which a roll-up holds all. Needs the extra. Raises
    FileRefusedError if the folder cannot be read."""
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
    place = row.schema.get_field_index("path")
    return row.set_column(place, row.schema.field(place), [[with_urls(str(path))]])


def usable(rolled: Mapping[int, RolledUp], sessions: Mapping[int, Path]) -> tuple[set[int], float | None]:
    """Of which processes the roll-up counts, and how old the oldest one of a running process is; None without."""
    whole = {index for index, each in rolled.items() if index not in sessions or each.is_of(sessions[index])}
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


def _take_roll_ups(found: JobFiles) -> None:
    from jaxprof.rollup.reading import connected, read_collectives, read_processes, read_windows

    folder, sessions = found.folder, found.sessions
    with connected(folder) as connection:
        rolled = read_processes(connection, folder, found.notices)
        chosen, age = usable(rolled, sessions)
        found.rolled = {index: rolled[index] for index in sorted(chosen)}
        hosts = {index: each.figures.host for index, each in found.rolled.items()}
        windows = read_windows(connection, folder, found.rolled, found.notices)
        for index in [index for index in without_parts(rolled, windows) if index in found.rolled and index in sessions]:
            del found.rolled[index]  # a table is damaged or not there yet: the session has it
            del hosts[index]
        if hosts:  # else what is there is of another version, which was said
            found.captures += read_collectives(connection, folder, hosts, found.notices)
    for index, each in found.rolled.items():
        path = sessions.get(index, folder / each.path)
        found.figures[index] = replace(each.figures, index=index, path=str(path), windows=windows.get(index, ()))
        found.began.append((each.figures.host, each.began_seconds))
        count = each.process_count or 0
        found.said.append(ProcessSaid(index, each.job, count, each.jaxprof, each.session_id))
    alone = sorted(index for index in chosen if index not in sessions)
    if alone:
        found.notices.append(f"of {processes_named(alone)} only the roll-up is here")
    if age is not None:
        found.notices.append(f"the job is running: figures of its processes are up to {seconds(age)} old")


def _take_session(found: JobFiles, index: int, path: Path) -> None:
    from jaxprof.analysis.arrivals import collective_events
    from jaxprof.analysis.jobs.figures import process_figures
    from jaxprof.analysis.jobs.step_grid import loop_trace

    try:
        session = load(path, Session)
    except FileRefusedError as error:
        found.notices.append(error.what)
        return
    member = JobMember(index, path, session, not session.complete and is_live(path))
    figures = found.figures[index] = process_figures(member)
    trace = loop_trace(member, figures)
    if trace is not None:
        found.traces[index] = trace
    found.began.append((session.header.host, session.header.wall_seconds))
    found.said.append(process_said(member))
    found.captures.append(collective_events(index, session))
