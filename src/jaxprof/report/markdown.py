"""Render a session as Markdown, for a pull request or notes: a table for each workload, with its warnings below."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from jaxprof.analysis.ab import ab_result
from jaxprof.analysis.programs.derive import program_result
from jaxprof.facts.sessions import environment
from jaxprof.report.recording.tables import TIME_LINE, functions_table, time_line_rows
from jaxprof.report.recording.words import finding_text, loop, title, verdict_sentence
from jaxprof.report.renderers import markdown, markdown_lines
from jaxprof.report.runs import (
    BREAK_EVEN,
    CHECK_OR_FAILURE,
    COMPILE,
    DEVICE,
    FIRST_RUN,
    INTERVAL,
    MEDIAN,
    SIDE_AND_VARIANT,
    SPEEDUP,
    RunGroup,
    groups,
    parameters_text,
    rows_of_group,
    verdicts_text,
)
from jaxprof.report.sides import head_lines
from jaxprof.report.table import Table
from jaxprof.session import Run, Session

_FUNCTIONS_SHOWN: Final = 20
_COLUMNS = (SIDE_AND_VARIANT, DEVICE, COMPILE, FIRST_RUN, MEDIAN, INTERVAL, SPEEDUP, BREAK_EVEN, CHECK_OR_FAILURE)


def to_markdown(session: Session, *, live: bool = False) -> str:
    """Return the report, without a line break at its end. `live`: the session is being written now."""
    header = session.header
    engine = environment(session)
    versions = f", jax {engine.jax}, NumPy {engine.numpy}" if engine else ""
    lines = [markdown(f"jaxprof session {header.session}, {header.created}, {header.host}{versions}")]
    for run in session.programs:
        lines += ["", *_program(session, run, live=live)]
    for group in groups(session):
        lines += ["", *_group(session, group, live)]
    return "\n".join(lines)


def _program(session: Session, run: Run, *, live: bool = False) -> Iterator[str]:
    """Yield the report of one program, a line at a time."""
    program = program_result(session, run.id)
    yield f"### {markdown(title(program, live=live))}"
    ended = run.end(deserted=not live)
    if ended.status not in ("ok", "running", "queued"):
        yield ""
        yield f"{ended.status}: {markdown(f'{ended.error}. {ended.advice}'.rstrip('. '))}"
    if bounds := verdict_sentence(program):
        yield ""
        yield markdown(bounds)
    if rows := time_line_rows(program):
        yield from ("", *markdown_lines(Table(TIME_LINE, rows)))
    if program.functions:
        yield from ("", *markdown_lines(functions_table(program).first(_FUNCTIONS_SHOWN, "and {} more functions")))
    if program.steps is not None:
        yield ""
        yield markdown(loop(program, program.steps))
    if program.findings:
        yield ""
        for finding in program.findings:
            yield f"- {markdown(finding_text(program, finding))}. {markdown(finding.advice)}"
    if program.remarks:
        yield ""
        yield from (f"{markdown(footer.message)}. {markdown(footer.advice)}" for footer in program.remarks)


def _group(session: Session, group: RunGroup, live: bool) -> Iterator[str]:
    parameters = parameters_text(group.parameters)
    yield f"### {markdown(group.workload)}{' (' + markdown(parameters) + ')' if parameters else ''}"
    yield ""
    rows = rows_of_group(session, group, live=live)
    if group.comparison:
        yield from (f"- {markdown(line)}" for line in head_lines(ab_result(session, group.comparison)))
        yield ""
    yield from markdown_lines(Table(_COLUMNS, rows))
    if not group.comparison and (verdicts := verdicts_text(rows)):
        yield from ("", markdown(verdicts))
    notes = dict.fromkeys(
        f"- {markdown(group.label(result.run))}: {markdown(warning.message)} {markdown(warning.advice)}".rstrip()
        for result in group.runs
        for warning in result.warnings
    )
    if notes:
        yield ""
        yield from notes
