"""Which columns each frame of a flame graph gets. Pure functions.

At each depth every column belongs to exactly one span. A frame is as wide as its share of the frame above it, to the
column; those that would be narrower than one column are folded into one span, which has at least one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from jaxprof.analysis.flame.tree import FlameFrame, FlameTree

_PART_COLUMNS: Final = 8
"""Columns of each part into which many small frames are divided where nothing else is in view."""


class IcicleSpan(NamedTuple):
    """Columns from `begin` to before `end`."""

    begin: int
    end: int
    frame: FlameFrame | None
    """None where the frame above has time of its own, or nothing is inside it."""


def layout(tree: FlameTree, top: FlameFrame, width: int) -> list[list[IcicleSpan]]:
    """The rows from `top`, which has the whole width, down to the last one with a frame; none for a total of 0."""
    if width < 1 or not tree.total_of(top):
        return []
    rows = [[IcicleSpan(0, width, top)]]
    while True:
        row = [inner for span in rows[-1] for inner in _under(tree, span, whole=len(rows) == 1)]
        if all(span.frame is None for span in row):
            return rows
        rows.append(row)


def _under(tree: FlameTree, span: IcicleSpan, *, whole: bool) -> list[IcicleSpan]:
    """The spans below a span; `whole` for the first row, in which several small frames are opened."""
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
    spans, at = [], begin
    columns = _columns([amount for _, amount in parts], tree.own_of(frame), width)
    for (inner, _), taken in zip(parts, columns, strict=True):
        spans.append(IcicleSpan(at, at + taken, inner))
        at += taken
    if at < end:
        spans.append(IcicleSpan(at, end, None))
    return spans


def _divided(tree: FlameTree, node: int, first: int, count: int, pieces: int) -> list[tuple[FlameFrame, int]]:
    """Small frames as so many parts; a part of one is that frame."""
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


def _columns(amounts: Sequence[int], own: int, width: int) -> list[int]:
    """The width of each part by largest remainder, at least one column each; what is left is the frame's own."""
    total = sum(amounts) + own
    shares = [amount * width for amount in (*amounts, own)]
    columns = [share // total for share in shares]
    order = sorted(range(len(columns)), key=lambda part: -(shares[part] % total))
    for part in order[: width - sum(columns)]:
        columns[part] += 1
    for part in range(len(amounts)):
        if not columns[part]:
            columns[max(range(len(columns)), key=lambda other: columns[other] - (other < len(amounts)))] -= 1
            columns[part] = 1
    return columns[:-1]
