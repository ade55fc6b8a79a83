"""What the memory of a run is made of: the parts of the peak, the live size over the schedule, the largest buffers.

`results.memory` derives it, in a thread, because the HLO has to be read for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.message import Message

from jaxprof.safe_text import safe
from jaxprof.tui.widgets.drawing import bar, cell, hang
from jaxprof.tui.widgets.line_plot import Axis, Line, Mark, count_tick, line_plot
from jaxprof.tui.widgets.picture import Lines, Picture
from jaxprof.tui.widgets.row_list import RowList
from jaxprof.units import UNKNOWN, bytes_, percent

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.results.memory import MemoryBuffer, MemoryPicture
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
    "memory analysis": "from XLA's memory analysis: sums only",
    "request": "only what was asked for is known",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What the device said at a time, in seconds since the run began."""

    at: float
    bytes: int


def readings_of(session: Session, run: Run) -> list[Reading]:
    """The memory in use on the run's device while it ran; none on a CPU, whose memory is everybody's."""
    if run.started_seconds is None or run.plan.device.startswith("cpu"):
        return []
    begin, end = run.started_seconds, run.ended_seconds
    return [
        Reading(reading.monotonic_seconds - begin, reading.memory_used_bytes)
        for reading in session.readings.get(run.plan.device, ())
        if reading.memory_used_bytes is not None
        and reading.monotonic_seconds >= begin
        and (end is None or reading.monotonic_seconds <= end)
    ]


def head_lines(picture: MemoryPicture, run: Run, width: int) -> list[Content]:
    """The peak, its parts as a bar, and in numbers."""
    if picture.peak_bytes is not None:
        first = Content.assemble(
            "peak ", (bytes_(picture.peak_bytes), "bold"), f"  {SOURCES.get(picture.source, safe(picture.source))}"
        )
    else:
        first = Content.styled("The peak is not known.", "$text-muted")
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
        words = f"{bytes_(picture.asked_bytes)}, and did not get it"
        lines += hang(Content.styled("asked for ", "bold $error"), words, width)
    return [*lines, *_allocator(run, width)]


def _allocator(run: Run, width: int) -> list[Content]:
    """What the device's allocator says it has given out at most."""
    memory = run.memory
    if memory is None or memory.allocator_peak_bytes is None:
        why = "a CPU's allocator keeps no count" if run.plan.device.startswith("cpu") else "the device did not say"
        return [
            Content.styled(f"measured by the allocator: {UNKNOWN} ({why})", "$text-muted").truncate(
                width, ellipsis=True
            )
        ]
    limit = memory.allocator_limit_bytes
    share = memory.allocator_peak_bytes / limit if limit else None
    of = f" of {bytes_(limit)}, {percent(share)}" if limit else ""
    return [
        Content.assemble("measured by the allocator: ", (bytes_(memory.allocator_peak_bytes), "bold"), f" at most{of}")
    ]


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
    line = Line("live", tuple((float(at), size / scale) for at, size in steps(live)), "$phase-compile")
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


def readings_plot(readings: Sequence[Reading], width: int, height: int) -> Content:
    """The memory in use on the device while the run went on."""
    scale, unit = unit_of(max(one.bytes for one in readings))
    line = Line("in use", tuple((one.at, one.bytes / scale) for one in readings), "$phase-run")
    x = Axis("seconds of the run", count_tick)
    return line_plot([line], x, Axis(f"{unit} in use", count_tick, zero=True), width, height)


