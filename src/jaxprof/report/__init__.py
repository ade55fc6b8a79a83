"""A session in writing: JSON, plain text, CSV, Markdown, HTML. Each format is a pure function of a `Session`.

A report is headlines, prose and tables, which are written here as text and CSV, and in `page` as HTML; `perfetto` is
for that viewer. Everything derived comes from `analysis`; nothing is measured, rounded or guessed here beyond what a
format needs.

A table is a value, facts as columns over rows that hold measured values. Text and HTML take the facts with a title and
format each cell as a quantity; CSV and JSON take the facts with a key and write numbers unformatted. Text aligns
columns by what a terminal shows, not by code points. CSV has no cell that a spreadsheet would take for a formula. Each
medium has one escaping function.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Generic

from jaxprof.base.text import columns as terminal_columns
from jaxprof.base.text import json_text, safe, safe_lines, shorten
from jaxprof.base.units import UNKNOWN
from jaxprof.base.values import frozen
from jaxprof.facts import Fact, Row, columns, within
from jaxprof.facts.units import TEXT

WIDTH = 80
"""Columns of a line of a report, unless it is wider."""
WIDE = 100
"""Columns of a line of a report whose tables have many columns."""
GAP = "  "
PAGE = 500
"""Rows of the first page: a table from an iterator, which may have a million rows, is printed after so many were
read."""
_REPEATED = 1 << 14
"""Most cells of a longer table that are remembered by what they go by: a million rows repeat most of them."""


def text_lines(table: Table[Any], *, indent: str = "  ", width: int = 0, all_columns: bool = False) -> Iterator[str]:
    """Yield the title, the table and the notes. With a `width`, the column that gives way is narrowed until a line
    fits.

    Cut cells end in an ellipsis. Columns without values are left out, unless `all_columns` is set, and so is the
    heading of a table without rows. Rows from an iterator are printed by the page: a table of one page looks like any
    other; in a longer one the first page sets the widths of the columns, and a wider cell moves the rest of its line.
    """
    table = table.cut()
    width = 0 if table.is_wide else width
    if table.title:
        yield safe(table.title)
    rest = iter(table.rows)
    page = list(texts(replace(table, rows=islice(rest, PAGE if isinstance(table.rows, Iterator) else None))))
    if page:
        lines = _align(table, page, rest, indent, width, all_columns)
        if table.under is None:
            yield from lines
        else:
            yield next(lines)
            for row, line in zip(table.rows, lines, strict=True):
                yield line
                yield from report_lines(table.under(row), width or WIDTH)
    for note in table.notes:
        yield from wrap(note, first=indent, width=width) if width else [indent + safe(note)]


def _align(
    table: Table[Row], page: Sequence[list[str]], rest: Iterator[Row], indent: str, width: int, all_columns: bool
) -> Iterator[str]:
    """Yield heading, first page and `rest`. A longer table keeps empty columns: the rest may have values there."""
    columns = table.for_people()
    is_longer = isinstance(table.rows, Iterator) and len(page) == PAGE

    def cut(cell: str, column: Fact[Any]) -> str:
        return shorten(cell, column.widest) if column.widest else safe(cell)

    titles = [column.title or "" for column in columns]
    cells = [list(map(cut, row, columns)) for row in [titles, *page]]
    kept = [
        at
        for at in range(len(columns))
        if is_longer or all_columns or any(row[at] not in ("", UNKNOWN) for row in cells[1:])
    ]
    widths = {at: max(terminal_columns(row[at]) for row in cells) for at in kept}
    narrowed = next((at for at in kept if columns[at].gives_way), kept[0] if kept else 0)
    excess = len(indent) + sum(widths.values()) + len(GAP) * (len(kept) - 1) - width
    if width and excess > 0 and kept:
        # A column keeps 6 terminal columns, however narrow the page is.
        widths[narrowed] = max(6, widths[narrowed] - excess)
        for row in cells:
            row[narrowed] = shorten(row[narrowed], widths[narrowed])

    right = [column.is_right for column in columns]

    def pad(at: int, cell: str) -> str:
        space = " " * (widths[at] - terminal_columns(cell))
        return space + cell if right[at] else cell + space

    for row in cells if any(cells[0]) else cells[1:]:
        yield (indent + GAP.join([pad(at, row[at]) for at in kept])).rstrip()

    def drawer(numbers: Sequence[int]) -> Callable[[Row], str]:
        """Return a function that draws these columns of a row, once for rows that are equal in what they go `by`."""
        cells = [(at, columns[at], columns[at].reader(), columns[at].shown) for at in numbers]
        by = columns[numbers[0]].by
        known: dict[Hashable, str] = {}

        def draw(row: Row) -> str:
            drawn = []
            for at, column, read, show in cells:
                text = show(read(row))
                if text.isascii() and text.isprintable() and len(text) <= (column.widest or len(text)):
                    drawn.append(text.rjust(widths[at]) if right[at] else text.ljust(widths[at]))  # the same, faster
                else:
                    drawn.append(pad(at, cut(text, column)))
            return GAP.join(drawn)

        def remember(key: Hashable, row: Row) -> str:
            if len(known) >= _REPEATED:
                known.clear()
            text = known[key] = draw(row)
            return text

        return draw if by is None else lambda row: known.get(key := by(row)) or remember(key, row)

    parts = [drawer(list(numbers)) for _, numbers in groupby(range(len(columns)), lambda at: columns[at].by)]
    for further in rest:
        yield (indent + GAP.join([draw(further) for draw in parts])).rstrip()


_NO_BREAK = "\x1f"
"""Placeholder for a blank at which no line is broken. It cannot be in a text that `safe` has escaped."""
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|(?:[num\u00b5]?s|min|h|[KMGT]?i?B)\b)")


def wrap(text: str, *, first: str = "  ", hang: int = 0, width: int = WIDTH) -> list[str]:
    """Break `text` into lines of at most `width` columns: `first` is before the first one, and the others are indented
    by as much and `hang` more. A longer word stays whole, and so does a number with its unit: `3.2 s`, `8 %`."""
    lines = textwrap.wrap(
        _BEFORE_UNIT.sub(_NO_BREAK, safe(text)),
        width,
        initial_indent=first,
        subsequent_indent=" " * (len(first) + hang),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]


def markdown(report: str) -> str:
    """Return a report in text as Markdown: a block of code, with a fence that nothing in the report can close."""
    fence = "`" * max(3, *(len(ticks) + 1 for ticks in re.findall("`+", report)), 0)
    return f"{fence}text\n{report}\n{fence}"


_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_CONTROL = ("\t", "\r", "\n")


def csv_lines(table: Table[Row]) -> Iterator[str]:
    """Yield the heading and the rows, each as soon as it is there, ended by a line feed. Numbers are not formatted, and
    their unit is in the heading; an empty cell is unknown; a list is JSON."""
    import csv

    facts = list(columns(table.columns))
    readers = [fact.reader() for fact in facts]
    writer = csv.writer(_Echo(), lineterminator="\n")
    yield writer.writerow([fact.key for fact in facts])
    for row in table.rows:
        yield writer.writerow([safe_cell(read(row)) for read in readers])


def safe_cell(value: Any) -> Any:
    """Return a cell as CSV has it: unknown is empty, a text that a spreadsheet would take for a formula begins with a
    quotation mark, and control characters are visible (OWASP, "CSV Injection")."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | dict):
        value = json_text(value)
    if not isinstance(value, str):
        return value
    text = value if value.isascii() and value.isprintable() else "\n".join(safe_lines(value))
    return f"'{text}" if text.lstrip().startswith(_FORMULA) or value.startswith(_CONTROL) else text


