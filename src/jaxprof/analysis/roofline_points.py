"""The points of a roofline: kernels over FLOPs per byte, at the FLOP/s that they reached or could reach at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxprof.analysis.ranking import Ranking
    from jaxprof.hlo.analysis.cost.peaks import DevicePeaks


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """The kernels at one place of the plot."""

    number: int
    """Number of the kernel with the greatest share among them."""
    intensity: float
    """FLOPs for each byte."""
    flops_per_second: float
    bound: str
    """`memory`, `compute`, or empty."""
    share: float
    measured: bool
    """Whether `flops_per_second` was reached; else it is what the ceilings allow at most."""


def roofline_points(
    ranking: Ranking, numbers: Sequence[int], chosen: int | None = None
) -> tuple[list[RooflinePoint], int]:
    """The points of the kernels, those with the greatest share last so that they are drawn on top; and how many kernels
    have no point. The chosen kernel has a point of its own."""
    by_place: dict[tuple[object, ...], RooflinePoint] = {}
    without = 0
    for row in ranking.rows(numbers):
        roof = row.roof
        if roof is None or not roof.intensity or roof.attainable is None:
            without += 1
            continue
        speed = roof.attainable
        measured = bool(row.measured_seconds and row.kernel.total_flops)
        if measured and row.measured_seconds and row.kernel.total_flops:
            speed = row.kernel.total_flops / row.measured_seconds
        point = RooflinePoint(row.number, roof.intensity, speed, roof.bound, row.share or 0.0, measured)
        place = (point.intensity, point.flops_per_second, point.bound, measured, row.number == chosen)
        if place not in by_place or by_place[place].share < point.share:
            by_place[place] = point
    return sorted(by_place.values(), key=lambda point: point.share), without


def roofline_ceilings(ranking: Ranking, numbers: Sequence[int], device: DevicePeaks) -> list[tuple[str, float]]:
    """The peaks above these kernels, named by dtype, the highest first. FLOP/s."""
    peaks: dict[str, float] = {}
    for row in ranking.rows(numbers):
        if row.roof is not None and row.roof.peak:
            unit = "matrix" if row.kernel.uses_matrix_units else "vector"
            peaks[f"{row.kernel.dtype} {unit}"] = row.roof.peak
    if not peaks:
        peak = device.peak("f32", matrix=False) or device.peak("bf16", matrix=True)
        peaks = {"peak": peak} if peak else {}
    return sorted(peaks.items(), key=lambda item: -item[1])
