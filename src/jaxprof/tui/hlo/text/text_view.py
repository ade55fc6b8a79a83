"""A text of any size, drawn line by line as it comes into view: coloured, folded, with the matches of a search marked.

Textual's own text area takes twenty seconds for two hundred thousand lines. This one slices, makes safe and colours
only the lines that are shown, keeps the drawn lines, and sends nothing while nothing changes. It shows any `Document`:
a stage of a program, a log, a source file. Every line is made safe before it is drawn; markup is never parsed.
"""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.binding import BindingType
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from jaxprof.hlo.read.lexer import SpanKind, lex
from jaxprof.text import columns, safe
from jaxprof.tui.hlo.text.document import Document, Folds, column
from jaxprof.tui.hlo.text.navigation import Name
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.search import Hits

PIECE = 8192
"""Characters of a line that are drawn at once. Longer lines (a literal of megabytes) are drawn piece by piece."""
KEPT = 4096
"""Drawn lines that are kept."""
SIDEWAYS = 16
ABOVE = 3
"""Lines that stay in view above and below the cursor."""


class TextView(Guarded, ScrollView, can_focus=True):
    """One document at a time, with a cursor on a line."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "text-view--cursor",
        "text-view--gutter",
        "text-view--hit",
        "text-view--chosen",
        "text-view--fold",
        *(f"text-view--{kind}" for kind in SpanKind),
    }
    BINDINGS: ClassVar[list[BindingType]] = bindings("text")

    class Moved(Message):
        """The cursor is on another line, or another document is shown."""

    def __init__(self, document: Document | None = None, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._document = document or Document("")
        self._cursor = 0
        self._folds = Folds()
        self._hits: Hits | None = None
        self._left_at: LRUCache[int, tuple[Document, int, Folds]] = LRUCache(16)
        self._strips: LRUCache[tuple[int, int], tuple[str, Strip]] = LRUCache(KEPT)
        self._part_styles: dict[str, RichStyle] = {}

    # -- what is shown ----------------------------------------------------------------------------------------

    @property
    def document(self) -> Document:
        """The document that is shown."""
        return self._document

    @property
    def cursor(self) -> int:
        """The line that the cursor is on, from 0."""
        return self._cursor

    def show(self, document: Document) -> None:
        """Shows another document, at the line where the reader last left it."""
        if document is self._document:
            return
        self._left_at[id(self._document)] = (self._document, self._cursor, self._folds)
        _, self._cursor, self._folds = self._left_at.get(id(document)) or (document, 0, Folds())
        self._document = document
        self._hits = None
        self.unchoose()
        self._strips.clear()
        self._resize()
        self.scroll_to(x=0, animate=False, force=True)
        self._reveal(center=True)
        self.refresh()
        self.post_message(self.Moved())

    def forget_places(self) -> None:
        """Forgets where documents were left."""
        self._left_at.clear()

    def show_hits(self, hits: Hits | None) -> None:
        """Marks the matches of a search; None marks nothing."""
        self._hits = hits
        self.refresh()

    def go(self, line: int, *, center: bool = False) -> None:
        """Moves the cursor to a line, unfolds it and brings it into view, near the centre with `center`."""
        line = max(0, min(line, self._document.line_count - 1))
        if self._folds.block(line) is not None and line not in self._folds:
            self.set_folds(self._folds.opened(line))
        before, self._cursor = self._cursor, line
        self.unchoose()
        self.refresh_line(before)
        self.refresh_line(line)
        self._reveal(center=center)
        if center and self.scroll_x:
            self.scroll_to(x=0, animate=False, force=True)
        if before != line:
            self.post_message(self.Moved())

    # -- for subclasses ---------------------------------------------------------------------------------------

    def unchoose(self) -> None:
        """Called when the cursor leaves its line or the document."""

    def marked_name(self) -> Name | None:
        """The marked name in the cursor's line; None without one."""
        return None

    # -- measures ---------------------------------------------------------------------------------------------

    @property
    def number_width(self) -> int:
        """Columns that the line numbers take."""
        return len(str(self._document.line_count)) + 2

    def _resize(self) -> None:
        rows = self._document.line_count - self._folds.hidden
        self.virtual_size = Size(self.number_width + self._document.widest + 1, rows)

    @property
    def folds(self) -> Folds:
        """The folded blocks."""
        return self._folds

    def set_folds(self, folds: Folds) -> None:
        """Folds and opens blocks; the first line in view stays where it is."""
        top = self._folds.line(round(self.scroll_y))
        self._folds = folds
        self._resize()
        self.scroll_to(y=folds.row(top), animate=False, force=True)
        self.refresh()

    def _reveal(self, *, center: bool = False) -> None:
        height = self.scrollable_content_region.height
        if height < 1:
            return  # not laid out yet: on_resize does it
        row, top = self._folds.row(self._cursor), round(self.scroll_y)
        margin = min(ABOVE, (height - 1) // 2)
        if top + margin <= row < top + height - margin:
            return
        if center:
            target = row - height // 3
        elif row < top + margin:
            target = row - margin
        else:
            target = row - height + 1 + margin
        self.scroll_to(y=max(0, target), animate=False, force=True)

    def refresh_line(self, line: int) -> None:
        """Redraws a line if it is in view."""
        y = self._folds.row(line) - round(self.scroll_y)
        if 0 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    # -- drawing ----------------------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()
        self._part_styles.clear()

    def _style(self, part: str) -> RichStyle:
        style = self._part_styles.get(part)
        if style is None:
            style = self.get_component_rich_style(f"text-view--{part}", partial=True) if part else self.rich_style
            self._part_styles[part] = style
        return style

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        row = y + round(self.scroll_y)
        base = self._style("")
        if row >= self._document.line_count - self._folds.hidden:
            return Strip.blank(width, base)
        number = self._folds.line(row)
        on_cursor = number == self._cursor
        if on_cursor:
            base = base + self._style("cursor")
        room = max(0, width - self.number_width)
        left = round(self.scroll_x)
        body = self._body(number, left, left + room, marked=on_cursor)
        body = body.extend_cell_length(room).apply_style(base)
        return Strip.join([self._number(number, on_cursor).apply_style(base), body])

    def _number(self, number: int, on_cursor: bool) -> Strip:
        mark = "+" if number in self._folds else "▸" if on_cursor else " "
        text = f"{number + 1:>{self.number_width - 2}}{mark} "
        return Strip([Segment(text, self._style("fold" if mark == "+" else "gutter"))], self.number_width)

    def _body(self, number: int, left: int, right: int, *, marked: bool) -> Strip:
        """The columns from `left` to `right` of a line, with its marks."""
        piece = left // (PIECE // 2)
        text, strip = self._drawn(number, piece)
        shift = piece * (PIECE // 2)
        spans: list[tuple[int, int, str]] = []
        if self._hits is not None:
            hits = self._hits.pattern.finditer(text)
            spans += [(hit.start(), hit.end(), "hit") for hit in hits if hit.end() > hit.start()]
        name = self.marked_name() if marked and piece == 0 else None
        if name is not None:
            spans.append((name.start, name.end, "chosen"))
        for start, end, part in spans:
            strip = self._overlay(strip, columns(text[:start]), columns(text[:end]), part)
        block = self._folds.block(number) if number in self._folds else None
        if block is not None:
            hidden = Segment(f"  … {block[1] - block[0]} lines", self._style("fold"))
            strip = Strip([*strip, hidden])
        return strip.crop(left - shift, right - shift)

    def _overlay(self, strip: Strip, start: int, end: int, part: str) -> Strip:
        length = strip.cell_length
        cuts = [min(start, length), min(end, length), length]
        before, within, after = strip.divide(cuts)
        style = self._style(part)
        marked = [Segment(segment.text, (segment.style or RichStyle()) + style) for segment in within]
        return Strip([*before, *marked, *after])

    def _drawn(self, number: int, piece: int) -> tuple[str, Strip]:
        """A piece of a line, made safe and coloured."""
        drawn = self._strips.get((number, piece))
        if drawn is None:
            begin = piece * (PIECE // 2)
            text = safe(self._document.line(number)[begin : begin + PIECE])
            language = self._document.language
            if language is None:
                segments = [Segment(text)]
            else:
                segments = [Segment(span.text, self._style(span.kind)) for span in lex(text, language)]
            drawn = self._strips[number, piece] = (text, Strip(segments, columns(text)))
        return drawn

    # -- keys -------------------------------------------------------------------------------------------------

    def on_resize(self) -> None:
        self._resize()
        self._reveal(center=True)

    def action_move(self, step: int) -> None:
        """Moves the cursor one line up or down."""
        rows = self._document.line_count - self._folds.hidden
        row = max(0, min(self._folds.row(self._cursor) + step, rows - 1))
        self.go(self._folds.line(row))

    def action_page(self, step: int) -> None:
        """Moves the cursor a page up or down."""
        height = max(1, self.scrollable_content_region.height)
        page = max(1, height - 2)
        self.scroll_to(y=round(self.scroll_y) + step * page, animate=False, force=True)
        self.action_move(step * page)

    def action_edge(self, step: int) -> None:
        """Moves the cursor to the first or the last line."""
        self.go(0 if step < 0 else self._document.line_count - 1, center=True)

    def action_sideways(self, step: int) -> None:
        """Scrolls long lines."""
        self.scroll_to(x=max(0, round(self.scroll_x) + step * SIDEWAYS), animate=False, force=True)

    def reveal_offset(self, offset: int) -> None:
        """Brings the character at an offset of the text into view, horizontally too."""
        raw = self._document.line(self._cursor)
        within = max(0, offset - self._document.offset(self._cursor))
        at = within if within > PIECE else column(raw, within)
        self.reveal_columns(at, at + 8)

    def reveal_columns(self, start: int, end: int) -> None:
        """Scrolls horizontally until these columns are in view."""
        room = max(1, self.scrollable_content_region.width - self.number_width)
        left = round(self.scroll_x)
        if end > left + room:
            self.scroll_to(x=max(0, min(start, end - room + 4)), animate=False, force=True)
        elif start < left:
            self.scroll_to(x=0 if end < room else start, animate=False, force=True)

    # -- mouse ------------------------------------------------------------------------------------------------

    def line_at(self, event: events.MouseEvent) -> tuple[int, int] | None:
        """The line and column under the mouse; the column is negative over the line numbers."""
        offset = event.get_content_offset(self)
        if offset is None:
            return None
        row = offset.y + round(self.scroll_y)
        if row >= self._document.line_count - self._folds.hidden:
            return None
        within: int = offset.x - self.number_width
        return self._folds.line(row), within if within < 0 else within + round(self.scroll_x)

    def on_click(self, event: events.Click) -> None:
        under_mouse = self.line_at(event)
        if under_mouse is not None and under_mouse[0] != self._cursor:
            self.go(under_mouse[0])
