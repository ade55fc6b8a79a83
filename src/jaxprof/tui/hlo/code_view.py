"""A text of any size, drawn line by line as it comes into view: coloured, and with search matches marked. Keys go from
a name to its definition and its users, and back.

Textual's own text area takes 20 s for 200 000 lines. This list slices, makes safe and colours only the lines that are
shown. Every line is made safe before it is drawn; markup is never parsed. Where a line goes on beyond the edge, an
ellipsis stands.
"""

from __future__ import annotations

import re

from textual.content import Content, Span

from jaxprof.hlo.shape import DTYPE_BITS
from jaxprof.text import safe
from jaxprof.tui.hlo.document import Document, Hits, HloDocument
from jaxprof.tui.kit.dialogs import Choose, Option
from jaxprof.tui.kit.row_list import RowList

_HALF = 4096
"""Half of the characters of a line that are coloured at once: longer lines, such as a literal of megabytes, are drawn
in pieces that overlap by half."""
_AHEAD = 256
"""Characters beyond the edge that are coloured too, so that what is cut there has its colour."""
_SIDEWAYS = 16
_DTYPES = rf"(?:{'|'.join(DTYPE_BITS)}|i\d+|u?int\d+|b?float\d+|complex\d+|bool|key<\w+>|Ref(?:<\w+>)?)"
_STYLES = (
    ("$code-comment italic", r"//.*|/\*.*?(?:\*/|$)|#\s.*"),
    ("$code-string", r"\"(?:[^\"\\]|\\.)*+\"?|'(?:[^'\\]|\\.)*+'"),
    ("bold $code-keyword", r"\b(?:HloModule|ENTRY|ROOT|module|func\.func|public|private|return|attributes|dense|let|in|"
     r"lambda|None|[Tt]rue|[Ff]alse|nan|inf)\b|^(?:FileNames|FunctionNames|FileLocations|StackFrames)\b"),
    ("$phase-lower", rf"\b{_DTYPES}\[[^\[\]]*\]|\b(?:tensor|memref|vector|tuple|complex)<[^<>]*(?:<[^<>]*>[^<>]*)*>"),
    ("$code-comment", r"(?<=\])\{[^{}\"=]*\}"),
    ("$code-name", r"[%@^][\w.$\-#]+|#\w+|\b[A-Za-z_][\w.\-]*(?= =)"),
    ("$code-keyword", r"\b[A-Za-z_][\w.\-]*(?==)"),
    ("bold $code-name", r"(?<=[\])}] )[a-z][\w\-]*(?=\()|\b(?:stablehlo|mhlo|chlo|sdy)\.\w+|(?<== )[a-z_][\w.\-]*"),
    ("$code-number", r"(?<![\w.%@#])-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])"),
    ("", r"[A-Za-z_][\w.\-]*"),
    ("$quiet", r"(?:->|<=|[=(){}\[\],:;<>])+"),
)  # fmt: skip
"""Styles of comments, strings, keywords, shapes, layouts, names, attributes, opcodes, numbers, other words and
punctuation of HLO, MLIR and jaxprs, each with its pattern; the first one that matches wins. They serve display only."""
_PATTERN = re.compile("|".join(f"({pattern})" for _, pattern in _STYLES))

LINE_SHOWN = 400
"""Characters shown of a line that can be chosen."""


def coloured(line: str) -> Content:
    """Return a line of a program, made safe, in colours."""
    text = safe(line)
    found = ((match, _STYLES[(match.lastindex or 1) - 1][0]) for match in _PATTERN.finditer(text))
    return Content(text, [Span(*match.span(), style) for match, style in found if style])


class CodeView(RowList, keys="text"):
    """Shows one document at a time, with a cursor on a line."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.document = Document("")
        """The document that is shown."""
        self._left = 0
        """Number of characters that are out of view on the left."""
        self._hits: Hits | None = None
        self.history: list[int] = []
        """The lines of this document that the reader went on from, the last one last."""

    # -- what is shown ----------------------------------------------------------------------------------------

    def show(self, document: Document) -> None:
        """Show another document, at the line where the reader last left it."""
        if document is self.document:
            return
        self.document.left_at, line = self.cursor, document.left_at
        self.document, self._hits = document, None
        self.history.clear()
        self.set_keys(range(document.line_count))
        self.go(line)

    def show_hits(self, hits: Hits | None) -> None:
        """Mark the matches of a search; None marks nothing."""
        self._hits = hits
        self.refresh()

    def go(self, line: int) -> None:
        """Move the cursor to a line, and bring the beginning of the line into view."""
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
        return len(str(self.document.line_count)) + 2

    @property
    def _room(self) -> int:
        """Columns for the text of a line."""
        return max(1, self.scrollable_content_region.width - self._gutter)

    def draw_row(self, index: int, width: int) -> Content:
        begin, room = self._left // _HALF * _HALF, max(1, width - self._gutter)
        line = self.document.line(index)[begin : begin + 2 * _HALF]
        shown = line[: self._left - begin + room + _AHEAD]
        text = coloured(shown) if self.document.is_program else Content(safe(shown))
        if self._hits is not None:
            for hit in self._hits.pattern.finditer(safe(line)):
                text = text.stylize("$background on $accent", hit.start(), hit.end())
        text = text[self._left - begin : self._left - begin + room + 1]
        if self._left and text.plain:
            text = Content("…") + text[1:]
        mark = "▸" if index == self.cursor else " "
        number = Content.styled(f"{index + 1:>{self._gutter - 2}}{mark} ", "$quiet")
        return number + text.truncate(room, ellipsis=True)

    # -- from side to side ------------------------------------------------------------------------------------

    def action_sideways(self, step: int) -> None:
        top = round(self.scroll_y)
        longest = max(len(self.document.line(line)) for line in range(top, top + max(1, self.size.height)))
        self._shift(min(self._left + step * _SIDEWAYS, max(self._left, longest - self._room + 1)))

    def _shift(self, left: int) -> None:
        if max(0, left) != self._left:
            self._left = max(0, left)
            self.refresh()

    def reveal_offset(self, offset: int) -> None:
        """Bring the character at an offset of the text into view, from side to side too."""
        at = max(0, offset - self.document.offset(self.cursor))
        if at + 8 >= self._left + self._room:
            self._shift(min(at, at + 12 - self._room))
        elif at <= self._left:
            self._shift(0 if at + 8 < self._room else at - 1)

    # -- names and places -------------------------------------------------------------------------------------

    def jump(self, line: int) -> None:
        """Go to a line, and remember this place in the history."""
        self.remember()
        self.go(line)

    def remember(self) -> None:
        """Remember this place in the history."""
        self.history.append(self.cursor)

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Dim the way along names in a text without them."""
        if action == "follow" and not isinstance(self.document, HloDocument):
            return ""
        return super().why_not(action, parameters)

    def action_follow(self) -> None:
        """Go to the definition of what the line refers to, or ask to which of several."""
        document = self.document
        targets = document.targets(self.cursor) if isinstance(document, HloDocument) else {}
        lines = list(targets.values())
        if len(lines) == 1:
            self.jump(lines[0])
        elif lines:
            options = [Option(name, document.line(line).strip()[:LINE_SHOWN]) for name, line in targets.items()]
            Choose("Go to", options).ask(self.app, lambda at: self.jump(lines[at]))
        else:
            self.say("this line refers to nothing in this text", timeout=3)

    def action_copy(self) -> None:
        shown = safe(self.document.line(self.cursor).strip())
        self.copy(shown, f"{len(shown)} characters")

    def action_choose(self) -> None:
        """Follow the line of a double click."""
        self.action_follow()
