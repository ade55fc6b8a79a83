"""Make roll-ups: of one session, in any process, or of several in processes of this machine; and write their
files, `run.jaxprof.d/rollup/<table>/process-00002.parquet`, each whole or not there.

Files have PLAIN and dictionary encodings and zstd, which every engine that reads Parquet supports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

from jaxprof.base.errors import FileRefusedError, JaxprofError, system_words
from jaxprof.base.files import PRIVATE, private_folder, taking_place
from jaxprof.base.operating_system import processors, safe_path_of_children
from jaxprof.base.values import frozen
from jaxprof.jobs.folder import ROLL_UP_ENDING, ROLL_UP_FOLDER
from jaxprof.jobs.process_file import ProcessFile
from jaxprof.query.columnar import arrow_table
from jaxprof.rollup.schema import PROCESSES, TABLES
from jaxprof.session import Session
from jaxprof.session.files import process_number
from jaxprof.session.log import load


@frozen
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


def roll_up(session_path: Path) -> RollUpReport:
    """Make the roll-up of a session beside it, in any process. An error is reported and not raised, so that a damaged
    session does not end the work on the others."""
    index = process_number(session_path.name)
    try:
        status = session_path.stat()
        session = load(session_path, Session)
        index = session.process_index if index is None else index
        file = ProcessFile(session_path, session, index=index, bytes=status.st_size, modified_ns=status.st_mtime_ns)
        size = write(session_path.parent, index, build(file))
    except JaxprofError as error:
        return RollUpReport(index or 0, session_path.name, None, None, error.what)
    except OSError as error:
        return RollUpReport(index or 0, session_path.name, None, None, system_words(error))
    return RollUpReport(index, session_path.name, size, status.st_size, "", tuple(session.notices))


def roll_ups(session_paths: Sequence[Path], workers: int | None = None) -> Iterator[RollUpReport]:
    """Make the roll-up of each session in worker processes of this machine, by default one for each processor. Raises
    FileRefusedError if a worker process is killed."""
    count = min(len(session_paths), workers or processors())
    if count <= 1:
        yield from map(roll_up, session_paths)
        return
    from concurrent.futures.process import BrokenProcessPool

    with safe_path_of_children(), ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        try:
            yield from pool.map(roll_up, session_paths, chunksize=max(1, len(session_paths) // (8 * count)))
        except BrokenProcessPool as error:
            raise FileRefusedError(
                "a worker process was killed while it read a session",
                "Memory may be short: use fewer workers, --workers 1.",
            ) from error


_GROUP_ROWS = 2048
"""Rows of a row group, whose statistics bound its steps, so that a reader of some steps skips other groups."""


def build(file: ProcessFile) -> dict[str, Any]:
    """Derive the tables of one process, as Arrow tables by name."""
    return {name: arrow_table(table, file) for name, table in TABLES.items()}


def write(folder: Path, index: int, tables: Mapping[str, Any]) -> int:
    """Write the tables of a process into the folder of its job, in place of older ones; a table without rows gets no
    file. The table `processes` is written last, because it names the session of all tables. Returns the size in bytes.
    Raises OSError."""
    size = 0
    for name in TABLES:
        path = file_of(folder, name, index)
        if not len(tables[name]):
            path.unlink(missing_ok=True)
            continue
        private_folder(path.parent)
        # In a table of one row, dictionaries and statistics would be larger than the data; numbers that differ in each
        # row are larger with a dictionary.
        options: dict[str, Any] = {"use_dictionary": False, "write_statistics": False}
        if name != PROCESSES.name:
            encoded = [fact.key for fact in TABLES[name].facts if fact.unit.sql != "DOUBLE"]
            options = {"use_dictionary": encoded, "row_group_size": _GROUP_ROWS}
        with taking_place(path, PRIVATE, only_regular=True) as fresh:
            parquet.write_table(tables[name], fresh, compression="zstd", store_schema=False, **options)
        size += path.stat().st_size
    return size


def file_of(folder: Path, table: str, index: int) -> Path:
    """Return the file of a table of a process in the folder of its job."""
    return folder / ROLL_UP_FOLDER / table / f"process-{index:05}{ROLL_UP_ENDING}"
