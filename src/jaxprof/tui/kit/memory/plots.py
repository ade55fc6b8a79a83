"""The pictures of memory: the parts of the peak, the live size over the schedule, the device's memory during a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.content import Content
from textual.message import Message

from jaxprof.text import safe
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.line_plot import Axis, Mark, PlotLine, count_tick, line_plot, x_at
from jaxprof.tui.kit.memory.buffers import OTHER, STYLES
from jaxprof.tui.kit.picture import Picture
from jaxprof.units import bytes_, percent

if TYPE_CHECKING:
    from jaxprof.analysis.memory import MemoryPicture

SOURCES = {
    "buffer assignment": "from XLA's buffer assignment",
    "schedule": "an estimate from the schedule of the HLO",
    "memory analysis": "from XLA's memory analysis",
    "request": "only the requested size is known",
}


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """The bytes in use on the device, at a time in seconds since the run began."""

    at: float
    bytes: int


def peak_lines(picture: MemoryPicture, width: int) -> list[Content]:
    """The peak, and its parts as a bar and in numbers."""
    if picture.peak_bytes is not None:
        first = Content.assemble(
            "peak memory ",
            (bytes_(picture.peak_bytes), "bold"),
            f"  {SOURCES.get(picture.source, safe(picture.source))}",
        )
    else:
        first = Content.styled("The peak memory is unknown.", "$text-muted")
    lines = [first.truncate(width, ellipsis=True)]
    whole = sum(part.bytes for part in picture.parts)
    if whole:
        lines.append(_stacked(picture, whole, width))
        full, short = (_part_items(picture, whole, shares=shares) for shares in (True, False))
        lines.append((full if full.cell_length <= width else short).truncate(width, ellipsis=True))
    if picture.asked_bytes is not None:
        words = f"{bytes_(picture.asked_bytes)}, which was refused"
        lines += hang(Content.styled("requested ", "bold $error"), words, width)
    return lines


def _part_items(picture: MemoryPicture, whole: int, *, shares: bool) -> Content:
    items = []
    for part in picture.parts:
        mark, style = STYLES.get(part.kind, OTHER)
        share = f" {percent(part.bytes / whole)}" if shares else ""
        items.append(
            Content.assemble((f"{mark} ", style), f"{safe(part.kind)} ", (bytes_(part.bytes), "bold"),
                             (share, "$text-muted"))
        )  # fmt: skip
    return Content("   ").join(items)


def _stacked(picture: MemoryPicture, whole: int, width: int) -> Content:
    borders, reached = [0], 0
    for part in picture.parts:
        reached += part.bytes
        borders.append(round(reached / whole * width))
    pieces = []
    for part, begin, end in zip(picture.parts, borders, borders[1:], strict=False):
        mark, style = STYLES.get(part.kind, OTHER)
        pieces.append((mark * max(1, end - begin), style))
    return Content.assemble(*pieces).truncate(width)


class LivePlot(Picture):
    """The live size over the schedule, with a cursor that the mouse moves."""

    class Pointed(Message):
        """The mouse points at a place of the schedule: the number of the point there."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, title: str = "", *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(title, id=id, classes=classes)
        self._points: tuple[LivePoint, ...] = ()

    def show_live(self, points: tuple[LivePoint, ...], at: int) -> None:
        """Draws these points with the cursor at one of them."""
        self._points = points
        self.show((points, at), lambda width, height: live_plot(points, at, width, height))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self.capture_mouse()
        self._point(event)

    def on_mouse_up(self) -> None:
        self.release_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if event.button:
            self._point(event)

    def _point(self, event: events.MouseEvent) -> None:
        offset = event.get_content_offset_capture(self)
        place = x_at(*_live_frame(self._points), self.size.width, self.size.height, offset.x) if self._points else None
        if place is not None:
            self.post_message(
                self.Pointed(min(range(len(self._points)), key=lambda n: abs(self._points[n][0] - place)))
            )


LivePoint = tuple[int, int]
"""The position of an instruction in the schedule, and the bytes that are alive there."""


def live_plot(points: Sequence[LivePoint], at: int, width: int, height: int) -> Content:
    """The live size after each instruction of the schedule, with its highest point marked, and the cursor."""
    peak = max(range(len(points)), key=lambda number: points[number][1])
    lines, x, y = _live_frame(points)
    scale, _ = unit_of(points[peak][1])
    place, size = points[at]
    marks = [Mark(float(points[peak][0]), points[peak][1] / scale, f"highest {bytes_(points[peak][1])}")]
    if at != peak:
        lines = [*lines, PlotLine("", ((place, 0.0), (place, size / scale)), "$accent", dotted=True)]
        marks.append(Mark(float(place), size / scale, bytes_(size), "bold $accent", "◆"))
    return line_plot(lines, x, y, width, height, marks)


def _live_frame(points: Sequence[LivePoint]) -> tuple[list[PlotLine], Axis, Axis]:
    scale, unit = unit_of(max(size for _, size in points))
    line = PlotLine("live", tuple((float(at), size / scale) for at, size in steps(points)), "$phase-compile")
    return [line], Axis("the schedule's instructions", whole_tick), Axis(f"{unit} alive", count_tick, zero=True)


def steps(points: Sequence[LivePoint]) -> list[LivePoint]:
    """Corners of the curve: a size holds until the next instruction."""
    corners: list[LivePoint] = []
    for at, size in points:
        if not corners or corners[-1][1] != size:
            if corners:
                corners.append((at, corners[-1][1]))
            corners.append((at, size))
    return [*corners, (points[-1][0] + 1, points[-1][1])] if points else []


def readings_plot(readings: Sequence[MemoryReading], width: int, height: int) -> Content:
    """The memory in use on the device during the run."""
    scale, unit = unit_of(max(reading.bytes for reading in readings))
    line = PlotLine("in use", tuple((reading.at, reading.bytes / scale) for reading in readings), "$phase-run")
    x = Axis("seconds of the run", count_tick)
    return line_plot([line], x, Axis(f"{unit} in use", count_tick, zero=True), width, height)


def unit_of(size: int) -> tuple[int, str]:
    """The bytes and name of the binary unit that suits a size."""
    power = min(4, max(0, size.bit_length() - 1) // 10)
    return 1024**power, ("B", "KiB", "MiB", "GiB", "TiB")[power]


def whole_tick(value: float) -> str:
    """The label of an axis of counts; empty between two whole numbers."""
    return count_tick(value) if value == int(value) else ""
