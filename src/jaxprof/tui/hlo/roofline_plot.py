"""The roofline: FLOP/s over FLOPs per byte, with a device's ceilings and a point for each kernel.

A kernel without a measured time is drawn on the ceiling that bounds it, the most that it could reach, and the plot says
so. A kernel with a measured time is drawn at the FLOP/s that it reached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.analysis.roofline_points import roofline_ceilings, roofline_points
from jaxprof.text import columns, shorten
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.canvas import Canvas, Scale
from jaxprof.units import scaled

if TYPE_CHECKING:
    from jaxprof.analysis.ranking import Ranking
    from jaxprof.hlo.analysis.cost.peaks import DevicePeaks

MARKS = {"memory": ("●", "$phase-transfer"), "compute": ("◆", "$phase-compile")}


def roofline_plot(ranking: Ranking, numbers: Sequence[int], chosen: int | None, width: int, height: int) -> Content:
    """The plot in exactly `width` columns and `height` lines, with the `chosen` kernel marked and named."""
    device = ranking.device
    if device is None:
        return _note(
            "The ceilings of this device are unknown.",
            f"{key_of('hlo.device')} chooses a known device to compare the kernels with.",
            width,
            height,
        )
    drawn, without = roofline_points(ranking, numbers, chosen)
    roofs = roofline_ceilings(ranking, numbers, device)
    if width < 30 or height < 8 or not roofs:
        return _note("no room for the roofline" if roofs else "no known ceiling", "", width, height)
    ridges = [peak / device.bandwidth for _, peak in roofs]
    x = _decades([*(point.intensity for point in drawn), *ridges], 0.5)
    y = _decades([*(point.flops_per_second for point in drawn), roofs[0][1], *(peak for _, peak in roofs)], 0.35)
    gutter = 9
    canvas = Canvas(width - gutter - 1, height - 3)
    _draw_roof(canvas, device, roofs, x, y)
    for point in drawn:
        mark, style = MARKS.get(point.bound, ("○", "$quiet"))
        _put(canvas, x.place(point.intensity), y.place(point.flops_per_second), mark, style)
    name = ""
    for point in drawn:
        if point.number == chosen:
            _put(canvas, x.place(point.intensity), y.place(point.flops_per_second), "◉", "bold $accent")
            speed = scaled(point.flops_per_second, "FLOP/s")
            name = f"{ranking.kernels[point.number].name}: {scaled(point.intensity)} FLOP/B, {speed}"
            name += "" if point.measured else " at most"
    head = _head(device, name, without, width)
    axis = {canvas.row_of(y.place(tick)): scaled(tick) for tick in y.ticks(max(2, canvas.height // 3))}
    return Content("\n").join([head, *canvas.framed(axis, gutter), *_below(x, gutter, canvas.width, width)])


def _decades(values: Sequence[float], margin: float) -> Scale:
    positive = [value for value in values if value > 0 and math.isfinite(value)] or [1.0]
    low, high = math.log10(min(positive)) - margin, math.log10(max(positive)) + margin
    if high - low < 2:
        low, high = (low + high) / 2 - 1, (low + high) / 2 + 1
    return Scale(10.0**low, 10.0**high, log=True)


def _put(canvas: Canvas, across: float, up: float, mark: str, style: str) -> None:
    column, row = canvas.dot_at(across, up)
    canvas.put(column // 2, min(canvas.height - 1, max(0, row // 4)), mark, style)


def _draw_roof(canvas: Canvas, device: DevicePeaks, roofs: Sequence[tuple[str, float]], x: Scale, y: Scale) -> None:
    """Draws the memory slope up to the highest peak, and each peak from its ridge on."""
    top = roofs[0][1]
    ridge = top / device.bandwidth
    # Clipped below: the slope enters the plot where it reaches the lowest FLOP/s of the axis.
    start = max(x.low, y.low / device.bandwidth)
    canvas.line(canvas.dot_at(x.place(start), y.place(start * device.bandwidth)),
                canvas.dot_at(x.place(min(ridge, x.high)), y.place(min(top, x.high * device.bandwidth))),
                "$phase-transfer")  # fmt: skip
    taken: list[int] = []
    for name, peak in roofs:
        if not y.low < peak < y.high:
            continue
        begin = canvas.dot_at(x.place(min(max(peak / device.bandwidth, x.low), x.high)), y.place(peak))
        canvas.line(begin, canvas.dot_at(1.0, y.place(peak)), "$phase-compile", every=1 if peak == top else 3)
        label = f" {name} {scaled(peak, 'FLOP/s')} "
        row = max(0, begin[1] // 4 - 1) if begin[1] // 4 else begin[1] // 4 + 1
        if row not in taken and columns(label) < canvas.width:
            canvas.put(canvas.width - columns(label), row, label, "$text-muted")
            taken.append(row)
    label = f" {scaled(device.bandwidth, 'B/s')} "
    middle = math.sqrt(start * min(ridge, x.high))
    column, row = canvas.dot_at(x.place(middle), y.place(middle * device.bandwidth))
    left = column // 2 - columns(label) - 1
    if left >= 0:
        canvas.put(left, max(0, min(canvas.height - 1, row // 4)), label, "$text-muted")


def _head(device: DevicePeaks, name: str, without: int, width: int) -> Content:
    parts: list[tuple[str, str]] = [
        (device.title, "bold"),
        ("   ", ""),
        ("● memory", MARKS["memory"][1]),
        ("  ", ""),
        ("◆ compute", MARKS["compute"][1]),
    ]
    if without:
        parts.append((f"   {without} without a point", "$quiet"))
    used = sum(columns(text) for text, _ in parts)
    if name and width - used > 20:
        parts.append(("   ◉ ", "bold $accent"))
        parts.append((shorten(name, width - used - 5), "$accent"))
    return Content.assemble(*parts)


def _below(x: Scale, gutter: int, inner: int, width: int) -> list[Content]:
    title = "FLOP/B"
    line, numbers = ["─"] * inner, [" "] * inner
    free = 0
    for tick in x.ticks(max(2, inner // 10)):
        column = round(x.place(tick) * (inner - 1))
        text = scaled(tick)
        begin = max(0, column - len(text) // 2)
        if not 0 <= column < inner or begin < free or begin + len(text) > inner - len(title) - 1:
            continue
        line[column] = "┬"
        numbers[begin : begin + len(text)] = list(text)
        free = begin + len(text) + 1
    below = "".join(numbers)[: inner - len(title)].ljust(inner - len(title)) + title
    return [
        Content.styled(" " * gutter + "└" + "".join(line), "$rule"),
        Content.styled((" " * (gutter + 1) + below)[:width], "$text-muted"),
    ]


def _note(text: str, more: str, width: int, height: int) -> Content:
    lines = [shorten(line, max(1, width)).center(width) for line in (text, more) if line]
    return Content("\n" * max(0, (height - len(lines)) // 2)) + Content.styled("\n".join(lines), "$quiet")
