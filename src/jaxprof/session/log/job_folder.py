"""The folder of a job: `run.jaxprof.d/` with one session for each of its processes, `process-00002.jaxprof`.

Nothing else is in it that has to be there: processes on several hosts write into it without knowing of each other, and
any of its sessions can be opened alone. A process that was started again leaves two; the newer one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Final, Generic, TypeVar

from jaxprof.errors import FileRefusedError, system_words
from jaxprof.limits import PROCESSES
from jaxprof.session.fold import Session
from jaxprof.session.log.codec import EXTENSION
from jaxprof.session.log.library import is_live
from jaxprof.session.log.reader import load

JOB_EXTENSION: Final = f"{EXTENSION}.d"
_NAME: Final = re.compile(r"process-(\d{1,9})(?:-(\d{1,9}))?" + re.escape(EXTENSION))
_UNSAFE: Final = re.compile(r"[^\w.+-]+")
_MOST_NAMED: Final = 8

S = TypeVar("S", bound=Session)


def is_job_folder(path: Path) -> bool:
    """Whether it has the name of one, or is a folder that holds sessions as one does."""
    if path.name.endswith(JOB_EXTENSION):
        return True
    return path.is_dir() and any(_NAME.fullmatch(entry.name) for entry in path.iterdir())


def job_folder_for(program: str, job: str, directory: Path) -> Path:
    """Where the processes of `job` put their sessions if nobody says: `train.slurm-1234.0.jaxprof.d`. All of them come
    to the same name."""
    stem = _UNSAFE.sub("-", Path(program).stem) or "program"
    return directory / f"{stem}.{_UNSAFE.sub('-', job)}{JOB_EXTENSION}"


def process_number(name: str) -> int | None:
    """Whose session a file of that name is, in the folder of a job; None for other names."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def session_path(folder: Path, index: int) -> Path:
    """A free name for the session of process `index`."""
    names = chain([""], (f"-{number}" for number in count(2)))
    paths = (folder / f"process-{index:05}{again}{EXTENSION}" for again in names)
    return next(path for path in paths if not path.exists())


@dataclass(frozen=True, slots=True)
class JobMember(Generic[S]):
    """One process of a job, as its session tells it."""

    index: int
    path: Path
    session: S
    live: bool
    """Whether it is still being written."""


@dataclass(frozen=True, slots=True)
class RecordedJob(Generic[S]):
    """What is in the folder of a job."""

    folder: Path
    job: str
    count: int
    """How many processes it has, as they themselves say; at least those that are here."""
    members: tuple[JobMember[S], ...]
    """Those that could be read, by index."""
    notices: tuple[str, ...] = field(default=())
    """What is missing or could not be used, a line each."""

    @property
    def missing(self) -> tuple[int, ...]:
        """The processes of which there is no session that can be read."""
        there = {member.index for member in self.members}
        return tuple(index for index in range(self.count) if index not in there)


def read_job(folder: Path, kind: type[S]) -> RecordedJob[S]:
    """All sessions of the folder, each folded into a `kind`.

    What cannot be used is told in the notices. Raises FileRefusedError if there is no session in it that can be read.
    """
    notices: list[str] = []
    members: dict[int, JobMember[S]] = {}
    for index, _, path in _sorted_names(folder, notices):
        try:
            session = load(path, kind)
        except FileRefusedError as error:
            notices.append(error.what)
            continue
        known = members.get(index)
        if known is not None:
            notices.append(f"process {index} was started again: {known.path.name} is left out")
        members[index] = JobMember(index, path, session, not session.complete and is_live(path))
    if not members:
        raise FileRefusedError(
            f"{folder} holds no session of a process",
            "`jaxprof script -n 2 train.py` writes such a folder; its sessions are named process-00000.jaxprof.",
        )
    chosen = [members[index] for index in sorted(members)]
    counts = {member.session.process_count for member in chosen}
    jobs = {member.session.header.job for member in chosen if member.session.header.job}
    if len(jobs) > 1:
        notices.append(f"sessions of {len(jobs)} jobs are in one folder: {_named(sorted(jobs))}")
    if len(counts) > 1:
        notices.append(f"the processes do not agree how many there are: {_named(map(str, sorted(counts)))}")
    versions = {member.session.header.jaxprof for member in chosen}
    if len(versions) > 1:
        notices.append(f"they were recorded by several versions of jaxprof: {_named(sorted(versions))}")
    most = min(
        max(*counts, max(members) + 1) if len(counts) > 1 else max(counts.pop(), max(members) + 1), PROCESSES.most
    )
    job = RecordedJob(folder, next(iter(sorted(jobs)), ""), most, tuple(chosen), ())
    if job.missing:
        named = _named(map(str, job.missing))
        notices.append(f"{len(job.missing)} of {job.count} processes have no session here: {named}")
    return RecordedJob(folder, job.job, job.count, job.members, tuple(notices))


def _sorted_names(folder: Path, notices: list[str]) -> Iterator[tuple[int, int, Path]]:
    """Index, number of the attempt, and path, of every session in the folder; at most as many as the limit allows."""
    try:
        names = [(match, entry) for entry in folder.iterdir() if (match := _NAME.fullmatch(entry.name))]
    except OSError as error:
        raise FileRefusedError(
            f"{folder} cannot be read: {system_words(error)}", "Name the folder of a job."
        ) from error
    found = sorted((int(match[1]), int(match[2] or 1), entry) for match, entry in names)
    if len(found) > PROCESSES.most:
        notices.append(f"the folder holds {PROCESSES.words}; the others are left out. {PROCESSES.hint}")
    return iter(found[: PROCESSES.most])


def _named(items: Iterator[str] | list[str]) -> str:
    words = list(items)
    more = len(words) - _MOST_NAMED
    return ", ".join(words[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
