"""What can be known of a session, described once: units, facts and relations, from which every form is made.

A unit knows how people read a value, and its types. A fact is a key, a unit, a meaning, and how it is read from a row.
A relation is the rows of a session with their facts. Unknown is None everywhere: NULL in SQL, null in JSON, an empty
cell in CSV, a dash for people; never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from jaxprof.facts.units import OBJECT, TEXT, Unit, plain

if TYPE_CHECKING:
    import numpy as np

    from jaxprof.session import Session

Row = TypeVar("Row")


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

    _paths[read] = path
    return read


_paths: Final[WeakKeyDictionary[Callable[[Any], Any], str]] = WeakKeyDictionary()
"""Of what `at` made: the path that it reads."""


@dataclass(frozen=True, slots=True)
class Fact(Generic[Row]):
    """One figure, name or text that can be known of a row, and its column in every table."""

    key: str
    """In JSON, CSV, SQL, Parquet and limits, with its unit; empty for a column that only people see."""
    unit: Unit
    meaning: str
    """In a line, without a full stop: the column's meaning in SQL, its description in the JSON schema."""
    read: Callable[[Row], Any] | None = None
    """The value of a row; by default what the row has at the key."""
    title: str | None = None
    """Its heading in tables for people; None where these leave it out."""
    inside: tuple[Fact[Any], ...] = ()
    """The facts of an object, or of each row of a list."""
    alike: Callable[[Any], Hashable | None] | None = None
    """Of rows inside that differ in their first fact alone the same value: the others are read once. None for a row
    like no other."""
    when: Callable[[Row], Any] | None = None
    """Whether JSON has the key, where it does not apply to every row."""
    show: Callable[[Any], str] | None = None
    """How people read it, where not as its unit says."""
    right: bool | None = None
    """Whether it is aligned right; by default as its unit, or as quantities if it is shown otherwise."""
    widest: int = 0
    """Columns of a terminal that it takes at most; 0 is no limit."""
    gives_way: bool = False
    """Whether it is narrowed if the table is wider than the page."""

    @property
    def is_right(self) -> bool:
        """Whether the column is aligned right."""
        if self.right is not None:
            return self.right
        return self.unit.right if self.show is None else self.show is not plain

    @property
    def shown(self) -> Callable[[Any], str]:
        """How people read it."""
        return self.show or self.unit.show

    def reader(self) -> Callable[[Row], Any]:
        """What takes the value out of a row."""
        return self.read or at(self.key)

    def text(self, row: Row) -> str:
        """The value of a row as people read it."""
        return self.shown(self.reader()(row))

    def json_reader(self) -> Callable[[Row], Any]:
        """What takes the value out of a row as JSON has it: an empty text is null, and an iterator stays one."""
        read = self.reader()
        if self.inside:
            inner = recorder(self.inside)
            if self.alike is not None:
                inner = _once_if_alike(inner, self.inside[0], self.alike)
            if self.unit.by_name:
                return lambda row: {name: inner(each) for name, each in read(row).items()}
            if self.unit.json == "object":
                return lambda row: None if (cell := read(row)) is None else inner(cell)
            return lambda row: _each(inner, read(row))
        if self.unit.json == "array":
            return lambda row: list(cell) if isinstance(cell := read(row), tuple) else cell
        if self.unit.json == "string":
            return lambda row: None if (cell := read(row)) == "" else cell
        return read


def _each(record: Callable[[Any], dict[str, Any]], rows: Iterable[Any] | None) -> Any:
    if rows is None:
        return None
    return map(record, rows) if isinstance(rows, Iterator) else [record(row) for row in rows]


_MOST_ALIKE: Final = 1 << 14


