"""The measured runs of a session on the page: how fast each is, its phases, its samples, its break-even."""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.analysis import sweep_groups
from jaxprof.analysis.ab import ab_result
from jaxprof.analysis.sweeps import SweepGroup
from jaxprof.facts import Fact, column
from jaxprof.report.page import charts as draw
from jaxprof.report.page.elements import Charts, Section, heading, listed, paragraph, table
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
from jaxprof.session import Session
from jaxprof.units import scaled, seconds

_FAST = (SIDE_AND_VARIANT, DEVICE, MEDIAN, INTERVAL, SPEEDUP, BREAK_EVEN, CHECK_OR_FAILURE)
_SAMPLES = (SIDE_AND_VARIANT, *SPREAD, MODES)
_PHASES = (SIDE_AND_VARIANT, *BEFORE_STEADY)
_ONE_CALL = (SIDE_AND_VARIANT, *RATES)


def runs_section(session: Session, charts: Charts, *, live: bool) -> Iterator[Section]:
    """All groups of runs; nothing where nothing was measured."""
    sweeps = [html for sweep in sweep_groups(session) for html in _sweep(charts, sweep)]
    content = [html for group in groups(session) for html in _group(session, charts, group, live)]
    if content:
        yield Section("runs", "Runs", [*sweeps, *content])


def _group(session: Session, charts: Charts, group: RunGroup, live: bool) -> Iterator[str]:
    parts = [group.workload, parameters_text(group.parameters), group.preset]
    yield heading("  ·  ".join(part for part in parts if part))
    rows = rows_of_group(session, group, live=live)
    if group.comparison:
        yield from listed(head_lines(ab_result(session, group.comparison)))
    yield from table(Table(_FAST, rows))
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
    yield charts.figure(
        "lines",
        f"median of a call over {sweep.parameter}",
        {
            "x": sizes,
            "x_label": sweep.parameter,
            "x_unit": "count",
            "unit": "seconds",
            "series": [
                {"label": line.label, "values": [by_size.get(size) for size in sizes]}
                for line, by_size in zip(sweep.lines, medians, strict=True)
            ],
            "mark": None,
            "logarithmic": True,
        },
    )
    sized: Fact[float] = column(sweep.parameter, lambda size: size, scaled)
    columns = [column(line.label, by_size.get, seconds) for line, by_size in zip(sweep.lines, medians, strict=True)]
    yield from table(Table((sized, *columns), sizes))
    yield from listed(crossover.sentence(sweep.parameter) for crossover in sweep.crossovers())
