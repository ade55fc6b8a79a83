"""What is in view of a flame graph: the frame with the full width, the cursor, the way back, and the columns of each
frame. Knows no widget.

At each depth every column belongs to exactly one span. A frame is as wide as its share of the frame above it, to the
column; frames that would be narrower than one column are folded into one span, which has at least one column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from jaxprof.analysis.flame import WHOLE, FlameFrame, FlameTree

if TYPE_CHECKING:
    from jaxprof.analysis.flame import FlameGraph


_PART_COLUMNS: Final = 8
"""Columns of each part into which many small frames are divided if nothing else is in view."""


class IcicleSpan(NamedTuple):
    """Columns from `begin` up to, but not including, `end`."""

    begin: int
    end: int
    frame: FlameFrame | None
    """Frame drawn in the columns; None for self time of the frame above, or if nothing is inside it."""


def layout(tree: FlameTree, top: FlameFrame, width: int) -> list[list[IcicleSpan]]:
    """Return the rows from `top`, which has the full width, down to the last with a frame; none for a total of 0."""
    if width < 1 or not tree.total_of(top):
        return []
    rows = [[IcicleSpan(0, width, top)]]
    while True:
        row = [inner for span in rows[-1] for inner in _under(tree, span, whole=len(rows) == 1)]
        if all(span.frame is None for span in row):
            return rows
        rows.append(row)


def _under(tree: FlameTree, span: IcicleSpan, *, whole: bool) -> list[IcicleSpan]:
    """Return the spans below a span; `whole` for the first row, in which several small frames are opened."""
    begin, end, frame = span
    if frame is None or (frame.size and not whole):
        return [IcicleSpan(begin, end, None)]
    width, total = end - begin, tree.total_of(frame)
    children = tree.frames_in(frame)
    large = 0
    while large < len(children) and 0 < total <= tree.totals[children[large]] * width:
        large += 1
    parts: list[tuple[FlameFrame, int]] = [(FlameFrame(child), tree.totals[child]) for child in children[:large]]
    left = total - tree.own_of(frame) - sum(amount for _, amount in parts)
    if left > 0:
        first, count = frame.first + large, len(children) - large
        pieces = min(width, max(2, width // _PART_COLUMNS)) if whole and not large else 1
        parts += _divided(tree, frame.node, first, count, pieces)
    spans, at, done = [], begin, 0
    for number, (inner, amount) in enumerate(parts, start=1):
        done += amount
        until = begin + (2 * done * width + total) // (2 * total)  # rounded
        until = min(max(at + 1, until), end - len(parts) + number)  # a part that is too narrow still has a column
        spans.append(IcicleSpan(at, until, inner))
        at = until
    if at < end:
        spans.append(IcicleSpan(at, end, None))
    return spans


def _divided(tree: FlameTree, node: int, first: int, count: int, pieces: int) -> list[tuple[FlameFrame, int]]:
    """Return small frames divided into `pieces` parts; a part with one frame is that frame."""
    children = tree.inside(node)
    pieces = min(pieces, count)
    bounds = [first + count * piece // pieces for piece in range(pieces + 1)]
    parts = []
    for low, high in pairwise(bounds):
        frame = FlameFrame(children[low]) if high - low == 1 else FlameFrame(node, low, high - low)
        amount = tree.total_of(frame)
        if amount:
            parts.append((frame, amount))
    return parts


@dataclass(slots=True)
class FlameBrowse:
    """State of the view of one flame graph at one width."""

    graph: FlameGraph
    width: int
    top: FlameFrame = WHOLE
    cursor: FlameFrame = WHOLE
    rows: list[list[IcicleSpan]] = field(default_factory=list)
    """Spans of each row, from the top frame down."""
    _before: list[tuple[FlameFrame, FlameFrame]] = field(default_factory=list)
    """Top frames and cursors that Esc returns to."""
    _left: dict[FlameFrame, FlameFrame] = field(default_factory=dict)
    """Frame from which the cursor went up, by the frame that it went to; going down returns there."""
    _at: dict[FlameFrame, tuple[int, int]] = field(default_factory=dict)
    """Row of each drawn frame, and its place in the row."""

    def __post_init__(self) -> None:
        self.resize(self.width)

    def resize(self, width: int) -> None:
        """Lay the frames out for a width. A cursor on a frame that is no longer drawn moves to the frame that contains
        it."""
        self.width = width
        self.rows = layout(self.graph.tree, self.top, width)
        self._at = {
            span.frame: (row, place)
            for row, spans in enumerate(self.rows)
            for place, span in enumerate(spans)
            if span.frame is not None
        }
        self.cursor = self._drawn(self.cursor)

    def _drawn(self, frame: FlameFrame) -> FlameFrame:
        """Return the frame itself, the fold that contains it, or the innermost drawn frame around it."""
        tree, inner = self.graph.tree, frame
        while frame not in self._at:
            around = tree.around(frame)
            if around is None or frame == self.top:
                return self.top
            folds = (drawn for drawn in self._at if drawn.size and drawn.node == around)
            first_child = inner.first if inner.size else -1
            for fold in folds:
                if fold.first <= first_child < fold.first + fold.size or inner.node in tree.frames_in(fold):
                    return fold
            frame = inner = FlameFrame(around)
        return frame

    @property
    def row(self) -> int:
        """Row of the cursor."""
        return self._at[self.cursor][0] if self.cursor in self._at else 0

    def at(self, row: int, column: int) -> FlameFrame | None:
        """Return the frame drawn at a row and column; None if there is none."""
        if not 0 <= row < len(self.rows):
            return None
        return next((span.frame for span in self.rows[row] if span.begin <= column < span.end), None)

    # -- the cursor -------------------------------------------------------------------------------------------

    def up(self) -> None:
        """Move to the enclosing frame; from the top frame of a zoomed view, zoom out one step."""
        if self.cursor == self.top:
            self.out()
            return
        row, place = self._at[self.cursor]
        begin = self.rows[row][place].begin
        above = self.at(row - 1, begin)
        if above is not None:
            self._left[above] = self.cursor
            self.cursor = above

    def down(self) -> None:
        """Move to the inner frame that the cursor came from, otherwise to the largest one."""
        if self.cursor not in self._at:
            return
        row, place = self._at[self.cursor]
        span = self.rows[row][place]
        inner = self._left.get(self.cursor)
        if inner is None or inner not in self._at or self.graph.tree.around(inner) != self.cursor.node:
            below = self.rows[row + 1] if row + 1 < len(self.rows) else ()
            inner = next((s.frame for s in below if s.frame is not None and span.begin <= s.begin < span.end), None)
        if inner is not None:
            self.cursor = inner

    def sideways(self, step: int) -> None:
        """Move to the next frame of the row; it may be inside another frame."""
        if self.cursor in self._at:
            row, place = self._at[self.cursor]
            spans = self.rows[row]
            neighbours = spans[place + 1 :] if step > 0 else spans[:place][::-1]
            self.cursor = next((span.frame for span in neighbours if span.frame is not None), self.cursor)

    def edge(self, step: int) -> None:
        """Move to the first or the last frame of the row."""
        if self.cursor in self._at:
            frames = [span.frame for span in self.rows[self._at[self.cursor][0]] if span.frame is not None]
            self.cursor = frames[0 if step < 0 else -1]

    # -- zoom -------------------------------------------------------------------------------------------------

    def opens(self, frame: FlameFrame) -> bool:
        """Return whether there are frames inside it to zoom in to."""
        return frame != self.top and self.graph.tree.total_of(frame) > self.graph.tree.own_of(frame)

    def into(self, frame: FlameFrame) -> bool:
        """Give a frame the full width; return False if nothing is inside it."""
        if not self.opens(frame):
            return False
        self._before.append((self.top, self.cursor))
        self.top = self.cursor = frame
        self.resize(self.width)
        return True

    def out(self) -> bool:
        """Zoom out one step; return False if everything is already in view."""
        if self.top == WHOLE:
            return False
        self.top, self.cursor = self._before.pop() if self._before else (WHOLE, self.top)
        self.resize(self.width)
        return True

    def whole(self) -> None:
        """Show everything again; the cursor stays."""
        self._before.clear()
        self.top = WHOLE
        self.resize(self.width)

    def go(self, node: int) -> None:
        """Move the cursor to a frame, and zoom as far as needed to draw it."""
        frame = FlameFrame(node)
        self.cursor = frame
        if self._drawn(frame) == frame:
            return
        parent = self.graph.tree.parents[node]
        self.whole()
        self.into(FlameFrame(parent))
        while (fold := self._drawn(frame)) != frame and self.into(fold):
            continue
        self.cursor = self._drawn(frame)

    def carried_to(self, graph: FlameGraph) -> FlameBrowse:
        """Return the same view of a graph that has changed: frames are matched by name."""
        before, after = self.graph.tree, graph.tree

        def matched(frame: FlameFrame) -> FlameFrame:
            node = after.find(before.names[step] for step in before.path(frame.node))
            return FlameFrame(node, frame.first, frame.size) if frame.first + frame.size <= len(after.inside(node)) \
                else FlameFrame(node)  # fmt: skip

        steps = [(matched(top), matched(cursor)) for top, cursor in self._before]
        return FlameBrowse(graph, self.width, matched(self.top), matched(self.cursor), _before=steps)
