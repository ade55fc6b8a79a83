"""Render a session as a small piece of HTML for the output of a notebook: tables without scripts, style sheets or ids.

Every text from outside is escaped. Long lists are cut, with a count of what was left out; `print(session)` shows all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from jaxprof.analysis.ab import ab_result
from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.programs.result import NOT_SEEN, ProgramResult
from jaxprof.facts.sessions import environment
from jaxprof.report.recording.tables import TIME_LINE, functions_table, time_line_rows
from jaxprof.report.recording.words import finding_text, title, verdict, words
from jaxprof.report.renderers import html_list, html_paragraph, html_table, html_text
from jaxprof.report.runs import (
    CHECK_OR_FAILURE,
    COMPILE,
    DEVICE,
    INTERVAL,
    MEDIAN,
    SIDE_AND_VARIANT,
    SPEEDUP,
    RunGroup,
    groups,
    parameters_text,
    rows_of_group,
)
from jaxprof.report.sides import head_lines
from jaxprof.report.table import Table
from jaxprof.session import Session

_GROUPS_SHOWN: Final = 12
_BAR_PIXELS: Final = 480
_COLOURS: Final = {
    "import": "#8c8c8c",
    "data": "#b07aa1",
    "trace": "#edc948",
    "lower": "#f28e2b",
    "compile": "#e15759",
    "transfer": "#ff9da7",
    "device_busy": "#59a14f",
    "host_busy": "#4e79a7",
    "waiting": "#76b7b2",
    "stopped": "#9c755f",
    NOT_SEEN: "#d9d9d9",
}
_COLUMNS: Final = (SIDE_AND_VARIANT, DEVICE, COMPILE, MEDIAN, INTERVAL, SPEEDUP, CHECK_OR_FAILURE)


def to_html(session: Session) -> str:
    """Return the session as one `<div>`."""
    lines = [f"<b>jaxprof</b> session {html_text(session.header.session)}{_versions(session)}"]
    for run in session.programs:
        lines += _program(program_result(session, run.id))
    listed = groups(session)
    for group in listed[:_GROUPS_SHOWN]:
        lines += _group(session, group)
    if len(listed) > _GROUPS_SHOWN:
        lines.append(html_paragraph(f"and {len(listed) - _GROUPS_SHOWN} more"))
    if not session.runs:
        lines.append(html_paragraph("No run was recorded."))
    return "<div>" + "\n".join(lines) + "</div>"


def _versions(session: Session) -> str:
    engine = environment(session)
    return f", jax {html_text(engine.jax)}" if engine is not None and engine.jax else ""


def _group(session: Session, group: RunGroup) -> Iterator[str]:
    parameters = parameters_text(group.parameters)
    yield html_paragraph(group.workload, f" ({parameters})" if parameters else "")
    if group.comparison:
        yield from html_list(head_lines(ab_result(session, group.comparison)))
    yield html_table(Table(_COLUMNS, rows_of_group(session, group)))
    yield from html_list(
        dict.fromkeys(
            f"{warning.message} {warning.advice}".strip() for result in group.runs for warning in result.warnings
        )
    )


def _program(program: ProgramResult) -> Iterator[str]:
    yield html_paragraph(title(program))
    if bounds := verdict(program):
        yield html_paragraph("", bounds)
    shares = [share for share in program.timeline if share.seconds > 0]
    if shares and program.wall_seconds > 0:
        yield _bar([(share.state, share.seconds / program.wall_seconds) for share in shares])
        yield _legend([share.state for share in shares])
        if rows := time_line_rows(program):
            yield html_table(Table(TIME_LINE, rows))
    if program.functions:
        yield html_table(functions_table(program))
    yield from html_list(f"{finding_text(program, finding)}. {finding.advice}" for finding in program.findings)
    yield from (html_paragraph("", f"{footer.message}. {footer.advice}") for footer in program.remarks)


def _bar(shares: Sequence[tuple[str, float]]) -> str:
    """Return the shares of the time line side by side; each shows its name under the pointer."""
    parts = [
        f'<span title="{html_text(words(state))}" style="display:inline-block;height:12px;'
        f'width:{share * _BAR_PIXELS:.1f}px;background:{_COLOURS.get(state, _COLOURS[NOT_SEEN])}"></span>'
        for state, share in shares
    ]
    return f'<div style="white-space:nowrap;line-height:0">{"".join(parts)}</div>'


def _legend(states: Sequence[str]) -> str:
    """Return what each colour of the bar stands for."""
    parts = [
        f'<span style="display:inline-block;width:10px;height:10px;margin:0 4px 0 10px;'
        f'background:{_COLOURS.get(state, _COLOURS[NOT_SEEN])}"></span>{html_text(words(state))}'
        for state in states
    ]
    return f'<div style="font-size:smaller">{"".join(parts)}</div>'
