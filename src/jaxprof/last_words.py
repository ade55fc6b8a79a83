"""What a program wrote last on its stderr: the exception that ended it, or its last line with any content."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_TRACEBACK: Final = "Traceback (most recent call last):"
_RAISED: Final = re.compile(r"[A-Za-z_][\w.]*(: |$)")
"""The line of a traceback that names the exception, which is not indented."""
_STACK_FRAME: Final = re.compile(r"\s*@\s+0x")
"""A frame of the stack that XLA prints when it aborts."""


def raised_at(lines: Sequence[str]) -> int | None:
    """Return the index of the line that names the exception of the last traceback; None without a traceback. JAX's
    messages go on for many lines after it."""
    begins = max((number for number, line in enumerate(lines) if line.startswith(_TRACEBACK)), default=None)
    if begins is None:
        return None
    return next((number for number in range(begins + 1, len(lines)) if _RAISED.match(lines[number])), None)


def last_words(lines: Sequence[str]) -> str:
    """Return what went wrong, from what a program wrote on its stderr: its exception; without one, the last line with
    any content."""
    raised = raised_at(lines)
    with_content = [line for line in lines if line.strip() and not _STACK_FRAME.match(line)]
    line = lines[raised] if raised is not None else with_content[-1] if with_content else ""
    return line.strip()[:200]
