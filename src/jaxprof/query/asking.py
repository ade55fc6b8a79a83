"""Asking sessions in SQL: their tables are gathered here, or read from Arrow files that
were made before, and a process of its own computes the answer (`database`).

It is killed once the query has taken too long, and when nobody waits for it any more.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from jaxprof.errors import FileRefusedError, UsageError
from jaxprof.facts import Relation, SessionFile
from jaxprof.limits import QUERY_MEMORY, QUERY_TIME, unbound
from jaxprof.operating_system import python_words
from jaxprof.query.columnar import arrow_schema, arrow_table, clean_text
from jaxprof.query.tables import SESSION, TABLES
from jaxprof.reaper import REAPER
from jaxprof.session.log.state import derived_folder, make_derived_folder, with_urls
from jaxprof.text import json_text
from jaxprof.version import __version__

if TYPE_CHECKING:
    from jaxprof.session import Session

_FORMAT: Final = 6
"""Counted up whenever a table is derived otherwise than before."""


def stamp(path: Path, table: Relation, *, live: bool) -> dict[str, Any]:
    """What a table depends on: equal stamps have equal tables. Raises OSError if the session is not there."""
    from jaxprof.analysis.ceilings import kept_at

    status = path.stat()
    schema = repr([(fact.key, fact.unit.sql) for fact in table.facts])
    return {
        "format": _FORMAT,
        "jaxprof": __version__,
        "table": hashlib.sha256(f"{table.name}{schema}".encode()).hexdigest(),
        "size_bytes": status.st_size,
        "modified_ns": status.st_mtime_ns,
        "live": live,
        "ceilings_ns": kept_at(),
    }


def read_cached(path: Path, table: Relation, wanted: dict[str, Any]) -> tuple[Any, list[str]] | None:
    """The table with this stamp, and the notices of the session; None if there is no such copy."""
    try:
        with (derived_folder(path) / f"{table.name}.arrow").open("rb") as file:
            head, body = json.loads(file.readline()), file.read()
        if head["stamp"] != wanted or head["crc32"] != zlib.crc32(body):
            return None
        found = pa.ipc.open_stream(body).read_all()
        return (found, list(map(str, head["notices"]))) if found.schema.equals(arrow_schema(table)) else None
    except (OSError, ValueError, LookupError, TypeError, pa.ArrowException):
        return None


def write_cached(path: Path, table: Relation, made: Any, wanted: dict[str, Any], notices: list[str]) -> None:
    """Keep a copy, whole or not at all."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    body = sink.getvalue().to_pybytes()
    head = json_text({"stamp": wanted, "crc32": zlib.crc32(body), "notices": notices})
    with suppress(OSError):
        partial = make_derived_folder(path) / f".{table.name}.{os.getpid()}"
        try:
            partial.write_bytes(head.encode() + b"\n" + body)
            partial.replace(partial.with_name(f"{table.name}.arrow"))
        finally:
            partial.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class AskedSession:
    """A session to be asked."""

    name: str
    """In the column `session`."""
    path: Path
    session: Session | None = None
    """A profile that was read as a session, whose tables are not kept; None for a session, which is read if needed."""
    optional: bool = False
    """Whether it is left out, with a notice, where it cannot be read."""
    process: Any = None
    """The row of the table of processes, of a process whose roll-up holds all of its session."""


class SqlProcess:
    """The process that computes one answer."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            python_words(sys.executable, "-m", "jaxprof.query.database"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # ctrl+c is for us, who kill it
        )
        unbound(self._process.pid)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.source, self.sink = self._process.stdout, self._process.stdin
        self._late = False
        self._timer = threading.Timer(QUERY_TIME.most, self._end_late)
        self._timer.daemon = True
        REAPER.add(self._process.pid, "")

    def start_clock(self) -> None:
        """From now on it has the time of a query."""
        self._timer.start()

    def close(self) -> None:
        """Ends it."""
        self._timer.cancel()
        self._process.kill()
        self._process.wait()
        REAPER.drop(self._process.pid)
        for pipe in (self.sink, self.source):
            with suppress(OSError):
                pipe.close()

    @property
    def error(self) -> UsageError:
        """Why there is no answer, or no more of it."""
        if self._late:
            return UsageError(
                f"SQL: the query takes {QUERY_TIME.words}", f"Ask for less, or for aggregates. {QUERY_TIME.hint}"
            )
        code = self._process.wait()
        return UsageError(f"SQL: the process of the query ended with {code}", "Ask for less: it may lack memory.")

    def _end_late(self) -> None:
        self._late = True
        self._process.kill()


@dataclass(slots=True)
class SqlAnswer:
    """The rows of a query, which can be read once."""

    reader: Any
    """An Arrow `RecordBatchReader`, whose columns have different names."""
    process: SqlProcess
    notices: list[str] = field(default_factory=list)
    """What could not be read of the sessions."""

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.reader.schema.names)

    def rows(self) -> Iterator[list[Any]]:
        """The rows as Python values, one after the other, as they are computed. Raises UsageError."""
        for batch in self._batches():
            yield from map(list, zip(*map(_values, batch.columns), strict=True))

    def first(self, count: int | None) -> tuple[list[list[Any]], bool]:
        """The first rows as Python values, or all if `count` is None, and whether there are more. Raises UsageError."""
        rows = self.rows()
        taken = list(islice(rows, count if count is None else min(count, sys.maxsize)))
        return taken, next(rows, None) is not None

    def table(self) -> Any:
        """All rows as an Arrow table. Raises UsageError."""
        return pa.Table.from_batches(self._batches(), self.reader.schema)

    def _batches(self) -> Iterator[Any]:
        with _errors_of(self.process):
            yield from self.reader
            _refuse_error(self.process)


def _values(column: Any) -> list[Any]:
    """The cells as Python values. A day in the year 5 000 000, for which Python has none, is a text that says so."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        return list(column.cast(pa.string()).to_pylist())


