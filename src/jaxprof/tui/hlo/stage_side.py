"""The texts of a program, stage by stage, with a search line below, and the source of the line at the cursor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from jaxprof.errors import UsageError
from jaxprof.hlo.open.stages import STAGES
from jaxprof.text import safe
from jaxprof.tui.hlo.code_view import CodeView
from jaxprof.tui.hlo.document import Document
from jaxprof.tui.hlo.kernel_detail import source_facts
from jaxprof.tui.hlo.text_search import Hits, search
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.fact_list import FactLine, FactList
from jaxprof.tui.kit.filter import FilterLine, compiled
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.threads import in_thread

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.hlo.places import LineOrigin
    from jaxprof.tui.hlo.document import HloNavigation
    from jaxprof.tui.hlo.modules import OpenedModule, Stage


class TextPane(Guarded, Vertical, keys="text_pane"):
    """A text and its search."""

    class Counted(Message):
        """Posted when `count` changes."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._hits: Hits | None = None
        self._hit_index: int | None = None
        self._search_start = 0
        self._searched: Document | None = None
        self._wanted: object = None
        """Identity of the last search."""
        self.count = Content("")
        """The number of matches and the index of the one in view, or the error in the regular expression."""

    def compose(self) -> ComposeResult:
        yield FilterLine(placeholder="regular expression")
        yield CodeView()

    @property
    def view(self) -> CodeView:
        """The text."""
        return self.query_one(CodeView)

    @property
    def hits(self) -> Hits | None:
        """The matches of the last search; None until it is over."""
        return self._hits

    def show(self, document: Document) -> None:
        """Show a document; an open search continues in it."""
        self.view.show(document)
        pattern = self.query_one(FilterLine).value
        if self.searching and pattern and self._searched is not document:
            self._search(pattern, jump=False)

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
        self._hits, self._hit_index, self._searched = None, None, self.view.document
        wanted = self._wanted = object()
        self.view.show_hits(None)
        self._show_count("…" if text else "")
        if not text:
            return
        try:
            pattern = compiled(text)
        except UsageError as error:
            self._show_count(error.what, "$error")
            return
        body = self.view.document.text
        in_thread(
            self,
            lambda: search(body, pattern, lambda: wanted is self._wanted and self.is_running),
            "search",
            then=lambda hits: self._take(wanted, hits, jump),
        )

    def _take(self, wanted: object, hits: Hits | None, jump: bool) -> None:
        if hits is None or wanted is not self._wanted:
            return  # another search has begun
        self._hits = hits
        self.view.show_hits(hits)
        if jump:
            self._go_to(hits.following(self._search_start - 1, 1), keep=True)
        self._show_count(hits.words(self._hit_index), "" if hits.offsets else "$warning")

    def _go_to(self, index: int | None, *, keep: bool = False) -> None:
        hits = self._hits
        if hits is None or index is None:
            return
        offset = hits.offsets[index]
        self._hit_index = index
        line = self.view.document.number(offset)
        if keep:
            self.view.go(line, center=True)
        else:
            self.view.jump(line)
        self.view.reveal_offset(offset)

    def action_next(self, step: int) -> None:
        hits = self._hits
        if hits is None:
            self.action_search()
            return
        if not hits.offsets:
            self._show_count(hits.words(None), "$warning")
            return
        at = hits.offsets[self._hit_index] if self._hit_index is not None else None
        here = self.view.document.number(at) == self.view.cursor if at is not None else False
        offset = at if here and at is not None else self.view.document.offset(self.view.cursor) - (step > 0)
        self._go_to(hits.following(offset, step))
        self._show_count(hits.words(self._hit_index))

    def _show_count(self, text: str, style: str = "$text-muted") -> None:
        self.count = Content.styled(safe(text), style or "$text-muted")
        self.post_message(self.Counted())

    def clear_search(self) -> None:
        """Stop the search and show no matches."""
        self.query_one(FilterLine).clear()

    @property
    def searching(self) -> bool:
        """Whether the search line is open."""
        return self.query_one(FilterLine).display


TITLES = {stage.name: stage.title for stage in STAGES}
SMALL_TEXTS = 4 << 20
"""Characters of all stages together up to which the matching lines are searched at each move of the cursor."""
_KEY_STYLE = "bold $footer-key-foreground"
_SHOWN_LINES = 4
"""Matching lines of a stage that are listed below the text."""

