"""Widgets that show what a pure function draws for their size, and redraw only when the data of the drawing changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from jaxprof.tui.kit.guard import Guarded

_NEVER = object()


class Drawn(Guarded, Widget):
    """Base class of both widgets: the key that the drawing depends on."""

    ALLOW_SELECT = False
    _key: object = _NEVER


class Picture(Drawn):
    """A drawing that fills its area: a plot, a histogram."""

    _draw: Callable[[int, int], Content] | None = None

    def show(self, key: object, draw: Callable[[int, int], Content]) -> None:
        """Draw `draw(width, height)` if `key`, which the drawing depends on, has changed."""
        if key != self._key:
            self._key, self._draw = key, draw
            self.refresh()

    def render(self) -> Content:
        if self._draw is None or self.size.width < 1 or self.size.height < 1:
            return Content("")
        return self._draw(self.size.width, self.size.height)


class Lines(Drawn):
    """Lines of text, drawn for the width of the widget, which is as high as the lines."""

    DEFAULT_CSS = "Lines { height: auto; }"
    _draw: Callable[[int], Sequence[Content]] | None = None
    _lines: tuple[int, Sequence[Content]] = (-1, ())

    def clear(self) -> None:
        """Show nothing."""
        self.show(None, lambda width: ())

    def show(self, key: object, draw: Callable[[int], Sequence[Content]]) -> None:
        """Draw `draw(width)` if `key` has changed. Without lines, the widget is not displayed."""
        if key == self._key:
            return
        before = len(self._lines[1])
        self._key, self._draw, self._lines = key, draw, (-1, ())
        lines = self._at(self.content_size.width) if self.content_size.width else ()
        self.display = bool(lines) if self.content_size.width else bool(draw(80))
        self.refresh(layout=len(lines) != before)

    def _at(self, width: int) -> Sequence[Content]:
        if self._lines[0] != width:
            self._lines = (width, self._draw(width) if self._draw is not None else ())
        return self._lines[1]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._at(width))

    def render(self) -> Content:
        return Content("\n").join(self._at(self.content_size.width))


class ScrollPane(Guarded, VerticalScroll, keys="scroll"):
    """A scrolling area with the focus."""

    def action_scroll(self, step: int) -> None:
        self.scroll_relative(y=step, animate=False)
