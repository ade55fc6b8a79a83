"""What can be known of a session, described once: units, facts and relations, from which every form is made.

A unit knows how people read a value, and its types. A fact is a key, a unit, a meaning, and how it is read from a row.
A relation is the rows of a session with their facts. Unknown is None everywhere: NULL in SQL, null in JSON, an empty
cell in CSV, a dash for people; never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from jaxprof.units import UNKNOWN, bytes_, integer, percent, ratio, scaled, seconds

if TYPE_CHECKING:
    import numpy as np

    from jaxprof.session import Session

Row = TypeVar("Row")
SqlType = Literal["VARCHAR", "DOUBLE", "BIGINT", "BOOLEAN", "TIMESTAMP"]


def plain(cell: Any) -> str:
    """A cell without a unit, as people read it; a dash for unknown and for an empty text."""
    if cell is None or cell == "":
        return UNKNOWN
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return str(cell)


def at(path: str) -> Callable[[Any], Any]:
    """What reads the attribute of an attribute of a row, `run.memory.peak_bytes`: None if one on the way is None."""
    names = path.split(".")
    get = attrgetter(path)

    def read(row: Any) -> Any:
        try:
            return get(row)  # a third of the time of the loop
        except AttributeError:
            for name in names:
                if row is None:
                    return None
                row = getattr(row, name)
            return row

    return read


@dataclass(frozen=True, slots=True)
class Unit:
    """What a value is counted in."""

    sql: SqlType
    """Its type in SQL, Parquet and Arrow."""
    json: str
    """Its type in JSON, where it is known."""
    show: Callable[[Any], str] = plain
    """How people read it, None included: in text, Markdown and on a page."""
    right: bool = False
    """Whether it is aligned right."""


TEXT: Final = Unit("VARCHAR", "string")
LIST: Final = Unit("VARCHAR", "array")
"""In SQL its JSON."""
OBJECT: Final = Unit("VARCHAR", "object")
"""In SQL its JSON."""
TRUTH: Final = Unit("BOOLEAN", "boolean")
MOMENT: Final = Unit("TIMESTAMP", "string")
"""In UTC; its cells are texts of ISO 8601."""
UNIX_TIME: Final = Unit("DOUBLE", "number")
"""In seconds, by the clock of the host."""
INDEX: Final = Unit("BIGINT", "integer", right=True)
"""A number that names something: a line, a process, an exit code."""
COUNT: Final = Unit("BIGINT", "integer", integer, True)
NUMBER: Final = Unit("DOUBLE", "number", scaled, True)
SECONDS: Final = Unit("DOUBLE", "number", seconds, True)
BYTES: Final = Unit("BIGINT", "integer", bytes_, True)
REAL_BYTES: Final = replace(BYTES, sql="DOUBLE", json="number")
"""A sum or a product that may be beyond whole numbers."""
FLOPS: Final = Unit("DOUBLE", "number", scaled, True)
SHARE: Final = Unit("DOUBLE", "number", percent, True)
"""In 0..1."""
RATIO: Final = Unit("DOUBLE", "number", ratio, True)
RATE: Final = Unit("DOUBLE", "number", scaled, True)
"""In a second."""
BYTE_RATE: Final = replace(RATE, show=lambda rate: scaled(rate, "B/s"))


@dataclass(frozen=True, slots=True)
class Fact(Generic[Row]):
    """One figure, name or text that can be known of a row."""

    key: str
    """In JSON, CSV, SQL, Parquet and limits, with its unit."""
    unit: Unit
    meaning: str
    """In a line, without a full stop: the column's meaning in SQL, its description in the JSON schema."""
    read: Callable[[Row], Any] | None = None
    """The value of a row; by default what the row has at the key."""
    title: str | None = None
    """Its heading in tables for people; None where these leave it out."""

    def reader(self) -> Callable[[Row], Any]:
        """What takes the value out of a row."""
        return self.read or at(self.key)


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A session with its place on disk: what the rows of a relation are derived from."""

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
class Repeated:
    """A column that has the same value in each row of a part."""

    value: Any


@dataclass(frozen=True, slots=True)
class Encoded:
    """A column of texts that are few: `texts[index]` for each index."""

    texts: Sequence[str | None]
    indices: Sequence[int]


Part = Mapping[str, "Sequence[Any] | np.ndarray[Any, Any] | Repeated | Encoded"]
"""Rows of a relation, column by column: a list or an array of numbers, in which None is NULL."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows that a session has, all with the same facts."""

    name: str
    meaning: str
    facts: tuple[Fact[Any], ...]
    rows: Callable[[SessionFile], Iterable[Any]] | None = None
    arrays: Callable[[SessionFile], Iterable[Part]] | None = None
    """Instead of `rows`, where there are too many to be read one by one."""

    def parts(self, file: SessionFile) -> Iterable[Part]:
        """The rows of a session in parts, each with all the facts by their keys."""
        if self.arrays is not None:
            return self.arrays(file)
        cells: list[list[Any]] = [[] for _ in self.facts]
        takers = [(fact.reader(), column.append) for fact, column in zip(self.facts, cells, strict=True)]
        for row in self.rows(file) if self.rows is not None else ():
            for read, append in takers:
                append(read(row))
        return [{fact.key: column for fact, column in zip(self.facts, cells, strict=True)}]


def document(facts: Iterable[Fact[Any]]) -> str:
    """The table of the documents that lists these facts with their types in SQL."""
    lines = ["| key | type | meaning |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| `{fact.key}` | {fact.unit.sql} | {fact.meaning} |" for fact in facts)])


def within(of: Callable[[Any], Any], facts: Iterable[Fact[Any]]) -> Iterator[Fact[Any]]:
    """The facts, read from a part of the row; unknown where the row has no such part."""

    def through(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda row: None if (inner := of(row)) is None else read(inner)

    return (replace(fact, read=through(fact.reader())) for fact in facts)


def json_schema(facts: Iterable[Fact[Any]]) -> dict[str, Any]:
    """The JSON schema of a row, all of whose facts are there, and null where they are unknown."""
    listed = list(facts)
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {fact.key: {"type": [fact.unit.json, "null"], "description": fact.meaning} for fact in listed},
        "required": [fact.key for fact in listed],
    }
