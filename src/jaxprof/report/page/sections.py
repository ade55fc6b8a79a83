"""Sections of the page: the reports of measured runs, recorded programs and captures, with the tables that text cuts
whole, and their charts, among them the timeline of a typical step."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from statistics import median_low
from typing import Any, Final

from jaxprof.analysis.flame import kernel_flame, program_flame
from jaxprof.analysis.measured import kernels_of, seconds_per_call
from jaxprof.analysis.memory import buffers_of
from jaxprof.analysis.profile import programs_of
from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.sweeps import SweepGroup, sweep_groups
from jaxprof.analysis.timeline import TEXT_NAME, Timeline, TimelineLane, read_timeline
from jaxprof.errors import FileRefusedError
from jaxprof.events import StepsMeasured
from jaxprof.facts.captures import pass_rows
from jaxprof.facts.sessions import is_profile
from jaxprof.report.page import charts as draw
from jaxprof.report.page.elements import ROWS_KEPT, Drawing, Element, Section, heading, html, paragraph, section, table
from jaxprof.report.recording.tables import TIME_LINE, time_line_rows
from jaxprof.report.recording.text import ledger, program_report
from jaxprof.report.renderers import Table
from jaxprof.report.runs import RunGroup, group_report, groups, rows_of_group, sweep_report
from jaxprof.report.views import REPORTS, passes_table
from jaxprof.session import Run, Session
from jaxprof.units import integer, seconds


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
    yield draw.lines(caption, sweep.parameter, sizes, "seconds", series, logarithmic=True)


def programs_section(session: Session) -> Iterator[Section]:
    """Yield the section with all recorded programs; nothing in a session without one."""
    content = [element for run in session.programs for element in _program(session, run)]
    yield from section("program", "Program", content)


def _program(session: Session, run: Run) -> Iterator[Element]:
    yield from html(program_report(session, run))
    program = program_result(session, run.id)
    states = [(share.state, share.seconds) for share in program.timeline]
    yield from draw.bars("the main thread's time", [("", states)])
    yield from table(Table(TIME_LINE[1:], time_line_rows(program)))
    yield from table(ledger(program))
    yield from draw.flame(program_flame(program))


INTERVALS_KEPT: Final = 20_000
"""Most intervals that a timeline draws; of more, the shortest are left out."""


@dataclass(frozen=True, slots=True)
class StepWindow:
    """A range of a timeline, in nanoseconds."""

    title: str
    start: int
    end: int


def step_timeline(session: Session, run: Run) -> Iterator[Element]:
    """Draw the timeline of a typical step of a run; nothing for a run without a timeline."""
    try:
        stored = session.text(run.id, TEXT_NAME)
        timeline = read_timeline(stored) if stored else None
    except FileRefusedError as error:
        yield paragraph(f"timeline: {error.what}", "note")
        return
    if timeline is None or not timeline.intervals:
        return
    window = typical_step(timeline, run.steps)
    lanes, left_out = _lanes(timeline, window)
    if not lanes:  # the timeline keeps no interval of that step
        window = typical_step(timeline, None)
        lanes, left_out = _lanes(timeline, window)
    notes = [f"the {integer(left_out)} shortest intervals are left out"] if left_out else []
    notes += [f"{integer(timeline.left_out)} short intervals of the profile were not kept"] if timeline.left_out else []
    caption = "; ".join([f"{window.title}, {seconds((window.end - window.start) / 1e9)}", *notes])
    yield Drawing("timeline", caption, {"span": window.end - window.start, "lanes": lanes})


def typical_step(timeline: Timeline, steps: StepsMeasured | None) -> StepWindow:
    """Return the complete step of median length on the first device that has one; without steps the whole timeline."""
    rows = [step for step in (steps.steps if steps is not None else []) if step.complete and step.to_next]
    rows = [step for step in rows if step.device == rows[0].device and step.seconds > 0]
    if rows:
        length = median_low(step.seconds for step in rows)
        step = next(step for step in rows if step.seconds == length)
        start = round(step.start_seconds * 1e9)
        median = f", the median one of {integer(len(rows))}" if len(rows) > 1 else ""
        end = start + max(1, round(step.seconds * 1e9))
        return StepWindow(f"step {step.name} on {step.device}{median}", start, end)
    filled = [lane for lane in timeline.lanes if lane.starts]
    end = max(start + took for lane in filled for start, took in zip(lane.starts, lane.durations, strict=True))
    begin = min(lane.starts[0] for lane in filled)
    return StepWindow("the whole recording", begin, max(end, begin + 1))


def _lanes(timeline: Timeline, window: StepWindow) -> tuple[list[dict[str, Any]], int]:
    """Return the lanes with intervals in the window, and how many of these intervals are left out."""
    inside = [(lane, _inside(lane, window)) for lane in timeline.lanes]
    durations = [lane.durations[row] for lane, rows in inside for row in rows]
    least = min(nlargest(INTERVALS_KEPT, durations)) if len(durations) > INTERVALS_KEPT else 0
    kept = [(lane, [row for row in rows if lane.durations[row] >= least]) for lane, rows in inside]
    left_out = len(durations) - sum(len(rows) for _, rows in kept)
    return [_lane(lane, rows, window) for lane, rows in kept if rows], left_out


def _inside(lane: TimelineLane, window: StepWindow) -> Sequence[int]:
    """Return the intervals that overlap the window. One that reaches into it may begin at any time before it, so all
    earlier intervals are checked."""
    last = bisect_left(lane.starts, window.end)
    return [row for row in range(last) if lane.starts[row] + lane.durations[row] > window.start]


def _lane(lane: TimelineLane, rows: Sequence[int], window: StepWindow) -> dict[str, Any]:
    names = [lane.labels[lane.label_of[row]][0] for row in rows]
    number_of = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return {
        "device": lane.device,
        "name": lane.name,
        "names": list(number_of),
        "name_of": [number_of[name] for name in names],
        "starts": [lane.starts[row] - window.start for row in rows],
        "durations": [lane.durations[row] for row in rows],
    }


_PROGRAMS_READ: Final = 4
"""Most programs of a profile whose HLO is read for the page, those that took longest."""


def _kernel_charts(session: Session, run: Run) -> Iterator[Element]:
    """Yield the flame graph of a run's kernels, and their costs by the HLO; of a profile those of all its programs
    together."""
    imported = is_profile(session)
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
    kernels = kernels_of(session, run.id)
    if not kernels:
        return
    from jaxprof.analysis.ceilings import ceilings_for, machine_of_run
    from jaxprof.analysis.ranking import ordered, ranking_on
    from jaxprof.hlo.open.parsed import modules
    from jaxprof.report.kernels import COLUMNS, SHOWN, ceilings_note

    device = ceilings_for(session, run)
    module = modules(session.text(run.id, "hlo") or "")[0]
    ranking = ranking_on(machine_of_run(run, device), module, kernels, seconds_per_call(run))
    numbers = ordered(ranking, range(len(ranking)), "share")[:ROWS_KEPT]
    if device is not None:
        yield from draw.roofline(ranking, numbers, device)
    left_out = len(ranking) - len(numbers)
    rest = f"and {integer(left_out)} more kernels" if left_out else ""
    notes = tuple(filter(None, (rest, ceilings_note(device) if device else "")))
    columns = [COLUMNS[name] for name in ("share", *SHOWN)]
    yield from table(Table(columns, list(ranking.rows(numbers)), title="by the HLO, of one call", notes=notes))


def _step_charts(session: Session, run: Run) -> Iterator[Element]:
    yield from step_timeline(session, run)
    if run.steps is not None and run.steps.steps:
        yield from draw.steps(run.steps.steps)


def _compile_charts(_: Session, run: Run) -> Iterator[Element]:
    """Yield the passes as a chart, and those that text leaves out as well in a table."""
    if run.compile_passes is not None:
        tree = run.compile_passes.tree
        yield draw.pass_icicle(tree)
        yield from table(passes_table(tree, list(pass_rows(tree))))


_OF_RUNS: Final[tuple[tuple[str, str, Callable[[Session, Run], Iterable[Element]]], ...]] = (
    ("kernels", "Kernels", _kernel_charts),
    ("steps", "Steps and timeline", _step_charts),
    ("compile", "Compile passes", _compile_charts),
    ("memory", "Memory", lambda session, run: draw.live_memory(buffers_of(session, run.id))),
    ("trust", "Trust", lambda session, run: ()),
)
"""Views that have a section, each with its title and its charts."""


def capture_sections(session: Session) -> Iterator[Section]:
    """Yield the sections on what captures and HLO show of each run."""
    for view, title, charts in _OF_RUNS:
        content: list[Element] = []
        for run in session.runs.values():
            report = REPORTS[view](session, run) if view != "compile" else ()
            if elements := [*html(report), *charts(session, run)]:
                content += (heading(run.label), *elements)
        yield from section(view, title, content)
