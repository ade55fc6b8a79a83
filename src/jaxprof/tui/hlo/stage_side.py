"""The texts of a program, stage by stage, with a search line below, and the source of the line at the cursor.

A text is of any size, drawn line by line as it comes into view: coloured, and with search matches marked. Textual's own
text area takes 20 s for 200 000 lines. This list slices, makes safe and colours only what is shown. Every line is made
safe before it is drawn; markup is never parsed. Where a line goes on beyond the edge, an ellipsis stands. Enter goes
from a name to its definition.
"""

from __future__ import annotations

import re

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content, Span

from jaxprof.base.errors import UsageError
from jaxprof.base.text import safe
from jaxprof.base.units import integer
from jaxprof.hlo.shape import DTYPE_BITS
from jaxprof.hlo.stages import STAGES
from jaxprof.tui.hlo.modules import Document, Hits, HloDocument, OpenedModule, search
from jaxprof.tui.kit.dialogs import Choose, Option
from jaxprof.tui.kit.filter import FilterLine, compile_pattern, following
from jaxprof.tui.kit.guard import Guarded, in_thread, on
from jaxprof.tui.kit.picture import Lines, show_titles
from jaxprof.tui.kit.python_source import source_facts
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
    ("$code-string", r"\"[^\"\\]*+(?:\\.[^\"\\]*+)*\"?|'[^'\\]*+(?:\\.[^'\\]*+)*'"),
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


def colour_line(line: str) -> Content:
    text = safe(line)
    found = ((match, _STYLES[(match.lastindex or 1) - 1][0]) for match in _PATTERN.finditer(text))
    return Content(text, [Span(*match.span(), style) for match, style in found if style])


class CodeView(RowList[int], keys="text"):
    def __init__(self) -> None:
        super().__init__(id="code")
        self.document = Document("")
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
        self._hits = hits
        self.refresh()

    def go(self, line: int) -> None:
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
        return len(str(self.document.line_count)) + 2

    @property
    def _room(self) -> int:
        return max(1, self.scrollable_content_region.width - self._gutter)

    def draw_row(self, index: int, width: int) -> Content:
        begin, room = self._left // _HALF * _HALF, max(1, width - self._gutter)
        line = self.document.line(index)[begin : begin + 2 * _HALF]
        shown = line[: self._left - begin + room + _AHEAD]
        text = colour_line(shown) if self.document.is_program else Content(safe(shown))
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
        at = max(0, offset - self.document.offset(self.cursor))
        if at + 8 >= self._left + self._room:
            self._shift(min(at, at + 12 - self._room))
        elif at <= self._left:
            self._shift(0 if at + 8 < self._room else at - 1)

    # -- names and positions -------------------------------------------------------------------------------------

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        if action == "choose" and not isinstance(self.document, HloDocument):
            return ""
        return super().why_not(action, parameters)

    def action_choose(self) -> None:
        document = self.document
        targets = document.targets(self.cursor) if isinstance(document, HloDocument) else {}
        lines = list(targets.values())

        def take(number: int) -> None:
            self.history.append(self.cursor)
            self.go(lines[number])

        if len(lines) == 1:
            take(0)
        elif lines:
            options = [Option(name, document.line(line).strip()[:LINE_SHOWN]) for name, line in targets.items()]
            Choose("Go to", options).ask(self.app, take)
        else:
            self.say("this line refers to nothing in this text", timeout=3)

    def action_copy(self) -> None:
        shown = safe(self.document.line(self.cursor).strip())
        self.copy(shown, f"{len(shown)} characters")


# -- the pane -------------------------------------------------------------------------------------------------

TITLES = {stage.name: stage.title for stage in STAGES}


