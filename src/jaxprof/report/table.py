"""Columns of plain text, aligned by what a terminal shows and not by code points."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from jaxprof.safe_text import columns, safe, shorten

GAP = "  "


def table(
    rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), indent: str = "  ", widest: Sequence[int] = ()
) -> list[str]:
    """`rows` as lines; the first row is the heading. Columns in `right` are aligned right; `widest` limits each column
    (0: no limit), with an ellipsis where a cell is cut. Empty columns are left out."""
    limits = list(widest) + [0] * (max(map(len, rows), default=0) - len(widest))
    cells = [[shorten(cell, limits[at]) if limits[at] else safe(cell) for at, cell in enumerate(row)] for row in rows]
    kept = [at for at in range(len(limits)) if any(row[at] not in ("", "-") for row in cells[1:])]
    widths = {at: max(columns(row[at]) for row in cells) for at in kept}
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
