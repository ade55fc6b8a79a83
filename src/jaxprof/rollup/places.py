"""Find the sessions of a job, on a disk or in a store, and make the roll-up of one of them there.

A roll-up does not depend on what makes it: a process of this machine, or a task on another host.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import JaxprofError, system_words
from jaxprof.reaper import TemporaryFolder
from jaxprof.rollup import FOLDER
from jaxprof.rollup.making import RollUpReport, in_processes, roll_up
from jaxprof.session.log.job_folder import newest_sessions, no_session_in
from jaxprof.session_names import process_number

if TYPE_CHECKING:
    from jaxprof.remote.store import Store, StoredFile


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
    if not is_stored(folder):
        from jaxprof.rollup.job import outdated

        paths, left_out = outdated(Path(folder), every=every)
        return [SessionPlace(str(path.parent.absolute()), path.name) for path in paths], left_out
    from jaxprof.remote.place import RemotePlace
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
        if is_stored(session.folder):
            return _roll_up_stored(session)
        return roll_up(Path(session.folder, session.name), Path(session.folder))
    except StoreFailure as failure:
        error = failure.words
    except JaxprofError as refused:
        error = refused.what
    except OSError as refused:
        error = system_words(refused)
    return RollUpReport(process_number(session.name) or 0, session.name, None, None, error)


def roll_up_here(sessions: Sequence[SessionPlace], workers: int | None = None) -> Iterator[RollUpReport]:
    """Make the roll-ups of these sessions in worker processes of this machine; yield a report for each."""
    return in_processes(roll_up_at, sessions, workers)


def is_stored(folder: str) -> bool:
    """Return whether the folder is at a URL."""
    from jaxprof.remote.place import is_url

    return is_url(folder)


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
    from jaxprof.remote.place import RemotePlace
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
