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
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from jaxprof.operating_system import can_run
from jaxprof.text import columns
from jaxprof.tui.terminal_background import keys_of_typed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

    from textual.driver import Driver


Cell = tuple[str, str]
"""A character with its combining marks, and its style: of a blank, only what shows on blanks. The second cell of a wide
character is empty."""

_PIECE = re.compile(
    r"\x1b\[(?P<row>\d+);(?P<column>\d+)H|\x1b\[(?P<style>[\d;]*)m|(?P<text>[^\x00-\x1f\x7f]+)|(?P<line>\n)"
)
_MODES = re.compile(r"(?:\x1b\[[?>=<][\d;]*\$?[a-z]|\x1b\]52;[^\x07\x1b]*(?:\x07|\x1b\\))+")
"""Sequences that change no cell: terminal modes, queries, and the clipboard."""
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Sequences around a frame, for terminals that show a frame all at once."""
_SCREENS: Final = "\x1b[?1049"
"""Prefix of the sequences that switch between the two screens of a terminal."""
_COLOUR = re.compile(r"[34]8;(?:2;\d+;\d+;\d+|5;\d+)")
_SHOWN_ON_BLANKS: Final = frozenset({"4", "7", "9", "21", "53"})
"""Style parameters that show on blanks: underline, reverse, strike, double underline, overline."""


class ChangedCells:
    """Tracks what one terminal shows, for one thread that writes to it."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[int, Cell]] = {}
        """Cells that the terminal is known to show, by row and column."""
        self._place: tuple[int, int] | None = None
        """Row and column of the cursor; None if unknown."""
        self._style = ""
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
        written = self._changes(data, size)
        if written:
            written, self._begins = self._begins + written, ""
        return written

    def _changes(self, data: str, size: tuple[int, int]) -> str:
        if _MODES.fullmatch(data) and _SCREENS not in data:
            return data
        wanted = _wanted(data)
        if self._stale or wanted is None:
            self._rows, self._place, self._stale = {}, None, False
        if wanted is None:
            plain, self._style = ("\x1b[0m" if self._style else ""), ""  # as Textual itself, leave no style behind
            return plain + data
        written = "".join(self._change(y, x, cell) for y, x, cell in wanted)
        if any(y >= size[1] or x >= size[0] for y, x, _ in wanted):
            self.forget()  # the frame exceeds the terminal, which shows the excess in its last cells
        return written

    def _change(self, y: int, x: int, cell: Cell | None) -> str:
        """Return what makes the terminal show a cell; without one, what moves the cursor there."""
        row = self._rows.setdefault(y, {})
        if cell is not None and row.get(x) == cell:
            return ""
        move = "" if self._place == (y, x) else f"\x1b[{y + 1};{x + 1}H"
        self._place = y, x
        if cell is None:
            return move
        character, style = cell
        if row.get(x, cell)[0] == "":
            row.pop(x - 1, None)  # the other half of a wide character is gone
        if row.get(x + 1, cell)[0] == "":
            del row[x + 1]
        row[x], width = cell, columns(character)
        if width == 2:
            row[x + 1] = ("", style)
        self._place = y, x + width
        if style == self._style or (character == " " and style == _on_blanks(self._style)):
            return move + character
        self._style = style
        return f"{move}\x1b[0;{style}m{character}" if style else f"{move}\x1b[0m{character}"


def _wanted(data: str) -> list[tuple[int, int, Cell | None]] | None:
    """Return the cells that `data` writes with their rows and columns, and last, without a cell, where it leaves the
    cursor, if it says so; None if `data` holds more than text, styles and places."""
    cells: list[tuple[int, int, Cell | None]] = []
    y = x = -1
    style, at, moved = "", 0, False
    while at < len(data):
        found = _PIECE.match(data, at)
        if found is None or (found["text"] and y < 0):
            return None
        at = found.end()
        if found["row"]:
            y, x, moved = int(found["row"]) - 1, int(found["column"]) - 1, True
        elif found["style"] is not None:
            style = found["style"].removeprefix("0").removeprefix(";")  # every style from Textual is complete
        elif found["line"]:  # a place follows, or nothing
            y, moved = -1, False
        else:
            moved = False
            for character in _characters(found["text"]):
                cells.append((y, x, (character, _on_blanks(style) if character == " " else style)))
                x += columns(character)
    return [*cells, (y, x, None)] if moved else cells


def _characters(text: str) -> Iterable[str]:
    """Return the characters of a text, each with its combining marks."""
    if text.isascii():
        return text
    found: list[str] = []
    for character in text:
        if found and not columns(character):
            found[-1] += character
        else:
            found.append(character)
    return found


@lru_cache(maxsize=4096)
def _on_blanks(style: str) -> str:
    """Return the part of a style that shows on a blank: its background, or all of it if it draws on blanks."""
    attributes = _COLOUR.sub("", style).split(";")
    if _SHOWN_ON_BLANKS.intersection(attributes):
        return style
    colours = [*_COLOUR.findall(style), *(code for code in attributes if len(code) > 1)]
    return next((colour for colour in reversed(colours) if colour[0] == "4" or colour[:2] == "10"), "")


ASCII_VARIABLE = "JAXPROF_ASCII"

_LOOKALIKES: Final = {
    " ": "\u202f\u00a0\u2009", "'": "’‘", '"': "“”", ".": "·┄┅┈┉╌╍", "-": "–—─╴╶", "~": "±…≈", "?": "∞", "!": "≠",
    "@": "◉", "<": "←↵⏎‹◀≤", ">": "→▶›▸≥", "^": "↑▲▴", "v": "↓▼▾", "+": "✓", "X": "✗✘", "x": "×■▣☑", "_": "□☐",
    "*": "●◆•", "o": "°○◇", "u": "µ", "d": "∂", "2": "²", "3": "³", "=": "━═╸╺╼╾",
    "|": "│┃┆┇┊┋║╎╏╵╷╹╻╽╿",
}  # fmt: skip
"""By the character of ASCII, those that it stands for."""
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
        elif 0x2500 <= code <= 0x257F:  # what is left of the lines: corners and crossings
            replacement = "+"
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


TO_ASCII = _Table(
    {ord(character): shown for shown, alike in _LOOKALIKES.items() for character in alike}
    | {ord(character): shown for character, shown in (_SPARKS | _BARS | _SHADES).items()}
)


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
