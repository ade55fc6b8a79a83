"""Write the rows of a query: as a table for people and CSV, and as JSON values."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, time, timedelta
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import Any

import pyarrow as pa
from pyarrow import MonthDayNano

from jaxprof.base.text import json_text
from jaxprof.base.units import UNKNOWN
from jaxprof.facts import Fact
from jaxprof.facts.units import TEXT
from jaxprof.report.renderers import Table

_WIDEST = 60
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_DIGITS = 6


def plain_value(value: Any) -> Any:
    """Return a value of SQL as JSON has it: moments and days as ISO 8601, durations in seconds, bytes in hexadecimal,
    intervals by their parts, NaN and infinity in a container as null."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): _inner_value(inner) for key, inner in value.items()}
    if isinstance(value, MonthDayNano):
        return {"months": value.months, "days": value.days, "nanoseconds": value.nanoseconds}
    if isinstance(value, list | tuple):  # an entry of a map is a tuple
        return [_inner_value(inner) for inner in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _inner_value(value: Any) -> Any:
    plain = plain_value(value)
    return None if isinstance(plain, float) and not isfinite(plain) else plain


def rows_table(schema: Any, rows: Iterable[list[Any]]) -> Table[list[Any]]:
    """Return the rows as a table with the names of their columns, numbers aligned right."""
    columns: list[Fact[list[Any]]] = [
        Fact(
            field.name,
            TEXT,
            "A column of the SELECT",
            partial(_cell, index),
            field.name,
            show=_shown,
            right=any(kind(field.type) for kind in _NUMBERS),
            widest=_WIDEST if len(schema) > 1 else 0,
        )
        for index, field in enumerate(schema)
    ]
    return Table(columns, rows)


def _cell(index: int, row: list[Any]) -> Any:
    return plain_value(row[index])


def _shown(value: Any) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    return json_text(value) if isinstance(value, list | dict) else str(value)
