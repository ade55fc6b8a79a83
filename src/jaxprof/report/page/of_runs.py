"""Sections of the page about the runs of a session. Measured runs show their speed, phases, samples and break-even;
recorded programs show where the wall time went, what was compiled and what to change."""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.analysis.ab import ab_result
from jaxprof.analysis.flame import program_flame
from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.sweeps import SweepGroup, sweep_groups
from jaxprof.facts import Fact, column
from jaxprof.facts.programs import rows_of
from jaxprof.report.page import charts as draw
from jaxprof.report.page.elements import Charts, Section, heading, listed, paragraph, section, table
from jaxprof.report.recording.tables import (
    COMPILES_TEXT,
    LINES_TEXT,
    TIME_LINE,
    TRANSFERS_TEXT,
    functions_table,
    time_line_rows,
)
from jaxprof.report.recording.words import finding_text, loop, title, verdict_sentence
from jaxprof.report.runs import (
    BEFORE_STEADY,
    BREAK_EVEN,
    CHECK_OR_FAILURE,
    DEVICE,
    INTERVAL,
    MEDIAN,
    MODES,
    RATES,
    SIDE_AND_VARIANT,
    SPEEDUP,
    SPREAD,
    RunGroup,
    groups,
    parameters_text,
    rows_of_group,
    verdicts_text,
)
from jaxprof.report.sides import head_lines
from jaxprof.report.table import Table
from jaxprof.session import Run, Session
from jaxprof.units import scaled, seconds

_SPEED = (SIDE_AND_VARIANT, DEVICE, MEDIAN, INTERVAL, SPEEDUP, BREAK_EVEN, CHECK_OR_FAILURE)
_SAMPLES = (SIDE_AND_VARIANT, *SPREAD, MODES)
_PHASES = (SIDE_AND_VARIANT, *BEFORE_STEADY)
_ONE_CALL = (SIDE_AND_VARIANT, *RATES)


def runs_section(session: Session, charts: Charts, *, live: bool) -> Iterator[Section]:
    """Yield the section with all sweeps and groups of measured runs; nothing if nothing was measured."""
    sweeps = [html for sweep in sweep_groups(session) for html in _sweep(charts, sweep)]
    content = [html for group in groups(session) for html in _group(session, charts, group, live)]
    yield from section("runs", "Runs", [*sweeps, *content])


def _group(session: Session, charts: Charts, group: RunGroup, live: bool) -> Iterator[str]:
    parts = [group.workload, parameters_text(group.parameters), group.preset]
    yield heading("  ·  ".join(part for part in parts if part))
    rows = rows_of_group(session, group, live=live)
    if group.comparison:
        yield from listed(head_lines(ab_result(session, group.comparison)))
    yield from table(Table(_SPEED, rows))
    if not group.comparison and (verdicts := verdicts_text(rows)):
        yield paragraph(verdicts, "note")
    yield from draw.phases(charts, rows)
    yield from table(Table(_PHASES, rows, title="phases"))
    by_id = {result.run.id: result for result in group.runs}
    for row in rows:
        yield from draw.distribution(charts, row.label, row.result)
    yield from table(Table(_SAMPLES, [row for row in rows if row.result.summary is not None], title="samples"))
    for row in rows:
        yield from draw.break_even(charts, row.result, by_id.get(row.run.plan.baseline))
    yield from table(Table(_ONE_CALL, rows, title="one call"))
    yield from listed(
        dict.fromkeys(
            f"{row.label}: {warning.message} {warning.advice}".rstrip()
            for row in rows
            for warning in row.result.warnings
        )
    )


def _sweep(charts: Charts, sweep: SweepGroup) -> Iterator[str]:
    yield heading(f"{sweep.workload}  ·  {sweep.parameter} swept")
    sizes = sorted({size for line in sweep.lines for size in line.sizes})
    medians = [
        {
            size: result.summary.median
            for size, result in zip(line.sizes, line.results, strict=True)
            if result.summary is not None
        }
        for line in sweep.lines
    ]
    series = [
        (line.label, [by_size.get(size) for size in sizes]) for line, by_size in zip(sweep.lines, medians, strict=True)
    ]
    caption = f"median of a call over {sweep.parameter}"
    yield draw.lines(charts, caption, sweep.parameter, sizes, "seconds", series, logarithmic=True)
    sized: Fact[float] = column(sweep.parameter, lambda size: size, scaled)
    columns = [column(line.label, by_size.get, seconds) for line, by_size in zip(sweep.lines, medians, strict=True)]
    yield from table(Table((sized, *columns), sizes))
    yield from listed(crossover.sentence(sweep.parameter) for crossover in sweep.crossovers())


def programs_section(session: Session, charts: Charts, *, live: bool) -> Iterator[Section]:
    """Yield the section with all recorded programs; nothing in a session without one."""
    content = [html for run in session.programs for html in _program(session, charts, run, live)]
    yield from section("program", "Program", content)


def _program(session: Session, charts: Charts, run: Run, live: bool) -> Iterator[str]:
    program = program_result(session, run.id)
    yield heading(title(program, live=live))
    ended = run.end(deserted=not live)
    if ended.status not in ("ok", "running", "queued"):
        yield paragraph(f"{ended.status}: {ended.error}. {ended.advice}".rstrip(". "), "bad")
    if bounds := verdict_sentence(program):
        yield paragraph(bounds)
    yield from draw.states(charts, program)
    yield from table(Table(TIME_LINE, time_line_rows(program)))
    yield from listed(loop(program, steps) for steps in program.loops)
    if program.findings:
        yield heading("Findings", 4)
        yield from listed(f"{finding_text(program, finding)}. {finding.advice}" for finding in program.findings)
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
