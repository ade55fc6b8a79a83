"""The kernels of a program as a table: sorted, filtered, and grouped into sums when asked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from jaxprof.safe_text import columns, safe
from jaxprof.tui.programs.ranking import (
    BASES,
    GROUPINGS,
    SORTS,
    Group,
    Ranked,
    Ranking,
    filtered,
    grouped,
    ordered,
)
from jaxprof.tui.widgets.drawing import bar, cell
from jaxprof.tui.widgets.row_list import RowList
from jaxprof.units import UNKNOWN, bytes_, integer, percent, scaled, seconds

OPEN_UP_TO = 40
"""With more kernels than this, groups are closed at first."""
_BAR = 6
_NAME_AT_LEAST = 18
_NAME_AT_MOST = 48
_LOOKED_AT = 500
"""Kernels whose names and places tell how wide the columns are."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its width, what a kernel has there, and what a group has."""

    key: str
    width: int
    text: Callable[[Ranked], str]
    total: Callable[[Group], str] = lambda group: ""
    right: bool = True


def _sum(value: Callable[[Ranked], float | None], text: Callable[[float | None], str]) -> Callable[[Group], str]:
    return lambda group: text(group.total(value))


COLUMNS: tuple[Column, ...] = (
    Column("measured", 9, lambda row: seconds(row.measured_seconds), _sum(lambda row: row.measured_seconds, seconds)),
    Column("least", 9, lambda row: seconds(row.least_seconds), _sum(lambda row: row.least_seconds, seconds)),
    Column("name", 0, lambda row: row.kernel.name, right=False),
    Column("kind", 15, lambda row: row.kernel.kind, right=False),
    Column("times", 6, lambda row: times(row)),
    Column("flops", 8, lambda row: scaled(row.kernel.total_flops), _sum(lambda row: row.kernel.total_flops, scaled)),
    Column("bytes", 9, lambda row: bytes_(row.kernel.total_bytes), _sum(lambda row: row.kernel.total_bytes, bytes_)),
    Column("intensity", 7, lambda row: scaled(row.kernel.intensity)),
    Column("bound", 8, lambda row: (row.roof.bound if row.roof is not None else "") or UNKNOWN, right=False),
    Column("source", 20, lambda row: row.source or UNKNOWN, right=False),
)
"""In the order in which they stand."""
_FIRST = ("measured", "least", "source", "kind", "bytes", "bound", "flops", "times", "intensity")
"""In the order in which they find room."""


def times(row: Ranked) -> str:
    """How often a kernel runs: `12`, `≤ 12` in a branch, a dash where nobody knows."""
    count = row.kernel.count
    return UNKNOWN if count is None else f"≤ {integer(count)}" if row.kernel.conditional else integer(count)


@dataclass(frozen=True, slots=True)
class _Line:
    """A row of the table: a group or a kernel."""

    depth: int
    group: Group | None = None
    ranked: Ranked | None = None


