"""The lines of the timeline: the ruler, the titles, the cells, and the overlays: range, link and cursor.

This module has no colours: text comes with names of styles, and an overlay looks up its style by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.segment import Segment
from textual.strip import Strip

from jaxprof.analysis.lanes.kinds import COUNTED_LANES, KINDS
from jaxprof.analysis.lanes.rows import Busy, Ints, LaneGroup, LaneRow
from jaxprof.text import columns, safe, shorten
from jaxprof.tui.kit.axis_browse import AxisWindow
from jaxprof.units import integer

if TYPE_CHECKING:
    from rich.style import Style

    from jaxprof.analysis.lanes.navigation import Matches
    from jaxprof.analysis.lanes.rows import Lanes
    from jaxprof.tui.profile.timeline.browse import Browse


NAMED_COLUMNS = 4
"""Least columns of an interval that carries its name."""
_NOTHING = -1


@dataclass(frozen=True, slots=True)
class Named:
    """An interval that is wide enough for its name: columns `first` to `last`, the last exclusive."""

    first: int
    last: int
    begins: bool
    """Whether the start of the interval is in view."""
    label: int
    kind: int


@dataclass(frozen=True, slots=True)
class Columns:
    """A row in a window, column by column."""

    kind: NDArray[np.int64]
    """Index of the kind in each column, -1 where nothing ran."""
    height: NDArray[np.float64]
    """Share of the column that was busy, 0..1."""
    gap: NDArray[np.bool_]
    """Whether nothing ran in a column between the row's first and last interval."""
    hit: NDArray[np.bool_]
    """Whether a column holds a match of the search."""
    named: Sequence[Named]


def edges(window: AxisWindow, width: int) -> Ints:
    """Return the borders of `width` columns."""
    return window.start + (np.arange(width + 1, dtype=np.int64) * window.span) // width


def columns_of(lane: LaneGroup, row: LaneRow, window: AxisWindow, width: int, hits: Busy | None = None) -> Columns:
    """Return the part of `row` that is in `window`, in `width` columns."""
    borders = edges(window, width)
    if row.values is not None:
        return _counted(row, borders)
    kinds = list(row.busy)
    busy = np.stack([np.diff(row.busy[kind].until(borders)) for kind in kinds]) if kinds else np.zeros((1, width))
    total = busy.sum(axis=0)
    length = np.maximum(np.diff(borders), 1) * row.capacity
    kind = np.where(total > 0, np.array(kinds or [0])[busy.argmax(axis=0)], _NOTHING)
    inside = (borders[1:] > row.starts[0]) & (borders[:-1] < row.ends[-1]) if len(row.starts) else total > 0
    matched = np.diff(hits.until(borders)) > 0 if hits is not None else np.zeros(width, np.bool_)
    return Columns(
        kind=kind,
        height=np.minimum(total / length, 1.0),
        gap=(total == 0) & inside,
        hit=matched,
        named=_named(lane, row, window, width) if row.capacity == 1 else (),
    )


def _counted(row: LaneRow, borders: Ints) -> Columns:
    """Return the columns of a counter: the highest value in each column as a share of its highest value of all."""
    assert row.values is not None
    first = np.maximum(np.searchsorted(row.starts, borders[:-1], "right") - 1, 0)
    last = np.searchsorted(row.starts, borders[1:], "left")
    # The maximum of each piece. Every other result is between two pieces; an empty piece yields its first value.
    pieces = np.stack([first, last], axis=1).ravel()
    high = np.maximum.reduceat(np.append(row.values, -np.inf), pieces)[::2]
    there = borders[1:] > row.starts[0]
    top = max(float(row.values.max()), 1e-300)
    height = np.where(there, np.clip(high / top, 0.0, 1.0), 0.0)
    kind = next(iter(row.busy))
    nothing = np.zeros(len(height), np.bool_)
    return Columns(np.where(there, kind, _NOTHING), height, nothing, nothing, ())


