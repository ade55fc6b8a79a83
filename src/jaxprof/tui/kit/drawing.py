"""Small pictures made of characters: a cell of a table, a bar, a sparkline, a mark box. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby

from textual.content import Content

from jaxprof.base.text import Cut, columns, shorten
from jaxprof.base.units import percent

EIGHTHS = " ▏▎▍▌▋▊▉█"
SPARKS = "▁▂▃▄▅▆▇█"
MARKED, UNMARKED = "▣", "□"


def cell(text: str, width: int, style: str = "", *, right: bool = False, cut: Cut | None = None) -> Content:
    """Return `text` from outside, made safe and exactly `width` columns wide."""
    if width <= 0:
        return Content("")
    line = shorten(text, width, cut)
    gap = " " * (width - columns(line))
    return Content.styled(gap + line if right else line + gap, style)


def whole_parts(parts: Iterable[str | Content], width: int) -> Content:
    """Return the parts that fit, with dots between them. None is cut: half a figure is a wrong one."""
    line = Content("")
    for part in parts:
        longer = Content.assemble(line, (" · ", "$rule") if line.plain else "", part)
        if part and longer.cell_length <= width:
            line = longer
    return line


def join_styled(characters: Iterable[tuple[str, str]]) -> Content:
    """Join characters with their styles into one line; neighbours of the same style are merged."""
    return Content.assemble(
        *(("".join(text for text, _ in run), style) for style, run in groupby(characters, key=lambda pair: pair[1]))
    )


def bar(fraction: float | None, width: int, style: str = "$bar", track: str = "on $bar-track") -> Content:
    """Return a bar of `width` columns, filled to `fraction` (0..1) in eighths of a column; its `track` if unknown."""
    if width <= 0:
        return Content("")
    share = 0.0 if fraction is None or math.isnan(fraction) else min(1.0, max(0.0, fraction))
    eighths = round(share * width * 8)
    if share > 0 and eighths == 0:
        eighths = 1
    full, rest = divmod(eighths, 8)
    partial = EIGHTHS[rest] if rest else ""
    empty = width - full - len(partial)
    return Content.assemble(("█" * full + partial, f"{style} {track}".strip()), (" " * empty, track))


def parts_bar(parts: Sequence[tuple[float, str]], whole: float, width: int) -> Content:
    """Return amounts of `whole` end to end, each in its style, to an eighth of a column."""
    return join_styled(stack_cells(parts, whole, width, EIGHTHS))


def stack_cells(parts: Sequence[tuple[float, str]], whole: float, length: int, eighths: str) -> list[tuple[str, str]]:
    """Return characters with their styles that stack amounts of `whole` over `length` cells, to an eighth of a cell. A
    cell that more than two of them share shows the two that have most of it."""
    ends = [round(reached / whole * length * 8) for reached in accumulate(amount for amount, _ in parts)]
    if not ends or ends[-1] > length * 8:
        return []
    ends[-1] = max(ends[-1], int(any(amount > 0 for amount, _ in parts)))
    characters = []
    for left in range(0, ends[-1], 8):
        spans = zip([0, *ends], [*ends, left + 8], [*(style for _, style in parts), ""], strict=True)
        covered = [(max(0, min(end, left + 8) - max(start, left)), style) for start, end, style in spans]
        two = sorted(range(len(covered)), key=lambda at, covered=covered: -covered[at][0])[:2]  # type: ignore[misc]
        (first, style), (second, behind) = (covered[at] for at in sorted(two))
        if not first or not second:
            characters.append(("█", behind if not first else style))
        else:
            characters.append((eighths[first], f"{style} on {behind}" if behind else style))
    return characters


def bar_with_names(parts: Iterable[tuple[str, float, str]], width: int) -> Content:
    """Return amounts end to end over `width` columns, each with its name and share where they fit, in its style."""
    rows = [*parts]
    total, done, used = sum(amount for _, amount, _ in rows), 0.0, 0
    drawn: list[tuple[str, str]] = []
    for name, amount, style in rows if total else ():
        done += amount
        room = round(done / total * width) - used
        used += room
        text = next((text for text in (f" {name} {percent(amount / total)}", f" {name}") if columns(text) < room), "")
        drawn.append((text.ljust(room), style))
    return Content.assemble(*drawn) if used else Content.styled(" " * max(0, width), "on $bar-track")


def spark(values: Sequence[float | None], width: int, style: str = "$bar") -> Content:
    """Return the last `width` shares (0..1) as columns of eight heights; unknown ones are blank."""
    shown = list(values)[-width:]
    text = "".join(
        " " if value is None or math.isnan(value) else SPARKS[min(7, max(0, int(value * 8)))] for value in shown
    )
    return Content.styled(text.rjust(width), style)


def mark(on: bool) -> Content:
    return Content.styled(MARKED, "bold $primary") if on else Content.styled(UNMARKED, "$quiet")


def heat(fraction: float | None) -> str:
    """Return the colour of a load: calm below 70 %, a warning from there, an alarm from 95 %."""
    if fraction is None:
        return "$quiet"
    return "$error" if fraction >= 0.95 else "$warning" if fraction >= 0.7 else "$bar"


_NO_BREAK, _STAND_IN = "\u202f", "\ue000"
"""Blank between the digits of a number, at which Textual would break a line; a character of its width for which it does
not."""


def wrap_content(content: Content, width: int) -> list[Content]:
    """Break a text into lines of at most `width` columns. A number such as 1 045 stays whole."""
    joined = Content(content.plain.replace(_NO_BREAK, _STAND_IN), list(content.spans))
    return [Content(line.plain.replace(_STAND_IN, _NO_BREAK), list(line.spans)) for line in joined.wrap(width)]


LEAST_BESIDE = 16
"""Least columns in which a text is wrapped beside its head; with fewer, it goes below the head."""


def hang(head: Content, text: str, width: int, style: str = "") -> list[Content]:
    """Return `head` followed by `text`, wrapped to `width` with a hanging indent. A number stays with its unit."""
    from jaxprof.report import wrap

    indent, width, above = head.cell_length, max(LEAST_BESIDE, width), []
    if width - indent < min(columns(text), LEAST_BESIDE):
        above, indent = wrap_content(head, width), min(indent - len(head.plain.lstrip()) + 2, width // 2)
        head = Content(" " * indent)
    room = width - indent
    lines = [
        piece for line in wrap(text, first="", width=room) for piece in wrap_content(Content.styled(line, style), room)
    ]
    return [*above, head + (lines[0] if lines else ""), *(Content(" " * indent) + line for line in lines[1:])]


def stack_parts(parts: Iterable[tuple[float, str, str]], whole: float, width: int) -> Content:
    """Return the parts end to end, each an amount of `whole`; a part that is not 0 has at least one column."""
    pieces, reached, used = [], 0.0, 0
    for amount, character, style in parts:
        reached += amount
        until = round(min(1.0, reached / whole) * width)
        columns_ = max(until - used, 1 if amount > 0 and used < width else 0)
        pieces.append((character * columns_, style))
        used += columns_
    return Content.assemble(*pieces).truncate(width)
