"""The kernels of a program as a table: the rows (filtered, sorted, grouped), how they are drawn, and their keys.

Reading the origins (source lines, named scopes) of a large program takes seconds: the thread that reads a program reads
them last. A filter, an order or a grouping that needs them waits until then. The rows of a large program are arranged
in a thread, too, one arrangement at a time; the ones before stay until then.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from textual.content import Content

from jaxprof.analysis.kernels.ranking import (
    BASES,
    FEW,
    GROUPINGS,
    KernelGroup,
    Ranked,
    Ranking,
    filter_kernels,
    group_kernels,
    needs_origins,
    sort_kernels,
)
from jaxprof.base.units import UNKNOWN, counted, integer, seconds
from jaxprof.hlo.kernels.origin import OriginColumns
from jaxprof.report.kernels import COLUMNS, SUMMED, total_text
from jaxprof.tui.kit.drawing import bar, bar_with_names, cell
from jaxprof.tui.kit.guard import in_thread
from jaxprof.tui.kit.row_list import Heading, TreeView
from jaxprof.tui.kit.table_columns import Cell, TableColumn

OPEN_UP_TO = 40
"""Largest number of kernels whose groups are open at first."""


class Arrangement(NamedTuple):
    sort: str = "share"
    turned: bool = False
    grouping: str = "none"


class Arranged(NamedTuple):
    """The rows as they were wanted."""

    asked: tuple[Ranking, str, Arrangement]
    """The kernels, the filter, and how the rows were to be arranged."""
    arrangement: Arrangement
    """How they are: as wanted, once the origins that this needs are known."""
    waits: bool
    """Whether the rows wait for origins that are not read yet."""
    filtered: Sequence[int] = ()
    outermost: Sequence[KernelGroup] = ()
    largest: float = 1.0
    """Largest share of a row."""
    unknown: frozenset[str] = frozenset()
    """Columns that have no value."""


def arrange(ranking: Ranking, text: str, wanted: Arrangement) -> Arranged:
    """Filter, sort and group the rows, and sum what their groups show."""
    waits = needs_origins(text, wanted.sort, wanted.grouping) and not ranking.knows_origins
    arrangement = Arrangement() if waits else wanted
    if not ranking.is_whole:
        arrangement = Arrangement("order")
    sort, turned, grouping = arrangement
    filtered = sort_kernels(ranking, filter_kernels(ranking, text, by_origins=not waits), sort, turned=turned)
    outermost = group_kernels(ranking, filtered, grouping) if grouping != "none" else []
    unknown = {"least", "bound"} if ranking.device is None else set()
    unknown |= {"measured", "flops_per_second", "bytes_per_second"} if ranking.basis != "measured" else set()
    for group in outermost:
        for name in SUMMED - unknown:
            group.total(name)
    weights = ranking.column("weight")
    heaviest = max((weights[row] for row in filtered if not math.isnan(weights[row])), default=None)
    shares = [group.share for group in outermost] or [ranking.share_of(heaviest)]
    largest = max(filter(None, shares), default=1.0)
    asked = ranking, text, wanted
    return Arranged(asked, arrangement, waits, filtered, outermost, largest, frozenset(unknown))


def _walk(groups: Sequence[KernelGroup]) -> Iterator[KernelGroup]:
    for group in groups:
        yield group
        yield from _walk(group.groups)


_BAR = 6
_LAYOUT: dict[str, dict[str, Any]] = {
    "measured": {"width": 9, "priority": 1},
    "flops_per_second": {"width": 8, "priority": 4},
    "bytes_per_second": {"width": 8, "priority": 4},
    "least": {"width": 9, "priority": 2, "style": "$text-muted"},
    "label": {"width": 18, "weight": 1, "wanted": 30, "style": "bold", "cut": "middle"},
    "kind": {"width": 8, "most": 16, "fits": True, "priority": 6, "style": "$text-muted"},
    "times": {"width": 6, "priority": 8, "style": "$text-muted"},
    "flops": {"width": 8, "priority": 10},
    "bytes": {"width": 9, "priority": 7},
    "intensity": {"width": 7, "priority": 11},
    "bound": {"width": 8, "priority": 5},
    "name": {"width": 18, "most": 40, "fits": True, "priority": 9, "style": "$text-muted"},
    "source": {"width": 8, "most": 26, "fits": True, "priority": 3, "style": "$code-name"},
}
"""The columns from left to right. By their priorities they appear as the terminal gets wider."""
_MEASURED_NAMES = 500
"""Kernels whose names are measured for the width of their column."""
_NAME_AT_MOST = 48
_BOUNDS = {"memory": "$phase-transfer", "compute": "$phase-compile"}


KINDS = ("$phase-run", "$phase-compile", "$phase-lower", "$phase-transfer", "$phase-first", "$phase-trace")


def label_of(row: Ranked) -> str:
    """Return a kernel by its layer and operation; by XLA's name, where the module does not say them."""
    return row.kernel.path.label or row.kernel.name


