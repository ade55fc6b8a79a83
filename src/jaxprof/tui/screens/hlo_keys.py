"""The keys of the HLO screen, each with its name for the user's keymap and its line in the help."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from jaxprof.tui.screens.hlo_tabs import TAB_TITLES

KEYS: list[BindingType] = [
    Binding("slash", "filter", "Filter", key_display="/",
            tooltip="Only rows with these words; kind: scope: file: name: look in one place", id="hlo.filter"),
    Binding("t", "next_tab(1)", "Next tab", tooltip="To the next tab", id="hlo.next_tab"),
    Binding("T", "next_tab(-1)", "Tab before", show=False, tooltip="To the tab before", id="hlo.last_tab"),
    Binding("x", "other_side", "Text/lists", tooltip="From the lists to the text and back", id="hlo.other_side"),
    Binding("m", "match", "Other stages", tooltip="To the lines of other stages that came from the same place",
            id="hlo.match"),
    Binding("r", "choose_program", "Run", tooltip="Choose the run, or the module, to look at", id="hlo.program"),
    Binding("d", "choose_device", "Device", show=False,
            tooltip="The device whose ceilings the kernels are held against", id="hlo.device"),
    Binding("p", "profile", "Timeline", show=False, tooltip="This kernel in the timeline of the run",
            id="hlo.profile"),
    Binding("u", "trust", "Trust", show=False, tooltip="All that was looked at to say whether the measured times "
            "can be trusted", id="hlo.trust"),
    Binding("e", "export", "Export", show=False,
            tooltip="Write the table as CSV, or a kernel as a graph (DOT, SVG)", id="hlo.export"),
    Binding("o", "open_file", "Open file", show=False,
            tooltip="Open HLO text, an HLO proto, or a folder of XLA's dumps", id="hlo.open"),
    Binding("tab", "app.focus_next", "Next pane", show=False, tooltip="To the next pane", id="hlo.next"),
    Binding("shift+tab", "app.focus_previous", "Pane before", show=False, tooltip="To the pane before",
            id="hlo.last"),
    Binding("escape", "back", "Back", show=False,
            tooltip="Clear the search or filter; from the text to the lists; then back", id="hlo.back"),
    *(
        Binding(f"f{number}", f"tab('{name}')", f"Show {title}", show=False, tooltip=f"To the tab {title}",
                id=f"hlo.tab.{name}")
        for number, (name, title) in enumerate(TAB_TITLES.items(), start=2)
    ),
]  # fmt: skip
