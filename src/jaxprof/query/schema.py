"""What a table of SQL is made of: named columns with a type, a meaning and a unit, over the rows of one session.

A column's unit is in its name (`seconds`, `bytes`), else in its meaning. NULL is unknown, or does not apply; never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from jaxprof.report.table import at

if TYPE_CHECKING:
    import numpy as np

    from jaxprof.report.table import Column
    from jaxprof.session import Session

SqlType = Literal["VARCHAR", "DOUBLE", "BIGINT", "BOOLEAN", "TIMESTAMP"]
TEXT: Final = "VARCHAR"
REAL: Final = "DOUBLE"
WHOLE: Final = "BIGINT"
TRUTH: Final = "BOOLEAN"
MOMENT: Final = "TIMESTAMP"
"""In UTC; its cells are texts of ISO 8601."""


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A session with its place on disk: what the rows of a table are derived from."""

    path: Path
    session: Session
    live: bool = False
    """Whether a process is writing the file now."""
    notices: list[str] = field(default_factory=list)
    """What could not be read while tables were made of it, a line each."""

    @property
    def name(self) -> str:
        """What commands call it."""
        from jaxprof.session.log import Library

        return Library().name_of(self.path)


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """One column of a table."""

    name: str
    type: SqlType
    meaning: str
    value: Callable[[Any], Any] | None = None
    """The cell of a row; by default the row's attribute of this name."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A column that has the same value in each row of a part."""

    value: Any


@dataclass(frozen=True, slots=True)
class Encoded:
    """A column of texts that are few: `texts[index]` for each index."""

    texts: Sequence[str | None]
    indices: Sequence[int]


Part = Mapping[str, "Sequence[Any] | np.ndarray[Any, Any] | Repeated | Encoded"]
"""Rows of a table, column by column: a list or an array of numbers, in which None is NULL."""


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table of SQL; in a query its first column is `session`, which is not part of it."""

    name: str
    meaning: str
    columns: tuple[SqlColumn, ...]
    parts: Callable[[SessionFile], Iterable[Part]]
    """The rows of a session in parts, each with all the columns."""


SESSION: Final = SqlColumn(
    "session", TEXT, "Name of the session's file, without its ending; the path if two have one name"
)
"""The first column of each table."""


def by_rows(
    columns: Iterable[SqlColumn], rows: Callable[[SessionFile], Iterable[Any]]
) -> Callable[[SessionFile], Iterator[Part]]:
    """The parts of a table whose cells are read row by row, for tables of a few thousand rows."""
    readers = [(column.name, column.value or at(column.name)) for column in columns]

    def parts(file: SessionFile) -> Iterator[Part]:
        cells: list[list[Any]] = [[] for _ in readers]
        takers = [(read, column.append) for (_, read), column in zip(readers, cells, strict=True)]
        for row in rows(file):
            for read, append in takers:
                append(read(row))
        yield {name: column for (name, _), column in zip(readers, cells, strict=True)}

    return parts


def row_table(
    name: str, meaning: str, columns: Iterable[SqlColumn], rows: Callable[[SessionFile], Iterable[Any]]
) -> SqlTable:
    """A table whose cells are read row by row."""
    listed = tuple(columns)
    return SqlTable(name, meaning, listed, by_rows(listed, rows))


def described(report: Iterable[Column[Any]], *columns: tuple[str, SqlType, str]) -> Iterator[SqlColumn]:
    """Columns of a report's table under the names of their keys, each with a type and a meaning; `key=name` gives one
    another name. So a figure is derived in one place for reports and SQL."""
    readers = {column.key: column.reader() for column in report if column.key}
    for given, type_, meaning in columns:
        key, _, name = given.partition("=")
        yield SqlColumn(name or key.replace(".", "_"), type_, meaning, readers[key])


def within(of: Callable[[Any], Any], columns: Iterable[SqlColumn]) -> Iterator[SqlColumn]:
    """The columns, whose values are read from a part of the row; NULL where the row has no such part."""
    for column in columns:
        read = column.value or at(column.name)
        yield SqlColumn(column.name, column.type, column.meaning, _through(of, read))


def _through(of: Callable[[Any], Any], read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def value(row: Any) -> Any:
        inner = of(row)
        return None if inner is None else read(inner)

    return value


def flat(rows: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """The rows of several runs, one run after the other."""
    return chain.from_iterable(rows)
