"""Sections of the page: the reports of measured runs, recorded programs and captures, with the tables that text cuts
whole, and the data of their charts, in the form that the scripts in `html_assets` draw. Nothing is rounded in that
data; times are in seconds, sizes in bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxprof.analysis.kernels.measured import kernels_of, measure_kernels
from jaxprof.analysis.kernels.memory import SCHEDULE, MemoryPicture, memory_of_run
from jaxprof.analysis.runs.run_result import ONCE_PHASES, RunResult
from jaxprof.analysis.runs.speedup import steady_samples
from jaxprof.analysis.timeline.flame import PICOSECONDS, FlameGraph, kernel_flame, program_flame
from jaxprof.analysis.timeline.profile import programs_of
from jaxprof.base.grouping import thin_out
from jaxprof.base.units import bytes_, counted, integer, seconds
from jaxprof.events import StepTimes
from jaxprof.facts.captures import pass_rows
from jaxprof.facts.runs import RunRow
from jaxprof.findings.program_result import program_result
from jaxprof.report import Table
from jaxprof.report.page.elements import ROWS_KEPT, Drawing, Element, Section, heading, html, section, table
from jaxprof.report.program import TIME_LINE, ledger, program_report, time_line_rows
from jaxprof.report.program_words import words
from jaxprof.report.runs import group_report, groups, rows_of_group, sweep_groups, sweep_report
from jaxprof.report.session_text import REPORTS, passes_table
from jaxprof.session import Run, Session
from jaxprof.stats.summary import histogram, modes_text

if TYPE_CHECKING:
    from jaxprof.analysis.kernels.ranking import Ranking
    from jaxprof.hlo.kernels.cost.peaks import DevicePeaks

_FEWEST_SAMPLES = 8
"""Fewest samples whose distribution is drawn; fewer have no shape."""
_FRAMES_DRAWN = 4_000
_PHASES = (*ONCE_PHASES, "transfer_in", "first_run", "run", "transfer_out")
_PARTS = ("kernels", "transfers", "collectives_exposed", "launch_gaps", "idle")


def bars(caption: str, rows: Iterable[tuple[str, Iterable[tuple[str, float | None]]]]) -> Iterator[Drawing]:
    """Draw bars on one scale, each with its label, of the named parts that took time; nothing without any."""
    drawn = [
        {
            "label": label,
            "parts": [
                {"state": name, "label": words(name), "seconds": took}
                for name, took in parts
                if took is not None and took > 0
            ],
        }
        for label, parts in rows
    ]
    if drawn := [bar for bar in drawn if bar["parts"]]:
        yield Drawing("bars", caption, {"rows": drawn})


def phases(rows: Sequence[RunRow]) -> Iterator[Drawing]:
    caption = "phases of each run; run is one steady call"
    parts = [(row.label, [(name, row.result.phase_seconds.get(name)) for name in _PHASES]) for row in rows]
    return bars(caption, parts)


def steps(rows: Sequence[StepTimes]) -> Iterator[Drawing]:
    """Draw what the time of each step was spent on, for the first steps."""
    drawn = rows[:24]  # more bars than this are too thin to read
    several = len({step.device for step in drawn}) > 1
    left = f" (the first {len(drawn)} of {integer(len(rows))})" if len(rows) > len(drawn) else ""
    parts = [
        (f"{step.name} {step.device}" if several else step.name, [(name, getattr(step.parts, name)) for name in _PARTS])
        for step in drawn
    ]
    return bars(f"what each step was spent on{left}", parts)


def distribution(label: str, result: RunResult) -> Iterator[Drawing]:
    """Draw the distribution of the calls of a steady run. Outliers are counted, not drawn."""
    samples = steady_samples(result.run)
    if len(samples) < _FEWEST_SAMPLES or result.summary is None:
        return
    bins = min(40, max(_FEWEST_SAMPLES, len(samples) // 3))
    counts, low, high, above = histogram(samples, bins, result.modes)
    outside = f", {integer(above)} above the scale" if above else ""
    outside += f"; two modes: {modes_text(result.modes)}" if result.modes is not None else ""
    yield Drawing(
        "histogram",
        f"{label}: {counted(len(samples), 'sample')}{outside}, median {seconds(result.summary.median)}",
        {
            "counts": counts,
            "low": low,
            "high": high,
            "above": above,
            "median": result.summary.median,
            "interval": list(result.summary.ci95) if result.summary.ci95 is not None else None,
        },
    )


def lines(
    caption: str,
    x_label: str,
    x: Sequence[float],
    unit: str,
    series: Iterable[tuple[str, Sequence[float | None]]],
    **more: Any,
) -> Drawing:
    """Draw lines, each with its label, over a count. `more`: how they are drawn."""
    listed = [{"label": label, "values": values} for label, values in series]
    data = {"x": x, "x_label": x_label, "x_unit": "count", "unit": unit, "series": listed, **more}
    return Drawing("lines", caption, data)


def roofline(ranking: Ranking, numbers: Sequence[int], device: DevicePeaks) -> Iterator[Drawing]:
    from jaxprof.analysis.kernels.ranking import roofline_ceilings, roofline_points

    points, without = roofline_points(ranking, numbers)
    roofs = roofline_ceilings(ranking, numbers, device)
    if not points or not roofs:
        return
    left_out = f"; {counted(without, 'kernel')} without a point" if without else ""
    reached = "reached" if any(point.measured for point in points) else "a ceiling allows at most"
    yield Drawing(
        "roofline",
        f"FLOP/s that kernels {reached}, under the ceilings of {device.title}{left_out}",
        {
            "bandwidth": device.bandwidth,
            "roofs": [{"label": name, "peak": peak} for name, peak in roofs],
            "points": [
                {
                    "label": ranking.kernels[point.numbers[0]].name,
                    "intensity": point.intensity,
                    "rate": point.flops_per_second,
                    "bound": point.bound,
                    "share": point.share,
                    "measured": point.measured,
                }
                for point in points[-400:]
            ],
        },
    )


class _Frame(NamedTuple):
    name: str
    depth: int
    amount: float
    """Seconds or bytes of the frame with all inside it."""
    times: int


def flame(graph: FlameGraph | None) -> Iterator[Drawing]:
    """Draw a flame graph, whose frames are as wide as their time or their bytes; nothing for a small one."""
    # A smaller graph than the root, a scope and two kernels shows nothing.
    if graph is None or len(graph.frames) < 4:
        return
    scale = 1 if graph.basis == "bytes" else PICOSECONDS
    frames = [_Frame(frame.at.name, depth, frame.total / scale, frame.count) for frame, depth in graph.nested()]
    yield _icicle(f"{graph.title} {graph.missing}".rstrip(), frames, "bytes" if scale == 1 else "seconds")


def _icicle(caption: str, frames: Sequence[_Frame], unit: str = "seconds") -> Drawing:
    """Draw frames, given with a parent before its children, in an icicle chart; of many frames the largest."""
    kept = list(frames)
    if len(frames) > _FRAMES_DRAWN:
        least = min(nlargest(_FRAMES_DRAWN, (frame.amount for frame in frames)))
        # a frame inside a smaller one is left out with it
        kept = []
        dropped_depth: int | None = None
        for frame in frames:
            if dropped_depth is not None and frame.depth > dropped_depth:
                continue
            dropped_depth = frame.depth if frame.amount < least else None
            if dropped_depth is None:
                kept.append(frame)
    data = {
        "names": [frame.name for frame in kept],
        "depths": [frame.depth for frame in kept],
        "values": [frame.amount for frame in kept],
        "unit": unit,
        "counts": [frame.times for frame in kept],
    }
    left_out = len(frames) - len(kept)
    note = f"; {integer(left_out)} small ones are left out" if left_out else ""
    return Drawing("icicle", caption + note, data)


def live_memory(picture: MemoryPicture | None) -> Iterator[Drawing]:
    if picture is None or len(picture.live_bytes) < 2:
        return
    sizes = thin_out(picture.live_bytes, 2_000)
    peak = f"; peak memory {bytes_(picture.peak_bytes)} by the {picture.source}" if picture.source != SCHEDULE else ""
    caption = f"live size over the schedule, an estimate: at most {bytes_(max(picture.live_bytes))}{peak}"
    x = list(range(len(sizes)))
    yield lines(caption, "position in the schedule", x, "bytes", [("live", sizes)], stepped=True)


def runs_section(session: Session) -> Iterator[Section]:
    content: list[Element] = []
    for sweep in sweep_groups(session):
        content += html(sweep_report(sweep))
        series = [(line.label, [line.medians.get(size) for size in sweep.sizes]) for line in sweep.lines]
        caption = f"median of a call over {sweep.parameter}"
        content.append(lines(caption, sweep.parameter, sweep.sizes, "seconds", series, logarithmic=True))
    for group in groups(session):
        content += html(group_report(session, group, warnings=None))
        rows = rows_of_group(group)
        content += phases(rows)
        for row in rows:
            content += distribution(row.label, row.result)
    yield from section("runs", "Runs", content)


def programs_section(session: Session) -> Iterator[Section]:
    content: list[Element] = []
    for run in session.programs:
        content += html(program_report(session, run))
        program = program_result(session, run.id)
        states = [(share.state, share.seconds) for share in program.timeline]
        content += bars("the main thread's time", [("", states)])
        content += table(Table(TIME_LINE[1:], time_line_rows(program)))
        content += table(ledger(program))
        content += flame(program_flame(program))
    yield from section("program", "Program", content)


def _kernel_charts(session: Session, run: Run) -> Iterator[Element]:
    """Yield the flame graph of a run's kernels, and their costs by the HLO; for a profile those of all programs."""
    imported = session.is_profile
    if imported and run is not next(iter(session.runs.values())):
        return
    if not run.is_program:
        yield from flame(kernel_flame(session, run))
    programs = programs_of(session, run) if imported else [run]
    # Reading HLO takes time, so only that of the longest programs is read.
    for program in [program for program in programs if "hlo" in program.texts][:4]:
        if costs := list(_hlo_costs(session, program)):
            yield from (*([heading(program.plan.workload)] if program is not run else []), *costs)


