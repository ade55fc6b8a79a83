"""The kernels of a program under the ceilings of a device, as a plot whose points the keys can choose."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content
from textual.message import Message

from jaxprof.analysis.ranking import Ranking, RooflinePoint, roofline_ceilings, roofline_points
from jaxprof.text import columns, shorten_middle
from jaxprof.tui.keys import in_words
from jaxprof.tui.kit.canvas import Canvas, Scale, axis_lines
from jaxprof.tui.kit.picture import Picture
from jaxprof.units import counted, percent, scaled

if TYPE_CHECKING:
    from jaxprof.hlo.analysis.cost.peaks import DevicePeaks


GUTTER, LEAST_WIDTH, LEAST_HEIGHT = 9, 30, 9
NEAR = 3.0
"""Distance in columns up to which a kernel is near the chosen one."""
MOST_NAMED = 6
MARKS = {"memory": ("●", "$phase-transfer"), "compute": ("◆", "$phase-compile")}


@dataclass(frozen=True, slots=True)
class RooflineFrame:
    """The layout of a plot of one size: its points as cells of the terminal."""

    device: DevicePeaks
    points: Sequence[RooflinePoint]
    """The points, those with the greatest share last."""
    without: int
    """Number of kernels without a point."""
    roofs: Sequence[tuple[str, float]]
    x: Scale
    y: Scale
    width: int
    height: int
    """Rows of the area between the axes."""

    def cell(self, point: RooflinePoint) -> tuple[int, int]:
        """Return the column and the row of a point between the axes."""
        canvas = Canvas(self.width, self.height)
        column, row = canvas.dot_at(self.x.place(point.intensity), self.y.place(point.flops_per_second))
        return column // 2, min(self.height - 1, max(0, row // 4))

    def near(self, here: RooflinePoint) -> list[RooflinePoint]:
        """Return the points near one, the nearest first, then those with the greatest share."""
        cell = self.cell(here)
        distances = [(_distance(self.cell(point), cell), point) for point in self.points]
        distances.sort(key=lambda pair: (pair[0], -pair[1].share))
        return [point for distance, point in distances if distance <= NEAR]

    def of(self, number: int | None) -> RooflinePoint | None:
        """Return the point of a kernel; None if it has none."""
        return next((point for point in self.points if number in point.numbers), None)

    def beside(self, number: int | None, step: int) -> RooflinePoint | None:
        """Return the next point to the right or left of the point of a kernel, by intensity and then by FLOP/s."""
        order = sorted(self.points, key=lambda point: (point.intensity, point.flops_per_second))
        here = self.of(number)
        if here is None:
            return order[0 if step > 0 else -1] if order else None
        at = order.index(here) + step
        return order[at] if 0 <= at < len(order) else None


def _distance(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Return the distance between two cells, in columns; a row is as high as two columns are wide."""
    return math.hypot(one[0] - other[0], 2 * (one[1] - other[1]))


