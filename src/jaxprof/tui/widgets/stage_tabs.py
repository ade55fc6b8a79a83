"""One line of tabs: lists on the left, the program's stages on the right. A click goes there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widget import Widget


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab as it stands in the line."""

    name: str
    title: str
    short: str
    """For narrow terminals."""
    note: str = ""
    """A count, after the title."""
    enabled: bool = True
    stage: bool = False


class StageTabs(Widget):
    """The tabs; those in view are marked, and they can be told without colours."""

    ALLOW_SELECT = False
    auto_links = False

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._tabs: Sequence[Tab] = ()
        self._shown: frozenset[str] = frozenset()

    def show(self, tabs: Sequence[Tab], shown: frozenset[str]) -> None:
        """Shows these tabs, of which `shown` are in view."""
        if (tuple(tabs), shown) != (tuple(self._tabs), self._shown):
            self._tabs, self._shown = tuple(tabs), shown
            self.refresh()

    def render(self) -> Content:
        line = self._line(short=False)
        return line if line.cell_length <= self.size.width else self._line(short=True)

    def _line(self, *, short: bool) -> Content:
        parts: list[Content | str | tuple[str, str]] = []
        stages = False
        for tab in self._tabs:
            if tab.stage and not stages:
                parts.append(("│", "$rule"))
                stages = True
            parts.append(self._tab(tab, short=short))
        return Content.assemble(*parts)

    def _tab(self, tab: Tab, *, short: bool) -> Content:
        shown = tab.name in self._shown
        title = tab.short if short else tab.title
        left, right = ("[", "]") if shown else (" ", " ")
        style = "bold $primary" if shown else "$foreground" if tab.enabled else "$text-disabled"
        note = f" {tab.note}" if tab.note else ""
        text = Content.assemble((left, "$primary"), (title, style), (note, "$text-muted"), (right, "$primary"))
        if not tab.enabled:
            return text
        return text.stylize(Style.from_meta({"@click": f"screen.tab({tab.name!r})"}))
