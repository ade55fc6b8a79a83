"""Describe once what can be known of a session, in units, facts and relations, for all output formats.

A unit has the format of a value for people, and its types. A fact is a key, a unit, a meaning, and how it is read from
a row. A relation is the rows of a session with their facts. Unknown is None everywhere: NULL in SQL, null in JSON, an
empty cell in CSV, a dash for people; never 0.

A new fact is a line in the tuple of its relation, here of runs, whose rows are `RunRow` (`facts/runs.py`):

    Fact("preset", TEXT, "Name of the sizes", "run.plan.preset")           # read by a path, or a function of the row
    Fact("flops", FLOPS, "FLOPs of one call", "result.flops", "FLOPs")     # with a title, for people
    *within("run.check", (Fact("passed", TRUTH, "Whether it is right"),))  # from a part of the row; None without it
    *only_if("run.measured", Fact("idle_seconds", SECONDS, "Idle time"))   # the JSON of other rows lacks the key
    optional("side", TEXT, "A, B...", "run.plan.side")                     # JSON lacks the key where it is empty
    pick(RUNS.facts, "preset", "flops")                                    # what a report shows, in this order

Facts in `in_tables(...)` are not in JSON, which has them in another form; those of a process besides `FIGURES` are in
SQL and roll-ups alone. A relation with `arrays` (samples, intervals) needs each column in that function, too. An object
or a list of objects is a fact with facts `inside`. A unit that is not there is a `Unit` in `units`. Tables of a job, of
steps, of buffers and of compilations have all facts with a title; other reports and screens show what they `pick`. What
only people read is a `column` beside the facts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from jaxprof.base.values import frozen
from jaxprof.facts.units import BYTES, LIST, MOMENT, OBJECT, SECONDS, TEXT, TRUTH, Unit, plain
from jaxprof.session.files import lasting_name

if TYPE_CHECKING:
    import numpy as np

    from jaxprof.session import Run, Session

Row = TypeVar("Row")


def at(path: str) -> Callable[[Any], Any]:
    """Return a function that reads an attribute by its path, `run.memory.peak_bytes`; None if a part is None."""
    names = path.split(".")
    get = attrgetter(path)

    def read(row: Any) -> Any:
        try:
            return get(row)  # takes a third of the time of the loop
        except AttributeError:
            for name in names:
                if row is None:
                    return None
                row = getattr(row, name)
            return row

    return read


Read: TypeAlias = Callable[[Row], Any] | str
"""Function that reads a value of a row, or the path of the attribute that it is."""


def reading(read: Read[Row]) -> Callable[[Row], Any]:
    return at(read) if isinstance(read, str) else read


@frozen
class Fact(Generic[Row]):
    """One figure, name or text that can be known of a row, and its column in every table."""

    key: str
    """Name in JSON, CSV, SQL, Parquet and limits, with its unit; empty for a column that only people see."""
    unit: Unit
    meaning: str
    """Meaning in a line without a full stop, for the columns of SQL and the JSON schema."""
    read: Read[Row] | None = None
    """Reads the value of a row; by default the attribute `key`."""
    title: str | None = None
    """Heading in tables for people; None if these leave the fact out."""
    inside: Facts[Any] = ()
    """Facts of an object, or of each row of a list."""
    when: Read[Row] | None = None
    """Reads whether the JSON of a row has the key; None if the JSON of every row has it."""
    in_tables: bool = False
    """Whether only tables have it, because JSON has it in another form or inside an object."""
    show: Callable[[Any], str] | None = None
    """Formats the value for people, in place of the format of the unit."""
    right: bool | None = None
    """Whether the column is aligned right. By default as its unit, or with `show` unless that is `plain`."""
    widest: int = 0
    """Most terminal columns that a cell takes; 0 for no limit."""
    gives_way: bool = False
    """Whether the column is narrowed if the table is wider than the page."""
    by: Callable[[Row], Hashable] | None = None
    """Reads what the cell depends on, if many rows of a long table are equal in it; None if nothing is known."""

    @property
    def is_right(self) -> bool:
        if self.right is not None:
            return self.right
        return self.unit.right if self.show is None else self.show is not plain

    @property
    def shown(self) -> Callable[[Any], str]:
        return self.show or self.unit.show

    def reader(self) -> Callable[[Row], Any]:
        return reading(self.read or self.key)

    @property
    def applies(self) -> Callable[[Row], Any] | None:
        """Returns whether the JSON of a row has the key; None if the JSON of every row has it."""
        return None if self.when is None else reading(self.when)

    def text(self, row: Row) -> str:
        return self.shown(self.reader()(row))

    def json_reader(self) -> Callable[[Row], Any]:
        """Return a function that reads a value as JSON has it: an empty text is null, an iterator stays one."""
        read = self.reader()
        if self.inside:
            inner = recorder(self.inside)
            if self.unit.by_name:
                return lambda row: {name: inner(value) for name, value in read(row).items()}
            if self.unit.json == "object":
                return lambda row: None if (cell := read(row)) is None else inner(cell)
            return lambda row: _record_all(inner, read(row))
        if self.unit.json == "array":
            return lambda row: list(cell) if isinstance(cell := read(row), tuple) else cell
        if self.unit.json == "string":
            return lambda row: None if (cell := read(row)) == "" else cell
        return read


Facts: TypeAlias = tuple[Fact[Row], ...]


def _record_all(record: Callable[[Any], dict[str, Any]], rows: Iterable[Any] | None) -> Any:
    if rows is None:
        return None
    return Records(record, rows) if isinstance(rows, Iterator) else [record(row) for row in rows]


class Records(Iterator[dict[str, Any]]):
    """JSON objects of rows, each made when it is requested."""

    def __init__(self, record: Callable[[Any], dict[str, Any]], rows: Iterator[Any]) -> None:
        self._record = record
        self.rows = rows
        """The rows that were not requested yet; whoever only counts them makes no objects."""

    def __next__(self) -> dict[str, Any]:
        return self._record(next(self.rows))


def column(
    title: str,
    read: Read[Any],
    show: Callable[[Any], str] = plain,
    *,
    right: bool | None = None,
    widest: int = 0,
    gives_way: bool = False,
    by: Callable[[Any], Hashable] | None = None,
) -> Fact[Any]:
    """Return a column that only people see: words about a row, or figures that other facts have."""
    return Fact("", TEXT, "", read, title, show=show, right=right, widest=widest, gives_way=gives_way, by=by)


def optional(
    key: str, unit: Unit, meaning: str, read: Read[Any] | None = None, *, inside: Facts[Any] = ()
) -> Fact[Any]:
    """Return a fact whose key is left out of the JSON of a row for which it is false, empty or unknown."""
    return Fact(key, unit, meaning, read, inside=inside, when=read or key)


def only_if(when: Read[Row], *facts: Fact[Row]) -> Iterator[Fact[Row]]:
    """Yield the facts, whose keys only the JSON of a row has for which `when` is true."""
    return (dataclasses.replace(fact, when=when) for fact in facts)


def in_tables(*facts: Fact[Row]) -> Iterator[Fact[Row]]:
    """Yield the facts for tables alone: JSON has them in another form, or inside an object."""
    return (dataclasses.replace(fact, in_tables=True) for fact in facts)


def for_json(facts: Iterable[Fact[Row]]) -> Iterator[Fact[Row]]:
    return (fact for fact in facts if not fact.in_tables)


def recorder(facts: Iterable[Fact[Row]]) -> Callable[[Row], dict[str, Any]]:
    """Return a function that makes the JSON object of a row."""
    readers = [(fact.key, fact.json_reader(), fact.applies) for fact in facts if fact.key]
    if all(applies is None for _, _, applies in readers):
        return lambda row: {key: read(row) for key, read, _ in readers}
    return lambda row: {key: read(row) for key, read, applies in readers if applies is None or applies(row)}


def columns(facts: Iterable[Fact[Row]]) -> Iterator[Fact[Row]]:
    """Yield the facts as columns of a table for programs: each fact of an object is a column, and a list is JSON."""
    for fact in facts:
        if fact.inside and fact.unit is OBJECT:
            inner_facts = within(fact.read or fact.key, columns(fact.inside))
            yield from (dataclasses.replace(inner, key=f"{fact.key}_{inner.key}") for inner in inner_facts)
        elif fact.key:
            yield dataclasses.replace(fact, read=fact.json_reader(), inside=()) if fact.inside else fact


def pick(facts: Iterable[Fact[Row]], *keys: str) -> Facts[Row]:
    """Return the facts with these keys, in this order; a fact without a key goes by its title."""
    by_key = {fact.key or fact.title: fact for fact in facts}
    return tuple(by_key[key] for key in keys)


@dataclasses.dataclass(frozen=True, slots=True)
class SessionFile:
    """A session with its file, from which the rows of a relation are derived."""

    path: Path
    session: Session
    notices: list[str] = dataclasses.field(default_factory=list)
    """What could not be read while tables were made of it, a line each."""

    @property
    def name(self) -> str:
        """Name of the session for commands."""
        return lasting_name(self.path)


@frozen
class Repeated:
    """A column that has the same value in each row of a part."""

    value: Any


@frozen
class Encoded:
    """A column with few different texts: `texts[index]` for each index."""

    texts: Sequence[str | None]
    indices: Sequence[int]


Part = Mapping[str, "Sequence[Any] | np.ndarray[Any, Any] | Repeated | Encoded"]
"""Rows of a relation, column by column. In a list of values None is NULL."""


@frozen
class Relation:
    """A table of rows that a session has, all with the same facts."""

    name: str
    meaning: str
    facts: Facts[Any]
    rows: Callable[[SessionFile], Iterable[Any]] | None = None
    """Derives the rows of a session."""
    arrays: Callable[[Any], Iterable[Part]] | None = None
    """Derives the columns of a session, in place of `rows`, if there are too many rows to read one by one."""

    def parts(self, file: Any) -> Iterable[Part]:
        """Return the rows of a session in parts, each with a column for every fact, by its key. `file` is a
        `SessionFile`, or what else the relation derives its rows from."""
        if self.arrays is not None:
            return self.arrays(file)
        cells: list[list[Any]] = [[] for _ in self.facts]
        takers = [(fact.reader(), column.append) for fact, column in zip(self.facts, cells, strict=True)]
        for row in self.rows(file) if self.rows is not None else ():
            for read, append in takers:
                append(read(row))
        return [{fact.key: column for fact, column in zip(self.facts, cells, strict=True)}]


@frozen
class RunItem:
    run: Run
    item: Any


@frozen
class RunItems:
    """What a run may have several of, such as steps: a view of it, and a table of SQL."""

    facts: Facts[Any]
    of: Callable[[Session, Run], Iterable[Any] | None]
    """Derives the items of a run; None if it does not have the view."""

    def relation(self, name: str, meaning: str) -> Relation:
        def rows(file: SessionFile) -> Iterator[RunItem]:
            for run in file.session.runs.values():
                yield from (RunItem(run, item) for item in self.of(file.session, run) or ())

        return Relation(name, meaning, (RUN, *columns(within("item", self.facts))), rows)


def within(of: Read[Any], facts: Iterable[Fact[Any]]) -> Iterator[Fact[Any]]:
    """Yield the facts, read from the part of a row that `of` returns; None if a row has no such part."""

    def through(read: Read[Any]) -> Callable[[Any], Any]:
        inside, inner_of = reading(read), reading(of)
        return lambda row: None if (inner := inner_of(row)) is None else inside(inner)

    def read(fact: Fact[Any]) -> Read[Any]:
        inner = fact.read or fact.key
        # Joined paths are read in one step instead of three.
        return f"{of}.{inner}" if isinstance(of, str) and isinstance(inner, str) else through(inner)

    return (dataclasses.replace(fact, read=read(fact), when=fact.when and through(fact.when)) for fact in facts)


def json_schema(facts: Iterable[Fact[Any]]) -> dict[str, Any]:
    """Return the JSON schema of a row: an unknown figure is null, and a key that does not apply is absent."""
    listed = [fact for fact in facts if fact.key]
    properties: dict[str, Any] = {}
    for fact in listed:
        unit = fact.unit
        schema: dict[str, Any] = {"type": [unit.json, "null"]} if unit.json else {}
        inner = {"type": [unit.items, "null"]} if unit.items else True
        inner = json_schema(fact.inside) if fact.inside else inner
        if unit.json == "array":
            schema["items"] = inner
        elif unit.by_name:
            schema["additionalProperties"] = inner
        elif fact.inside:
            schema |= json_schema(fact.inside) | schema
        properties[fact.key] = schema | {"description": fact.meaning}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": [fact.key for fact in listed if fact.when is None],
    }


SENTENCE: Facts[Any] = (
    Fact("code", TEXT, "What kind it is, as the documents list them"),
    Fact("message", TEXT, "The sentence, with its figures"),
    Fact("fix", TEXT, "What to do about it"),
)
"""Facts of every finding; a warning has the first two."""
OF_FINDING: Facts[Any] = (
    Fact("seconds", SECONDS, "What it cost in this run; no second is in two findings of a program"),
    Fact("low_seconds", SECONDS, "Lower bound of the 95 % interval of seconds; null if exact or of unknown error",
         "low"),
    Fact("high_seconds", SECONDS, "Upper bound of the 95 % interval", "high"),
    Fact("saves_seconds", SECONDS, "What changing it would save: an estimate, by which findings are ranked"),
    Fact("bytes", BYTES, "Traffic of one call that it accounts for; for a program, memory that it holds"),
    Fact("others", LIST, "More lines with the same finding", lambda finding: [other.text for other in finding.others]),
)  # fmt: skip
"""Facts of every finding besides its sentence and its source location."""
HEADER: Facts[Any] = (
    Fact("id", TEXT, "Identity of the session, whatever its file is called", "header.session"),
    Fact("created", MOMENT, "When it was begun, in UTC", "header.created"),
    Fact("host", TEXT, "Name of the machine", "header.host"),
)
FROM_FILE: Fact[Any] = Fact(
    "from_file",
    TRUTH,
    "Whether all this is what a file says that this machine did not record itself",
    "session.from_file",
)
RUN: Fact[Any] = Fact("run", TEXT, "Id of the run, unique within its session: r2", "run.id")
