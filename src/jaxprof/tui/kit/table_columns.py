"""Columns as data: the cell of a row, the width, and which column gives way first in a narrow terminal.

Every table of the app uses these columns, whether it scrolls (`RowList`) or stands among other lines. Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from textual.content import Content

from jaxprof.base.text import Cut, columns, safe
from jaxprof.base.values import frozen
from jaxprof.tui.kit.drawing import cell, hang, wrap_content

if TYPE_CHECKING:
    from jaxprof.report import Piece, Table

Row = TypeVar("Row")
Drawing = Callable[[int], Content]
"""Function that draws a cell in a given number of terminal columns: a bar, or the longer of two forms."""
_LEAST = 4
"""Least width of a column, however narrow the terminal is."""
_MEASURED = 500
"""Number of rows measured for a column that fits its text."""


@frozen
class Span:
    """A cell that also covers all columns to its right."""

    content: Cell


Cell = str | tuple[str, str] | Content | Drawing | Span
"""Text from outside, such text with a style, drawn content, or a function that draws for a width."""


@dataclass(frozen=True)  # no slots: Python 3.11 cannot combine them with `TableColumn[str](...)`
class TableColumn(Generic[Row]):
    """One column. Spare width goes to the columns with a weight, up to their `most`."""

    title: str
    cell: Callable[[Row], Cell]
    width: int
    """Least width in terminal columns; the exact width without a weight."""
    weight: int = 0
    wanted: int = 0
    """With a weight: width that it has before columns with a priority appear, if that is more than `width`."""
    most: int = 1 << 16
    fits: bool = False
    """Whether the column is as wide as its longest text, up to `most`; it shrinks in a narrow terminal."""
    right: bool = False
    style: str = ""
    cut: Cut | None = None
    """Where `shorten` cuts a text; None: as suits the text."""
    priority: int = 0
    """0 is always shown. Columns of higher priority numbers appear in ascending order as the terminal gets wider, equal
    ones together, and only after the columns with a weight have their `width`."""
    gap: int = 1
    """Blank terminal columns after the column."""
    sort: Callable[[Row], object] | None = None
    """Sort key of a row; rows with key None come last in both directions. None: the column is not sortable."""


@dataclass(frozen=True)
class LaidOutColumn(Generic[Row]):
    column: TableColumn[Row]
    left: int
    width: int


def lay_out(all_columns: Sequence[TableColumn[Row]], width: int, rows: Iterable[Row] = ()) -> list[LaidOutColumn[Row]]:
    """Return the columns that fit into `width`, with their positions; the first one of the width stays free."""
    fitting = [column for column in all_columns if column.fits]
    longest = {id(column): columns(column.title) for column in fitting}
    for _, row in zip(range(_MEASURED if fitting else 0), rows, strict=False):
        for column in fitting:
            value = column.cell(row)
            text = value(column.most).plain.strip() if callable(value) else text_of(value)
            longest[id(column)] = max(longest[id(column)], columns(text))
    least = {id(each): max(each.width, min(each.most, longest.get(id(each), 0))) for each in all_columns}
    shown_ids = {id(column) for column in all_columns if not column.priority}
    room = width - 1 - sum(least[id(column)] + column.gap for column in all_columns if not column.priority)
    room += all_columns[-1].gap if all_columns else 0  # the last column needs no gap
    kept = sum(max(0, each.wanted - each.width) for each in all_columns if not each.priority)
    for priority in sorted({column.priority for column in all_columns} - {0}):
        together = [column for column in all_columns if column.priority == priority]
        needed = sum(least[id(column)] + column.gap for column in together)
        if needed > room - kept:
            break
        shown_ids |= {id(column) for column in together}
        room -= needed
    shown = [column for column in all_columns if id(column) in shown_ids]
    widths = [least[id(column)] for column in shown]
    while room > 0:  # spare width by weight; what one column cannot use goes to the others
        open_ = [at for at, column in enumerate(shown) if column.weight and widths[at] < column.most]
        if not open_:
            break
        weights, before = sum(shown[at].weight for at in open_), room
        for at in open_:
            more = min(shown[at].most - widths[at], max(1, before * shown[at].weight // weights), room)
            widths[at] += more
            room -= more
    soft = [at for at, column in enumerate(shown) if column.weight or column.fits]
    while room < 0 and soft and max(widths[at] for at in soft) > _LEAST:  # missing width from the widest column
        widths[max(soft, key=lambda at: widths[at])] -= 1
        room += 1
    laid_out, left = [], 1
    for column, size in zip(shown, widths, strict=True):
        laid_out.append(LaidOutColumn(column, left, size))
        left += size + column.gap
    return laid_out


def text_of(value: Cell) -> str:
    if isinstance(value, Span):
        return ""
    if isinstance(value, Content):
        return value.plain
    text = value[0] if isinstance(value, tuple) else value
    return safe(text) if isinstance(text, str) else ""


def draw_cell(value: Cell, width: int, *, right: bool = False, style: str = "", cut: Cut | None = None) -> Content:
    if width <= 0:
        return Content("")
    if isinstance(value, str | tuple):
        text, style = (value, style) if isinstance(value, str) else value
        return cell(text, width, style, right=right, cut=cut)
    if isinstance(value, Span):
        return draw_cell(value.content, width, style=style)
    content = value if isinstance(value, Content) else value(width)
    gap = width - content.cell_length
    if gap < 0:
        return content.truncate(width, ellipsis=True)
    return Content(" " * gap) + content if right else content + Content(" " * gap)


def row_line(row: Row, layout: Sequence[LaidOutColumn[Row]], width: int) -> Content:
    """Return a row as one line; a span takes the rest of `width` and is the last."""
    contents = []
    for part in layout:
        column = part.column
        value = column.cell(row)
        size = width - part.left if isinstance(value, Span) else part.width
        contents.append(draw_cell(value, size, right=column.right, style=column.style, cut=column.cut))
        if isinstance(value, Span):
            break
    return _join_cells(contents, layout)


def _join_cells(contents: Sequence[Content], layout: Sequence[LaidOutColumn[Row]]) -> Content:
    parts, reached = [], 0
    for content, part in zip(contents, layout, strict=False):
        parts += [Content(" " * (part.left - reached)), content]
        reached = part.left + content.cell_length
    return Content.assemble(*parts)


def header_line(
    layout: Sequence[LaidOutColumn[Row]], sorted_by: TableColumn[Row] | None = None, *, backwards: bool = False
) -> Content:
    titles = []
    for part in layout:
        title, right = part.column.title, part.column.right
        if part.column is sorted_by:
            arrow = "▴" if backwards else "▾"
            title = f"{arrow} {title}" if right else f"{title} {arrow}"
        titles.append(cell(title, part.width, "bold" if part.column is sorted_by else "", right=right))
    return _join_cells(titles, layout)


def table_lines(table: Table[Any], width: int) -> Iterator[Content]:
    from jaxprof.report import text_lines

    table = replace(table.cut(), title="")
    rows = len(list(table.rows))
    heading = 0 if any(column.title for column in table.for_people()) else 1
    for number, line in enumerate(text_lines(table, indent=" ", width=width), heading):
        style = "$text-muted" if number > rows or not rows else "bold $primary" if number == 0 else ""
        yield Content.styled(line, style).truncate(max(1, width), ellipsis=True)


def report_contents(pieces: Iterable[Piece], width: int) -> Iterator[Content]:
    """Yield the lines of a report, as a command prints it, in the colours of the app; longer ones are wrapped."""
    from jaxprof.report import Headline, Table, report_lines, texts

    for piece in pieces:
        if isinstance(piece, Table):
            yield from [Content(safe(piece.title))] * bool(piece.title)
            yield from (lines := list(table_lines(piece, width)))
            shown = "\n".join(line.plain for line in lines)
            for text in dict.fromkeys(row[-1] for row in texts(piece.cut())):
                if safe(text) not in shown:  # the last column has reasons, which a narrow table cuts
                    yield from hang(Content("  … "), text, width, "$text-muted")
        else:
            style = "bold" if isinstance(piece, Headline) else ""
            for line in report_lines([piece], width):
                content = Content.styled(safe(line), style)
                yield from [content] if content.cell_length <= width else wrap_content(content, width)


def either(*forms: str, style: str = "", right: bool = False) -> Drawing:
    """Return a cell with the first of several forms that fits; the last form if none fits."""

    def draw(width: int) -> Content:
        return cell(next((form for form in forms if columns(form) <= width), forms[-1]), width, style, right=right)

    return draw


def in_order(rows: Iterable[Row], sort: Callable[[Row], object], *, backwards: bool = False) -> list[Row]:
    """Return the rows in a stable order by `sort`; unknown values (None) come last in both directions."""
    listed = list(rows)
    values = {id(row): sort(row) for row in listed}
    known = [row for row in listed if values[id(row)] is not None]
    known.sort(key=lambda row: values[id(row)], reverse=backwards)  # type: ignore[arg-type, return-value]
    return known + [row for row in listed if values[id(row)] is None]
