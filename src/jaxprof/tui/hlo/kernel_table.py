"""The kernels of a program as a table: how rows are drawn, and the keys that sort, group and open them."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message

from jaxprof.analysis.arrangement import GROUPINGS, KernelGroup
from jaxprof.analysis.ranking import BASES, Ranked, Ranking
from jaxprof.report.kernels import COLUMNS, total_text
from jaxprof.text import shorten_middle
from jaxprof.tui.hlo.kernel_rows import DEEPEST, KernelRows, OriginsFailed, OriginsRead
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.drawing import bar, cell, place_cell
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.messages import Failed
from jaxprof.units import UNKNOWN, counted, integer, percent, seconds

_BAR = 6
_NAME_AT_LEAST = 18
_NAME_AT_MOST = 48
_MEASURED = 500
"""Kernels whose names and places are measured for the widths of their columns."""
_WIDTHS = {
    "measured": 9, "least": 9, "name": 0, "kind": 16, "times": 6, "flops": 8, "bytes": 9, "intensity": 7, "bound": 8,
    "source": 26,
}  # fmt: skip
"""The columns from left to right, with their widths, a place with its widest; the name takes what is left."""
_FIRST = ("measured", "least", "source", "kind", "bytes", "bound", "flops", "times", "intensity")
"""The columns in the order in which they appear as the terminal gets wider."""


class KernelTable(RowList):
    """One row per kernel, and one per group if they are grouped."""

    EMPTY = "No kernels here."
    BINDINGS: ClassVar[list[BindingType]] = bindings("kernels")

    class Entered(Message):
        """Requests the text of a kernel."""

        def __init__(self, ranked: Ranked) -> None:
            super().__init__()
            self.ranked = ranked

    class PointRequested(Message):
        """Requests the kernel of the next point of the roofline, to the right or to the left."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    class Arranged(Message):
        """The table is sorted, grouped or filtered differently."""

    class Progressed(Message):
        """More of the origins have been read that the rows wait for."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.rows = KernelRows(self.post_message)
        self._empty_text = self.EMPTY
        self._measured_for: Ranking | None = None
        self._widest = (0, 0)
        self.noun = "kernel"
        """What a row is called: before XLA's passes a module has operations."""

    # -- what is shown ----------------------------------------------------------------------------------------

    def show_kernels(self, ranking: Ranking) -> None:
        """Shows the kernels of another program, or other figures of the same."""
        self.rows.show(ranking)
        self._show_rows()

    def set_empty_text(self, text: str) -> None:
        """Sets the text that is shown while there are no kernels."""
        self._empty_text = text
        self._show_empty_text()

    def set_filter(self, text: str) -> None:
        """Shows only rows with these words."""
        if self.rows.set_filter(text):
            self._show_rows()

    def _show_rows(self) -> None:
        self._show_empty_text()
        self.set_keys(self.rows.keys)
        self.post_message(self.Arranged())

    def _show_empty_text(self) -> None:
        waits = self.rows.share_read is not None
        self.EMPTY = "Reading where the kernels came from…" if waits else self._empty_text  # type: ignore[misc]
        self.refresh()

    @property
    def ranked(self) -> Ranked | None:
        """The kernel under the cursor; None on a group, or without kernels."""
        return self.rows.ranking[self.current] if isinstance(self.current, int) else None

    @property
    def group(self) -> KernelGroup | None:
        """The group under the cursor; None on a kernel."""
        return self.rows.groups[self.current] if isinstance(self.current, tuple) else None

    @property
    def words(self) -> str:
        """The number of rows, for a title: `42 kernels · 3 hidden`."""
        total, hidden = len(self.rows.ranking), self.rows.hidden
        parts = [f"{integer(total)} {self.noun}{'s' if total != 1 else ''}"]
        if hidden:
            parts.append(f"{integer(hidden)} hidden")
        return " · ".join(parts)

    @property
    def arrangement(self) -> str:
        """What shares are of, what the rows wait for, and how they are grouped, for a subtitle."""
        parts = [f"share of {BASES[self.rows.ranking.basis]}"]
        if self.rows.share_read is not None:
            parts.insert(0, f"reading origins: {percent(self.rows.share_read)}")
        step = self.rows.ranking.step
        if step is not None and step.bound_seconds is not None:
            parts.append(f"a run at least {seconds(step.bound_seconds)}")
            if step.estimate_seconds != step.bound_seconds:
                parts.append(f"estimate {seconds(step.estimate_seconds)}")
        if self.rows.arrangement.grouping != "none":
            parts.append(GROUPINGS[self.rows.arrangement.grouping])
        return " · ".join(parts)

    def select(self, number: int) -> bool:
        """Moves the cursor to a kernel; False if it is not shown."""
        if not self.shows(number):
            return False
        self.move_to_key(number)
        return True

    # -- the origins that a thread reads ----------------------------------------------------------------------

    def on_origins_read(self, message: OriginsRead) -> None:
        """Arranges the rows as the user wanted once the origins are known."""
        if self.rows.take_origins(message):
            self._show_rows()
        else:
            self.post_message(self.Progressed())

    def on_origins_failed(self, message: OriginsFailed) -> None:
        if self.rows.do_without_origins(message):
            self._show_rows()
            self.post_message(Failed(message.error))

    def on_unmount(self) -> None:
        self.rows.stop()

    # -- drawing ----------------------------------------------------------------------------------------------

    def _columns(self, width: int) -> list[tuple[str, int]]:
        """The columns that fit, with their widths."""
        have = {"least": self.rows.ranking.device is not None, "bound": self.rows.ranking.device is not None,
                "measured": self.rows.ranking.basis == "measured"}  # fmt: skip
        left = width - (_BAR + 6) - _NAME_AT_LEAST - 2
        source, longest = self._longest
        widths = {"name": _NAME_AT_LEAST}
        for key in _FIRST:
            wanted = max(8, min(_WIDTHS[key], source)) if key == "source" else _WIDTHS[key]
            if have.get(key, True) and wanted + 1 <= left:
                widths[key] = wanted
                left -= wanted + 1
        more = max(0, min(left, longest - _NAME_AT_LEAST))
        widths["name"] += more
        if "source" in widths:
            widths["source"] += max(0, min(left - more, source - widths["source"]))
        return [(key, widths[key]) for key in _WIDTHS if key in widths]

    @property
    def _longest(self) -> tuple[int, int]:
        """Terminal columns for the longest place, and for the longest name."""
        if self._measured_for is not self.rows.ranking:
            self._measured_for = self.rows.ranking
            rows = list(self.rows.ranking.rows(range(min(_MEASURED, len(self.rows.ranking)))))
            self._widest = (
                max((len(row.source) for row in rows), default=0),
                max((len(row.kernel.name) for row in rows), default=_NAME_AT_LEAST),
            )
        source, name = self._widest
        return source, min(_NAME_AT_MOST, name + (6 if self.rows.arrangement.grouping != "none" else 0))

    def draw_header(self, width: int) -> Content | None:
        parts: list[Content] = [Content(" "), self._title("share", _BAR + 5, right=False)]
        for key, size in self._columns(width):
            parts += [Content(" "), self._title(key, size, right=COLUMNS[key].is_right)]
        return Content.assemble(*parts)

    def _title(self, key: str, width: int, *, right: bool) -> Content:
        title = COLUMNS[key].title or ""
        if key != self.rows.arrangement.sort:
            return cell(title, width, right=right)
        arrow = "▾" if COLUMNS[key].is_right != self.rows.arrangement.turned else "▴"
        return cell(f"{title} {arrow}" if not right else f"{arrow} {title}", width, "bold $primary", right=right)

    def draw_row(self, index: int, width: int) -> Content:
        key = self.key_at(index)
        if isinstance(key, tuple):
            return self._draw_group(self.rows.groups[key], width)
        assert isinstance(key, int)
        row = self.rows.ranking[key]
        depth = self.rows.depth(index)
        parts = [Content(" "), _share(row.share)]
        for name, size in self._columns(width):
            column = COLUMNS[name]
            indent = "  " * depth
            text = indent + shorten_middle(row.kernel.name, size - len(indent)) if name == "name" else column.text(row)
            style = _STYLES.get(name, "")
            if name == "bound" and text in _BOUNDS:
                style = _BOUNDS[text]
            style = "$quiet" if text == UNKNOWN else style
            drawn = place_cell(text, size, style) if name == "source" else None
            parts += [Content(" "), drawn or cell(text, size, style, right=column.is_right)]
        return Content.assemble(*parts)

    def _draw_group(self, group: KernelGroup, width: int) -> Content:
        count = group.count
        mark = "▸" if self.rows.is_closed(group) else "▾"
        label = group.path[-1]
        if self.rows.arrangement.grouping == "source":
            label = label.rpartition("/")[2]
        parts = [Content(" "), _share(group.share)]
        for key, size in self._columns(width):
            text, style = total_text(key, group), "$text-muted"
            if key == "name":
                text, style = f"{'  ' * min(len(group.path) - 1, DEEPEST)}{mark} {label}", "bold"
            elif key == "kind":
                text = counted(count, "kernel")
            parts += [Content(" "), cell(text, size, style, right=COLUMNS[key].is_right)]
        return Content.assemble(*parts)

    # -- keys -------------------------------------------------------------------------------------------------

    def action_enter(self) -> None:
        """Goes to the kernel's text; on a group, opens or closes it."""
        row = self.ranked
        if row is not None:
            self.post_message(self.Entered(row))
        else:
            self.action_open_group()

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        self.action_enter()

    def action_sort(self) -> None:
        """Sorts by the next column that is shown; after the last, by the order of execution."""
        sortable = ["share", *(key for key, _ in self._columns(max(1, self.size.width))), "order"]
        sort = self.rows.wanted.sort
        at = sortable.index(sort) if sort in sortable else -1
        self.sort_by(sortable[(at + 1) % len(sortable)])

    def sort_by(self, column: str) -> None:
        """Sorts by a column; by the same one again, the other way round."""
        self.rows.sort_by(column)
        self._show_rows()
        if column == "order":
            self.notify("In the order of execution.", title="Sorted", markup=False, timeout=2)

    def action_turn(self) -> None:
        """Reverses the order."""
        self.sort_by(self.rows.wanted.sort)

    def action_group(self) -> None:
        """Groups in the next way."""
        groupings = list(GROUPINGS)
        self.group_by(groupings[(groupings.index(self.rows.wanted.grouping) + 1) % len(groupings)])

    def group_by(self, grouping: str) -> None:
        """Groups by `kind`, `source`, `scope`, `direction`, or not at all (`none`)."""
        self.rows.group_by(grouping)
        self._show_rows()

    def action_open_group(self) -> None:
        """Opens or closes the group under the cursor."""
        group = self.group
        if group is not None:
            self.rows.turn_group(group)
            self._show_rows()

    def action_point(self, step: int) -> None:
        """Goes to the next point of the roofline."""
        self.post_message(self.PointRequested(step))

    def action_open_groups(self) -> None:
        """Opens all groups, or closes all if all are open."""
        self.rows.turn_groups()
        self._show_rows()

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and offset.y == 0:
            event.prevent_default()  # the row's own handling of a click
            key = self._column_at(offset.x)
            if key:
                self.sort_by(key)

    def _column_at(self, x: int) -> str:
        at = 1 + _BAR + 5
        if x < at:
            return "share"
        for key, size in self._columns(max(1, self.size.width)):
            at += 1 + size
            if x < at:
                return key
        return ""


_STYLES = {
    "name": "bold", "kind": "$text-muted", "times": "$text-muted", "source": "$code-name", "least": "$text-muted",
}  # fmt: skip
_BOUNDS = {"memory": "$phase-transfer", "compute": "$phase-compile"}


def _share(share: float | None) -> Content:
    """A bar with its per cent, eleven columns wide."""
    text = percent(share, 2).replace(" ", "") if share is not None else UNKNOWN
    if share is not None and share < 0.01:
        text = "<1%" if share else "0%"
    elif share is not None:
        text = f"{share * 100:.0f}%"
    return Content.assemble(bar(share, _BAR), cell(text, 5, "" if share is not None else "$quiet", right=True))
