"""A canvas of braille dots: eight to a character cell, so that a curve in a terminal is a curve and not stairs.

Plain values in, `Content` out. A cell has one style, that of what was drawn into it last, and may be covered by a
character of its own (a marker, a label), because dots alone cannot be told apart without colours.
"""

from __future__ import annotations

from textual.content import Content

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bit of each dot, by column (0, 1) and row (0 to 3) in its cell."""
_FIRST = 0x2800


class Canvas:
    """`width` by `height` cells, that is `2 * width` by `4 * height` dots. The origin is at the top left."""

    def __init__(self, width: int, height: int) -> None:
        self.width = max(0, width)
        self.height = max(0, height)
        self._bits = [[0] * self.width for _ in range(self.height)]
        self._styles = [[""] * self.width for _ in range(self.height)]
        self._covers: list[list[str]] = [[""] * self.width for _ in range(self.height)]

    @property
    def dot_columns(self) -> int:
        """How many dots lie side by side."""
        return 2 * self.width

    @property
    def dot_rows(self) -> int:
        """How many dots lie above each other."""
        return 4 * self.height

    def dot(self, x: int, y: int, style: str = "") -> None:
        """Sets one dot; outside the canvas nothing happens."""
        if 0 <= x < self.dot_columns and 0 <= y < self.dot_rows:
            row, column = y // 4, x // 2
            self._bits[row][column] |= _DOTS[x % 2][y % 4]
            self._styles[row][column] = style

    def line(self, start: tuple[int, int], end: tuple[int, int], style: str = "", *, every: int = 1) -> None:
        """A straight line between two dots (Bresenham's algorithm); `every` above 1 makes it dotted."""
        (x, y), (end_x, end_y) = start, end
        across, down = abs(end_x - x), -abs(end_y - y)
        step_x, step_y = (1 if x < end_x else -1), (1 if y < end_y else -1)
        error, count = across + down, 0
        while True:
            if count % every == 0:
                self.dot(x, y, style)
            if (x, y) == (end_x, end_y):
                return
            count += 1
            twice = 2 * error
            if twice >= down:
                error += down
                x += step_x
            if twice <= across:
                error += across
                y += step_y

    def put(self, column: int, row: int, text: str, style: str = "") -> None:
        """Covers cells with characters of one column each, from `column` on."""
        for offset, character in enumerate(text):
            if 0 <= row < self.height and 0 <= column + offset < self.width:
                self._covers[row][column + offset] = character
                self._styles[row][column + offset] = style

    def free(self, column: int, row: int, length: int) -> bool:
        """Whether `length` cells from there lie on the canvas with nothing drawn into them."""
        if not (0 <= row < self.height and column >= 0 and column + length <= self.width):
            return False
        cells = range(column, column + length)
        return not any(self._bits[row][cell] or self._covers[row][cell] for cell in cells)

    def rows(self) -> list[Content]:
        """The canvas, line by line, each exactly `width` columns wide."""
        return [self._row(row) for row in range(self.height)]

    def _row(self, row: int) -> Content:
        parts: list[tuple[str, str]] = []
        for bits, cover, style in zip(self._bits[row], self._covers[row], self._styles[row], strict=True):
            character = cover or (chr(_FIRST + bits) if bits else " ")
            if parts and parts[-1][1] == style:
                parts[-1] = (parts[-1][0] + character, style)
            else:
                parts.append((character, style))
        return Content.assemble(*parts)
