"""Make roll-ups of existing sessions, which are on a disk or in a store: of one, in any process on any host, or of all
sessions of a job at once.

A roll-up does not depend on what makes it: a process of this machine, or a task on another host.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from jaxprof.errors import FileRefusedError, JaxprofError, system_words
from jaxprof.operating_system import processors, safe_path_of_children
from jaxprof.reaper import TemporaryFolder
from jaxprof.remote.place import RemotePlace, is_url
from jaxprof.rollup import FOLDER
from jaxprof.session import Session
from jaxprof.session.log import load
from jaxprof.session.log.job_folder import JobMember, newest_sessions, no_session_in
from jaxprof.session.log.reader import is_live
from jaxprof.session_names import process_number

if TYPE_CHECKING:
    from jaxprof.remote.store import Store, StoredFile

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


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """A session in the folder of a job."""

    folder: str
    """Path that every worker sees, or URL."""
    name: str


def due_in(folder: str, *, every: bool = False) -> tuple[list[SessionPlace], list[str]]:
    """Return the sessions whose roll-up is missing or does not hold all of them (with `every`, all sessions), and what
    was left out.

    Raises UsageError and FileRefusedError if the folder, or the store, cannot be used or has no session.
    """
    if not is_url(folder):
        from jaxprof.rollup.job import outdated

        paths, left_out = outdated(Path(folder), every=every)
        return [SessionPlace(str(path.parent.absolute()), path.name) for path in paths], left_out
    from jaxprof.remote.store import Store, StoreFailure, store_error

    place = RemotePlace(folder)
    try:
        store = Store(place)
        files = {file.name: file for file in store.files()}
        notices: list[str] = []
        sessions = newest_sessions(files, notices)
        if not sessions:
            raise no_session_in(place.shown)
        current = set() if every else _current(store, files, sessions)
    except StoreFailure as failure:
        raise store_error(place, failure) from failure
    return [SessionPlace(folder, name) for index, name in sessions if index not in current], notices


def roll_up_at(session: SessionPlace) -> RollUpReport:
    """Make the roll-up of one session in the folder of its job. An error is reported and not raised."""
    from jaxprof.remote.store import StoreFailure

    try:
        if is_url(session.folder):
            return _roll_up_stored(session)
        return roll_up(Path(session.folder, session.name), Path(session.folder))
    except StoreFailure as failure:
        error = failure.words
    except JaxprofError as refused:
        error = refused.what
    except OSError as refused:
        error = system_words(refused)
    return RollUpReport(process_number(session.name) or 0, session.name, None, None, error)


def _current(store: Store, files: dict[str, StoredFile], sessions: Sequence[tuple[int, str]]) -> set[int]:
    """Return the processes whose roll-up in the store holds all of their session."""
    from jaxprof.rollup.reading import connected, read_processes

    with TemporaryFolder("rollup") as folder:
        for name, file in files.items():
            if name.startswith(f"{FOLDER}/processes/"):
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                store.fetch(file, target)
        with connected(folder) as connection:
            rolled = read_processes(connection, folder, [])
    sizes = {name: file.size for name, file in files.items()}
    return {index for index, name in sessions if index in rolled and rolled[index].holds(name, sizes[name])}


def _roll_up_stored(session: SessionPlace) -> RollUpReport:
    from jaxprof.remote.store import Store
    from jaxprof.rollup.files import file_of
    from jaxprof.rollup.schema import TABLES

    store = Store(RemotePlace(session.folder))
    with TemporaryFolder("rollup") as folder:
        path = folder / session.name
        file = store.file(session.name)
        store.fetch(file, path)
        if file.modified_seconds is not None:  # a roll-up keeps when its session was written, not when it was fetched
            os.utime(path, (file.modified_seconds, file.modified_seconds))
        report = roll_up(path, folder)
        if report.bytes is None:
            return report
        for name in TABLES:  # `processes` last, as they are written: it names the session of all tables
            table = file_of(folder, name, report.process)
            if table.exists():
                store.put(table, table.relative_to(folder).as_posix())
            else:
                _delete(store, table.relative_to(folder).as_posix())
    return report


def _delete(store: Store, name: str) -> None:
    """Delete the table of an earlier roll-up, if there is one."""
    from jaxprof.remote.store import StoreFailure

    with suppress(StoreFailure):
        store.delete(store.file(name))
