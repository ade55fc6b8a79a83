"""Whether the terminal is light or dark: it is asked before the app starts, while the app is still imported.

The question is OSC 11, and behind it one that every terminal answers, so that nobody waits for a terminal that does not
know the first. What the user has typed meanwhile is kept for the app. `COLORFGBG` says it where the terminal does not.
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
"""The colour of the background, and what kind of terminal this is."""
PATIENCE_SECONDS: Final = 0.8
"""From the question on. An answer that comes later would be read as keys, so this is more than a slow line needs."""
_COLOUR = re.compile(rb"\x1b\]11;(?:rgba?:)([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)[^\x07\x1b]*(?:\x07|\x1b\\)")
_KIND = re.compile(rb"\x1b\[\?[\d;]*c")
_KEY = re.compile(r"\x1b\[[A-DFH]|\x1b|.", re.DOTALL)
_NAMES: Final = {
    "\r": "enter", "\n": "enter", "\t": "tab", "\x1b": "escape", "\x7f": "backspace", " ": "space", "\x1b[A": "up",
    "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left", "\x1b[H": "home", "\x1b[F": "end", "/": "slash",
    "\\": "backslash", "@": "at", "-": "minus", "+": "plus", "_": "underscore",
}  # fmt: skip
"""Textual's names of keys whose characters Unicode names otherwise."""


@dataclass(frozen=True, slots=True)
class Background:
    """What the terminal has said."""

    light: bool | None = None
    """None: nothing says so."""
    typed: str = ""
    """What the user typed before the terminal answered."""


class Question:
    """One question to the terminal; `answer` has to be called, which gives the terminal its modes back."""

    def __init__(self) -> None:
        self._asked_seconds = time.monotonic()
        self._attributes: list[Any] | None = None
        # The console of Linux shows the question instead of answering it.
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
        """Waits for the terminal's answer, at most for `PATIENCE_SECONDS` from the question on."""
        if self._attributes is None:
            return Background(light_by_variable(os.environ.get("COLORFGBG", "")))
        import termios

        said = b""
        try:
            while not _KIND.search(said) and self._ready():
                read = os.read(0, 1)  # what the user types behind the answer stays for the app
                if not read:
                    break
                said += read
        finally:
            with suppress(termios.error, OSError):
                termios.tcsetattr(0, termios.TCSANOW, self._attributes)
        return read_answer(said, os.environ.get("COLORFGBG", ""))

    def _ready(self) -> bool:
        left = self._asked_seconds + PATIENCE_SECONDS - time.monotonic()
        return bool(select.select([0], [], [], max(0.0, left))[0])


def read_answer(said: bytes, variable: str) -> Background:
    """What a terminal has said, apart from what the user has typed; `variable` is COLORFGBG."""
    colour = _COLOUR.search(said)
    typed = _KIND.sub(b"", _COLOUR.sub(b"", said)).decode("utf-8", "ignore")
    if colour is None:
        return Background(light_by_variable(variable), typed)
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in colour.groups())
    return Background(0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5, typed)


def light_by_variable(value: str) -> bool | None:
    """Whether COLORFGBG, `foreground;background` as numbers of the 16 colours, says that the background is light."""
    background = value.rpartition(";")[2]
    if ";" not in value or not background.isdecimal():
        return None
    return int(background) == 7 or 9 <= int(background) <= 15


def keys_of_typed(typed: str) -> list[tuple[str, str | None]]:
    """Textual's name of each key, and its character if it has one."""
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
