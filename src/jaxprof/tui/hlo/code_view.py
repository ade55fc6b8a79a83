"""A text of any size, drawn line by line as it comes into view: coloured, and with search matches marked. Keys go from
a name to its definition and its users, and back.

Textual's own text area takes 20 s for 200 000 lines. This list slices, makes safe and colours only the lines that are
shown. Every line is made safe before it is drawn; markup is never parsed. Where a line goes on beyond the edge, an
ellipsis stands.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from textual import events
from textual.cache import LRUCache
from textual.content import Content
from textual.strip import Strip

from jaxprof.hlo.read.lexer import Language, SpanKind, TextSpan, lex
from jaxprof.text import columns, safe
from jaxprof.tui.hlo.document import Document, Hits, Name
from jaxprof.tui.kit.dialogs import Choose, Option
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.threads import in_thread

_HALF = 4096
"""Half of the characters of a line that are coloured at once: longer lines, such as a literal of megabytes, are drawn
in pieces that overlap by half."""
_KEPT = 4096
"""Number of drawn lines in the cache."""
_SIDEWAYS = 16
_MOST_PLACES = 200
"""Number of places that the history keeps."""
_STYLES = {
    SpanKind.COMMENT: "$code-comment italic",
    SpanKind.STRING: "$code-string",
    SpanKind.NUMBER: "$code-number",
    SpanKind.NAME: "$code-name",
    SpanKind.SHAPE: "$phase-lower",
    SpanKind.LAYOUT: "$code-comment",
    SpanKind.OPCODE: "bold $code-name",
    SpanKind.KEYWORD: "bold $code-keyword",
    SpanKind.ATTRIBUTE: "$code-keyword",
    SpanKind.PUNCTUATION: "$quiet",
}

LINE_SHOWN = 400
"""Characters shown of a line that can be chosen."""


def coloured(line: str, language: Language | None) -> Content:
    """Return a line, made safe, in the colours of its language."""
    spans = lex(safe(line), language) if language is not None else [TextSpan(SpanKind.TEXT, safe(line))]
    return Content.assemble(*((span.text, _STYLES.get(span.kind, "")) for span in spans))


class CodeView(RowList, keys="text"):
    """Shows one document at a time, with a cursor on a line, which can also choose a name of its line."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._document = Document("")
        self._left = 0
        """Number of characters that are out of view on the left."""
        self._hits: Hits | None = None
        self._chosen = (-1, -1)
        """The line of the chosen name, and the index of the name in that line."""
        self._positions: LRUCache[int, tuple[Document, int]] = LRUCache(16)
        self._strips: LRUCache[tuple[int, int, int], Strip] = LRUCache(_KEPT)
        """Drawn lines without the cursor, by line, characters on the left, and width."""
        self.history: list[tuple[Document, int]] = []
        """The documents and lines that the reader went on from, the last one last."""

    # -- what is shown ----------------------------------------------------------------------------------------

    @property
    def document(self) -> Document:
        """The document that is shown."""
        return self._document

    def show(self, document: Document) -> None:
        """Show another document, at the line where the reader last left it."""
        if document is self._document:
            return
        self._positions[id(self._document)] = (self._document, self.cursor)
        _, line = self._positions.get(id(document)) or (document, 0)
        self._document, self._hits, self._chosen = document, None, (-1, -1)
        self._strips.clear()
        self.set_keys(range(document.line_count))
        self.go(line)

    def show_hits(self, hits: Hits | None) -> None:
        """Mark the matches of a search; None marks nothing."""
        self._hits = hits
        self._strips.clear()
        self.refresh()

    def go(self, line: int) -> None:
        """Move the cursor to a line, and bring the beginning of the line into view."""
        self._chosen = (-1, -1)
        self._shift(0)
        self.move_to(line)

    def _bring_into_view(self) -> None:
        """Scroll by a line when the cursor steps over the edge; show a line that is farther away in the upper third."""
        top, height = round(self.scroll_y), self.scrollable_content_region.height
        beyond = max(top - self.cursor, self.cursor - (top + height - 1))
        if height and beyond > 1:
            self.scroll_to(y=max(0, self.cursor - height // 3), animate=False, force=True)
        elif height:
            super()._bring_into_view()

    # -- drawing ----------------------------------------------------------------------------------------------

    @property
    def _gutter(self) -> int:
        """Columns that the line numbers take."""
        return len(str(self._document.line_count)) + 2

    @property
    def _room(self) -> int:
        """Columns for the text of a line."""
        return max(1, self.scrollable_content_region.width - self._gutter)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        line = y + round(self.scroll_y)
        if line == self.cursor:
            return super().render_line(y)
        key = (line, self._left, self.size.width)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._strips[key] = super().render_line(y)
        return strip

    def draw_row(self, index: int, width: int) -> Content:
        begin = self._left // _HALF * _HALF
        text = coloured(self._document.line(index)[begin : begin + 2 * _HALF], self._document.language)
        if self._hits is not None:
            for hit in self._hits.pattern.finditer(text.plain):
                text = text.stylize("$background on $accent", hit.start(), hit.end())
        name = self._chosen_in(index)
        if name is not None and not begin:
            text = text.stylize("bold underline reverse", name.start, name.end)
        room = max(1, width - self._gutter)
        text = text[self._left - begin : self._left - begin + room + 1]
        if self._left and text.plain:
            text = Content("…") + text[1:]
        mark = "▸" if index == self.cursor else " "
        number = Content.styled(f"{index + 1:>{self._gutter - 2}}{mark} ", "$quiet")
        return number + text.truncate(room, ellipsis=True)

    # -- from side to side ------------------------------------------------------------------------------------

    def action_sideways(self, step: int) -> None:
        top = round(self.scroll_y)
        longest = max(len(self._document.line(line)) for line in range(top, top + max(1, self.size.height)))
        self._shift(min(self._left + step * _SIDEWAYS, max(self._left, longest - self._room + 1)))

    def _shift(self, left: int) -> None:
        if max(0, left) != self._left:
            self._left = max(0, left)
            self.refresh()

    def reveal_offset(self, offset: int) -> None:
        """Bring the character at an offset of the text into view, from side to side too."""
        at = max(0, offset - self._document.offset(self.cursor))
        self._reveal(at, at + 8)

    def _reveal(self, start: int, end: int) -> None:
        """Scroll from side to side until these characters are in view."""
        if end >= self._left + self._room:
            self._shift(min(start, end - self._room + 4))
        elif start <= self._left:
            self._shift(0 if end < self._room else start - 1)

    # -- names and places -------------------------------------------------------------------------------------

    def jump(self, line: int) -> None:
        """Go to a line, and remember this place in the history."""
        self.remember()
        self.go(line)

    def remember(self) -> None:
        """Remember this place in the history."""
        self.history.append((self.document, self.cursor))
        del self.history[:-_MOST_PLACES]

    def forget(self) -> None:
        """Forget the history and where documents were left, because other documents will be shown."""
        self.history.clear()
        self._positions.clear()

    @property
    def chosen_name(self) -> str:
        """The chosen name in the cursor's line; empty for none."""
        name = self._chosen_in(self.cursor)
        return name.text if name is not None else ""

    def _chosen_in(self, line: int) -> Name | None:
        at, number = self._chosen
        return self._names(line)[number] if at == line and number >= 0 else None

    def _names(self, line: int) -> Sequence[Name]:
        navigation = self.document.navigation
        return navigation.names(safe(self.document.line(line)[: 2 * _HALF])) if navigation is not None else ()

    def action_name(self, step: int) -> None:
        names, at = self._names(self.cursor), self._chosen[1] if self._chosen[0] == self.cursor else -1
        if not names or (at < 0 and step < 0):
            self.action_sideways(step)
            return
        at = max(-1, min(at + step, len(names) - 1))
        self._chosen = (self.cursor, at)
        self.refresh_row(self.cursor)
        if at >= 0:
            self._reveal(names[at].start, names[at].end)

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
            self.say(f"{name} is not defined in this text" if name else "no name in this line", timeout=3)
        else:
            self.jump(line)

    def action_users(self) -> None:
        navigation = self.document.navigation
        if navigation is None:
            return
        document, line = self.document, self.cursor
        name = self.chosen_name or navigation.defined_name(line)
        if name:
            go_to_user = partial(self._go_to_user, document, name)
            in_thread(self, lambda: navigation.users(name, line), "users", then=go_to_user)
        else:
            self.say("this line defines no name", timeout=3)

    def _go_to_user(self, document: Document, name: str, lines: Sequence[int]) -> None:
        if document is not self.document:
            return
        if not lines:
            self.say(f"nothing uses {name}", timeout=3)
        elif len(lines) == 1:
            self.jump(lines[0])
        else:
            options = [Option(str(line + 1), document.line(line).strip()[:LINE_SHOWN]) for line in lines]
            Choose(f"{len(lines)} users of {name}", options).ask(self.app, lambda at: self.jump(lines[at]))

    def action_copy(self) -> None:
        navigation = self.document.navigation
        text = navigation.statement(self.cursor) if navigation is not None else ""
        text = text or self.document.line(self.cursor)
        shown = "\n".join(safe(line) for line in text.strip().split("\n"))
        self.copy(shown, f"{len(shown)} characters")

    def on_click(self, event: events.Click) -> None:
        """Choose the name under the mouse; a double click follows it."""
        event.prevent_default()  # else `RowList` handles the click
        line, offset = self._row_at(event), event.get_content_offset(self)
        if line < 0 or offset is None:
            return
        self.move_to(line)
        shown = safe(self.document.line(line)[: 2 * _HALF])[self._left : self._left + self._room]
        at = self._left + bisect_right([*accumulate(map(columns, shown))], offset.x - self._gutter)
        under = (number for number, name in enumerate(self._names(line)) if name.start <= at < name.end)
        self._chosen = (line, next(under, -1))
        self.refresh_row(line)
        if event.chain == 2 and self.chosen_name:
            self.action_follow()
