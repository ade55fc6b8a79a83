"""Whether the terminal is light or dark; the terminal is asked before the app starts, while the app is still being
imported.

The query is OSC 11, followed by one that every terminal answers, so that nobody waits for a terminal that does not know
the first. Keys that the user types meanwhile are kept for the app. `COLORFGBG` is used if the terminal does not answer.
"""

from __future__ import annotations

import os
import re
import select
import time
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

QUESTION: Final = b"\x1b]11;?\x1b\\\x1b[c"
"""Queries for the colour of the background and the kind of the terminal."""
PATIENCE_SECONDS: Final = 0.8
"""Seconds to wait for the answer, from the query on. A later answer would be read as keys, so this is more than a slow
line needs."""
_COLOUR = re.compile(rb"\x1b\]11;(?:rgba?:)([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)[^\x07\x1b]*(?:\x07|\x1b\\)")
_KIND = re.compile(rb"\x1b\[\?[\d;]*c")
_KEY = re.compile(r"\x1b\[[A-DFH]|\x1b|.", re.DOTALL)
_NAMES: Final = {
    "\r": "enter", "\n": "enter", "\t": "tab", "\x1b": "escape", "\x7f": "backspace", " ": "space", "\x1b[A": "up",
    "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left", "\x1b[H": "home", "\x1b[F": "end", "/": "slash",
    "\\": "backslash", "@": "at", "-": "minus", "+": "plus", "_": "underscore",
}  # fmt: skip
"""Textual's names of keys whose characters have other names in Unicode."""


@dataclass(frozen=True, slots=True)
class Background:
    """The terminal's answer."""

    light: bool | None = None
    """Whether the background is light; None if unknown."""
    typed: str = ""
    """Text that the user typed before the terminal answered."""


class Question:
    """One query to the terminal. `answer` must be called, because it restores the modes of the terminal."""

    def __init__(self) -> None:
        self._asked_seconds = time.monotonic()
        self._attributes: list[Any] | None = None
        # The Linux console displays the query instead of answering it.
        if os.environ.get("TERM") == "linux":
            return
        try:
            import termios
        except ImportError:  # Windows
            return

        with suppress(termios.error, OSError):
            attributes = termios.tcgetattr(0)
            quiet = [*attributes]
            quiet[3] &= ~(termios.ECHO | termios.ICANON)
            termios.tcsetattr(0, termios.TCSANOW, quiet)
            self._attributes = attributes
            os.write(1, QUESTION)

    def answer(self) -> Background:
        """Wait for the terminal's answer, at most for `PATIENCE_SECONDS` from the query on."""
        if self._attributes is None:
            return Background(light_by_variable(os.environ.get("COLORFGBG", "")))
        import termios

        answer = b""
        try:
            while not _KIND.search(answer) and self._ready():
                read = os.read(0, 1)  # byte by byte, so that text typed after the answer stays for the app
                if not read:
                    break
                answer += read
        finally:
            with suppress(termios.error, OSError):
                termios.tcsetattr(0, termios.TCSANOW, self._attributes)
        return read_answer(answer, os.environ.get("COLORFGBG", ""))

    def _ready(self) -> bool:
        left = self._asked_seconds + PATIENCE_SECONDS - time.monotonic()
        return bool(select.select([0], [], [], max(0.0, left))[0])


def read_answer(answer: bytes, variable: str) -> Background:
    """Separate the answer of the terminal from what the user typed; `variable` is COLORFGBG."""
    colour = _COLOUR.search(answer)
    typed = _KIND.sub(b"", _COLOUR.sub(b"", answer)).decode("utf-8", "ignore")
    if colour is None:
        return Background(light_by_variable(variable), typed)
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in colour.groups())
    return Background(0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5, typed)


def light_by_variable(value: str) -> bool | None:
    """Return whether COLORFGBG, `foreground;background` as numbers of the 16 colours, says that the background is
    light; None if it does not say."""
    background = value.rpartition(";")[2]
    if ";" not in value or not background.isdecimal():
        return None
    return int(background) == 7 or 9 <= int(background) <= 15


def keys_of_typed(typed: str) -> list[tuple[str, str | None]]:
    """Return Textual's name of each key, and its character if it has one."""
    keys: list[tuple[str, str | None]] = []
    for key in _KEY.findall(typed):
        printable = key.isprintable()
        if key in _NAMES:
            name = _NAMES[key]
        elif len(key) == 1 and key < " ":
            name = f"ctrl+{chr(ord(key) + 0x60)}"
        else:
            name = key if key.isalnum() else unicodedata.name(key, "").lower().replace("-", "_").replace(" ", "_")
        if name:
            keys.append((name, key if printable else None))
    return keys
