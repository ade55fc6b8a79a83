"""What is written to a terminal, without the cells that look so already.

A screen that is drawn by whole boxes sends up to 50 KB for a key over the user's line, most of it what stood there. Its
text is written at positions, each piece in a style; other sequences pass through, and after one that may move or clear
text, nothing is known of the terminal.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache

from jaxprof.base.text import columns

_TOKEN = re.compile(
    r"\x1b\[(\d+);(\d+)H|\x1b\[([\d;:]*)m|([^\x00-\x1f\x7f]+)|(\n)"
    r"|(\x1b(?:\[[0-?]*[ -/]*[@-~]|[]P_^X].*?(?:\x07|\x1b\\)|.)|.)",
    re.DOTALL,
)
"""A position, a style, text, the end of a line, or else another sequence or character."""
_HARMLESS = ("\x1b[?", "\x1b[>", "\x1b[<", "\x1b]", "\x1bP", "\x07")
_ALTERNATE, _BEGIN, _END = "\x1b[?1049", "\x1b[?2026h", "\x1b[?2026l"
_BETWEEN = 8
"""A position takes about as many bytes as this many cells, which are rather written again."""


_ATTRIBUTE = re.compile(r"([34])8;2;\d+;\d+;\d+|([34])8;5;\d+|\d+")
_OFF = {"1": "22", "2": "22", "3": "23", "4": "24", "7": "27", "fg": "39", "bg": "49"}
"""What takes a part of a style away; bold and dim go together."""
_WITHOUT_INK = {"1", "2", "3", "fg", "bg"}
"""What a style may have whose blanks show the background alone: no line, and not reversed."""


@lru_cache(maxsize=4096)
def _attributes(style: str) -> dict[str, str]:
    """Return the parts of a style by what they set: `fg`, `bg`, or an attribute such as bold, which is its number."""
    found = {}
    for part in _ATTRIBUTE.finditer(style):
        number = int(part[1] or part[2] or part[0]) * (10 if part[1] or part[2] else 1)
        kinds = {3: "fg", 9: "fg", 4: "bg", 10: "bg"} if number >= 30 else {}
        found[kinds.get(number // 10, part[0])] = part[0]
    return found


@lru_cache(maxsize=4096)
def _change(before: str, now: str) -> str:
    """Return the sequence that changes one style into another: what differs, if that can be taken away alone."""
    if before == now:
        return ""
    old, new = _attributes(before), _attributes(now)
    taken = old.keys() - new.keys()
    if not taken <= _OFF.keys() or ({"1", "2"} & taken and {"1", "2"} & new.keys()) or not now:
        return f"\x1b[0;{now}m" if now else "\x1b[m"
    parts = [
        *dict.fromkeys(_OFF[kind] for kind in sorted(taken)),
        *(part for kind, part in new.items() if old.get(kind) != part),
    ]
    return f"\x1b[{';'.join(parts)}m"


@lru_cache(maxsize=4096)
def _of_blank(style: str) -> str:
    found = _attributes(style)
    return found.get("bg", "") if found.keys() <= _WITHOUT_INK else style


class ScreenCells:
    """The cells of a terminal as far as they are known, by row and column from 1: character and style."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[int, tuple[str, str]]] = defaultdict(dict)
        self._cursor: tuple[int, int] | None = None
        self._style = ""
        self._wanted = (1, 1)
        """Where the writer has put the cursor, while the terminal's may be elsewhere."""
        self._begins = ""
        """The beginning of an update of which nothing was written yet."""

    def forget(self) -> None:
        """Draw all again: the terminal has another size, or shows something else."""
        self._rows.clear()
        self._cursor = None

    def changes(self, data: str) -> str:
        """Return `data` without what changes nothing on the terminal."""
        written: list[str] = []
        row, column, style = *self._wanted, ""
        for match in _TOKEN.finditer(data):
            at_row, at_column, of_style, text, line_end, other = match.groups()
            if at_row:
                row, column = int(at_row), int(at_column)
            elif of_style is not None:
                style = "" if of_style in ("", "0") else of_style
            elif line_end:
                row, column = row + 1, 1
            elif text:
                width = columns(text)
                if text.isascii() or (width == len(text) and all(columns(character) == 1 for character in text)):
                    written += self._differing(row, column, style, text)
                else:  # where its characters end is the terminal's affair
                    written.append(self._text(row, column, style, text))
                    self._cursor = None
                    for at in range(column, column + width):
                        self._rows[row].pop(at, None)
                column += width
            elif other == _BEGIN:
                self._begins = other
            elif other == _END and self._begins:
                self._begins = ""
            else:
                written.append(other)
                if not other.startswith(_HARMLESS) or other.startswith(_ALTERNATE):
                    self.forget()
        self._wanted = row, column
        if self._cursor != self._wanted and "H" in data:
            written.append(self._move(row, column))
            self._cursor = self._wanted
        if written:
            written = [self._begins, *written, _change(self._style, "")]
            self._begins = self._style = ""
        return "".join(written)

    def _move(self, row: int, column: int) -> str:
        return "" if self._cursor == (row, column) else f"\x1b[{row};{column}H"

    def _text(self, row: int, column: int, style: str, text: str) -> str:
        change, self._style = _change(self._style, style), style
        return f"{self._move(row, column)}{change}{text}"

    def _differing(self, row: int, column: int, style: str, text: str) -> list[str]:
        """Return the output that redraws the changed cells of `text`, and note how they look now."""
        known = self._rows[row]
        written: list[str] = []
        blank = (" ", _of_blank(style))
        cells = [(character, style) if character != " " else blank for character in text]
        differ = [at for at, cell in enumerate(cells) if known.get(column + at) != cell]
        while differ:
            count = next((at for at in range(1, len(differ)) if differ[at] - differ[at - 1] > _BETWEEN), len(differ))
            first, last = differ[0], differ[count - 1] + 1
            written.append(self._text(row, column + first, style, text[first:last]))
            self._cursor = row, column + last
            known.update((column + at, cells[at]) for at in differ[:count])
            del differ[:count]
        return written
