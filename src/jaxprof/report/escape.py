"""Text from outside made safe for Markdown."""

from __future__ import annotations

import re

from jaxprof.safe_text import safe

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")


def markdown(text: str) -> str:
    """`text` on one line, so that Markdown shows every character of it."""
    return _SPECIAL.sub(r"\\\1", safe(text))