@contextmanager
def ask(sql: str, sources: Sequence[AskedSession]) -> Iterator[SqlAnswer]:
    """The answer of one SELECT over the tables of these sessions, which can be read inside.

    Raises UsageError for any other statement, and for SQL that cannot be understood; FileRefusedError for a session
    that cannot be read.
    """
    process = SqlProcess()  # which imports what it needs meanwhile
    try:
        with _errors_of_memory():
            tables, notices = tables_of(sql, sources)
        with _errors_of(process):
            _send(process, sql, tables)
            process.start_clock()
            _refuse_error(process)
            reader = pa.ipc.open_stream(process.source)
        yield SqlAnswer(reader, process, notices)
    finally:
        process.close()


def _send(process: SqlProcess, sql: str, tables: Mapping[str, Any]) -> None:
    process.sink.write(json.dumps({"sql": sql, "tables": list(tables)}).encode() + b"\n")
    for table in tables.values():
        with pa.ipc.new_stream(process.sink, table.schema) as writer:
            writer.write_table(table)
    process.sink.flush()


def _refuse_error(process: SqlProcess) -> None:
    """Raises UsageError if the line that comes now is one, or if none comes."""
    line = process.source.readline()
    if not line:
        raise process.error
    error = json.loads(line)["error"]
    if error is not None:
        raise UsageError(error["what"], error["hint"])


@contextmanager
def _errors_of(process: SqlProcess) -> Iterator[None]:
    """What its pipes say once it has ended as the reason of that."""
    try:
        with _errors_of_memory():
            yield
    except (OSError, ValueError) as error:  # also those of Arrow
        raise process.error from error


@contextmanager
def _errors_of_memory() -> Iterator[None]:
    try:
        yield
    except MemoryError as error:
        raise UsageError(f"SQL: the query needs {QUERY_MEMORY.words}", f"Ask for less. {QUERY_MEMORY.hint}") from error


def tables_of(sql: str, sources: Sequence[AskedSession]) -> tuple[dict[str, Any], list[str]]:
    """All tables by name, with rows in those that a query may read, and what could not be read. Raises
    FileRefusedError."""
    tables, notices = gather(sources, _tables_in(sql))
    return {name: tables.get(name) or _whole_schema(table).empty_table() for name, table in TABLES.items()}, notices


def _tables_in(sql: str) -> list[str]:
    """The tables that a query may read: all that it names, and every table if it can make up names (`query_table`)."""
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    return list(TABLES) if words & {"query", "query_table"} else [name for name in TABLES if name in words]


def gather(sources: Iterable[AskedSession], names: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The tables of these names over all sessions, and what could not be read. Raises FileRefusedError."""
    parts: dict[str, list[Any]] = {name: [] for name in names}
    notices: list[str] = []
    for source in sources:
        try:
            found = _of_source(source, [TABLES[name] for name in names])
        except FileRefusedError as error:
            if not source.optional:
                raise
            notices.append(f"{source.name} was left out: {with_urls(error.what)}")
            continue
        for name, (table, said) in found.items():
            session = pa.DictionaryArray.from_arrays(
                pa.repeat(pa.scalar(0, pa.int8()), len(table)), pa.array([clean_text(source.name)])
            )
            parts[name].append(table.add_column(0, SESSION.key, session))
            notices += (f"{source.name}: {notice}" for notice in said)
    schemas = {name: _whole_schema(TABLES[name]) for name in names}
    tables = {name: pa.concat_tables(found) if found else schemas[name].empty_table() for name, found in parts.items()}
    return tables, list(dict.fromkeys(notices))


def _of_source(source: AskedSession, tables: Sequence[Relation]) -> dict[str, tuple[Any, list[str]]]:
    """Each table with the notices of the session: kept ones, or made of the session, which is then read once."""
    if source.session is not None:
        return _made(SessionFile(source.path, source.session), tables)
    if source.process is not None:
        rest = [table for table in tables if table.name != "processes"]
        of_session = _of_source(replace(source, process=None), rest) if rest else {}
        return {**of_session, "processes": (source.process, [])}
    from jaxprof.session import Session
    from jaxprof.session.log import load
    from jaxprof.session.log.reader import is_live

    live = is_live(source.path)
    try:
        stamps = {table.name: stamp(source.path, table, live=live) for table in tables}
    except OSError:
        stamps = {}
    found = {}
    for table in tables:
        kept = read_cached(source.path, table, stamps[table.name]) if stamps else None
        if kept is not None:
            found[table.name] = kept
    missing = [table for table in tables if table.name not in found]
    if missing:
        session = load(source.path, Session)
        made = _made(SessionFile(source.path, session, live and not session.complete), missing)
        for table in missing if stamps else ():
            write_cached(source.path, table, made[table.name][0], stamps[table.name], made[table.name][1])
        found |= made
    return found


def _made(file: SessionFile, tables: Sequence[Relation]) -> dict[str, tuple[Any, list[str]]]:
    made = {}
    for table in tables:
        file.notices.clear()
        rows = arrow_table(table, file)
        made[table.name] = rows, [*file.session.notices, *file.notices]
    return made


def _whole_schema(table: Relation) -> Any:
    return arrow_schema(table).insert(0, pa.field(SESSION.key, pa.string()))
