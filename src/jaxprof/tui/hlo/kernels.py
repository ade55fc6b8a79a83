"""The kernels of a program as a table: the rows (filtered, sorted, grouped), how they are drawn, and their keys.

Reading the origins (source lines, named scopes) of a large program takes seconds. A thread does it when a filter, an
order or a grouping first needs them; until then the rows stay as they were, and the screen answers keys.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message

from jaxprof.analysis.arrangement import (
    GROUPED_BY_ORIGINS,
    GROUPINGS,
    SORTED_BY_ORIGINS,
    KernelGroup,
    filtered,
    grouped,
    needs_origins,
    ordered,
)
from jaxprof.analysis.ranking import BASES, Ranked, Ranking
from jaxprof.errors import JaxprofError
from jaxprof.hlo.analysis.kernels import Kernel
from jaxprof.hlo.analysis.origin_columns import OriginColumns, origin_columns
from jaxprof.report.kernels import COLUMNS, total_text
from jaxprof.text import shorten_middle
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.drawing import bar, cell, place_cell
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.threads import in_daemon
from jaxprof.tui.messages import Failed
from jaxprof.units import UNKNOWN, counted, integer, percent, seconds

OPEN_UP_TO = 40
"""With more kernels than this, groups are closed at first."""
DEEPEST = 100
"""Scopes inside each other that are indented further and further."""


class OriginsRead(Message, bubble=False):
    """The origins of `done` kernels have been read; `origins` are those of all kernels, once all are read."""

    def __init__(self, kernels: Sequence[Kernel], done: int, origins: OriginColumns | None = None) -> None:
        super().__init__()
        self.kernels = kernels
        self.done = done
        self.origins = origins


class OriginsFailed(Message, bubble=False):
    """The origins of the kernels could not be read."""

    def __init__(self, kernels: Sequence[Kernel], error: JaxprofError) -> None:
        super().__init__()
        self.kernels = kernels
        self.error = error


class OriginReader:
    """Reads the origins of one program at a time, in a thread of its own, from which it posts its messages."""

    def __init__(self, post: Callable[[Message], object]) -> None:
        self._post = post
        # Each thread has an event of its own, so a thread that was stopped stays stopped when the next one starts.
        self._stop = threading.Event()
        self._kernels: Sequence[Kernel] | None = None

    def reads(self, kernels: Sequence[Kernel]) -> bool:
        """Whether these kernels are the last that it began to read, and it was not stopped since."""
        return self._kernels is kernels

    def begin(self, kernels: Sequence[Kernel]) -> None:
        """Reads the origins of these kernels in place of the previous ones; does nothing if it reads them already, or
        failed to."""
        if self.reads(kernels):
            return
        self.stop()
        self._kernels = kernels
        self._stop = threading.Event()
        # Not a worker of the app: the app waits for its workers when it quits, and a large program takes long.
        stop = self._stop
        in_daemon(partial(self._read, kernels, stop), "origins", partial(self._failed, kernels, stop))

    def stop(self) -> None:
        """Stops the messages. The thread ends soon; nothing waits for it."""
        self._stop.set()
        self._kernels = None

    def _read(self, kernels: Sequence[Kernel], stop: threading.Event) -> None:
        def post(message: Message) -> None:
            if not stop.is_set():
                self._post(message)

        origins = origin_columns(kernels, lambda done: post(OriginsRead(kernels, done)), stop.is_set)
        if origins is not None:
            post(OriginsRead(kernels, len(kernels), origins))

    def _failed(self, kernels: Sequence[Kernel], stop: threading.Event, error: JaxprofError) -> None:
        if not stop.is_set():
            what = f"where the kernels came from could not be read: {error.what}"
            self._post(OriginsFailed(kernels, JaxprofError(what, f"Names and kinds can be filtered. {error.hint}")))


class Arrangement(NamedTuple):
    """How rows are sorted and grouped."""

    sort: str = "share"
    turned: bool = False
    grouping: str = "none"


class KernelRows:
    """The rows of the table: kernels by their number, groups by their path. Knows no widget.

    `post` takes `OriginsRead` and `OriginsFailed` from the reading thread to the thread of the app, which hands them to
    `take_origins` and `do_without_origins`. Everything here is called in the thread of the app.
    """

    def __init__(self, post: Callable[[Message], object]) -> None:
        self._reader = OriginReader(post)
        self.ranking = Ranking()
        self.keys: Sequence[Hashable] = ()
        """Numbers of kernels and paths of groups, in the order of the table."""
        self.groups: dict[tuple[str, ...], KernelGroup] = {}
        self.wanted = Arrangement()
        """The arrangement that the user chose last."""
        self.arrangement = Arrangement()
        """The arrangement of the rows: the wanted one, once the origins that it needs are known."""
        self.share_read: float | None = None
        """The share of origins that have been read; None unless the rows wait for them."""
        self.changes = 0
        """How often the rows were arranged: another number, other rows."""
        self._filter = ""
        self._left: Sequence[int] = ()
        """The kernels that the filter leaves, sorted."""
        self._closed: set[tuple[str, ...]] = set()
        self._depths = bytearray()
        """How far each row is indented; empty unless they are grouped."""

    @property
    def hidden(self) -> int:
        """How many kernels the filter hides."""
        return len(self.ranking) - len(self._left)

    @property
    def numbers(self) -> Sequence[int]:
        """The kernels that the filter leaves, in the order of the table, also those in closed groups."""
        if self.arrangement.grouping == "none":
            return self._left
        numbers = array("l")
        for group in self.groups.values():
            numbers += group.members
        return numbers

    def depth(self, index: int) -> int:
        """How far a row is indented."""
        return self._depths[index] if self._depths else 0

    def is_closed(self, group: KernelGroup) -> bool:
        """Whether the kernels of a group are out of view."""
        return group.path in self._closed

    # -- what changes them ------------------------------------------------------------------------------------

    def show(self, ranking: Ranking) -> None:
        """Takes the kernels of another program, or other figures of the same."""
        ranking.know_from(self.ranking)
        self.ranking = ranking
        if not self._reader.reads(ranking.kernels):
            self._reader.stop()
        self._arrange(fresh=True)

    def stop(self) -> None:
        """Stops reading origins."""
        self._reader.stop()

    def set_filter(self, text: str) -> bool:
        """Leaves only kernels with these words; False if they were set already."""
        if text == self._filter:
            return False
        self._filter = text
        self._arrange(fresh=False)
        return True

    def sort_by(self, column: str) -> None:
        """Sorts by a column; by the same one again, the other way round."""
        turned = not self.wanted.turned if column == self.wanted.sort else False
        self.wanted = self.wanted._replace(sort=column, turned=turned)
        self._arrange(fresh=False)

    def group_by(self, grouping: str) -> None:
        """Groups by one of `GROUPINGS`."""
        self.wanted = self.wanted._replace(grouping=grouping)
        self._arrange(fresh=True)

    def turn_group(self, group: KernelGroup) -> None:
        """Opens or closes a group."""
        self._closed ^= {group.path}
        self._arrange(fresh=False)

    def turn_groups(self) -> None:
        """Opens all groups, or closes all if all are open."""
        self._closed = set() if self._closed else set(self.groups)
        self._arrange(fresh=False)

    def take_origins(self, message: OriginsRead) -> bool:
        """Takes what the thread has read; whether the rows have changed."""
        if message.kernels is not self.ranking.kernels:
            return False
        if message.origins is not None:
            self.ranking.know_origins(message.origins)
            self._arrange(fresh=self.wanted.grouping != self.arrangement.grouping)
            return True
        if self.share_read is not None:
            self.share_read = message.done / max(1, len(message.kernels))
        return False

    def do_without_origins(self, message: OriginsFailed) -> bool:
        """Gives up what needs the origins; False if they are those of another program."""
        if message.kernels is not self.ranking.kernels:
            return False
        self.share_read = None
        self.wanted = self.arrangement
        return True

    # -- how they are arranged --------------------------------------------------------------------------------

    def _arrange(self, *, fresh: bool) -> None:
        """Filters, sorts and groups; `fresh` forgets which groups are open."""
        knows = self._knows_what_is_needed()
        self.arrangement = self.wanted if knows else _without_origins(self.wanted, self.arrangement)
        sort, turned, grouping = self.arrangement
        left = filtered(self.ranking, self._filter, by_origins=knows or not needs_origins(self._filter))
        self._left = ordered(self.ranking, left, sort, turned=turned)
        outermost = grouped(self.ranking, self._left, grouping) if grouping != "none" else []
        self.groups = {group.path: group for group in _walk(outermost)}
        if fresh:
            self._closed = set(self.groups) if len(self._left) > OPEN_UP_TO else set()
        self._fill(outermost)
        self.changes += 1

    def _knows_what_is_needed(self) -> bool:
        """Whether all is known that the filter, the order and the groups need; else begins to read it."""
        sort, _, grouping = self.wanted
        needed = sort in SORTED_BY_ORIGINS or grouping in GROUPED_BY_ORIGINS or needs_origins(self._filter)
        knows = not needed or self.ranking.knows_origins
        kernels = self.ranking.kernels
        if knows:
            self.share_read = None
        elif not self._reader.reads(kernels):
            self.share_read = 0.0
            self._reader.begin(kernels)
        return knows

    def _fill(self, outermost: Sequence[KernelGroup]) -> None:
        self._depths = bytearray()
        if self.arrangement.grouping == "none":
            self.keys = self._left
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
    """The part of the wanted arrangement that needs no origins; the rest stays as it is now."""
    if now.sort in SORTED_BY_ORIGINS:  # of another program, whose origins were known
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
