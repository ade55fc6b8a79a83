"""What leaves for the terminal: only ASCII where the terminal has nothing else.

A character that the terminal lacks is replaced by one of the same width where the bytes leave, which saves every
widget, ours and Textual's, a second way to draw.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from jaxprof.operating_system import can_run
from jaxprof.text import columns
from jaxprof.tui.terminal_background import keys_of_typed

if TYPE_CHECKING:
    from textual.driver import Driver


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
"""Two dots of a braille cell side by side, in each of its rows: a piece of a line, not single points."""


class _Table(dict[int, str]):
    """A translation that knows every character: a lookalike, or question marks of the same width."""

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
    """Whether the locale, or `JAXPROF_ASCII=1`, says that the terminal cannot show UTF-8."""
    if os.environ.get(ASCII_VARIABLE):
        return os.environ[ASCII_VARIABLE] != "0"
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        locale = os.environ.get(name)
        if locale:
            return not ("utf-8" in locale.lower() or "utf8" in locale.lower())
    encoding = getattr(sys.__stderr__, "encoding", None) or "utf-8"
    return encoding.lower().replace("-", "") != "utf8"


def driver_for_this_terminal(typed: str = "") -> type[Driver] | None:
    """Textual's driver, which writes ASCII where the terminal has nothing else. None on Windows, whose consoles show
    every character: Textual's own. `typed`: what the user typed before the app started."""
    if not can_run():
        return None
    from textual import events
    from textual.drivers.linux_driver import LinuxDriver

    waiting = keys_of_typed(typed)

    class TerminalDriver(LinuxDriver):
        """Writes what this terminal can show."""

        in_ascii = wants_ascii()

        def start_application_mode(self) -> None:
            for key, character in waiting:
                self.process_message(events.Key(key, character))
            waiting.clear()  # the app stops and goes on with ctrl+z
            super().start_application_mode()  # type: ignore[no-untyped-call]

        def write(self, data: str) -> None:
            super().write(data if not self.in_ascii or data.isascii() else data.translate(TO_ASCII))

    return TerminalDriver
