"""All tables that SQL can read, by name, in the order of their listing."""

from __future__ import annotations

from typing import Any, Final

from jaxprof.facts import Fact, Relation, captures, findings, kernels, memory, processes, programs, runs, sessions
from jaxprof.facts.units import TEXT

SESSION: Final[Fact[Any]] = Fact(
    "session", TEXT, "Name of the session's file, without its ending; the path if two have one name"
)
"""First column of each table in a query."""
_COMPILES, *_OF_PROGRAMS = programs.RELATIONS
_TABLES: Final[tuple[Relation, ...]] = (
    sessions.SESSIONS,
    runs.RUNS,
    sessions.PHASES,
    sessions.SAMPLES,
    kernels.KERNELS,
    memory.RELATION,
    sessions.READINGS,
    *captures.RELATIONS,
    processes.PROCESSES,
    _COMPILES,
    findings.FINDINGS,
    *_OF_PROGRAMS,
)
TABLES: Final = {table.name: table for table in _TABLES}