def _named(lane: LaneGroup, row: LaneRow, window: AxisWindow, width: int) -> list[Named]:
    first = max(0, int(np.searchsorted(row.starts, window.start, "right")) - 1)
    last = int(np.searchsorted(row.starts, window.end, "left"))
    starts, ends = row.starts[first:last], row.ends[first:last]
    least = window.span * NAMED_COLUMNS // width
    named = []
    for index in np.flatnonzero(ends - starts >= max(1, least)).tolist():
        start, end = int(starts[index]), int(ends[index])
        begin = max(0, -(-(start - window.start) * width // window.span))
        stop = min(width, window.column_of(end, width))
        if stop - begin >= NAMED_COLUMNS:
            label = int(row.label[first + index])
            named.append(Named(begin, stop, start >= window.start, label, lane.kind_of_label[label]))
    return named


def busy_share(row: LaneRow, window: AxisWindow) -> float:
    """Return the share of the window in which the row was busy; for several threads, their mean."""
    borders = np.array([window.start, window.end], np.int64)
    busy = sum(int(np.diff(of_kind.until(borders))[0]) for of_kind in row.busy.values())
    return busy / max(1, window.span * row.capacity)


_HEIGHTS = "▁▂▃▄▅▆▇█"
_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_FREE = re.compile(r" {2,}|^ | $")
"""Spaces that belong to no label of the ruler: inside a label, spaces are single."""


@dataclass(frozen=True, slots=True)
class StyledColumns:
    """Columns of one style."""

    text: str
    style: str
    """Name of the style: a kind, or `hit`, `gap`, `map`, `map-window`."""
    solid: bool = False
    """Whether the text is drawn on the colour, not in it: a name on its interval."""


def with_range(text: str, first: int, last: int) -> str:
    """Return a ruler with the columns of a range between brackets, which show without colours too; the labels stay.

    A bracket is left out where the range goes on outside of the ruler: `first` below 0, or `last` beyond its end.
    """
    marks = {first: "├", last: "┤"} if first != last else {first: "┼"}
    free = [space.span() for space in _FREE.finditer(text)]
    between = {at for begin, end in free for at in range(max(begin, first), min(end, last + 1))}
    return "".join(marks.get(at, "─" if at in between else character) for at, character in enumerate(text))


def ruler_time(value: float, step: float) -> str:
    """Return a round time of a ruler whose marks are `step` nanoseconds apart, in a unit that needs no fraction."""
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if step >= scale), _UNITS[-1])
    return f"{integer(round(value / scale))} {unit}"


def title(lane: LaneGroup, name: str, number: int, row: LaneRow, room: int) -> str:
    """Return the title of a line in `room` columns: a lane (`number` -1) by name, a thread by number, or a deeper
    level.

    The details show the name of a thread.
    """
    room -= 2
    several = lane.summary.capacity
    mark, note = " ", ""
    if number < 0:
        mark, note = ("▸" if lane.opens else " "), threads_of(lane)
    elif row.level:
        name = "  " * min(row.level, 4) + "└"
    else:
        mark = "▾" if number == 0 and lane.opens else " "
        if several > 1:
            note = f" {sum(above.level == 0 for above in lane.rows[: number + 1])}"
    text = shorten(name, max(1, room - len(note))) + note
    return f"{mark} {text}" + " " * max(0, room - columns(text))


def cells(lane: LaneGroup, row: Columns) -> list[StyledColumns]:
    """Return the columns of a row; neighbours of the same style are joined."""
    kinds, heights = row.kind.tolist(), row.height.tolist()
    gaps, hits = row.gap.tolist(), row.hit.tolist()
    glyphs: list[str] = []
    styles: list[tuple[str, bool]] = []
    for kind, height, gap, hit in zip(kinds, heights, gaps, hits, strict=True):
        if kind >= 0:
            glyphs.append(_HEIGHTS[min(7, int(height * 8))])
            styles.append(("hit" if hit else KINDS[kind], False))
        else:
            glyphs.append("·" if gap and lane.on_device else " ")
            styles.append(("gap", False))
    for named in row.named:
        style = "hit" if hits[named.first] else KINDS[named.kind]
        text = _label(lane.labels[named.label][0], named.last - named.first, begins=named.begins)
        glyphs[named.first : named.last] = text
        styles[named.first : named.last] = [(style, True)] * (named.last - named.first)
    return _joined(glyphs, styles)


def bars(shares: Sequence[float]) -> list[str]:
    """Return a character for each share, 0..1, as high as it; a space for none."""
    return [_HEIGHTS[min(7, int(share * 8))] if share > 0 else " " for share in shares]


def joined(glyphs: Sequence[str], styles: Sequence[str]) -> list[StyledColumns]:
    """Return a line of characters, each with the name of its style; neighbours of the same style are joined."""
    return _joined(glyphs, [(style, False) for style in styles])