Match = tuple[str, int]
"""The name of a stage, and a line of it."""


class StageSide(Guarded, Vertical):
    """Shows one stage at a time, and the origin of the line at the cursor."""

    @dataclass
    class StageRequested(Message):
        """Reports that the history led to another stage."""

        stage: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._opened: OpenedModule | None = None
        self._stage = "hlo"
        self._pending: tuple[str, str] | None = None
        """Computation and name of the kernel to go to once the text has been read."""

    def compose(self) -> ComposeResult:
        with Vertical(id="text-box", classes="box"):
            yield TextPane(id="text")
        with Vertical(id="origin-box", classes="box") as box:
            box.border_title = "Comes from"
            yield FactList(id="origin")

    def on_mount(self) -> None:
        self.view.show_document = self._show_document
        self.query_one("#origin", FactList).can_focus = False

    # -- what is shown ----------------------------------------------------------------------------------------

    @property
    def view(self) -> CodeView:
        """The text."""
        return self.query_one(CodeView)

    @property
    def pane(self) -> TextPane:
        """The text with its search."""
        return self.query_one(TextPane)

    @property
    def stage(self) -> str:
        """The name of the stage in view."""
        return self._stage

    @property
    def _current(self) -> Stage | None:
        return self._opened.stages.get(self._stage) if self._opened is not None else None

    @property
    def _navigation(self) -> HloNavigation | None:
        """How to move through the stage in view; None unless it is HLO that has been read."""
        return self._current.document.navigation if self._current is not None else None

    def show_program(self, opened: OpenedModule | None) -> None:
        """Show another program, which may not have been read yet."""
        self._opened = opened
        self._pending = None
        self.view.forget()
        self.show_stage(self._stage)

    def show_stage(self, stage: str) -> None:
        """Show a stage, or why it cannot be shown."""
        self._stage = stage
        current = self._current
        if current is not None:
            self.pane.show(current.document)
            self._begin_at_entry()
        else:
            self.pane.show(Document(self._missing()))
        self._show_title()
        self._show_origin()

    def stage_ready(self, stage: str) -> None:
        """Show a stage that has been read, if it is in view."""
        if stage == self._stage:
            self.show_stage(stage)
        if stage == "hlo" and self._pending is not None:
            computation, name = self._pending
            self._pending = None
            self.go_to_kernel(computation, name)
        elif stage == self._stage:
            self._begin_at_entry()

    def _begin_at_entry(self) -> None:
        """Go to the entry computation: a module begins with tables that few readers want."""
        opened, navigation = self._opened, self._navigation
        if opened is None or navigation is None or self.view.cursor:
            return
        module = opened.module if self._stage == "hlo" else navigation.modules[0]
        entry = module.entry if module is not None else None
        line = navigation.line_of(entry) if entry is not None else None
        if line is not None:
            self.view.go(line, center=True)

    def _missing(self) -> str:
        opened = self._opened
        if opened is None:
            return ""
        error = opened.errors.get(self._stage)
        if error is not None:
            return str(error)
        if self._stage in opened.program.stages and not opened.over:
            return "reading…"
        return f"{TITLES[self._stage]} was not recorded for this program."

    def _show_title(self) -> None:
        box = self.query_one("#text-box")
        opened, current = self._opened, self._current
        if opened is None:
            box.border_title, box.border_subtitle = "", ""
            return
        box.border_title = Content(safe(f"{opened.program.title} · {TITLES[self._stage]}"))
        count = current.document.line_count if current is not None else 0
        words = f"{self.view.cursor + 1:,} of {count:,}".replace(",", "\u202f") if current is not None else ""
        matches_found = self.pane.count
        box.border_subtitle = Content.assemble(matches_found, " · " if matches_found else "", words)

    def _show_document(self, document: Document) -> None:
        """Show the stage of a document that the history led to."""
        opened = self._opened
        stages = opened.stages.values() if opened is not None else ()
        stage = next((stage.name for stage in stages if stage.document is document), None)
        if stage is None:
            return
        self.show_stage(stage)
        self.post_message(self.StageRequested(stage))

    def go_to_kernel(self, computation: str, name: str, *, remember: bool = False) -> bool:
        """Show an instruction's line in the optimised HLO; return False if it has no line or is not read yet."""
        opened = self._opened
        if opened is None:
            return False
        if "hlo" not in opened.stages:
            self._pending = (computation, name)
            return False
        line = opened.kernel_line(computation, name)
        if line is None:
            return False
        self.go(("hlo", line), remember=remember)
        return True

    def go(self, match: Match, *, remember: bool = True) -> None:
        """Go to a line of a stage."""
        stage, line = match
        if remember:
            self.view.remember()
        if stage != self._stage or (self._current and self.view.document is not self._current.document):
            self.show_stage(stage)
        self.view.go(line, center=True)
        self._show_origin()

    def kernel_at_cursor(self) -> tuple[str, str] | None:
        """Return the instruction at the cursor, as computation and name; None unless the optimised HLO is in view."""
        navigation = self._navigation
        if navigation is None or self._stage != "hlo":
            return None
        instruction = navigation.instruction(self.view.cursor)
        return (instruction.computation.name, instruction.name) if instruction is not None else None

    # -- where a line came from --------------------------------------------------------------------------------

    @on(TextPane.Counted)
    def _counted(self) -> None:
        self._show_title()

    @on(CodeView.Moved)
    def _moved(self) -> None:
        self._show_title()
        self._show_origin()

    def spot(self) -> LineOrigin | None:
        """Return where the line at the cursor came from; None if the text does not record it."""
        current = self._current
        return current.places.of(self.view.cursor) if current is not None else None

    @property
    def small(self) -> bool:
        """Whether the stages are small enough to search for matching lines at each move of the cursor."""
        stages = self._opened.stages.values() if self._opened is not None else ()
        return sum(len(stage.document.text) for stage in stages) <= SMALL_TEXTS

    def matches(self) -> list[Match]:
        """Return the lines of all other stages that came from the same place as the cursor's line. Slow unless
        `small`."""
        spot, opened = self.spot(), self._opened
        if spot is None or opened is None:
            return []
        return [
            (name, line)
            for name in TITLES
            if name in opened.stages and name != self._stage
            for line in opened.stages[name].places.lines(spot)
        ]

    def _show_origin(self) -> None:
        opened, spot = self._opened, self.spot()
        facts = self.query_one("#origin", FactList)
        if opened is None or self._current is None:
            facts.show(None, lambda width: ())
            return
        recorded = opened.program.recorded_seconds
        matches = self.matches() if self.small else None
        around = 1 if self.size.height >= 30 else 0
        facts.show(
            (self._stage, self.view.cursor, len(opened.stages)),
            lambda width: _origin_facts(spot, matches, width, recorded, around),
        )

    def on_resize(self) -> None:
        self._show_origin()


