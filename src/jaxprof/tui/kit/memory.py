"""The memory of a program: its peak, the live size over its schedule, and the buffers alive at the cursor.

The cursor starts at the peak.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.message import Message

from jaxprof.analysis.memory import as_buffer
from jaxprof.text import safe
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.drawing import bar, hang, stacked
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.picture import Lines, Picture
from jaxprof.tui.kit.plots import Axis, Mark, PlotLine, count_tick, line_plot, whole_tick
from jaxprof.tui.kit.table_columns import Drawing, TableColumn
from jaxprof.tui.kit.table_view import TableView
from jaxprof.units import UNKNOWN, bytes_, counted, percent

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.memory import MemoryBuffer, MemoryPicture
    from jaxprof.hlo.analysis.liveness import Liveness


STYLES = {
    "argument": ("█", "$phase-transfer"),
    "output": ("▓", "$phase-run"),
    "temporary": ("▒", "$phase-compile"),
    "constant": ("░", "$phase-first"),
}
OTHER = ("█", "$quiet")


class BufferList(TableView["MemoryBuffer"], keys="buffers"):
    """The largest buffers and their source locations."""

    EMPTY = "The buffers are unknown."

    @dataclass
    class Stepped(Message):
        """Requests to move the cursor over the schedule by `step` instructions, or to the next `change` of the live
        size in that direction; 0 switches between all buffers and those alive at the cursor."""

        step: int
        change: bool = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("size", lambda buffer: bytes_(buffer.bytes), 9, right=True, style="bold"),
                TableColumn("", lambda buffer: ("◂" if buffer.at_peak else "", "$warning"), 1),
                TableColumn("kind", _kind, 11),
                TableColumn("argument or op", _name, 20, weight=5),
                TableColumn("source", _where, 12, weight=2, style="$code-name"),
                TableColumn("shape", lambda buffer: buffer.shape, 12, weight=2, style="$text-muted"),
                TableColumn("instruction", lambda buffer: buffer.instruction or UNKNOWN, 16, weight=3, priority=1),
                TableColumn("", self._bar, 16, priority=2),
            ),
            id=id,
        )
        self._buffers: tuple[MemoryBuffer, ...] = ()
        self._largest = 1

    def show(self, buffers: tuple[MemoryBuffer, ...]) -> None:
        """Show other buffers."""
        if buffers is not self._buffers:
            self._buffers, self._largest = buffers, (buffers[0].bytes if buffers else 0) or 1
            self.show_rows(dict(enumerate(buffers)))
            self.move_to(0)

    def _bar(self, buffer: MemoryBuffer) -> Drawing:
        return lambda width: bar(buffer.bytes / self._largest, width, STYLES.get(buffer.kind, OTHER)[1])

    @property
    def instruction(self) -> str:
        """The instruction that makes the buffer under the cursor; empty if that is unknown."""
        return self.current_row.instruction if self.current_row is not None else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the keys while there are no buffers."""
        if action in ("choose", "step", "change", "all"):
            return bool(self.total)
        return super().check_action(action, parameters)

    def action_step(self, step: int) -> None:
        self.post_message(self.Stepped(step))

    def action_change(self, step: int) -> None:
        self.post_message(self.Stepped(step, change=True))

    def action_all(self) -> None:
        self.post_message(self.Stepped(0))


def _kind(buffer: MemoryBuffer) -> tuple[str, str]:
    mark, style = STYLES.get(buffer.kind, OTHER)
    return f"{mark} {buffer.kind}", style


def _name(buffer: MemoryBuffer) -> str:
    """Return the name of an argument, or the operation of another value without the enclosing function, or the
    instruction if XLA names neither; then how many other buffers share its place."""
    function, _, inner = buffer.op_name.partition("/")
    name = (inner if inner and function.startswith("jit(") else buffer.op_name) or buffer.instruction or UNKNOWN
    return name + (f" +{buffer.shared_with}" if buffer.shared_with else "")


def _where(buffer: MemoryBuffer) -> str:
    line = f":{buffer.line}" if buffer.line is not None else ""
    return f"{base_name(buffer.file)}{line}" if buffer.file else UNKNOWN