def _hlo_costs(session: Session, run: Run) -> Iterator[Element]:
    """Yield the costs of a run's kernels by the HLO, under the ceilings of its device; nothing without HLO."""
    kernels = kernels_of(session, run.id, running=True)
    if not kernels:
        return
    from jaxprof.analysis.kernels.ranking import ranking_on, sort_kernels
    from jaxprof.analysis.runs.ceilings import ceilings_for, machine_of_run
    from jaxprof.hlo.stages import modules
    from jaxprof.report.kernels import COLUMNS, SHOWN, ceilings_note

    device = ceilings_for(session, run)
    module = modules(session.text(run.id, "hlo") or "", run.plan.device)[0]
    captured = measure_kernels(session, run.id)
    by_name = captured.by_name() if captured is not None else None
    ranking = ranking_on(machine_of_run(run, device), module, kernels, by_name)
    numbers = sort_kernels(ranking, range(len(ranking)), "share")[:ROWS_KEPT]
    if device is not None:
        yield from roofline(ranking, numbers, device)
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
        frames = [_Frame(row.node.name, row.depth, row.node.seconds, row.node.count) for row in rows]
        yield _icicle("phases and passes of the compile", frames)
        yield from table(passes_table(tree, rows))


_OF_RUNS: tuple[tuple[str, str, Callable[[Session, Run], Iterable[Element]]], ...] = (
    ("kernels", "Kernels", _kernel_charts),
    ("steps", "Steps", lambda session, run: steps(run.steps.steps) if run.steps is not None else ()),
    ("compile", "Compile passes", _compile_charts),
    ("memory", "Memory", lambda session, run: live_memory(memory_of_run(session, run.id))),
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
