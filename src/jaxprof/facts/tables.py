"""All tables that SQL can read, by name, in the order of their listing; and the table of findings: about programs and
HLO, and warnings about measurements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from jaxprof.analysis.kernels import module_of
from jaxprof.analysis.runs.run_result import result
from jaxprof.analysis.target import command
from jaxprof.base.values import frozen
from jaxprof.events.finding import Finding
from jaxprof.facts import (
    OF_FINDING,
    SENTENCE,
    Fact,
    Facts,
    Relation,
    SessionFile,
    captures,
    kernels,
    memory,
    processes,
    programs,
    runs,
    sessions,
    within,
)
from jaxprof.facts.units import LIST, ROWS, TEXT, TRUTH
from jaxprof.findings import program_verification, run_verification
from jaxprof.findings.program_result import program_result
from jaxprof.findings.runs import longer_run_command, warning_finding


@frozen
class _Row:
    """A finding with its source: `program`, `hlo` or `measurement`."""

    source: str
    finding: Finding


def _findings(file: SessionFile) -> Iterator[_Row]:
    session, name = file.session, file.name

    def row(source: str, finding: Finding, verify: str, run: str) -> _Row:
        return _Row(source, replace(finding, verify=verify, run=run, from_file=session.from_file and bool(verify)))

    for run in session.runs.values():
        if run.plan.how == "program" or run.program is not None:
            program = program_result(session, run.id)
            verify = program_verification(name, program)
            for finding in program.findings:
                yield row("program", finding, verify, run.id)
        module = module_of(session, run)
        if module is not None:
            from jaxprof.findings.modules import findings_of_run

            verify = (
                run_verification(session, name, run)
                if run.plan.how not in ("program", "imported")
                else command("explain", name)
            )
            for finding in findings_of_run(session, run, module):
                yield row("hlo", finding, verify, run.id)
        again = longer_run_command(session, name, run)
        for warning in result(session, run.id).warnings:
            yield row("measurement", warning_finding(warning), again, run.id)


FINDINGS = Relation(
    "findings",
    "What is worth changing: findings about programs and HLO, and warnings about measurements",
    (
        Fact("run", TEXT, "Id of the run, unique within its session: r2", "finding.run"),
        Fact("source", TEXT, "program, hlo, or measurement (a warning: the figures are less certain than they look)"),
        *within("finding", SENTENCE),
        Fact("place", TEXT, "file:line to change", "finding.where.text"),
        Fact("kernels", LIST, "Kernels that it is about", "finding.kernels"),
        *within("finding", OF_FINDING),
        Fact("estimate", TRUTH, "Whether seconds is an estimate",
             lambda row: row.finding.estimate if row.source == "program" else None),
        Fact("verify", TEXT, "The command that shows whether a change helped; null if none can",
             lambda row: row.finding.verify or None),
        Fact("from_file", TRUTH, "Whether that command has words of a file that this machine did not record",
             "finding.from_file"),
    ),
    _findings,
)  # fmt: skip


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
    FINDINGS,
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