class KernelTable(RowList):
    """One row a kernel, and one a group when they are grouped."""

    EMPTY = "No kernels here."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "enter", "Text", tooltip="To the kernel's text; on a group: open or close it",
                id="kernels.enter"),
        Binding("s", "sort", "Sort", tooltip="Sort by the next column", id="kernels.sort"),
        Binding("S", "turn", "Turn", show=False, tooltip="Sort the other way round", id="kernels.turn"),
        Binding("g", "group", "Group", tooltip="Group by kind, source line, named scope, direction, or not at all",
                id="kernels.group"),
        Binding("space,z", "open_group", "Open", show=False, tooltip="Open or close the group", id="kernels.open"),
        Binding("Z", "open_groups", "Open all", show=False, tooltip="Open or close all groups", id="kernels.open_all"),
    ]  # fmt: skip

    class Entered(Message):
        """A kernel's text is to be shown."""

        def __init__(self, table: KernelTable, ranked: Ranked) -> None:
            super().__init__()
            self.table = table
            self.ranked = ranked

        @property
        def control(self) -> KernelTable:
            return self.table

    class Arranged(Message):
        """The table is sorted, grouped or filtered in another way."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._ranking = Ranking()
        self._lines: dict[Hashable, _Line] = {}
        self._only = ""
        self._sort = "share"
        self._turned = False
        self._grouping = "none"
        self._shut: set[tuple[str, ...]] = set()
        self._groups: list[Group] = []
        self._shown = 0

    # -- what is shown ----------------------------------------------------------------------------------------

    def show_kernels(self, ranking: Ranking) -> None:
        """Shows the kernels of another program, or other figures of the same."""
        self._ranking = ranking
        self._arrange(fresh=True)

    def say(self, text: str) -> None:
        """What stands here as long as there are no kernels."""
        self.EMPTY = text  # type: ignore[misc]
        self.refresh()

    def set_filter(self, text: str) -> None:
        """Shows only what has these words."""
        if text != self._only:
            self._only = text
            self._arrange(fresh=False)

    @property
    def ranked(self) -> Ranked | None:
        """The kernel under the cursor; None on a group, or without kernels."""
        line = self._lines.get(self.current) if self.current is not None else None
        return line.ranked if line is not None else None

    @property
    def group(self) -> Group | None:
        """The group under the cursor; None on a kernel."""
        line = self._lines.get(self.current) if self.current is not None else None
        return line.group if line is not None else None

    @property
    def rows(self) -> list[Ranked]:
        """The kernels that are shown, in the order of the table, also those in closed groups."""
        if self._grouping != "none":
            return [row for group in self._groups for row in group.all]
        return [line.ranked for line in self._lines.values() if line.ranked is not None]

    @property
    def words(self) -> str:
        """What is shown, for a title: `42 kernels · 3 hidden · by share`."""
        total = len(self._ranking.kernels)
        parts = [f"{integer(total)} kernel{'s' if total != 1 else ''}"]
        if self._shown < total:
            parts.append(f"{integer(total - self._shown)} hidden")
        return " · ".join(parts)

    @property
    def arrangement(self) -> str:
        """How it is arranged, for a subtitle."""
        parts = [f"share of {BASES[self._ranking.basis]}"]
        if self._grouping != "none":
            parts.append(GROUPINGS[self._grouping])
        return " · ".join(parts)

    def select(self, key: tuple[str, str]) -> bool:
        """Puts the cursor on a kernel; False where it is not shown."""
        if key not in self._lines:
            return False
        self.move_to_key(key)
        return True

    def _arrange(self, *, fresh: bool) -> None:
        rows = ordered(filtered(self._ranking.kernels, self._only), self._sort, turned=self._turned)
        self._shown = len(rows)
        self._groups = grouped(rows, self._grouping) if self._grouping != "none" else []
        if fresh:
            self._shut = {group.path for group in _walk(self._groups)} if len(rows) > OPEN_UP_TO else set()
        self._fill(rows)
        self.post_message(self.Arranged())

    def _fill(self, rows: Sequence[Ranked]) -> None:
        lines: dict[Hashable, _Line] = {}
        if self._grouping == "none":
            lines = {row.key: _Line(0, ranked=row) for row in rows}
        else:
            for group in self._groups:
                self._add(lines, group, 0)
        self._lines = lines
        self.set_keys(list(lines))

    def _add(self, lines: dict[Hashable, _Line], group: Group, depth: int) -> None:
        lines["group", *group.path] = _Line(depth, group=group)
        if group.path in self._shut:
            return
        for inner in group.groups:
            self._add(lines, inner, depth + 1)
        for row in group.members:
            lines[row.key] = _Line(depth + 1, ranked=row)

    # -- drawing ----------------------------------------------------------------------------------------------

    def _columns(self, width: int) -> list[tuple[Column, int]]:
        """The columns that have room, with their widths; the name takes what is left."""
        have = {"least": self._ranking.device is not None, "bound": self._ranking.device is not None,
                "measured": self._ranking.basis == "measured"}  # fmt: skip
        left = width - (_BAR + 6) - _NAME_AT_LEAST - 2
        source = max((len(row.source) for row in self._ranking.kernels[:_LOOKED_AT]), default=0)
        widths = {"name": _NAME_AT_LEAST}
        for key in _FIRST:
            column = next(one for one in COLUMNS if one.key == key)
            wanted = max(8, min(column.width, source)) if key == "source" else column.width
            if have.get(key, True) and wanted + 1 <= left:
                widths[key] = wanted
                left -= wanted + 1
        more = max(0, min(left, self._longest - _NAME_AT_LEAST))
        widths["name"] += more
        if "source" in widths:
            widths["source"] += max(0, min(left - more, source - widths["source"]))
        return [(one, widths[one.key]) for one in COLUMNS if one.key in widths]

    @property
    def _longest(self) -> int:
        """Columns that the names want."""
        named = [len(row.kernel.name) for row in self._ranking.kernels[:_LOOKED_AT]]
        return min(_NAME_AT_MOST, max(named, default=_NAME_AT_LEAST) + (6 if self._grouping != "none" else 0))

    def draw_header(self, width: int) -> Content | None:
        parts: list[Content] = [Content(" "), self._title("share", _BAR + 5, right=False)]
        for column, size in self._columns(width):
            parts += [Content(" "), self._title(column.key, size, right=column.right)]
        return Content.assemble(*parts)

    def _title(self, key: str, width: int, *, right: bool) -> Content:
        title = SORTS[key][0]
        if key != self._sort:
            return cell(title, width, right=right)
        arrow = "▾" if SORTS[key][2] != self._turned else "▴"
        return cell(f"{title} {arrow}" if not right else f"{arrow} {title}", width, "bold $primary", right=right)

    def draw_row(self, index: int, width: int) -> Content:
        line = self._lines[self.keys[index]]
        if line.group is not None:
            return self._draw_group(line.group, line.depth, width)
        row = line.ranked
        assert row is not None
        parts = [Content(" "), _share(row.share)]
        for column, size in self._columns(width):
            indent = "  " * line.depth
            text = indent + middle(row.kernel.name, size - len(indent)) if column.key == "name" else column.text(row)
            style = _STYLES.get(column.key, "")
            if column.key == "bound" and text in _BOUNDS:
                style = _BOUNDS[text]
            parts += [Content(" "), cell(text, size, "$quiet" if text == UNKNOWN else style, right=column.right)]
        return Content.assemble(*parts)

    def _draw_group(self, group: Group, depth: int, width: int) -> Content:
        members = group.all
        mark = "▸" if group.path in self._shut else "▾"
        label = group.path[-1]
        if self._grouping == "source":
            label = label.rpartition("/")[2]
        parts = [Content(" "), _share(group.total(lambda row: row.share))]
        for column, size in self._columns(width):
            text, style = column.total(group), "$text-muted"
            if column.key == "name":
                text, style = f"{'  ' * depth}{mark} {label}", "bold"
            elif column.key == "kind":
                text = f"{len(members)} kernel{'s' if len(members) != 1 else ''}"
            parts += [Content(" "), cell(text, size, style, right=column.right)]
        return Content.assemble(*parts)

    # -- keys -------------------------------------------------------------------------------------------------

    def action_enter(self) -> None:
        """To the kernel's text; on a group, opens or closes it."""
        row = self.ranked
        if row is not None:
            self.post_message(self.Entered(self, row))
        else:
            self.action_open_group()

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        self.action_enter()

    def _sortable(self) -> list[str]:
        return ["share", *(column.key for column, _ in self._columns(max(1, self.size.width))), "order"]

    def action_sort(self) -> None:
        """By the next of the columns that are shown; behind them, by the order of execution."""
        shown = self._sortable()
        at = shown.index(self._sort) if self._sort in shown else -1
        self.sort_by(shown[(at + 1) % len(shown)])

    def sort_by(self, column: str) -> None:
        """Sorts by a column; by the same one again: the other way round."""
        self._turned = not self._turned if column == self._sort else False
        self._sort = column
        self._arrange(fresh=False)
        if column == "order":
            self.notify("In the order of execution.", title="Sorted", markup=False, timeout=2)

    def action_turn(self) -> None:
        """The other way round."""
        self.sort_by(self._sort)

    def action_group(self) -> None:
        """The next way of grouping."""
        ways = list(GROUPINGS)
        self.group_by(ways[(ways.index(self._grouping) + 1) % len(ways)])

    def group_by(self, grouping: str) -> None:
        """Groups by `kind`, `source`, `scope`, `direction`, or not at all (`none`)."""
        self._grouping = grouping
        self._arrange(fresh=True)

    def action_open_group(self) -> None:
        """Opens or closes the group under the cursor."""
        group = self.group
        if group is not None:
            self._shut ^= {group.path}
            self._arrange(fresh=False)

    def action_open_groups(self) -> None:
        """Opens all groups, or closes all when all are open."""
        self._shut = set() if self._shut else {group.path for group in _walk(self._groups)}
        self._arrange(fresh=False)

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
        for column, size in self._columns(max(1, self.size.width)):
            at += 1 + size
            if x < at:
                return column.key
        return ""


_STYLES = {
    "name": "bold", "kind": "$text-muted", "times": "$text-muted", "source": "$code-name", "least": "$text-muted",
}  # fmt: skip
_BOUNDS = {"memory": "$phase-transfer", "compute": "$phase-compile"}


def middle(name: str, width: int) -> str:
    """A name cut in its middle: what tells kernels apart stands at both ends (`multiply_subt…fusion.3`)."""
    shown = safe(name)
    if columns(shown) <= width or width < 8 or not shown.isascii():
        return shown
    tail = max(4, width * 2 // 5)
    return f"{shown[: width - tail - 1]}…{shown[-tail:]}"


def _share(share: float | None) -> Content:
    """A bar with its per cent, eleven columns wide."""
    text = percent(share, 2).replace(" ", "") if share is not None else UNKNOWN
    if share is not None and share < 0.01:
        text = "<1%" if share else "0%"
    elif share is not None:
        text = f"{share * 100:.0f}%"
    return Content.assemble(bar(share, _BAR), cell(text, 5, "" if share is not None else "$quiet", right=True))


def _walk(groups: Sequence[Group]) -> Iterator[Group]:
    for group in groups:
        yield group
        yield from _walk(group.groups)
