"""The data of the charts: figures that `analysis` derived, in the form in which `html_assets` draws them.

Nothing is rounded here; times are seconds, sizes bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jaxprof.analysis import RunResult
from jaxprof.analysis.flame import PICOSECONDS, FlameGraph
from jaxprof.analysis.memory import SCHEDULE, MemoryPicture
from jaxprof.analysis.programs.derive import ProgramResult
from jaxprof.analysis.run_result import ONCE_PHASES, BreakEvenCurve, break_even_curve, modes_text
from jaxprof.analysis.speedup import steady_samples
from jaxprof.events import PassTimes, StepTimes
from jaxprof.facts.runs import RunRow
from jaxprof.report.page.elements import Charts
from jaxprof.report.recording.words import words
from jaxprof.stats import histogram
from jaxprof.units import bytes_, counted, integer, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.ranking import Ranking
    from jaxprof.hlo.analysis.cost.peaks import DevicePeaks

_BINS: Final = 40
_FEWEST_SAMPLES: Final = 8
"""Fewer samples have no shape to draw."""
_CURVE_POINTS: Final = 60
_POINTS_DRAWN: Final = 400
_NODES_DRAWN: Final = 4_000
_FEWEST_FRAMES: Final = 4
"""Everything, a scope and two kernels: fewer frames are no picture."""
_STEPS_DRAWN: Final = 24
_LIVE_DRAWN: Final = 2_000
_PHASES: Final = (*ONCE_PHASES, "transfer_in", "first_run", "run", "transfer_out")
_PARTS: Final = ("kernels", "transfers", "collectives_exposed", "launch_gaps", "idle")


def phases(charts: Charts, rows: Sequence[RunRow]) -> Iterator[str]:
    """What each run spends before its steady calls and on one of them, on one scale."""
    bars = [
        {"label": row.label, "parts": parts}
        for row in rows
        if (parts := _known((name, row.result.phase_seconds.get(name)) for name in _PHASES))
    ]
    if bars:
        yield charts.figure("bars", "phases of each run; run is one steady call", {"rows": bars})


def states(charts: Charts, program: ProgramResult) -> Iterator[str]:
    """Where the wall time of a program's main thread went."""
    parts = _known((share.state, share.seconds) for share in program.timeline)
    if parts:
        yield charts.figure("bars", "the main thread's time", {"rows": [{"label": "", "parts": parts}]})


def steps(charts: Charts, rows: Sequence[StepTimes]) -> Iterator[str]:
    """What the time of each step was spent on; of many steps, the first ones."""
    drawn = rows[:_STEPS_DRAWN]
    several = len({step.device for step in drawn}) > 1
    bars = [
        {
            "label": f"{step.name} {step.device}" if several else step.name,
            "parts": _known((name, getattr(step.parts, name)) for name in _PARTS),
        }
        for step in drawn
    ]
    if bars:
        left = f" (the first {len(drawn)} of {integer(len(rows))})" if len(rows) > len(drawn) else ""
        yield charts.figure("bars", f"what each step was spent on{left}", {"rows": bars})


