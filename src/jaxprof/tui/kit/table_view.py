"""A table on the screen, with layout, header, sorting and filter. Columns are data, rows are values.

Textual's `DataTable` parses markup, has the same column widths for all terminals, and takes a second for ten thousand
rows; this one draws rows as they come into view. A row is redrawn if its content differs, so no screen has to list what
its rows depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic

from textual import events
from textual.content import Content
from textual.message import Message

from jaxprof.tui.kit.drawing import cell
from jaxprof.tui.kit.guard import HIDDEN
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import (
    Placed,
    Row,
    TableColumn,
    header_line,
    in_order,
    placed,
    row_line,
    text_of,
)


class Heading:
    """A row without cells, such as the title of a group; the cursor skips it."""

    def line(self, width: int) -> Content:
        """Return the row in `width` columns."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class TextRow(Heading):
    """A line of text between the rows."""

    text: str
    style: str = "$text-muted"

    def line(self, width: int) -> Content:
        return cell(self.text, width, self.style)


class TableView(RowList, Generic[Row]):
    """Rows by key, drawn by columns. Subclasses override a hook or two."""

    FILTERED: ClassVar[str] = "Nothing matches the filter. Esc clears it."
    """Text shown if the filter leaves nothing."""
    STAYS_ON_TOP: ClassVar[bool] = False
    """Whether a cursor on the first row stays on top when new rows come first."""
    UNSORTED = ""
    """Name of the original order; empty if the rows have no other."""

    class Sorted(Message):
        """The sort order of the rows has changed."""

    def __init__(
        self,
        columns: Sequence[TableColumn[Row]],
        *,
        titles: bool = True,
        order: str = "",
        id: str | None = None,
    ) -> None:
        """`order` is the title of the first sort column; empty keeps the original order."""
        super().__init__(id=id)
        self._columns = tuple(columns)
        self._titles = titles
        self._given: dict[Hashable, Row | Heading] = {}
        self._lines: dict[Hashable, Row | Heading] = {}
        self._words: list[str] = []
        self._order = self._first_order = next(
            (column for column in self._columns if order and column.title == order), None
        )
        self.backwards = False
        self._layout: tuple[int, list[Placed[Row]]] = (-1, [])
        self._drawn: dict[Hashable, Content] = {}
        """Rows drawn since the rows last changed."""
        self.marked: list[Any] = []
        """Keys of the marked rows, in the order in which they were marked."""

    # -- hooks ------------------------------------------------------------------------------------------------

    def arranged(self) -> dict[Hashable, Row | Heading]:
        """Return the rows to show: filtered and sorted."""
        return self.sorted_rows(self.left_by_filter())

    def haystack(self, row: Row) -> str:
        """Return the text that the filter searches: by default what the row shows."""
        return " ".join(text_of(column.cell(row)) for column in self._columns)

    def first_line(self, index: int, row: Row, width: int) -> Content:
        """Return the first line of a row: by default its cells."""
        return row_line(row, self._placed(width), width)

    def line_of(self, key: Hashable) -> Row | Heading | None:
        """Return the row or heading with that key; None if it is not shown."""
        return self._lines.get(key)

    # -- what is shown ----------------------------------------------------------------------------------------

    def show_rows(self, rows: Mapping[Any, Row | Heading]) -> None:
        """Show these rows and redraw only those whose content differs."""
        on_top = self.STAYS_ON_TOP and self.cursor == 0
        self._given = dict(rows)
        self.rearrange()
        if on_top:
            self.move_to(0)

    def rearrange(self) -> None:
        """Filter and sort the rows again."""
        lines = self.arranged()
        same, self._lines = list(lines) == self._keys, lines
        if not same:
            self.show_keys(list(lines))
            return
        before = self._layout
        if any(column.fits for column in self._columns) and self._place(before[0]) != before:
            self.refresh()
        self.redraw()
        if self._unfold():
            self.refresh()

    def show_keys(self, keys: Sequence[Hashable]) -> None:
        """Show other rows, or rows with other columns."""
        self._drawn.clear()
        self._layout = (-1, [])
        self.set_keys(keys)

    def redraw(self, keys: Container[Hashable] | None = None) -> None:
        """Redraw the rows in view whose content differs now; only those of `keys`, if given."""
        width = self.scrollable_content_region.width
        first, _ = self._row_of(round(self.scroll_y))
        for index in range(first, min(self.count, first + self.size.height)):
            key = self._keys[index]
            before = self._drawn.get(key) if keys is None or key in keys else None
            if before is not None and not self.draw_row(index, width).is_same(before):
                self.refresh_row(index)

    def row(self, key: Hashable) -> Row | None:
        """Return the row with that key; None if it is not shown, or is a heading."""
        row = self.line_of(key)
        return None if isinstance(row, Heading) else row

    @property
    def current_row(self) -> Row | None:
        """The row under the cursor; None in an empty table, and on a heading."""
        return self.row(self.current) if self._keys else None

    def selectable(self, index: int) -> bool:
        return not isinstance(self.line_of(self._keys[index]), Heading)

    def toggle(self, key: Hashable | None) -> None:
        """Mark or unmark a row. What was said of the marks before no longer holds, so it goes."""
        if key in self.marked:
            self.marked.remove(key)
        else:
            self.marked.append(key)
        self.redraw()
        self.app.clear_notifications()

    # -- filter -----------------------------------------------------------------------------------------------

    def set_filter(self, text: str) -> None:
        """Show only rows that contain all these words."""
        words = text.casefold().split()
        if words != self._words:
            self._words = words
            self.rearrange()

    @property
    def empty_text(self) -> str:
        return self.FILTERED if self._words and self._given else self.empty

    @property
    def total(self) -> int:
        """The number of rows, including those that the filter hides."""
        return sum(not isinstance(row, Heading) for row in self._given.values())

    @property
    def hidden(self) -> int:
        """The number of rows that the filter hides."""
        return self.total - len(self.left_by_filter()) if self._words else 0

    def left_by_filter(self) -> dict[Hashable, Row | Heading]:
        """Return the rows that contain all the words of the filter."""
        if not self._words:
            return self._given
        return {key: row for key, row in self._given.items() if not isinstance(row, Heading) and self._has_words(row)}

    def _has_words(self, row: Row) -> bool:
        text = self.haystack(row).casefold()
        return all(word in text for word in self._words)

    # -- order ------------------------------------------------------------------------------------------------

    @property
    def order_in_words(self) -> str:
        """`by median ▾`, for a frame; empty while the rows have their original order."""
        if self._order is None:
            named = self.backwards or self._first_order is not None
            return f"{self.UNSORTED} {'▴' if self.backwards else '▾'}" if named else ""
        return f"by {self._order.title} {'▴' if self.backwards else '▾'}"

    def sorted_rows(self, rows: dict[Hashable, Row | Heading]) -> dict[Hashable, Row | Heading]:
        """Return the rows in the chosen order."""
        if self._order is None or self._order.sort is None:
            return dict(reversed([*rows.items()])) if self.backwards else rows
        sort: Callable[[Any], object] = self._order.sort
        return dict(in_order(rows.items(), lambda pair: sort(pair[1]), backwards=self.backwards))

    def action_sort_by_next(self) -> None:
        orders: list[TableColumn[Row] | None] = [column for column in self._columns if column.sort is not None]
        orders = [*orders[1:], *orders[:1]]
        if self.UNSORTED:
            orders.insert(0, None)
        self.sort_by(orders[(orders.index(self._order) + 1) % len(orders) if self._order in orders else 0])

    def action_turn(self) -> None:
        self.sort_by(self._order, backwards=not self.backwards)

    def sort_by(self, column: TableColumn[Row] | None, *, backwards: bool | None = None) -> None:
        """Sort by a column, in the current direction unless another is given."""
        self._order = column
        self.backwards = self.backwards if backwards is None else backwards
        self.rearrange()
        self.refresh()
        self._bring_into_view()
        self.post_message(self.Sorted())

    def on_click(self, event: events.Click) -> None:
        """Sort by the clicked title; a second click reverses the order."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y >= self._top:
            return
        for place in self._placed(self.scrollable_content_region.width):
            if place.left <= offset.x < place.left + place.width and place.column.sort is not None:
                self.sort_by(place.column, backwards=place.column is self._order and not self.backwards)

    # -- drawing ----------------------------------------------------------------------------------------------

    @property
    def _top(self) -> int:
        return 1 if self._titles and self._keys else 0

    def draw_header(self, width: int) -> Content | None:
        if not self._top:
            return None
        return header_line(self._placed(width), self._order, backwards=self.backwards)

    def draw_row(self, index: int, width: int) -> Content:
        key = self._keys[index]
        row = self.line_of(key)
        if isinstance(row, Heading):
            drawn = row.line(width)
        else:
            drawn = self.first_line(index, row, width) if row is not None else Content("")
        self._drawn[key] = drawn
        return drawn

    def _placed(self, width: int) -> list[Placed[Row]]:
        return (self._layout if self._layout[0] == width else self._place(width))[1]

    def _place(self, width: int) -> tuple[int, list[Placed[Row]]]:
        rows = (row for key in self._keys if (row := self.row(key)) is not None)
        self._layout = (width, placed(self._columns, width, rows))
        return self._layout


class TreeView(TableView[Row], keys="tree"):
    """A table with rows `inside` others, which the arrow keys open, close and walk.

    Textual's `Tree` draws labels, not columns, and makes a node for each row before it shows the first. Filter and sort
    order apply to the outermost rows.
    """

    def __init__(self, columns: Sequence[TableColumn[Row]], *, order: str = "", id: str | None = None) -> None:
        super().__init__(columns, order=order, id=id)
        self.opened: set[Hashable] = set()
        self.opened_at_first: frozenset[Hashable] = frozenset()
        """Keys of the rows open before the user opened any; Esc does not close them."""
        self._around: dict[Hashable, Hashable] = {}

    def inside(self, key: Hashable, row: Row) -> Mapping[Hashable, Row]:
        """Return the rows inside this one, by keys that no other row has; empty if there is nothing to open."""
        raise NotImplementedError

    def arranged(self) -> dict[Hashable, Row | Heading]:
        self._around = {}
        return dict(self._seen(super().arranged()))

    def _seen(self, rows: Mapping[Hashable, Row | Heading]) -> Iterator[tuple[Hashable, Row | Heading]]:
        for key, row in rows.items():
            yield key, row
            if key in self.opened and not isinstance(row, Heading):
                below = self.inside(key, row)
                self._around |= dict.fromkeys(below, key)
                yield from self._seen(below)

    def can_open(self, key: Hashable | None) -> bool:
        """Return whether that row has rows inside."""
        row = self.row(key)
        return row is not None and bool(self.inside(key, row))

    def mark_of(self, key: Hashable) -> str:
        """Return `▾` for an open row, `▸` for one that can be opened."""
        return " " if not self.can_open(key) else "▾" if key in self.opened else "▸"

    @property
    def open_around(self) -> Hashable | None:
        """Return the key of the open row under the cursor, or of the one that contains it; None if there is none."""
        key = self.current
        return key if key in self.opened and self.can_open(key) else self._around.get(key)

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Leave Esc to the screen unless the cursor is in a row that the user opened."""
        if action == "close_row" and self.open_around not in self.opened - self.opened_at_first:
            return HIDDEN
        return super().why_not(action, parameters)

    def action_close_row(self) -> None:
        key = self.open_around
        if key is not None:
            self.opened -= {key}
            self.move_to_key(key)
            self.rearrange()

    def action_open(self) -> None:
        if self.can_open(self.current):
            self.opened ^= {self.current}
            self.rearrange()

    def action_spread(self, step: int) -> None:
        key = self.current
        if step > 0 and self.can_open(key):
            self.opened |= {key}
        elif step < 0 and key in self.opened and self.can_open(key):
            self.opened -= {key}
        elif step < 0 and key in self._around:
            self.move_to_key(self._around[key])
        self.rearrange()

    def action_open_all(self) -> None:
        every = set(self._openable(self.left_by_filter()))
        outermost = list(self.left_by_filter())
        self.opened = (set(outermost) if len(outermost) == 1 else set()) if every <= self.opened else every
        self.rearrange()

    def _openable(self, rows: Mapping[Hashable, Row | Heading]) -> Iterator[Hashable]:
        for key, row in rows.items():
            if not isinstance(row, Heading) and (below := self.inside(key, row)):
                yield key
                yield from self._openable(below)
