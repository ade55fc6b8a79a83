"""One file for a table of many processes: opening a thousand files takes longer than reading what is in them.

The file's name says which files it was made of, with their sizes and times. So it is used as long as they are the same,
and never mixed with them: it is in a folder of its own, `rollup/all/`.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from jaxprof.files import taking_place
from jaxprof.rollup import FOLDER

TABLES_OF_ALL: Final = ("processes", "overview", "parts")
"""Those that are read of all processes at once."""
_ALL: Final = "all"


def compacted(folder: Path, table: str, files: list[Path]) -> Path | None:
    """The one file that holds what these files of a table do; None if there is none."""
    if table not in TABLES_OF_ALL or len(files) < 2:
        return None
    with suppress(OSError):
        path = _place(folder, table, files)
        return path if path.is_file() else None
    return None


def compact(connection: Any, folder: Path, table: str, files: list[Path]) -> Path:
    """Write the one file, and remove the ones before it. Raises OSError, and duckdb.Error for files that cannot be read
    together. `connection` may read and write the folder of roll-ups."""
    path = _place(folder, table, files)
    path.parent.mkdir(parents=True, exist_ok=True)
    quoted = ", ".join(_quoted(each) for each in files)
    with taking_place(path, only_regular=True) as fresh:
        connection.execute(
            f"COPY (SELECT * FROM read_parquet([{quoted}]) ORDER BY process) TO {_quoted(fresh)} "
            "(FORMAT parquet, COMPRESSION zstd)"
        )
    for other in path.parent.glob(f"{table}-*.parquet"):
        if other != path:
            other.unlink(missing_ok=True)
    return path


def _place(folder: Path, table: str, files: list[Path]) -> Path:
    made_of = hashlib.sha256()
    for path in files:
        status = path.stat()
        made_of.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return folder / FOLDER / _ALL / f"{table}-{made_of.hexdigest()[:24]}.parquet"


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
