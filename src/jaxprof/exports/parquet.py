"""Export the tables of a session, which `jaxprof query --schema` lists, as a Parquet file each, without empty ones.

Needs the extra `query`, because these are its tables.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

from jaxprof.errors import UsageError
from jaxprof.exports.formats import ExportSource


def files(source: ExportSource) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each file. Raises UsageError without the extra."""
    try:
        from jaxprof.query.columnar import arrow_table
        from jaxprof.query.output import write_parquet
    except ImportError as error:
        raise UsageError(f"parquet needs {error.name}", "pip install 'duckdb>=2,<3' pyarrow installs it.") from error
    from jaxprof.facts import SessionFile
    from jaxprof.query.tables import TABLES

    file = SessionFile(source.path, source.session)
    for table in TABLES.values():
        rows = arrow_table(table, file)
        if rows.num_rows:
            sink = io.BytesIO()
            write_parquet(rows, sink)
            yield f"{table.name}.parquet", sink.getvalue()
