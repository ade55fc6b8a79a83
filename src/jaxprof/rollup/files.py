"""Read and write roll-ups on disk: `run.jaxprof.d/rollup/<table>/process-00002.parquet`, each file whole or not there.

Files have PLAIN and dictionary encodings and zstd, which every engine that reads Parquet supports.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as parquet

from jaxprof.facts.processes import ProcessFile
from jaxprof.files import taking_place
from jaxprof.query.columnar import arrow_schema, arrow_table
from jaxprof.rollup import ENDING, FOLDER
from jaxprof.rollup.schema import PROCESSES, TABLES
from jaxprof.session import Session
from jaxprof.session.log.job_folder import JobMember

_GROUP_ROWS: Final = 2048
"""Rows of a row group. Its statistics have the bounds of its steps, so that a reader of some steps skips other
groups."""


def build(member: JobMember[Session], size_bytes: int, modified_ns: int) -> tuple[dict[str, Any], list[str]]:
    """Derive the tables of one process. Returns Arrow tables by name, and what could not be read of its captures.
    `size_bytes`, `modified_ns`: size and time of the session's file before the session was read."""
    file = ProcessFile(
        member.path, member.session, member.live, index=member.index, bytes=size_bytes, modified_ns=modified_ns
    )
    return {name: arrow_table(table, file) for name, table in TABLES.items()}, file.notices


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
        path.parent.mkdir(parents=True, exist_ok=True)
        with taking_place(path, only_regular=True) as fresh:
            parquet.write_table(tables[name], fresh, **_options(name))
        size += path.stat().st_size
    return size


def _options(name: str) -> dict[str, Any]:
    """Return the options for writing a table. In a table of one row, dictionaries and statistics would be larger than
    the data; numbers that differ in each row are larger with a dictionary."""
    if name == PROCESSES.name:
        return {"compression": "zstd", "use_dictionary": False, "write_statistics": False, "store_schema": False}
    encoded = [fact.key for fact in TABLES[name].facts if fact.unit.sql != "DOUBLE"]
    return {"compression": "zstd", "use_dictionary": encoded, "store_schema": False, "row_group_size": _GROUP_ROWS}


def file_of(folder: Path, table: str, index: int) -> Path:
    """Return the file of a table of a process in the folder of its job."""
    return folder / FOLDER / table / f"process-{index:05}{ENDING}"


def read_table(path: Path, table: str) -> Any:
    """Read one file of a roll-up. Raises OSError, and ValueError for a file that this version of jaxprof did not write;
    pyarrow's own errors are ValueErrors or OSErrors."""
    rows = parquet.read_table(path, partitioning=None)
    if not rows.schema.equals(arrow_schema(TABLES[table])):
        raise ValueError("its columns are not those of this table")
    return rows
