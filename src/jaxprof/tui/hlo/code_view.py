"""A text of any size, drawn line by line as it comes into view: coloured, and with search matches marked. Keys go from
a name to its definition and its users, back and forward.

Textual's own text area takes 20 s for 200 000 lines. This view slices, makes safe and colours only the lines that are
shown, caches the drawn lines, and sends nothing while nothing changes. Every line is made safe before it is drawn;
markup is never parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from jaxprof.hlo.read.lexer import Language, SpanKind, lex
from jaxprof.text import columns, safe
from jaxprof.tui.hlo.document import Document, Name, column
from jaxprof.tui.hlo.text_search import Hits
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.threads import in_thread

PIECE = 8192
"""Characters of a line that are drawn at once. Longer lines (such as a literal of megabytes) are drawn in pieces."""
KEPT = 4096
"""Number of drawn lines in the cache."""
SIDEWAYS = 16
ABOVE = 3
"""Lines that stay in view above and below the cursor."""


READ_AT_ONCE = 20_000
"""Users of a name are searched at once in a text with fewer lines than this, else in a thread."""
MOST_PLACES = 200
"""Number of places that the history keeps."""

Place = tuple[Document, int]
"""A document and a line of it, as an entry of the history."""


class CodeView(Guarded, ScrollView, can_focus=True, keys="text"):
    """Shows one document at a time, with a cursor on a line, which can also choose a name of its line."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "text-view--cursor",
        "text-view--gutter",
        "text-view--hit",
        "text-view--chosen",
        *(f"text-view--{kind}" for kind in SpanKind),
    }

    class Moved(Message):
        """Posted when the cursor moves to another line, or another document is shown."""

    @dataclass
    class ManyUsers(Message):
        """Requests a choice among several users of a name."""

        view: CodeView
        name: str
        lines: list[int]

    def __init__(self, document: Document | None = None, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._document = document or Document("")
        self._cursor = 0
        self._hits: Hits | None = None
        self._positions: LRUCache[int, tuple[Document, int]] = LRUCache(16)
        self._strips: LRUCache[tuple[int, int], tuple[str, Strip]] = LRUCache(KEPT)
        self._part_styles: dict[str, RichStyle] = {}
        self._name_at = -1
        """Index of the chosen name in the line of the cursor; -1 for none."""
        self._back: list[Place] = []
        self._forward: list[Place] = []
        self.show_document: Callable[[Document], None] = self.show
        """Called when the history leads to another document; a screen with tabs assigns its own function."""

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
        """Show another document, at the line where the reader last left it."""
        if document is self._document:
            return
        self._positions[id(self._document)] = (self._document, self._cursor)
        _, self._cursor = self._positions.get(id(document)) or (document, 0)
        self._document = document
        self._hits = None
        self._name_at = -1
        self._strips.clear()
        self._resize()
        self.scroll_to(x=0, animate=False, force=True)
        self._reveal(center=True)
        self.refresh()
        self.post_message(self.Moved())

    def show_hits(self, hits: Hits | None) -> None:
        """Mark the matches of a search; None marks nothing."""
        self._hits = hits
        self.refresh()

    def go(self, line: int, *, center: bool = False) -> None:
        """Move the cursor to a line and bring it into view, near the centre with `center`."""
        line = max(0, min(line, self._document.line_count - 1))
        before, self._cursor = self._cursor, line
        self._name_at = -1
        self.refresh_line(before)
        self.refresh_line(line)
        self._reveal(center=center)
        if center and self.scroll_x:
            self.scroll_to(x=0, animate=False, force=True)
        if before != line:
            self.post_message(self.Moved())

    # -- measures ---------------------------------------------------------------------------------------------

    @property
    def number_width(self) -> int:
        """Columns that the line numbers take."""
        return len(str(self._document.line_count)) + 2

    def _resize(self) -> None:
        self.virtual_size = Size(self.number_width + self._document.widest + 1, self._document.line_count)

    def _reveal(self, *, center: bool = False) -> None:
        height = self.scrollable_content_region.height
        if height < 1:
            return  # not laid out yet: on_resize does it
        row, top = self._cursor, round(self.scroll_y)
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
        """Redraw a line if it is in view."""
        y = line - round(self.scroll_y)
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
        number = y + round(self.scroll_y)
        base = self._style("")
        if number >= self._document.line_count:
            return Strip.blank(width, base)
        on_cursor = number == self._cursor
        if on_cursor:
            base = base + self._style("cursor")
        room = max(0, width - self.number_width)
        left = round(self.scroll_x)
        body = self._body(number, left, left + room, marked=on_cursor)
        body = body.extend_cell_length(room).apply_style(base)
        return Strip.join([self._number(number, on_cursor).apply_style(base), body])

    def _number(self, number: int, on_cursor: bool) -> Strip:
        text = f"{number + 1:>{self.number_width - 2}}{'▸' if on_cursor else ' '} "
        return Strip([Segment(text, self._style("gutter"))], self.number_width)

    def _body(self, number: int, left: int, right: int, *, marked: bool) -> Strip:
        """Return the columns from `left` to `right` of a line, with its marks."""
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
        return strip.crop(left - shift, right - shift)

    def _overlay(self, strip: Strip, start: int, end: int, part: str) -> Strip:
        length = strip.cell_length
        cuts = [min(start, length), min(end, length), length]
        before, within, after = strip.divide(cuts)
        style = self._style(part)
        marked = [Segment(segment.text, (segment.style or RichStyle()) + style) for segment in within]
        return Strip([*before, *marked, *after])

    def _drawn(self, number: int, piece: int) -> tuple[str, Strip]:
        """Return a piece of a line, made safe and coloured."""
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
        self.go(self._cursor + step)

    def action_page(self, step: int) -> None:
        height = max(1, self.scrollable_content_region.height)
        page = max(1, height - 2)
        self.scroll_to(y=round(self.scroll_y) + step * page, animate=False, force=True)
        self.action_move(step * page)

    def action_edge(self, step: int) -> None:
        self.go(0 if step < 0 else self._document.line_count - 1, center=True)

    def action_sideways(self, step: int) -> None:
        self.scroll_to(x=max(0, round(self.scroll_x) + step * SIDEWAYS), animate=False, force=True)

    def reveal_offset(self, offset: int) -> None:
        """Bring the character at an offset of the text into view, horizontally too."""
        raw = self._document.line(self._cursor)
        within = max(0, offset - self._document.offset(self._cursor))
        at = within if within > PIECE else column(raw, within)
        self.reveal_columns(at, at + 8)

    def reveal_columns(self, start: int, end: int) -> None:
        """Scroll horizontally until these columns are in view."""
        room = max(1, self.scrollable_content_region.width - self.number_width)
        left = round(self.scroll_x)
        if end > left + room:
            self.scroll_to(x=max(0, min(start, end - room + 4)), animate=False, force=True)
        elif start < left:
            self.scroll_to(x=0 if end < room else start, animate=False, force=True)

    # -- mouse ------------------------------------------------------------------------------------------------

    def line_at(self, event: events.MouseEvent) -> tuple[int, int] | None:
        """Return the line and column under the mouse; the column is negative over the line numbers."""
        offset = event.get_content_offset(self)
        if offset is None:
            return None
        line = offset.y + round(self.scroll_y)
        if line >= self._document.line_count:
            return None
        within: int = offset.x - self.number_width
        return line, within if within < 0 else within + round(self.scroll_x)

    # -- names and places -------------------------------------------------------------------------------------

    def jump(self, line: int) -> None:
        """Go to a line, and remember this place in the history."""
        self.remember()
        self.go(line, center=True)

    def remember(self) -> None:
        """Remember this place in the history."""
        self._back.append((self.document, self.cursor))
        del self._back[:-MOST_PLACES]
        self._forward.clear()

    @property
    def chosen_name(self) -> str:
        """The chosen name in the cursor's line; empty for none."""
        name = self.marked_name()
        return name.text if name is not None else ""

    def marked_name(self) -> Name | None:
        """Return the chosen name in the cursor's line; None without one."""
        names = self._names()
        return names[self._name_at] if 0 <= self._name_at < len(names) else None

    def _names(self) -> list[Name]:
        navigation = self.document.navigation
        line = safe(self.document.line(self.cursor)[:PIECE])
        return list(navigation.names(line)) if navigation is not None else []

    def action_name(self, step: int) -> None:
        names = self._names()
        if not names:
            self.action_sideways(step)
            return
        if self._name_at < 0 and step < 0:
            self.action_sideways(step)
            return
        self._name_at = max(-1, min(self._name_at + step, len(names) - 1))
        self.refresh_line(self.cursor)
        if self._name_at >= 0:
            name = names[self._name_at]
            line = safe(self.document.line(self.cursor)[:PIECE])
            self.reveal_columns(columns(line[: name.start]), columns(line[: name.end]))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim the ways along names in a text without them."""
        if action in ("follow", "users"):
            return True if self.document.navigation is not None else None
        return super().check_action(action, parameters)

    def action_follow(self) -> None:
        navigation = self.document.navigation
        if navigation is None:
            return
        chosen = self.chosen_name
        if chosen and chosen.lstrip("%") == navigation.defined_name(self.cursor).lstrip("%"):
            self.action_users()
            return
        name = chosen or navigation.main_name(self.cursor)
        line = navigation.definition(name, self.cursor) if name else None
        if line is None:
            self._notify_briefly(f"{name} is not defined in this text" if name else "no name in this line")
        else:
            self.jump(line)

    def action_users(self) -> None:
        navigation = self.document.navigation
        if navigation is None:
            return
        document, line = self.document, self.cursor
        name = self.chosen_name or navigation.defined_name(line)
        if not name:
            self._notify_briefly("this line defines no name")
        elif document.line_count < READ_AT_ONCE:
            self._go_to_user(document, name, navigation.users(name, line))
        else:
            go_to_user = partial(self._go_to_user, document, name)
            in_thread(self, lambda: navigation.users(name, line), "users", then=go_to_user)

    def _go_to_user(self, document: Document, name: str, lines: Sequence[int]) -> None:
        if document is not self.document:
            return
        if not lines:
            self._notify_briefly(f"nothing uses {name}")
        elif len(lines) == 1:
            self.jump(lines[0])
        else:
            self.post_message(self.ManyUsers(self, name, list(lines)))

    def action_history(self, step: int) -> None:
        source, target = (self._back, self._forward) if step < 0 else (self._forward, self._back)
        if not source:
            self._notify_briefly("no place to go back to" if step < 0 else "no place to go forward to")
            return
        target.append((self.document, self.cursor))
        document, line = source.pop()
        if document is not self.document:
            self.show_document(document)
        self.go(line, center=True)

    def forget(self) -> None:
        """Forget the history and where documents were left, because other documents will be shown."""
        self._back.clear()
        self._forward.clear()
        self._positions.clear()

    def action_short(self) -> None:
        """Hide metadata and the backend's configuration of all lines, or show them again."""
        if self.document.language is not Language.HLO:
            self._notify_briefly("only HLO has details to hide")
            return
        self.document.short = not self.document.short
        self._name_at = -1
        self._strips.clear()
        self.refresh()

    def action_copy(self) -> None:
        navigation = self.document.navigation
        text = navigation.statement(self.cursor) if navigation is not None else ""
        text = text or self.document.line(self.cursor)
        shown = "\n".join(safe(line) for line in text.strip().split("\n"))
        self.app.copy_to_clipboard(shown)
        self._notify_briefly(f"copied {len(shown)} characters")

    def _notify_briefly(self, text: str) -> None:
        self.say(text, timeout=3)

    def on_click(self, event: events.Click) -> None:
        under_mouse = self.line_at(event)
        if under_mouse is None:
            return
        line, at = under_mouse
        if line != self.cursor:
            self.go(line)
        if at < 0:
            return
        text = safe(self.document.line(line)[:PIECE])
        under = (
            number
            for number, name in enumerate(self._names())
            if columns(text[: name.start]) <= at < columns(text[: name.end])
        )
        self._name_at = next(under, -1)
        self.refresh_line(line)
        if event.chain == 2 and self._name_at >= 0:
            self.action_follow()
