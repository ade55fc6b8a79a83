"""Query sessions in SQL: gather their tables, have the answer computed, and give its rows as a table for people and
CSV, or as JSON values."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import MonthDayNano

from jaxprof.base.errors import FileRefusedError, UsageError
from jaxprof.base.limits import QUERY_MEMORY
from jaxprof.base.text import json_text
from jaxprof.base.units import UNKNOWN, and_more, counted
from jaxprof.base.values import frozen
from jaxprof.facts import Fact, Relation, SessionFile
from jaxprof.facts.processes import PROCESSES
from jaxprof.facts.tables import SESSION, TABLES
from jaxprof.facts.units import TEXT
from jaxprof.jobs.folder import ROLL_UP_FOLDER, job_sessions
from jaxprof.query.columnar import arrow_schema, arrow_table, clean_text
from jaxprof.query.kept_columns import KeptColumns, TablesRead
from jaxprof.query.sql_process import SqlProcess
from jaxprof.report import Table
from jaxprof.session import Session, load
from jaxprof.session.files import EXTENSION, with_urls

_WIDEST = 60
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_DIGITS = 6


def plain_value(value: Any) -> Any:
    """Return a value of SQL as JSON has it: ISO 8601, seconds, hexadecimal; null for NaN in a container."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): _inner_value(inner) for key, inner in value.items()}
    if isinstance(value, MonthDayNano):
        return {"months": value.months, "days": value.days, "nanoseconds": value.nanoseconds}
    if isinstance(value, list | tuple):  # an entry of a map is a tuple
        return [_inner_value(inner) for inner in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _inner_value(value: Any) -> Any:
    plain = plain_value(value)
    return None if isinstance(plain, float) and not isfinite(plain) else plain


def rows_table(schema: Any, rows: Iterable[list[Any]]) -> Table[list[Any]]:
    columns: list[Fact[list[Any]]] = [
        Fact(
            field.name,
            TEXT,
            "A column of the SELECT",
            partial(_cell, index),
            field.name,
            show=_cell_text,
            right=any(kind(field.type) for kind in _NUMBERS),
            widest=_WIDEST if len(schema) > 1 else 0,
        )
        for index, field in enumerate(schema)
    ]
    return Table(columns, rows)


def _cell(index: int, row: list[Any]) -> Any:
    return plain_value(row[index])


def _cell_text(value: Any) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    return json_text(value) if isinstance(value, list | dict) else str(value)


_NAMED = 3
_NOTICES = 20
"""Sessions that a notice names, and notices that are reported, however many sessions there are."""


@frozen
class QueriedSession:
    """A session that a query reads. The column `session` has the name of its file, or its path if two have one name."""

    path: Path
    session: Session | None = None
    """A profile that was read as a session; None for a file, which is read if needed."""
    optional: bool = False
    """Whether a session that cannot be read is left out, with a notice."""
    process: Any = None
    """Row of the table of processes, if a roll-up holds all of the session; otherwise None."""


def rows_without_sessions(folder: Path) -> dict[Path, Any]:
    """Return the rows of the table of processes for the sessions of a job that a roll-up holds whole, by session, each
    as an Arrow table. A process that recorded no program has none. Raises FileRefusedError if the folder cannot be
    read."""
    from jaxprof.jobs.roll_ups import numbers, open_roll_ups

    if not (folder / ROLL_UP_FOLDER).is_dir():
        return {}
    sessions, _ = job_sessions(folder)
    names = [fact.key for fact in PROCESSES.facts]
    with open_roll_ups(folder) as roll_ups:
        rolled = roll_ups.processes()
        whole = {index: path for index, path in sessions if index in rolled and rolled[index].is_of(path)}
        columns = ", ".join(f'"{name}"' for name in names)
        select = f"SELECT {columns} FROM {{files}} WHERE process IN ({numbers(whole)}) AND status <> 'unknown'"
        rows = [dict(zip(names, cells, strict=True)) for cells in roll_ups.rows("processes", select)]
    schema = arrow_schema(PROCESSES)
    paths = [whole[row["process"]] for row in rows]
    return {
        path: pa.table([[cell] for cell in (row | {"path": with_urls(str(path))}).values()], schema=schema)
        for path, row in zip(paths, rows, strict=True)
    }


@dataclass(slots=True)
class SqlAnswer:
    """The rows of a query, which can be read once."""

    reader: Any
    """An Arrow `RecordBatchReader` whose columns have distinct names."""
    process: SqlProcess
    notices: list[str] = field(default_factory=list)
    """What could not be read of the sessions."""

    @property
    def names(self) -> list[str]:
        return list(self.reader.schema.names)

    def rows(self) -> Iterator[list[Any]]:
        """Yield the rows as Python values while they are computed. Raises UsageError."""
        with _process_errors(self.process):
            for batch in self.reader:
                yield from map(list, zip(*map(_values, batch.columns), strict=True))
            _check_status(self.process)

    def first(self, count: int | None) -> tuple[list[list[Any]], bool]:
        """Return the first `count` rows (None: all), and whether there are more. Raises UsageError."""
        rows = self.rows()
        taken = list(islice(rows, count if count is None else min(count, sys.maxsize)))
        return taken, next(rows, None) is not None


def _values(column: Any) -> list[Any]:
    """Return the cells as Python values, or as texts if Python has no such value: a day in the year 5 000 000."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError, pa.ArrowException):
        return list(map(_value, column))


def _value(cell: Any) -> Any:
    """Return one cell as `_values` does, and a container part by part."""
    kind = cell.type
    try:
        return cell.as_py()
    except (OverflowError, ValueError, pa.ArrowException):
        if pa.types.is_struct(kind):
            return {kind.field(index).name: _value(cell[index]) for index in range(kind.num_fields)}
        if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
            return [_value(part) for part in cell.values]
        try:
            return cell.cast(pa.string()).as_py()
        except pa.ArrowException:
            return str(kind)  # nothing of pyarrow shows it


def execute(process: SqlProcess, sql: str, sources: Sequence[QueriedSession]) -> SqlAnswer:
    """Compute one SELECT over the tables of these sessions. The answer can be read while the process goes on. Raises
    UsageError for any other statement, and for SQL that cannot be understood; FileRefusedError for a session that
    cannot be read."""
    with _process_errors(process):
        process.sink.write(json.dumps({"sql": sql, "tables": list(TABLES)}).encode() + b"\n")
        process.send(map(_empty_table, TABLES.values()))
        process.start_clock()
        needed = json.loads(process.read_line())
        process.stop_clock()  # reading sessions takes as long as it takes
    with memory_errors():
        tables, notices = tables_of(sql, sources, needed)
    with _process_errors(process):
        process.send(tables.values())
        process.start_clock()
        _check_status(process)
        reader = pa.ipc.open_stream(process.source)
    return SqlAnswer(reader, process, notices)


def _check_status(process: SqlProcess) -> None:
    """Read the next line of the process. Raises UsageError if it reports an error, or if there is none."""
    error = json.loads(process.read_line())["error"]
    if error is not None:
        raise UsageError(error["what"], error["hint"])


@contextmanager
def _process_errors(process: SqlProcess) -> Iterator[None]:
    """Turn errors of the pipes, which end with the process, into the reason why the process ended."""
    try:
        with memory_errors():
            yield
    except (OSError, ValueError) as error:  # the errors of Arrow are subclasses
        raise process.error from error


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turn the end of the memory that a query may take into a UsageError."""
    try:
        yield
    except MemoryError as error:
        raise UsageError(f"SQL: the query needs {QUERY_MEMORY.words}", f"Ask for less. {QUERY_MEMORY.hint}") from error


def tables_of(
    sql: str, sources: Sequence[QueriedSession], needed: Collection[str] | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Return all tables by name, with rows only in those that the query may read, and what could not be read. Raises
    FileRefusedError. `needed`: the columns that the query reads, of any table; None for all."""
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    every = bool(words & {"query", "query_table"})  # these compute the names of the tables that they read
    wanted = [table for name, table in TABLES.items() if every or name in words]
    parts: dict[str, list[Any]] = {name: [] for name in TABLES}
    notices: dict[tuple[str, str], list[str]] = {}  # state and text → sessions
    kept = KeptColumns(wanted, needed)
    stems = [source.path.name.removesuffix(EXTENSION) for source in sources]
    count = Counter(stems)
    for stem, source in zip(stems, sources, strict=True):
        session_name = stem if count[stem] == 1 else str(source.path)
        try:
            tables_of_source = _tables_of(source, wanted, needed, kept)
        except FileRefusedError as error:
            if not source.optional:
                raise
            what = error.what.replace(str(source.path), "it")
            notices.setdefault((" left out", what), []).append(session_name)
            continue
        for name, table, table_notices in tables_of_source:
            session = pa.DictionaryArray.from_arrays(
                pa.repeat(pa.scalar(0, pa.int8()), len(table)), pa.array([clean_text(session_name)])
            )
            parts[name].append(table.add_column(0, SESSION.key, session))
            for notice in dict.fromkeys(table_notices):
                notices.setdefault(("", notice), []).append(session_name)
    kept.write()
    tables = {
        name: pa.concat_tables(parts[name]) if parts[name] else _empty_table(table) for name, table in TABLES.items()
    }
    lines = []
    for (state, text), named in notices.items():
        verb = state and (" was" if len(named) == 1 else " were")
        lines.append(f"{and_more(dict.fromkeys(named), _NAMED)}{verb}{state}: {with_urls(text)}")
    if len(lines) > _NOTICES:
        lines[_NOTICES:] = [f"{counted(len(lines) - _NOTICES, 'further notice')}: query fewer sessions to read them"]
    return tables, lines


def _empty_table(table: Relation) -> Any:
    return arrow_schema(table).insert(0, pa.field(SESSION.key, pa.string())).empty_table()


def _tables_of(
    source: QueriedSession, tables: Sequence[Relation], needed: Collection[str] | None, kept: KeptColumns
) -> TablesRead:
    state = kept.state_of(source.path) if source.session is None else None
    found = kept.take(source.path, state)
    if found is not None:
        return found
    file: SessionFile | None = None
    found = []
    for table in tables:
        if table.name == "processes" and source.process is not None:
            found.append((table.name, source.process, []))
            continue
        file = file or SessionFile(source.path, source.session or load(source.path, Session))
        file.notices.clear()
        rows = arrow_table(table, file, needed)
        found.append((table.name, rows, [*file.session.notices, *file.notices]))
    if file is not None and file.session.complete:
        kept.add(source.path, state, found)
    return found
