"""Reduces the output to the terminal: only cells that change are written, and only ASCII if the terminal has nothing
else.

Both happen where the bytes are written, so that no widget, ours or one of Textual's, needs a second way to draw: a
character that the terminal lacks is replaced by one of the same width.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import unicodedata
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Final

from jaxprof.operating_system import can_run
from jaxprof.text import columns
from jaxprof.tui.terminal_background import keys_of_typed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from textual.driver import Driver


Cell = tuple[str, str]
"""A character with its combining marks, and the parameters of its style. The second cell of a wide character is empty.
"""

_PIECE = re.compile(r"\x1b\[(?P<place>[\d;]*)H|\x1b\[(?P<style>[\d;]*)m|(?P<text>[^\x00-\x1f\x7f]+)|(?P<line>\n)")
_MODES = re.compile(r"(?:\x1b\[[?>=<][\d;]*\$?[a-z]|\x1b\]52;[^\x07\x1b]*(?:\x07|\x1b\\))+")
"""Sequences that change no cell: terminal modes, queries, and the clipboard."""
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Sequences around a frame, for terminals that show a frame all at once."""
_SCREENS: Final = "\x1b[?1049"
"""Prefix of the sequences that switch between the two screens of a terminal."""
_SHOWN_ON_BLANKS: Final = frozenset({"4", "7", "9", "21", "53"})
"""Style parameters that show on blanks: underline, reverse, strike, double underline, overline."""
_SHORT_GAP = 4
"""Rewrite a gap of up to this many unchanged cells: skipping it costs as many bytes."""


class ChangedCells:
    """Tracks what one terminal shows, for one thread that writes to it."""

    def __init__(self) -> None:
        self._rows: dict[int, list[Cell | None]] = {}
        """Cells that the terminal shows, by row; None if unknown."""
        self._place: tuple[int, int] | None = None
        """Row and column of the cursor; None if unknown."""
        self._style: str | None = None
        self._begins = ""
        self._stale = False

    def forget(self) -> None:
        """Mark what the terminal shows as unknown. Safe in a signal handler."""
        self._stale = True

    def changes(self, data: str, size: tuple[int, int]) -> str:
        """Return what to write instead of `data` so that a terminal of `size` (columns, rows) looks the same."""
        if data == _BEGIN:
            self._begins = data
            return ""
        if data == _END and self._begins:
            self._begins = ""
            return ""
        if self._stale:
            self._rows, self._place, self._style, self._stale = {}, None, None, False
        before, self._begins = self._begins, ""
        written = self._changes(data, size)
        self._begins = "" if written else before
        return before + written if written else ""

    def _changes(self, data: str, size: tuple[int, int]) -> str:
        if _MODES.fullmatch(data) and _SCREENS not in data:
            return data
        wanted = _wanted(data)
        if wanted is None:
            plain = "" if self._style == "" else "\x1b[0m"  # as Textual itself, leave no style to the shell
            self._rows, self._place, self._style = {}, None, None
            return plain + data
        rows, place = wanted
        written: list[str] = []
        for y, cells in sorted(rows.items()):
            written += self._row(y, cells, size[0])
        if any(y >= size[1] or len(cells) > size[0] for y, cells in rows.items()):
            self.forget()  # the frame exceeds the terminal, which shows the excess in its last cells
        if place is not None and place != self._place:
            written.append(f"\x1b[{place[0] + 1};{place[1] + 1}H")
            self._place = place
        return "".join(written)

    def _row(self, y: int, wanted: list[Cell | None], width: int) -> Iterator[str]:
        """Yield what makes row `y` of `width` cells show the `wanted` cells; None leaves a cell as it is."""
        shown = self._rows.setdefault(y, [])
        shown.extend(repeat(None, len(wanted) - len(shown)))
        if shown[: len(wanted)] == wanted:
            return
        for begin, end in _runs(shown, wanted):
            if self._place != (y, begin):
                skipped = begin - self._place[1] if self._place is not None and self._place[0] == y else 0
                yield f"\x1b[{skipped}C" if skipped > 0 else f"\x1b[{y + 1};{begin + 1}H"
            for cell in wanted[begin:end]:
                if cell is None:
                    continue
                character, style = cell
                if style != self._style and not (character == " " and _on_blanks(self._style) == style):
                    yield _change(self._style, style)
                    self._style = style
                yield character
            shown[begin:end] = wanted[begin:end]
            self._place = (y, end) if end < width else None  # beyond the right edge, terminals differ