def _joined(glyphs: Sequence[str], styles: Sequence[tuple[str, bool]]) -> list[StyledColumns]:
    pieces: list[StyledColumns] = []
    begin = 0
    for at in range(1, len(glyphs) + 1):
        if at == len(glyphs) or styles[at] != styles[begin]:
            name, solid = styles[begin]
            pieces.append(StyledColumns("".join(glyphs[begin:at]), name, solid))
            begin = at
    return pieces


def _label(name: str, room: int, *, begins: bool) -> list[str]:
    """Return a name in exactly `room` columns, after a thin line if the interval begins here."""
    mark = "▏" if begins else " "
    text = shorten(re.sub(r"\s+", " ", safe(name)), max(1, room - 1))
    cells: list[str] = []
    for character in text:
        width = columns(character)
        if width == 1:
            cells.append(character)
        elif width == 2:
            cells += [character, ""]
        elif cells:
            cells[-1] += character
    return [mark, *cells, *[" "] * (room - 1 - len(cells))]


_STREAM = re.compile(r"Stream #(\d+)(?:\((.*)\))?$", re.DOTALL)
_PREFIX = re.compile(r"^(tf_)?(XLA(?=[A-Z]))?")
"""The common prefix of threads of XLA's pools."""


def lane_name(lane: LaneGroup) -> str:
    """Return the whole name of a lane, its most distinctive part first: `gpu:0 #13 Compute` for a stream."""
    host, _, device = lane.device.rpartition("/")
    stream = _STREAM.match(lane.title)
    title = f"#{stream[1]} {stream[2] or ''}".strip() if stream else _PREFIX.sub("", lane.title) or lane.title
    if device == "host":
        return f"{host} {title}" if host else title
    return f"{lane.device} {title.replace('XLA ', '')}"


def threads_of(lane: LaneGroup) -> str:
    """Return the number of threads of a lane, as shown behind its name; empty for one."""
    return f" ×{lane.summary.capacity}" if lane.summary.capacity > 1 else ""