class StageSide(Guarded, Vertical, keys="text_pane"):
    """Shows one stage at a time, with its search and the origin of the line at the cursor."""

    _opened: OpenedModule | None = None
    stage = "hlo"
    hits: Hits | None = None
    """The matches of the last search; None until it is over."""
    count = ""
    """The number of matches and the index of the one in view, or the error in the regular expression."""
    _hit_index: int | None = None
    _search_start = 0
    _wanted: object = None

    def compose(self) -> ComposeResult:
        with Vertical(id="text-box", classes="box"):
            yield FilterLine(placeholder="regular expression")
            yield CodeView()
        with Vertical(id="origin-box", classes="box") as box:
            box.border_title = "Comes from"
            yield Lines(id="origin")

    # -- what is shown ----------------------------------------------------------------------------------------

    @property
    def view(self) -> CodeView:
        return self.query_one(CodeView)

    def show_program(self, opened: OpenedModule | None) -> None:
        self._opened = opened
        self.show_stage(self.stage)

    def show_stage(self, stage: str) -> None:
        """Show a stage, from its entry computation on (it begins with tables), or why it cannot be shown."""
        self.stage, opened = stage, self._opened
        document = opened.stages.get(stage) if opened is not None else None
        if document is None and opened is not None:
            error, reading = opened.errors.get(stage), stage in opened.program.stages and not opened.over
            why = "reading…" if reading else f"{TITLES[stage]} was not recorded for this program."
            document = Document(str(error) if error is not None else why)
        self.show_document(document or Document(""))
        if isinstance(document, HloDocument) and opened is not None and not self.view.cursor:
            module = opened.module if stage == "hlo" else document.modules[0]
            line = document.line_of(module.entry) if module is not None and module.entry is not None else None
            self.view.go(line or 0)
        title = f"{opened.program.title} · {TITLES[stage]}" if opened is not None else ""
        show_titles(self.query_one("#text-box"), Content(safe(title)))
        self._show_origin()

    def show_document(self, document: Document) -> None:
        """Show a document; an open search continues in it."""
        fresh = document is not self.view.document
        self.view.show(document)
        line = self.query_one(FilterLine)
        if fresh and line.display and line.value:
            self._search(line.value, jump=False)
        self._show_count()

    def go_to_kernel(self, computation: str, name: str) -> bool:
        line = self._opened.kernel_line(computation, name) if self._opened is not None else None
        if line is not None:
            if self.stage != "hlo":
                self.show_stage("hlo")
            self.view.go(line)
        return line is not None

    def action_history(self) -> None:
        if self.view.history:
            self.view.go(self.view.history.pop())
        else:
            self.say("nothing to go back to", timeout=3)

    def kernel_at_cursor(self) -> tuple[str, str] | None:
        document = self.view.document
        if self.stage != "hlo" or not isinstance(document, HloDocument):
            return None
        instruction = document.instruction(self.view.cursor)
        return (instruction.computation.name, instruction.name) if instruction is not None else None

    # -- searching --------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        self._search_start = self.view.document.offset(self.view.cursor)
        self.query_one(FilterLine).open()

    def on_filter_line_edited(self, message: FilterLine.Edited) -> None:
        message.stop()
        self._search(message.text, jump=True)

    def on_filter_line_left(self, message: FilterLine.Left) -> None:
        message.stop()
        self.view.focus()

    def _search(self, text: str, *, jump: bool) -> None:
        """Search in a thread; with `jump`, move the cursor to the first match from where the search began."""
        self.hits, self._hit_index = None, None
        wanted = self._wanted = object()
        self.view.show_hits(None)
        self._show_count("…" if text else "")
        if not text:
            return
        try:
            pattern = compile_pattern(text)
        except UsageError as error:
            self._show_count(error.what)
            return
        body = self.view.document.source.text
        in_thread(
            self,
            lambda: search(body, pattern, lambda: wanted is self._wanted and self.is_running),
            "search",
            then=lambda hits: self._take(wanted, hits, jump),
        )

    def _take(self, wanted: object, hits: Hits | None, jump: bool) -> None:
        if hits is None or wanted is not self._wanted:
            return  # another search has begun
        self.hits = hits
        self.view.show_hits(hits)
        self._show_hit(hits, following(hits.offsets, self._search_start - 1, 1) if jump else None)

    def _show_hit(self, hits: Hits, index: int | None) -> None:
        if index is not None:
            self._hit_index = index
            self.view.go(self.view.document.number(hits.offsets[index]))
            self.view.reveal_offset(hits.offsets[index])
        self._show_count(hits.words(index))

    def action_next(self, step: int) -> None:
        hits, document, cursor = self.hits, self.view.document, self.view.cursor
        if hits is None:
            self.action_search()
            return
        at = hits.offsets[self._hit_index] if self._hit_index is not None else -1
        if at < 0 or document.number(at) != cursor:  # the cursor has left the match
            at = document.offset(cursor) - (step > 0)
        self.view.history.append(cursor)
        self._show_hit(hits, following(hits.offsets, at, step))

    def _show_count(self, text: str | None = None) -> None:
        self.count, document = self.count if text is None else text, self.view.document
        at = f"{integer(self.view.cursor + 1)} of {integer(document.line_count)}" if document.source.text else ""
        words = Content(safe(" · ".join(filter(None, (self.count, at)))))
        show_titles(self.query_one("#text-box"), subtitle=words)

    # -- where a line came from --------------------------------------------------------------------------------

    @on(RowList.Highlighted, "#code")
    def _line_in_view(self) -> None:
        self._show_count()
        self._show_origin()

    def _show_origin(self) -> None:
        opened, document, line = self._opened, self.view.document, self.view.cursor
        facts = self.query_one("#origin", Lines)
        if opened is None or document is not opened.stages.get(self.stage):
            facts.clear()
            return
        origin, around = document.origin(line), 1 if self.size.height >= 30 else 0

        def draw(width: int) -> list[Content]:
            if origin is None:
                return [Content.styled("This line has no source location.", "$quiet")]
            lines: list[Content] = []
            if origin.location is not None:
                lines += source_facts(
                    origin.location, width, opened.program.sources, around=around, library=origin.library
                )
            if origin.op_name:
                names = Content.styled(safe(origin.op_name), "$text-muted")
                if lines and lines[0].cell_length + names.cell_length + 3 <= width:
                    lines[0] = Content.assemble(lines[0], "   ", names)
                else:
                    lines.append(names)
            return [line.truncate(width, ellipsis=True) for line in lines]

        facts.show(draw)

    def on_resize(self) -> None:
        self._show_origin()
