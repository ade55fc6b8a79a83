"""Widgets that show what a pure function draws for their size, and send nothing where that is the same as before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from jaxprof.tui.kit.guard import Guarded


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
    """Show the title and the subtitle in the frame of a box; None leaves one as it is. Textual draws the box, and all
    that is in it, whenever a title is set, even to what it is already."""
    for name, text in (("border_title", title), ("border_subtitle", subtitle)):
        if text is not None and text.markup != getattr(box, name):
            setattr(box, name, text)