def distribution(charts: Charts, label: str, result: RunResult) -> Iterator[str]:
    """How the calls of a steady run are spread; outliers are counted, not drawn."""
    samples = steady_samples(result.run)
    if len(samples) < _FEWEST_SAMPLES or result.summary is None:
        return
    bins = min(_BINS, max(_FEWEST_SAMPLES, len(samples) // 3))
    counts, low, high, above = histogram(samples, bins, result.modes)
    outside = f", {integer(above)} above the scale" if above else ""
    outside += f"; two modes: {modes_text(result.modes)}" if result.modes is not None else ""
    yield charts.figure(
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


def break_even(charts: Charts, result: RunResult, baseline: RunResult | None) -> Iterator[str]:
    """The total time of a run and of its baseline over the number of calls."""
    curve = break_even_curve(result, baseline)
    if curve is None:
        return
    calls = _call_counts(curve)
    crossing = curve.break_even_calls
    ends = f"breaks even after {counted(crossing, 'call')}" if crossing is not None else "never breaks even"
    yield charts.figure(
        "lines",
        f"{curve.label} {ends} against {curve.baseline_label}",
        {
            "x": calls,
            "x_label": "calls",
            "x_unit": "count",
            "unit": "seconds",
            "series": [
                {"label": curve.label, "values": [curve.seconds_after(count) for count in calls]},
                {"label": curve.baseline_label, "values": [count * curve.baseline_seconds for count in calls]},
            ],
            "mark": crossing,
        },
    )


def _call_counts(curve: BreakEvenCurve) -> list[int]:
    most = curve.calls
    spread = {1, most, *(round(most * number / _CURVE_POINTS) for number in range(_CURVE_POINTS))}
    if curve.break_even_calls is not None:
        spread.add(curve.break_even_calls)
    return sorted(spread)


def roofline(charts: Charts, ranking: Ranking, numbers: Sequence[int], device: DevicePeaks) -> Iterator[str]:
    """The kernels under the ceilings of their device."""
    from jaxprof.analysis.ranking import roofline_ceilings, roofline_points

    points, without = roofline_points(ranking, numbers)
    roofs = roofline_ceilings(ranking, numbers, device)
    if not points or not roofs:
        return
    left = f"; {counted(without, 'kernel')} without a point" if without else ""
    reached = "reached" if any(point.measured for point in points) else "a ceiling allows at most"
    yield charts.figure(
        "roofline",
        f"FLOP/s that kernels {reached}, under the ceilings of {device.title}{left}",
        {
            "bandwidth": device.bandwidth,
            "roofs": [{"label": name, "peak": peak} for name, peak in roofs],
            "points": [
                {
                    "label": ranking.kernels[point.number].name,
                    "intensity": point.intensity,
                    "rate": point.flops_per_second,
                    "bound": point.bound,
                    "share": point.share,
                    "measured": point.measured,
                }
                for point in points[-_POINTS_DRAWN:]
            ],
        },
    )


class _Box(NamedTuple):
    name: str
    depth: int
    amount: float
    """Seconds, or bytes."""
    times: int


def flame(charts: Charts, graph: FlameGraph | None) -> Iterator[str]:
    """Frames inside frames, as wide as their time, or their bytes."""
    if graph is None or len(graph.tree) < _FEWEST_FRAMES:
        return
    tree, scale = graph.tree, 1 if graph.basis == "bytes" else PICOSECONDS
    boxes = [
        _Box(tree.names[node], depth, tree.totals[node] / scale, tree.counts[node]) for node, depth in tree.in_order()
    ]
    yield _icicle(charts, f"{graph.title} {graph.remark}".rstrip(), boxes, "bytes" if scale == 1 else "seconds")


def pass_icicle(charts: Charts, tree: PassTimes) -> str:
    """The phases and passes of a compile, as wide as their time."""

    def walk(node: PassTimes, depth: int) -> Iterator[_Box]:
        yield _Box(node.name, depth, node.seconds, node.count)
        for child in sorted(node.children, key=lambda child: -child.seconds):
            yield from walk(child, depth + 1)

    return _icicle(charts, "phases and passes of the compile", list(walk(tree, 0)))


def _icicle(charts: Charts, caption: str, nodes: Sequence[_Box], unit: str = "seconds") -> str:
    """A parent before its children; of many nodes those that take most: a child never takes more than its parent."""
    kept = nodes
    if len(nodes) > _NODES_DRAWN:
        least = min(nlargest(_NODES_DRAWN, (node.amount for node in nodes)))
        kept = _under_kept_parents(nodes, least)
    data = {
        "names": [node.name for node in kept],
        "depths": [node.depth for node in kept],
        "values": [node.amount for node in kept],
        "unit": unit,
        "counts": [node.times for node in kept],
    }
    left = len(nodes) - len(kept)
    return charts.figure("icicle", caption + (f"; {integer(left)} small ones are left out" if left else ""), data)


def _under_kept_parents(nodes: Sequence[_Box], least: float) -> list[_Box]:
    kept: list[_Box] = []
    dropped: int | None = None
    for node in nodes:
        if dropped is not None and node.depth > dropped:
            continue
        dropped = node.depth if node.amount < least else None
        if dropped is None:
            kept.append(node)
    return kept


def live_memory(charts: Charts, picture: MemoryPicture) -> Iterator[str]:
    """The live size after each instruction of the schedule."""
    if len(picture.live_bytes) < 2:
        return
    from jaxprof.hlo.analysis.liveness import thinned

    sizes = list(thinned(picture.live_bytes, _LIVE_DRAWN))
    peak = f"; peak memory {bytes_(picture.peak_bytes)} by the {picture.source}" if picture.source != SCHEDULE else ""
    yield charts.figure(
        "lines",
        f"live size over the schedule, an estimate: at most {bytes_(max(picture.live_bytes))}{peak}",
        {
            "x": list(range(len(sizes))),
            "x_label": "place in the schedule",
            "x_unit": "count",
            "unit": "bytes",
            "series": [{"label": "live", "values": sizes}],
            "mark": None,
            "stepped": True,
        },
    )


def _known(parts: Iterable[tuple[str, float | None]]) -> list[dict[str, Any]]:
    """The parts that took time, under their names as the style has them and in words."""
    return [
        {"state": name, "label": words(name), "seconds": took} for name, took in parts if took is not None and took > 0
    ]
