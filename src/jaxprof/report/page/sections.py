"""Sections of the page. Measured runs show their speed, phases, samples and break-even; recorded programs where the
wall time went, what was compiled and what to change; captures kernels, steps with the timeline of a typical one,
compile passes, memory and trust."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from statistics import median_low
from typing import Any, Final

from jaxprof.analysis.ab import ab_result
from jaxprof.analysis.flame import kernel_flame, program_flame
from jaxprof.analysis.measured import kernels_of, measured, seconds_per_call, whole_profile
from jaxprof.analysis.memory import buffers_of
from jaxprof.analysis.profile import device_steps, programs_of
from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.sweeps import SweepGroup, sweep_groups
from jaxprof.analysis.timeline import TEXT_NAME, Timeline, TimelineLane, read_timeline
from jaxprof.errors import FileRefusedError
from jaxprof.events import StepsMeasured
from jaxprof.facts import Fact, column, pick
from jaxprof.facts.captures import STEPS, TRUST, pass_rows, trust_rows
from jaxprof.facts.memory import BUFFERS
from jaxprof.facts.programs import rows_of
from jaxprof.facts.sessions import is_profile
from jaxprof.report.memory import memory_heading
from jaxprof.report.page import charts as draw
from jaxprof.report.page.elements import ROWS_KEPT, Drawing, Piece, Section, heading, listed, paragraph, section, table
from jaxprof.report.recording.tables import (
    COMPILES_TEXT,
    LINES_TEXT,
    TIME_LINE,
    TRANSFERS_TEXT,
    functions_table,
    time_line_rows,
)
from jaxprof.report.recording.words import finding_text, loop, title, verdict_sentence
from jaxprof.report.renderers import Table
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
from jaxprof.report.views import beside_kernels, device_columns, measured_table, passes_table
from jaxprof.session import Run, Session
from jaxprof.units import integer, scaled, seconds

_SPEED = (SIDE_AND_VARIANT, DEVICE, MEDIAN, INTERVAL, SPEEDUP, BREAK_EVEN, CHECK_OR_FAILURE)
_SAMPLES = (SIDE_AND_VARIANT, *SPREAD, MODES)
_PHASES = (SIDE_AND_VARIANT, *BEFORE_STEADY)
_ONE_CALL = (SIDE_AND_VARIANT, *RATES)
_BUFFERS_SHOWN = [
    replace(fact, widest=0)
    for fact in pick(BUFFERS, "bytes", "kind", "at_peak", "instruction", "shape", "source", "op_name")
]


def runs_section(session: Session) -> Iterator[Section]:
    """Yield the section with all sweeps and groups of measured runs; nothing if nothing was measured."""
    sweeps = [html for sweep in sweep_groups(session) for html in _sweep(sweep)]
    content = [html for group in groups(session) for html in _group(session, group)]
    yield from section("runs", "Runs", [*sweeps, *content])


def _group(session: Session, group: RunGroup) -> Iterator[Piece]:
    parts = [group.workload, parameters_text(group.parameters), group.preset]
    yield heading("  ·  ".join(part for part in parts if part))
    rows = rows_of_group(group)
    if group.comparison:
        yield from listed(head_lines(ab_result(session, group.comparison)))
    yield from table(Table(_SPEED, rows))
    if not group.comparison and (verdicts := verdicts_text(rows)):
        yield paragraph(verdicts, "note")
    yield from draw.phases(rows)
    yield from table(Table(_PHASES, rows, title="phases"))
    by_id = {result.run.id: result for result in group.runs}
    for row in rows:
        yield from draw.distribution(row.label, row.result)
    yield from table(Table(_SAMPLES, [row for row in rows if row.result.summary is not None], title="samples"))
    for row in rows:
        yield from draw.break_even(row.result, by_id.get(row.run.plan.baseline))
    yield from table(Table(_ONE_CALL, rows, title="one call"))
    yield from listed(
        dict.fromkeys(
            f"{row.label}: {warning.message} {warning.advice}".rstrip()
            for row in rows
            for warning in row.result.warnings
        )
    )


def _sweep(sweep: SweepGroup) -> Iterator[Piece]:
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
    yield draw.lines(caption, sweep.parameter, sizes, "seconds", series, logarithmic=True)
    sized: Fact[float] = column(sweep.parameter, lambda size: size, scaled)
    columns = [column(line.label, by_size.get, seconds) for line, by_size in zip(sweep.lines, medians, strict=True)]
    yield from table(Table((sized, *columns), sizes))
    yield from listed(crossover.sentence(sweep.parameter) for crossover in sweep.crossovers())


def programs_section(session: Session) -> Iterator[Section]:
    """Yield the section with all recorded programs; nothing in a session without one."""
    content = [html for run in session.programs for html in _program(session, run)]
    yield from section("program", "Program", content)


def _program(session: Session, run: Run) -> Iterator[Piece]:
    program = program_result(session, run.id)
    yield heading(title(program))
    ended = run.shown
    if ended.status not in ("ok", "running", "queued"):
        yield paragraph(f"{ended.status}: {ended.error}. {ended.advice}".rstrip(". "), "bad")
    if bounds := verdict_sentence(program):
        yield paragraph(bounds)
    states = [(share.state, share.seconds) for share in program.timeline]
    yield from draw.bars("the main thread's time", [("", states)])
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
        yield from draw.flame(program_flame(program))
        yield from table(Table(LINES_TEXT, rows_of(program, program.lines)))
    if program.transfers:
        yield heading("Implicit copies", 4)
        yield from table(Table(TRANSFERS_TEXT, rows_of(program, program.transfers)))
    yield from listed(f"{footer.message}. {footer.advice}" for footer in program.remarks)


INTERVALS_KEPT: Final = 20_000
"""Most intervals that a timeline draws; of more, the shortest are left out."""


@dataclass(frozen=True, slots=True)
class StepWindow:
    """A range of a timeline, in nanoseconds."""

    title: str
    start: int
    end: int


def step_timeline(session: Session, run: Run) -> Iterator[Piece]:
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


def _kernels(session: Session, run: Run) -> Iterator[Piece]:
    """Yield the kernels of a run, as measured and by the HLO; of a profile those of all its programs together."""
    imported = is_profile(session)
    if imported and run is not next(iter(session.runs.values())):
        return
    measured_run = measured(session, run.id)
    if imported:
        yield from table(measured_table(whole_profile(session), programs=True))
    elif measured_run is not None:
        yield from table(measured_table(measured_run.kernels))
    if not run.is_program:
        yield from draw.flame(kernel_flame(session, run))
    if measured_run is not None:
        yield from listed(beside_kernels(measured_run))
    programs = programs_of(session, run) if imported else [run]
    for program in [program for program in programs if "hlo" in program.texts][:_PROGRAMS_READ]:
        if costs := list(_hlo_costs(session, program)):
            yield from (*([heading(program.plan.workload)] if program is not run else []), *costs)


def _hlo_costs(session: Session, run: Run) -> Iterator[Piece]:
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
        yield from draw.roofline(ranking, numbers, device)
    left_out = len(ranking) - len(numbers)
    rest = f"and {integer(left_out)} more kernels" if left_out else ""
    notes = tuple(filter(None, (rest, ceilings_note(device) if device else "")))
    columns = [COLUMNS[name] for name in ("share", *SHOWN)]
    yield from table(Table(columns, list(ranking.rows(numbers)), title="by the HLO, of one call", notes=notes))


def _steps(session: Session, run: Run) -> Iterator[Piece]:
    yield from step_timeline(session, run)
    if run.steps is not None and run.steps.steps:
        yield from table(Table(device_columns(), device_steps(run.steps)))
        yield from draw.steps(run.steps.steps)
        yield from table(Table(STEPS, run.steps.steps, title="steps"))


def _compile(_: Session, run: Run) -> Iterator[Piece]:
    if run.compile_passes is not None:
        tree = run.compile_passes.tree
        yield draw.pass_icicle(tree)
        yield from table(passes_table(tree, list(pass_rows(tree))))


def _memory(session: Session, run: Run) -> Iterator[Piece]:
    picture = buffers_of(session, run.id)
    if picture is not None:
        yield from listed(memory_heading(picture))
        yield from draw.live_memory(picture)
        yield from table(Table(_BUFFERS_SHOWN, picture.buffers))


def _trust(_: Session, run: Run) -> Iterator[Piece]:
    lead = "what each capture was checked for; a doubt says what to do about it"
    yield from table(Table([replace(fact, title=fact.key) for fact in TRUST], trust_rows(run), lead))


_OF_RUNS: Final = (
    ("kernels", "Kernels", _kernels),
    ("steps", "Steps and timeline", _steps),
    ("compile", "Compile passes", _compile),
    ("memory", "Memory", _memory),
    ("trust", "Trust", _trust),
)


def capture_sections(session: Session) -> Iterator[Section]:
    """Yield the sections on what captures and HLO show of each run."""
    for anchor, name, pieces_of in _OF_RUNS:
        content: list[Piece] = []
        for run in session.runs.values():
            if pieces := list(pieces_of(session, run)):
                content += (heading(run.label), *pieces)
        yield from section(anchor, name, content)
