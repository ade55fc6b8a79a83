"""The lines of the timeline: the times of the ruler, the titles, and the characters and styles of the columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxprof.analysis.lanes import Busy, Ints, LaneGroup, LaneRow
from jaxprof.analysis.timeline import KINDS
from jaxprof.text import columns, safe, shorten
from jaxprof.tui.kit.drawing import SPARKS
from jaxprof.tui.profile.timeline.browse import AxisWindow
from jaxprof.units import integer

NAMED_COLUMNS = 4
"""Least columns of an interval that carries its name."""
_NOTHING = -1
STYLES: Mapping[str, str] = {
    "matmul, conv": "$phase-compile", "fusion": "$phase-run", "reduction": "$phase-lower", "copies": "$phase-transfer",
    "collective": "$phase-first", "kernel": "$better", "programs": "$baseline", "dispatch": "$phase-trace",
    "waiting": "$text-disabled", "host": "$quiet", "counters": "$accent",
}  # fmt: skip
"""The colour of each kind."""
_HIT = "$accent"
"""The colour of a match of the search."""


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


def edges(window: AxisWindow, width: int) -> Ints:
    """Return the borders of `width` columns."""
    return window.start + (np.arange(width + 1, dtype=np.int64) * window.span) // width


def columns_of(row: LaneRow, window: AxisWindow, width: int, hits: Busy | None = None) -> Columns:
    """Return the part of `row` that is in `window`, in `width` columns."""
    borders = edges(window, width)
    if row.values is not None:
        return _counted(row, borders)
    kinds = list(row.busy)
    busy = np.stack([np.diff(row.busy[kind].until(borders)) for kind in kinds]) if kinds else np.zeros((1, width))
    total = busy.sum(axis=0)
    length = np.maximum(np.diff(borders), 1) * row.capacity
    inside = (borders[1:] > row.starts[0]) & (borders[:-1] < row.ends[-1]) if len(row.starts) else total > 0
    return Columns(
        kind=np.where(total > 0, np.array(kinds or [0])[busy.argmax(axis=0)], _NOTHING),
        height=np.minimum(total / length, 1.0),
        gap=(total == 0) & inside,
        hit=np.diff(hits.until(borders)) > 0 if hits is not None else np.zeros(width, np.bool_),
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
    nothing = np.zeros(len(height), np.bool_)
    return Columns(np.where(there, next(iter(row.busy)), _NOTHING), height, nothing, nothing)


def cells(
    lane: LaneGroup, row: LaneRow, window: AxisWindow, width: int, hits: Busy | None = None
) -> tuple[list[str], list[str]]:
    """Return the character and the style of each of `width` columns of a row. A wide enough interval carries its name,
    which is drawn on its colour, not in it."""
    drawn = columns_of(row, window, width, hits)
    matched = drawn.hit.tolist()
    glyphs: list[str] = []
    styles: list[str] = []
    for kind, height, gap, hit in zip(
        drawn.kind.tolist(), drawn.height.tolist(), drawn.gap.tolist(), matched, strict=True
    ):
        if kind >= 0:
            glyphs.append(SPARKS[min(7, int(height * 8))])
            styles.append(f"bold {_HIT}" if hit else STYLES[KINDS[kind]])
        else:
            glyphs.append("·" if gap and lane.on_device else " ")
            styles.append("$rule")
    for first, last, index in _wide(row, window, width):
        label = int(row.label[index])
        name, colour = lane.labels[label][0], _HIT if matched[first] else STYLES[KINDS[lane.kind_of_label[label]]]
        glyphs[first:last] = _label(name, last - first, begins=bool(row.starts[index] >= window.start))
        styles[first:last] = [f"$background on {colour}"] * (last - first)
    return glyphs, styles


def _wide(row: LaneRow, window: AxisWindow, width: int) -> Iterator[tuple[int, int, int]]:
    """Yield the intervals of a row of one thread that are wide enough for their names: first column, the column after
    the last, and index."""
    if row.capacity > 1 or row.values is not None:
        return
    inside = row.inside(window.start, window.end)
    least = window.span * NAMED_COLUMNS // width
    for offset in np.flatnonzero(row.ends[inside] - row.starts[inside] >= max(1, least)).tolist():
        index = inside.start + offset
        first = max(0, -(-(int(row.starts[index]) - window.start) * width // window.span))
        last = min(width, window.column_of(int(row.ends[index]), width))
        if last - first >= NAMED_COLUMNS:
            yield first, last, index


def busy_share(row: LaneRow, window: AxisWindow) -> float:
    """Return the share of the window in which the row was busy; for several threads, their mean."""
    busy = sum(of_kind.between(window.start, window.end) for of_kind in row.busy.values())
    return busy / max(1, window.span * row.capacity)


_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


def ruler_time(value: float, step: float) -> str:
    """Return a round time of a ruler whose marks are `step` nanoseconds apart, in a unit that needs no fraction."""
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if step >= scale), _UNITS[-1])
    return f"{integer(round(value / scale))} {unit}"


def title(lane: LaneGroup, number: int, row: LaneRow, room: int) -> str:
    """Return the title of a line in `room` columns: a lane (`number` -1) by name, a thread by number, or a deeper
    level.

    The details show the name of a thread.
    """
    room -= 2
    several = lane.summary.capacity
    mark, name, note = " ", lane_name(lane), ""
    if number < 0:
        mark, note = ("▸" if lane.opens else " "), (f" ×{several}" if several > 1 else "")
    elif row.level:
        name = "  " * min(row.level, 4) + "└"
    else:
        mark = "▾" if number == 0 and lane.opens else " "
        if several > 1:
            note = f" {sum(above.level == 0 for above in lane.rows[: number + 1])}"
    text = shorten(name, max(1, room - len(note))) + note
    return f"{mark} {text}" + " " * max(0, room - columns(text))


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
    stream = _STREAM.match(lane.title)
    title = f"#{stream[1]} {stream[2] or ''}".strip() if stream else _PREFIX.sub("", lane.title) or lane.title
    if lane.device == "host":
        return title
    return f"{lane.device} {title.replace('XLA ', '')}"
