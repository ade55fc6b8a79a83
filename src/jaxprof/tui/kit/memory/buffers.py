"""The list of what takes memory: everything, the largest first, or what is alive at one instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.message import Message

from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.drawing import bar
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import Drawing, TableColumn
from jaxprof.tui.kit.table_view import TableView
from jaxprof.units import UNKNOWN, bytes_

if TYPE_CHECKING:
    from jaxprof.analysis.memory import MemoryBuffer

STYLES = {
    "argument": ("█", "$phase-transfer"),
    "output": ("▓", "$phase-run"),
    "temporary": ("▒", "$phase-compile"),
    "constant": ("░", "$phase-first"),
}
OTHER = ("█", "$quiet")


class BufferList(TableView["MemoryBuffer"]):
    """The largest buffers and where they come from."""

    EMPTY = "The buffers are unknown."
    BINDINGS: ClassVar[list[BindingType]] = bindings("buffers")

    class HloRequested(Message):
        """Requests the HLO of an instruction by name."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class Stepped(Message):
        """Moves the cursor over the schedule by `step` instructions."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    class ChangeRequested(Message):
        """Moves the cursor to the next change of the live size, forwards or backwards."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    class AllRequested(Message):
        """Lists all buffers, or again those that are alive at the cursor."""

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

    def action_step(self, step: int) -> None:
        """Moves the cursor over the schedule."""
        self.post_message(self.Stepped(step))

    def action_change(self, step: int) -> None:
        """Moves the cursor over the schedule to a change of the live size."""
        self.post_message(self.ChangeRequested(step))

    def action_all(self) -> None:
        """Lists all buffers, or those that are alive at the cursor."""
        self.post_message(self.AllRequested())

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        message.stop()
        self.action_hlo()


def _kind(buffer: MemoryBuffer) -> tuple[str, str]:
    mark, style = STYLES.get(buffer.kind, OTHER)
    return f"{mark} {buffer.kind}", style


def _name(buffer: MemoryBuffer) -> str:
    """Of an argument its name, of another value the operation, without the function that all are in; the instruction
    where XLA names neither. Then how many others share its place."""
    function, _, inner = buffer.op_name.partition("/")
    name = (inner if inner and function.startswith("jit(") else buffer.op_name) or buffer.instruction or UNKNOWN
    return name + (f" +{buffer.shared_with}" if buffer.shared_with else "")


def _where(buffer: MemoryBuffer) -> str:
    line = f":{buffer.line}" if buffer.line is not None else ""
    return f"{base_name(buffer.file)}{line}" if buffer.file else UNKNOWN


def base_name(path: str) -> str:
    """The last part of a path of any system."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]
