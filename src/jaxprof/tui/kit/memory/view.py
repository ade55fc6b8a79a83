"""The memory of a program: its peak, the live size over its schedule, and what is alive at the cursor there.

The cursor begins at the peak.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.containers import Container, Horizontal, Vertical
from textual.content import Content

from jaxprof.analysis.memory import as_buffer
from jaxprof.text import safe
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.memory.buffers import BufferList, base_name
from jaxprof.tui.kit.memory.plots import LivePlot, LivePoint, MemoryReading, peak_lines, readings_plot
from jaxprof.tui.kit.picture import Lines, Picture
from jaxprof.units import bytes_, counted

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.memory import MemoryPicture
    from jaxprof.hlo.analysis.liveness import Liveness

CHANGE = 0.01
"""The least change of the live size, as a share of the peak, that the keys for changes stop at."""


class MemoryView(Guarded, Container):
    """The memory of one program."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._picture: MemoryPicture | None = None
        self._at = 0
        """The number of the point of the schedule that the cursor is at."""
        self._all = False
        """Whether the list has all buffers, and not those that are alive at the cursor."""

    def compose(self) -> ComposeResult:
        with Vertical(id="memory-box", classes="box") as box:
            box.border_title = "Peak"
            yield Lines(id="memory-head")
        with Horizontal(id="memory-plots"):
            yield LivePlot("Live size over the schedule, an estimate", id="live-plot", classes="box")
            yield Picture("Device memory during the run", id="readings-plot", classes="box")
        with Vertical(id="buffer-box", classes="box"):
            yield BufferList(id="buffers")

    def show_words(self, words: str) -> None:
        """Shows why there is no memory to show."""
        self._picture = None
        self.query_one("#memory-head", Lines).show(
            words, lambda width: Content.styled(safe(words), "$text-muted").wrap(width)
        )
        for name in ("memory-plots", "buffer-box"):
            self.query_one(f"#{name}").display = False

    def show_picture(
        self, picture: MemoryPicture, readings: Sequence[MemoryReading] = (), measured: Content | None = None
    ) -> None:
        """Shows the memory of a program; `readings` of its device during the run, and what its allocator `measured`."""
        self.query_one("#memory-head", Lines).show(
            (picture, measured),
            lambda width: [
                *peak_lines(picture, width),
                *([measured.truncate(width, ellipsis=True)] if measured is not None else []),
            ],
        )
        live_widget, readings_widget = self.query_one(LivePlot), self.query_one("#readings-plot", Picture)
        live_widget.display, readings_widget.display = bool(picture.live_bytes), len(readings) > 1
        self.query_one("#memory-plots").display = bool(picture.live_bytes) or len(readings) > 1
        readings_widget.show(tuple(readings), lambda w, h: readings_plot(readings, w, h))
        self.query_one("#buffer-box").display = True
        if picture is not self._picture:
            self._picture, self._at = picture, peak_of(picture)
        self._show_cursor()

    # -- the cursor over the schedule -------------------------------------------------------------------------

    def _show_cursor(self) -> None:
        """Draws the cursor, and lists what is alive there."""
        picture = self._picture
        if picture is None:
            return
        schedule = picture.schedule
        if picture.live_bytes:
            self.query_one(LivePlot).show_live(points_of(picture), self._at)
        box, listed = self.query_one("#buffer-box"), self.query_one(BufferList)
        if schedule is None or self._all:
            listed.show(picture.buffers)
            box.border_title = "Largest buffers"
            marks = "◂ alive at the peak · +n: others take its place at other times" if picture.buffers else ""
            more = f" · {key_of('buffers.all')} those at the cursor" if schedule is not None else ""
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
        keys = "← → an instruction"
        changes = f"{key_of('buffers.change_before')} {key_of('buffers.next_change')} a change"
        box.border_subtitle = Content(f"{keys} · {changes} · {key_of('buffers.all')} all buffers")

    @on(LivePlot.Pointed)
    def _pointed(self, message: LivePlot.Pointed) -> None:
        self._move_to(message.number)

    @on(BufferList.Stepped)
    def _stepped(self, message: BufferList.Stepped) -> None:
        self._move_to(self._at + message.step)

    @on(BufferList.ChangeRequested)
    def _to_change(self, message: BufferList.ChangeRequested) -> None:
        picture = self._picture
        if picture is not None and picture.live_bytes:
            self._move_to(next_change(picture.live_bytes, self._at, message.step))

    @on(BufferList.AllRequested)
    def _switch(self) -> None:
        self._all = not self._all
        self._show_cursor()

    def _move_to(self, number: int) -> None:
        picture = self._picture
        if picture is None or picture.schedule is None:
            return
        self._at = max(0, min(len(picture.schedule.points) - 1, number))
        self._all = False
        self._show_cursor()

    def to_peak(self) -> bool:
        """Moves the cursor back to the peak; False if it is there."""
        picture = self._picture
        if picture is None or picture.schedule is None or not self.query_one("#buffer-box").display:
            return False
        if self._at == peak_of(picture) and not self._all:
            return False
        self._move_to(peak_of(picture))
        return True


def points_of(picture: MemoryPicture) -> tuple[LivePoint, ...]:
    """Positions in the schedule with what is alive there."""
    if picture.schedule is None:
        return tuple(enumerate(picture.live_bytes))
    return tuple((point.position, point.bytes) for point in picture.schedule.points)


def peak_of(picture: MemoryPicture) -> int:
    """The number of the highest point."""
    return max(range(len(picture.live_bytes)), key=picture.live_bytes.__getitem__, default=0)


def next_change(live: Sequence[int], at: int, step: int) -> int:
    """The next point in a direction whose size differs by at least a share `CHANGE` of the peak from the one before it;
    the last point in that direction if there is none."""
    least = max(1, round(max(live) * CHANGE))
    end = len(live) if step > 0 else 0
    for number in range(at + step, end, step):
        if abs(live[number] - live[number - 1]) >= least:
            return number
    return end - 1 if step > 0 else 0


def where(schedule: Liveness, at: int) -> str:
    """`fusion.3, model.py:88, instruction 12 of 40`."""
    point = schedule.points[at]
    line = f", {base_name(point.file)}:{point.line}" if point.file else ""
    return safe(f"{point.instruction}{line}, instruction {point.position + 1} of {schedule.length}")
