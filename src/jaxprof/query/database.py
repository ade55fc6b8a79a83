"""SQL over tables: the process that computes it, in a database that has these tables and nothing else, no file, no
network, no setting to change.

    stdin    {"sql": ..., "tables": [NAME, ...]}, a line; each table as a stream of Arrow
    stdout   {"error": null}, a line; the rows as a stream of Arrow; the same line again

A process, because a single call of a function (`lpad`, `hex`, `levenshtein`) may take hours and asks nobody: whoever
waits for it kills the process. After an error, `error` has `what` and `hint`, and nothing else follows.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Final

import duckdb
import pyarrow as pa

from jaxprof.errors import UsageError
from jaxprof.limits import QUERY_MEMORY
from jaxprof.query.connection import connect

_BATCH_ROWS: Final = 2048
_REFUSED: Final = re.compile(r"\b(INSTALL|LOAD|SET|PRAGMA|ATTACH)\b")
"""In DuckDB's advice: statements that are refused here."""


def serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """Answers what `source` asks."""
    asked = json.loads(source.readline())
    tables = {name: pa.ipc.open_stream(source).read_all() for name in asked["tables"]}
    try:
        reader = answer(asked["sql"], tables)
        _write_end(sink)
        with pa.ipc.new_stream(sink, reader.schema) as writer, usage_errors():
            for batch in reader:
                writer.write_batch(batch)
                sink.flush()
        _write_end(sink)
    except UsageError as error:
        _write_end(sink, error)


def _write_end(sink: IO[bytes], error: UsageError | None = None) -> None:
    words = None if error is None else {"what": error.what, "hint": error.hint}
    sink.write(json.dumps({"error": words}).encode() + b"\n")
    sink.flush()


def answer(sql: str, tables: Mapping[str, Any]) -> Any:
    """The rows of one SELECT over Arrow tables, computed as they are read: a `RecordBatchReader`, whose columns have
    different names. Raises UsageError for any other statement, and for SQL that cannot be understood."""
    with usage_errors():
        connection = connect(memory_bytes=QUERY_MEMORY.most)
        _refuse_other_statements(connection.extract_statements(sql))
        for name, table in tables.items():
            connection.register(name, table)
        return _with_different_names(connection.sql(sql).to_arrow_reader(_BATCH_ROWS))


def _refuse_other_statements(statements: list[Any]) -> None:
    kinds = [statement.type.name for statement in statements]
    if not kinds:
        raise UsageError("there is no SQL", 'jaxprof query last "SELECT * FROM runs"')
    if len(kinds) > 1:
        raise UsageError(f"{len(kinds)} statements were given", "Give one SELECT.")
    if kinds != ["SELECT"]:
        what = "PIVOT without IN (...)" if kinds == ["MULTI"] else kinds[0].replace("_", " ")
        raise UsageError(f"{what} is refused: sessions are only read", "Give one SELECT, WITH, DESCRIBE or SUMMARIZE.")


def _with_different_names(reader: Any) -> Any:
    """`SELECT a.run, b.run` has two columns of one name: the second one is `run_1`, as in a subquery."""
    names: list[str] = []
    for name in reader.schema.names:
        numbered = (f"{name}_{number}" for number in range(1, len(reader.schema) + 1))
        names.append(name if name not in names else next(other for other in numbered if other not in names))
    if names == reader.schema.names:
        return reader
    schema = pa.schema([each.with_name(name) for each, name in zip(reader.schema, names, strict=True)])
    batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in reader)
    return pa.RecordBatchReader.from_batches(schema, batches)


@contextmanager
def usage_errors() -> Iterator[None]:
    """What DuckDB says of the SQL as a UsageError."""
    try:
        yield
    except MemoryError as error:
        raise _too_large() from error
    except (RuntimeError, OSError, duckdb.Error, pa.ArrowException) as error:
        if isinstance(error, duckdb.Error | pa.ArrowException) or " Error: " in str(error):
            raise _in_one_line(str(error)) from error
        raise


def _in_one_line(text: str) -> UsageError:
    """`Binder Error: ...!\\nCandidate bindings: "a"\\n\\nLINE 1: ...` as an error with a hint."""
    lines = [line.strip() for line in text.partition("\n\nLINE ")[0].splitlines() if line.strip()]
    what = lines[0] if lines else text
    kind, colon, rest = what.partition(" Error: ")
    said = rest if rest[1:2].isupper() else rest[:1].lower() + rest[1:]
    message = f"SQL: {said if colon else what}".rstrip("!.")
    if kind == "Out of Memory":
        return _too_large()
    if kind == "Permission":
        return UsageError(message, "SQL reads sessions, and no files, network or extensions.")
    hints = [line for line in lines[1:] if not _REFUSED.search(line)]
    return UsageError(message, " ".join(hints) or "jaxprof query --schema lists the tables and columns.")


def _too_large() -> UsageError:
    return UsageError(f"SQL: the query needs {QUERY_MEMORY.words}", f"Ask for less. {QUERY_MEMORY.hint}")


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