def _runs(shown: list[Cell | None], wanted: list[Cell | None]) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each span of a row to write; short gaps between changes are included."""
    begin = end = -1
    for at, cell in enumerate(wanted):
        if cell is None or cell == shown[at]:
            continue
        first = at if cell[0] or not at else at - 1  # both halves of a wide character are written together
        after = wanted[at + 1] if at + 1 < len(wanted) else None
        if begin < 0:
            begin = first
        elif first - end > _SHORT_GAP or None in wanted[end:first]:
            yield begin, end
            begin = first
        end = at + 1 if after is None or after[0] else at + 2
    if begin >= 0:
        yield begin, end


def _wanted(data: str) -> tuple[dict[int, list[Cell | None]], tuple[int, int] | None] | None:
    """Return the cells that `data` writes, by row, and where it leaves the cursor; None if `data` holds more than text,
    styles and positions."""
    rows: dict[int, list[Cell | None]] = {}
    x = y = -1
    style, at, moved = "", 0, False
    while at < len(data):
        piece = _PIECE.match(data, at)
        if piece is None:
            return None
        at = piece.end()
        if piece.lastgroup == "style":
            style = _normal(piece["style"])
        elif piece.lastgroup == "place":
            row, _, column = piece["place"].partition(";")
            y, x, moved = int(row or 1) - 1, int(column or 1) - 1, True
        elif y < 0:
            return None
        elif piece.lastgroup == "line":
            y, moved = y + 1, False
        else:
            cells = _cells(piece["text"], style)
            row_cells = rows.setdefault(y, [])
            row_cells.extend(repeat(None, x + len(cells) - len(row_cells)))
            row_cells[x : x + len(cells)] = cells
            x, moved = x + len(cells), False
    return rows, ((y, x) if moved else None)


def _cells(text: str, style: str) -> list[Cell]:
    blank = (" ", _on_blanks(style) or "")
    if text.isascii():
        return [(character, style) if character != " " else blank for character in text]
    cells: list[Cell] = []
    for character in text:
        if character == " ":
            cells.append(blank)
        elif unicodedata.combining(character) and cells:
            cells[-1] = (cells[-1][0] + character, style)
        else:
            cells.append((character, style))
            if unicodedata.east_asian_width(character) in "WF":
                cells.append(("", style))
    return cells


@lru_cache(maxsize=4096)
def _normal(parameters: str) -> str:
    """Return the parameters without the leading reset: every style from Textual is complete."""
    return parameters.removeprefix("0").removeprefix(";")


@lru_cache(maxsize=4096)
def _parts(style: str) -> tuple[frozenset[str], str, str]:
    """Return attributes, foreground and background of a style."""
    attributes, foreground, background = set(), "", ""
    numbers = style.split(";") if style else []
    while numbers:
        number = numbers.pop(0)
        if number in ("38", "48"):
            count = 4 if numbers[:1] == ["2"] else 2
            colour = ";".join([number, *numbers[:count]])
            del numbers[:count]
        else:
            colour = number
        if number == "38" or (len(number) == 2 and number[0] in "39"):
            foreground = colour
        elif number == "48" or (len(number) == 2 and number[0] == "4") or (len(number) == 3 and number[:2] == "10"):
            background = colour
        else:
            attributes.add(number)
    return frozenset(attributes), foreground, background


@lru_cache(maxsize=4096)
def _on_blanks(style: str | None) -> str | None:
    """Return the part of a style that shows on a blank: its background, or all of it if it draws on blanks."""
    if style is None:
        return None
    attributes, _, background = _parts(style)
    return style if attributes & _SHOWN_ON_BLANKS else background


@lru_cache(maxsize=4096)
def _change(before: str | None, after: str) -> str:
    """Return the shortest sequence that changes one style to another."""
    whole = f"\x1b[0;{after}m" if after else "\x1b[0m"
    if before is None:
        return whole
    attributes, foreground, background = _parts(before)
    wanted, new_foreground, new_background = _parts(after)
    if attributes - wanted or (foreground and not new_foreground) or (background and not new_background):
        return whole
    codes = sorted(wanted - attributes)
    codes += [new_foreground] if new_foreground != foreground else []
    codes += [new_background] if new_background != background else []
    return f"\x1b[{';'.join(codes)}m"


ASCII_VARIABLE = "JAXPROF_ASCII"

_LOOKALIKES = {
    "µ": "u",
    "×": "x",
    "·": ".",
    "±": "~",
    "°": "o",
    "…": "~",
    "–": "-",
    "—": "-",
    "’": "'",
    "‘": "'",
    "“": '"',
    "”": '"',
    "→": ">",
    "←": "<",
    "↑": "^",
    "↓": "v",
    "↵": "<",
    "⏎": "<",
    "▲": "^",
    "▼": "v",
    "▶": ">",
    "‹": "<",
    "›": ">",
    "▸": ">",
    "▾": "v",
    "◀": "<",
    "✓": "+",
    "✗": "X",
    "✘": "X",
    "●": "*",
    "○": "o",
    "◆": "*",
    "◇": "o",
    "•": "*",
    "■": "x",
    "□": "_",
    "▣": "x",
    "☑": "x",
    "☐": "_",
    "∂": "d",
    "≤": "<",
    "≥": ">",
    "≈": "~",
    "≠": "!",
    "▴": "^",
    "◉": "@",
    "²": "2",
    "³": "3",
    "∞": "?",
    "\u202f": " ",
    "\u00a0": " ",
    "\u2009": " ",
}
_SPARKS = dict(zip("▁▂▃▄▅▆▇█", "_..-=+*#", strict=True))
_BARS = dict(zip("▏▎▍▌▋▊▉▐", ".:-=+*##", strict=True))
_SHADES = dict(zip("░▒▓▚", ".o%x", strict=True))
_LEVEL = (0x09, 0x12, 0x24, 0xC0)
"""Two dots side by side in each row of a braille cell: part of a line, not single points."""


class _Table(dict[int, str]):
    """A translation table that covers every character: a lookalike, or question marks of the same width."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if code < 0x80:
            replacement = character
        elif 0x2500 <= code <= 0x257F:
            replacement = _box(code)
        elif 0x2580 <= code <= 0x259F:
            replacement = "#"
        elif 0x2800 <= code <= 0x28FF:
            replacement = _braille(code - 0x2800)
        else:
            replacement = "?" * columns(character)
        self[code] = replacement
        return replacement


