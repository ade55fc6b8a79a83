"""The kernels of a program as a table: the rows (filtered, sorted, grouped), how they are drawn, and their keys.

Reading the origins (source lines, named scopes) of a large program takes seconds: the thread that reads a program reads
them last. Until then, what a filter, an order or a grouping needs of them waits, and the rows stay as they were.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from textual import events
from textual.content import Content
from textual.message import Message

from jaxprof.analysis.ranking import (
    BASES,
    GROUPED_BY_ORIGINS,
    GROUPINGS,
    SORTED_BY_ORIGINS,
    KernelGroup,
    Ranked,
    Ranking,
    filtered,
    grouped,
    needs_origins,
    ordered,
)
from jaxprof.hlo.analysis.origin_columns import OriginColumns
from jaxprof.report.kernels import COLUMNS, total_text
from jaxprof.tui.kit.drawing import Cut, bar, cell
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import Cell, Placed, TableColumn, header_line, placed, row_line
from jaxprof.units import UNKNOWN, counted, integer, seconds

OPEN_UP_TO = 40
"""With more kernels than this, groups are closed at first."""
DEEPEST = 100
"""Depth from which nested scopes are no longer indented further."""


class Arrangement(NamedTuple):
    """How rows are sorted and grouped."""

    sort: str = "share"
    turned: bool = False
    grouping: str = "none"


class KernelRows:
    """The rows of the table, without a widget: kernels by their number, groups by their path."""

    def __init__(self) -> None:
        self.ranking = Ranking()
        self.keys: Sequence[Hashable] = ()
        """Numbers of kernels and paths of groups, in the order of the table."""
        self.groups: dict[tuple[str, ...], KernelGroup] = {}
        self.wanted = Arrangement()
        """The arrangement that the user chose last."""
        self.arrangement = Arrangement()
        """The arrangement of the rows: the wanted one, once the origins that it needs are known."""
        self.waits = False
        """Whether the rows wait for origins that are not read yet."""
        self.changes = 0
        """Number of times that the rows were arranged; it changes whenever the rows change."""
        self._filter = ""
        self._filtered: Sequence[int] = ()
        """The kernels that the filter leaves, sorted."""
        self._closed: set[tuple[str, ...]] = set()
        self._depths = bytearray()
        """Indentation of each row; empty unless the rows are grouped."""

    @property
    def hidden(self) -> int:
        """How many kernels the filter hides."""
        return len(self.ranking) - len(self._filtered)

    @property
    def numbers(self) -> Sequence[int]:
        """The kernels that the filter leaves, in the order of the table, also those in closed groups."""
        if self.arrangement.grouping == "none":
            return self._filtered
        numbers = array("l")
        for group in self.groups.values():
            numbers += group.members
        return numbers

    def depth(self, index: int) -> int:
        """Return how far a row is indented."""
        return self._depths[index] if self._depths else 0

    def is_closed(self, group: KernelGroup) -> bool:
        """Return whether the kernels of a group are out of view."""
        return group.path in self._closed

    # -- what changes them ------------------------------------------------------------------------------------

    def show(self, ranking: Ranking) -> None:
        """Take the kernels of another program, or other figures of the same."""
        ranking.know_from(self.ranking)
        self.ranking = ranking
        self._arrange(fresh=True)

    def set_filter(self, text: str) -> bool:
        """Leave only kernels with these words; return False if they were set already."""
        if text == self._filter:
            return False
        self._filter = text
        self._arrange(fresh=False)
        return True

    def sort_by(self, column: str) -> None:
        """Sort by a column; if the table is sorted by it already, reverse the order."""
        turned = not self.wanted.turned if column == self.wanted.sort else False
        self.wanted = self.wanted._replace(sort=column, turned=turned)
        self._arrange(fresh=False)

    def group_by(self, grouping: str) -> None:
        """Group by one of `GROUPINGS`."""
        self.wanted = self.wanted._replace(grouping=grouping)
        self._arrange(fresh=True)

    def turn_group(self, group: KernelGroup) -> None:
        """Open or close a group."""
        self._closed ^= {group.path}
        self._arrange(fresh=False)

    def turn_groups(self) -> None:
        """Open all groups, or close all if all are open."""
        self._closed = set() if self._closed else set(self.groups)
        self._arrange(fresh=False)

    def take_origins(self, origins: OriginColumns) -> bool:
        """Take the origins of all kernels; return whether rows waited for them, which are now arranged as the user
        wanted."""
        self.ranking.know_origins(origins)
        waited = self.waits
        if waited:
            self._arrange(fresh=self.wanted.grouping != self.arrangement.grouping)
        return waited

    # -- how they are arranged --------------------------------------------------------------------------------

    def _arrange(self, *, fresh: bool) -> None:
        """Filter, sort and group the rows; `fresh` forgets which groups are open."""
        knows = self._knows_what_is_needed()
        self.arrangement = self.wanted if knows else _without_origins(self.wanted, self.arrangement)
        sort, turned, grouping = self.arrangement
        left = filtered(self.ranking, self._filter, by_origins=knows or not needs_origins(self._filter))
        self._filtered = ordered(self.ranking, left, sort, turned=turned)
        outermost = grouped(self.ranking, self._filtered, grouping) if grouping != "none" else []
        self.groups = {group.path: group for group in _walk(outermost)}
        if fresh:
            self._closed = set(self.groups) if len(self._filtered) > OPEN_UP_TO else set()
        self._fill(outermost)
        self.changes += 1

    def _knows_what_is_needed(self) -> bool:
        """Return whether everything is known that the filter, the order and the groups need."""
        sort, _, grouping = self.wanted
        needed = sort in SORTED_BY_ORIGINS or grouping in GROUPED_BY_ORIGINS or needs_origins(self._filter)
        self.waits = needed and not self.ranking.knows_origins
        return not self.waits

    def _fill(self, outermost: Sequence[KernelGroup]) -> None:
        self._depths = bytearray()
        if self.arrangement.grouping == "none":
            self.keys = self._filtered
            return
        keys: list[Hashable] = []
        for group in outermost:
            self._add(keys, group)
        self.keys = keys

    def _add(self, keys: list[Hashable], group: KernelGroup) -> None:
        keys.append(group.path)
        self._depths.append(min(len(group.path) - 1, DEEPEST))
        if group.path in self._closed:
            return
        for inner in group.groups:
            self._add(keys, inner)
        keys.extend(group.members)
        self._depths += bytes([min(len(group.path), DEEPEST)]) * len(group.members)


def _without_origins(wanted: Arrangement, now: Arrangement) -> Arrangement:
    """Return the wanted arrangement without the parts that need origins; these stay as they are now."""
    if now.sort in SORTED_BY_ORIGINS:  # left from a program with known origins
        now = now._replace(sort=Arrangement().sort, turned=False)
    if now.grouping in GROUPED_BY_ORIGINS:
        now = now._replace(grouping=Arrangement().grouping)
    sort, turned = (now if wanted.sort in SORTED_BY_ORIGINS else wanted)[:2]
    return Arrangement(sort, turned, (now if wanted.grouping in GROUPED_BY_ORIGINS else wanted).grouping)


def _walk(groups: Sequence[KernelGroup]) -> Iterator[KernelGroup]:
    for group in groups:
        yield group
        yield from _walk(group.groups)


_BAR = 6
_WIDTHS = {
    "measured": 9, "least": 9, "name": 18, "kind": 8, "times": 6, "flops": 8, "bytes": 9, "intensity": 7, "bound": 8,
    "source": 8,
}  # fmt: skip
"""The columns from left to right, with their least widths."""
_PRIORITIES = ("measured", "least", "source", "kind", "bytes", "times", "bound", "flops", "intensity")
"""The columns in the order in which they appear as the terminal gets wider."""
_STYLES = {
    "name": "bold", "kind": "$text-muted", "times": "$text-muted", "source": "$code-name", "least": "$text-muted",
}  # fmt: skip
_CUTS: dict[str, Cut] = {"name": "middle", "source": "start"}
_MEASURED_NAMES = 500
"""Kernels whose names are measured for the width of their column."""
_NAME_AT_MOST = 48
_BOUNDS = {"memory": "$phase-transfer", "compute": "$phase-compile"}


class KernelTable(RowList, keys="kernels"):
    """One row per kernel, and one per group if kernels are grouped."""

    EMPTY = "No kernels here."

    @dataclass
    class PointRequested(Message):
        """Requests the kernel of the next point of the roofline, to the right or left."""

        step: int

    class Arranged(Message):
        """Posted when the table is sorted, grouped or filtered differently."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.rows = KernelRows()
        self._empty_text = self.EMPTY
        self._layout: tuple[object, dict[str, Placed[int]]] = (None, {})
        self.noun = "kernel"
        """What a row is called in the title: before XLA's passes, a module has operations."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the keys while there are no kernels."""
        if action in ("choose", "sort", "turn", "group", "open_group", "open_groups", "point"):
            return self.count > 0
        return super().check_action(action, parameters)

    # -- what is shown ----------------------------------------------------------------------------------------

    def show_kernels(self, ranking: Ranking) -> None:
        """Show the kernels of another program, or other figures of the same."""
        self.rows.show(ranking)
        self._show_rows()

    @property
    def empty_text(self) -> str:
        return "Reading where the kernels came from…" if self.rows.waits else self._empty_text

    def set_empty_text(self, text: str) -> None:
        """Set the text that is shown while there are no kernels."""
        self._empty_text = text
        self.refresh()

    def set_filter(self, text: str) -> None:
        """Show only rows with these words."""
        if self.rows.set_filter(text):
            self._show_rows()

    def _show_rows(self) -> None:
        self.set_keys(self.rows.keys)
        self.post_message(self.Arranged())

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
        """For the subtitle: the basis of the shares, whether origins are still being read, and the grouping."""
        parts = [f"share of {BASES[self.rows.ranking.basis]}"]
        if self.rows.waits:
            parts.insert(0, "reading origins…")
        step = self.rows.ranking.step
        if step is not None and step.bound_seconds is not None:
            parts.append(f"a run at least {seconds(step.bound_seconds)}")
            if step.estimate_seconds != step.bound_seconds:
                parts.append(f"estimate {seconds(step.estimate_seconds)}")
        if self.rows.arrangement.grouping != "none":
            parts.append(GROUPINGS[self.rows.arrangement.grouping])
        return " · ".join(parts)

    def select(self, number: int) -> bool:
        """Move the cursor to a kernel; return False if it is not shown."""
        if not self.shows(number):
            return False
        self.move_to_key(number)
        return True

    def take_origins(self, origins: OriginColumns) -> None:
        """Arrange the rows as the user wanted, now that the origins are known."""
        if self.rows.take_origins(origins):
            self._show_rows()

    # -- drawing ----------------------------------------------------------------------------------------------

    def _placed(self, width: int) -> dict[str, Placed[int]]:
        """Return the columns that fit, by their names."""
        ranking, grouping = self.rows.ranking, self.rows.arrangement.grouping
        key = (width, id(ranking), len(ranking), grouping)
        if self._layout[0] != key:
            have = {"least": ranking.device is not None, "bound": ranking.device is not None,
                    "measured": ranking.basis == "measured"}  # fmt: skip
            every = {"share": TableColumn("share", self._share, _BAR + 5)}
            every |= {name: self._column(name) for name in _WIDTHS if have.get(name, True)}
            layout = placed(list(every.values()), width - 1, range(self.count))
            names = {id(column): name for name, column in every.items()}
            self._layout = key, {names[id(place.column)]: place for place in layout}
        return self._layout[1]

    def _column(self, name: str) -> TableColumn[int]:
        width, shown = _WIDTHS[name], COLUMNS[name]
        most = {"source": 26, "kind": 16}.get(name, width)
        if name == "name":
            sample = self.rows.ranking.rows(range(min(_MEASURED_NAMES, len(self.rows.ranking))))
            indent = 6 if self.rows.arrangement.grouping != "none" else 0
            most = min(_NAME_AT_MOST, indent + max((len(row.kernel.name) for row in sample), default=width))
        return TableColumn(
            shown.title or "", lambda index: self._cell(name, index), width, weight=int(name == "name"),
            fits=name in ("source", "kind"), most=most, right=shown.is_right, cut=_CUTS.get(name, "end"),
            priority=_PRIORITIES.index(name) + 1 if name in _PRIORITIES else 0,
        )  # fmt: skip

    def _share(self, index: int) -> Content:
        """Return a bar with its per cent, eleven columns wide."""
        key = self.key_at(index)
        share = self.rows.groups[key].share if isinstance(key, tuple) else self.rows.ranking[cast(int, key)].share
        text = UNKNOWN if share is None else "<1%" if 0 < share < 0.01 else f"{share * 100:.0f}%"
        return Content.assemble(bar(share, _BAR), cell(text, 5, "" if share is not None else "$quiet", right=True))

    def _cell(self, name: str, index: int) -> Cell:
        key = self.key_at(index)
        if isinstance(key, tuple):
            return self._group_cell(name, self.rows.groups[key])
        row = self.rows.ranking[cast(int, key)]
        text = COLUMNS[name].text(row)
        if name == "name":
            return "  " * self.rows.depth(index) + text, "bold"
        style = "$quiet" if text == UNKNOWN else _STYLES.get(name, "")
        return text, _BOUNDS.get(text, style) if name == "bound" else style

    def _group_cell(self, name: str, group: KernelGroup) -> Cell:
        if name == "name":
            label = group.path[-1].rpartition("/")[2] if self.rows.arrangement.grouping == "source" else group.path[-1]
            mark = "▸" if self.rows.is_closed(group) else "▾"
            return f"{'  ' * min(len(group.path) - 1, DEEPEST)}{mark} {label}", "bold"
        return counted(group.count, "kernel") if name == "kind" else total_text(name, group), "$text-muted"

    def draw_header(self, width: int) -> Content | None:
        layout, arranged = self._placed(width), self.rows.arrangement
        place = layout.get(arranged.sort)
        backwards = COLUMNS[arranged.sort].is_right == arranged.turned
        return header_line(list(layout.values()), place.column if place is not None else None, backwards=backwards)

    def draw_row(self, index: int, width: int) -> Content:
        return row_line(index, list(self._placed(width).values()), width)

    # -- keys -------------------------------------------------------------------------------------------------

    def action_sort(self) -> None:
        sortable = [*self._placed(self.scrollable_content_region.width), "order"]
        sort = self.rows.wanted.sort
        at = sortable.index(sort) if sort in sortable else -1
        self.sort_by(sortable[(at + 1) % len(sortable)])

    def sort_by(self, column: str) -> None:
        """Sort by a column; if the table is sorted by it already, reverse the order."""
        self.rows.sort_by(column)
        self._show_rows()
        if column == "order":
            self.say("In the order of execution.", "Sorted", timeout=2)

    def action_turn(self) -> None:
        self.sort_by(self.rows.wanted.sort)

    def action_group(self) -> None:
        groupings = list(GROUPINGS)
        self.group_by(groupings[(groupings.index(self.rows.wanted.grouping) + 1) % len(groupings)])

    def group_by(self, grouping: str) -> None:
        """Group by `kind`, `source`, `scope`, `direction`, or not at all (`none`)."""
        self.rows.group_by(grouping)
        self._show_rows()

    def action_open_group(self) -> None:
        group = self.group
        if group is not None:
            self.rows.turn_group(group)
            self._show_rows()

    def action_point(self, step: int) -> None:
        self.post_message(self.PointRequested(step))

    def action_open_groups(self) -> None:
        self.rows.turn_groups()
        self._show_rows()

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and offset.y == 0:
            event.prevent_default()  # else `RowList` handles the click
            for key, place in self._placed(self.scrollable_content_region.width).items():
                if place.left <= offset.x <= place.left + place.width:
                    self.sort_by(key)
