"""A text view with a line for searching below it. The search runs in a thread and can be stopped at any time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from textual.actions import SkipAction
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from jaxprof.errors import UsageError
from jaxprof.text import safe
from jaxprof.tui.hlo.text.code_view import CodeView
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.search import Hits, compiled, matches, pieces
from jaxprof.tui.kit.threads import in_thread

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.tui.hlo.text.document import Document


REPORT_SECONDS = 0.05
"""Time between two reports of a running search."""


class SearchInput(Guarded, Input):
    """The input for the expression."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("search")

    class Left(Message):
        """The user left the input, keeping the matches or not."""

        def __init__(self, *, kept: bool) -> None:
            super().__init__()
            self.kept = kept

    def action_drop(self) -> None:
        """Stops the search."""
        self.post_message(self.Left(kept=False))

    def action_keep(self) -> None:
        """Keeps the matches."""
        self.post_message(self.Left(kept=True))


class TextPane(Guarded, Vertical):
    """A text and its search."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("text_pane")

    class Found(Message):
        """A piece of the text was searched."""

        def __init__(self, hits: Hits, offsets: list[int], *, over: bool) -> None:
            super().__init__()
            self.hits = hits
            self.offsets = offsets
            self.over = over

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._hits: Hits | None = None
        self._at: int | None = None
        self._from = 0
        self._searched: Document | None = None

    def compose(self) -> ComposeResult:
        yield CodeView()
        with Horizontal(classes="search-line"):
            yield Static("/", classes="search-mark", markup=False)
            yield SearchInput(placeholder="regular expression", compact=True, classes="search-input")
            yield Static(classes="search-count", markup=False)

    def on_mount(self) -> None:
        self._line.display = False

    @property
    def view(self) -> CodeView:
        """The text."""
        return self.query_one(CodeView)

    @property
    def hits(self) -> Hits | None:
        """The matches of the last search so far."""
        return self._hits

    @property
    def _line(self) -> Horizontal:
        return self.query_one(".search-line", Horizontal)

    def show(self, document: Document) -> None:
        """Shows a document; an open search continues in it."""
        self.view.show(document)
        pattern = self.query_one(SearchInput).value
        if self._line.display and pattern and self._searched is not document:
            self._search(pattern, jump=False)

    # -- searching --------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Opens the search line. Raises SkipAction where it has the focus already: there `/` is text."""
        if self.screen.focused is self.query_one(SearchInput):
            raise SkipAction
        self._line.display = True
        self._from = self.view.document.offset(self.view.cursor)
        line = self.query_one(SearchInput)
        self.screen.set_focus(line)  # at once: a key may arrive before a requested focus takes effect
        line.action_select_all()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._search(event.value, jump=True)

    def _search(self, text: str, *, jump: bool) -> None:
        self.workers.cancel_group(self, "search")
        self._hits, self._at = None, None
        self._searched = self.view.document
        if not text:
            self.view.show_hits(None)
            self._show_count("")
            return
        try:
            pattern = compiled(text)
        except UsageError as error:
            self.view.show_hits(None)
            self._show_count(error.what, "$error")
            return
        hits = Hits(pattern, self._from)
        self._hits = hits
        self._jump = jump
        self._show_count("…")
        body = self.view.document.text
        in_thread(self, lambda: self._work(body, hits), "search")

    _jump = False

    def _work(self, text: str, hits: Hits) -> None:
        """Runs in a thread: searches piece by piece, and posts the matches at intervals.

        Only the app's thread changes `hits`; this one reads its pattern and its start.
        """
        worker = get_current_worker()
        offsets: list[int] = []
        posted = time.monotonic()
        for piece in pieces(text, min(hits.start, len(text))):
            if worker.is_cancelled:
                return
            offsets += matches(text, hits.pattern, piece)
            now = time.monotonic()
            if now - posted >= REPORT_SECONDS and offsets:
                self.post_message(self.Found(hits, offsets, over=False))
                offsets, posted = [], now
        self.post_message(self.Found(hits, offsets, over=True))

    def on_text_pane_found(self, message: Found) -> None:
        message.stop()
        hits = message.hits
        if hits is not self._hits:
            return  # from an abandoned search
        first = not hits.offsets
        hits.take(message.offsets)
        if message.over:
            hits.finish()
        if first:
            self.view.show_hits(hits)
        if self._jump and hits.offsets:
            if first:
                self._go_to(hits.following(hits.start - 1, 1), keep=True)
            elif message.over and self._at is not None:
                self._at = hits.following(self._offset_of_cursor - 1, 1)
        self._show_count(
            hits.words(self._at if hits.over else None), "" if hits.offsets or not hits.over else "$warning"
        )

    @property
    def _offset_of_cursor(self) -> int:
        return self.view.document.offset(self.view.cursor)

    def _go_to(self, index: int | None, *, keep: bool = False) -> None:
        hits = self._hits
        if hits is None or index is None:
            return
        offset = hits.offsets[index]
        self._at = index
        line = self.view.document.number(offset)
        if keep:
            self.view.go(line, center=True)
        else:
            self.view.jump(line)
        self.view.reveal_offset(offset)

    def action_next(self, step: int) -> None:
        """Goes to the next or the previous match, and wraps at the ends of the text."""
        hits = self._hits
        if hits is None:
            self.action_search()
            return
        if not hits.offsets:
            self._show_count(hits.words(None), "$warning")
            return
        at = hits.offsets[self._at] if self._at is not None and hits.over else None
        here = self.view.document.number(at) == self.view.cursor if at is not None else False
        offset = at if here and at is not None else self._offset_of_cursor - (1 if step > 0 else 0)
        self._go_to(hits.following(offset, step))
        self._show_count(hits.words(self._at if hits.over else None))

    def _show_count(self, text: str, style: str = "$text-muted") -> None:
        self.query_one(".search-count", Static).update(Content.styled(safe(text), style or "$text-muted"))

    def on_search_input_left(self, message: SearchInput.Left) -> None:
        message.stop()
        if not message.kept or not self.query_one(SearchInput).value:
            self.clear_search()
        self.view.focus()

    def clear_search(self) -> None:
        """Stops the search and shows no matches."""
        self.workers.cancel_group(self, "search")
        self._hits, self._at = None, None
        self.query_one(SearchInput).value = ""
        self._line.display = False
        self.view.show_hits(None)
        self._show_count("")

    @property
    def searching(self) -> bool:
        """Whether the search line is open."""
        return self._line.display
