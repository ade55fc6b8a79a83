"""All tables that SQL can read, by name, in the order of their listing."""

from __future__ import annotations

from typing import Any

from jaxprof.facts import (
    Fact,
    Facts,
    Relation,
    captures,
    findings,
    kernels,
    memory,
    processes,
    programs,
    runs,
    sessions,
)
from jaxprof.facts.units import ROWS, TEXT

SESSION: Fact[Any] = Fact(
    "session", TEXT, "Name of the session's file, without its ending; the path if two have one name"
)
"""First column of each table in a query."""
_COMPILES, *_OF_PROGRAMS = programs.RELATIONS
_TABLES: tuple[Relation, ...] = (
    sessions.SESSIONS,
    runs.RUNS,
    sessions.PHASES,
    sessions.SAMPLES,
    kernels.KERNELS_OF_RUNS,
    memory.RELATION,
    sessions.READINGS,
    *captures.RELATIONS,
    processes.PROCESSES,
    _COMPILES,
    findings.FINDINGS,
    *_OF_PROGRAMS,
)
TABLES = {table.name: table for table in _TABLES}
COLUMN: Facts[Fact[Any]] = (
    Fact("name", TEXT, "Name of the column", "key", "column"),
    Fact("type", TEXT, "Its type in SQL", "unit.sql", "type"),
    Fact("meaning", TEXT, "What it holds", title="meaning"),
)


def columns_of(table: Relation) -> Facts[Any]:
    return (SESSION, *table.facts)


DESCRIBED: Facts[Relation] = (
    Fact("table", TEXT, "Name of the table", "name"),
    Fact("meaning", TEXT, "What its rows are"),
    Fact("columns", ROWS, "Its columns", columns_of, inside=COLUMN),
)
