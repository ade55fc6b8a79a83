"""The workloads with their mark boxes. Rows appear before their descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.message import Message

from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.drawing import mark
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import TableColumn
from jaxprof.tui.kit.table_view import TableView

if TYPE_CHECKING:
    from jaxprof.tui.home.plan_options import HomeOptions
    from jaxprof.workloads.model import WorkloadInfo


class WorkloadList(TableView[str]):
    """One row per workload."""

    EMPTY = "No workload matches the filter. Esc clears it."
    BINDINGS: ClassVar[list[BindingType]] = bindings("workloads")

    class Run(Message):
        """The user asked to run the chosen workloads."""

    class Marked(Message):
        """Marks have changed."""

    def __init__(self, names: list[str], infos: Mapping[str, WorkloadInfo], choices: HomeOptions) -> None:
        super().__init__(
            (
                TableColumn("", lambda name: mark(name in self._choices.marked), 1),
                TableColumn("name", lambda name: name, 19, gap=0),
                TableColumn("", self._flag, 1),
                TableColumn("title", self._title, 8, weight=1, style="$text-muted", priority=1),
            ),
            titles=False,
            id="workloads",
        )
        self._infos = infos
        self._choices = choices
        self.show_names(names)

    def show_names(self, names: list[str], only: str = "") -> None:
        """Shows those of the workloads whose name, title or description has the words of `only`."""
        self.set_filter(only)
        self.show_rows({name: name for name in names})

    @property
    def workload(self) -> str | None:
        """The workload under the cursor."""
        current = self.current
        return None if current is None else str(current)

    def haystack(self, row: str) -> str:
        info = self._infos.get(row)
        return f"{row} {info.title} {info.description} {info.origin}" if info is not None else row

    def _flag(self, name: str) -> tuple[str, str]:
        """A star if the user changed an option of the workload."""
        chosen = self._choices.by_workload.get(name)
        changed = chosen is not None and bool(chosen.settings or chosen.sweep or chosen.left_out)
        return "*" if changed else "", "bold $accent"

    def _title(self, name: str) -> str:
        info = self._infos.get(name)
        if info is None:
            return ""
        return info.title if info.origin == "built in" else f"yours · {info.title}"

    def action_run(self) -> None:
        """Asks the screen to run the chosen workloads."""
        self.post_message(self.Run())

    def action_mark(self) -> None:
        """Marks the workload under the cursor, and goes down a row."""
        if self.workload is not None:
            self._mark(self.cursor)
            self.action_move(1)

    def action_mark_all(self) -> None:
        """Marks all workloads in the list, or none."""
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
