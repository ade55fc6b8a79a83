"""A database in memory that has the tables of sessions and nothing else: no file, no network, no setting to change."""

from __future__ import annotations

import re
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa

from jaxprof.errors import FileRefusedError, UsageError
from jaxprof.limits import QUERY_MEMORY, QUERY_TIME
from jaxprof.query.cache import read_cached, stamp, write_cached
from jaxprof.query.columnar import arrow_schema, arrow_table, table_of
from jaxprof.query.connection import connect
from jaxprof.query.job_tables import PROCESSES_TABLE, process_part
from jaxprof.query.schema import SESSION, SessionFile, SqlTable
from jaxprof.query.tables import TABLES
from jaxprof.session.log.state import with_urls

if TYPE_CHECKING:
    from jaxprof.analysis.jobs.figures import ProcessFigures
    from jaxprof.session import Session

_GROWTH: Final = 2
_BATCH_ROWS: Final = 2048
_REFUSED: Final = re.compile(r"\b(INSTALL|LOAD|SET|PRAGMA|ATTACH)\b")
"""In DuckDB's advice: statements that are refused here."""


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
    figures: ProcessFigures | None = None
    """Of a process of a job whose roll-up holds all of its session: then the table of processes needs no session."""


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Meanwhile the process cannot grow by more than twice the limit of a query: a single value (`repeat`) is no
    part of DuckDB's own account, and is copied on its way out. Not on systems that have no such bound."""
    try:
        import resource

        used = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    except (ImportError, OSError, ValueError):
        yield
        return
    most = used + _GROWTH * QUERY_MEMORY.most
    resource.setrlimit(resource.RLIMIT_AS, (most if soft == resource.RLIM_INFINITY else min(soft, most), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class Deadline:
    """Interrupts a connection once its query has taken too long: a recursion has no end of its own."""

    def __init__(self, connection: Any) -> None:
        self._end = time.monotonic() + QUERY_TIME.most
        timer = threading.Timer(QUERY_TIME.most, connection.interrupt)
        timer.daemon = True
        weakref.finalize(self, _end, timer)  # also at exit
        timer.start()

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._end

    def check(self) -> None:
        """Raises UsageError if the time is over."""
        if self.passed:
            raise self.error

    @property
    def error(self) -> UsageError:
        """Why there is no answer."""
        return UsageError(
            f"SQL: the query takes {QUERY_TIME.words}", f"Ask for less, or for aggregates. {QUERY_TIME.hint}"
        )


def _end(timer: threading.Timer) -> None:
    """Waits for the thread: one that is alive when the interpreter ends makes the process abort."""
    timer.cancel()
    if timer is not threading.current_thread():
        timer.join()


@dataclass(slots=True)
class SqlAnswer:
    """The rows of a query, which can be read once."""

    reader: Any
    """An Arrow `RecordBatchReader`, whose columns have different names."""
    deadline: Deadline
    notices: list[str] = field(default_factory=list)
    """What could not be read of the sessions."""

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.reader.schema.names)

    def rows(self) -> Iterator[list[Any]]:
        """The rows as Python values, one after the other, as they are computed. Raises UsageError."""
        with _usage_errors(self.deadline):
            for batch in self.reader:
                self.deadline.check()
                yield from map(list, zip(*map(_values, batch.columns), strict=True))

    def first(self, count: int | None) -> tuple[list[list[Any]], bool]:
        """The first rows as Python values, or all if `count` is None, and whether there are more. Raises UsageError."""
        rows = self.rows()
        taken = list(islice(rows, count))
        return taken, next(rows, None) is not None

    def table(self) -> Any:
        """All rows as an Arrow table. Raises UsageError."""
        with _usage_errors(self.deadline):
            return self.reader.read_all()


def _values(column: Any) -> list[Any]:
    """The cells as Python values. A day in the year 5 000 000, for which Python has none, is a text that says so."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        return list(column.cast(pa.string()).to_pylist())


def ask(sql: str, sources: Sequence[AskedSession]) -> SqlAnswer:
    """The answer of one SELECT over the tables of these sessions.

    Raises UsageError for any other statement, and for SQL that cannot be understood; FileRefusedError for a session
    that cannot be read.
    """
    with _usage_errors():
        connection = connect(memory_bytes=QUERY_MEMORY.most)
        _refuse_other_statements(connection.extract_statements(sql))
        needed = _tables_in(sql)
        tables, notices = gather(sources, needed)
        for name, table in TABLES.items():
            connection.register(name, tables[name] if name in needed else _whole_schema(table).empty_table())
        deadline = Deadline(connection)
        with _usage_errors(deadline):
            reader = connection.sql(sql).to_arrow_reader(_BATCH_ROWS)
        return SqlAnswer(_with_different_names(reader), deadline, notices)


def _refuse_other_statements(statements: list[Any]) -> None:
    kinds = [statement.type.name for statement in statements]
    if not kinds:
        raise UsageError("there is no SQL", 'jaxprof query last "SELECT * FROM runs"')
    if len(kinds) > 1:
        raise UsageError(f"{len(kinds)} statements were given", "Give one SELECT.")
    if kinds != ["SELECT"]:
        what = "PIVOT without IN (...)" if kinds == ["MULTI"] else kinds[0].replace("_", " ")
        raise UsageError(f"{what} is refused: sessions are only read", "Give one SELECT, WITH, DESCRIBE or SUMMARIZE.")


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
            session = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), len(table)), [source.name])
            parts[name].append(table.add_column(0, SESSION.name, session))
            notices += (f"{source.name}: {notice}" for notice in said)
    schemas = {name: _whole_schema(TABLES[name]) for name in names}
    tables = {name: pa.concat_tables(found) if found else schemas[name].empty_table() for name, found in parts.items()}
    return tables, list(dict.fromkeys(notices))


def _of_source(source: AskedSession, tables: Sequence[SqlTable]) -> dict[str, tuple[Any, list[str]]]:
    """Each table with the notices of the session: kept ones, or made of the session, which is then read once."""
    if source.session is not None:
        return _made(SessionFile(source.path, source.session), tables)
    if source.figures is not None:
        known = {PROCESSES_TABLE.name: (table_of(PROCESSES_TABLE, [process_part(source.figures)]), list[str]())}
        rest = [table for table in tables if table.name not in known]
        return {**(_of_source(replace(source, figures=None), rest) if rest else {}), **known}
    from jaxprof.session import Session
    from jaxprof.session.log import load
    from jaxprof.session.log.entry import is_live

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


def _made(file: SessionFile, tables: Sequence[SqlTable]) -> dict[str, tuple[Any, list[str]]]:
    made = {}
    for table in tables:
        file.notices.clear()
        rows = arrow_table(table, file)
        made[table.name] = rows, [*file.session.notices, *file.notices]
    return made


def _whole_schema(table: SqlTable) -> Any:
    return arrow_schema(table).insert(0, pa.field(SESSION.name, pa.string()))


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
def _usage_errors(deadline: Deadline | None = None) -> Iterator[None]:
    """What DuckDB says of the SQL as a UsageError, and an interrupt as what it is: the user's, or the deadline's."""
    try:
        yield
    except MemoryError as error:
        raise _too_large() from error
    except (RuntimeError, OSError, duckdb.Error, pa.ArrowException) as error:
        if deadline is not None and deadline.passed and "nterrupt" in str(error):
            raise deadline.error from error
        of_sql = isinstance(error, duckdb.Error | pa.ArrowException) or " Error: " in str(error)
        if of_sql and not isinstance(error, FileRefusedError):
            raise _in_one_line(str(error)) from error
        if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt) or "interrupted" in str(error):
            raise KeyboardInterrupt from error
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
