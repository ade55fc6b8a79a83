"""Sections of the page about the captures and the HLO of a session: kernels, steps with the timeline of a typical one,
compile passes, memory, trust."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from itertools import chain
from statistics import median_low
from typing import Any, Final

from jaxprof.analysis.flame import run_flame
from jaxprof.analysis.measured import kernels_of, measured, seconds_per_call, whole_profile
from jaxprof.analysis.memory import buffers_of
from jaxprof.analysis.profile import device_steps, programs_of
from jaxprof.analysis.timeline import TEXT_NAME, Timeline, TimelineLane, read_timeline
from jaxprof.errors import FileRefusedError
from jaxprof.events import StepsMeasured
from jaxprof.facts import pick
from jaxprof.facts.captures import STEPS, TRUST, pass_rows, trust_rows
from jaxprof.facts.memory import BUFFERS
from jaxprof.report.memory import memory_heading
from jaxprof.report.page import charts as draw
from jaxprof.report.page.elements import ROWS_KEPT, Charts, Section, heading, listed, paragraph, section, table
from jaxprof.report.table import Table
from jaxprof.report.views import beside_kernels, device_columns, is_profile, measured_table, passes_table
from jaxprof.session import Run, Session
from jaxprof.units import integer, seconds

INTERVALS_KEPT: Final = 20_000
"""Most intervals that a timeline draws; of more, the shortest are left out."""


@dataclass(frozen=True, slots=True)
class StepWindow:
    """A range of a timeline, in nanoseconds."""

    title: str
    start: int
    end: int


def step_timeline(charts: Charts, session: Session, run: Run) -> Iterator[str]:
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
    yield charts.figure("timeline", caption, {"span": window.end - window.start, "lanes": lanes})


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
    total = sum(len(rows) for _, rows in inside)
    least = 0
    if total > INTERVALS_KEPT:
        every = chain.from_iterable((lane.durations[row] for row in rows) for lane, rows in inside)
        least = min(nlargest(INTERVALS_KEPT, every))
    lanes, left_out = [], total
    for lane, rows in inside:
        kept = [row for row in rows if lane.durations[row] >= least]
        left_out -= len(kept)
        if kept:
            lanes.append(_lane(lane, kept, window))
    return lanes, left_out


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


def kernels_section(session: Session, charts: Charts) -> Iterator[Section]:
    """Yield the section with the kernels of each run, as measured and by the HLO."""
    if is_profile(session):
        content = list(_profile_kernels(session, charts))
    else:
        content = [html for run in session.runs.values() for html in _run_kernels(session, charts, run)]
    yield from section("kernels", "Kernels", content)


def _profile_kernels(session: Session, charts: Charts) -> Iterator[str]:
    whole = next(iter(session.runs.values()))
    if kernels := whole_profile(session):
        yield from table(measured_table(kernels, programs=True))
        yield from draw.flame(charts, run_flame(session, whole))
    if (measured_run := measured(session, whole.id)) is not None:
        yield from listed(beside_kernels(measured_run))
    for run in [run for run in programs_of(session, whole) if "hlo" in run.texts][:_PROGRAMS_READ]:
        if costs := list(_hlo_costs(session, charts, run)):
            yield from (heading(run.plan.workload), *costs)


def _run_kernels(session: Session, charts: Charts, run: Run) -> Iterator[str]:
    content: list[str] = []
    measured_run = measured(session, run.id)
    if measured_run is not None:
        content += table(measured_table(measured_run.kernels))
        content += listed(beside_kernels(measured_run))
    content += draw.flame(charts, run_flame(session, run) if not run.is_program else None)
    content += _hlo_costs(session, charts, run)
    if content:
        yield from (heading(run.label), *content)


def _hlo_costs(session: Session, charts: Charts, run: Run) -> Iterator[str]:
    """Yield the costs of a run's kernels by the HLO, under the ceilings of its device; nothing without HLO."""
    kernels = kernels_of(session, run.id)
    if not kernels:
        return
    from jaxprof.analysis.ceilings import ceilings_for, machine_of_run
    from jaxprof.analysis.ranking import everything, ordered, ranking_on
    from jaxprof.hlo.open.parsed import modules
    from jaxprof.report.kernels import COLUMNS, SHOWN, ceilings_note

    device = ceilings_for(session, run)
    module = modules(session.text(run.id, "hlo") or "")[0]
    ranking = ranking_on(machine_of_run(run, device), module, kernels, seconds_per_call(run))
    numbers = ordered(ranking, everything(ranking), "share")[:ROWS_KEPT]
    if device is not None:
        yield from draw.roofline(charts, ranking, numbers, device)
    left_out = len(ranking) - len(numbers)
    rest = f"and {integer(left_out)} more kernels" if left_out else ""
    notes = tuple(filter(None, (rest, ceilings_note(device) if device else "")))
    columns = [COLUMNS[name] for name in ("share", *SHOWN)]
    yield from table(Table(columns, list(ranking.rows(numbers)), title="by the HLO, of one call", notes=notes))


def steps_section(session: Session, charts: Charts) -> Iterator[Section]:
    """Yield the section with the steps of each run and the timeline of a typical one."""
    content = [html for run in session.runs.values() for html in _steps(session, charts, run)]
    yield from section("steps", "Steps and timeline", content)


def _steps(session: Session, charts: Charts, run: Run) -> Iterator[str]:
    content = list(step_timeline(charts, session, run))
    if run.steps is not None and run.steps.steps:
        content += table(Table(device_columns(), device_steps(run.steps)))
        content += draw.steps(charts, run.steps.steps)
        content += table(Table(STEPS, run.steps.steps, title="steps"))
    if content:
        yield from (heading(run.label), *content)


def compile_section(session: Session, charts: Charts) -> Iterator[Section]:
    """Yield the section on where the compile time of each run went."""
    content: list[str] = []
    for run in session.runs.values():
        if run.compile_passes is not None:
            tree = run.compile_passes.tree
            shown = passes_table(tree, list(pass_rows(tree)))
            content += (heading(run.label), draw.pass_icicle(charts, tree), *table(shown))
    yield from section("compile", "Compile passes", content)


def memory_section(session: Session, charts: Charts) -> Iterator[Section]:
    """Yield the section on what the memory peak of each run is made of."""
    content: list[str] = []
    shown = pick(BUFFERS, "bytes", "kind", "at_peak", "instruction", "shape", "source", "op_name")
    columns = [replace(fact, widest=0) for fact in shown]
    for run in session.runs.values():
        picture = buffers_of(session, run.id)
        if picture is not None:
            content += (heading(run.label), *listed(memory_heading(picture)), *draw.live_memory(charts, picture))
            content += table(Table(columns, picture.buffers))
    yield from section("memory", "Memory", content)


def trust_section(session: Session) -> Iterator[Section]:
    """Yield the section on whether the captures of each run can be trusted."""
    columns = [replace(fact, title=fact.key) for fact in TRUST]
    content: list[str] = []
    for run in session.runs.values():
        if rows := trust_rows(run):
            content += (heading(run.label), *table(Table(columns, rows)))
    lead = "What each capture was checked for; a doubt says what to do about it."
    yield from section("trust", "Trust", content and [paragraph(lead), *content])
