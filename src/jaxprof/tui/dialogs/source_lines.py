"""A line of a program among those around it, read from the file when it can be read here; else only where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content

from jaxprof.hlo.analysis import Place as Source
from jaxprof.safe_text import safe
from jaxprof.tui.dialogs.base import Dialog
from jaxprof.tui.programs.source_file import excerpt
from jaxprof.tui.widgets.picture import Lines
from jaxprof.tui.widgets.place_text import place_in_full
from jaxprof.tui.widgets.python_source import highlighted

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.results.programs.places import Place

AROUND = 200
"""Lines above and below that are there to be scrolled to."""


class SourceLines(Dialog[None]):
    """The excerpt, with the line in the middle."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "Close", tooltip="Back", id="source.close"),
        Binding("y", "copy", "Copy", tooltip="Copy the place, file:line", id="source.copy"),
    ]

    def __init__(self, place: Place) -> None:
        super().__init__()
        self._place = place
        self._lines = excerpt(Source(place.file, place.line or 1), AROUND).lines

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog help source-lines") as box:
            box.border_title = Content(place_in_full(self._place))
            box.border_subtitle = "y copies the place, Esc closes"
            yield Lines(id="source-text")

    def on_mount(self) -> None:
        self.query_one(Lines).show(None, self._drawn)
        box = self.query_one(VerticalScroll)
        box.focus()
        index = next((at for at, (number, _) in enumerate(self._lines) if number == self._place.line), 0)
        self.call_after_refresh(lambda: box.scroll_to(y=max(0, index - box.size.height // 2), animate=False))

    def _drawn(self, width: int) -> list[Content]:
        if not self._lines:
            words = f"{self._place.text} cannot be read here: it may be on another machine, or have moved."
            return [Content.styled(line, "$text-muted") for line in (safe(words),)]
        code = highlighted("\n".join(text for _, text in self._lines) + "\n#").split("\n")
        digits = len(str(self._lines[-1][0]))
        drawn = []
        for (number, _), text in zip(self._lines, code, strict=False):
            here = number == self._place.line
            mark = Content.styled(f"{'▶' if here else ' '} {number:>{digits}} ", "bold $accent" if here else "$quiet")
            drawn.append((mark + text).truncate(max(1, width), ellipsis=True))
        return drawn

    def action_copy(self) -> None:
        """The place, through the terminal's clipboard."""
        self.app.copy_to_clipboard(self._place.text)
        self.notify(safe(self._place.text), title="Copied", markup=False)
