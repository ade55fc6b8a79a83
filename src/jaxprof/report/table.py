"""Columns of plain text, aligned by what a terminal shows and not by code points."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from jaxprof.safe_text import columns, safe, shorten

GAP = "  "
NARROWEST = 6
"""Columns that a column keeps, however narrow the page."""


def table(
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    indent: str = "  ",
    widest: Sequence[int] = (),
    width: int = 0,
    gives_way: int = 0,
) -> list[str]:
    """`rows` as lines; the first row is the heading. Columns in `right` are aligned right; `widest` limits each column
    (0: no limit). With a `width`, the column `gives_way` is narrowed until a line fits. What is cut ends in an
    ellipsis; columns that say nothing are left out."""
    limits = list(widest) + [0] * (max(map(len, rows), default=0) - len(widest))
    cells = [[shorten(cell, limits[at]) if limits[at] else safe(cell) for at, cell in enumerate(row)] for row in rows]
    kept = [at for at in range(len(limits)) if any(row[at] not in ("", "-") for row in cells[1:])]
    widths = {at: max(columns(row[at]) for row in cells) for at in kept}
    excess = len(indent) + sum(widths.values()) + len(GAP) * (len(kept) - 1) - width if width else 0
    if excess > 0 and gives_way in widths:
        widths[gives_way] = max(NARROWEST, widths[gives_way] - excess)
        for row in cells:
            row[gives_way] = shorten(row[gives_way], widths[gives_way])
    lines = []
    for row in cells:
        parts = [_pad(row[at], widths[at], at in right) for at in kept]
        lines.append((indent + GAP.join(parts)).rstrip())
    return lines


def wrap(text: str, *, width: int, indent: str, first: str | None = None) -> list[str]:
    """`text` broken into lines of at most `width` columns; a word that is longer stays whole."""
    return textwrap.wrap(
        safe(text),
        width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _pad(cell: str, width: int, right: bool) -> str:
    space = " " * (width - columns(cell))
    return space + cell if right else cell + space
