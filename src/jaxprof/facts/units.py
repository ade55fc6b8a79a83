"""What values are counted in: how people read them, their types in SQL and JSON, their alignment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from jaxprof.units import UNKNOWN, bytes_, integer, percent, ratio, scaled, seconds

SqlType = Literal["VARCHAR", "DOUBLE", "BIGINT", "BOOLEAN", "TIMESTAMP"]


def plain(cell: Any) -> str:
    """A cell without a unit, as people read it; a dash for unknown and for an empty text."""
    if cell is None or cell == "":
        return UNKNOWN
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return str(cell)


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
    items: str = ""
    """Type in JSON of the items of an array, or of the values of an object whose keys are data; empty for any."""
    by_name: bool = False
    """Whether its keys are data."""


TEXT: Final = Unit("VARCHAR", "string")
LIST: Final = Unit("VARCHAR", "array", items="string")
"""Texts; in SQL, as all arrays and objects, its JSON."""
NUMBERS: Final = replace(LIST, items="number")
ROWS: Final = replace(LIST, items="object")
"""Objects with the facts inside."""
OBJECT: Final = Unit("VARCHAR", "object")
"""With the facts inside, each of which is a column of CSV and SQL."""
BY_NAME: Final = replace(OBJECT, by_name=True)
"""Values by name: of any kind, or objects with the facts inside."""
NUMBER_BY_NAME: Final = replace(BY_NAME, items="number")
TEXT_BY_NAME: Final = replace(BY_NAME, items="string")
ANY: Final = Unit("VARCHAR", "")
"""A number or a text."""
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