def base_name(path: str) -> str:
    """Return the last part of a path of any operating system."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


SOURCES = {
    "buffer assignment": "from XLA's buffer assignment",
    "schedule": "an estimate from the schedule of the HLO",
    "memory analysis": "from XLA's memory analysis",
    "request": "only the requested size is known",
}


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """Bytes in use on the device at a time in seconds since the run began."""

    at: float
    bytes: int


def peak_lines(picture: MemoryPicture, width: int) -> list[Content]:
    """Return the peak, and its parts as a bar and in numbers."""
    if picture.peak_bytes is not None:
        first = Content.assemble(
            "peak memory ",
            (bytes_(picture.peak_bytes), "bold"),
            f"  {SOURCES.get(picture.source, safe(picture.source))}",
        )
    else:
        first = Content.styled("The peak memory is unknown.", "$text-muted")
    lines = [first.truncate(width, ellipsis=True)]
    whole = sum(picture.parts.values())
    if whole:
        parts = ((size, *STYLES.get(kind, OTHER)) for kind, size in picture.parts.items())
        lines.append(stacked(parts, whole, width))
        full, short = (_part_items(picture, whole, shares=shares) for shares in (True, False))
        lines.append((full if full.cell_length <= width else short).truncate(width, ellipsis=True))
    if picture.asked_bytes is not None:
        words = f"{bytes_(picture.asked_bytes)}, which was refused"
        lines += hang(Content.styled("requested ", "bold $error"), words, width)
    return lines


def _part_items(picture: MemoryPicture, whole: int, *, shares: bool) -> Content:
    items = []
    for kind, size in picture.parts.items():
        mark, style = STYLES.get(kind, OTHER)
        share = f" {percent(size / whole)}" if shares else ""
        items.append(
            Content.assemble((f"{mark} ", style), f"{safe(kind)} ", (bytes_(size), "bold"),
                             (share, "$text-muted"))
        )  # fmt: skip
    return Content("   ").join(items)


LivePoint = tuple[int, int]
"""Position of an instruction in the schedule, and the bytes alive there."""


def live_plot(points: Sequence[LivePoint], at: int, width: int, height: int) -> Content:
    """Return a plot of the live size after each instruction of the schedule, with its highest point marked, and the
    cursor."""
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
    """Return the corners of the curve: a size holds until the next instruction."""
    corners: list[LivePoint] = []
    for at, size in points:
        if not corners or corners[-1][1] != size:
            if corners:
                corners.append((at, corners[-1][1]))
            corners.append((at, size))
    return [*corners, (points[-1][0] + 1, points[-1][1])] if points else []


def readings_plot(readings: Sequence[MemoryReading], width: int, height: int) -> Content:
    """Return a plot of the memory in use on the device during the run."""
    scale, unit = unit_of(max(reading.bytes for reading in readings))
    line = PlotLine("in use", tuple((reading.at, reading.bytes / scale) for reading in readings), "$phase-run")
    x = Axis("seconds of the run", count_tick)
    return line_plot([line], x, Axis(f"{unit} in use", count_tick, zero=True), width, height)


def unit_of(size: int) -> tuple[int, str]:
    """Return the bytes and the name of the binary unit that suits a size."""
    power = min(4, max(0, size.bit_length() - 1) // 10)
    return 1024**power, ("B", "KiB", "MiB", "GiB", "TiB")[power]


CHANGE = 0.01
"""Least change of the live size, as a share of the peak, at which the keys for changes stop."""


class MemoryView(Guarded, Container):
    """The memory of one program."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._picture: MemoryPicture | None = None
        self._at = 0
        """Index of the point of the schedule under the cursor."""
        self._all = False
        """Whether the list shows all buffers instead of those alive at the cursor."""

    def compose(self) -> ComposeResult:
        with Vertical(id="memory-box", classes="box") as box:
            box.border_title = "Peak"
            yield Lines(id="memory-head")
        with Horizontal(id="memory-plots"):
            for name, title in (
                ("live-plot", "Live size over the schedule, an estimate"),
                ("readings-plot", "Device memory during the run"),
            ):
                plot = Picture(id=name, classes="box")
                plot.border_title = title
                yield plot
        with Vertical(id="buffer-box", classes="box"):
            yield BufferList(id="buffers")

    def show_words(self, words: str) -> None:
        """Show why there is no memory to show."""
        self._picture = None
        self.query_one("#memory-head", Lines).show(
            words, lambda width: Content.styled(safe(words), "$text-muted").wrap(width)
        )
        for name in ("memory-plots", "buffer-box"):
            self.query_one(f"#{name}").display = False

    def show_picture(
        self, picture: MemoryPicture, readings: Sequence[MemoryReading] = (), measured: Content | None = None
    ) -> None:
        """Show the memory of a program, the `readings` of its device in the run, and what its allocator `measured`."""
        self.query_one("#memory-head", Lines).show(
            (picture, measured),
            lambda width: [
                *peak_lines(picture, width),
                *([measured.truncate(width, ellipsis=True)] if measured is not None else []),
            ],
        )
        live_widget, readings_widget = (self.query_one(f"#{name}-plot", Picture) for name in ("live", "readings"))
        live_widget.display, readings_widget.display = bool(picture.live_bytes), len(readings) > 1
        self.query_one("#memory-plots").display = bool(picture.live_bytes) or len(readings) > 1
        readings_widget.show(tuple(readings), lambda w, h: readings_plot(readings, w, h))
        self.query_one("#buffer-box").display = True
        if picture is not self._picture:
            self._picture, self._at = picture, peak_of(picture)
        self._show_cursor()
        if self.display and self.screen.focused is None:  # it is lost while the list is hidden
            self.query_one(BufferList).focus()

    # -- the cursor over the schedule -------------------------------------------------------------------------

    def _show_cursor(self) -> None:
        """Draw the cursor, and list what is alive there."""
        picture = self._picture
        if picture is None:
            return
        schedule = picture.schedule
        if picture.live_bytes:
            points, at = points_of(picture), self._at
            plot = self.query_one("#live-plot", Picture)
            plot.show((points, at), lambda width, height: live_plot(points, at, width, height))
        box, listed = self.query_one("#buffer-box"), self.query_one(BufferList)
        if schedule is None or self._all:
            listed.show(picture.buffers)
            box.border_title = "Largest buffers"
            marks = "◂ alive at the peak · +n others reuse its memory" if picture.buffers else ""
            more = f" · {key_of('buffers.all')} alive at the cursor" if schedule is not None else ""
            box.border_subtitle = Content(marks + more)
            return
        alive = tuple(as_buffer(value) for value in schedule.alive(self._at))
        listed.show(alive)
        at_peak = schedule.points[self._at].bytes == schedule.peak_bytes
        size = schedule.points[self._at].bytes
        lower = bytes_(schedule.peak_bytes - size)
        below = "the highest point" if at_peak else f"the cursor, {lower} below the highest"
        box.border_title = Content(
            f"{counted(len(alive), 'buffer')} of {bytes_(size)} alive at {below}: {where(schedule, self._at)}"
        )
        keys = "← → by instruction"
        changes = f"{key_of('buffers.change_before')} {key_of('buffers.next_change')} by change"
        box.border_subtitle = Content(f"{keys} · {changes} · {key_of('buffers.all')} all buffers")

    @on(BufferList.Stepped)
    def _stepped(self, message: BufferList.Stepped) -> None:
        live = self._picture.live_bytes if self._picture is not None else ()
        if not message.step:
            self._all = not self._all
            self._show_cursor()
        elif not message.change:
            self._move_to(self._at + message.step)
        elif live:
            self._move_to(next_change(live, self._at, message.step))

    def _move_to(self, number: int) -> None:
        picture = self._picture
        if picture is None or picture.schedule is None:
            return
        self._at = max(0, min(len(picture.schedule.points) - 1, number))
        self._all = False
        self._show_cursor()

    def to_peak(self) -> bool:
        """Move the cursor back to the peak; return False if it is already there."""
        picture = self._picture
        if picture is None or picture.schedule is None or not self.query_one("#buffer-box").display:
            return False
        if self._at == peak_of(picture) and not self._all:
            return False
        self._move_to(peak_of(picture))
        return True


def points_of(picture: MemoryPicture) -> tuple[LivePoint, ...]:
    """Return the positions in the schedule with the bytes alive at each."""
    if picture.schedule is None:
        return tuple(enumerate(picture.live_bytes))
    return tuple((point.position, point.bytes) for point in picture.schedule.points)


def peak_of(picture: MemoryPicture) -> int:
    """Return the index of the highest point."""
    return max(range(len(picture.live_bytes)), key=picture.live_bytes.__getitem__, default=0)


def next_change(live: Sequence[int], at: int, step: int) -> int:
    """Return the next point in the direction of `step` whose size differs from the point before it by at least a share
    `CHANGE` of the peak; the last point in that direction if there is none."""
    least = max(1, round(max(live) * CHANGE))
    end = len(live) if step > 0 else 0
    for number in range(at + step, end, step):
        if abs(live[number] - live[number - 1]) >= least:
            return number
    return end - 1 if step > 0 else 0


def where(schedule: Liveness, at: int) -> str:
    """Return `fusion.3, model.py:88, instruction 12 of 40`."""
    point = schedule.points[at]
    line = f", {base_name(point.file)}:{point.line}" if point.file else ""
    return safe(f"{point.instruction}{line}, instruction {point.position + 1} of {schedule.length}")
