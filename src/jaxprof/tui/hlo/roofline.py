"""The kernels of a program under the ceilings of a device, as a plot whose points the keys can choose."""

from __future__ import annotations

import math
from collections.abc import Sequence

from textual.content import Content

from jaxprof.analysis.ranking import Ranked, Ranking, RooflinePoint, roofline_ceilings, roofline_points
from jaxprof.grouping import grouped
from jaxprof.text import columns, shorten_middle
from jaxprof.tui.keys import in_words
from jaxprof.tui.kit.picture import Picture
from jaxprof.tui.kit.plots import Axis, Mark, PlotLine, count_tick, line_plot, nothing
from jaxprof.units import counted, percent, scaled

_NEAR = 0.15
"""Distance in powers of ten up to which a kernel is near the chosen one."""
_MOST_NAMED = 6
_BEYOND = 3.0
"""Factor by which the ceilings reach beyond the kernels."""
_MARKS = {"memory": ("●", "$phase-transfer"), "compute": ("◆", "$phase-compile")}
_OTHER = ("○", "$quiet")


def roofline_plot(ranking: Ranking, numbers: Sequence[int], chosen: int | None, width: int, height: int) -> Content:
    """Return the plot in exactly `width` columns and `height` lines, with the `chosen` kernel marked. Below the plot
    stand the kernels near it."""
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
    if here is not None:
        marks.append(Mark(here.intensity, here.flops_per_second, "", "bold $accent"))
    left_out = f", {counted(without, 'kernel')} not plotted" if without else ""
    x, y = Axis("FLOP/B", count_tick, log=True), Axis(f"{device.title}{left_out}: FLOP/s", count_tick, log=True)
    named = min(_MOST_NAMED, height // 4)
    plot = line_plot(lines, x, y, width, height - named, marks)
    near = [point for point in points if here is not None and _apart(point, here) <= _NEAR]
    return Content("\n").join([plot, *_names(ranking, near, chosen, width, named)])


def _apart(one: RooflinePoint, other: RooflinePoint) -> float:
    """Return the distance between two points of the plot, in powers of ten."""
    across = math.log10(one.intensity / other.intensity)
    return math.hypot(across, math.log10(one.flops_per_second / other.flops_per_second))


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


def _names(
    ranking: Ranking, near: Sequence[RooflinePoint], chosen: int | None, width: int, lines: int
) -> list[Content]:
    """Return a line for each kernel, also for those in the same place; the last line counts the kernels without a
    line."""
    kernels = sorted(((number, point) for point in near for number in point.numbers), key=lambda row: row[0] != chosen)
    shown = kernels if len(kernels) <= lines else kernels[: max(0, lines - 1)]
    named = [_name(ranking, number, point, width, chosen=number == chosen) for number, point in shown]
    if not kernels:
        words = "  This kernel has no point: its FLOPs, or its bytes, are unknown or 0."
        named = [Content.styled(words, "$text-muted")]
    elif len(shown) < len(kernels):
        named.append(Content.styled(f"  and {len(kernels) - len(shown)} more near here", "$text-muted"))
    return [line.truncate(width, ellipsis=True) for line in named[:lines]] + [Content("")] * (lines - len(named))


def _name(ranking: Ranking, number: int, point: RooflinePoint, width: int, *, chosen: bool) -> Content:
    """Return the line of a kernel, such as `◉ fusion.3 1.2 FLOP/B 3.4 GFLOP/s 41 % of its roof`."""
    mark, style = ("◉", "bold $accent") if chosen else _MARKS.get(point.bound, _OTHER)
    figures = f"{scaled(point.intensity):>7} FLOP/B  {scaled(point.flops_per_second, 'FLOP/s'):>13}  " + (
        f"{percent(point.flops_per_second / point.attainable):>6} of its roof" if point.measured else "at most"
    )
    room = max(8, min(48, width - columns(figures) - 5))
    return Content.assemble(
        (f"{mark} ", style),
        (shorten_middle(ranking.kernels[number].name, room).ljust(room), "bold" if chosen else ""),
        "  ",
        (figures, "" if chosen else "$text-muted"),
    )


class RooflineView(Picture):
    """The kernels of a program under the ceilings of a device."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._shown: tuple[Ranking, Sequence[int], int | None] = (Ranking(), (), None)

    def show_kernels(self, ranking: Ranking, numbers: Sequence[int], chosen: Ranked | None) -> None:
        """Draw these kernels, with one chosen."""
        number = chosen.number if chosen is not None else None
        self._shown = (ranking, numbers, number)
        key = (id(ranking), id(numbers), number)  # both are held, so that nothing else has their identities
        self.show(key, lambda width, height: roofline_plot(ranking, numbers, number, width, height))

    def neighbour(self, step: int) -> int | None:
        """Return the kernel of the next point to the right or to the left: by intensity, and then by FLOP/s."""
        ranking, numbers, chosen = self._shown
        points = roofline_points(ranking, numbers)[0]
        order = sorted(points, key=lambda point: (point.intensity, point.flops_per_second))
        start = -1 if step > 0 else len(order)
        at = next((at for at, point in enumerate(order) if chosen in point.numbers), start) + step
        return order[at].number if 0 <= at < len(order) else None
