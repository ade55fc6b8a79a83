"""The output of a child process: followed until the user scrolls up; escape sequences have no effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from jaxprof.tui.kit.drawing import cell
from jaxprof.tui.kit.guard import Guarded

if TYPE_CHECKING:
    from jaxprof.events import LogLine

OUTPUT_TITLE = "Process output"
STREAM = 7
_TALLEST = 40
"""Most lines up to which the height follows the content, if the stylesheet allows it."""
_NOTHING = "nothing written to stdout or stderr"
_NOTHING_OF_PROGRAM = "No output: the program wrote nothing, or wrote directly to the terminal (--plain)."


class LogPane(Guarded, ScrollView, can_focus=True):
    """The output of one run; only the lines in view are drawn."""

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None, of_program: bool = False) -> None:
        """`of_program`: the output of a user's program, whose lines need no name of the stream."""
        super().__init__(id=id)
        self._of_program = of_program
        self._lines: Sequence[LogLine] = ()
        self._run = ""
        self._last: LogLine | None = None
        """Last line itself: the number of lines does not show whether they changed."""

    def show(self, run: str, lines: Sequence[LogLine]) -> None:
        """Show the lines of `run`, scrolled to the end unless the user scrolled away."""
        last = lines[-1] if lines else None
        if run == self._run and last is self._last:
            return
        follow = run != self._run or self.scroll_offset.y >= self.max_scroll_y - 1
        grows = min(len(self._lines), len(lines)) < _TALLEST and len(self._lines) != len(lines)
        self._run, self._last, self._lines = run, last, list(lines)
        self.virtual_size = Size(self.size.width, len(self._lines))
        if follow:
            self.call_after_refresh(self.scroll_end, animate=False)
        self.refresh(layout=grows)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return max(1, min(len(self._lines), _TALLEST))

    def _line(self, line: LogLine, width: int) -> Content:
        stream = "$warning" if line.stream == "stderr" else "$quiet"
        if self._of_program:
            mark = "▎" if line.stream == "stderr" else " "
            return Content.assemble((mark, stream), cell(line.text, max(1, width - 1)))
        return Content.assemble(cell(line.stream, STREAM, stream), " ", cell(line.text, max(1, width - STREAM - 1)))

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._lines))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        index = y + self.scroll_offset.y
        if index < len(self._lines):
            line = self._lines[index]
            content = self._line(line, width)
        else:
            words = _NOTHING_OF_PROGRAM if self._of_program else _NOTHING
            message = [] if self._lines else Content.styled(words, "$quiet").wrap(max(1, width))
            content = message[y] if y < len(message) else Content("")
        strips = Visual.to_strips(self, content, width, 1, self.visual_style, pad=True)
        return strips[0] if strips else Strip.blank(width)


class LastLines(LogPane, can_focus=False):
    """The end of the output beside a live view; it cannot take the focus from the view."""
