"""What stands in the lines of the timeline, as text with the names of its styles: the ruler, titles, and cells.

Nothing here knows a colour or where the cursor is: the same line looks the same wherever it is drawn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxprof.safe_text import columns, safe, shorten
from jaxprof.tui.timeline.kinds import KINDS
from jaxprof.tui.widgets.scales import Scale
from jaxprof.units import integer

if TYPE_CHECKING:
    from jaxprof.tui.timeline.frame import Columns
    from jaxprof.tui.timeline.lanes import Lane, Row
    from jaxprof.tui.timeline.window import Window

_HEIGHTS = "▁▂▃▄▅▆▇█"
_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_TICK_COLUMNS = 14
"""The marks of the ruler are so far apart, or farther."""
_WORDY = re.compile(r"\s+")
_STREAM = re.compile(r"Stream #(\d+)(?:\((.*)\))?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Columns of one style."""

    text: str
    style: str
    """Name of a kind, `hit` or `gap`."""
    solid: bool = False
    """Text on the colour, and not in it: a name that is written on its interval."""


def ruler(window: Window, width: int) -> str:
    """Round times above `width` columns of a window."""
    text = [" "] * width
    ticks = Scale(window.start, window.end).ticks(max(2, width // _TICK_COLUMNS))
    step = ticks[1] - ticks[0] if len(ticks) > 1 else window.span
    free = 0
    for tick in ticks:
        column = window.column_of(round(tick), width)
        label = f"╷{ruler_time(tick, step)}"
        if free <= column and column + columns(label) <= width:
            text[column : column + len(label)] = list(label)
            free = column + len(label) + 1
    return "".join(text)


def ruler_time(value: float, step: float) -> str:
    """A round time of a ruler whose marks are `step` nanoseconds apart, in the unit that needs no fraction."""
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if step >= scale), _UNITS[-1])
    return f"{integer(round(value / scale))} {unit}"


def title(lane: Lane, number: int, row: Row, room: int) -> str:
    """What a line is, in `room` columns: a lane (`number` -1), one of its threads by its number (the details have its
    name), or a deeper level."""
    room -= 2
    several = lane.summary.capacity
    name = lane.title if not lane.on_device else lane.device if several > 1 else device_title(lane)
    mark, note = " ", ""
    if number < 0:
        mark, note = ("▸" if lane.opens else " "), (f" ×{several}" if several > 1 else "")
    elif row.level:
        name = "  " * min(row.level, 4) + "└"
    else:
        mark = "▾" if number == 0 and lane.opens else " "
        if several > 1:
            note = f" {sum(one.level == 0 for one in lane.rows[: number + 1])}"
    text = shorten(name, max(1, room - len(note))) + note
    return f"{mark} {text}" + " " * max(0, room - columns(text))


def device_title(lane: Lane) -> str:
    """`gpu:0 #13 Compute` for a stream: what tells it from the others comes first."""
    found = _STREAM.match(lane.title)
    return f"{lane.device} #{found[1]} {found[2] or ''}" if found else f"{lane.device} {lane.title}"


def cells(lane: Lane, found: Columns) -> list[Stretch]:
    """The columns of a row, as few stretches as there are styles next to each other."""
    kinds, heights = found.kind.tolist(), found.height.tolist()
    gaps, hits = found.gap.tolist(), found.hit.tolist()
    glyphs: list[str] = []
    styles: list[tuple[str, bool]] = []
    for kind, height, gap, hit in zip(kinds, heights, gaps, hits, strict=True):
        if kind >= 0:
            glyphs.append(_HEIGHTS[min(7, int(height * 8))])
            styles.append(("hit" if hit else KINDS[kind], False))
        else:
            glyphs.append("·" if gap and lane.on_device else " ")
            styles.append(("gap", False))
    for named in found.named:
        style = "hit" if hits[named.first] else KINDS[named.kind]
        text = _label(lane.labels[named.label][0], named.last - named.first, begins=named.begins)
        glyphs[named.first : named.last] = text
        styles[named.first : named.last] = [(style, True)] * (named.last - named.first)
    stretches: list[Stretch] = []
    begin = 0
    for at in range(1, len(glyphs) + 1):
        if at == len(glyphs) or styles[at] != styles[begin]:
            name, solid = styles[begin]
            stretches.append(Stretch("".join(glyphs[begin:at]), name, solid))
            begin = at
    return stretches


def _label(name: str, room: int, *, begins: bool) -> list[str]:
    """A name in exactly `room` columns, a thin line before it where the interval begins."""
    mark = "▏" if begins else " "
    text = shorten(_plain(name), max(1, room - 1))
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


def _plain(name: str) -> str:
    return _WORDY.sub(" ", safe(name))
