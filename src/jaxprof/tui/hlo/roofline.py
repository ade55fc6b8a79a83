"""The kernels of a program under the ceilings of a device, as a plot whose points the keys can choose."""

from __future__ import annotations

import math
from collections.abc import Sequence

from textual.content import Content

from jaxprof.analysis.ranking import Ranking, roofline_ceilings, roofline_points
from jaxprof.grouping import grouped
from jaxprof.text import shorten_middle
from jaxprof.tui.keys import in_words
from jaxprof.tui.kit.plots import Axis, Mark, PlotLine, count_tick, line_plot, nothing
from jaxprof.units import counted, scaled

_BEYOND = 3.0
"""Factor by which the ceilings reach beyond the kernels."""
_MARKS = {"memory": ("●", "$phase-transfer"), "compute": ("◆", "$phase-compile")}
_OTHER = ("○", "$quiet")


def roofline_plot(ranking: Ranking, numbers: Sequence[int], chosen: int | None, width: int, height: int) -> Content:
    """Return the plot in exactly `width` columns and `height` lines, with the `chosen` kernel marked."""
    device = ranking.device
    if device is None:
        other = f"Press {in_words('hlo.device')} to choose a known device to compare the kernels with"
        mine = "`jaxprof run gemm-peak triad` measures those of this machine"
        return nothing(f"The ceilings of this device are unknown. {other}; {mine}.", width, height)
    points, without = roofline_points(ranking, numbers)
    roofs = roofline_ceilings(ranking, numbers, device)
    if not roofs:
        return nothing("no known ceiling", width, height)
    lines, marks = _ceilings(device.bandwidth, roofs, [point.intensity for point in points])
    by_bound = grouped((point.bound, (point.intensity, point.flops_per_second)) for point in points)
    for bound in dict.fromkeys((*_MARKS, *by_bound)):
        marker, style = _MARKS.get(bound, _OTHER)
        lines.append(PlotLine(bound, tuple(by_bound.get(bound, ())), style, marker, joined=False))
    here = next((point for point in points if chosen in point.numbers), None)
    if here is not None and chosen is not None:
        name = shorten_middle(ranking.kernels[chosen].name, 40)
        marks.append(Mark(here.intensity, here.flops_per_second, name, "bold $accent"))
    left_out = f", {counted(without, 'kernel')} not plotted" if without else ""
    x, y = Axis("FLOP/B", count_tick, log=True), Axis(f"{device.title}{left_out}: FLOP/s", count_tick, log=True)
    return line_plot(lines, x, y, width, height, marks)


def _ceilings(
    bandwidth: float, roofs: Sequence[tuple[str, float]], intensities: Sequence[float]
) -> tuple[list[PlotLine], list[Mark]]:
    """Return the memory slope up to the highest peak, each peak from its ridge on, and the names of all."""
    at = [*intensities, *(peak / bandwidth for _, peak in roofs)]
    low, high, top = min(at) / _BEYOND, max(at) * _BEYOND, roofs[0][1]
    lines = [PlotLine("", ((low, low * bandwidth), (top / bandwidth, top)), "$phase-transfer")]
    middle = math.sqrt(low * top / bandwidth)
    marks = [Mark(middle, middle * bandwidth, scaled(bandwidth, "B/s"), "$text-muted", "")]
    for peak, names in grouped((peak, name) for name, peak in roofs).items():
        ridge = ((peak / bandwidth, peak), (high, peak))
        lines.append(PlotLine("", ridge, "$phase-compile", dotted=peak != top))
        marks.append(Mark(high, peak, f"{', '.join(names)} {scaled(peak, 'FLOP/s')}", "$text-muted", ""))
    return lines, marks


def neighbour(ranking: Ranking, numbers: Sequence[int], chosen: int | None, step: int) -> int | None:
    """Return the kernel of the next point to the right or to the left: by intensity, and then by FLOP/s."""
    points = roofline_points(ranking, numbers)[0]
    order = sorted(points, key=lambda point: (point.intensity, point.flops_per_second))
    start = -1 if step > 0 else len(order)
    at = next((at for at, point in enumerate(order) if chosen in point.numbers), start) + step
    return order[at].number if 0 <= at < len(order) else None