def unit_of(size: int) -> tuple[int, str]:
    """The binary unit in which a size has at most three digits before its point."""
    power = min(4, max(0, size.bit_length() - 1) // 10)
    return 1024**power, ("B", "KiB", "MiB", "GiB", "TiB")[power]


def whole_tick(value: float) -> str:
    """A whole count beside an axis; nothing between two of them."""
    return count_tick(value) if value == int(value) else ""


class BufferList(RowList):
    """The largest buffers, with where they come from."""

    EMPTY = "The buffers are not known."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,h", "hlo", "HLO", tooltip="To the instruction that makes this buffer", id="buffers.hlo"),
    ]

    class HloWanted(Message):
        """To the instruction of that name."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._buffers: tuple[MemoryBuffer, ...] = ()

    def show(self, buffers: tuple[MemoryBuffer, ...]) -> None:
        """Shows other buffers."""
        if buffers is not self._buffers:
            self._buffers = buffers
            self.set_keys(list(range(len(buffers))))
            self.move_to(0)
            self.refresh()

    def draw_header(self, width: int) -> Content | None:
        if not self._buffers:
            return None
        name, shape, source, graph = _widths(width)
        return Content.assemble(
            cell(" size", 10), "   ", cell("kind", 11), cell("instruction", name),
            cell("shape", shape), cell("source", source), " " * graph,
        )  # fmt: skip

    def draw_row(self, index: int, width: int) -> Content:
        buffer = self._buffers[index]
        name, shape, source, graph = _widths(width)
        mark, style = STYLES.get(buffer.kind, OTHER)
        line = f":{buffer.line}" if buffer.line is not None else ""
        where = (
            f"{buffer.file.replace(chr(92), '/').rsplit('/', 1)[-1]}{line}"
            if buffer.file
            else buffer.op_name or UNKNOWN
        )
        more = f" +{buffer.shared_with}" if buffer.shared_with else ""
        largest = self._buffers[0].bytes or 1
        return Content.assemble(
            cell(bytes_(buffer.bytes), 10, "bold", right=True), (" ◂ " if buffer.at_peak else "   ", "$warning"),
            cell(f"{mark} {buffer.kind}", 11, style), cell((buffer.instruction or UNKNOWN) + more, name - 1), " ",
            cell(buffer.shape, shape - 1, "$text-muted"), " ", cell(where, source, "$code-name"),
            bar(buffer.bytes / largest, graph, style) if graph else "",
        )  # fmt: skip

    def action_hlo(self) -> None:
        """To the instruction that makes the buffer under the cursor."""
        if self._buffers and self._buffers[self.cursor].instruction:
            self.post_message(self.HloWanted(self._buffers[self.cursor].instruction))

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        message.stop()
        self.action_hlo()


def _base(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def _widths(width: int) -> tuple[int, int, int, int]:
    """Columns of instruction, shape, source line, and bar."""
    graph = 0 if width < 100 else 16
    rest = width - 24 - graph
    shape = rest * 3 // 10
    source = rest * 3 // 10
    return rest - shape - source, shape, source, graph


class MemoryPane(Container):
    """One run's memory."""

    class Derived(Message, bubble=False):
        """The memory of a run was worked out in a thread; None where nothing is known of it."""

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

    def show(self, session: Session, run: Run | None) -> None:
        """Works out what is known of a run, and shows it."""
        fresh = run is None or run.id != self._run or session is not self._session
        self._session, self._run = session, run.id if run is not None else ""
        if fresh:
            self._say("Working it out…" if run is not None else "Nothing was run yet.")
        if run is not None:
            self.run_worker(
                lambda: self._derive(session, run.id), name="memory", group="memory", exclusive=True, thread=True
            )

    def _derive(self, session: Session, run: str) -> None:
        from jaxprof.results.memory import buffers_of

        self.post_message(self.Derived(run, buffers_of(session, run)))

    def _say(self, words: str) -> None:
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
            self._say(why_no_memory(run))
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
    """Why nothing is known of a run's memory."""
    if run.plan.how == "numpy":
        return "NumPy's memory is not known: it has no program of which XLA could tell."
    if run.plan.how == "eager":
        return "Op by op there is no one program whose memory could be known."
    if run.plan.how == "imported":
        return "This profile has no HLO of it, of which the memory could be worked out."
    return "Nothing is known of its memory." if run.over else "The program is not compiled yet."
