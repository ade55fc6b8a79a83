"""Roll-ups on disk: `run.jaxprof.d/rollup/<table>/process-00002.parquet`, each file whole or not there.

Written with PLAIN and dictionary encodings and zstd, which every engine that reads Parquet knows.
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
"""In a row group, which has the bounds of its steps: a reader that looks at some steps leaves out the others."""


def build(member: JobMember[Session], size_bytes: int, modified_ns: int) -> tuple[dict[str, Any], list[str]]:
    """The tables of one process as Arrow tables, and what could not be read of its captures. `size_bytes`,
    `modified_ns`: of the session's file, looked at before the session was read."""
    file = ProcessFile(
        member.path, member.session, member.live, index=member.index, bytes=size_bytes, modified_ns=modified_ns
    )
    return {name: arrow_table(table, file) for name, table in TABLES.items()}, file.notices


def write(folder: Path, index: int, tables: Mapping[str, Any]) -> int:
    """Write the tables of a process into the folder of its job, in place of older ones; a table without rows has no
    file. Returns their size in bytes. `processes` comes last: until then, the older one says of what session the tables
    are. Raises OSError."""
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
    """How a table is written: in a table of one row, dictionaries and statistics would take more room than the data;
    and numbers that differ in each row are larger with a dictionary."""
    if name == PROCESSES.name:
        return {"compression": "zstd", "use_dictionary": False, "write_statistics": False, "store_schema": False}
    few = [fact.key for fact in TABLES[name].facts if fact.unit.sql != "DOUBLE"]
    return {"compression": "zstd", "use_dictionary": few, "store_schema": False, "row_group_size": _GROUP_ROWS}


def file_of(folder: Path, table: str, index: int) -> Path:
    """Where the table of a process is, in the folder of its job."""
    return folder / FOLDER / table / f"process-{index:05}{ENDING}"


def read_table(path: Path, table: str) -> Any:
    """One file of a roll-up. Raises OSError, and ValueError for one that jaxprof did not write, or not this version of
    it: pyarrow's own errors are ValueErrors or OSErrors."""
    found = parquet.read_table(path, partitioning=None)
    if not found.schema.equals(arrow_schema(TABLES[table])):
        raise ValueError("its columns are not those of this table")
    return found
