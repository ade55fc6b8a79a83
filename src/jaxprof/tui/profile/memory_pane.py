"""The memory of a run: the parts of the peak, the live size over the schedule, the largest buffers.

`analysis.memory` derives it in a thread, because it reads the HLO.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.message import Message

from jaxprof.text import safe
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.drawing import bar, hang
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.line_plot import Axis, Mark, PlotLine, count_tick, line_plot
from jaxprof.tui.kit.picture import Lines, Picture
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import Drawing, TableColumn
from jaxprof.tui.kit.table_view import TableView
from jaxprof.tui.kit.threads import in_thread
from jaxprof.units import UNKNOWN, bytes_, percent

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.memory import MemoryBuffer, MemoryPicture
    from jaxprof.session import Run, Session

STYLES = {
    "argument": ("█", "$phase-transfer"),
    "output": ("▓", "$phase-run"),
    "temporary": ("▒", "$phase-compile"),
    "constant": ("░", "$phase-first"),
}
OTHER = ("█", "$quiet")
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


def readings_of(session: Session, run: Run) -> list[MemoryReading]:
    """The memory in use on the run's device while it ran; none on a CPU, where all processes share the memory."""
    if run.started_seconds is None or run.plan.device.startswith("cpu"):
        return []
    begin, end = run.started_seconds, run.ended_seconds
    return [
        MemoryReading(reading.monotonic_seconds - begin, reading.memory_used_bytes)
        for reading in session.readings.get(run.plan.device, ())
        if reading.memory_used_bytes is not None
        and reading.monotonic_seconds >= begin
        and (end is None or reading.monotonic_seconds <= end)
    ]


def head_lines(picture: MemoryPicture, run: Run, width: int) -> list[Content]:
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
        items = [
            Content.assemble((f"{STYLES.get(part.kind, OTHER)[0]} ", STYLES.get(part.kind, OTHER)[1]),
                             f"{safe(part.kind)} ", (bytes_(part.bytes), "bold"),
                             (f" {percent(part.bytes / whole)}", "$text-muted"))
            for part in picture.parts
        ]  # fmt: skip
        lines.append(Content("   ").join(items).truncate(width, ellipsis=True))
    if picture.asked_bytes is not None:
        words = f"{bytes_(picture.asked_bytes)}, which was refused"
        lines += hang(Content.styled("requested ", "bold $error"), words, width)
    return [*lines, *_allocator(run, width)]


def _allocator(run: Run, width: int) -> list[Content]:
    """The most bytes that the device's allocator reports to have allocated."""
    memory = run.memory
    if memory is None or memory.allocator_peak_bytes is None:
        why = "a CPU's allocator keeps no count" if run.plan.device.startswith("cpu") else "the device reports none"
        return [
            Content.styled(f"allocator peak, measured: {UNKNOWN} ({why})", "$text-muted").truncate(width, ellipsis=True)
        ]
    limit = memory.allocator_limit_bytes
    share = memory.allocator_peak_bytes / limit if limit else None
    of = f" of {bytes_(limit)}, {percent(share)}" if limit else ""
    return [Content.assemble("allocator peak, measured: ", (bytes_(memory.allocator_peak_bytes), "bold"), of)]


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


def live_plot(live: Sequence[int], width: int, height: int) -> Content:
    """The live size after each instruction of the schedule, with its highest point marked."""
    peak = max(range(len(live)), key=live.__getitem__)
    scale, unit = unit_of(live[peak])
    line = PlotLine("live", tuple((float(at), size / scale) for at, size in steps(live)), "$phase-compile")
    mark = Mark(float(peak), live[peak] / scale, bytes_(live[peak]))
    x = Axis("the schedule's instructions", whole_tick)
    return line_plot([line], x, Axis(f"{unit} alive (an estimate)", count_tick, zero=True), width, height, [mark])


def steps(live: Sequence[int]) -> list[tuple[int, int]]:
    """Corners of the curve: a size holds until the next instruction."""
    corners: list[tuple[int, int]] = []
    for at, size in enumerate(live):
        if not corners or corners[-1][1] != size:
            if corners:
                corners.append((at, corners[-1][1]))
            corners.append((at, size))
    return [*corners, (len(live), live[-1])] if live else []


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


