"""The lists and the texts of the HLO screen: which tab is in view, and the ways from one side to the other.

Where both have room they are side by side, and the text follows the cursor of the lists; else one of them is in view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.safe_text import safe
from jaxprof.tui.screens.hlo_tabs import available, tabs_of
from jaxprof.tui.widgets.kernel_side import KernelSide
from jaxprof.tui.widgets.stage_side import TITLES, Match, StageSide
from jaxprof.tui.widgets.stage_tabs import StageTabs

if TYPE_CHECKING:
    from jaxprof.tui.programs.opened import Opened
    from jaxprof.tui.screens.base import SessionScreen
    from jaxprof.tui.widgets.fact_list import Target


class Sides:
    """Drives the line of tabs, the lists and the texts of a screen that has them."""

    def __init__(self, screen: SessionScreen) -> None:
        self._screen = screen
        self._opened: Opened | None = None
        self._tab = "kernels"

    @property
    def lists(self) -> KernelSide:
        """The kernels and what is said of them."""
        return self._screen.query_one(KernelSide)

    @property
    def texts(self) -> StageSide:
        """The stages of the program."""
        return self._screen.query_one(StageSide)

    @property
    def in_text(self) -> bool:
        """Whether the tab in view is a text."""
        return self._tab in TITLES

    @property
    def _both(self) -> bool:
        """Whether lists and text are side by side."""
        return self._screen.has_class("-very-wide")

    def show_program(self, opened: Opened | None) -> None:
        """Forgets the program before; of this one nothing may be known yet."""
        self._opened = opened
        self.lists.show_program(opened)
        self.texts.show_program(opened)
        self.show_tabs()

    def show_tabs(self) -> None:
        """The line of tabs, with what is known by now."""
        shown = {self.lists.tab, self.texts.stage} if self._both else {self._tab}
        self._screen.query_one(StageTabs).show(tabs_of(self._opened), frozenset(shown))

    def show_tab(self, name: str, *, focus: bool = True) -> None:
        """Brings a tab into view."""
        self._tab = name
        self._screen.set_class(self.in_text, "-text")
        if self.in_text:
            self.texts.show_stage(name)
        else:
            self.lists.show_tab(name)
        self.show_tabs()
        if focus:
            (self.texts.view if self.in_text else self.lists.current_list).focus()

    def go_to_tab(self, name: str) -> None:
        """To a tab, or says that it was not recorded."""
        if name in available(self._opened):
            self.show_tab(name)
        elif name in TITLES:
            self._screen.notify(f"{TITLES[name]} was not recorded for this program.", markup=False)

    def step(self, step: int) -> None:
        """So many tabs on, round the end."""
        names = available(self._opened)
        at = names.index(self._tab) if self._tab in names else 0
        self.show_tab(names[(at + step) % len(names)])

    def stage_came(self, stage: str) -> None:
        """The texts have gone to another stage by themselves."""
        self._tab = stage
        self.show_tabs()

    # -- from one side to the other -----------------------------------------------------------------------------

    def swap(self) -> None:
        """From the lists to the text of the kernel under the cursor, and back."""
        if self.in_text:
            self.to_lists()
            return
        ranked = self.lists.ranked
        if ranked is not None and self.texts.stage == "hlo":
            self.texts.go_to_kernel(*ranked.key)
        self.show_tab(self.texts.stage)

    def to_lists(self) -> None:
        """Back to the lists, with the cursor on the kernel that the text was at."""
        at = self.texts.kernel_at_cursor()
        if at is not None:
            self.lists.select(*at)
        self.show_tab(self.lists.tab)

    def to_text_of(self, target: Target) -> None:
        """To the line of an instruction in the optimised HLO."""
        if self.texts.go_to_kernel(target.computation, target.name, remember=True):
            self.show_tab("hlo")
        else:
            self._screen.notify(f"{safe(target.name)} has no line of its own in this text.", markup=False)

    def to_line(self, match: Match) -> None:
        """To a line of a stage."""
        self.texts.go(match)
        self.show_tab(match[0])

    def to_kernel(self, name: str) -> None:
        """To a kernel in the list, or says that there is none of that name."""
        self.show_tab("kernels")
        if not self.lists.select("", name):
            self._screen.notify(f"{safe(name)} is no kernel of this program.", markup=False)

    def bring_text_along(self) -> bool:
        """Puts the text to the kernel under the cursor of the lists; False where it has no line. In a text, nothing."""
        if self.in_text:
            return True
        ranked = self.lists.ranked
        return ranked is not None and self.texts.go_to_kernel(*ranked.key)

    def follow(self) -> None:
        """Where the text is beside the lists, it follows their cursor."""
        if self._both and not self.in_text and self.lists.ranked is not None:
            self.bring_text_along()
            self.show_tabs()

    # -- looking for something ------------------------------------------------------------------------------------

    def open_filter(self) -> None:
        """Opens the line for the filter; in a text, for the search."""
        if self.in_text:
            self.texts.pane.action_search()
        else:
            self.lists.open_filter()

    def step_back(self) -> bool:
        """Clears what hides or marks something, or goes from the text to the lists; False when there is neither."""
        if self.in_text and self.texts.pane.searching:
            self.texts.pane.clear_search()
            self.texts.view.focus()
        elif self.in_text:
            self.to_lists()
        elif self.lists.clear_filter() or self._screen.focused is not self.lists.current_list:
            self.lists.current_list.focus()
        else:
            return False
        return True
