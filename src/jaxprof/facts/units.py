"""Units of values: their format for people, their types in SQL and JSON, and their alignment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from jaxprof.base.units import UNKNOWN, bytes_, integer, percent, ratio, scaled, seconds
from jaxprof.base.values import frozen

SqlType = Literal["VARCHAR", "DOUBLE", "BIGINT", "BOOLEAN", "TIMESTAMP"]


def plain(cell: Any) -> str:
    """Return a cell without a unit as people read it; a dash for unknown and for an empty text."""
    if cell is None or cell == "":
        return UNKNOWN
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return str(cell)


@frozen
class Unit:
    """The unit of a value, with its types and its format."""

    sql: SqlType
    """Type in SQL, Parquet and Arrow."""
    json: str
    """Type in JSON; empty for any."""
    show: Callable[[Any], str] = plain
    """Formats a value, or None, for people: in text and on a page."""
    right: bool = False
    items: str = ""
    """Type in JSON of the items of an array, or of the values of an object whose keys are data; empty for any."""
    by_name: bool = False
    """Whether the unit is an object whose keys are data."""
    name: str = ""
    """Name in a row that says the unit of its figure, such as `byte`; empty for a count."""
    is_measured: bool = False
    """Whether values are measured, and vary; otherwise they are exact."""
    less_is_worse: bool = False
    """Whether a program is worse with less of it; otherwise with more."""


TEXT = Unit("VARCHAR", "string")
LIST = Unit("VARCHAR", "array", items="string")
"""A list of texts. In SQL, arrays and objects are JSON."""
NUMBERS = replace(LIST, items="number")
ROWS = replace(LIST, items="object")
"""A list of objects, whose facts are those inside the fact."""
OBJECT = Unit("VARCHAR", "object")
"""An object, whose facts are those inside the fact. In CSV and SQL, each of these is a column."""
BY_NAME = replace(OBJECT, by_name=True)
"""Values by name, of any type, or objects whose facts are those inside the fact."""
NUMBER_BY_NAME = replace(BY_NAME, items="number")
TEXT_BY_NAME = replace(BY_NAME, items="string")
ANY = Unit("VARCHAR", "")
TRUTH = Unit("BOOLEAN", "boolean")
MOMENT = Unit("TIMESTAMP", "string")
"""A moment in UTC; its cells are texts of ISO 8601."""
UNIX_TIME = Unit("DOUBLE", "number")
"""Unix time in seconds, by the clock of the host."""
INDEX = Unit("BIGINT", "integer", right=True)
"""A number that names something: a line, a process, an exit code."""
COUNT = Unit("BIGINT", "integer", integer, True)
AMOUNT = replace(COUNT, show=lambda value: integer(value) if value is None or value < 1e6 else scaled(value))
"""A count that is written in three digits from a million on."""
NUMBER = Unit("DOUBLE", "number", scaled, True)
SECONDS = Unit("DOUBLE", "number", seconds, True, name="second", is_measured=True)
BYTES = Unit("BIGINT", "integer", bytes_, True, name="byte")
REUSED_BYTES = replace(BYTES, less_is_worse=True)
"""Bytes that a program does not need twice."""
REAL_BYTES = replace(BYTES, sql="DOUBLE", json="number")
"""Bytes that need not be a whole number, or may be beyond 64 bits: a sum or a product."""
FLOPS = Unit("DOUBLE", "number", scaled, True, name="flop")
SHARE = Unit("DOUBLE", "number", percent, True)
RATIO = Unit("DOUBLE", "number", ratio, True)
RATE = Unit("DOUBLE", "number", scaled, True)
BYTE_RATE = replace(RATE, show=lambda rate: scaled(rate, "B/s"))
