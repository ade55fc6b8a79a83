"""The memory of a program: its peak, the live size over its schedule, and the buffers alive at the cursor.

The cursor starts at the peak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import cast

from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.content import Content

from jaxprof.analysis.kernels.memory import MemoryPicture
from jaxprof.base.text import safe
from jaxprof.base.units import UNKNOWN, bytes_, counted
from jaxprof.facts.memory import source_line
from jaxprof.hlo.kernels.liveness import Liveness, LiveValue
from jaxprof.report.memory import memory_heading
from jaxprof.tui.keys import in_words
from jaxprof.tui.kit.drawing import bar, bar_with_names, hang, whole_parts
from jaxprof.tui.kit.guard import HIDDEN, Guarded, in_thread
from jaxprof.tui.kit.picture import Lines, Picture, show_titles
from jaxprof.tui.kit.plots import Axis, Mark, PlotLine, area_plot, count_tick, line_plot, seconds_tick, whole_tick
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import Drawing, TableColumn

STYLES = {
    "constant": ("░", "$phase-first"),
    "argument": ("█", "$phase-transfer"),
    "output": ("▓", "$phase-run"),
    "temporary": ("▒", "$phase-compile"),
}
"""In stacking order."""
OTHER = ("█", "$quiet")


class BufferList(RowList["LiveValue"], keys="buffers"):
    EMPTY = "The buffers are unknown."

    def __init__(self) -> None:
        super().__init__(
            (
                TableColumn("size", lambda buffer: bytes_(buffer.bytes), 9, right=True, style="bold"),
                TableColumn("", lambda buffer: ("◂" if buffer.at_peak else "", "$warning"), 1),
                TableColumn("kind", _kind, 11),
                TableColumn("argument or op", _name, 20, weight=5),
                TableColumn("source", lambda buffer: source_line(buffer) or UNKNOWN, 12, most=28, fits=True,
                            style="$code-name"),
                TableColumn("shape", lambda buffer: buffer.shape, 12, weight=2, style="$text-muted"),
                TableColumn("instruction", lambda buffer: buffer.instruction or UNKNOWN, 16, weight=3, priority=1),
                TableColumn("", self._bar, 16, priority=2),
            ),
            id="memory",
        )  # fmt: skip
        self._buffers: tuple[LiveValue, ...] = ()

    def show(self, buffers: tuple[LiveValue, ...]) -> None:
        if buffers is not self._buffers:
            self._buffers = buffers
            self.show_rows(dict(enumerate(buffers)))
            self.move_to(0)

    def _bar(self, buffer: LiveValue) -> Drawing:
        largest = self._buffers[0].bytes or 1
        return lambda width: bar(buffer.bytes / largest, width, STYLES.get(buffer.kind, OTHER)[1])


def _kind(buffer: LiveValue) -> tuple[str, str]:
    mark, style = STYLES.get(buffer.kind, OTHER)
    return f"{mark} {buffer.kind}", style


def _name(buffer: LiveValue) -> str:
    function, _, inner = buffer.op_name.partition("/")
    name = (inner if inner and function.startswith("jit(") else buffer.op_name) or buffer.instruction or UNKNOWN
    return name + (f" +{buffer.shared_with}" if buffer.shared_with else "")


Size = tuple[float, int]
"""A position, in instructions of a schedule or in seconds, and the bytes alive from there on."""


def size_plot(points: Sequence[Size], at: int | None, across: Axis, what: str, width: int, height: int) -> Content:
    """Return a plot of bytes that hold from each point to the next, with the highest one marked, and the one under a
    cursor. Nothing without points: a plot that is about to be hidden may be drawn once more."""
    if not points:
        return Content("")
    peak = max(range(len(points)), key=lambda number: points[number][1])
    scale, unit = _binary_unit(points[peak][1])
    marks = [Mark(points[peak][0], points[peak][1] / scale, f"highest {bytes_(points[peak][1])}")]
    if at is not None and at != peak:
        marks.append(Mark(points[at][0], points[at][1] / scale, bytes_(points[at][1]), "bold $accent", "◆"))
    ends = [*(x for x, _ in points[1:]), points[-1][0]]
    held = ((x, size / scale) for (start, size), end in zip(points, ends, strict=True) for x in (start, end))
    line, up = PlotLine("", tuple(held), "$phase-compile"), Axis(f"{unit} {what}", count_tick, zero=True)
    return line_plot([line], across, up, width, height, marks)


def _binary_unit(size: int) -> tuple[int, str]:
    """Return the bytes of the unit in which people read a size, and its name."""
    power = min(4, max(0, size.bit_length() - 1) // 10)
    return 1024**power, ("B", "KiB", "MiB", "GiB", "TiB")[power]


def kinds_plot(
    picture: MemoryPicture, at: int, across: Axis, width: int, height: int, *, coloured: bool = True
) -> Content:
    """Return the bytes of each kind over the schedule, on top of each other, below the device's memory. Without
    colours, each kind is filled with the character of its buffers."""
    schedule, there = cast("Liveness", picture.schedule), picture.device_bytes
    scale, unit = _binary_unit(schedule.peak_bytes)
    points = [(point.position, schedule.parts_at(number)) for number, point in enumerate(schedule.points)]
    points.append((schedule.length, points[-1][1]))
    bands = [
        PlotLine(kind, tuple((x, parts[kind] / scale) for x, parts in points), style, "█" if coloured else character)
        for kind, (character, style) in STYLES.items()
    ]
    marks = [
        Mark(schedule.points[number].position, schedule.points[number].bytes / scale, "", style, character)
        for number, style, character in ((schedule.peak_at, "bold $warning", "◉"), (at, "bold $accent", "◆"))
    ]
    limit = Mark(0, there / scale if there else math.nan, f"device {bytes_(there)}", "$error", "┄")
    return area_plot(bands, across, Axis(unit, count_tick), width, height, marks, limit)


CHANGE = 0.01
"""Least change of the live size, as a share of the peak, at which the keys for changes stop."""


class MemoryView(Guarded, Container, keys="memory"):
    _picture: MemoryPicture | None = None
    _key: object = None
    _at = 0
    """Index of the point of the schedule under the cursor."""

    def compose(self) -> ComposeResult:
        with Vertical(id="memory-box", classes="box") as box:
            box.border_title = "Peak"
            yield Lines(id="memory-head")
        yield Picture(id="live-plot", classes="box")
        with Vertical(id="buffer-box", classes="box"):
            yield BufferList()

    def read(
        self, key: object, make: Callable[[], MemoryPicture | None], why: str, measured: Content | None = None
    ) -> None:
        """Derive the memory of the program `key` in a thread, and show it, or `why` there is none."""
        if key != self._key:
            self.show_words("Analysing the memory…")
        self._key = key

        def take(picture: MemoryPicture | None) -> None:
            if key == self._key and picture is None:
                self.show_words(why)
            elif key == self._key and picture is not None:
                self.show_picture(picture, measured)

        in_thread(self, make, "memory", then=take)

    def show_words(self, words: str, answer: str = "", arrays: Sequence[Size] = ()) -> None:
        """Show why there is no memory to show, the `answer` to whether it fits, and live `arrays` by second."""
        self._picture = self._key = None
        texts = [(text, style) for text, style in ((answer, "bold"), (words, "$text-muted")) if text]
        head = self.query_one("#memory-head", Lines)
        head.show(lambda width: [line for text, style in texts for line in hang(Content(""), text, width, style)])
        self._plot("Live arrays", arrays, None, Axis("time", seconds_tick), "of arrays")
        self.query_one("#buffer-box").display = False

    def show_picture(self, picture: MemoryPicture, measured: Content | None = None) -> None:
        """Show the memory of a program, and what the allocator of its device `measured`."""

        def head(width: int) -> Iterator[Content]:
            heading, whole = memory_heading(picture), sum(picture.parts.values())
            if not heading and not whole:
                yield Content.styled("The peak memory is unknown.", "$text-muted")
            for text in heading:
                yield from hang(Content(""), text, width)
            if whole and picture.schedule is None:  # else the plot has them
                parts = picture.parts.items()
                yield bar_with_names(((kind, size, f"$background on {STYLES[kind][1]}") for kind, size in parts), width)
            if measured is not None:
                yield measured.truncate(width, ellipsis=True)

        self.query_one("#memory-head", Lines).show(head)
        self.query_one("#buffer-box").display = True
        if picture is not self._picture:
            self._picture, self._at = picture, peak_of(picture)
        self._show_cursor()
        self._take_focus()

    def on_descendant_blur(self) -> None:
        """Textual takes the focus of a list that it has hidden some time later, when the list may be shown again."""
        if self.app.app_focus:
            self._take_focus()

    def _take_focus(self) -> None:
        """Focus the list if nothing has the focus, which is lost while the list is hidden."""
        if self.display and self.screen.focused is None and self.query_one("#buffer-box").display:
            self.query_one(BufferList).focus()

    def on_resize(self) -> None:
        self._show_cursor()

    def _plot(self, title: str, points: Sequence[Size], at: int | None, across: Axis, what: str) -> None:
        self._show_plot(title, lambda width, height: size_plot(points, at, across, what, width, height))
        self.query_one("#live-plot").display = bool(points)

    def _show_plot(self, title: str, draw: Callable[[int, int], Content]) -> None:
        plot = self.query_one("#live-plot", Picture)
        plot.display, plot.border_title = True, title
        plot.show(draw)

    # -- the cursor over the schedule -------------------------------------------------------------------------

    def _show_cursor(self) -> None:
        picture = self._picture
        if picture is None:
            return
        across = Axis("the schedule's instructions", whole_tick)
        points = picture.schedule.points if picture.schedule is not None else ()
        above = f"Live size over the schedule, an estimate, at most {bytes_(max(picture.live_bytes, default=0))}"
        if points:
            self._show_plot(above, partial(kinds_plot, picture, self._at, across, coloured=not self.app.no_color))
        else:
            sizes = (*picture.live_bytes, *picture.live_bytes[-1:])  # with the end of the schedule
            self._plot(above, [*enumerate(sizes)], self._at, across, "alive")
        listed, title = picture.buffers, ["Largest buffers"]
        keys = ["◂ alive at the peak", "+n others reuse its memory"] if picture.buffers else []
        if (schedule := picture.schedule) is not None:
            listed, point = schedule.alive(self._at), schedule.points[self._at]
            lower = schedule.peak_bytes - point.bytes
            below = f"the cursor, {bytes_(lower)} below the highest" if lower else "the highest point"
            title = [f"{counted(len(listed), 'buffer')} of {bytes_(point.bytes)} alive at {below}"]
            title += [safe(point.instruction), safe(source_line(point) or "")]
            title += [f"instruction {point.position + 1} of {schedule.length}"]
            keys = [f"{in_words('memory.next_change')} goes to the next change"]
        self.query_one(BufferList).show(listed)
        box, width = self.query_one("#buffer-box"), self.size.width - 4
        show_titles(box, whole_parts(title, width), whole_parts(keys, width))

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        if action in ("step", "change") and (self._picture is None or self._picture.schedule is None):
            return HIDDEN
        return super().why_not(action, parameters)

    def action_step(self, step: int) -> None:
        self._move_to(self._at + step)

    def action_change(self, step: int) -> None:
        if self._picture is not None:
            self._move_to(next_change(self._picture.live_bytes, self._at, step))

    def _move_to(self, number: int) -> bool:
        before, schedule = self._at, self._picture.schedule if self._picture is not None else None
        if schedule is not None:
            self._at = max(0, min(len(schedule.points) - 1, number))
            self._show_cursor()
        return self._at != before

    def to_peak(self) -> bool:
        return self._picture is not None and self._move_to(peak_of(self._picture))


def peak_of(picture: MemoryPicture) -> int:
    if picture.schedule is not None:
        return picture.schedule.peak_at
    return max(range(len(picture.live_bytes)), key=picture.live_bytes.__getitem__, default=0)


def next_change(live: Sequence[int], at: int, step: int) -> int:
    """Return the next point whose size differs from the one before by at least `CHANGE` of the peak, else the last."""
    least = max(1, round(max(live) * CHANGE))
    end = len(live) if step > 0 else 0
    for number in range(at + step, end, step):
        if abs(live[number] - live[number - 1]) >= least:
            return number
    return end - 1 if step > 0 else 0
