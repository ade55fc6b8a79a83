"""Sections of the page: the reports of measured runs, recorded programs and captures, with the tables that text cuts
whole, and their charts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from jaxprof.analysis.kernels.measured import kernels_of, measured
from jaxprof.analysis.kernels.memory import memory_of_run
from jaxprof.analysis.runs.sweeps import SweepGroup, sweep_groups
from jaxprof.analysis.timeline.flame import kernel_flame, program_flame
from jaxprof.analysis.timeline.profile import programs_of
from jaxprof.base.units import integer
from jaxprof.facts.captures import pass_rows
from jaxprof.findings.program_result import program_result
from jaxprof.report.page import charts as draw
from jaxprof.report.page.elements import ROWS_KEPT, Element, Section, heading, html, section, table
from jaxprof.report.program import TIME_LINE, ledger, program_report, time_line_rows
from jaxprof.report.renderers import Table
from jaxprof.report.runs import RunGroup, group_report, groups, rows_of_group, sweep_report
from jaxprof.report.session_text import REPORTS, passes_table
from jaxprof.session import Run, Session


def runs_section(session: Session) -> Iterator[Section]:
    """Yield the section with all sweeps and groups of measured runs; nothing if nothing was measured."""
    sweeps = [element for sweep in sweep_groups(session) for element in _sweep(sweep)]
    content = [element for group in groups(session) for element in _group(session, group)]
    yield from section("runs", "Runs", [*sweeps, *content])


def _group(session: Session, group: RunGroup) -> Iterator[Element]:
    yield from html(group_report(session, group, warnings=None))
    rows = rows_of_group(group)
    yield from draw.phases(rows)
    for row in rows:
        yield from draw.distribution(row.label, row.result)


def _sweep(sweep: SweepGroup) -> Iterator[Element]:
    yield from html(sweep_report(sweep))
    series = [(line.label, [line.medians.get(size) for size in sweep.sizes]) for line in sweep.lines]
    caption = f"median of a call over {sweep.parameter}"
    yield draw.lines(caption, sweep.parameter, sweep.sizes, "seconds", series, logarithmic=True)


def programs_section(session: Session) -> Iterator[Section]:
    """Yield the section with all recorded programs; nothing in a session without one."""
    content: list[Element] = []
    for run in session.programs:
        content += html(program_report(session, run))
        program = program_result(session, run.id)
        states = [(share.state, share.seconds) for share in program.timeline]
        content += draw.bars("the main thread's time", [("", states)])
        content += table(Table(TIME_LINE[1:], time_line_rows(program)))
        content += table(ledger(program))
        content += draw.flame(program_flame(program))
    yield from section("program", "Program", content)


_PROGRAMS_READ = 4
"""Most programs of a profile whose HLO is read for the page, those that took longest."""


def _kernel_charts(session: Session, run: Run) -> Iterator[Element]:
    """Yield the flame graph of a run's kernels, and their costs by the HLO; of a profile those of all programs."""
    imported = session.is_profile
    if imported and run is not next(iter(session.runs.values())):
        return
    if not run.is_program:
        yield from draw.flame(kernel_flame(session, run))
    programs = programs_of(session, run) if imported else [run]
    for program in [program for program in programs if "hlo" in program.texts][:_PROGRAMS_READ]:
        if costs := list(_hlo_costs(session, program)):
            yield from (*([heading(program.plan.workload)] if program is not run else []), *costs)


def _hlo_costs(session: Session, run: Run) -> Iterator[Element]:
    """Yield the costs of a run's kernels by the HLO, under the ceilings of its device; nothing without HLO."""
    kernels = kernels_of(session, run.id, running=True)
    if not kernels:
        return
    from jaxprof.analysis.kernels.ranking import ordered, ranking_on
    from jaxprof.analysis.runs.ceilings import ceilings_for, machine_of_run
    from jaxprof.hlo.stages import modules
    from jaxprof.report.kernels import COLUMNS, SHOWN, ceilings_note

    device = ceilings_for(session, run)
    module = modules(session.text(run.id, "hlo") or "")[0]
    captured = measured(session, run.id)
    by_name = captured.by_name() if captured is not None else None
    ranking = ranking_on(machine_of_run(run, device), module, kernels, by_name)
    numbers = ordered(ranking, range(len(ranking)), "share")[:ROWS_KEPT]
    if device is not None:
        yield from draw.roofline(ranking, numbers, device)
    left_out = len(ranking) - len(numbers)
    rest = f"and {integer(left_out)} more kernels" if left_out else ""
    notes = tuple(filter(None, (rest, ceilings_note(device) if device else "")))
    columns = [COLUMNS[name] for name in dict.fromkeys(("share", *SHOWN))]
    yield from table(Table(columns, list(ranking.rows(numbers)), title="by the HLO, of one call", notes=notes))


def _compile_charts(_: Session, run: Run) -> Iterator[Element]:
    """Yield the passes as a chart, and those that text leaves out as well in a table."""
    if run.compile_passes is not None:
        tree = run.compile_passes.tree
        rows = list(pass_rows(tree))
        yield draw.pass_icicle(rows)
        yield from table(passes_table(tree, rows))


_OF_RUNS: tuple[tuple[str, str, Callable[[Session, Run], Iterable[Element]]], ...] = (
    ("kernels", "Kernels", _kernel_charts),
    ("steps", "Steps", lambda session, run: draw.steps(run.steps.steps) if run.steps is not None else ()),
    ("compile", "Compile passes", _compile_charts),
    ("memory", "Memory", lambda session, run: draw.live_memory(memory_of_run(session, run.id))),
    ("trust", "Trust", lambda session, run: ()),
)
"""Views that have a section, each with its title and its charts."""


def capture_sections(session: Session) -> Iterator[Section]:
    for view, title, charts in _OF_RUNS:
        content: list[Element] = []
        for run in session.runs.values():
            report = REPORTS[view](session, run) if view != "compile" else ()
            if elements := [*html(report), *charts(session, run)]:
                content += (heading(run.label), *elements)
        yield from section(view, title, content)
