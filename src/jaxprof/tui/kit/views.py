"""Screens with several views: tabs that share one area; a large terminal shows more than one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.kit.screen import SessionScreen
from jaxprof.tui.kit.screen_bars import StageTabs, Tab


class ViewsScreen(SessionScreen):
    """Base class of a screen with several views and a filter line."""

    VIEWS: ClassVar[Mapping[str, str]] = {}
    """Title of each view, by the id of the widget that takes its focus."""
    MAIN: ClassVar[Sequence[str]] = ()
    """Views that share the main area of a large terminal, where the others have areas of their own."""

    def __init__(self) -> None:
        super().__init__()
        self._view, self._main = next(iter(self.VIEWS)), self.MAIN[0]

    def on_mount(self) -> None:
        self.add_class(f"-view-{self._view}", f"-main-{self._main}")

    def share_room(self) -> None:
        """Share the room among the views that are shown, and mark their tabs."""

    def show_tabs(self, shown: frozenset[str], notes: Mapping[str, str] | None = None) -> None:
        """Show the tabs, with `notes` by view; those of the views in `shown` are marked."""
        note_of = notes or {}
        tabs = [Tab(name, title, title, note_of.get(name, "")) for name, title in self.VIEWS.items()]
        self.query_one(StageTabs).show(tabs, shown)

    def action_tab(self, name: str) -> None:
        if name in self.VIEWS:
            self.remove_class(f"-view-{self._view}", f"-main-{self._main}")
            self._view, self._main = name, name if name in self.MAIN else self._main
            self.add_class(f"-view-{name}", f"-main-{self._main}")
            self.query_one(f"#{name}").focus()
            self.share_room()

    def action_next_tab(self, step: int) -> None:
        names = list(self.VIEWS)
        self.action_tab(names[(names.index(self._view) + step) % len(names)])

    def action_zoom(self) -> None:
        self.toggle_class("-zoom")
        self.action_tab(self._view)

    def action_filter(self) -> None:
        self.query_one(FilterLine).open()

    def on_filter_line_left(self) -> None:
        self.query_one(f"#{self._view}").focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Esc to the app unless there is a filter to clear, or one view is shown alone."""
        if action == "unfilter":
            return bool(self.query_one(FilterLine).value) or self.has_class("-zoom")
        return super().check_action(action, parameters)

    def action_unfilter(self) -> None:
        if self.query_one(FilterLine).value:
            self.query_one(FilterLine).clear()
            self.on_filter_line_left()
        elif self.has_class("-zoom"):
            self.action_zoom()
