"""A table as a value: columns as data, over rows that hold measured values, not text.

A column says where a row has its cell and how people read it, so that all forms of a report agree: text, Markdown and
HTML take the columns that have a title and show each cell as a quantity; CSV and JSON take those that have a key, with
the number as it is and its unit in the key. The renderers are in `report.renderers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Final, Generic

from jaxprof.facts import Fact, Row, Unit, at, plain

_MOST_SHOWN: Final = 4096


def remembering(show: Callable[[Any], str]) -> Callable[[Any], str]:
    """`show`, which formats a number that comes again only once: in a long table most do."""
    known: dict[float, str] = {}

    def shown(cell: Any) -> str:
        if cell.__class__ is not float and cell.__class__ is not int:
            return show(cell)
        text = known.get(cell)
        if text is None:
            text = show(cell)
            if len(known) < _MOST_SHOWN:
                known[cell] = text
        return text

    return shown


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """One column of a table; `Column("median_seconds", "median", show=seconds)` is all that most of them need."""

    key: str = ""
    """In CSV and JSON, with its unit; empty for a column that is for people only. `parts.idle` is `idle` inside `parts`
    in JSON, and `parts_idle` in CSV."""
    title: str | None = None
    """In text, Markdown and HTML; None for a column that is for programs only."""
    value: Callable[[Row], Any] | None = None
    """The cell of a row: a number, a text, a truth value, a list, or None if unknown. By default what the row
    has at the key."""
    show: Callable[[Any], str] = plain
    """Formats the cell for people, None included."""
    right: bool | None = None
    """Whether it is aligned right; by default quantities are."""
    widest: int = 0
    """Columns of a terminal that it takes at most; 0 is no limit."""
    gives_way: bool = False
    """Whether it is narrowed if the table is wider than the page."""

    @property
    def is_right(self) -> bool:
        """Whether the column is aligned right."""
        return self.show is not plain if self.right is None else self.right

    def reader(self) -> Callable[[Row], Any]:
        """What takes the cell out of a row."""
        return self.value or at(self.key)

    def text(self, row: Row) -> str:
        """The cell of a row as people read it."""
        return self.show(self.reader()(row))


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """Rows under columns. An iterator of rows is printed as it comes, and once."""

    columns: Sequence[Column[Row]]
    rows: Iterable[Row]
    title: str = ""
    """A line before the table."""
    notes: tuple[str, ...] = ()
    """Lines after the table, for people only."""

    def for_people(self) -> list[Column[Row]]:
        """The columns of text, Markdown and HTML."""
        return [column for column in self.columns if column.title is not None]

    def for_programs(self) -> list[Column[Row]]:
        """The columns of CSV and JSON."""
        return [column for column in self.columns if column.key]

    def first(self, count: int, rest: str = "and {} more") -> Table[Row]:
        """The table with its first `count` rows, and a note of how many were left out."""
        rows = list(self.rows)
        left = len(rows) - count
        notes = (rest.format(left), *self.notes) if left > 0 else self.notes
        return replace(self, rows=rows[:count], notes=notes)


def texts(table: Table[Row]) -> Iterator[list[str]]:
    """The rows as people read them, one list of cells after the other."""
    readers = [
        (column.reader(), column.show if column.show is plain else remembering(column.show))
        for column in table.for_people()
    ]
    return ([show(read(row)) for read, show in readers] for row in table.rows)


def of_facts(facts: Iterable[Fact[Row]]) -> tuple[Column[Row], ...]:
    """The columns of a relation."""
    return tuple(Column(fact.key, fact.title, fact.reader(), fact.unit.show, fact.unit.right) for fact in facts)


def described(columns: Iterable[Column[Any]], *listed: tuple[str, Unit, str]) -> Iterator[Fact[Any]]:
    """Facts that are read as columns of these keys are, each with its unit and its meaning; `key=name` gives one
    another key."""
    readers = {column.key: column.reader() for column in columns if column.key}
    for given, unit, meaning in listed:
        key, _, name = given.partition("=")
        yield Fact(name or key.replace(".", "_"), unit, meaning, readers[key])


def pick(columns: Iterable[Column[Row]], *keys: str) -> tuple[Column[Row], ...]:
    """The columns of these keys, in this order; one without a key goes by its title."""
    by_key = {column.key or column.title: column for column in columns}
    return tuple(by_key[key] for key in keys)


def joined(
    key: str, columns: Iterable[Column[Row]], parts: Iterable[tuple[str, Iterable[Row]]]
) -> Table[tuple[str, Row]]:
    """One table of several with the same columns; its first column, `key`, says which of the parts a row is of."""

    def of_part(column: Column[Row]) -> Column[tuple[str, Row]]:
        read = column.reader()
        return Column(column.key, column.title, lambda row: read(row[1]), column.show, column.right, column.widest)

    rows = ((name, row) for name, part in parts for row in part)
    return Table([Column(key, value=itemgetter(0)), *map(of_part, columns)], rows)