def lane_names(lanes: Sequence[LaneGroup], room: int) -> list[str]:
    """Return the names in `room` columns; a lane of several threads leaves columns for their number.

    If shortening makes two names equal, their common part is left out; if they are still equal, they get numbers.
    """
    whole = [lane_name(lane) for lane in lanes]
    rooms = [max(4, room - columns(threads_of(lane))) for lane in lanes]
    names = [shorten(name, width) for name, width in zip(whole, rooms, strict=True)]
    for same in _duplicates(names):
        common = _common_prefix_length([whole[at] for at in same])
        for at in same:
            kept = whole[at].split(" ", 1)[0][: max(0, rooms[at] // 2 - 1)] if " " in whole[at][:common] else ""
            rest = whole[at][common:]
            names[at] = shorten(f"{kept} …{rest}" if kept else f"…{rest}", rooms[at])
    for same in _duplicates(names):
        for number, at in enumerate(same, 1):
            mark = f" {number}"
            names[at] = shorten(names[at], max(1, rooms[at] - columns(mark))) + mark
    return names


def _common_prefix_length(names: Sequence[str]) -> int:
    """Return the length of the common prefix, which is shorter than the shortest name."""
    shortest = min(map(len, names))
    return next((at for at in range(shortest) if len({name[at] for name in names}) > 1), max(0, shortest - 1))


def _duplicates(names: Sequence[str]) -> list[list[int]]:
    """Return the indices of lanes with the same name, for each name that several lanes have."""
    places: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        places.setdefault(name, []).append(at)
    return [same for same in places.values() if len(same) > 1]


@dataclass(frozen=True, slots=True)
class Overlays:
    """The overlays of one drawing of the timeline."""

    browse: Browse
    gutter: int
    """Columns of the lane names."""
    width: int
    """Columns of the lanes, to the right of the gutter and its rule."""
    room: int
    """Lines available for the lanes."""
    style: Callable[..., Style]

    def _columns(self, begin: int, end: int) -> tuple[int, int]:
        """Return the first and last column (exclusive) of a time span, counted from the left edge of the gutter."""
        first = max(0, self.browse.window.column_of(begin, self.width))
        last = min(self.width, self.browse.window.column_of(end, self.width) + 1)
        return self.gutter + 1 + first, self.gutter + 1 + max(first, last)

    def in_range(self, strip: Strip) -> Strip:
        """Draw the columns of the selected range on another background; a name keeps that of its interval."""
        if self.browse.range is None:
            return strip
        first, last = self._columns(*self.browse.range)
        strip = strip.adjust_cell_length(max(strip.cell_length, last))
        if first >= last:
            return strip
        before, inside, after = strip.divide([first, last, strip.cell_length])
        ground, usual = self.style("range", solid=False, ground=True), self.style("gap").bgcolor
        lit = [
            Segment(segment.text, (segment.style or ground) + ground)
            if segment.style is None or segment.style.bgcolor in (None, usual)
            else segment
            for segment in inside
        ]
        return Strip.join([before, Strip(lit), after])

    def link(self, strip: Strip, y: int) -> Strip:
        """Draw an arrow to the other end of the link under the cursor, in the column where that end begins."""
        end = self.browse.linked
        if end is None:
            return strip
        places = enumerate(self.browse.places)
        line = next((n for n, place in places if place.lane == end.lane and place.row in (-1, end.row)), None)
        start = int(self.browse.lanes.lanes[end.lane].rows[end.row].starts[end.index])
        column = self.browse.window.column_of(start, self.width)
        here, there = self.browse.shown_at(self.browse.line), self.browse.shown_at(line) if line is not None else None
        if here is None or line is None or not 0 <= column < self.width:
            return strip
        down = line > self.browse.line
        reach = there if there is not None else (self.room if down else -1)
        if not min(here, reach) <= y <= max(here, reach) or y == here:
            return strip
        mark = ("▼" if down else "▲") if y == there else "│"
        at = self.gutter + 1 + column
        before, _, after = strip.divide([at, at + 1, strip.cell_length])
        return Strip.join([before, Strip([Segment(mark, self.style("link"))]), after])

    def cursor(self, strip: Strip, character: str = "") -> Strip:
        """Draw the column of the cursor, with `character` if one is given."""
        column = self.browse.window.column_of(self.browse.cursor, self.width)
        if not 0 <= column < self.width:
            return strip
        at = self.gutter + 1 + column
        before, under, after = strip.divide([at, at + 1, strip.cell_length])
        return Strip.join([before, Strip([Segment(character or under.text, self.style("cursor"))]), after])


class Minimap:
    """A map of the whole recording in `width` columns."""

    def __init__(self, lanes: Lanes, whole: AxisWindow, width: int) -> None:
        self.lanes, self.whole, self.width = lanes, whole, width
        measured = [lane for lane in lanes.lanes if lane.summary.values is None]
        counted = [lane for lane in measured if lane.kind in COUNTED_LANES] or measured
        borders = edges(whole, width)
        length = np.maximum(np.diff(borders), 1)
        self._busy: NDArray[np.float64] = np.zeros(width)
        for lane in counted:
            share = np.diff(lane.active.until(borders)) / (length * lane.summary.capacity)
            self._busy = np.maximum(self._busy, share)
        self._hits: tuple[Matches | None, NDArray[np.bool_]] = (None, np.zeros(width, np.bool_))

    def lines(self, window: AxisWindow, count: int, matches: Matches | None = None) -> list[list[StyledColumns]]:
        """Return the map in one or two lines."""
        first, last = self._columns(window)
        inside = [first <= column <= last for column in range(self.width)]
        hits = self._hit(matches)
        glyphs = bars(self._busy.tolist())
        styles = ["hit" if hit else "map-window" if within else "map" for hit, within in zip(hits, inside, strict=True)]
        frame = self._frame(first, last)
        if count > 1:
            return [joined(glyphs, styles), joined(frame, ["map-window" if within else "map" for within in inside])]
        if window.span < self.whole.span:
            for column in {first, last}:
                glyphs[column], styles[column] = frame[column], "map-window"
        return [joined(glyphs, styles)]

    def _columns(self, window: AxisWindow) -> tuple[int, int]:
        """Return the first and the last column of a window."""
        first = min(self.width - 1, self.whole.column_of(window.start, self.width))
        return first, max(first, min(self.width - 1, self.whole.column_of(window.end - 1, self.width)))

    def _frame(self, first: int, last: int) -> list[str]:
        middle = "▲" if first == last else "┗" + "━" * (last - first - 1) + "┛"
        return list("┄" * first + middle + "┄" * (self.width - 1 - last))

    def _hit(self, matches: Matches | None) -> list[bool]:
        if matches is not self._hits[0]:
            hits = np.zeros(self.width, np.bool_)
            if matches is not None:
                hit_columns = (matches.starts - self.whole.start) * self.width // self.whole.span
                hits[np.clip(hit_columns, 0, self.width - 1)] = True
            self._hits = matches, hits
        hit: list[bool] = self._hits[1].tolist()
        return hit
