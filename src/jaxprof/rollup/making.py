"""Make roll-ups of existing sessions: of one, in any process on any host, or of all sessions of a job at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from jaxprof.errors import FileRefusedError, JaxprofError, system_words
from jaxprof.operating_system import processors, safe_path_of_children
from jaxprof.session import Session
from jaxprof.session.log import load
from jaxprof.session.log.job_folder import JobMember
from jaxprof.session.log.reader import is_live
from jaxprof.session_names import process_number

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RollUpReport:
    """Result of making the roll-up of one session."""

    process: int
    session: str
    bytes: int | None
    """Size of the roll-up; None if it was not made."""
    session_bytes: int | None
    """Size of the session; None if the roll-up was not made."""
    error: str = ""
    """Why the roll-up was not made; empty if it was."""
    notices: tuple[str, ...] = ()
    """What could not be read of the session."""


def roll_up(session_path: Path, folder: Path) -> RollUpReport:
    """Make the roll-up of a session in the folder of its job, in any process. An error is reported and not raised, so
    that a damaged session does not stop the others."""
    from jaxprof.rollup.files import build, write

    index = process_number(session_path.name)
    try:
        status = session_path.stat()
        session = load(session_path, Session)
        index = session.process_index if index is None else index
        live = not session.complete and is_live(session_path)
        tables, notices = build(JobMember(index, session_path, session, live), status.st_size, status.st_mtime_ns)
        size = write(folder, index, tables)
    except JaxprofError as error:
        return RollUpReport(index or 0, session_path.name, None, None, error.what)
    except OSError as error:
        return RollUpReport(index or 0, session_path.name, None, None, system_words(error))
    return RollUpReport(index, session_path.name, size, status.st_size, "", (*session.notices, *notices))


def in_processes(
    make: Callable[[T], RollUpReport], sessions: Sequence[T], workers: int | None = None
) -> Iterator[RollUpReport]:
    """Yield the result of `make` for each session, from worker processes of this machine, by default one for each
    processor. Raises FileRefusedError if a worker process is killed."""
    count = min(len(sessions), workers or processors())
    if count <= 1:
        yield from map(make, sessions)
        return
    from concurrent.futures.process import BrokenProcessPool

    with safe_path_of_children(), ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        try:
            yield from pool.map(make, sessions, chunksize=max(1, len(sessions) // (8 * count)))
        except BrokenProcessPool as error:
            raise FileRefusedError(
                "a worker process was killed while it read a session",
                "Memory may be short: use fewer workers, --workers 1.",
            ) from error
