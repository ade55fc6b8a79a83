"""What plots are drawn with: a canvas of braille dots, and scales with round ticks.

Eight dots per character cell make a curve look like a curve, not like stairs. Plain values in, `Content` out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from textual.content import Content

from jaxprof.base.text import columns
from jaxprof.base.values import frozen
from jaxprof.tui.kit.drawing import join_styled

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bit of each dot, by column (0, 1) and row (0 to 3) in its cell."""
_FIRST = 0x2800


class Canvas:
    """A canvas of `width` by `height` cells, that is `2 * width` by `4 * height` dots. The origin is at the top left.

    A cell has one style, that of the last drawing in it. A character (a marker, a label) may cover a cell, because dots
    alone look alike without colours.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = max(0, width), max(0, height)
        self._dots_across, self._dots_down = 2 * self.width, 4 * self.height
        self._bits = [[0] * self.width for _ in range(self.height)]
        self._styles = [[""] * self.width for _ in range(self.height)]
        self._covers: list[list[str]] = [[""] * self.width for _ in range(self.height)]

    def dot(self, x: int, y: int, style: str = "") -> None:
        if 0 <= x < self._dots_across and 0 <= y < self._dots_down:
            row, column = y // 4, x // 2
            self._bits[row][column] |= _DOTS[x % 2][y % 4]
            self._styles[row][column] = style

    def dot_at(self, across: float, up: float) -> tuple[int, int]:
        """Return the column and row of the dot at shares of the width and the height; 0, 0 is at the lower left."""
        return round(across * (self._dots_across - 1)), round((1 - up) * (self._dots_down - 1))

    def line(self, start: tuple[int, int], end: tuple[int, int], style: str = "", *, every: int = 1) -> None:
        across, down = end[0] - start[0], end[1] - start[1]
        steps = max(abs(across), abs(down), 1)
        for step in range(0, steps + 1, every):
            self.dot(start[0] + round(across * step / steps), start[1] + round(down * step / steps), style)

    def put(self, column: int, row: int, text: str, style: str = "") -> None:
        for offset, character in enumerate(text):
            if 0 <= row < self.height and 0 <= column + offset < self.width:
                self._covers[row][column + offset] = character
                self._styles[row][column + offset] = style

    def free(self, column: int, row: int, length: int) -> bool:
        if not (0 <= row < self.height and column >= 0 and column + length <= self.width):
            return False
        cells = range(column, column + length)
        return not any(self._bits[row][cell] or self._covers[row][cell] for cell in cells)

    def with_axis(self, labels: Mapping[int, str], gutter: int) -> list[Content]:
        """Return the canvas line by line, to the right of an axis of `gutter` columns with labels at some rows."""
        lines = []
        for row in range(self.height):
            label = (labels.get(row, "").rjust(gutter), "$text-muted")
            cells = zip(self._bits[row], self._covers[row], self._styles[row], strict=True)
            drawn = ((cover or (chr(_FIRST + bits) if bits else " "), style) for bits, cover, style in cells)
            lines.append(Content.assemble(label, ("┤" if row in labels else "│", "$rule"), join_styled(drawn)))
        return lines

    def row_of(self, up: float) -> int:
        """Return the row of cells at a share of the height, 0 at the bottom and 1 at the top, clipped to the canvas."""
        return min(self.height - 1, max(0, round((1 - up) * (self._dots_down - 1)) // 4))


_NICE = (1.0, 2.0, 5.0, 10.0)


@frozen
class Scale:
    """The values from `low` to `high`, spaced linearly or logarithmically."""

    low: float
    high: float
    log: bool = False

    def fraction(self, value: float) -> float:
        """Return where `value` lies: 0 at `low`, 1 at `high`, not clipped outside."""
        if self.log:
            if value <= 0:
                return -math.inf
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[float]:
        """Return at most `most` round values on the scale, ascending: multiples or powers of 1, 2, 5 and 10."""
        if most < 1:
            return []
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            for factors in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
                candidates = [f * 10.0**power for power in range(first, last + 1) for f in factors]
                in_range = [value for value in candidates if self.low * 0.999 <= value <= self.high * 1.001]
                if len(in_range) <= most:
                    return in_range
            return in_range[:: math.ceil(len(in_range) / most)]
        rough = (self.high - self.low) / max(1, most - 1)
        power = 10.0 ** math.floor(math.log10(rough))
        for nice in (*_NICE, 20.0, 50.0):
            step = nice * power
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last - first + 1 <= most:
                return [index * step for index in range(first, last + 1)]
        return []


def spanning(values: Iterable[float], *, log: bool = False, margin: float = 0.05, zero: bool = False) -> Scale:
    """Return the scale that shows all `values`, with `margin` of its length free at both ends; `zero` begins at 0.
    Values that a logarithmic scale cannot show (0 and below) are left out. Equal values get room around them."""
    shown = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    if not shown:
        return Scale(1.0, 10.0, log) if log else Scale(0.0, 1.0)
    low, high = min(shown), max(shown)
    if log:
        if high / low < 1.01:
            return Scale(low / 2, high * 2, True)
        room = (high / low) ** margin
        return Scale(low / room, high * room, True)
    if zero:
        low = min(0.0, low)
    if high - low <= abs(high) * 1e-9:
        spread = abs(high) * 0.1 or 1.0
        return Scale(low if zero else low - spread, high + spread)
    room = (high - low) * margin
    return Scale(low if zero else low - room, high + room)


def axis_lines(scale: Scale, text: Callable[[float], str], gutter: int, inner: int, title: str = "") -> list[Content]:
    """Return the axis below a plot with its ticks and their numbers; `title` ends the line of the numbers."""
    line, numbers = ["─"] * inner, [" "] * inner
    free_from, room = 0, inner - (columns(title) + 1 if title else 0)
    for tick in scale.ticks(max(2, inner // 9)):
        column = round(scale.fraction(tick) * (inner - 1))
        if not 0 <= column < inner:
            continue
        line[column] = "┬"
        words = text(tick)
        start = min(max(0, column - columns(words) // 2), room - columns(words))
        if start >= free_from:
            numbers[start : start + columns(words)] = list(words)
            free_from = start + columns(words) + 2
    numbers[inner - columns(title) :] = list(title)
    return [
        Content.styled(" " * gutter + "└" + "".join(line), "$rule"),
        Content.styled(" " * (gutter + 1) + "".join(numbers), "$text-muted"),
    ]


def ruler(scale: Scale, width: int, text: Callable[[float, float], str]) -> str:
    """Return round numbers beside `width` columns, each behind a mark; `text` gets a number and their distance."""
    line, free = [" "] * width, 0
    ticks = scale.ticks(max(2, width // 14))
    step = ticks[1] - ticks[0] if len(ticks) > 1 else scale.high - scale.low
    for tick in ticks:
        column, label = int(scale.fraction(tick) * width), "╷" + text(tick, step)
        if free <= column and column + columns(label) <= width:
            line[column : column + len(label)] = label
            free = column + len(label) + 1
    return "".join(line)
