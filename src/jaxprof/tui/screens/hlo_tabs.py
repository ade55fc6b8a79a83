"""The tabs of the HLO screen: which there are for a program, and how many remarks each list holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.tui.programs.program import STAGES
from jaxprof.tui.widgets.kernel_side import LISTS
from jaxprof.tui.widgets.stage_side import TITLES
from jaxprof.tui.widgets.stage_tabs import Tab

if TYPE_CHECKING:
    from jaxprof.tui.programs.opened import Opened

LIST_TITLES = {"kernels": "Kernels", "findings": "Findings", "barriers": "Barriers", "roofline": "Roofline"}
TAB_TITLES = {name: LIST_TITLES.get(name) or TITLES[name] for name in (*LISTS, *(stage.name for stage in STAGES))}
"""Every tab there can be, in their order in the line."""


def available(opened: Opened | None) -> list[str]:
    """The tabs that can be gone to: all lists, and the stages that were recorded."""
    stages = opened.program.stages if opened is not None else {}
    return [*LISTS, *(stage.name for stage in STAGES if stage.name in stages)]


def tabs_of(opened: Opened | None) -> list[Tab]:
    """The whole line. A stage that was not recorded is there and dimmed; the HLO before the passes, which few ask
    for, only where it was recorded."""
    there = available(opened)
    counts = {
        "kernels": opened.kernels if opened is not None else None,
        "findings": opened.findings if opened is not None else None,
        "barriers": opened.barriers if opened is not None else None,
    }
    tabs = []
    for name in LISTS:
        found = counts.get(name)
        tabs.append(Tab(name, LIST_TITLES[name], LIST_TITLES[name], str(len(found)) if found is not None else ""))
    return tabs + [
        Tab(stage.name, stage.title, stage.short, enabled=stage.name in there, stage=True)
        for stage in STAGES
        if stage.name != "hlo_before" or stage.name in there
    ]
