"""Widgets that show what a pure function draws for their size, and send nothing where that is the same as before; and
the output of a child process, whose escape sequences have no effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from jaxprof.events import LogLine
from jaxprof.tui.kit.drawing import cell
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.row_list import RowList

OUTPUT_TITLE = "Process output"
_STREAM = 7
_NOTHING = "nothing written to stdout or stderr"
_NOTHING_OF_PROGRAM = "No output: the program wrote nothing, or wrote directly to the terminal (--plain)."


class LogPane(RowList[int]):
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


class Picture(Guarded, Widget):
    """A drawing that fills its area: a plot, a histogram, a line of keys."""

    ALLOW_SELECT = False
    auto_links = False
    _draw: Callable[[int, int], Content] | None = None
    _drawn: tuple[Size, Content] = (Size(), Content(""))

    def show(self, draw: Callable[[int, int], Content]) -> None:
        """Show `draw(width, height)`. In another size than before, Textual draws it anyway."""
        (size, before), self._draw = self._drawn, draw
        self._drawn = (Size(), Content(""))
        if size == self.size and not self._at(size).is_same(before):
            self.refresh()

    def _at(self, size: Size) -> Content:
        if self._drawn[0] != size:
            self._drawn = (size, self._draw(*size) if self._draw is not None and size.area else Content(""))
        return self._drawn[1]

    def render(self) -> Content:
        return self._at(self.size)


class Lines(Guarded, Widget):
    """Lines of text, drawn for the width of the widget, which is as high as the lines."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "Lines { height: auto; }"
    _draw: Callable[[int], Iterable[Content]] | None = None
    _lines: tuple[int, Sequence[Content]] = (-1, ())
    _rendered: tuple[int, Content] = (-1, Content(""))
    """What Textual got last, and its width: in another one, Textual draws it anyway."""

    def clear(self) -> None:
        self.show(lambda width: ())

    def show(self, draw: Callable[[int], Iterable[Content]]) -> None:
        """Show `draw(width)`. Without lines, the widget is not displayed."""
        count, width = len(self._lines[1]), self.content_size.width
        self._draw, self._lines = draw, (-1, ())
        lines = self._at(width) if width else ()
        self.display = bool(lines) if width else any(True for _ in draw(80))
        if len(lines) != count:
            self.refresh(layout=True)
            self.call_after_refresh(self._mend_height)
        elif self._rendered[0] == width and not Content("\n").join(lines).is_same(self._rendered[1]):
            self.refresh()

    def _mend_height(self) -> None:
        """Ask for a layout again where the widget is not as high as its lines: while an earlier one is due, as after
        another size of the terminal, Textual takes the height that it knows."""
        width, height = self.content_size
        if width and self.display and height != len(self._at(width)):
            self.refresh(layout=True)

    def _at(self, width: int) -> Sequence[Content]:
        if self._lines[0] != width:
            self._lines = (width, tuple(self._draw(width)) if self._draw is not None else ())
        return self._lines[1]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._at(width))

    def render(self) -> Content:
        width = self.content_size.width
        self._rendered = (width, Content("\n").join(self._at(width)))
        return self._rendered[1]


class ScrollPane(Guarded, VerticalScroll, keys="scroll"):
    """A scrolling area with the focus."""

    def action_scroll(self, step: int) -> None:
        self.scroll_relative(y=step, animate=False)


def show_titles(box: Widget, title: Content | None = None, subtitle: Content | None = None) -> None:
    """Set title and subtitle of a box; None leaves one. Textual redraws the box even for the title that it has."""
    for name, text in (("border_title", title), ("border_subtitle", subtitle)):
        if text is not None and text.markup != getattr(box, name):
            setattr(box, name, text)
