"""The one list of the app: rows under columns, with a header, an order, a filter, and lines below a row.

Columns are data, rows are values, drawn line by line as they come into view. Textual's own lists (`OptionList`,
`ListView`, `DataTable`) parse markup, or take a second for ten thousand rows. This one draws only `Content`, keeps its
cursor on the same row when the rows change, and redraws only lines whose content differs, so that no screen has to list
what its rows depend on. Text, lanes and output are lists without columns, which draw their rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic

from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual

from jaxprof.base.text import safe
from jaxprof.base.values import frozen
from jaxprof.tui.kit.drawing import cell, wrap_content
from jaxprof.tui.kit.guard import HIDDEN, Guarded
from jaxprof.tui.kit.table_columns import (
    LaidOutColumn,
    Row,
    TableColumn,
    header_line,
    in_order,
    lay_out,
    row_line,
    text_of,
)

_ON_ROWS = frozenset(("choose", "mark", "sort", "sort_by_next", "turn", "open_all", "group", "browse"))
"""Actions of lists that need rows."""


@frozen
class Heading:
    """A line of text between the rows, such as the title of a group; the cursor skips it."""

    text: str
    style: str = "$text-muted"


class RowList(Guarded, ScrollView, Generic[Row], can_focus=True, inherit_bindings=False, keys="rows"):
    """Rows by key. Subclasses override a hook or two. Textual's keys for scrolling are not inherited: they would hide
    from the key bar what the arrows do on a screen."""

    ALLOW_SELECT = False
    auto_links = False  # rows have no links, and finding a link's style costs as much as drawing a row
    COMPONENT_CLASSES: ClassVar[set[str]] = {"row-list--cursor", "row-list--header"}
    EMPTY: ClassVar[str] = ""
    UNFOLDS: ClassVar[bool] = False
    """Whether rows have lines `below` their first."""
    FILTERED: ClassVar[str] = "Nothing matches the filter. Esc clears it."
    STAYS_ON_TOP: ClassVar[bool] = False
    """Whether a cursor on the first row stays on top when new rows come first."""
    UNSORTED = ""
    """Name of the original order; empty if the rows have no other."""

    @dataclass
    class Highlighted(Message):
        """The cursor moved to another row."""

        rows: RowList[Any]
        index: int

        @property
        def control(self) -> RowList[Any]:
            return self.rows

    class Chosen(Highlighted):
        """The user chose a row, with the key of the list or a double click."""

        IN_VIEW: ClassVar = True

    class Sorted(Message):
        """The sort order of the rows has changed."""

    def __init__(
        self, columns: Sequence[TableColumn[Row]] = (), *, titles: bool = True, order: str = "", id: str | None = None
    ) -> None:
        """`order` is the title of the first sort column; empty keeps the original order."""
        super().__init__(id=id)
        self.empty = self.EMPTY
        self._keys: Sequence[Hashable] = ()
        self._cursor: int = 0
        self._below: dict[int, Sequence[Content]] = {}
        """Lines below the first line of a row, by the indexes of the rows that show them, in order."""
        self._columns = tuple(columns)
        self._titles = titles
        self._given: dict[Hashable, Row | Heading] = {}
        self._rows: dict[Hashable, Row | Heading] = {}
        self._words: list[str] = []
        self._order = self._first_order = next(
            (column for column in self._columns if order and column.title == order), None
        )
        self.backwards = False
        self._layout: tuple[int, list[LaidOutColumn[Row]]] = (-1, [])
        self._drawn_rows: dict[Hashable, Content] = {}
        """Rows drawn since the rows last changed."""
        self.marked: list[Any] = []
        """Keys of the marked rows, in the order in which they were marked."""

    # -- hooks ------------------------------------------------------------------------------------------------

    def order_rows(self) -> dict[Hashable, Row | Heading]:
        return self.sort_rows(self.rows_left_by_filter())

    def haystack(self, row: Row) -> str:
        """Return the text that the filter searches: by default what the row shows."""
        return " ".join(text_of(column.cell(row)) for column in self._columns)

    def first_line(self, index: int, row: Row, width: int) -> Content:
        """Return the first line of a row: by default its cells."""
        return row_line(row, self._layout_for(width), width)

    def row_of(self, key: Hashable) -> Row | Heading | None:
        return self._rows.get(key)

    def below(self, index: int, width: int) -> Sequence[Content]:
        """Return the further lines of row `index`, if `UNFOLDS`: shown where there is room, or under the cursor."""
        return ()

    def draw_header(self, width: int) -> Content | None:
        return header_line(self._layout_for(width), self._order, backwards=self.backwards) if self._top else None

    def draw_row(self, index: int, width: int) -> Content:
        key = self._keys[index]
        row = self.row_of(key)
        if isinstance(row, Heading):
            drawn = cell(row.text, width, row.style)
        else:
            drawn = self.first_line(index, row, width) if row is not None else Content("")
        self._drawn_rows[key] = drawn
        return drawn

    def selectable(self, index: int) -> bool:
        return not isinstance(self.row_of(self._keys[index]), Heading)

    @property
    def empty_text(self) -> str:
        return self.FILTERED if self._words and self._given else self.empty

    # -- what is shown ----------------------------------------------------------------------------------------

    def show_empty(self, words: str) -> None:
        if words != self.empty:
            self.empty = words
            self.refresh()

    @property
    def keys(self) -> list[Hashable]:
        return list(self._keys)

    @property
    def count(self) -> int:
        return len(self._keys)

    def row_key(self, index: int) -> Hashable:
        """Return the identity of one row, without copying `keys`, which may have a million."""
        return self._keys[index]

    @property
    def cursor(self) -> int:
        return self._cursor

    @property
    def current(self) -> Hashable | None:
        return self._keys[self._cursor] if self._keys else None

    def show_rows(self, rows: Mapping[Any, Row | Heading]) -> None:
        on_top = self.STAYS_ON_TOP and self.cursor == 0
        self._given = dict(rows)
        self.rearrange()
        if on_top:
            self.move_to(0)

    def rearrange(self) -> None:
        lines = self.order_rows()
        same, self._rows = list(lines) == self._keys, lines
        if not same:
            self.set_keys(list(lines))
            return
        before = self._layout
        if any(column.fits for column in self._columns) and self._lay_out(before[0]) != before:
            self.refresh()
        self.redraw()
        if self._unfold():
            self.refresh()

    def set_keys(self, keys: Sequence[Hashable]) -> None:
        """Show other rows; the cursor stays on its row. `keys` is kept, not copied: half a million may be a range."""
        before = self.current
        count = len(self._keys)
        self._keys = keys
        self._drawn_rows.clear()
        self._layout = (-1, [])
        if before is not None and before in keys:
            self._cursor = keys.index(before)
        else:
            self._cursor = min(self._cursor, max(0, len(keys) - 1))
            self._cursor = self.near(self._cursor, 1)  # move past rows that the cursor skips
        if not self._unfold() and count != len(keys):
            self._resize_rows()
        if not count or not len(keys):
            self.refresh_bindings()
        self.refresh()
        if self.current != before:
            self._post_highlighted()

    def refresh_row(self, index: int) -> None:
        first = self._line_of_row(index) + self._top - round(self.scroll_y)
        begin = max(self._top, first)
        end = min(self.size.height, first + 1 + len(self._below.get(index, ())))
        if begin < end:
            self.refresh(Region(0, begin, self.size.width, end - begin))

    def move_to(self, index: int) -> None:
        if not self._keys:
            return
        index = max(0, min(index, len(self._keys) - 1))
        if index != self._cursor and self.selectable(index):
            before, self._cursor = self._cursor, index
            self.refresh_row(before)
            self.refresh_row(index)
            if self._unfold():
                self.refresh()
            self._post_highlighted()
        self._bring_into_view()

    def move_to_key(self, key: Hashable) -> None:
        if key in self._keys:
            self.move_to(self._keys.index(key))

    @property
    def _top(self) -> int:
        return 1 if self._titles and self._columns and self._keys else 0

    def near(self, index: int, step: int) -> int:
        """Return the next row from `index` on where the cursor can stop; the cursor's own row if there is none."""
        end = len(self._keys) if step > 0 else -1
        return next((row for row in range(index, end, step) if self.selectable(row)), self._cursor)

    def _post_highlighted(self) -> None:
        if self._keys:
            self.post_message(self.Highlighted(self, self._cursor))

    def _unfold(self) -> bool:
        """Update which rows show the lines below their first: the row under the cursor, then the others from the first
        on, as far as their lines fit. Return True if that has changed."""
        if not self.UNFOLDS:
            return False
        width, left = max(1, self.scrollable_content_region.width), self.size.height - self._top - self.count
        shown: dict[int, Sequence[Content]] = {}
        for index in dict.fromkeys((self._cursor, *range(self.count if left > 0 else 0))):
            lines = self.below(index, width) if index < self.count else ()
            if lines and (index == self._cursor or len(lines) <= left):
                shown[index] = lines
                left -= len(lines)
        if shown == self._below:
            return False
        self._below = dict(sorted(shown.items()))
        self._resize_rows()
        return True

    def _line_of_row(self, index: int) -> int:
        return index + sum(len(lines) for at, lines in self._below.items() if at < index)

    def _row_at_line(self, line: int) -> tuple[int, int]:
        for index, lines in self._below.items():
            if line <= index:
                break
            if line <= index + len(lines):
                return index, line - index
            line -= len(lines)
        return line, 0

    def _resize_rows(self) -> None:
        self.virtual_size = Size(max(1, self.size.width), self._line_of_row(len(self._keys)) + self._top)

    def _bring_into_view(self) -> None:
        visible = max(1, self.size.height - self._top)
        top, first = round(self.scroll_y), self._line_of_row(self._cursor)
        last = first + min(visible - 1, len(self._below.get(self._cursor, ())))
        if first < top:
            self.scroll_to(y=first, animate=False, force=True)
        elif last >= top + visible:
            self.scroll_to(y=last - visible + 1, animate=False, force=True)

    def redraw(self, keys: Container[Hashable] | None = None) -> None:
        """Redraw the rows in view whose content differs now; only those of `keys`, if given."""
        width = self.scrollable_content_region.width
        first, _ = self._row_at_line(round(self.scroll_y))
        for index in range(first, min(self.count, first + self.size.height)):
            key = self._keys[index]
            before = self._drawn_rows.get(key) if keys is None or key in keys else None
            if before is not None and not self.draw_row(index, width).is_same(before):
                self.refresh_row(index)

    def row(self, key: Hashable) -> Row | None:
        row = self.row_of(key)
        return None if isinstance(row, Heading) else row

    @property
    def current_row(self) -> Row | None:
        return self.row(self.current) if self._keys else None

    def toggle(self, key: Hashable | None) -> None:
        """Mark or unmark a row, and dismiss the messages about the marks before."""
        if key in self.marked:
            self.marked.remove(key)
        else:
            self.marked.append(key)
        self.redraw()
        self.app.clear_notifications()

    # -- filter -----------------------------------------------------------------------------------------------

    def set_filter(self, text: str) -> None:
        words = text.casefold().split()
        if words != self._words:
            self._words = words
            self.rearrange()

    @property
    def total(self) -> int:
        return sum(not isinstance(row, Heading) for row in self._given.values())

    @property
    def hidden(self) -> int:
        return self.total - len(self.rows_left_by_filter()) if self._words else 0

    def rows_left_by_filter(self) -> dict[Hashable, Row | Heading]:
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

    def sort_rows(self, rows: dict[Hashable, Row | Heading]) -> dict[Hashable, Row | Heading]:
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
        self._order = column
        self.backwards = self.backwards if backwards is None else backwards
        self.rearrange()
        self.refresh()
        self._bring_into_view()
        self.post_message(self.Sorted())

    # -- drawing ----------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        top = self._top
        if y < top:
            header = self.draw_header(width)
            return self._strip(header or Content(""), self.get_visual_style("row-list--header"), width)
        index, part = self._row_at_line(y - top + round(self.scroll_y))
        if not self._keys and self.empty_text:
            lines = wrap_content(Content.styled(safe(self.empty_text), "$text-muted"), max(1, width - 2))
            return self._strip(Content("").join([" ", *lines[y - top : y - top + 1]]), self.visual_style, width)
        if index >= len(self._keys):
            return self._strip(Content(""), self.visual_style, width)
        style = self.visual_style
        if index == self._cursor and self.selectable(index):
            style = self.get_visual_style("row-list--cursor")
        content = self._below[index][part - 1] if part else self.draw_row(index, width)
        return self._strip(content, style, width)

    def _strip(self, content: Content, style: Style, width: int) -> Strip:
        strips = Visual.to_strips(self, content, width, 1, style, pad=True)
        return strips[0] if strips else Strip.blank(width, style.rich_style)

    def _layout_for(self, width: int) -> list[LaidOutColumn[Row]]:
        return (self._layout if self._layout[0] == width else self._lay_out(width))[1]

    def _lay_out(self, width: int) -> tuple[int, list[LaidOutColumn[Row]]]:
        rows = (row for key in self._keys if (row := self.row(key)) is not None)
        self._layout = (width, lay_out(self._columns, width, rows))
        return self._layout

    # -- keys and mouse ---------------------------------------------------------------------------------------

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        return HIDDEN if action in _ON_ROWS and not self._keys else super().why_not(action, parameters)

    def on_resize(self) -> None:
        self._unfold()
        self._resize_rows()
        self._bring_into_view()

    def watch_show_vertical_scrollbar(self) -> None:
        """Break the lines below rows again: a scrollbar changes their width, and Textual sends no `Resize` for that."""
        if self.is_mounted and self._unfold():
            self.refresh()

    def action_move(self, step: int) -> None:
        self.move_to(self.near(self._cursor + step, step))

    def action_page(self, step: int) -> None:
        page = max(1, self.size.height - self._top - 1)
        target = max(0, min(len(self._keys) - 1, self._cursor + step * page))
        self.move_to(self.near(target, step))

    def action_edge(self, step: int) -> None:
        self.move_to(self.near(0 if step < 0 else len(self._keys) - 1, -step))

    def action_choose(self) -> None:
        if self._keys and self.selectable(self._cursor):
            self.post_message(self.Chosen(self, self._cursor))

    def _row_at(self, event: events.MouseEvent) -> int:
        offset = event.get_content_offset(self)
        if offset is None or offset.y < self._top:
            return -1
        index, _ = self._row_at_line(offset.y - self._top + round(self.scroll_y))
        return index if index < len(self._keys) else -1

    def on_click(self, event: events.Click) -> None:
        index, offset = self._row_at(event), event.get_content_offset(self)
        if index >= 0:
            self.move_to(index)
            if event.chain == 2:
                self.action_choose()
        if offset is None or offset.y >= self._top:
            return
        for column in self._layout_for(self.scrollable_content_region.width):
            if column.left <= offset.x < column.left + column.width and column.column.sort is not None:
                self.sort_by(column.column, backwards=column.column is self._order and not self.backwards)


class TreeView(RowList[Row], keys="tree"):
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

    def order_rows(self) -> dict[Hashable, Row | Heading]:
        self._around = {}
        return dict(self._with_opened(super().order_rows()))

    def _with_opened(self, rows: Mapping[Hashable, Row | Heading]) -> Iterator[tuple[Hashable, Row | Heading]]:
        for key, row in rows.items():
            yield key, row
            if key in self.opened and not isinstance(row, Heading):
                below = self.inside(key, row)
                self._around |= dict.fromkeys(below, key)
                yield from self._with_opened(below)

    def can_open(self, key: Hashable | None) -> bool:
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
        every = set(self._openable(self.rows_left_by_filter()))
        outermost = list(self.rows_left_by_filter())
        closed = set(outermost) if len(outermost) == 1 else set()  # the only outermost row stays open
        self.opened = closed if every <= self.opened else every
        self.rearrange()

    def _openable(self, rows: Mapping[Hashable, Row | Heading]) -> Iterator[Hashable]:
        for key, row in rows.items():
            if not isinstance(row, Heading) and (below := self.inside(key, row)):
                yield key
                yield from self._openable(below)
