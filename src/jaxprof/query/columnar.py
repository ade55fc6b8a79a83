"""A table of a session as an Arrow table: column by column, never row by row where there are many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from jaxprof.facts import Encoded, Fact, Part, Relation, Repeated, SessionFile
from jaxprof.facts.units import SqlType
from jaxprof.text import json_text

_ARROW: Final[dict[str, Any]] = {
    "VARCHAR": pa.string(),
    "DOUBLE": pa.float64(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("s"),
}
_MOST: Final = (1 << 63) - 1


def arrow_schema(table: Relation) -> Any:
    """The Arrow schema of a table."""
    return pa.schema([(fact.key, _ARROW[fact.unit.sql]) for fact in table.facts])


def arrow_table(table: Relation, file: SessionFile) -> Any:
    """The rows of a session."""
    schema = arrow_schema(table)
    parts = [_part(table.facts, part, schema) for part in table.parts(file)]
    return pa.concat_tables(parts).combine_chunks() if parts else schema.empty_table()


def _part(facts: Sequence[Fact[Any]], part: Part, schema: Any) -> Any:
    count = next((len(_cells(part[fact.key])) for fact in facts if not isinstance(part[fact.key], Repeated)), 1)
    return pa.table([_array(fact.unit.sql, part[fact.key], count) for fact in facts], schema=schema)


def _cells(values: Any) -> Sequence[Any]:
    return values.indices if isinstance(values, Encoded) else values


def _array(type_: SqlType, values: Any, count: int) -> Any:
    if isinstance(values, Repeated):
        return pa.repeat(_of(type_, [values.value])[0], count)
    if isinstance(values, Encoded):
        return _of(type_, values.texts).take(pa.array(values.indices, pa.int64()))
    return _of(type_, values)


def _of(type_: SqlType, cells: Any) -> Any:
    if type_ in ("VARCHAR", "TIMESTAMP"):
        clean = clean_text if type_ == "VARCHAR" else _moment
        return pa.array([clean(cell) for cell in cells], _ARROW[type_])
    try:
        return pa.array(cells, _ARROW[type_], from_pandas=True)  # NaN is unknown
    except (pa.ArrowException, OverflowError, TypeError):  # a figure that no column of its type can hold
        return pa.array([_number(type_, cell) for cell in cells], _ARROW[type_])


def clean_text(cell: Any) -> str | None:
    """A text; lists and objects as JSON. An empty text is unknown, and a lone surrogate is written as an escape."""
    if cell is None or cell == "":
        return None
    if isinstance(cell, tuple):
        cell = list(cell)
    text: str = cell if isinstance(cell, str) else json_text(cell, compact=True)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _moment(cell: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(cell)
    except (TypeError, ValueError):
        return None
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment


def _number(type_: SqlType, cell: Any) -> Any:
    if not isinstance(cell, bool | int | float) or (isinstance(cell, float) and not math.isfinite(cell)):
        return None
    if type_ == "BOOLEAN":
        return bool(cell)
    if type_ == "DOUBLE":
        return float(cell)
    return int(cell) if abs(cell) <= _MOST else None
