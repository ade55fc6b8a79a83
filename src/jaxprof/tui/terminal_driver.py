"""Reduces the output to the terminal: only pieces that change are written, and only ASCII if the terminal has nothing
else.

Both happen where the bytes are written, so that no widget, ours or one of Textual's, needs a second way to draw: a
character that the terminal lacks is replaced by one of the same width.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from typing import TYPE_CHECKING, Final

from jaxprof.operating_system import can_run
from jaxprof.text import columns
from jaxprof.tui.terminal_background import keys_of_typed

if TYPE_CHECKING:
    from types import FrameType

    from textual.driver import Driver


Piece = tuple[int, int, int, str]
"""Text of one style: its row, the columns where it begins and ends, and what is written, which ends in no style."""

_PIECE = re.compile(
    r"\x1b\[(?P<row>\d+);(?P<column>\d+)H|(?:\x1b\[[\d;]*m)?(?P<text>[^\x00-\x1f\x7f]+)(?:\x1b\[0m)?|\n"
)
_MODES = re.compile(r"(?:\x1b\[[?>=<][\d;]*\$?[a-z]|\x1b\]52;[^\x07\x1b]*(?:\x07|\x1b\\))+")
"""Sequences that change no cell: terminal modes, queries, and the clipboard."""
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Sequences around a frame, for terminals that show a frame all at once."""
_SCREENS: Final = "\x1b[?1049"
"""Prefix of the sequences that switch between the two screens of a terminal."""


class ChangedPieces:
    """Tracks what one terminal shows, for one thread that writes to it."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[int, Piece]] = {}
        """Pieces that the terminal is known to show, by row and by the column where they begin."""
        self._place: tuple[int, int] | None = None
        """Row and column of the cursor; None if unknown."""
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
        pieces = _pieces(data)
        if self._stale or pieces is None:
            self._rows, self._place, self._stale = {}, None, False
        if pieces is None:
            return data
        written = [change for piece in pieces if (change := self._change(piece))]
        if any(row >= size[1] or end > size[0] for row, _, end, _ in pieces):
            self.forget()  # the frame exceeds the terminal, which shows the excess in its last cells
        return "".join(written)

    def _change(self, piece: Piece) -> str:
        """Return what makes the terminal show a piece, which may be no more than the place of the cursor."""
        y, begin, end, text = piece
        shown = self._rows.setdefault(y, {})
        if text and shown.get(begin) == piece:
            return ""
        there = self._place == (y, begin)
        if text:
            kept = {at: other for at, other in shown.items() if other[2] <= begin or end <= at}
            self._rows[y] = {**kept, begin: piece}
        self._place = y, end
        return text if there else f"\x1b[{y + 1};{begin + 1}H{text}"


def _pieces(data: str) -> list[Piece] | None:
    """Return the pieces that `data` writes, and where it leaves the cursor, if that is elsewhere than behind the last
    one; None if `data` holds more than text, styles and places."""
    pieces: list[Piece] = []
    place: tuple[int, int] | None = None
    at, moved = 0, False
    while at < len(data):
        found = _PIECE.match(data, at)
        if found is None:
            return None
        at = found.end()
        if found["row"]:
            place, moved = (int(found["row"]) - 1, int(found["column"]) - 1), True
        elif not found["text"]:  # the end of a line: a place follows, or nothing
            place, moved = None, False
        elif place is None:
            return None
        else:
            row, begin = place
            place, moved = (row, begin + columns(found["text"])), False
            pieces.append((row, begin, place[1], found[0]))
    return [*pieces, (*place, place[1], "")] if place is not None and moved else pieces


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
        _pieces = ChangedPieces()

        def start_application_mode(self) -> None:
            for key, character in waiting:
                self.process_message(events.Key(key, character))
            waiting.clear()  # the app starts again here after ctrl+z
            super().start_application_mode()  # type: ignore[no-untyped-call]
            resized = signal.getsignal(signal.SIGWINCH)

            def forget(number: int, frame: FrameType | None) -> None:
                self._pieces.forget()  # at a resize, each terminal rearranges its content in its own way
                if callable(resized):
                    resized(number, frame)

            signal.signal(signal.SIGWINCH, forget)

        def write(self, data: str) -> None:
            shown = data if not self.in_ascii or data.isascii() else data.translate(TO_ASCII)
            try:
                size = os.get_terminal_size(self.fileno)
            except OSError:  # the terminal is gone
                size = os.terminal_size((0, 0))
            if changes := self._pieces.changes(shown, size):
                super().write(changes)

    return LeanDriver