def _origin_facts(
    spot: LineOrigin | None, matches: list[Match] | None, width: int, recorded_seconds: float | None, around: int
) -> list[FactLine]:
    if spot is None:
        return [Content.styled("This line has no source location.", "$quiet")]
    facts: list[FactLine] = []
    if spot.place is not None:
        facts += source_facts(spot.place, width, recorded_seconds, around=around)
    if matches is None:
        facts.append(
            Content.assemble(
                (f"{key_of('hlo.match')} ", _KEY_STYLE),
                (" finds the matching lines of other stages", "$text-muted"),
            )
        )
    elif matches:
        facts.append(_matches_line(matches))
    if spot.op_name:
        names = Content.styled(safe(spot.op_name), "$text-muted")
        if facts and isinstance(facts[0], Content) and facts[0].cell_length + names.cell_length + 3 <= width:
            facts[0] = Content.assemble(facts[0], "   ", names)
        else:
            facts.append(names)
    return facts


def _matches_line(matches: list[Match]) -> Content:
    """Return the matching lines of the other stages, such as `m jaxpr 12, 14 · StableHLO 8`."""
    parts: list[Content | tuple[str, str]] = [(f"{key_of('hlo.match')} ", _KEY_STYLE)]
    for name, title in TITLES.items():
        lines = [line for stage, line in matches if stage == name]
        if not lines:
            continue
        shown = ", ".join(str(line + 1) for line in lines[:_SHOWN_LINES])
        more = f" +{len(lines) - _SHOWN_LINES}" if len(lines) > _SHOWN_LINES else ""
        parts += [(" " if len(parts) == 1 else "  ·  ", "$quiet"), (f"{title} ", "$text-muted"), (shown + more, "")]
    return Content.assemble(*parts)
