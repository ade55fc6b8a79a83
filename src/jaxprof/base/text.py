"""Text from outside, made safe to show.

Names, HLO, logs and session files may contain escape sequences, control characters, bidirectional overrides and line
breaks, which a terminal obeys; `safe` turns each into a visible symbol, and `json_text` into an escape of JSON. Markup
needs no handling here: the screens never parse markup from data, but build `Text` and `Content` objects.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal

REDACTED = "[redacted]"
"""Replaces what looks like a secret in a command line or a text."""
_SUSPECT = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(r"[A-Za-z_][\w.]*(: |$)")
"""The line of a traceback that names the exception, which is not indented."""
_STACK_FRAME = re.compile(r"\s*@\s+0x")
"""A frame of the stack that XLA prints when it aborts."""
_SENTENCE_OR_SHAPE = re.compile(r"\s|^\(?(pred|[a-z]+\d\w*)\[")
_PATH_OR_LOCATION = re.compile(r"[\w.~+@-]*/[\w./~+@-]*|.+:\d+", re.DOTALL)


def _visible(match: re.Match[str]) -> str:
    """Return one control character as a symbol: U+2400 pictures for C0, an escaped code point for the rest."""
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"\\u{code:04x}" if code > 0xFF else f"\\x{code:02x}"


def whole_number(text: str) -> int | None:
    """Return the number that a text from outside spells; None for anything else, and for more digits than 64 bits have:
    of more than 4 300 digits Python makes an error, not a number."""
    return int(text) if text.isdecimal() and len(text) < 19 else None


def number(text: str) -> float | None:
    """Return the number that a text from outside spells; None for anything else."""
    try:
        return float(text)
    except ValueError:
        return None


def safe(text: str) -> str:
    """Return `text` on one line, with every control character shown instead of obeyed. Tabs become a space."""
    if text.isascii() and text.isprintable():
        return text
    return _SUSPECT.sub(_visible, text.replace("\t", " "))


def safe_text(text: str) -> str:
    """Return `text` with its line feeds, and every line of it made safe."""
    if text.isascii() and text.isprintable():
        return text
    return "\n".join(map(safe, text.split("\n")))


@cache
def _json_encoder(*, compact: bool) -> Callable[[object], str]:
    from json import JSONEncoder  # not needed for `--help`

    return JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":") if compact else None).encode


def json_text(value: object, *, compact: bool = False) -> str:
    """Return `value` as JSON on one line, with every character that `safe` would show written as an escape, so that it
    reads back unchanged. Raises ValueError for NaN and infinity, which JSON does not have."""
    text = _json_encoder(compact=compact)(value)
    if text.isascii() and "\x7f" not in text:
        return text
    return _SUSPECT.sub(lambda match: json_escape(match.group()), text)


def json_escape(text: str) -> str:
    """Return each character of `text` as JSON escapes it: `\\u00e9`."""
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def safe_lines(text: str) -> list[str]:
    """Return the lines of `text` (split at LF, CR LF and CR), each made safe; tabs are expanded to 4 columns."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [safe(line.expandtabs(4)) for line in lines]


Cut = Literal["start", "middle", "end"]


def shorten(text: str, width: int, cut: Cut | None = None) -> str:
    """Return `text` made safe, on at most `width` terminal columns, with an ellipsis for what was left out.

    `cut` is where; by default as suits the text. A path or a source location is cut at its start, and another name in
    its middle, because names differ at their end (`multiply_subt…fusion.3`); a sentence or a shape at its end.
    Raises ValueError if `width` is below 1.
    """
    if width < 1:
        raise ValueError(f"width must be at least 1, not {width}")
    line = safe(text)
    if columns(line) <= width:
        return line
    if cut is None:
        is_path = _PATH_OR_LOCATION.fullmatch(line)
        cut = "end" if _SENTENCE_OR_SHAPE.search(line) else "start" if is_path else "middle"
    tail = 0
    if cut == "start":
        tail = width - 1
    elif cut == "middle" and width >= 8:  # fewer columns hold no two pieces that say anything
        tail = max(4, width * 2 // 5)
    return _fitting(line, width - 1 - tail) + "…" + _fitting(line[::-1], tail)[::-1]


def _fitting(characters: str, width: int) -> str:
    """Return as many of the first characters as fit on `width` columns."""
    if characters.isascii():
        return characters[:width]
    count = used = 0
    while count < len(characters) and (used := used + columns(characters[count])) <= width:
        count += 1
    return characters[:count]


def columns(text: str) -> int:
    """Return the terminal columns of `text`: East Asian wide characters count two, combining marks none."""
    if text.isascii():
        return len(text)
    shown = [character for character in text if not unicodedata.combining(character)]
    return len(shown) + sum(unicodedata.east_asian_width(character) in "WF" for character in shown)


def exception_line(lines: Sequence[str]) -> int | None:
    """Return the index of the line that names the exception of the last traceback; None without a traceback. JAX's
    messages go on for many lines after it."""
    begins = max((number for number, line in enumerate(lines) if line.startswith(_TRACEBACK)), default=None)
    if begins is None:
        return None
    return next((number for number in range(begins + 1, len(lines)) if _RAISED.match(lines[number])), None)


def last_words(lines: Sequence[str]) -> str:
    """Return what went wrong, from a program's stderr: its exception; else the last line with any content."""
    raised = exception_line(lines)
    with_content = [line for line in lines if line.strip() and not _STACK_FRAME.match(line)]
    line = with_content[-1] if with_content else ""
    if raised is not None:
        line = lines[raised]
    return line.strip()[:200]