class BufferList(TableView["MemoryBuffer"]):
    """The largest buffers and where they come from."""

    EMPTY = "The buffers are unknown."
    BINDINGS: ClassVar[list[BindingType]] = bindings("buffers")

    class HloRequested(Message):
        """Requests the HLO of an instruction by name."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("size", lambda buffer: bytes_(buffer.bytes), 9, right=True, style="bold"),
                TableColumn("", lambda buffer: ("◂" if buffer.at_peak else "", "$warning"), 1),
                TableColumn("kind", _kind, 11),
                TableColumn("instruction", _instruction, 16, weight=4),
                TableColumn("shape", lambda buffer: buffer.shape, 12, weight=3, style="$text-muted"),
                TableColumn("source", _where, 12, weight=3, style="$code-name"),
                TableColumn("", self._bar, 16, priority=1),
            ),
            id=id,
        )
        self._buffers: tuple[MemoryBuffer, ...] = ()
        self._largest = 1

    def show(self, buffers: tuple[MemoryBuffer, ...]) -> None:
        """Shows other buffers."""
        if buffers is not self._buffers:
            self._buffers, self._largest = buffers, (buffers[0].bytes if buffers else 0) or 1
            self.show_rows(dict(enumerate(buffers)))
            self.move_to(0)

    def _bar(self, buffer: MemoryBuffer) -> Drawing:
        return lambda width: bar(buffer.bytes / self._largest, width, STYLES.get(buffer.kind, OTHER)[1])

    def action_hlo(self) -> None:
        """Goes to the instruction that makes the buffer under the cursor."""
        buffer = self.current_row
        if buffer is not None and buffer.instruction:
            self.post_message(self.HloRequested(buffer.instruction))

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        message.stop()
        self.action_hlo()


def _kind(buffer: MemoryBuffer) -> tuple[str, str]:
    mark, style = STYLES.get(buffer.kind, OTHER)
    return f"{mark} {buffer.kind}", style


def _instruction(buffer: MemoryBuffer) -> str:
    return (buffer.instruction or UNKNOWN) + (f" +{buffer.shared_with}" if buffer.shared_with else "")


def _where(buffer: MemoryBuffer) -> str:
    line = f":{buffer.line}" if buffer.line is not None else ""
    return f"{_base(buffer.file)}{line}" if buffer.file else buffer.op_name or UNKNOWN


def _base(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


class MemoryPane(Guarded, Container):
    """The memory of one run."""

    class Derived(Message, bubble=False):
        """A thread has derived the memory of a run; None if nothing is known about it."""

        def __init__(self, run: str, picture: MemoryPicture | None) -> None:
            super().__init__()
            self.run, self.picture = run, picture

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._session: Session | None = None
        self._run = ""

    def compose(self) -> ComposeResult:
        with Vertical(id="memory-box", classes="box") as box:
            box.border_title = "Peak"
            yield Lines(id="memory-head")
        with Horizontal(id="memory-plots"):
            yield Picture("Live size over the schedule", id="live-plot", classes="box")
            yield Picture("Device memory during the run", id="readings-plot", classes="box")
        with Vertical(id="buffer-box", classes="box") as box:
            box.border_title = "Largest buffers"
            yield BufferList(id="buffers")

    def show(self, session: Session, run: Run | None, words: str = "") -> None:
        """Derives the memory of a run in a thread, and shows it. `words` say why there is none, where that is known."""
        if words:
            self._session, self._run = session, ""
            self._show_text(words)
            return
        fresh = run is None or run.id != self._run or session is not self._session
        self._session, self._run = session, run.id if run is not None else ""
        if fresh:
            self._show_text("Analysing the memory…" if run is not None else "Nothing was run yet.")
        if run is not None:
            in_thread(self, lambda: self._derive(session, run.id), "memory")

    def _derive(self, session: Session, run: str) -> None:
        from jaxprof.analysis.memory import buffers_of

        self.post_message(self.Derived(run, buffers_of(session, run)))

    def _show_text(self, words: str) -> None:
        self.query_one("#memory-head", Lines).show(
            words, lambda width: Content.styled(safe(words), "$text-muted").wrap(width)
        )
        for name in ("memory-plots", "buffer-box"):
            self.query_one(f"#{name}").display = False

    def on_memory_pane_derived(self, message: Derived) -> None:
        session, picture = self._session, message.picture
        if session is None or message.run != self._run or self._run not in session.runs:
            return
        run = session.runs[self._run]
        if picture is None:
            self._show_text(why_no_memory(run))
            return
        self.query_one("#memory-head", Lines).show(
            (run.id, picture, run.memory is None), lambda width: head_lines(picture, run, width)
        )
        live, readings = picture.live_bytes, readings_of(session, run)
        live_widget, readings_widget = self.query_one("#live-plot", Picture), self.query_one("#readings-plot", Picture)
        live_widget.display, readings_widget.display = bool(live), len(readings) > 1
        self.query_one("#memory-plots").display = bool(live) or len(readings) > 1
        if live:
            live_widget.show(live, lambda w, h: live_plot(live, w, h))
        readings_widget.show(tuple(readings), lambda w, h: readings_plot(readings, w, h))
        self.query_one("#buffer-box").display = True
        self.query_one(BufferList).show(picture.buffers)
        marks = "◂ alive at the peak · +n: others take its place at other times" if picture.buffers else ""
        self.query_one("#buffer-box").border_subtitle = Content(marks)


def why_no_memory(run: Run) -> str:
    """Why a run has no memory to show."""
    if run.plan.how == "numpy":
        return "NumPy's memory is unknown: XLA compiles no program for it."
    if run.plan.how == "eager":
        return "An op-by-op run has no single program whose memory could be shown."
    if run.plan.how == "imported":
        return "This profile has no HLO of the program, from which its memory could be derived."
    return "No memory was recorded." if run.over else "The program is not compiled yet."
