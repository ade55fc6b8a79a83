"""The keys of Home, each with its name for the user's keymap and its line in the help."""

from __future__ import annotations

from textual.binding import Binding, BindingType

KEYS: list[BindingType] = [
    Binding("slash", "filter", "Filter", key_display="/", tooltip="Only workloads with these words", id="home.filter"),
    Binding("e", "edit", "Parameters", tooltip="Sizes, sweep and time budget of this workload", id="home.edit"),
    Binding("p", "preset", "Preset", tooltip="Quick sizes, or those that were published", id="home.preset"),
    Binding("d", "devices", "Devices", tooltip="Choose the devices to run on", id="home.devices"),
    Binding("v", "variants", "Variants", tooltip="Choose variants, see their source", id="home.variants"),
    Binding(
        "plus,o", "own", "Own", key_display="+", tooltip="Add a workload of yours: file.py:function", id="home.own"
    ),
    Binding("x", "program", "Program", tooltip="Run a program of yours and record it: train.py", id="home.program"),
    Binding(
        "c",
        "compile_for",
        "Compile for",
        tooltip="The kernels of this workload on a device that is not here: an estimate",
        id="home.compile_for",
    ),
    Binding("r", "run", "Run", show=False, tooltip="Run the marked workloads, or this one", id="home.run"),
    Binding("s", "recent", "Recent sessions", show=False, tooltip="To the recent sessions", id="home.recent"),
    Binding("escape", "back", "Back", show=False, tooltip="Clear the filter, or back to the list", id="home.back"),
    Binding("tab", "app.focus_next", "Next pane", show=False, tooltip="To the next pane", id="home.next"),
    Binding("shift+tab", "app.focus_previous", "Pane before", show=False, tooltip="To the pane before", id="home.last"),
]