def named_lines(height: int) -> int:
    """Return how many lines below a plot name kernels."""
    return min(MOST_NAMED, max(1, height // 4)) if height >= LEAST_HEIGHT else 0


def roofline_frame(ranking: Ranking, numbers: Sequence[int], width: int, height: int) -> RooflineFrame | None:
    """Return the frame of a plot with its axes and names in `width` by `height`; None without ceilings, or without
    room."""
    device = ranking.device
    rows = height - 3 - named_lines(height)
    if device is None or width < LEAST_WIDTH or rows < LEAST_HEIGHT - 4:
        return None
    points, without = roofline_points(ranking, numbers)
    roofs = roofline_ceilings(ranking, numbers, device)
    if not roofs:
        return None
    ridges = [peak / device.bandwidth for _, peak in roofs]
    x = _decades([*(point.intensity for point in points), *ridges], 0.5)
    y = _decades([*(point.flops_per_second for point in points), *(peak for _, peak in roofs)], 0.35)
    return RooflineFrame(device, points, without, roofs, x, y, width - GUTTER - 1, rows)


def roofline_plot(ranking: Ranking, numbers: Sequence[int], chosen: int | None, width: int, height: int) -> Content:
    """Return the plot in exactly `width` columns and `height` lines, with the `chosen` kernel marked. Below the plot
    stand the kernels near it."""
    if ranking.device is None:
        return _note(
            "The ceilings of this device are unknown.",
            f"Press {in_words('hlo.device')} to choose a known device to compare the kernels with; "
            "`jaxprof run gemm-peak triad` measures those of this machine.",
            width,
            height,
        )
    frame = roofline_frame(ranking, numbers, width, height)
    if frame is None:
        some = roofline_ceilings(ranking, numbers, ranking.device)
        return _note("no room for the roofline" if some else "no known ceiling", "", width, height)
    canvas = Canvas(frame.width, frame.height)
    _draw_roof(canvas, frame.device, frame.roofs, frame.x, frame.y)
    for point in frame.points:
        mark, style = MARKS.get(point.bound, ("○", "$quiet"))
        canvas.put(*frame.cell(point), mark, style)
    here = frame.of(chosen)
    if here is not None:
        canvas.put(*frame.cell(here), "◉", "bold $accent")
    _name_roofs(canvas, frame.device, frame.roofs, frame.x, frame.y)
    axis = {canvas.row_of(frame.y.place(tick)): scaled(tick) for tick in frame.y.ticks(max(2, canvas.height // 3))}
    near = frame.near(here) if here is not None else []
    return Content("\n").join(
        [
            _head(frame.device, frame.without, width),
            *canvas.framed(axis, GUTTER),
            *axis_lines(frame.x, scaled, GUTTER, canvas.width, "FLOP/B"),
            *_names(ranking, near, chosen, width, named_lines(height)),
        ]
    )


def _names(
    ranking: Ranking, near: Sequence[RooflinePoint], chosen: int | None, width: int, lines: int
) -> list[Content]:
    """Return a line for each kernel, also for those in the same place; the last line counts the kernels without a
    line."""
    kernels = [(number, point) for point in near for number in point.numbers]
    kernels.sort(key=lambda pair: pair[0] != chosen)
    shown = kernels if len(kernels) <= lines else kernels[: max(0, lines - 1)]
    named = [_name(ranking, number, point, width, chosen=number == chosen) for number, point in shown]
    if len(shown) < len(kernels) and lines:
        named.append(Content.styled(f"  and {len(kernels) - len(shown)} more near here", "$text-muted"))
    if not kernels and lines:
        named = [
            Content.styled("  This kernel has no point: its FLOPs, or its bytes, are unknown or 0.", "$text-muted")
        ]
    return [line.truncate(width, ellipsis=True) for line in named] + [Content("")] * (lines - len(named))


def _name(ranking: Ranking, number: int, point: RooflinePoint, width: int, *, chosen: bool) -> Content:
    """Return the line of a kernel, such as `◉ fusion.3 1.2 FLOP/B 3.4 GFLOP/s 41 % of its roof`."""
    mark, style = ("◉", "bold $accent") if chosen else MARKS.get(point.bound, ("○", "$quiet"))
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


def _decades(values: Sequence[float], margin: float) -> Scale:
    positive = [value for value in values if value > 0 and math.isfinite(value)] or [1.0]
    low, high = math.log10(min(positive)) - margin, math.log10(max(positive)) + margin
    if high - low < 2:
        low, high = (low + high) / 2 - 1, (low + high) / 2 + 1
    return Scale(10.0**low, 10.0**high, log=True)


def _draw_roof(canvas: Canvas, device: DevicePeaks, roofs: Sequence[tuple[str, float]], x: Scale, y: Scale) -> None:
    """Draw the memory slope up to the highest peak, and each peak from its ridge on."""
    top = roofs[0][1]
    ridge = top / device.bandwidth
    # Clipped below: the slope enters the plot where it reaches the lowest FLOP/s of the axis.
    start = max(x.low, y.low / device.bandwidth)
    canvas.line(canvas.dot_at(x.place(start), y.place(start * device.bandwidth)),
                canvas.dot_at(x.place(min(ridge, x.high)), y.place(min(top, x.high * device.bandwidth))),
                "$phase-transfer")  # fmt: skip
    for _, peak in roofs:
        if y.low < peak < y.high:
            begin = canvas.dot_at(x.place(min(max(peak / device.bandwidth, x.low), x.high)), y.place(peak))
            canvas.line(begin, canvas.dot_at(1.0, y.place(peak)), "$phase-compile", every=1 if peak == top else 3)


def _name_roofs(canvas: Canvas, device: DevicePeaks, roofs: Sequence[tuple[str, float]], x: Scale, y: Scale) -> None:
    """Write the name of each ceiling as near to it as there is a free place."""
    named: dict[float, list[str]] = {}
    for name, peak in roofs:
        named.setdefault(peak, []).append(name)
    for peak, names in named.items():
        if y.low < peak < y.high:
            label = f" {', '.join(names)} {scaled(peak, 'FLOP/s')} "
            row = canvas.row_of(y.place(peak))
            _put_where_free(canvas, label, canvas.width - columns(label), (row - 1, row + 1, row - 2, row + 2))
    start = max(x.low, y.low / device.bandwidth)
    ridge = roofs[0][1] / device.bandwidth
    label = f" {scaled(device.bandwidth, 'B/s')} "
    middle = math.sqrt(start * min(ridge, x.high))
    column, row = canvas.dot_at(x.place(middle), y.place(middle * device.bandwidth))
    _put_where_free(canvas, label, column // 2 - columns(label) - 1, (row // 4, row // 4 - 1, row // 4 - 2))


def _put_where_free(canvas: Canvas, label: str, right_most: int, rows: Sequence[int]) -> None:
    length = columns(label)
    for row in rows:
        for left in range(right_most, -1, -1):
            if canvas.free(left, row, length):
                canvas.put(left, row, label, "$text-muted")
                return


def _head(device: DevicePeaks, without: int, width: int) -> Content:
    parts: list[tuple[str, str]] = [
        (device.title, "bold"),
        ("   ", ""),
        ("● memory", MARKS["memory"][1]),
        ("  ", ""),
        ("◆ compute", MARKS["compute"][1]),
    ]
    if without:
        parts.append((f"   {counted(without, 'kernel')} not plotted", "$quiet"))
    return Content.assemble(*parts).truncate(width, ellipsis=True)


def _note(text: str, more: str, width: int, height: int) -> Content:
    lines = [line.center(width) for words in (text, more) for line in textwrap.wrap(words, max(8, width - 2))][:height]
    return Content("\n" * max(0, (height - len(lines)) // 2)) + Content.styled("\n".join(lines), "$quiet")


class RooflineView(Picture):
    """The kernels of a program under the ceilings of a device."""

    @dataclass
    class Chosen(Message):
        """Requests the cursor on a kernel, by its number."""

        number: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._ranking = Ranking()
        self._numbers: Sequence[int] = ()
        self._chosen: int | None = None

    def show_kernels(self, ranking: Ranking, numbers: Sequence[int], changes: int, chosen: int | None) -> None:
        """Draw these kernels, with one chosen; `changes` counts how often the kernels have changed."""
        self._ranking, self._numbers, self._chosen = ranking, numbers, chosen
        key = (changes, id(ranking), chosen)
        self.show(key, lambda width, height: roofline_plot(ranking, numbers, chosen, width, height))

    def go(self, step: int) -> None:
        """Request the next point to the right or to the left."""
        frame = roofline_frame(self._ranking, self._numbers, self.size.width, self.size.height)
        point = frame.beside(self._chosen, step) if frame is not None else None
        if point is not None:
            self.post_message(self.Chosen(point.number))