def _once_if_alike(
    record: Callable[[Any], dict[str, Any]], first: Fact[Any], alike: Callable[[Any], Hashable | None]
) -> Callable[[Any], dict[str, Any]]:
    """As `record`, for rows of which there may be a million: see `Fact.alike`."""
    key, read = first.key, first.json_reader()
    known: dict[Hashable, dict[str, Any]] = {}

    def of(row: Any) -> dict[str, Any]:
        sort = alike(row)
        made = known.get(sort) if sort is not None else None
        if made is not None:
            return {**made, key: read(row)}
        made = record(row)
        if sort is not None and len(known) < _MOST_ALIKE:
            known[sort] = made
        return made

    return of


def column(
    title: str,
    read: Callable[[Any], Any],
    show: Callable[[Any], str] = plain,
    *,
    right: bool | None = None,
    widest: int = 0,
    gives_way: bool = False,
) -> Fact[Any]:
    """A column that only people see: words about a row, or figures that other facts have."""
    return Fact("", TEXT, "", read, title, show=show, right=right, widest=widest, gives_way=gives_way)


def recorder(facts: Iterable[Fact[Row]]) -> Callable[[Row], dict[str, Any]]:
    """What makes the object in JSON of a row."""
    readers = [(fact.key, fact.json_reader(), fact.when) for fact in facts if fact.key]
    if all(when is None for _, _, when in readers):
        return lambda row: {key: read(row) for key, read, _ in readers}
    return lambda row: {key: read(row) for key, read, when in readers if when is None or when(row)}


def columns(facts: Iterable[Fact[Row]]) -> Iterator[Fact[Row]]:
    """The facts as columns of a table for programs: what is inside an object stands beside it, and lists are JSON."""
    for fact in facts:
        if fact.inside and fact.unit is OBJECT:
            inner = within(fact.reader(), columns(fact.inside))
            yield from (replace(each, key=f"{fact.key}_{each.key}") for each in inner)
        elif fact.key:
            yield replace(fact, read=fact.json_reader()) if fact.inside else fact


def pick(facts: Iterable[Fact[Row]], *keys: str) -> tuple[Fact[Row], ...]:
    """The facts of these keys, in this order; one without a key goes by its title."""
    by_key = {fact.key or fact.title: fact for fact in facts}
    return tuple(by_key[key] for key in keys)


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

    def read(fact: Fact[Any]) -> Callable[[Any], Any]:
        path = _paths.get(fact.read) if fact.read is not None else fact.key
        return at(f"{_paths[of]}.{path}") if path and of in _paths else through(fact.reader())  # one step, not three

    return (replace(fact, read=read(fact), when=fact.when and through(fact.when)) for fact in facts)


def json_schema(facts: Iterable[Fact[Any]]) -> dict[str, Any]:
    """The JSON schema of a row: a figure is null where it is unknown, and a key is absent where it does not apply."""
    listed = [fact for fact in facts if fact.key]
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {fact.key: _schema_of(fact) for fact in listed},
        "required": [fact.key for fact in listed if fact.when is None],
    }


def _schema_of(fact: Fact[Any]) -> dict[str, Any]:
    unit = fact.unit
    schema: dict[str, Any] = {"type": [unit.json, "null"]} if unit.json else {}
    inner = json_schema(fact.inside) if fact.inside else {"type": [unit.items, "null"]} if unit.items else True
    if unit.json == "array":
        schema["items"] = inner
    elif unit.by_name:
        schema["additionalProperties"] = inner
    elif fact.inside:
        schema |= json_schema(fact.inside) | schema
    return schema | {"description": fact.meaning}


SENTENCE: Final[tuple[Fact[Any], ...]] = (
    Fact("code", TEXT, "What kind it is, as the documents list them"),
    Fact("message", TEXT, "The sentence, with its figures"),
    Fact("advice", TEXT, "What to do about it"),
)
"""Of a finding or a warning, whatever it is about."""
RUN: Final[Fact[Any]] = Fact("run", TEXT, "Id of the run, unique within its session: r2", at("run.id"))
"""Of rows that belong to a run."""
