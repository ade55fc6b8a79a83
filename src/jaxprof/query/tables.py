"""All tables of SQL by their names, in the order in which they are listed."""

from __future__ import annotations

from typing import Any, Final

from jaxprof.facts import TEXT, Fact
from jaxprof.facts.processes import PROCESSES
from jaxprof.facts.runs import RUNS
from jaxprof.query import captured_tables, measured_tables, program_tables

SESSION: Final[Fact[Any]] = Fact(
    "session", TEXT, "Name of the session's file, without its ending; the path if two have one name"
)
"""The first column of each table in a query."""
TABLES: Final = {
    table.name: table
    for table in (
        measured_tables.SESSIONS,
        RUNS,
        measured_tables.PHASES,
        measured_tables.SAMPLES,
        measured_tables.KERNELS,
        measured_tables.MEMORY,
        measured_tables.READINGS,
        captured_tables.INTERVALS,
        captured_tables.STEPS_TABLE,
        captured_tables.PASSES_TABLE,
        PROCESSES,
        program_tables.COMPILES_TABLE,
        program_tables.FINDINGS_TABLE,
        program_tables.LINES_TABLE,
        program_tables.STATES_TABLE,
        program_tables.TRANSFERS_TABLE,
    )
}
