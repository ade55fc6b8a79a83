"""A flame graph drawn from the top down (an icicle), with a search line above it and facts about a frame below.

A line at the left end of each frame separates it from its neighbour, so that colours are not needed. The line above the
frames is the path to the frame that has the full width; a click on it goes one step out.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final
from zlib import crc32

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.strip import Strip

from jaxprof.analysis.flame import ROOT, WHOLE, FlameFrame
from jaxprof.errors import UsageError
from jaxprof.text import columns, safe, shorten, shorten_middle
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.filter import FilterLine, compiled
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.icicle_browse import FlameBrowse
from jaxprof.tui.kit.picture import Browsing, Lines
from jaxprof.tui.kit.threads import in_thread
from jaxprof.units import counted, integer, percent

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.flame import FlameGraph, FlameMatches
    from jaxprof.tui.kit.icicle_browse import IcicleSpan


HUES: Final = 6
_HIGHEST: Final = 3
"""Height of a row in lines, if there is room."""
_NUMBERED: Final = re.compile(r"[\d._]+$")
_STATES: Final = {
    f"[{state.replace('_', ' ')}]": state
    for state in ("import", "data", "trace", "lower", "compile", "transfer", "device_busy", "host_busy", "waiting")
}
"""Innermost frames of a program's lines that are coloured by the program's state."""
_SEPARATOR: Final = " › "


def hue(name: str) -> str:
    """Return the style of a frame for its name: the same everywhere, and equal for `fusion.1` and `fusion.2`."""
    if name in _STATES:
        return _STATES[name].replace("_", "-")
    return str(crc32(_NUMBERED.sub("", name).encode("utf-8", "replace")) % HUES)


class Icicle(Browsing, keys="flame"):
    """The frames, one row for each depth."""

    browse: FlameBrowse | None
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"icicle--{number}" for number in range(HUES)),
        *(f"icicle--{state.replace('_', '-')}" for state in _STATES.values()),
        "icicle--top", "icicle--plain", "icicle--fold",
        "icicle--hit", "icicle--other", "icicle--cursor", "icicle--head", "icicle--edge",
    }  # fmt: skip

    @dataclass
    class Opened(Message):
        """A frame without frames inside it was chosen."""

        node: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._words = ""
        self._matches: FlameMatches | None = None
        self._scrolled = 0
        """Number of rows above the first one in view."""

    # -- what is shown ----------------------------------------------------------------------------------------

    def show(self, graph: FlameGraph | None, words: str = "", *, same: bool = False) -> None:
        """Show a flame graph, or `words` if there is none; `same`: the graph in view has grown."""
        if graph is None:
            self.browse = None
        elif same and self.browse is not None:
            self.browse = self.browse.carried_to(graph)
        else:
            self.browse, self._scrolled = FlameBrowse(graph, self._width), 0
        self._words = words
        self.changed()

    def show_matches(self, matches: FlameMatches | None) -> None:
        """Mark the frames that a search matched; None marks none."""
        self._matches = matches
        self.refresh()

    @property
    def pointed(self) -> FlameFrame | None:
        """The frame under the cursor."""
        return self.browse.cursor if self.browse is not None else None

    def go(self, node: int) -> None:
        """Move the cursor to a frame, and zoom as far as needed."""
        self.change(lambda browse: browse.go(node))

    def step_out(self) -> bool:
        """Zoom out one step; return False if everything is already in view."""
        if self.browse is None or not self.browse.out():
            return False
        self.changed()
        return True

    def changed(self) -> None:
        if self.browse is not None:
            room, row = self._room // self._high, self.browse.row
            self._scrolled = max(0, min(self._scrolled, row, len(self.browse.rows) - room))
            self._scrolled = max(self._scrolled, row - room + 1)
        super().changed()

    @property
    def _width(self) -> int:
        return max(8, self.size.width)

    @property
    def _room(self) -> int:
        """Return the number of lines below the path."""
        return max(1, self.size.height - 1)

    @property
    def _high(self) -> int:
        """Return the height of each row in lines."""
        count = len(self.browse.rows) if self.browse is not None else 0
        return max(1, min(_HIGHEST, self._room // count)) if count else 1

    # -- drawing ----------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width, browse = self.size.width, self.browse
        if browse is None or not browse.rows:
            lines = textwrap.wrap(self._words or "No time was recorded.", max(12, width - 2))
            text = lines[y] if y < len(lines) else ""
            strip = Strip([Segment(f" {text}", self._style("head"))])
        elif y == 0:
            strip = self._head(browse, width)
        else:
            row, line = divmod(y - 1, self._high)
            row += self._scrolled
            spans = browse.rows[row] if row < len(browse.rows) else ()
            strip = Strip([piece for span in spans for piece in self._span(browse, span, line)])
        return strip.adjust_cell_length(width, self.rich_style)

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"icicle--{name}")

    def _head(self, browse: FlameBrowse, width: int) -> Strip:
        """Return the path to the frame that has the full width; its start is dropped if there is no room."""
        tree = browse.graph.tree
        steps = [WHOLE, *map(FlameFrame, tree.path(browse.top.node)), *([browse.top] if browse.top.size else [])]
        names = [shorten(tree.name_of(step), 40) for step in steps]
        while len(names) > 1 and columns(_SEPARATOR.join(names)) + 4 > width:
            names, steps = names[1:], steps[1:]
        left = "… › " if len(steps) < len(tree.path(browse.top.node)) + 1 else " "
        rest = f"  {browse.graph.title}" if browse.top == WHOLE else ""
        segments = [Segment(left + _SEPARATOR.join([*names[:-1], ""]), self._style("head"))]
        segments += [Segment(names[-1], self._style("head") + Style(bold=True)), Segment(rest, self._style("head"))]
        return Strip(segments)

    def _span(self, browse: FlameBrowse, span: IcicleSpan, line: int) -> list[Segment]:
        width = span.end - span.begin
        if span.frame is None:
            return [Segment(" " * width, self.rich_style)]
        frame, tree = span.frame, browse.graph.tree
        text = ""
        if line == 0 and width > 2:
            name = tree.name_of(frame)
            text = shorten_middle(name, width - 1) if "." in name and " " not in name else shorten(name, width - 1)
        elif line == 1 and width > 8:
            amount, share = browse.graph.text(tree.total_of(frame)), percent(tree.share_of(frame))
            text = next((words for words in (f"{amount} · {share}", amount) if columns(words) < width), "")
        fill = "─" if self.app.no_color and line == 0 else " "
        text = shorten(text, width - 1) if width > 1 and text else ""
        gap = fill * (width - 1 - columns(text))
        here = frame == browse.cursor
        edge = "▶" if here and line == 0 and width > 1 else "│"
        style = self._frame_style(browse, frame)
        return [
            Segment(edge, style if here else style + Style(color=self._style("edge").color)),
            Segment(text + gap, style),
        ]

    def _frame_style(self, browse: FlameBrowse, frame: FlameFrame) -> Style:
        if frame == browse.cursor and self.has_focus:
            return self._style("cursor")
        if self._matches is not None:
            style = self._style("hit" if self._matches.marks(frame) else "other")
        elif frame.size:
            style = self._style("fold")
        elif frame.node == ROOT:
            style = self._style("top")
        else:
            name = browse.graph.tree.names[frame.node]
            plain = browse.graph.by == "line" and name not in _STATES
            style = self._style("plain" if plain else hue(name))
        return style + Style(bold=True, underline=True) if frame == browse.cursor else style

    # -- keys -------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Esc to the screen unless the view can zoom out."""
        if action == "step_out" or parameters == ("whole",):
            return self.browse is not None and self.browse.top != WHOLE
        return super().check_action(action, parameters)

    def action_zoom_in(self) -> None:
        if self.browse is not None:
            self._into(self.browse.cursor)

    def _into(self, frame: FlameFrame, *, opens: bool = True) -> None:
        if self.browse is None:
            return
        self.browse.cursor = frame
        if not self.browse.into(frame) and opens and frame != self.browse.top and not frame.size:
            self.post_message(self.Opened(frame.node))
        self.changed()

    def action_step_out(self) -> None:
        self.step_out()

    # -- mouse ------------------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """Zoom in to the clicked frame; a click on the frame with the full width, or the right button, zooms out."""
        offset, browse = event.get_content_offset(self), self.browse
        if offset is None or browse is None:
            return
        event.stop()
        frame = browse.at((offset.y - 1) // self._high + self._scrolled, offset.x) if offset.y else None
        if event.button == 3 or frame == browse.top or not offset.y:
            self.step_out()
        elif frame is not None:
            self._into(frame, opens=event.chain == 2)

    def on_resize(self) -> None:
        if self.browse is not None:
            self.browse.resize(self._width)
            self.changed()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()


def figures(graph: FlameGraph, frame: FlameFrame) -> str:
    """Return `self 1.2 ms · total 3.4 ms · 12 % of all · 45 % of attention · 12 times`."""
    tree = graph.tree
    total, around = tree.total_of(frame), tree.around(frame)
    words = [f"self {graph.text(tree.own_of(frame))}", f"total {graph.text(total)}"]
    words += [f"{percent(tree.share_of(frame))} of all"]
    if around is not None and tree.parents[around] >= 0:
        words += [f"{percent(total / tree.totals[around])} of {safe(tree.names[around])}"]
    times = 0 if frame.size else tree.counts[frame.node]
    words += [f"{integer(times)} times"] if times > 1 and graph.by == "scope" else []
    return " · ".join(words)


class IciclePane(Guarded, Vertical, keys="flame_pane"):
    """The search line, the frames, and the facts about a frame."""

    @dataclass
    class OpenRequested(Message):
        """Requests to open what a frame ends in: a kernel or a line."""

        graph: FlameGraph
        node: int

    def __init__(self, view_id: str) -> None:
        super().__init__()
        self._view_id = view_id
        self._key: Hashable = None
        self.graph: FlameGraph | None = None
        """The flame graph in view; None if there is none."""
        self._pattern = ""
        self._matches: FlameMatches | None = None
        self._wrong = ""
        self._next = -1

    def compose(self) -> ComposeResult:
        yield FilterLine(placeholder="search")
        yield Icicle(id=self._view_id)
        yield Lines(classes="flame-facts")

    @property
    def view(self) -> Icicle:
        return self.query_one(Icicle)

    def show(self, graph: FlameGraph | None, words: str = "", *, same: bool = False) -> None:
        """Show a flame graph, or `words` if there is none; `same`: the graph in view has grown."""
        if graph is not None and not graph.tree.total:
            words, graph = graph.remark or words, None
        keep_pattern = same or self.graph is None  # keep a pattern typed while the graph was made
        self.graph = graph
        self.view.show(graph, words, same=same)
        if self._pattern and not keep_pattern:
            self.query_one(FilterLine).clear()
        self._search(self._pattern if keep_pattern else "")

    def read(self, key: Hashable, make: Callable[[], FlameGraph | None], words: str) -> None:
        """Make a graph in a thread and show it, or `words` if there is none; do nothing if `key` is unchanged."""
        if key == self._key:
            return
        self._key = key
        self.show(None, "Reading the scopes…")
        in_thread(
            self,
            make,
            "flame",
            then=lambda graph: self._take(key, graph, words),
            failed=lambda error: self._take(key, None, error.what),
        )

    def _take(self, key: Hashable, graph: FlameGraph | None, words: str) -> None:
        if key == self._key:
            self.show(graph, words)

    # -- facts ------------------------------------------------------------------------------------------------

    @on(Icicle.Moved)
    def _show_facts(self) -> None:
        graph, frame = self.graph, self.view.pointed
        key = (id(graph), frame, id(self._matches), self._wrong, self.screen.size.height)
        self.query_one(Lines).show(key, lambda width: list(self._facts(graph, frame, width)))
        self.refresh_bindings()

    def _facts(self, graph: FlameGraph | None, frame: FlameFrame | None, width: int) -> Iterator[Content]:
        if graph is None or frame is None:
            return
        yield from hang(Content(""), graph.tree.name_of(frame), width, "bold")
        yield from hang(Content(""), figures(graph, frame), width)
        place = None if frame.size else graph.place_of(frame.node)
        if place is not None:
            yield Content.styled(safe(f"{place.file}:{place.line}" if place.line else place.file), "$primary")
        found = self.found
        if found:
            yield Content.styled(safe(found), "bold $accent")
        elif graph.remark:
            yield Content.styled(graph.remark, "$warning")

    @property
    def found(self) -> str:
        """Result of the search in words; empty without a search."""
        matches = self._matches
        if self._wrong or matches is None:
            return self._wrong
        if not matches.count:
            return f"/{self._pattern}: no frame"
        amount = matches.tree and self.graph.text(matches.amount) if self.graph is not None else ""
        return (
            f"/{self._pattern}: {counted(matches.count, 'frame')}, together {amount}, {percent(matches.share)} of all"
        )

    @on(Icicle.Opened)
    def _opened(self, message: Icicle.Opened) -> None:
        if self.graph is not None:
            self.post_message(self.OpenRequested(self.graph, message.node))

    # -- search -----------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the next match if there are matches, and Esc while there is a search."""
        if action == "next":
            return True if self._matches is not None and self._matches.count else None
        if action == "search":
            return not isinstance(self.app.focused, FilterLine)
        if action == "clear":
            return bool(self._pattern)
        return super().check_action(action, parameters)

    def action_search(self) -> None:
        self.query_one(FilterLine).open()

    def action_clear(self) -> None:
        self.query_one(FilterLine).clear()
        self._search("")
        self.view.focus()

    def action_next(self, step: int) -> None:
        if self._matches is not None and self._matches.count:
            nodes: Sequence[int] = self._matches.largest_first()
            self._next = (self._next + step) % len(nodes) if self._next >= 0 else (0 if step > 0 else len(nodes) - 1)
            self.view.go(nodes[self._next])

    def action_copy(self) -> None:
        graph, frame = self.graph, self.view.pointed
        if graph is not None and frame is not None:
            names = [graph.tree.names[node] for node in graph.tree.path(frame.node)]
            names += [graph.tree.name_of(frame)] if frame.size else []
            text = " › ".join(names or ["all"]) + f"\n{figures(graph, frame)}"
            self.copy(text)

    @on(FilterLine.Edited)
    def _edited(self, message: FilterLine.Edited) -> None:
        message.stop()
        self._search(message.text)

    @on(FilterLine.Left)
    def _left(self, message: FilterLine.Left) -> None:
        message.stop()
        self.view.focus()

    def _search(self, pattern: str) -> None:
        self._pattern, self._matches, self._wrong, self._next = pattern, None, "", -1
        if pattern and self.graph is not None:
            try:
                self._matches = self.graph.tree.matching(compiled(pattern).search)
            except UsageError as error:
                self._wrong = error.what
        self.view.show_matches(self._matches)
        self._show_facts()
