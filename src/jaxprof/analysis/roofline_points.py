"""The points of a roofline: kernels over FLOPs per byte, at the FLOP/s that they reached or could reach at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxprof.analysis.ranking import Ranked, Ranking
    from jaxprof.hlo.analysis.cost.peaks import DevicePeaks


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """The kernels at one place of the plot."""

    numbers: tuple[int, ...]
    """The kernels here, the one with the greatest share first."""
    intensity: float
    """FLOPs for each byte."""
    flops_per_second: float
    attainable: float
    """The FLOP/s that the ceilings allow."""
    bound: str
    """`memory`, `compute`, or empty."""
    share: float
    """Of that kernel."""
    measured: bool
    """Whether `flops_per_second` was reached; else it is what the ceilings allow at most."""

    @property
    def number(self) -> int:
        """The kernel with the greatest share."""
        return self.numbers[0]


def roofline_points(ranking: Ranking, numbers: Sequence[int]) -> tuple[list[RooflinePoint], int]:
    """The points of the kernels, those with the greatest share last so that they are drawn on top; and how many kernels
    have no point."""
    by_place: dict[tuple[float, float, str, bool], list[Ranked]] = {}
    without = 0
    for row in ranking.rows(numbers):
        roof = row.roof
        if roof is None or not roof.intensity or roof.attainable is None:
            without += 1
            continue
        flops, took = row.kernel.total_flops, row.measured_seconds
        speed = flops / took if flops and took else roof.attainable
        by_place.setdefault((roof.intensity, speed, roof.bound, bool(flops and took)), []).append(row)
    points = [_point(place, sorted(rows, key=_share, reverse=True)) for place, rows in by_place.items()]
    return sorted(points, key=lambda point: point.share), without


def _share(row: Ranked) -> float:
    return row.share or 0.0


def _point(place: tuple[float, float, str, bool], rows: Sequence[Ranked]) -> RooflinePoint:
    intensity, speed, bound, measured = place
    roof = rows[0].roof
    attainable = roof.attainable if roof is not None and roof.attainable is not None else speed
    numbers = tuple(row.number for row in rows)
    return RooflinePoint(numbers, intensity, speed, attainable, bound, _share(rows[0]), measured)


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
