"""The texts of a program, stage by stage, with a search line below, and the source of the line at the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.content import Content

from jaxprof.errors import UsageError
from jaxprof.hlo.open.stages import STAGES
from jaxprof.text import safe
from jaxprof.tui.hlo.code_view import CodeView
from jaxprof.tui.hlo.document import Document, Hits, HloDocument, search
from jaxprof.tui.hlo.kernel_detail import source_facts
from jaxprof.tui.kit.filter import FilterLine, compiled, following
from jaxprof.tui.kit.guard import Guarded, in_thread, on
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.row_list import RowList
from jaxprof.units import integer

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.hlo.places import LineOrigin
    from jaxprof.tui.hlo.modules import OpenedModule


TITLES = {stage.name: stage.title for stage in STAGES}


class StageSide(Guarded, Vertical, keys="text_pane"):
    """Shows one stage at a time, with its search and the origin of the line at the cursor."""

    _opened: OpenedModule | None = None
    stage = "hlo"
    """The name of the stage in view."""
    hits: Hits | None = None
    """The matches of the last search; None until it is over."""
    count = ""
    """The number of matches and the index of the one in view, or the error in the regular expression."""
    _hit_index: int | None = None
    _search_start = 0
    _wanted: object = None
    """Identity of the last search."""

    def compose(self) -> ComposeResult:
        with Vertical(id="text-box", classes="box"):
            yield FilterLine(placeholder="regular expression")
            yield CodeView(id="code")
        with Vertical(id="origin-box", classes="box") as box:
            box.border_title = "Comes from"
            yield Lines(id="origin")

    # -- what is shown ----------------------------------------------------------------------------------------

    @property
    def view(self) -> CodeView:
        """The text."""
        return self.query_one(CodeView)

    def show_program(self, opened: OpenedModule | None) -> None:
        """Show another program, which may not have been read yet."""
        self._opened = opened
        self.show_stage(self.stage)

    def show_stage(self, stage: str) -> None:
        """Show a stage, or why it cannot be shown. A module is shown from its entry computation on: it begins with
        tables that few readers want."""
        self.stage, opened = stage, self._opened
        document = opened.stages.get(stage) if opened is not None else None
        self.show_document(document or Document(self._missing()))
        if isinstance(document, HloDocument) and opened is not None and not self.view.cursor:
            module = opened.module if stage == "hlo" else document.modules[0]
            line = document.line_of(module.entry) if module is not None and module.entry is not None else None
            self.view.go(line or 0)
        title = f"{opened.program.title} · {TITLES[stage]}" if opened is not None else ""
        self.query_one("#text-box").border_title = Content(safe(title))
        self._show_origin()

    def show_document(self, document: Document) -> None:
        """Show a document; an open search continues in it."""
        fresh = document is not self.view.document
        self.view.show(document)
        pattern = self.query_one(FilterLine).value
        if fresh and self.searching and pattern:
            self._search(pattern, jump=False)
        self._show_count()

    def _missing(self) -> str:
        opened = self._opened
        if opened is None:
            return ""
        error = opened.errors.get(self.stage)
        if error is not None:
            return str(error)
        if self.stage in opened.program.stages and not opened.over:
            return "reading…"
        return f"{TITLES[self.stage]} was not recorded for this program."

    def go_to_kernel(self, computation: str, name: str) -> bool:
        """Show an instruction's line in the optimised HLO; return False if it has no line."""
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
            self.say("no place to go back to", timeout=3)

    def kernel_at_cursor(self) -> tuple[str, str] | None:
        """Return the instruction at the cursor, as computation and name; None unless the optimised HLO is in view."""
        document = self.view.document
        if self.stage != "hlo" or not isinstance(document, HloDocument):
            return None
        instruction = document.instruction(self.view.cursor)
        return (instruction.computation.name, instruction.name) if instruction is not None else None

    # -- searching --------------------------------------------------------------------------------------------

    @property
    def searching(self) -> bool:
        """Whether the search line is open."""
        return self.query_one(FilterLine).display

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
            pattern = compiled(text)
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
        self.view.remember()
        self._show_hit(hits, following(hits.offsets, at, step))

    def _show_count(self, text: str | None = None) -> None:
        """Show the number of matches, in other words if given, and the line of the cursor."""
        self.count, document = self.count if text is None else text, self.view.document
        at = f"{integer(self.view.cursor + 1)} of {integer(document.line_count)}" if document.source.text else ""
        self.query_one("#text-box").border_subtitle = Content(safe(" · ".join(filter(None, (self.count, at)))))

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
        facts.show(
            (id(document), line, around),
            lambda width: _origin_facts(origin, width, opened.program.recorded_seconds, around),
        )

    def on_resize(self) -> None:
        self._show_origin()


def _origin_facts(origin: LineOrigin | None, width: int, recorded_seconds: float | None, around: int) -> list[Content]:
    if origin is None:
        return [Content.styled("This line has no source location.", "$quiet")]
    facts: list[Content] = []
    if origin.place is not None:
        facts += source_facts(origin.place, width, recorded_seconds, around=around)
    if origin.op_name:
        names = Content.styled(safe(origin.op_name), "$text-muted")
        if facts and facts[0].cell_length + names.cell_length + 3 <= width:
            facts[0] = Content.assemble(facts[0], "   ", names)
        else:
            facts.append(names)
    return [fact.truncate(width, ellipsis=True) for fact in facts]
