"""Convert the tables of a session to Arrow column by column, so that long tables are never read row by row."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from jaxprof.base.text import json_text
from jaxprof.facts import Encoded, Facts, Part, Relation, Repeated
from jaxprof.facts.units import SqlType

_ARROW: dict[str, Any] = {
    "VARCHAR": pa.string(),
    "DOUBLE": pa.float64(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("s"),
}


def arrow_schema(table: Relation) -> Any:
    return pa.schema([(fact.key, _ARROW[fact.unit.sql]) for fact in table.facts])


def facts_read(table: Relation, needed: Container[str] | None) -> Facts[Any]:
    """Return the facts among the `needed` ones, by default all, and the first, by which rows are counted."""
    return tuple(fact for number, fact in enumerate(table.facts) if needed is None or fact.key in needed or not number)


def arrow_table(table: Relation, file: Any, needed: Container[str] | None = None) -> Any:
    """Return the rows of a table; with `needed`, the other columns may be NULL, as they take no time then."""
    return arrow_rows(table, replace(table, facts=facts_read(table, needed)).parts(file))


def arrow_rows(table: Relation, read: Iterable[Part]) -> Any:
    """Return the rows of a table from parts of it, whose missing columns are NULL."""
    schema = arrow_schema(table)
    parts = []
    for part in read:
        whole = (column for column in part.values() if not isinstance(column, Repeated))
        count = next((len(column.indices if isinstance(column, Encoded) else column) for column in whole), 1)
        arrays = []
        for fact in table.facts:
            column, type_ = part.get(fact.key), fact.unit.sql
            if column is None:
                arrays.append(pa.nulls(count, _ARROW[type_]))
            elif isinstance(column, Repeated):
                arrays.append(pa.repeat(_plain_array(type_, [column.value])[0], count))
            elif isinstance(column, Encoded):
                arrays.append(_plain_array(type_, column.texts).take(pa.array(column.indices, pa.int64())))
            else:
                arrays.append(_plain_array(type_, column))
        parts.append(pa.table(arrays, schema=schema))
    return pa.concat_tables(parts).combine_chunks() if parts else schema.empty_table()


def _plain_array(type_: SqlType, cells: Any) -> Any:
    if type_ in ("VARCHAR", "TIMESTAMP"):
        clean = clean_text if type_ == "VARCHAR" else _moment
        return pa.array([clean(cell) for cell in cells], _ARROW[type_])
    try:
        return pa.array(cells, _ARROW[type_], from_pandas=True)  # NaN is unknown
    except (pa.ArrowException, OverflowError, TypeError):  # a cell that a column of this type cannot hold
        return pa.array([_number(type_, cell) for cell in cells], _ARROW[type_])


def clean_text(cell: Any) -> str | None:
    """Return a cell as text, lists and objects as JSON. An empty text is None, a lone surrogate an escape."""
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
    return int(cell) if abs(cell) < 1 << 63 else None  # BIGINT holds no more