class _Echo:
    """A file whose `write` returns the text, so that a CSV writer returns each row."""

    def write(self, text: str) -> str:
        return text


@frozen
class Table(Generic[Row]):
    """Rows under columns. Rows from an iterator are printed as they come, and can be read once."""

    columns: Sequence[Fact[Row]]
    rows: Iterable[Row]
    title: str = ""
    notes: tuple[str, ...] = ()
    """Lines after the table, for people only."""
    most: int = 0
    """Most rows in text and in the app; 0 for all. A page has all."""
    rest: str = "and {} more"
    """Format of the note that counts the other rows; without one they are not mentioned."""
    is_wide: bool = False
    """Whether text is as wide as the cells are, because each may matter."""
    under: Callable[[Row], Iterable[Prose]] | None = None
    """Returns what text has below a row, and a page in its last column."""

    def for_people(self) -> list[Fact[Row]]:
        return [column for column in self.columns if column.title is not None]

    def cut(self) -> Table[Row]:
        """Return the table with the rows that text has, and a note of how many others there are."""
        if not self.most:
            return self
        rows = list(self.rows)
        left = len(rows) - self.most
        notes = (self.rest.format(left), *self.notes) if left > 0 and self.rest else self.notes
        return replace(self, rows=rows[: self.most], notes=notes, most=0)


def texts(table: Table[Row]) -> Iterator[list[str]]:
    readers = [(fact.reader(), fact.shown) for fact in table.for_people()]
    return ([show(read(row)) for read, show in readers] for row in table.rows)


def join_tables(
    key: str, facts: Iterable[Fact[Row]], parts: Iterable[tuple[str, Iterable[Row]]]
) -> Table[tuple[str, Row]]:
    """Join several tables with the same facts into one. Its first column, `key`, names the part of each row."""
    rows = ((name, row) for name, part in parts for row in part)
    of_part = Fact(key, TEXT, "Which one it is of", itemgetter(0))
    return Table([of_part, *within(itemgetter(1), facts)], rows)


@frozen
class Prose:
    text: str
    first: str = "  "
    """What is before it: blanks, and a mark or a label. Blanks are for text alone."""
    hang: int = 0
    """How much further its other lines are indented in text."""


@frozen
class Headline:
    text: str


Piece = str | Prose | Headline | Table[Any]
"""A part of a report. A plain text is a line that only reports in text have; most are empty."""


def report_lines(pieces: Iterable[Piece], width: int = WIDTH) -> Iterator[str]:
    """Yield a report as text, in lines of at most `width` columns."""
    for piece in pieces:
        if isinstance(piece, str):
            yield piece
        elif isinstance(piece, Prose):
            yield from wrap(piece.text, first=piece.first, hang=piece.hang, width=width)
        elif isinstance(piece, Headline):
            heading = wrap(piece.text, first="", hang=2, width=width)
            yield from (*heading, "─" * max(map(terminal_columns, heading), default=0))
        else:
            yield from text_lines(piece, width=width)
