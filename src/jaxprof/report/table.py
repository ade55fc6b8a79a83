"""A table as a value: facts as columns, over rows that hold measured values, not text.

Text, Markdown and HTML take the facts with a title and format each cell as a quantity; CSV and JSON take the facts with
a key and write numbers unformatted. The renderers are in `report.renderers`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Final, Generic

from jaxprof.facts import Fact, Row, within
from jaxprof.facts.units import TEXT, plain

_MOST_REMEMBERED: Final = 4096
"""Texts of numbers that are kept for each column."""


def remembering(show: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return `show` with a cache, so that a number is formatted once: in a long table most numbers repeat."""
    known: dict[float, str] = {}

    def shown(cell: Any) -> str:
        if cell.__class__ is not float and cell.__class__ is not int:
            return show(cell)
        text = known.get(cell)
        if text is None:
            text = show(cell)
            if len(known) < _MOST_REMEMBERED:
                known[cell] = text
        return text

    return shown


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """Rows under columns. Rows from an iterator are printed as they come, and can be read once."""

    columns: Sequence[Fact[Row]]
    rows: Iterable[Row]
    title: str = ""
    """A line before the table."""
    notes: tuple[str, ...] = ()
    """Lines after the table, for people only."""
    alike: Callable[[Row], Hashable | None] | None = None
    """Returns an equal value for rows that differ only in their first cell, whose other cells are then formatted once;
    None for a row like no other."""

    def for_people(self) -> list[Fact[Row]]:
        """Return the columns of text, Markdown and HTML."""
        return [column for column in self.columns if column.title is not None]

    def first(self, count: int, rest: str = "and {} more") -> Table[Row]:
        """Return the table with its first `count` rows, and a note of how many were left out. `rest`: format of the
        note."""
        rows = list(self.rows)
        left = len(rows) - count
        notes = (rest.format(left), *self.notes) if left > 0 else self.notes
        return replace(self, rows=rows[:count], notes=notes)


def cells_of(table: Table[Row]) -> Callable[[Row], list[str]]:
    """Return a function that makes the cells of a row as people read them."""
    readers = [
        (fact.reader(), fact.shown if fact.shown is plain else remembering(fact.shown)) for fact in table.for_people()
    ]
    return lambda row: [show(read(row)) for read, show in readers]


def texts(table: Table[Row]) -> Iterator[list[str]]:
    """Yield the cells of each row as people read them."""
    return map(cells_of(table), table.rows)


def joined(key: str, facts: Iterable[Fact[Row]], parts: Iterable[tuple[str, Iterable[Row]]]) -> Table[tuple[str, Row]]:
    """Join several tables with the same facts into one. Its first column, `key`, names the part of each row."""
    rows = ((name, row) for name, part in parts for row in part)
    of_part = Fact(key, TEXT, "Which one it is of", itemgetter(0))
    return Table([of_part, *within(itemgetter(1), facts)], rows)
