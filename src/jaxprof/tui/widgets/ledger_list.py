"""The compile ledger: one row for each function with what its compilations cost together; open, a row for each of them.

The order is that of what it cost; `s` sorts otherwise. A filter looks at the functions, their places and the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from jaxprof.events import STAGES
from jaxprof.results.programs.functions import row_seconds
from jaxprof.results.programs.places import place
from jaxprof.safe_text import columns, safe
from jaxprof.tui.widgets.drawing import bar, cell
from jaxprof.tui.widgets.place_text import place_in_full, place_text
from jaxprof.tui.widgets.row_list import RowList
from jaxprof.units import UNKNOWN, bytes_, integer, percent, seconds

if TYPE_CHECKING:
    from jaxprof.events import Compiled
    from jaxprof.results.programs.derive import FunctionCompiles

REASON_WORDS = {
    "first": "first time",
    "shape": "shape",
    "dtype": "dtype",
    "weak_type": "weak type",
    "structure": "structure",
    "static_argument": "static argument",
    "new_function": "new function",
    "sharding": "sharding",
    "config": "config",
    "unknown": "not known why",
}
COUNT, TIME, SHARE = 6, 10, 8
STAGE = 9
_STAGES_FROM = 112
_PLACE_FROM = 10
"""Columns that are left beside a name before a place is shown in them."""


@dataclass(frozen=True, slots=True)
class Order:
    """A way to sort the functions."""

    name: str
    key: Callable[[FunctionCompiles], tuple[object, ...]]


ORDERS = (
    Order("time", lambda one: (-one.seconds, one.function)),
    Order("count", lambda one: (-one.count, -one.seconds)),
    Order("first compiled", lambda one: (one.rows[0].began_seconds if one.rows else 0.0,)),
    Order("name", lambda one: (one.function.casefold(), -one.seconds)),
)


def reason_text(row: Compiled) -> str:
    """Why it was compiled, in words; empty for the first time."""
    if row.reason:
        return row.reason
    return "" if row.reason_code == "first" else REASON_WORDS.get(row.reason_code, row.reason_code)


def reasons_text(function: FunctionCompiles) -> str:
    """`argument x: shape varies ×41; first time`: what a reader can change comes first."""
    ranked = sorted(function.reasons, key=lambda one: (one.code == "first", -one.count))
    return "; ".join(one.text + (f" ×{integer(one.count)}" if one.count > 1 else "") for one in ranked)


class LedgerList(RowList):
    """Functions; beneath those that are open, their compilations."""

    EMPTY = "Nothing was compiled so far."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "enter", "Open", tooltip="Open or close this function; all of this compilation",
                id="ledger.enter"),
        Binding("right", "spread(1)", "Open it", show=False, tooltip="Open this function", id="ledger.right"),
        Binding("left", "spread(-1)", "Close it", show=False, tooltip="Close this function", id="ledger.left"),
        Binding("e", "open_all", "Open all", show=False, tooltip="Open or close all functions", id="ledger.open_all"),
        Binding("s", "sort", "Sort", tooltip="Sort by the next: time, count, first compiled, name", id="ledger.sort"),
    ]  # fmt: skip

    class Entered(Message):
        """All of a compilation is to be shown."""

        def __init__(self, row: Compiled) -> None:
            super().__init__()
            self.row = row

    class Sorted(Message):
        """The order is another one."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._functions: dict[Hashable, FunctionCompiles] = {}
        self._says: dict[Hashable, Hashable] = {}
        self._open: set[Hashable] = set()
        self._wall: float = 0.0
        self._directory = ""
        self._only = ""
        self._order = ORDERS[0]

    def show(self, functions: Sequence[FunctionCompiles], wall_seconds: float | None, directory: str = "") -> None:
        """Shows the functions of a program; those that say what they said before are not drawn again."""
        self._directory = directory
        self._functions = {(one.function, place_in_full(one.defined_at)): one for one in functions}
        self._wall = wall_seconds or 0.0
        self._lay_out()

    def forget(self) -> None:
        """Another program comes: nothing of this one is open."""
        self._open.clear()
        self._says = {}

    def set_filter(self, text: str) -> None:
        """Shows only functions with all these words."""
        self._only = text.casefold()
        self._lay_out()

    @property
    def order_in_words(self) -> str:
        """For the frame."""
        return f"by {self._order.name}"

    @property
    def hidden(self) -> int:
        """Functions that the filter hides."""
        return len(self._functions) - sum(len(key) == 2 for key in self._keys if isinstance(key, tuple))

    def _lay_out(self) -> None:
        words = self._only.split()
        shown = [key for key, one in self._functions.items() if all(word in _haystack(one) for word in words)]
        shown.sort(key=lambda key: self._order.key(self._functions[key]))
        keys: list[Hashable] = []
        for key in shown:
            keys.append(key)
            if key in self._open:
                keys += [("row", key, index) for index in range(len(self._functions[key].rows))]
        says: dict[Hashable, Hashable] = {}
        for key in shown:
            one = self._functions[key]
            says[key] = (one.count, one.seconds, len(one.rows), self._percent(one.seconds), key in self._open)
        before, self._says = self._says, says
        if keys != self._keys:
            at_top = self._cursor == 0 and not self._open
            self.set_keys(keys)
            if at_top:
                self.move_to(0)
            return
        for index, key in enumerate(keys):
            function = key[1] if isinstance(key, tuple) and key[0] == "row" else key
            if says.get(function) != before.get(function):
                self.refresh_row(index)

    def _percent(self, value: float) -> str:
        return percent(value / self._wall) if self._wall else UNKNOWN

    # -- drawing ----------------------------------------------------------------------------------------------

    def draw_header(self, width: int) -> Content | None:
        if not self._functions:
            return None
        name, graph, rest = _widths(width)
        stages = "".join(stage.ljust(STAGE) for stage in STAGES) if width >= _STAGES_FROM else ""
        return Content.assemble(
            cell("   function", name), cell("times", COUNT, right=True), cell("time", TIME, right=True),
            cell("of all", SHARE, right=True), "  ",
            cell(f"{stages}reason", (graph + 1 if graph else 0) + rest),
        )  # fmt: skip

    def draw_row(self, index: int, width: int) -> Content:
        key = self._keys[index]
        assert isinstance(key, tuple)
        if key[0] == "row" and len(key) == 3:
            return self._compilation(self._functions[key[1]].rows[key[2]], width)
        return self._function(key, self._functions[key], width)

    def _function(self, key: Hashable, one: FunctionCompiles, width: int) -> Content:
        name, graph, rest = _widths(width)
        library = one.library or one.op_by_op
        at = place_text(one.defined_at or one.called_from, self._directory)
        mark = "▾" if key in self._open else "▸"
        room = name - 3
        name_room = min(room, columns(safe(one.function)) + 2)
        at_room = room - name_room if room - name_room >= _PLACE_FROM else 0
        title = cell(one.function, room - at_room, "$text-muted" if library else "bold")
        again = any(reason.code != "first" for reason in one.reasons)
        return Content.assemble(
            f" {mark} ", title, cell(at, at_room - 1, "$quiet"), " " if at_room else "",
            cell(integer(one.count), COUNT, right=True), cell(seconds(one.seconds), TIME, "bold", right=True),
            cell(self._percent(one.seconds), SHARE, "$text-muted", right=True), "  ",
            bar(one.seconds / self._wall if self._wall else None, graph, "$phase-compile") + " " if graph else "",
            cell(reasons_text(one), rest, "$warning" if again and not library else "$text-muted"),
        )  # fmt: skip

    def _compilation(self, row: Compiled, width: int) -> Content:
        name, graph, rest = _widths(width)
        graph_room = graph + 1 if graph else 0
        many = row.count > 1
        why = reason_text(row) or "the first time"
        if row.cache == "hit":
            saved = f", saved {seconds(row.saved_seconds)}" if row.saved_seconds is not None else ""
            why = f"[from the cache{saved}] {why}"
        if width >= _STAGES_FROM:
            why = "".join(seconds(value).ljust(STAGE) for value in _stages(row)) + why
        return Content.assemble(
            "     ", cell(place_text(place(row.called_from), self._directory) or _kind(row), name - 5),
            cell(integer(row.count) if many else "", COUNT, right=True),
            cell(seconds(row_seconds(row)), TIME, right=True), cell(_size(row), SHARE, "$quiet", right=True), "  ",
            cell(why, graph_room + rest, "$text-muted" if row.reason_code == "first" else "$warning"),
        )  # fmt: skip

    # -- keys -------------------------------------------------------------------------------------------------

    @property
    def row(self) -> Compiled | None:
        """The compilation under the cursor; None on a function."""
        key = self.current
        if isinstance(key, tuple) and key[0] == "row" and len(key) == 3 and key[1] in self._functions:
            return self._functions[key[1]].rows[key[2]]
        return None

    def action_enter(self) -> None:
        """Opens or closes a function; shows all of a compilation."""
        row = self.row
        if row is not None:
            self.post_message(self.Entered(row))
        elif self.current is not None:
            self._open ^= {self.current}
            self._lay_out()

    def action_spread(self, step: int) -> None:
        """Opens the function; closes it, from its compilations too."""
        key = self.current
        if key is None:
            return
        function = key[1] if self.row is not None and isinstance(key, tuple) else key
        if step > 0:
            self._open |= {function}
        else:
            self._open -= {function}
            self.move_to_key(function)
        self._lay_out()

    def action_open_all(self) -> None:
        """All open, or all closed."""
        self._open = set() if self._open >= set(self._functions) else set(self._functions)
        self._lay_out()

    def action_sort(self) -> None:
        """By the next order."""
        self._order = ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)]
        self._lay_out()
        self.move_to(0)
        self.post_message(self.Sorted())

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        """A double click opens."""
        message.stop()
        self.action_enter()


def _widths(width: int) -> tuple[int, int, int]:
    """Columns of the function with its place, of the bar, and of the reasons."""
    rest = width - COUNT - TIME - SHARE - 2
    graph = 12 if width >= 140 else 0
    name = max(22, min(44, rest * (2 if width < _STAGES_FROM else 1) // 5 + (0 if width < _STAGES_FROM else 12)))
    return name, graph, max(1, rest - name - (graph + 1 if graph else 0))


def _stages(row: Compiled) -> tuple[float | None, ...]:
    return row.trace_seconds, row.lower_seconds, row.compile_seconds


def _size(row: Compiled) -> str:
    """How large its program is."""
    constants = sum(int(one.get("bytes") or 0) for one in row.constants)
    if constants:
        return bytes_(constants, 2)
    return f"{integer(row.operations)} op" if row.operations is not None else ""


def _kind(row: Compiled) -> str:
    return "op by op" if row.op_by_op else "in a library" if row.library else "place not known"


def _haystack(one: FunctionCompiles) -> str:
    words = [one.function, place_in_full(one.defined_at), reasons_text(one)]
    words += [f"{place_in_full(place(row.called_from))} {row.reason}" for row in one.rows[:64]]
    return " ".join(words).casefold()