class KernelTable(TreeView[Hashable], keys="kernels"):
    """One row per kernel, and one per group if kernels are grouped. A row is its key: a number or a path."""

    UNSORTED = "in the order of execution"

    def __init__(self) -> None:
        super().__init__((), id="kernels")
        self.noun = "kernel"
        """What a row is called in the title: before XLA's passes, a module has operations."""
        self.ranking = Ranking()
        self.wanted = Arrangement()
        self.arranged = Arranged((self.ranking, "", self.wanted), self.wanted, waits=False)
        self._filter = ""
        self._arranging = self._fresh = self._to_top = False
        self._selected: int | None = None
        """The kernel to move to once the rows are arranged."""
        self._groups: dict[Hashable, KernelGroup] = {}

    # -- what is shown ----------------------------------------------------------------------------------------

    def row_of(self, key: Hashable) -> Hashable:
        return key

    def inside(self, key: Hashable, row: Hashable) -> Mapping[Hashable, Hashable]:
        group = self._groups.get(key)
        return {} if group is None else {key: key for key in (*(each.path for each in group.groups), *group.members)}

    def can_open(self, key: Hashable | None) -> bool:
        return key in self._groups

    def rows_left_by_filter(self) -> dict[Hashable, Hashable | Heading]:
        return {group.path: group.path for group in self._groups.values() if len(group.path) == 1}

    def rearrange(self) -> None:
        """Show the kernels, which are not copied, or the groups with what is inside the open ones."""
        self._around = {}
        shown = [key for key, _ in self._with_opened(self.rows_left_by_filter())]
        self.set_keys(shown if self._groups else self.filtered)

    @property
    def filtered(self) -> Sequence[int]:
        return self.arranged.filtered

    def show_kernels(self, ranking: Ranking, empty: str) -> None:
        """Show the kernels of another program, or other figures of the same; `empty` is shown if there are none."""
        # The first kernel that was read is rarely the first by share.
        self._to_top |= not self.ranking.is_whole and self._cursor == 0
        self.empty = empty
        self.ranking = ranking
        self._arrange(fresh=True)

    def take_origins(self, origins: OriginColumns) -> None:
        """Arrange the rows as the user wanted, now that the origins are known."""
        self.ranking.know_origins(origins)
        if self.arranged.waits:
            self._arrange(fresh=True)

    def set_filter(self, text: str) -> None:
        if text != self._filter:
            self._filter = text
            self._arrange()

    def _arrange(self, *, fresh: bool = False) -> None:
        """Arrange the rows as they are wanted now; `fresh`: open the groups if there is room, else none."""
        self._fresh |= fresh
        work = partial(arrange, self.ranking, self._filter, self.wanted)
        if len(self.ranking) <= FEW:
            self._take(work())
        elif not self._arranging:
            self._arranging = True
            in_thread(self, work, "arrange", then=self._take)
            self.post_message(self.Sorted())

    def _take(self, arranged: Arranged) -> None:
        self._arranging = False
        outdated = arranged.asked != (self.ranking, self._filter, self.wanted)
        if outdated or (arranged.waits and self.ranking.knows_origins):
            self._arrange()
            return
        self.arranged = arranged
        self._groups = {group.path: group for group in _walk(arranged.outermost)}
        if self._fresh:
            self.opened = set(self._groups) if len(self.filtered) <= OPEN_UP_TO else set()
            self.opened_at_first = frozenset(self.opened)
        # A column with a `sort` can be clicked; the rows themselves are sorted above.
        named = {"share": TableColumn("share", self._share, _BAR + 5, sort=hash)}
        named |= {name: self._column(name) for name in _LAYOUT if name not in arranged.unknown}
        self._columns, self._order = tuple(named.values()), named.get(self.wanted.sort)
        self.backwards = COLUMNS[self.wanted.sort].is_right == self.wanted.turned
        self._names = {id(column): name for name, column in named.items()}
        self.rearrange()
        if self._to_top:
            self.move_to(0)
        if self._selected is not None:
            self.move_to_key(self._selected)
        self._fresh, self._to_top, self._selected = False, False, None
        self.post_message(self.Sorted())

    def kinds(self, width: int) -> list[Content]:
        """Return a strip of the kinds of kernels by their share; nothing for one kind, or where shares are unknown."""
        groups = group_kernels(self.ranking, self.filtered, "kind") if len(self.filtered) <= FEW else ()
        parts = [
            (group.path[-1], group.share, f"$background on {KINDS[at % len(KINDS)]}")
            for at, group in enumerate(groups)
            if group.share
        ]
        return [bar_with_names(parts, width)] if len(parts) > 1 else []

    @property
    def empty_text(self) -> str:
        return "Reading where the kernels came from…" if self.arranged.waits else self.empty

    @property
    def ranked(self) -> Ranked | None:
        return self.ranking[self.current] if isinstance(self.current, int) else None

    @property
    def group(self) -> KernelGroup | None:
        return self._groups.get(self.current)

    @property
    def words(self) -> str:
        """The number of rows, for a title: `42 kernels · 3 hidden`."""
        hidden = len(self.ranking) - len(self.filtered)
        return counted(len(self.ranking), self.noun) + (f" · {integer(hidden)} hidden" if hidden else "")

    @property
    def order(self) -> list[str]:
        """Parts of the subtitle, the most important first."""
        step, arranged = self.ranking.step, self.arranged.arrangement
        parts = ["reading origins…"] if self.arranged.waits else []
        parts = ["arranging…"] if self._arranging else parts
        parts += [GROUPINGS[arranged.grouping]] if arranged.grouping != "none" else []
        parts += [self.UNSORTED] if arranged.sort == "order" else []
        parts.append(f"share of {BASES[self.ranking.basis]}")
        if step is not None and step.bound_seconds is not None:
            parts.append(f"a call at least {seconds(step.bound_seconds)}")
        return parts

    def select(self, number: int) -> bool:
        """Move the cursor to a kernel, once the rows are arranged; return False if it is not shown."""
        self._selected = number if self._arranging else None
        self.move_to_key(number)
        return self._arranging or self.current == number

    # -- drawing ----------------------------------------------------------------------------------------------

    def _column(self, name: str) -> TableColumn[Hashable]:
        if name == "label":
            layout = _LAYOUT[name]
            sample = self.ranking.rows(range(min(_MEASURED_NAMES, len(self.ranking))))
            indent = 6 if self.arranged.arrangement.grouping != "none" else 0
            longest = max((len(label_of(row)) for row in sample), default=0)
            layout = layout | {"most": min(_NAME_AT_MOST, max(layout["width"], indent + longest))}
            return TableColumn("kernel", lambda key: self._cell(name, key), **layout)
        shown, layout = COLUMNS[name], _LAYOUT[name]
        title = "named by XLA" if name == "name" else shown.title or ""
        return TableColumn(title, lambda key: self._cell(name, key), right=shown.is_right, sort=hash, **layout)

    def _share(self, key: Hashable) -> Content:
        share = self._groups[key].share if key in self._groups else self.ranking[cast(int, key)].share
        text = UNKNOWN if share is None else "<1%" if 0 < share < 0.01 else f"{share * 100:.0f}%"
        return Content.assemble(
            bar(share and share / self.arranged.largest, _BAR),
            cell(text, 5, "" if share is not None else "$quiet", right=True),
        )

    def _cell(self, name: str, key: Hashable) -> Cell:
        if (group := self._groups.get(key)) is not None:
            if name != "label":
                return counted(group.count, "kernel") if name == "kind" else total_text(name, group), "$text-muted"
            label = (
                group.path[-1].rpartition("/")[2] if self.arranged.arrangement.grouping == "source" else group.path[-1]
            )
            return f"{'  ' * (len(group.path) - 1)}{self.mark_of(group.path)} {label}"
        row = self.ranking[cast(int, key)]
        text = label_of(row) if name == "label" else COLUMNS[name].text(row)
        if name == "label":
            around = self._groups.get(self._around.get(key))
            return "  " * (len(around.path) if around is not None else 0) + text
        style = "$quiet" if text == UNKNOWN else _BOUNDS.get(text)
        return (text, style) if style is not None else text

    # -- keys -------------------------------------------------------------------------------------------------

    def sort_by(self, column: TableColumn[Hashable] | None, *, backwards: bool | None = None) -> None:
        """Sort by a column, None for the order of execution; the column that the table is sorted by reverses it."""
        name = self._names[id(column)] if column is not None else "order"
        turned = not self.wanted.turned if name == self.wanted.sort else False
        self.wanted = self.wanted._replace(sort=name, turned=turned)
        self._arrange()

    def action_group(self) -> None:
        groupings = list(GROUPINGS)
        self.group_by(groupings[(groupings.index(self.wanted.grouping) + 1) % len(groupings)])

    def group_by(self, grouping: str) -> None:
        """Group by `kind`, `source`, `scope`, `direction`, or not at all (`none`)."""
        self.wanted = self.wanted._replace(grouping=grouping)
        self._arrange(fresh=True)
