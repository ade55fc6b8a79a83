"""Read the folder of a job: `run.jaxprof.d/` with one session for each of its processes, `process-00002.jaxprof`.

No other file is required in it: processes on several hosts write into it without knowing of each other, and any of its
sessions can be opened alone. A process that was started again leaves two sessions; the newer one counts. A poll of
growing sessions reads only what has been added since the last one, and keeps no file open in between, so that a job of
a thousand processes does not take as many descriptors.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Collection, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from jaxprof.base.errors import FileRefusedError, system_words
from jaxprof.base.limits import PROCESSES
from jaxprof.base.units import and_more
from jaxprof.base.values import frozen
from jaxprof.session.files import attempts_in
from jaxprof.session.fold import Session
from jaxprof.session.lines import Follower, is_live

_MOST_NAMED = 8
ROLL_UP_FOLDER = "rollup"
"""Name of the folder of roll-ups in the folder of a job. It holds a folder for each table."""
ROLL_UP_ENDING = ".parquet"
"""Ending of the files in the folder of a table, one for each process."""
ROLL_UP_FORMAT = 6
"""Version of the tables. Count it up whenever the meaning of a table changes."""


def has_extra() -> bool:
    """Return whether the extra `query` is installed, which reading and writing roll-ups needs."""
    return all(find_spec(name) is not None for name in ("duckdb", "pyarrow"))


def job_sessions(folder: Path) -> tuple[list[tuple[int, Path]], list[str]]:
    """Return index and session of each process of the job, the newest if it was started again; and what was left out, a
    line each. No session is read. Raises FileRefusedError for a folder that cannot be read."""
    notices: list[str] = []
    newest: dict[int, Path] = {}
    try:
        paths = list(folder.iterdir())
    except OSError as error:
        raise FileRefusedError(
            f"{folder} cannot be read: {system_words(error)}", "Name the folder of a job."
        ) from error
    attempts = attempts_in(paths)
    if len(attempts) > PROCESSES.most:
        notices.append(f"the folder holds {PROCESSES.words}; the others are left out. {PROCESSES.hint}")
    for index, _, path in attempts[: PROCESSES.most]:
        if index in newest:
            notices.append(f"process {index} was started again: {newest[index].name} is left out")
        newest[index] = path
    return sorted(newest.items()), notices


def no_session_in(folder: Path | str) -> FileRefusedError:
    """Return the error for a job's folder in which there is nothing to read."""
    return FileRefusedError(
        f"{folder} holds no session of a process",
        "`jaxprof script -n 2 train.py` writes such a folder; its sessions are named process-00000.jaxprof.",
    )


def check_job(folder: Path) -> None:
    """Raise FileRefusedError unless there is a session in the folder. Reads none."""
    if not job_sessions(folder)[0]:
        raise no_session_in(folder)


@frozen
class ProcessReport:
    """What one process reports of its job."""

    index: int
    job: str
    count: int
    """Number of processes; 0 if it is unknown."""
    version: str
    """Version of the jaxprof that recorded it."""
    session: str
    """Identity of its session."""


def copies_in(reports: Iterable[ProcessReport], notices: list[str]) -> set[int]:
    """Return the processes whose session is a copy of another process's, under another name; among equal sessions, the
    one with the least index is the original. The copies are added to the notices."""
    first: dict[str, int] = {}
    copies: dict[int, int] = {}
    for report in sorted(reports, key=lambda report: report.index):
        original = first.setdefault(report.session or f"process {report.index}", report.index)
        if original != report.index:
            copies[report.index] = original
    for original in sorted(set(copies.values())):
        of_it = [str(index) for index, other in copies.items() if other == original]
        what = (
            f"the session of process {of_it[0]} is a copy of that of process {original}, and is left out"
            if len(of_it) == 1
            else f"{len(of_it)} sessions are copies of that of process {original}, and are left out: "
            + and_more(of_it, _MOST_NAMED)
        )
        notices.append(what)
    return set(copies)


