"""Statistics of a line's events as columns: numbers to tell equal values by, texts, integers however written."""

from __future__ import annotations

import numpy as np

from jaxprof.trace.intervals import distinct
from jaxprof.trace.line import StatColumn
from jaxprof.trace.model import ABSENT, Ints, TextColumn
from jaxprof.trace.xspace import Plane


def examples(which: Ints) -> Ints:
    """Of each number in `which`, which holds all from 0 on, one place where it stands."""
    found = np.zeros(int(which.max()) + 1 if len(which) else 0, np.int64)
    found[which] = np.arange(len(which))
    return found


def keys(column: StatColumn | None, rows: Ints) -> Ints:
    """Numbers that are equal where the statistic is: references and integers as they are, texts by their hash."""
    if column is None:
        return np.zeros(len(rows), np.int64)
    found = column.number[rows].copy()
    textual = np.flatnonzero(column.text_end[rows])
    if len(textual):
        blob = column.blob
        at, end = column.number[rows], column.text_end[rows]
        found[textual] = [hash(bytes(blob[at[index] : end[index]])) for index in textual.tolist()]
    return found


def text_at(plane: Plane, column: StatColumn | None, row: int) -> str:
    """The statistic of one event as text; empty where it has none."""
    if column is None or not column.present[row]:
        return ""
    if column.text_end[row]:
        return plane.space.text(int(column.number[row]), int(column.text_end[row]))
    if column.is_reference[row]:
        return plane.stat_names.get(int(column.number[row]), "")
    return str(int(column.number[row]))


def integers(plane: Plane, column: StatColumn, default: int) -> Ints:
    """A column of integers; those that a writer put down as text are read too."""
    values = np.where(column.present & (column.text_end == 0) & ~column.is_reference, column.number, default)
    for row in np.flatnonzero(column.present & ((column.text_end > 0) | column.is_reference)).tolist():
        said = text_at(plane, column, row)
        values[row] = int(said) if said.lstrip("-").isdecimal() and len(said) < 19 else default
    return values


def text_column(plane: Plane, column: StatColumn | None) -> TextColumn | None:
    """A column of texts; None where no event has one."""
    if column is None or not column.present.any():
        return None
    rows = np.flatnonzero(column.present)
    which = distinct(keys(column, rows))[1]
    first = examples(which)
    found = np.full(len(column.present), ABSENT, np.int64)
    found[rows] = which
    return TextColumn([text_at(plane, column, row) for row in rows[first].tolist()], found)
