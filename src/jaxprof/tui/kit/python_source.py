"""Lines of Python files, with highlighting. A session may name any path, so files are opened with care.

The colours come from the tokenizer of the standard library: importing a highlighter costs more than drawing the screen.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content, Span

from jaxprof.text import safe_lines

if TYPE_CHECKING:
    from jaxprof.hlo.analysis.origin import HloSourceLocation


_STYLES = {
    tokenize.COMMENT: "$code-comment italic",
    tokenize.STRING: "$code-string",
    tokenize.NUMBER: "$code-number",
    **{
        number: "$code-string"
        for name in ("FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END")  # Python 3.12 and later
        if (number := getattr(tokenize, name, None)) is not None
    },
}


@lru_cache(maxsize=128)
def highlighted(source: str) -> Content:
    """Return `source` with its lines made safe and coloured, as far as it is valid Python."""
    lines = safe_lines(source.rstrip())
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    text = "\n".join(lines)
    spans = [
        Span(starts[first[0] - 1] + first[1], starts[last[0] - 1] + last[1], style)
        for first, last, style in _coloured(text)
    ]
    return Content(text, spans=spans)


Place = tuple[int, int]


def _coloured(text: str) -> Iterator[tuple[Place, Place, str]]:
    """Yield the begin and end (line from 1, column from 0) of each colour, up to the first invalid Python."""
    before = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text + "\n").readline):
            style = _STYLES.get(token.type, "")
            if token.type == tokenize.NAME:
                if keyword.iskeyword(token.string):
                    style = "$code-keyword"
                elif before in ("def", "class", "@"):
                    style = "$code-name bold"
            if style:
                yield token.start, token.end, style
            before = token.string
    except (tokenize.TokenError, SyntaxError):
        return


LARGEST_BYTES = 8 << 20
"""Largest file, in bytes, that is opened: a larger one is not source code."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines around a source location."""

    lines: tuple[tuple[int, str], ...]
    """Line numbers, from 1, with their text; empty if the file cannot be read here."""
    modified_seconds: float | None
    """Modification time of the file as Unix time; None if there is no such file here."""


def excerpt(place: HloSourceLocation, around: int) -> Excerpt:
    """Return the line with `around` lines on each side. Opens only regular files: reading a device or a pipe might
    never end."""
    try:
        status = Path(place.file).stat()
        if not Path(place.file).is_file() or status.st_size > LARGEST_BYTES:
            return Excerpt((), None)
    except (OSError, ValueError):
        return Excerpt((), None)
    return _read(place, around, status.st_mtime)


@lru_cache(maxsize=512)
def _read(place: HloSourceLocation, around: int, modified_seconds: float) -> Excerpt:
    from jaxprof.hlo.analysis.origin import source_lines  # late, because it would delay the first frame

    return Excerpt(source_lines(place, around), modified_seconds)


def numbered(lines: Sequence[tuple[int, str]], here: int | None, width: int, *, dim: bool = False) -> list[Content]:
    """Return lines of source with their numbers and colours, cut at `width`; a mark shows the line `here`, and `dim`
    lets the others recede."""
    code = highlighted("\n".join(text for _, text in lines) + "\n#").split("\n")  # the comment keeps blank lines
    digits = max((len(str(number)) for number, _ in lines), default=1)
    drawn = []
    for (number, _), text in zip(lines, code, strict=False):
        there = number == here
        mark = Content.styled(f"{'▸' if there else ' '}{number:>{digits}} ", "bold $accent" if there else "$quiet")
        line = mark + (text.stylize("dim") if dim and not there else text)
        drawn.append(line.truncate(max(1, width), ellipsis=True))
    return drawn
