"""Data of the charts: figures that `analysis` derives, in the form that the scripts in `html_assets` draw.

Nothing is rounded here; times are in seconds, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxprof.analysis.kernels.memory import SCHEDULE, MemoryPicture
from jaxprof.analysis.runs.run_result import ONCE_PHASES, RunResult
from jaxprof.analysis.runs.speedup import steady_samples
from jaxprof.analysis.timeline.flame import PICOSECONDS, FlameGraph
from jaxprof.base.grouping import thinned
from jaxprof.base.units import bytes_, counted, integer, seconds
from jaxprof.events import StepTimes
from jaxprof.facts.captures import PassRow
from jaxprof.facts.runs import RunRow
from jaxprof.report.page.elements import Drawing
from jaxprof.report.program_words import words
from jaxprof.stats.summary import histogram, modes_text

if TYPE_CHECKING:
    from jaxprof.analysis.kernels.ranking import Ranking
    from jaxprof.hlo.kernels.cost.peaks import DevicePeaks

_BINS = 40
_FEWEST_SAMPLES = 8
"""Fewest samples whose distribution is drawn; fewer have no shape."""
_POINTS_DRAWN = 400
_FRAMES_DRAWN = 4_000
_FEWEST_FRAMES = 4
"""Fewest frames of a flame graph that is drawn: the root, a scope and two kernels."""
_STEPS_DRAWN = 24
_LIVE_DRAWN = 2_000
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
    drawn = rows[:_STEPS_DRAWN]
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
    bins = min(_BINS, max(_FEWEST_SAMPLES, len(samples) // 3))
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
                for point in points[-_POINTS_DRAWN:]
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
    if graph is None or len(graph.frames) < _FEWEST_FRAMES:
        return
    scale = 1 if graph.basis == "bytes" else PICOSECONDS
    frames = [_Frame(frame.at.name, depth, frame.total / scale, frame.count) for frame, depth in graph.nested()]
    yield _icicle(f"{graph.title} {graph.missing}".rstrip(), frames, "bytes" if scale == 1 else "seconds")


def pass_icicle(rows: Iterable[PassRow]) -> Drawing:
    """Draw the phases and passes of a compile, as wide as their time."""
    frames = [_Frame(row.node.name, row.depth, row.node.seconds, row.node.count) for row in rows]
    return _icicle("phases and passes of the compile", frames)


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
    """Draw the live size after each instruction of the schedule."""
    if picture is None or len(picture.live_bytes) < 2:
        return
    sizes = thinned(picture.live_bytes, _LIVE_DRAWN)
    peak = f"; peak memory {bytes_(picture.peak_bytes)} by the {picture.source}" if picture.source != SCHEDULE else ""
    caption = f"live size over the schedule, an estimate: at most {bytes_(max(picture.live_bytes))}{peak}"
    x = list(range(len(sizes)))
    yield lines(caption, "place in the schedule", x, "bytes", [("live", sizes)], stepped=True)
