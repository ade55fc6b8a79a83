"""Two sessions compared, whole: as text, Markdown, JSON and CSV. `comparison` has the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jaxprof.analysis.ab import ab_results, side_versus
from jaxprof.analysis.session_difference import RunComparison, SessionDifference
from jaxprof.facts import at
from jaxprof.report.comparison import (
    BUFFERS_COMPARED,
    COLLECTIVES_COMPARED,
    ENVIRONMENT,
    FIGURES,
    FINDINGS_COMPARED,
    FUNCTIONS_COMPARED,
    KERNELS_COMPARED,
    PHASES,
    STAGES_COMPARED,
    STATES_COMPARED,
    WIDTH,
    answer,
    environment_table,
    tables,
    title,
)
from jaxprof.report.renderers import markdown, markdown_lines, records, text_lines, to_csv_text, wrap
from jaxprof.report.runs import parameters_text, state_of
from jaxprof.report.sides import kept_json, verdict_line, versus_json
from jaxprof.report.table import Column, Table
from jaxprof.session import Run, Session
from jaxprof.text import safe


def _heading(name: str, session: Session) -> str:
    header = session.header
    return f"{name}: {header.session}  ·  {header.created}  ·  {header.host}  ·  {state_of(session)}"


def _notes(difference: SessionDifference) -> Iterator[str]:
    for session in (difference.before, difference.after):
        yield from (f"note: {notice}" for notice in session.notices)
    if not difference.runs:
        yield "No run of the first session belongs to a run of the second: " + _no_pair(difference)
    for side, runs in (("first", difference.only_before), ("second", difference.only_after)):
        for run in runs:
            yield f"only in the {side} session: {_named(run)}"


def _no_pair(difference: SessionDifference) -> str:
    if not difference.before.runs or not difference.after.runs:
        side = "first" if not difference.before.runs else "second"
        return f"the {side} has no runs."
    first, second = (_likely(session) for session in (difference.before, difference.after))
    return (
        "workload, variant, kind of device and parameters must be equal. To compare two runs all the same, name "
        f"them: jaxprof compare FIRST:{first} SECOND:{second}."
    )


def _likely(session: Session) -> str:
    """The id of the first run with HLO, else of the first."""
    return next((run.id for run in session.runs.values() if "hlo" in run.texts), next(iter(session.runs)))


def _named(run: Run) -> str:
    parameters = parameters_text(run.plan.parameters)
    return f"{run.id} {run.label}{f' ({parameters})' if parameters else ''}"


def _own_verdicts(difference: SessionDifference, session: Session) -> Iterator[str]:
    """What the comparison that a session holds says; nothing where two of its own runs are compared."""
    if difference.before is not difference.after:
        yield from (verdict_line(versus) for result in ab_results(session) for versus in result.versus)


def comparison_text(difference: SessionDifference) -> str:
    """The whole report, without a line break at its end."""
    lines: list[str] = []
    for name, session in (("first", difference.before), ("second", difference.after)):
        lines.append(safe(_heading(name, session)))
        for sentence in _own_verdicts(difference, session):
            lines += wrap(sentence, width=WIDTH, indent="    ", first="  ")
    lines.append("")
    lines += text_lines(environment_table(difference), width=WIDTH)
    for pair in difference.runs:
        heading = safe(title(pair))
        lines += ["", *wrap(heading, width=WIDTH, indent="  ", first=""), "─" * min(WIDTH, len(heading))]
        if (versus := side_versus(pair.session_before, pair.before, pair.after)) is not None:
            lines += wrap(verdict_line(versus), width=WIDTH, indent="  ")
        lines += wrap(answer(pair), width=WIDTH, indent="  ")
        for reason in pair.difference.unlike:
            lines.append(safe(f"  not the same measurement: {reason}"))
        for table in tables(pair):
            if written := list(text_lines(table, width=WIDTH)):
                lines += ["", *written]
    if notes := list(_notes(difference)):
        lines.append("")
        for note in notes:
            lines += wrap(note, width=WIDTH, indent="  ", first="")
    return "\n".join(lines)


def comparison_markdown(difference: SessionDifference) -> str:
    """The report for a pull request."""
    lines: list[str] = []
    for name, session in (("first", difference.before), ("second", difference.after)):
        lines.append(f"- {markdown(_heading(name, session))}")
        lines += [f"  - {markdown(sentence)}" for sentence in _own_verdicts(difference, session)]
    lines.append("")
    lines += _markdown_table(environment_table(difference))
    for pair in difference.runs:
        lines += ["", f"### {markdown(title(pair))}", ""]
        if (versus := side_versus(pair.session_before, pair.before, pair.after)) is not None:
            lines += [markdown(verdict_line(versus)), ""]
        lines.append(markdown(answer(pair)))
        lines += [f"\nNot the same measurement: {markdown(reason)}" for reason in pair.difference.unlike]
        for table in tables(pair):
            if written := _markdown_table(table):
                lines += ["", *written]
    if notes := [f"- {markdown(note)}" for note in _notes(difference)]:
        lines += ["", *notes]
    return "\n".join(lines)


def _markdown_table(table: Table[Any]) -> list[str]:
    """Without the heading where there are no rows."""
    rows = list(table.rows)
    if rows:
        return list(markdown_lines(Table(table.columns, rows, notes=table.notes)))
    return [markdown(note) for note in table.notes]


def comparison_json(difference: SessionDifference) -> dict[str, Any]:
    """All of it, unrounded."""
    return {
        "before": _session_json(difference.before),
        "after": _session_json(difference.after),
        "environment": list(records(Table(ENVIRONMENT, difference.environment))),
        "runs": [pair_json(pair) for pair in difference.runs],
        "only_before": [_run_json(run) for run in difference.only_before],
        "only_after": [_run_json(run) for run in difference.only_after],
    }


def _session_json(session: Session) -> dict[str, Any]:
    header = session.header
    return {
        "session": header.session,
        "created": header.created,
        "host": header.host,
        "state": state_of(session),
        "notices": session.notices,
        "comparisons": [kept_json(result) for result in ab_results(session)],
    }


def _run_json(run: Run) -> dict[str, Any]:
    plan = run.plan
    return {
        "run": run.id,
        "workload": plan.workload,
        "variant": plan.variant,
        "device": plan.device,
        "parameters": dict(plan.parameters),
        "status": run.shown.status,
    }


def pair_json(pair: RunComparison) -> dict[str, Any]:
    """A pair for programs: seconds and bytes unrounded, null for unknown."""
    difference, kernels = pair.difference, pair.difference.kernels
    versus = side_versus(pair.session_before, pair.before, pair.after)
    data: dict[str, Any] = {
        "before": _run_json(pair.before),
        "after": _run_json(pair.after),
        "side": None if versus is None else versus_json(versus),
        "unlike": list(difference.unlike),
        "differs": difference.differs,
        "answer": answer(pair),
        "phases": list(records(Table(PHASES, pair.phases))),
        "facts": list(records(Table(FIGURES, difference.facts))),
        "kernels": None if kernels is None else list(records(Table(KERNELS_COMPARED, kernels.rows))),
        "kernels_seconds": None
        if kernels is None or kernels.difference_seconds is None
        else {
            "before": kernels.before_seconds,
            "after": kernels.after_seconds,
            "difference": kernels.difference_seconds,
        },
        "collectives": _records(COLLECTIVES_COMPARED, difference.collectives),
        "findings": _records(FINDINGS_COMPARED, difference.findings),
        "buffers": _records(BUFFERS_COMPARED, difference.buffers),
        "passes": _records(STAGES_COMPARED, difference.passes),
    }
    program = pair.program
    if program is not None:
        before, after = program.steps_per_second
        data["program"] = {
            "steps_per_second": {"before": before, "after": after},
            "wall_seconds": {"before": program.before.wall_seconds, "after": program.after.wall_seconds},
            "compiles": {"before": program.before.compile_count, "after": program.after.compile_count},
            "compile_seconds": {"before": program.before.compile_seconds, "after": program.after.compile_seconds},
            "functions": list(records(Table(FUNCTIONS_COMPARED, program.functions))),
            "timeline": list(records(Table(STATES_COMPARED, program.states))),
            "findings": [
                {
                    "status": row.status,
                    "code": row.either.code,
                    "before_seconds": row.before.seconds if row.before is not None else None,
                    "after_seconds": row.after.seconds if row.after is not None else None,
                    "message": row.either.message,
                }
                for row in program.findings
            ],
        }
    return data


def _records(columns: Sequence[Column[Any]], rows: Sequence[Any] | None) -> list[dict[str, Any]] | None:
    return None if rows is None else list(records(Table(columns, rows)))


@dataclass(frozen=True, slots=True)
class _Line:
    """A figure of a pair, whatever it is about."""

    pair: RunComparison
    about: str
    name: str
    status: str | None
    before: float | str | None
    after: float | str | None
    unit: str


_LINES: Final[tuple[Column[_Line], ...]] = (
    Column("run_before", value=at("pair.before.id")),
    Column("run_after", value=at("pair.after.id")),
    Column("workload", value=at("pair.after.plan.workload")),
    Column("variant", value=at("pair.after.plan.variant")),
    Column("device", value=at("pair.after.plan.device")),
    Column("about"),
    Column("name"),
    Column("status"),
    Column("before"),
    Column("after"),
    Column("unit", value=lambda row: row.unit or None),
)


def comparison_csv(difference: SessionDifference) -> str:
    """A row for each phase, fact, kernel, collective, finding, buffer and function, under one heading."""
    return to_csv_text(Table(_LINES, (line for pair in difference.runs for line in _lines(pair))))


def _lines(pair: RunComparison) -> Iterator[_Line]:
    difference = pair.difference
    for phase in pair.phases:
        times = phase.times.verdict()
        yield _Line(pair, "phase", phase.phase, times, phase.before_seconds, phase.after_seconds, "second")
    for fact in difference.facts:
        status = None if fact.differs is None else "changed" if fact.differs else "same"
        yield _Line(pair, "fact", fact.code, status, fact.before, fact.after, fact.unit)
    for row in difference.kernels.rows if difference.kernels is not None else ():
        yield _Line(pair, "kernel", row.name, row.status, row.before_seconds, row.after_seconds, "second")
    for collective in difference.collectives or ():
        status = None if collective.differs is None else "changed" if collective.differs else "same"
        yield _Line(
            pair, "collective", collective.opcode, status, collective.before_bytes, collective.after_bytes, "byte"
        )
    for finding in difference.findings or ():
        messages = [side.message if side is not None else None for side in (finding.before, finding.after)]
        yield _Line(pair, "finding", finding.either.code, finding.status, messages[0], messages[1], "")
    for buffer in difference.buffers or ():
        sizes = [side.bytes if side is not None else None for side in (buffer.before, buffer.after)]
        yield _Line(pair, "buffer", buffer.either.instruction, buffer.status, sizes[0], sizes[1], "byte")
    for function in pair.program.functions if pair.program is not None else ():
        counts = [side.count if side is not None else None for side in (function.before, function.after)]
        yield _Line(pair, "function", function.either.function, function.status, counts[0], counts[1], "")
