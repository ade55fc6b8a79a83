"""The lists and the texts of the HLO screen: their tabs and keys, the notices above them, and how one side leads to
the other.

On a wide terminal they are side by side, and the text follows the cursor of the lists; else one of them is in view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from jaxprof.hlo.open.stages import STAGES
from jaxprof.text import safe
from jaxprof.tui.hlo.kernel_side import LISTS, KernelSide
from jaxprof.tui.hlo.stage_side import TITLES, Match, StageSide
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.screen_bars import StageTabs, Tab

if TYPE_CHECKING:
    from jaxprof.hlo.analysis.notices import Notice
    from jaxprof.tui.hlo.modules import OpenedModule
    from jaxprof.tui.kit.fact_list import FactTarget
    from jaxprof.tui.kit.screen import SessionScreen


LIST_TITLES = {
    "kernels": "Kernels",
    "findings": "Findings",
    "barriers": "Barriers",
    "roofline": "Roofline",
    "flame": "Flame",
}
TAB_TITLES = {name: LIST_TITLES.get(name) or TITLES[name] for name in (*LISTS, *(stage.name for stage in STAGES))}
"""Every possible tab, from left to right."""


def available(opened: OpenedModule | None) -> list[str]:
    """The tabs that can be shown: all lists, and the stages that were recorded."""
    stages = opened.program.stages if opened is not None else {}
    return [*LISTS, *(stage.name for stage in STAGES if stage.name in stages)]


def tabs_of(opened: OpenedModule | None) -> list[Tab]:
    """All tabs. A stage that was not recorded is dimmed, except for the HLO before the passes, which is left out."""
    there = available(opened)
    counts = {
        "kernels": opened.kernels if opened is not None else None,
        "findings": opened.findings if opened is not None else None,
        "barriers": opened.barriers if opened is not None else None,
    }
    tabs = []
    for name in LISTS:
        rows = counts.get(name)
        more = "+" if name == "kernels" and opened is not None and not opened.complete else ""
        count = f"{len(rows)}{more}" if rows is not None else ""
        tabs.append(Tab(name, LIST_TITLES[name], LIST_TITLES[name], count))
    return tabs + [
        Tab(stage.name, stage.title, stage.short, enabled=stage.name in there, stage=True)
        for stage in STAGES
        if stage.name != "hlo_before" or stage.name in there
    ]


class NoModule(Guarded, Static):
    """Explains, in the middle of the screen, why there is no module and how to open one."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)

    def show(self, why: str, fills: str) -> None:
        """Why there is none, and what brings one."""
        self.update(
            Content.assemble(
                (safe(why), "bold"),
                "\n\n",
                (f"{safe(fills)}\n" if fills else "", "$text-muted"),
                (key_of("hlo.open"), "bold $footer-key-foreground"),
                (" opens HLO text, an HLO proto, or a folder of XLA's dumps.", "$text-muted"),
            )
        )


MOST = 3
"""Notices that are shown; there are seldom more."""


class NoticeLines(Guarded, Widget):
    """The notices of a module, one per line; takes no room when there are none."""

    ALLOW_SELECT = False
    auto_links = False
    DEFAULT_CSS = "NoticeLines { height: auto; max-height: 3; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._notices: Sequence[Notice] = ()
        self.display = False

    def show(self, notices: Sequence[Notice]) -> None:
        """Shows the notices of a module."""
        if notices != self._notices:
            self._notices = notices
            self.display = bool(notices)
            self.refresh(layout=True)

    def render(self) -> Content:
        width = max(1, self.size.width - 1)
        shown = sorted(self._notices, key=lambda notice: not notice.serious)
        lines = [
            Content.assemble(
                (" ! ", "bold $warning"),
                (safe(notice.code.replace("-", " ")), "bold $warning"),
                f": {safe(notice.message)}",
            ).truncate(width, ellipsis=True)
            for notice in shown[:MOST]
        ]
        return Content("\n").join(lines)


class Sides:
    """Controls the tabs, the lists and the texts of the HLO screen."""

    def __init__(self, screen: SessionScreen) -> None:
        self._screen = screen
        self._opened: OpenedModule | None = None
        self._tab = "kernels"

    @property
    def lists(self) -> KernelSide:
        """The lists: kernels, findings, barriers, roofline."""
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

    def show_program(self, opened: OpenedModule | None) -> None:
        """Shows another program, which may not have been read yet."""
        self._opened = opened
        self.lists.show_program(opened)
        self.texts.show_program(opened)
        self.show_tabs()

    def show_tabs(self) -> None:
        """Redraws the tabs with what is known by now."""
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
        """Shows a tab, or reports that its stage was not recorded."""
        if name in available(self._opened):
            self.show_tab(name)
        elif name in TITLES:
            self._screen.notify(f"{TITLES[name]} was not recorded for this program.", markup=False)

    def step(self, step: int) -> None:
        """Goes `step` tabs further; the first follows the last."""
        names = available(self._opened)
        at = names.index(self._tab) if self._tab in names else 0
        self.show_tab(names[(at + step) % len(names)])

    def stage_came(self, stage: str) -> None:
        """Follows the texts to a stage that they chose themselves."""
        self._tab = stage
        self.show_tabs()

    # -- from one side to the other -----------------------------------------------------------------------------

    def swap(self) -> None:
        """Goes from the lists to the text of the kernel under the cursor, and back."""
        if self.in_text:
            self.to_lists()
            return
        ranked = self.lists.ranked
        if ranked is not None and self.texts.stage == "hlo":
            self.texts.go_to_kernel(*ranked.key)
        self.show_tab(self.texts.stage)

    def to_lists(self) -> None:
        """Goes back to the lists, to the kernel at the cursor of the text."""
        at = self.texts.kernel_at_cursor()
        if at is not None:
            self.lists.select(*at)
        self.show_tab(self.lists.tab)

    def to_text_of(self, target: FactTarget) -> None:
        """Goes to the line of an instruction in the optimised HLO."""
        if self.texts.go_to_kernel(target.computation, target.name, remember=True):
            self.show_tab("hlo")
        else:
            self._screen.notify(f"{safe(target.name)} has no line of its own in this text.", markup=False)

    def to_line(self, match: Match) -> None:
        """Goes to a line of a stage."""
        self.texts.go(match)
        self.show_tab(match[0])

    def to_kernel(self, name: str) -> None:
        """Goes to a kernel in the list, or reports that the program has none of that name."""
        self.show_tab("kernels")
        if not self.lists.select("", name):
            self._screen.notify(f"{safe(name)} is not a kernel of this program.", markup=False)

    def bring_text_along(self) -> bool:
        """Moves the text to the kernel under the cursor of the lists; False if that has no line. In a text, no move."""
        if self.in_text:
            return True
        ranked = self.lists.ranked
        return ranked is not None and self.texts.go_to_kernel(*ranked.key)

    def follow(self) -> None:
        """Moves the text to the cursor of the lists when they are side by side."""
        if self._both and not self.in_text and self.lists.ranked is not None:
            self.bring_text_along()
            self.show_tabs()

    # -- looking for something ------------------------------------------------------------------------------------

    def open_filter(self) -> None:
        """Opens the filter line; in a text, the search line."""
        if self.in_text:
            self.texts.pane.action_search()
        else:
            self.lists.open_filter()

    def step_back(self) -> bool:
        """Clears the search or filter, or goes from the text to the lists; False when there is neither to do."""
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
