"""A list of rows, drawn line by line as they come into view; a row may have more lines below its first.

Textual's own lists (`OptionList`, `ListView`, `DataTable`) parse markup, or take a second for ten thousand rows. This
one draws only `Content`, keeps its cursor on the same row when the rows change, and redraws only lines that change.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual
from textual.widget import Widget

from jaxprof.text import safe
from jaxprof.tui.kit.guard import HIDDEN, Guarded

_ON_ROWS = frozenset(("choose", "mark", "sort", "sort_by_next", "turn", "open_all", "group", "open_groups"))
"""Actions of lists that need rows."""


class RowList(Guarded, ScrollView, can_focus=True, keys="rows"):
    """Base class of every list. `keys` holds the identities of the rows; subclasses draw them."""

    ALLOW_SELECT = False
    auto_links = False  # rows have no links, and finding a link's style costs as much as drawing a row
    COMPONENT_CLASSES: ClassVar[set[str]] = {"row-list--cursor", "row-list--header"}
    EMPTY: ClassVar[str] = ""
    """Text of an empty list."""
    UNFOLDS: ClassVar[bool] = False
    """Whether rows have lines `below` their first."""

    @dataclass
    class Highlighted(Message):
        """The cursor moved to another row."""

        rows: RowList
        index: int

        @property
        def control(self) -> RowList:
            return self.rows

    class Chosen(Highlighted):
        """The user chose a row, with the key of the list or a double click."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.empty = self.EMPTY
        """Text of this list while it is empty."""
        self._keys: Sequence[Hashable] = ()
        self._cursor: int = 0
        self._below: dict[int, Sequence[Content]] = {}
        """Lines below the first line of a row, by the indexes of the rows that show them, in order."""

    # -- for subclasses ---------------------------------------------------------------------------------------

    def draw_row(self, index: int, width: int) -> Content:
        """Return row `index` in `width` columns."""
        raise NotImplementedError

    def below(self, index: int, width: int) -> Sequence[Content]:
        """Return the further lines of row `index`, if `UNFOLDS`: shown for all rows if the list has room, otherwise for
        the row under the cursor."""
        return ()

    def draw_header(self, width: int) -> Content | None:
        """Return the line above the rows, which does not scroll; None without one."""
        return None

    def selectable(self, index: int) -> bool:
        """Return whether the cursor can stop at that row."""
        return True

    def set_filter(self, text: str) -> None:
        """Show only rows that contain all these words."""
        raise NotImplementedError

    @property
    def empty_text(self) -> str:
        """Text shown in place of rows."""
        return self.empty

    # -- what is shown ----------------------------------------------------------------------------------------

    def show_empty(self, words: str) -> None:
        """Show these words while there are no rows."""
        if words != self.empty:
            self.empty = words
            self.refresh()

    @property
    def keys(self) -> list[Hashable]:
        """Identities of the rows, in order."""
        return list(self._keys)

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self._keys)

    def key_at(self, index: int) -> Hashable:
        """Return the identity of one row, without copying `keys`, which may have a million."""
        return self._keys[index]

    @property
    def cursor(self) -> int:
        """The index of the row under the cursor; 0 in an empty list."""
        return self._cursor

    @property
    def current(self) -> Hashable | None:
        """The key of the row under the cursor; None in an empty list."""
        return self._keys[self._cursor] if self._keys else None

    def set_keys(self, keys: Sequence[Hashable]) -> None:
        """Show other rows; the cursor stays on its row if that still exists. `keys` is kept, not copied: half a million
        of them may be an array, or a range."""
        before = self.current
        count = len(self._keys)
        self._keys = keys
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
        """Redraw one row."""
        first = self._line_of(index) + self._top - round(self.scroll_y)
        begin = max(self._top, first)
        end = min(self.size.height, first + 1 + len(self._below.get(index, ())))
        if begin < end:
            self.refresh(Region(0, begin, self.size.width, end - begin))

    def move_to(self, index: int) -> None:
        """Move the cursor to a row, and scroll it into view."""
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
        """Move the cursor to the row with that key, if there is one."""
        if key in self._keys:
            self.move_to(self._keys.index(key))

    @property
    def _top(self) -> int:
        return 1 if self.draw_header(max(1, self.size.width)) is not None else 0

    def near(self, index: int, step: int) -> int:
        """Return the next row from `index` on where the cursor can stop; the cursor's own row if there is none."""
        end = len(self._keys) if step > 0 else -1
        return next((row for row in range(index, end, step) if self.selectable(row)), self._cursor)

    def _post_highlighted(self) -> None:
        if self._keys:
            self.post_message(self.Highlighted(self, self._cursor))

    def _unfold(self) -> bool:
        """Update which rows show the lines below their first; return True if that has changed."""
        if not self.UNFOLDS:
            return False
        width, room = max(1, self.scrollable_content_region.width), self.size.height - self._top
        every = range(self.count) if self.count <= room else range(self._cursor, min(self._cursor + 1, self.count))
        shown = {index: lines for index in every if (lines := self.below(index, width))}
        left = room - self.count
        if sum(map(len, shown.values())) > left:
            shown = self._fitting(shown, left, width)
        if shown == self._below:
            return False
        self._below = shown
        self._resize_rows()
        return True

    def _fitting(self, below: Mapping[int, Sequence[Content]], left: int, width: int) -> dict[int, Sequence[Content]]:
        """Return what to show of these lines below rows, which are more than the `left` lines that are free: those of
        the row under the cursor, then of the others from the first on; the last ones may be cut."""
        shown = {self._cursor: below[self._cursor]} if self._cursor in below else {}
        left -= sum(map(len, shown.values()))
        for index, lines in below.items():
            if left > 0 and index != self._cursor:
                rest = lines[left - 1].rstrip().truncate(max(1, width - 2)) + " …" if len(lines) > left else None
                shown[index] = [*lines[: left - 1], rest] if rest is not None else lines
                left -= len(shown[index])
        return dict(sorted(shown.items()))

    def _line_of(self, index: int) -> int:
        """Return the first line of a row, counted from the first row."""
        return index + sum(len(lines) for at, lines in self._below.items() if at < index)

    def _row_of(self, line: int) -> tuple[int, int]:
        """Return the row that has a line, and the number of that line in the row."""
        for index, lines in self._below.items():
            if line <= index:
                break
            if line <= index + len(lines):
                return index, line - index
            line -= len(lines)
        return line, 0

    def _resize_rows(self) -> None:
        """Set the scrollable size to the number of lines. With a permanent scrollbar (`overflow-y: scroll`) this skips
        the new layout of the screen, which is most of the cost of showing other rows."""
        size = Size(max(1, self.size.width), self._line_of(len(self._keys)) + self._top)
        if size == self.virtual_size:
            return
        if self.styles.overflow_y != "scroll":
            self.virtual_size = size
            return
        self.set_reactive(Widget.virtual_size, size)
        self.vertical_scrollbar.window_virtual_size = max(size.height, self.size.height)
        if self.scroll_y > self.max_scroll_y:
            self.scroll_to(y=self.max_scroll_y, animate=False, force=True)

    def _bring_into_view(self) -> None:
        visible = max(1, self.size.height - self._top)
        top, first = round(self.scroll_y), self._line_of(self._cursor)
        last = first + min(visible - 1, len(self._below.get(self._cursor, ())))
        if first < top:
            self.scroll_to(y=first, animate=False, force=True)
        elif last >= top + visible:
            self.scroll_to(y=last - visible + 1, animate=False, force=True)

    # -- drawing ----------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        top = self._top
        if y < top:
            header = self.draw_header(width)
            return self._strip(header or Content(""), self.get_visual_style("row-list--header"), width)
        index, part = self._row_of(y - top + round(self.scroll_y))
        if not self._keys and self.empty_text:
            lines = Content.styled(safe(self.empty_text), "$text-muted").wrap(max(1, width - 2))
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

    # -- keys and mouse ---------------------------------------------------------------------------------------

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Hide the keys that act on rows while there are none."""
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
        index, _ = self._row_of(offset.y - self._top + round(self.scroll_y))
        return index if index < len(self._keys) else -1

    def on_click(self, event: events.Click) -> None:
        index = self._row_at(event)
        if index < 0:
            return
        self.move_to(index)
        if event.chain == 2:
            self.action_choose()
