"""The process that computes SQL over tables, in a database that has these tables and nothing else: no files, no
network, and locked settings.

    stdin    {"sql": ..., "tables": [NAME, ...]}, a line; each table as a stream of Arrow, without rows
    stdout   the columns that the query reads, [NAME, ...] or null for all of them, a line
    stdin    each table as a stream of Arrow
    stdout   {"error": null}, a line; the rows as a stream of Arrow; the same line again

It is a separate process because a single call of a function (`lpad`, `hex`, `levenshtein`) may take hours and cannot be
interrupted: the process that waits for the answer kills this one. After an error, `error` has `what` and `hint`, and
nothing else follows.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import duckdb
import pyarrow as pa

from jaxprof.base.database import connect
from jaxprof.base.errors import UsageError
from jaxprof.base.limits import QUERY_MEMORY

_REFUSED = re.compile(r"\b(INSTALL|LOAD|SET|PRAGMA|ATTACH)\b")
"""Statements that are refused here. Advice from DuckDB that names one is left out."""


def serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """Read one query with its tables from `source`, and write the answer to `sink`."""
    request = json.loads(source.readline())

    def read_tables() -> dict[str, Any]:
        return {name: pa.ipc.open_stream(source).read_all() for name in request["tables"]}

    sink.write(json.dumps(columns_read(request["sql"], read_tables())).encode() + b"\n")
    sink.flush()
    tables = read_tables()
    try:
        reader = answer(request["sql"], tables)
        _write_status(sink)
        with pa.ipc.new_stream(sink, reader.schema) as writer, usage_errors():
            for batch in reader:
                # Rows that are sent together are copied as values and as text.
                if batch.nbytes > QUERY_MEMORY.most // 8:
                    raise _too_large("a part of the answer needs")
                writer.write_batch(batch)
                sink.flush()
        _write_status(sink)
    except UsageError as error:
        _write_status(sink, error)


def _write_status(sink: IO[bytes], error: UsageError | None = None) -> None:
    words = None if error is None else {"what": error.what, "hint": error.hint}
    sink.write(json.dumps({"error": words}).encode() + b"\n")
    sink.flush()


def columns_read(sql: str, tables: Mapping[str, Any]) -> list[str] | None:
    """Return the names of the columns that a query reads of any table, by its plan; None if that cannot be known."""
    try:
        connection = connect(memory_bytes=QUERY_MEMORY.most)
        for name, table in tables.items():
            connection.register(name, table)
        [statement] = connection.extract_statements(sql)
        [[_, plan]] = connection.execute(f"EXPLAIN (FORMAT JSON) {statement.query}").fetchall()
    except (duckdb.Error, MemoryError, RuntimeError, ValueError):  # `answer` says what is wrong
        return None
    nodes, names = json.loads(plan), set[str]()
    while nodes:
        node = nodes.pop()
        nodes += node["children"]
        if "ARROW_SCAN" in node["name"]:
            read = node["extra_info"].get("Projections")
            if read is None:
                return None
            names |= {read} if isinstance(read, str) else set(read)
            names.update(re.findall(r"\w+", str(node["extra_info"].get("Filters", ""))))
    return sorted(names)


def answer(sql: str, tables: Mapping[str, Any]) -> Any:
    """Return the rows of one SELECT over Arrow tables as a `RecordBatchReader`, which computes them as they are read,
    and whose columns have distinct names. Raises UsageError for any other statement, and for SQL that cannot be
    understood."""
    with usage_errors():
        connection = connect(memory_bytes=QUERY_MEMORY.most)
        kinds = [statement.type.name for statement in connection.extract_statements(sql)]
        if not kinds:
            raise UsageError("there is no SQL", 'jaxprof query last "SELECT * FROM runs"')
        if len(kinds) > 1:
            raise UsageError(f"{len(kinds)} statements were given", "Give one SELECT.")
        if kinds != ["SELECT"]:
            what = "PIVOT without IN (...)" if kinds == ["MULTI"] else kinds[0].replace("_", " ")
            raise UsageError(
                f"{what} is refused: sessions are only read", "Give one SELECT, WITH, DESCRIBE or SUMMARIZE."
            )
        for name, table in tables.items():
            connection.register(name, table)
        numbered = connection.sql(sql).select("*")  # repeated names as in a subquery: run, run_1
        return numbered.to_arrow_reader(2048)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors of DuckDB about the SQL into a UsageError."""
    try:
        yield
    except MemoryError as error:
        raise _too_large() from error
    except (RuntimeError, OSError, duckdb.Error, pa.ArrowException) as error:
        if isinstance(error, duckdb.Error | pa.ArrowException) or " Error: " in str(error):
            raise _usage_error(str(error)) from error
        raise


def _usage_error(text: str) -> UsageError:
    """Return a message of DuckDB, such as `Binder Error: ...!\\nCandidate bindings: "a"`, as an error with a hint."""
    lines = [line.strip() for line in text.partition("\n\nLINE ")[0].splitlines() if line.strip()]
    what = lines[0] if lines else text
    kind, colon, rest = what.partition(" Error: ")
    reason = rest if rest[1:2].isupper() else rest[:1].lower() + rest[1:]
    message = f"SQL: {reason if colon else what}".rstrip("!.")
    if kind == "Out of Memory":
        return _too_large()
    if kind == "Permission":
        return UsageError(message, "SQL reads sessions, and no files, network or extensions.")
    hints = [line for line in lines[1:] if not _REFUSED.search(line)]
    return UsageError(message, " ".join(hints) or "jaxprof query --schema lists the tables and columns.")


def _too_large(what: str = "the query needs") -> UsageError:
    return UsageError(f"SQL: {what} {QUERY_MEMORY.words}", f"Ask for less. {QUERY_MEMORY.hint}")


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