def job_identity(reports: Sequence[ProcessReport], notices: list[str]) -> tuple[str, int]:
    """Return the job's id and number of processes; contradictions go to the notices. `reports` is not empty."""
    counts = {report.count for report in reports} - {0}
    if not counts:
        notices.append("the number of processes is unknown: neither the launcher nor JAX reported it")
    jobs = sorted({report.job for report in reports if report.job})
    if len(jobs) > 1:
        notices.append(f"sessions of {len(jobs)} jobs are in one folder: {and_more(jobs, _MOST_NAMED)}")
    if len(counts) > 1:
        notices.append(
            f"the processes report different numbers of processes: {and_more([*map(str, sorted(counts))], _MOST_NAMED)}"
        )
    versions = {report.version for report in reports}
    if len(versions) > 1:
        notices.append(f"they were recorded by several versions of jaxprof: {and_more(sorted(versions), _MOST_NAMED)}")
    there = {report.index for report in reports}
    count = min(max([*counts, max(there) + 1]), PROCESSES.most)
    notices += missing_of(count, there)
    return next(iter(jobs), ""), count


def missing_of(count: int, there: Collection[int]) -> list[str]:
    """Return a line that lists which of `count` processes are not `there`; none if all are."""
    missing = [index for index in range(count) if index not in there]
    if not missing:
        return []
    return [f"{len(missing)} of {count} processes have no session here: {and_more([*map(str, missing)], _MOST_NAMED)}"]


SILENCE_SECONDS = 30.0
"""A writer on another host, whose lock is not seen here, counts as gone after this long without an event."""


def may_grow(session: Path) -> bool:
    """Return whether a session seems to be written, also from another host: its lock is held, or it has grown."""
    try:
        return is_live(session) or time.time() - session.stat().st_mtime < SILENCE_SECONDS
    except OSError:
        return False


def is_growing(session: Session) -> bool:
    """Return whether a session is still being written, as far as is known."""
    return not (session.deserted or session.complete)


class JobFollower:
    """Follows the sessions of a job. One thread at a time may use it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._host = socket.gethostname()
        self.members: dict[int, Follower[Session]] = {}
        """Processes whose sessions could be read, by index."""
        self._sizes: dict[Path, int] = {}
        """Size of each session at the last reading, in bytes."""
        self._refused: dict[Path, str] = {}
        self._notices: list[str] = []

    def poll(self) -> frozenset[int]:
        """Read what has come since the last call; return the processes that have changed.

        Raises FileRefusedError if the folder cannot be read; what was read of it before stays.
        """
        sessions, self._notices = job_sessions(self.folder)
        changed = {index for index, path in sessions if self._read(index, path)}
        there = {path for _, path in sessions}
        self._refused = {path: what for path, what in self._refused.items() if path in there}
        for member in self.members.values():
            if member.path not in there:
                self._notices.append(f"{member.path.name} was deleted; what was read of it is shown")
        return frozenset(changed)

    @property
    def notices(self) -> list[str]:
        """Notices of what could not be read or was left out, a line each."""
        return [*self._refused.values(), *self._notices]

    def _read(self, index: int, path: Path) -> bool:
        """Read what has been added to one session; return whether anything of it has changed."""
        try:
            size = path.stat().st_size
        except OSError:
            return False  # deleted meanwhile
        before, known = self.members.get(index), self._sizes.get(path)
        was_live = before is not None and is_growing(before.session)
        grown = known != size
        if grown:
            self._sizes[path] = size
            follower = before
            try:
                if follower is None or follower.path != path:
                    follower = Follower(path, Session)
                for _ in follower.take():
                    pass
                follower.rest()
            except FileRefusedError as error:
                self._refused[path] = error.what
                return True
            self._refused.pop(path, None)
            self.members[index] = follower
        member = self.members.get(index)
        if member is None or member.path != path:
            return False
        here = member.session.header.host == self._host  # a lock is seen only on its own host
        live = not member.session.complete and (is_live if here else may_grow)(member.path)
        member.session.desert(deserted=not live)
        return grown or before is None or is_growing(member.session) != was_live
