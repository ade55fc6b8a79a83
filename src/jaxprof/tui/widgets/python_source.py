"""Python source in few colours: keywords, strings, numbers, comments, and the names that are defined.

With the standard library's own tokens, because importing a highlighter costs more than drawing the whole screen.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterator
from functools import lru_cache

from textual.content import Content, Span

from jaxprof.safe_text import safe_lines

_STYLES = {
    tokenize.COMMENT: "$code-comment italic",
    tokenize.STRING: "$code-string",
    tokenize.NUMBER: "$code-number",
    **{
        number: "$code-string"
        for name in ("FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END")  # from Python 3.12 on
        if (number := getattr(tokenize, name, None)) is not None
    },
}


@lru_cache(maxsize=128)
def highlighted(source: str) -> Content:
    """`source` with its lines made safe, then coloured; as far as it can be read as Python."""
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
    """Where a colour begins and ends (line from 1, column from 0); what is not Python ends it."""
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
