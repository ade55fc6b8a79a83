"""Open a database in memory that reaches only what it is given: no network, no extensions, and locked settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

_LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "python_enable_replacements": False,  # variables of this program as tables
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
    "temp_directory": "",  # a query that is too large for memory fails, instead of writing into the working folder
}


def connect(*, memory_bytes: int | None = None, folder: Path | None = None) -> Any:
    """Open a connection. `memory_bytes`: the most memory that it takes, by default DuckDB's own limit. `folder`: the
    only folder in which it may read and write, by default none."""
    connection = duckdb.connect(":memory:", config=_LOCKED)
    if memory_bytes is not None:
        connection.execute(f"SET memory_limit = '{memory_bytes}B'")
    if folder is not None:
        allowed = str(folder).replace("'", "''")
        connection.execute(f"SET allowed_directories = ['{allowed}']")
    connection.execute("SET enable_progress_bar = false")  # it would go to stdout after two seconds of a query
    connection.execute("SET enable_external_access = false")  # files, network, ATTACH, COPY, extensions
    connection.execute("SET lock_configuration = true")
    return connection
