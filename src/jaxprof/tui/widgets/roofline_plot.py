"""The roofline: FLOPs a second over FLOPs for each byte, with a device's ceilings and a point for each kernel.

A point without a measured time stands on the ceiling that bounds it: that is what it could reach at the most, and the
picture says so. With measured times the points stand where they were.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.safe_text import columns, shorten
from jaxprof.tui.widgets.braille import Canvas
from jaxprof.tui.widgets.scales import Scale
from jaxprof.units import scaled

if TYPE_CHECKING:
    from jaxprof.hlo.analysis import Device
    from jaxprof.tui.programs.ranking import Ranked

MARKS = {"memory": ("●", "$phase-transfer"), "compute": ("◆", "$phase-compile")}


@dataclass(frozen=True, slots=True)
class Point:
    """A kernel in the plane."""

    key: tuple[str, str]
    intensity: float
    flops_per_second: float
    bound: str
    share: float
    measured: bool


def points(rows: Sequence[Ranked]) -> list[Point]:
    """The kernels that have a place, the heaviest last so that they are drawn on top."""
    found = []
    for row in rows:
        roof = row.roof
        if roof is None or not roof.intensity or roof.attainable is None:
            continue
        speed = roof.attainable
        measured = bool(row.measured_seconds and row.kernel.total_flops)
        if measured and row.measured_seconds and row.kernel.total_flops:
            speed = row.kernel.total_flops / row.measured_seconds
        found.append(Point(row.key, roof.intensity, speed, roof.bound, row.share or 0.0, measured))
    return sorted(found, key=lambda point: point.share)


def ceilings(rows: Sequence[Ranked], device: Device) -> list[tuple[str, float]]:
    """The peaks that kernels of these rows stand under, the highest first, named by dtype."""
    found: dict[str, float] = {}
    for row in rows:
        if row.roof is not None and row.roof.peak:
            unit = "matrix" if row.kernel.uses_matrix_units else "vector"
            found[f"{row.kernel.dtype} {unit}"] = row.roof.peak
    if not found:
        peak = device.peak("f32", matrix=False) or device.peak("bf16", matrix=True)
        found = {"peak": peak} if peak else {}
    return sorted(found.items(), key=lambda item: -item[1])


def roofline_plot(
    rows: Sequence[Ranked], device: Device | None, chosen: tuple[str, str] | None, width: int, height: int
) -> Content:
    """The plot in exactly `width` by `height` columns; `chosen` is marked and named."""
    if device is None:
        return _note(
            "The ceilings of this device are not known.",
            "d chooses a device of the table to hold the kernels against.",
            width,
            height,
        )
    found = points(rows)
    roofs = ceilings(rows, device)
    if width < 30 or height < 8 or not roofs:
        return _note("no room for the roofline" if roofs else "no ceiling is known", "", width, height)
    ridges = [peak / device.bandwidth for _, peak in roofs]
    x = _decades([*(point.intensity for point in found), *ridges], 0.5)
    y = _decades([*(point.flops_per_second for point in found), roofs[0][1], *(peak for _, peak in roofs)], 0.35)
    gutter = 9
    canvas = Canvas(width - gutter - 1, height - 3)
    _draw_roof(canvas, device, roofs, x, y)
    for point in found:
        mark, style = MARKS.get(point.bound, ("○", "$quiet"))
        _put(canvas, x.place(point.intensity), y.place(point.flops_per_second), mark, style)
    name = ""
    for point in found:
        if point.key == chosen:
            _put(canvas, x.place(point.intensity), y.place(point.flops_per_second), "◉", "bold $accent")
            name = f"{point.key[1]}: {scaled(point.intensity)} FLOP/B, {scaled(point.flops_per_second, 'FLOP/s')}"
            name += "" if point.measured else " at the most"
    head = _head(device, name, len(rows) - len(found), width)
    return Content("\n").join([head, *_framed(canvas, y, gutter), *_below(x, gutter, canvas.width, width)])


def _decades(values: Sequence[float], margin: float) -> Scale:
    known = [value for value in values if value > 0 and math.isfinite(value)] or [1.0]
    low, high = math.log10(min(known)) - margin, math.log10(max(known)) + margin
    if high - low < 2:
        low, high = (low + high) / 2 - 1, (low + high) / 2 + 1
    return Scale(10.0**low, 10.0**high, log=True)


def _dots(canvas: Canvas, across: float, up: float) -> tuple[int, int]:
    return round(across * (canvas.dot_columns - 1)), round((1 - up) * (canvas.dot_rows - 1))


def _put(canvas: Canvas, across: float, up: float, mark: str, style: str) -> None:
    column, row = _dots(canvas, across, up)
    canvas.put(column // 2, min(canvas.height - 1, max(0, row // 4)), mark, style)


def _draw_roof(canvas: Canvas, device: Device, roofs: Sequence[tuple[str, float]], x: Scale, y: Scale) -> None:
    """The slope of the memory up to the highest peak, and each peak from its ridge on."""
    top = roofs[0][1]
    ridge = top / device.bandwidth
    # Clipped below: the slope enters the picture where it reaches the lowest FLOP/s that are shown.
    start = max(x.low, y.low / device.bandwidth)
    canvas.line(_dots(canvas, x.place(start), y.place(start * device.bandwidth)),
                _dots(canvas, x.place(min(ridge, x.high)), y.place(min(top, x.high * device.bandwidth))),
                "$phase-transfer")  # fmt: skip
    taken: list[int] = []
    for name, peak in roofs:
        if not y.low < peak < y.high:
            continue
        begin = _dots(canvas, x.place(min(max(peak / device.bandwidth, x.low), x.high)), y.place(peak))
        canvas.line(begin, _dots(canvas, 1.0, y.place(peak)), "$phase-compile", every=1 if peak == top else 3)
        label = f" {name} {scaled(peak, 'FLOP/s')} "
        row = max(0, begin[1] // 4 - 1) if begin[1] // 4 else begin[1] // 4 + 1
        if row not in taken and columns(label) < canvas.width:
            canvas.put(canvas.width - columns(label), row, label, "$text-muted")
            taken.append(row)
    label = f" {scaled(device.bandwidth, 'B/s')} "
    middle = math.sqrt(start * min(ridge, x.high))
    column, row = _dots(canvas, x.place(middle), y.place(middle * device.bandwidth))
    left = column // 2 - columns(label) - 1
    if left >= 0:
        canvas.put(left, max(0, min(canvas.height - 1, row // 4)), label, "$text-muted")


def _head(device: Device, name: str, without: int, width: int) -> Content:
    parts: list[tuple[str, str]] = [
        (device.title, "bold"),
        ("   ", ""),
        ("● memory", MARKS["memory"][1]),
        ("  ", ""),
        ("◆ compute", MARKS["compute"][1]),
    ]
    if without:
        parts.append((f"   {without} without a place", "$quiet"))
    used = sum(columns(text) for text, _ in parts)
    if name and width - used > 20:
        parts.append(("   ◉ ", "bold $accent"))
        parts.append((shorten(name, width - used - 5), "$accent"))
    return Content.assemble(*parts)


def _framed(canvas: Canvas, y: Scale, gutter: int) -> list[Content]:
    rows = canvas.rows()
    at: dict[int, str] = {}
    for tick in y.ticks(max(2, canvas.height // 3)):
        row = min(canvas.height - 1, max(0, round((1 - y.place(tick)) * (4 * canvas.height - 1)) // 4))
        at[row] = scaled(tick)
    return [
        Content.assemble((at.get(row, "").rjust(gutter), "$text-muted"), ("┤" if row in at else "│", "$rule"), drawn)
        for row, drawn in enumerate(rows)
    ]


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