def _braille(dots: int) -> str:
    return " " if not dots else "-" if dots in _LEVEL else ":" if dots.bit_count() > 2 else "."


def _box(code: int) -> str:
    if chr(code) in "━═╸╺╼╾":
        return "="
    if chr(code) in "┄┅┈┉╌╍":
        return "."
    if chr(code) in "─╴╶":
        return "-"
    return "|" if chr(code) in "│┃┆┇┊┋║╎╏╵╷╹╻╽╿" else "+"


TO_ASCII = _Table({ord(key): value for key, value in {**_LOOKALIKES, **_SPARKS, **_BARS, **_SHADES}.items()})


def wants_ascii() -> bool:
    """Return whether the locale, or `JAXPROF_ASCII=1`, says that the terminal cannot show UTF-8."""
    if os.environ.get(ASCII_VARIABLE):
        return os.environ[ASCII_VARIABLE] != "0"
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        locale = os.environ.get(name)
        if locale:
            return not ("utf-8" in locale.lower() or "utf8" in locale.lower())
    encoding = getattr(sys.__stderr__, "encoding", None) or "utf-8"
    return encoding.lower().replace("-", "") != "utf8"


def driver_for_this_terminal(typed: str = "") -> type[Driver] | None:
    """Return the driver that writes only changes, in ASCII if the terminal has nothing else. None on Windows, whose
    consoles show every character: Textual's own driver. `typed`: what the user typed before the app started."""
    if not can_run():
        return None
    from textual import events
    from textual.drivers.linux_driver import LinuxDriver

    waiting = keys_of_typed(typed)

    class LeanDriver(LinuxDriver):
        """Writes only what differs from what the terminal shows."""

        in_ascii = wants_ascii()
        _cells = ChangedCells()

        def start_application_mode(self) -> None:
            for key, character in waiting:
                self.process_message(events.Key(key, character))
            waiting.clear()  # the app starts again here after ctrl+z
            super().start_application_mode()  # type: ignore[no-untyped-call]
            resized = signal.getsignal(signal.SIGWINCH)

            def forget(number: int, frame: FrameType | None) -> None:
                self._cells.forget()  # at a resize, each terminal rearranges its content in its own way
                if callable(resized):
                    resized(number, frame)

            signal.signal(signal.SIGWINCH, forget)

        def write(self, data: str) -> None:
            shown = data if not self.in_ascii or data.isascii() else data.translate(TO_ASCII)
            try:
                size = os.get_terminal_size(self.fileno)
            except OSError:  # the terminal is gone
                size = os.terminal_size((0, 0))
            if changes := self._cells.changes(shown, size):
                super().write(changes)

    return LeanDriver
