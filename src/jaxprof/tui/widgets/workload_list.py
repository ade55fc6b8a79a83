"""The workloads with their mark boxes. Rows are there before their descriptions are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from jaxprof.tui.widgets.drawing import cell, mark
from jaxprof.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from jaxprof.tui.choices import Choices
    from jaxprof.workloads.model import WorkloadCard

NAME_WIDTH = 19


class WorkloadList(RowList):
    """One row a workload."""

    EMPTY = "No workload has that in its name. Esc clears the filter."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "run", "Run", tooltip="Run the marked workloads, or this one", id="workloads.run"),
        Binding("space", "mark", "Mark", tooltip="Mark this workload, or take its mark away", id="workloads.mark"),
        Binding("a", "mark_all", "All", tooltip="Mark all workloads that are shown, or none", id="workloads.all"),
    ]

    class Run(Message):
        """What is chosen shall be run."""

    class Marked(Message):
        """Marks have changed."""

    def __init__(self, names: list[str], cards: Mapping[str, WorkloadCard], choices: Choices) -> None:
        super().__init__(id="workloads")
        self._names = names
        self._cards = cards
        self._choices = choices
        self._filter = ""
        self.set_keys(list(names))

    def show_names(self, names: list[str], only: str = "") -> None:
        """Shows these workloads, as far as `only` is in their name, title or description."""
        self._names, self._filter = names, only
        wanted = only.casefold().split()
        self.set_keys([name for name in names if all(word in self._haystack(name) for word in wanted)])

    @property
    def hidden(self) -> int:
        """How many the filter hides."""
        return len(self._names) - len(self.keys)

    @property
    def workload(self) -> str | None:
        """The workload under the cursor."""
        current = self.current
        return None if current is None else str(current)

    def draw_row(self, index: int, width: int) -> Content:
        name = str(self.keys[index])
        card = self._cards.get(name)
        chosen = self._choices.by_workload.get(name)
        changed = chosen is not None and bool(chosen.settings or chosen.sweep or chosen.left_out)
        yours = card is not None and card.origin != "built in"
        flag = "*" if changed else " "
        name_width = min(NAME_WIDTH, max(1, width - 5)) if width > 40 or not yours else max(1, width - 5)
        line = Content.assemble(
            " ", mark(name in self._choices.marked), " ", cell(name, name_width), (flag, "bold $accent"), " "
        )
        room = width - line.cell_length
        if room < 8 or card is None:
            return line
        title = f"yours · {card.title}" if yours else card.title
        return line + cell(title, room, "$text-muted")

    def _haystack(self, name: str) -> str:
        card = self._cards.get(name)
        text = f"{name} {card.title} {card.description} {card.origin}" if card is not None else name
        return text.casefold()

    def action_run(self) -> None:
        """Asks for what is chosen to be run."""
        self.post_message(self.Run())

    def action_mark(self) -> None:
        """Marks the workload under the cursor, and goes one down."""
        if self.workload is not None:
            self._mark(self.cursor)
            self.action_move(1)

    def action_mark_all(self) -> None:
        """Marks all that are shown, or none."""
        self._choices.toggle_all(str(key) for key in self.keys)
        self.refresh()
        self.post_message(self.Marked())

    def on_row_list_clicked(self, message: RowList.Clicked) -> None:
        if message.x < 4:
            self._mark(message.index)

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        self.post_message(self.Run())

    def _mark(self, index: int) -> None:
        self._choices.toggle(str(self.keys[index]))
        self.refresh_row(index)
        self.post_message(self.Marked())
