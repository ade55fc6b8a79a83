"""The lines of a program that took its time, what it did there and, where the file can be read here, their text."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from jaxprof.tui.widgets.drawing import cell
from jaxprof.tui.widgets.phase_bars import plain_bar
from jaxprof.tui.widgets.place_text import place_in_full, place_text
from jaxprof.tui.widgets.program_bar import state_style, state_title
from jaxprof.tui.widgets.row_list import RowList
from jaxprof.units import UNKNOWN, percent, seconds

if TYPE_CHECKING:
    from jaxprof.results.programs.places import Place
    from jaxprof.tui.recorded.lines import HotLine

TIME, SHARE, STATE = 9, 7, 16
MOST = 200
"""Lines that are listed; the rest took next to nothing."""


class LineWanted(Message):
    """A line of the program is to be shown."""

    def __init__(self, where: Place) -> None:
        super().__init__()
        self.where = where


class HotLineList(RowList):
    """One row a line, the longest first."""

    EMPTY = "No line was sampled so far."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "enter", "Source", tooltip="This line among those around it", id="hot_lines.enter"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: dict[Hashable, HotLine] = {}
        self._wall = 0.0
        self._directory = ""
        self._only = ""

    def show(self, lines: Sequence[HotLine], wall_seconds: float | None, directory: str = "") -> None:
        """Shows these lines."""
        found: dict[Hashable, HotLine] = {line.where: line for line in lines}
        if found != self._lines or wall_seconds != self._wall:
            self._lines, self._wall, self._directory = found, wall_seconds or 0.0, directory
            self._list()

    def set_filter(self, text: str) -> None:
        """Shows only lines with all these words."""
        self._only = text.casefold()
        self._list()

    def _list(self) -> None:
        words = self._only.split()
        self.set_keys([key for key, line in self._lines.items() if all(word in _haystack(line) for word in words)])

    def draw_header(self, width: int) -> Content | None:
        if not self._lines:
            return None
        place, graph, rest = _widths(width)
        return Content.assemble(
            cell("time", TIME, right=True), cell("of all", SHARE, right=True), "  ", " " * graph,
            cell("mostly", STATE), cell("line", place), cell("what is there", rest),
        )  # fmt: skip

    def draw_row(self, index: int, width: int) -> Content:
        line = self._lines[self._keys[index]]
        place, graph, rest = _widths(width)
        state, spent = line.states[0] if line.states else ("", 0.0)
        share = f" {percent(spent / line.seconds)}" if len(line.states) > 1 and line.seconds else ""
        longest = next(iter(self._lines.values())).seconds or 1.0
        text = _text(line) or line.call
        return Content.assemble(
            cell(seconds(line.seconds), TIME, "bold", right=True),
            cell(percent(line.seconds / self._wall) if self._wall else UNKNOWN, SHARE, "$text-muted", right=True), "  ",
            plain_bar(line.seconds / longest, graph - 1, state_style(state)) + " " if graph else "",
            cell(state_title(state) + share, STATE, "$text-muted"),
            cell(place_text(line.where, self._directory), place - 1, "$primary"), " ", cell(text, rest),
        )  # fmt: skip

    def action_enter(self) -> None:
        """Shows the line's source."""
        line = self._lines.get(self.current) if self.current is not None else None
        if line is not None:
            self.post_message(LineWanted(line.where))

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        """A double click shows it too."""
        message.stop()
        self.action_enter()


def _widths(width: int) -> tuple[int, int, int]:
    """Columns of the place, of the bar, and of the text."""
    graph = 12 if width >= 96 else 0
    rest = width - TIME - SHARE - 2 - graph - STATE
    place = max(12, min(30, rest // 2))
    return place, graph, max(1, rest - place)


def _text(line: HotLine) -> str:
    """The line itself; empty where its file cannot be read here."""
    from jaxprof.hlo.analysis import Place as Source
    from jaxprof.tui.programs.source_file import excerpt

    if line.where.line is None:
        return ""
    found = excerpt(Source(line.where.file, line.where.line), 0).lines
    return found[0][1].strip() if found else ""


def _haystack(line: HotLine) -> str:
    states = " ".join(state_title(state) for state, _ in line.states)
    return f"{place_in_full(line.where)} {line.call} {states}".casefold()
