"""The rows of the kernel table: filtered, sorted and grouped, and the origins of kernels that this may need.

Reading the origins (source lines, named scopes) of a large program takes seconds. A thread does it when a filter, an
order or a grouping first needs them; until then the rows stay as they were, and the screen answers keys.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from textual.message import Message

from jaxprof.analysis.arrangement import (
    GROUPED_BY_ORIGINS,
    SORTED_BY_ORIGINS,
    KernelGroup,
    filtered,
    grouped,
    needs_origins,
    ordered,
)
from jaxprof.analysis.ranking import Ranking
from jaxprof.errors import JaxprofError
from jaxprof.hlo.analysis.kernel import Kernel
from jaxprof.hlo.analysis.origin_columns import OriginColumns, origin_columns
from jaxprof.tui.kit.threads import in_daemon

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
