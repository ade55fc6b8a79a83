"""The recorded programs of a session on the page: where the wall time went, what was compiled, what to change."""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.analysis.flame import program_flame
from jaxprof.analysis.programs.derive import program_result
from jaxprof.facts.programs import rows_of
from jaxprof.report.page import charts as draw
from jaxprof.report.page.elements import Charts, Section, heading, listed, paragraph, table
from jaxprof.report.recording.tables import (
    COMPILES_TEXT,
    LINES_TEXT,
    TIME_LINE,
    TRANSFERS_TEXT,
    functions_table,
    time_line_rows,
)
from jaxprof.report.recording.words import loop, remark, saving, title, verdict, verdict_parts
from jaxprof.report.table import Table
from jaxprof.session import Run, Session


def programs_section(session: Session, charts: Charts, *, live: bool) -> Iterator[Section]:
    """All programs; nothing in a session without one."""
    content = [html for run in session.programs for html in _program(session, charts, run, live)]
    if content:
        yield Section("program", "Program", content)


def _program(session: Session, charts: Charts, run: Run, live: bool) -> Iterator[str]:
    program = program_result(session, run.id)
    yield heading(title(program, live=live))
    ended = run.end(deserted=not live)
    if ended.status not in ("ok", "running", "queued"):
        yield paragraph(f"{ended.status}: {ended.error}. {ended.advice}".rstrip(". "), "bad")
    if bounds := verdict(program):
        others = verdict_parts(program)
        yield paragraph(f"{bounds}; besides: {others}" if others and program.verdict.kind else bounds)
    yield from draw.states(charts, program)
    yield from table(Table(TIME_LINE, time_line_rows(program)))
    yield from listed(loop(program, steps) for steps in program.loops)
    if program.findings:
        yield heading("Findings", 4)
        yield from listed(
            f"{remark(program, finding)}{f'; {saving(finding)}' if saving(finding) else ''}. {finding.advice}"
            for finding in program.findings
        )
    if program.functions:
        yield heading("Compile ledger", 4)
        yield from table(functions_table(program))
        yield from table(Table(COMPILES_TEXT, rows_of(program, program.compiles)))
    if program.lines:
        yield heading("Lines of the source", 4)
        yield from draw.flame(charts, program_flame(program))
        yield from table(Table(LINES_TEXT, rows_of(program, program.lines)))
    if program.transfers:
        yield heading("Implicit copies", 4)
        yield from table(Table(TRANSFERS_TEXT, rows_of(program, program.transfers)))
    yield from listed(f"{footer.message}. {footer.advice}" for footer in program.remarks)
