"""The output of a child process: followed until the cursor leaves the last line; escape sequences have no effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.tui.kit.drawing import cell
from jaxprof.tui.kit.row_list import RowList

if TYPE_CHECKING:
    from jaxprof.events import LogLine

OUTPUT_TITLE = "Process output"
_STREAM = 7
_NOTHING = "nothing written to stdout or stderr"
_NOTHING_OF_PROGRAM = "No output: the program wrote nothing, or wrote directly to the terminal (--plain)."


class LogPane(RowList[int]):
    """The output of one run."""

    def __init__(self, *, id: str | None = None, of_program: bool = False) -> None:
        """`of_program`: the output of a user's program, whose lines need no name of the stream."""
        super().__init__(id=id)
        self.empty = _NOTHING_OF_PROGRAM if of_program else _NOTHING
        self._of_program = of_program
        self._lines: Sequence[LogLine] = ()
        self._run = ""

    def show(self, run: str, lines: Sequence[LogLine]) -> None:
        """Show the lines of `run`; the cursor stays at the end unless the user moved it away."""
        # The last line itself tells whether the lines changed: their number is bounded.
        if run == self._run and len(lines) == self.count and (not lines or lines[-1] is self._lines[-1]):
            return
        follow = run != self._run or self.cursor >= self.count - 1
        self._run, self._lines = run, list(lines)
        self.set_keys(range(len(self._lines)))
        if follow:
            self.move_to(self.count - 1)

    def draw_row(self, index: int, width: int) -> Content:
        line = self._lines[index]
        style = "$warning" if line.stream == "stderr" else "$quiet"
        stream = Content.styled("▎" if line.stream == "stderr" else " ", style)
        if not self._of_program:
            stream = cell(line.stream, _STREAM, style) + " "
        return stream + cell(line.text, max(1, width - stream.cell_length))
