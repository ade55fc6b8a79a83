"""A flame graph with a search line above it, and what is known of the frame under the cursor below."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from jaxprof.analysis.flame.tree import FlameFrame
from jaxprof.errors import UsageError
from jaxprof.text import safe
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.drawing import bar, cell, hang
from jaxprof.tui.kit.filter_line import FilterLine
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.icicle.widget import Icicle
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.search import compiled
from jaxprof.tui.kit.threads import in_thread
from jaxprof.units import counted, integer, percent

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.flame.graphs import FlameGraph
    from jaxprof.analysis.flame.tree import FlameMatches

_LISTED_FROM = 34
"""Lines of a terminal that has room for a list of what is inside a frame."""
_LISTED, _LISTED_AT_MOST = 6, 14


def figures(graph: FlameGraph, frame: FlameFrame) -> str:
    """`self 1.2 ms · total 3.4 ms · 12 % of all · 45 % of attention · 12 times`."""
    tree = graph.tree
    total, around = tree.total_of(frame), tree.around(frame)
    words = [f"self {graph.text(tree.own_of(frame))}", f"total {graph.text(total)}"]
    words += [f"{percent(tree.share_of(frame))} of all"]
    if around is not None and tree.parents[around] >= 0:
        words += [f"{percent(total / tree.totals[around])} of {safe(tree.names[around])}"]
    times = 0 if frame.size else tree.counts[frame.node]
    words += [f"{integer(times)} times"] if times > 1 and graph.by == "scope" else []
    return " · ".join(words)


def inside_lines(graph: FlameGraph, frame: FlameFrame, width: int, most: int) -> list[Content]:
    """What a frame consists of, the largest first."""
    tree = graph.tree
    children, total = tree.frames_in(frame), tree.total_of(frame)
    lines = [
        Content.assemble(
            cell(percent(tree.totals[child] / total), 7, "$text-muted", right=True), " ",
            bar(tree.totals[child] / total, 12), " ",
            cell(graph.text(tree.totals[child]), 9, "bold", right=True), "  ",
            cell(tree.names[child], max(8, width - 33)),
        )
        for child in children[:most] if total
    ]  # fmt: skip
    if len(children) > most:
        lines.append(Content.styled(f"and {integer(len(children) - most)} smaller", "$quiet"))
    return lines


class IciclePane(Guarded, Vertical):
    """The search line, the frames, the facts."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("flame_pane")

    class OpenRequested(Message):
        """Requests what ends in a frame: a kernel, a line."""

        def __init__(self, graph: FlameGraph, node: int) -> None:
            super().__init__()
            self.graph, self.node = graph, node

    class Read(Message, bubble=False):
        """A thread has made the graph that was requested with this key."""

        def __init__(self, key: Hashable, graph: FlameGraph | None, words: str) -> None:
            super().__init__()
            self.key, self.graph, self.words = key, graph, words

    def __init__(self, view_id: str) -> None:
        super().__init__()
        self._view_id = view_id
        self._key: Hashable = None
        self.graph: FlameGraph | None = None
        """What is shown."""
        self._pattern = ""
        self._matches: FlameMatches | None = None
        self._wrong = ""
        self._next = -1

    def compose(self) -> ComposeResult:
        line = FilterLine()
        line.placeholder = "search"
        yield line
        yield Icicle(id=self._view_id)
        yield Lines(classes="flame-facts")

    @property
    def view(self) -> Icicle:
        """The frames."""
        return self.query_one(Icicle)

    def show(self, graph: FlameGraph | None, words: str = "", *, same: bool = False) -> None:
        """Shows a flame graph, or `words` if there is none; with `same`, one that has grown."""
        if graph is not None and not graph.tree.total:
            words, graph = graph.remark or words, None
        kept = same or self.graph is None  # what was typed while the graph was made
        self.graph = graph
        self.view.show(graph, words, same=same)
        if self._pattern and not kept:
            self.query_one(FilterLine).clear()
        self._search(self._pattern if kept else "")

    def read(self, key: Hashable, make: Callable[[], FlameGraph | None], words: str) -> None:
        """Makes a graph in a thread and shows it, or `words` if there is none; does nothing if the key is the same."""
        if key == self._key:
            return
        self._key = key
        self.show(None, "Reading the scopes…")
        in_thread(
            self,
            lambda: self.post_message(self.Read(key, make(), words)),
            "flame",
            failed=lambda error: self.post_message(self.Read(key, None, error.what)),
        )

    def on_icicle_pane_read(self, message: Read) -> None:
        if message.key == self._key:
            self.show(message.graph, message.words)

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
        room = (self.screen.size.height - _LISTED_FROM) // 2 + _LISTED
        if room >= _LISTED and (lines := inside_lines(graph, frame, width, min(room, _LISTED_AT_MOST))):
            yield Content("")
            yield from lines

    @property
    def found(self) -> str:
        """What the search found, in words; empty without a search."""
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
        """The next match where there are matches; Esc while there is a search."""
        if action == "next":
            return True if self._matches is not None and self._matches.count else None
        if action == "search":
            return not isinstance(self.app.focused, FilterLine)
        if action == "clear":
            return bool(self._pattern)
        return super().check_action(action, parameters)

    def action_search(self) -> None:
        """Opens the search line."""
        self.query_one(FilterLine).open(self._pattern)

    def action_clear(self) -> None:
        """Ends the search."""
        self.query_one(FilterLine).clear()
        self._search("")
        self.view.focus()

    def action_next(self, step: int) -> None:
        """Goes to the next match, the largest first."""
        if self._matches is not None and self._matches.count:
            nodes: Sequence[int] = self._matches.largest_first()
            self._next = (self._next + step) % len(nodes) if self._next >= 0 else (0 if step > 0 else len(nodes) - 1)
            self.view.go(nodes[self._next])

    def action_copy(self) -> None:
        """Copies the path and the figures of the frame under the cursor."""
        graph, frame = self.graph, self.view.pointed
        if graph is not None and frame is not None:
            names = [graph.tree.names[node] for node in graph.tree.path(frame.node)]
            names += [graph.tree.name_of(frame)] if frame.size else []
            text = " › ".join(names or ["all"]) + f"\n{figures(graph, frame)}"
            self.app.copy_to_clipboard(text)
            self.notify(safe(text), title="Copied", markup=False)

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
