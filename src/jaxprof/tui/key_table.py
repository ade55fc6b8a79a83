"""Every key of the app: what it means, and what it does where. Key bars, help, palette and docs are made of it.

A key has one meaning on every screen and in every dialog: an action names its meaning, and so gets its key. Destructive
meanings have a capital, or ask first. No other file declares a key (`tests/tui/test_keys.py`). Knows no Textual, so
that `jaxprof config` can check a user's keys.
"""

from __future__ import annotations

from dataclasses import dataclass

HIDDEN, SHOWN, FIRST, LAST_RANK = range(4)
"""Whether the key bar has an action, and whether it is among the last that a narrow terminal drops; at its right end
stand those that no terminal drops."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a key means, wherever it does something."""

    keys: str
    """Textual's names of the keys, with commas between."""
    does: str


@dataclass(frozen=True, slots=True)
class Key:
    """One action of a group."""

    name: str
    """In its group; the two with a dot between are the binding's id, which a user's keys name."""
    means: str
    """One or more names of meanings, with spaces between."""
    action: str
    label: str
    help: str
    bar: int = SHOWN
    priority: bool = False
    """Whether it goes before the keys of the widget with the focus."""


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """The keys of a screen, a list or a dialog."""

    title: str
    keys: tuple[Key, ...]


MEANINGS: dict[str, Meaning] = {
    # letters
    "advice": Meaning("a", "What to do: the findings, the most expensive first"),
    "all": Meaning("A", "All of them: mark all workloads, history of all, show hidden lanes, list all buffers"),
    "compile": Meaning("b", "What was compiled, for how long, and why"),
    "compile_for": Meaning("B", "Compile for a device that is not here"),
    "compare": Meaning("c", "Compare two"),
    "cancel": Meaning("C", "Cancel what runs"),
    "devices": Meaning("d", "Choose devices"),
    "delete": Meaning("D", "Delete a session, after a question"),
    "edit": Meaning("e", "Edit: parameters, or a name"),
    "export": Meaning("E", "Export: write what is here to a file"),
    "findings": Meaning("f", "Findings: what is worth changing, and where"),
    "full": Meaning("F", "Give one thing the full room, or go back to several"),
    "group": Meaning("g", "Group the rows"),
    "last": Meaning("G", "Go to the last row or line"),
    "hlo": Meaning("h", "HLO: what XLA made of it"),
    "history": Meaning("H", "History over the kept sessions"),
    "instructions": Meaning("i", "Switch between the lists and the instructions (the text)"),
    "down": Meaning("j", "Go down by one"),
    "up": Meaning("k", "Go up by one"),
    "longest_idle": Meaning("I", "The longest idle stretch"),
    "keep": Meaning("K", "Keep a lane above the others"),
    "output": Meaning("l", "What the process wrote: its log, its output"),
    "lines": Meaning("L", "The source lines that took the time"),
    "memory": Meaning("m", "What makes up the peak of memory"),
    "match": Meaning("M", "Go to the same thing elsewhere: in other stages, from a kernel to its launch"),
    "next": Meaning("n", "The next match, or run"),
    "previous": Meaning("N", "The match, or run, before"),
    "flame": Meaning("O", "Outline of what takes the time: the flame graph (icicle), frame by frame"),
    "open": Meaning("o", "Open a file"),
    "preset": Meaning("p", "Switch between quick and published sizes"),
    "prune": Meaning("P", "Delete old sessions, after a question"),
    "quit": Meaning("q", "Quit; a text over the screen closes"),
    "cancel_all": Meaning("Q", "Cancel all: what runs and what waits, after a question"),
    "run": Meaning("r", "Run, or run again"),
    "choose_run": Meaning("R", "Choose the run, or program, to show"),
    "sort": Meaning("s", "Sort by the next column"),
    "reverse": Meaning("S", "Reverse the order"),
    "timeline": Meaning("t", "Timeline: when things ran"),
    "time": Meaning("T", "Where the time went, added up"),
    "users": Meaning("u", "Users of a value"),
    "variants": Meaning("v", "Variants of a workload"),
    "verify": Meaning("V", "Verify the capture: the list of all checks"),
    "capture": Meaning("w", "Capture a window: switch on the profiler for a moment"),
    "watch": Meaning("W", "Watch a program that is being recorded now"),
    "script": Meaning("x", "Profile a script"),
    "exchange": Meaning("X", "Exchange the sides: the other run becomes the baseline"),
    "copy": Meaning("y", "Copy as text"),
    "scale": Meaning("Y", "The scale of bars: linear, or logarithmic"),
    "fold": Meaning("z", "Fold or open"),
    "fold_all": Meaning("Z", "Fold or open all"),
    # signs and digits
    "find": Meaning("slash", "Filter the rows, or search the text"),
    "help": Meaning("question_mark,f1", "Help: a tour of what each screen answers, and all keys of this one"),
    "next_event": Meaning("full_stop", "The next event"),
    "event_before": Meaning("comma", "The event before"),
    "again": Meaning("asterisk", "The same thing again, later"),
    "again_before": Meaning("number_sign", "The same thing, earlier"),
    "next_idle": Meaning("right_curly_bracket", "The next idle stretch"),
    "idle_before": Meaning("left_curly_bracket", "The idle stretch before"),
    "longest": Meaning("dollar_sign", "The longest event: what one thing costs most"),
    "more": Meaning("plus", "One more: a function of yours on Home, a closer look on the timeline"),
    "closer": Meaning("equals_sign", "A closer look, without shift"),
    "wider": Meaning("minus", "A wider look"),
    "whole": Meaning("0", "The whole of it"),
    "hide": Meaning("underscore", "Hide a lane, or the details of lines"),
    "tab_before": Meaning("left_square_bracket", "The tab, or phase, before"),
    "next_tab": Meaning("right_square_bracket", "The next tab, or phase"),
    "column_left": Meaning("less_than_sign", "A column to the left; long lines to their start"),
    "column_right": Meaning("greater_than_sign", "A column to the right; long lines to their end"),
    "mode_home": Meaning("1", "Home"),
    "mode_run": Meaning("2", "Run"),
    "mode_results": Meaning("3", "Results"),
    "mode_hlo": Meaning("4", "HLO"),
    "mode_sessions": Meaning("5", "Sessions"),
    "mode_profile": Meaning("6", "Profile"),
    "mode_program": Meaning("7", "Program"),
    "mode_job": Meaning("8", "Job"),
    # named keys
    "enter": Meaning("enter", "Go into the row, or take the answer"),
    "mark": Meaning(
        "space", "Mark the row, or the start of a range; open or close it where nothing is marked; pause what is live"
    ),
    "back": Meaning("escape", "One step back"),
    "next_pane": Meaning("tab", "The next pane, or field"),
    "pane_before": Meaning("shift+tab", "The pane, or field, before"),
    "arrow_up": Meaning("up", "Up"),
    "arrow_down": Meaning("down", "Down"),
    "arrow_left": Meaning("left", "Left"),
    "arrow_right": Meaning("right", "Right"),
    "shift_left": Meaning("shift+left", "As <"),
    "shift_right": Meaning("shift+right", "As >"),
    "page_up": Meaning("pageup", "A page up"),
    "page_down": Meaning("pagedown", "A page down"),
    "first": Meaning("home", "The first row or line"),
    "end": Meaning("end", "The last row or line"),
    "history_back": Meaning("backspace,alt+left", "Back to the place before"),
    "history_forward": Meaning("alt+right", "Forward again"),
    "delete_key": Meaning("delete", "As D"),
    "interrupt": Meaning("ctrl+c", "Cancel what runs; twice: quit"),
    "quit_always": Meaning("ctrl+q", "Quit, also from a dialog"),
    "palette": Meaning("ctrl+p", "Search everything: actions, kernels, lines, functions, sessions, findings, settings"),
    "reload": Meaning("ctrl+l", "Read the files again"),
    "reset": Meaning("ctrl+r", "Restore the usual values"),
    "tab_1": Meaning("f2", "The first tab"),
    "tab_2": Meaning("f3", "The second tab"),
    "tab_3": Meaning("f4", "The third tab"),
    "tab_4": Meaning("f5", "The fourth tab"),
    "tab_5": Meaning("f6", "The fifth tab"),
    "tab_6": Meaning("f7", "The sixth tab"),
    "tab_7": Meaning("f8", "The seventh tab"),
    "tab_8": Meaning("f9", "The eighth tab"),
    "tab_9": Meaning("f10", "The ninth tab"),
}

QUESTION = {"yes": Meaning("y", "Yes"), "no": Meaning("n", "No")}
"""The letters that answer a question: only a dialog that has no other letters uses them."""

# fmt: off
_TABS = (
    Key("next_tab", "next_tab", "next_tab(1)", "Next tab", "Go to the next tab", HIDDEN),
    Key("tab_before", "tab_before", "next_tab(-1)", "Previous tab", "Go to the previous tab", HIDDEN),
)
_PANES = (
    Key("next", "next_pane", "app.focus_next", "Next pane", "Go to the next pane", HIDDEN),
    Key("last", "pane_before", "app.focus_previous", "Previous pane", "Go to the previous pane", HIDDEN),
)
_PAUSE = (
    Key("pause", "mark", "pause", "Pause", "Keep this view as it is; the session goes on"),
    Key("resume", "mark", "resume", "Follow", "Show what came meanwhile, and follow again"),
)
_OF_A_RUN = (
    Key("hlo", "hlo", "hlo", "HLO", "What XLA made of this run"),
    Key("timeline", "timeline", "profile('timeline')", "Timeline", "When the kernels of this run ran"),
    Key("compile", "compile", "profile('compile')", "Compile", "Where this compile's time went", HIDDEN),
    Key("memory", "memory", "profile('memory')", "Memory", "What makes up this run's peak memory", HIDDEN),
)
_SCROLL = (
    Key("down", "down", "scroll(1)", "Down", "A line down", HIDDEN),
    Key("up", "up", "scroll(-1)", "Up", "A line up", HIDDEN),
)
_MATCHES = (
    Key("next", "next", "next(1)", "Next", "Go to the next match", HIDDEN),
    Key("previous", "previous", "next(-1)", "Previous match", "Go to the previous match", HIDDEN),
)
_PAN = (
    Key("left", "arrow_left", "pan(-1)", "Earlier", "Pan to the left; at the start, move the cursor", HIDDEN),
    Key("right", "arrow_right", "pan(1)", "Later", "Pan to the right; at the end, move the cursor", HIDDEN),
    Key("step_left", "shift_left column_left", "step(-1)", "Previous column",
        "Move the cursor a column to the left", HIDDEN),
    Key("step_right", "shift_right column_right", "step(1)", "Next column",
        "Move the cursor a column to the right", HIDDEN),
)
_ORDER = (
    Key("sort", "sort", "sort_by_next", "Sort", "Sort by the next column"),
    Key("turn", "reverse", "turn", "Reverse", "Reverse the order", HIDDEN),
)
_OF_A_PROCESS = (Key("open", "enter", "choose", "Open", "Open the session of this process; Esc comes back"),)
GROUPS: dict[str, KeyGroup] = {
    "app": KeyGroup("Everywhere", (
        Key("mode.home", "mode_home", "go('home')", "Home", "Devices, workloads and recent sessions", HIDDEN),
        Key("mode.run", "mode_run", "go('run')", "Run", "The current runs, phase by phase", HIDDEN),
        Key("mode.results", "mode_results", "go('results')", "Results", "The variants side by side", HIDDEN),
        Key("mode.hlo", "mode_hlo", "go('hlo')", "HLO",
            "What XLA made of a run: kernels, and the text of each stage", HIDDEN),
        Key("mode.sessions", "mode_sessions", "go('sessions')", "Sessions", "The saved sessions", HIDDEN),
        Key("mode.profile", "mode_profile", "go('profile')", "Profile",
            "The profile of a run: timeline, compile passes, memory", HIDDEN),
        Key("mode.program", "mode_program", "go('program')", "Program",
            "Your own program: its time, what it compiled and why, findings", HIDDEN),
        Key("mode.job", "mode_job", "go('job')", "Job",
            "The processes of a job beside each other, and which one is late", HIDDEN),
        Key("help", "help", "help", "Help", "What each screen answers, and all keys of this screen"),
        Key("palette", "palette", "command_palette", "Search",
            "Every action with its key; kernels, source lines, functions, sessions, findings and settings"),
        Key("quit", "quit", "quit", "Quit", "Quit jaxprof; asks first while a run is in progress"),
        Key("quit_always", "quit_always", "quit", "Quit", "Quit jaxprof", HIDDEN, priority=True),
        Key("interrupt", "interrupt", "interrupt", "Cancel the run",
            "Cancel the current run; press twice to quit", HIDDEN),
        Key("back", "back", "back", "Back", "Go back to the screen before", HIDDEN),
        Key("stop_reading", "back", "stop_reading", "Stop reading",
            "Stop reading the profile; the session in view stays", HIDDEN, priority=True),
    )),
    "home": KeyGroup("Home", (
        Key("filter", "find", "filter", "Filter", "Show only workloads that contain these words", priority=True),
        Key("edit", "edit", "edit", "Parameters", "Sizes, sweep, time budget and launches"),
        Key("preset", "preset", "preset", "Preset", "Switch between quick and published sizes"),
        Key("open_file", "open", "open_file", "Open file", "Open a session, a profile or HLO by its path"),
        Key("follow", "watch", "follow", "Follow", "Follow a program that is being recorded now"),
        Key("devices", "devices", "devices", "Devices", "Choose the devices to run on"),
        Key("variants", "variants", "variants", "Variants", "Choose variants and see their source"),
        Key("own", "more", "own", "Add function", "Add a function of your own to measure: file.py:function", FIRST),
        Key("program", "script", "program", "Profile script", "Run and record a script of your own: train.py", FIRST),
        Key("compile_for", "compile_for", "compile_for", "Compile for",
            "Estimate this workload's kernels on a device that is not here"),
        Key("compare", "compare", "compare", "Compare",
            "Measure the two marked workloads in turns, the one marked first as A, and compare them", FIRST),
        Key("history", "history", "history", "History", "How this workload went over the kept sessions", HIDDEN),
        Key("run", "run", "run", "Run", "Run the marked workloads, or this one", HIDDEN),
        Key("back", "back", "back", "Back", "Clear the filter, or go back to the list", HIDDEN),
        *_PANES,
    )),
    "own_code": KeyGroup("Home: your code", (
        Key("choose", "enter", "choose", "Choose", "Do what the line says"),
    )),
    "workloads": KeyGroup("Home: workloads", (
        Key("run", "enter", "choose", "Run", "Run the marked workloads, or this one"),
        Key("mark", "mark", "mark", "Mark", "Mark or unmark this workload"),
        Key("all", "all", "screen.mark_all", "All", "Mark all workloads in the list, or none", HIDDEN),
    )),
    "variants": KeyGroup("Home: variants", (
        Key("run", "enter", "screen.run", "Run", "Run the marked workloads, or this one"),
        Key("mark", "mark", "mark", "Include", "Include this variant, or leave it out"),
    )),
    "devices": KeyGroup("Home: devices", (
        Key("mark", "mark enter", "mark", "Run on", "Mark or unmark this device to run on"),
    )),
    "run": KeyGroup("Run", (
        Key("open", "enter", "open", "Details", "All details of this run"),
        Key("cancel", "cancel", "cancel", "Cancel", "Cancel this run; the others go on", FIRST),
        Key("cancel_all", "cancel_all", "cancel_all", "Cancel all", "Cancel this run and all queued runs; asks first"),
        Key("again", "run", "again", "Run again", "Run this again, together with its baseline"),
        Key("close_log", "back", "close_log", "Back", "Show the samples in place of the output", HIDDEN),
        *_PAUSE,
        Key("log", "output", "log", "Output", "What the measured process wrote to its stdout and stderr"),
        *_OF_A_RUN,
    )),
    "results": KeyGroup("Results", (
        Key("open", "enter", "open", "Details", "All phases, samples, break-even and environment"),
        Key("mark", "mark", "mark", "Mark", "Mark or unmark this run: two are compared"),
        Key("compare", "compare", "compare", "Compare",
            "Compare the two marked runs; without marks, the sides of this comparison", FIRST),
        *_OF_A_RUN,
        Key("history", "history", "history", "History", "How this workload went over the kept sessions", HIDDEN),
        Key("explain", "advice", "explain", "What to do", "What to change, the most expensive first", HIDDEN),
        Key("sort", "sort", "sort", "Sort", "Sort by the next column"),
        Key("reverse", "reverse", "reverse", "Reverse", "Reverse the order", HIDDEN),
        Key("scale", "scale", "scale", "Scale", "Phases on a linear scale, or on a logarithmic one", HIDDEN),
        Key("copy", "copy", "copy", "Copy", "Copy this row as text"),
        Key("zoom", "full", "zoom", "Zoom", "Give the lower part the whole screen, or show both again"),
        Key("unzoom", "back", "unzoom", "Back", "Go back to the list", HIDDEN),
    )),
    "run_detail": KeyGroup("Details of a run", (
        Key("close", "back", "close", "Back", "Go back to where this was opened"),
        Key("hlo", "hlo", "hlo", "HLO", "What XLA made of this run"),
        Key("copy", "copy", "copy", "Copy", "Copy the figures as text"),
        Key("next", "next", "step(1)", "Next run", "The next run of the session"),
        Key("previous", "previous", "step(-1)", "Previous", "The previous run of the session"),
        *_SCROLL,
    )),
    "compare": KeyGroup("Comparison", (
        Key("close", "back", "close", "Back", "Go back to Results"),
        Key("exchange", "exchange", "exchange", "Exchange", "Make the other run the baseline"),
        Key("copy", "copy", "copy", "Copy", "Copy the whole comparison as text"),
        *_SCROLL,
    )),
    "history": KeyGroup("History", (
        Key("close", "back", "close", "Back", "Go back to where this was opened"),
        Key("next", "next_pane", "app.focus_next", "Points", "Go to the points, or to the list"),
        Key("measure", "next_tab", "measure(1)", "Phase", "The next phase, or exact fact"),
        Key("measure_before", "tab_before", "measure(-1)", "Previous phase", "The phase before", HIDDEN),
        Key("all", "all", "all", "All", "All workloads, or the chosen one again"),
        Key("copy", "copy", "copy", "Copy", "Copy this history as text"),
        Key("read", "reload", "read", "Reload", "Read the sessions again", HIDDEN),
    )),
    "measurements": KeyGroup("History: measurements", (
        Key("enter", "enter", "choose", "Points", "Go to the points", HIDDEN),
    )),
    "points": KeyGroup("History: points", (
        Key("open", "enter", "choose", "Open", "Open the session of this point"),
    )),
    "hlo": KeyGroup("HLO", (
        Key("capture", "capture", "capture", "Capture", "Capture the program, which has no HLO yet", FIRST),
        Key("filter", "find", "filter", "Filter",
            "Show only rows with these words; kind: scope: file: name: search one field", priority=True),
        Key("next_tab", "next_tab", "next_tab(1)", "Next tab", "Go to the next tab"),
        Key("tab_before", "tab_before", "next_tab(-1)", "Previous tab", "Go to the previous tab", HIDDEN),
        Key("other_side", "instructions", "other_side", "Text/lists", "Switch between the lists and the text"),
        Key("match", "match", "match", "Other stages", "Go to the lines of other stages that came from the same place"),
        Key("program", "choose_run", "choose_program", "Choose run", "Choose the run or module to show"),
        Key("device", "devices", "choose_device", "Device",
            "Choose the device whose ceilings the kernels are compared with", HIDDEN),
        Key("profile", "timeline", "profile", "Timeline", "Show this kernel in the timeline of the run", HIDDEN),
        Key("memory", "memory", "memory", "Memory", "Show what makes up the peak memory", HIDDEN),
        Key("trust", "verify", "trust", "Checks", "List every check of the measured times", HIDDEN),
        Key("export", "export", "export", "Export",
            "Write the table as CSV, or a kernel as a graph (DOT, SVG)", HIDDEN),
        Key("open", "open", "open_file", "Open file",
            "Open HLO text, an HLO proto, or a folder of XLA's dumps", HIDDEN),
        *_PANES,
        Key("back", "back", "back", "Back",
            "Clear the search or filter, else go from the text to the lists, else go back", HIDDEN),
        Key("tab.kernels", "tab_1", "tab('kernels')", "Show Kernels", "Go to the Kernels tab", HIDDEN),
        Key("tab.findings", "tab_2 findings", "tab('findings')", "Show Findings", "Go to the Findings tab", HIDDEN),
        Key("tab.barriers", "tab_3", "tab('barriers')", "Show Barriers", "Go to the Barriers tab", HIDDEN),
        Key("tab.roofline", "tab_4", "tab('roofline')", "Show Roofline", "Go to the Roofline tab", HIDDEN),
        Key("tab.flame", "tab_5 flame", "tab('flame')", "Flame graph",
            "Show the kernels by named scope as a flame graph", HIDDEN),
        Key("tab.jaxpr", "tab_6", "tab('jaxpr')", "Show jaxpr", "Go to the jaxpr tab", HIDDEN),
        Key("tab.stablehlo", "tab_7", "tab('stablehlo')", "Show StableHLO", "Go to the StableHLO tab", HIDDEN),
        Key("tab.hlo_before", "tab_8", "tab('hlo_before')", "Show HLO (unoptimised)",
            "Go to the HLO (unoptimised) tab", HIDDEN),
        Key("tab.hlo", "tab_9", "tab('hlo')", "Show HLO", "Go to the HLO tab", HIDDEN),
    )),
    "kernels": KeyGroup("HLO: kernels", (
        Key("enter", "enter", "choose", "Text", "Go to the kernel's text; on a group, open or close it"),
        Key("sort", "sort", "sort", "Sort", "Sort by the next column"),
        Key("turn", "reverse", "turn", "Reverse", "Reverse the order", HIDDEN),
        Key("group", "group", "group", "Group", "Group by kind, source line, named scope, direction, or not at all"),
        Key("open", "mark fold", "open_group", "Open group", "Open or close the group", HIDDEN),
        Key("open_all", "fold_all", "open_groups", "Open all", "Open or close all groups", HIDDEN),
        Key("point_before", "arrow_left", "point(-1)", "Point before",
            "On the roofline, go to the next point of less FLOPs per byte", HIDDEN),
        Key("point_after", "arrow_right", "point(1)", "Next point",
            "On the roofline, go to the next point of more FLOPs per byte", HIDDEN),
    )),
    "kernel_notes": KeyGroup("HLO: findings and barriers", (
        Key("enter", "enter", "choose", "Kernel", "Go to the kernel of this row"),
    )),
    "text": KeyGroup("HLO: text", (
        Key("up", "arrow_up up", "move(-1)", "Up", "Go to the line above", HIDDEN),
        Key("down", "arrow_down down", "move(1)", "Down", "Go to the line below", HIDDEN),
        Key("page_up", "page_up", "page(-1)", "Page up", "Go a page up", HIDDEN),
        Key("page_down", "page_down mark", "page(1)", "Page down", "Go a page down", HIDDEN),
        Key("first", "first", "edge(-1)", "First", "Go to the first line", HIDDEN),
        Key("last", "end last", "edge(1)", "Last", "Go to the last line", HIDDEN),
        Key("scroll_left", "arrow_left shift_left column_left", "sideways(-1)", "Scroll left",
            "Scroll to the start of long lines", HIDDEN),
        Key("scroll_right", "arrow_right shift_right column_right", "sideways(1)", "Scroll right",
            "Scroll to the end of long lines", HIDDEN),
    )),
    "text_pane": KeyGroup("HLO: text, searched", (
        Key("search", "find", "search", "Search", "Search with a regular expression", priority=True),
        *_MATCHES,
    )),
    "search": KeyGroup("HLO: search line", (
        Key("clear", "back", "drop", "Clear", "Stop the search and show no matches"),
        Key("keep", "enter arrow_down", "keep", "Keep", "Return to the text; n and N step through the matches"),
    )),
    "code": KeyGroup("HLO: names in the text", (
        Key("left", "arrow_left", "name(-1)", "Previous name", "Choose the previous name", HIDDEN),
        Key("right", "arrow_right", "name(1)", "Next name", "Choose the next name", HIDDEN),
        Key("follow", "enter", "follow", "Definition",
            "Go to the definition of the chosen name, or of what the line calls or takes"),
        Key("users", "users", "users", "Users", "Go to the users of the chosen name, or of the line's value"),
        Key("back", "history_back", "history(-1)", "Back", "Go back to the previous place"),
        Key("forward", "history_forward", "history(1)", "Forward", "Go forward again", HIDDEN),
        Key("fold", "fold", "fold", "Fold", "Fold or open the computation at the cursor"),
        Key("fold_all", "fold_all", "fold_all", "Fold all", "Fold or open all computations", HIDDEN),
        Key("short", "hide", "short", "Short", "Hide or show metadata and the backend's configuration", HIDDEN),
        Key("copy", "copy", "copy", "Copy", "Copy the instruction at the cursor", HIDDEN),
    )),
    "profile": KeyGroup("Profile", (
        Key("capture", "capture", "capture", "Capture", "Capture the program, which has no profile yet", FIRST),
        Key("overview", "time tab_1", "tab('overview')", "Overview", "Show kernels, idle time, steps and doubts"),
        Key("timeline", "timeline tab_2", "tab('timeline')", "Timeline", "Show when things ran, lane by lane"),
        Key("flame", "flame tab_3", "tab('flame')", "Flame graph", "Show the kernels by named scope as a flame graph"),
        Key("compile", "compile tab_4", "tab('compile')", "Compile",
            "Show where the compile spent its time: phases and passes"),
        Key("memory", "memory tab_5", "tab('memory')", "Memory", "Show what makes up the peak memory"),
        Key("trust", "verify", "trust", "Checks", "List every check of this capture", HIDDEN),
        Key("run", "choose_run", "choose_run", "Choose run", "Choose the run to show"),
        Key("back", "back", "back", "Back", "Clear the search, or go back"),
        *_TABS,
    )),
    "overview": KeyGroup("Profile: overview", (
        Key("hlo", "enter hlo", "choose", "HLO", "Go to the HLO of this kernel or program"),
    )),
    "timeline_pane": KeyGroup("Profile: timeline, searched", (
        Key("search", "find", "search", "Search", "Search the names with a regular expression", priority=True),
        *_MATCHES,
        Key("hlo", "hlo", "hlo", "HLO", "Go to the HLO of the kernel under the cursor"),
    )),
    "timeline": KeyGroup("Profile: timeline", (
        Key("zoom_in", "more closer", "zoom(1)", "Zoom in", "Show half the time around the cursor"),
        Key("zoom_out", "wider", "zoom(-1)", "Out", "Show twice the time around the cursor"),
        Key("whole", "whole", "whole", "Whole", "Show the whole recording"),
        Key("fit", "full", "fit", "Fit", "Zoom to the range, or else to what is under the cursor", HIDDEN),
        *_PAN,
        Key("next_event", "next_event", "event(1)", "Next event", "Go to the next event of this lane", HIDDEN),
        Key("last_event", "event_before", "event(-1)", "Previous event",
            "Go to the previous event of this lane", HIDDEN),
        Key("next_idle", "next_idle", "idle(1)", "Next idle",
            "Go to the next idle stretch of this lane that is at least a column wide", HIDDEN),
        Key("idle_before", "idle_before", "idle(-1)", "Previous idle",
            "Go to the idle stretch before, at least a column wide", HIDDEN),
        Key("longest_idle", "longest_idle", "longest('idle')", "Longest idle",
            "Go to the longest idle stretch of this lane, then to the next longest"),
        Key("longest", "longest", "longest('interval')", "Longest event",
            "Go to the longest event of this lane, or the highest value of a counter, then to the next", HIDDEN),
        Key("again", "again", "again(1)", "Same again", "Go to where the same kernel, or event, comes next"),
        Key("again_before", "again_before", "again(-1)", "Same before",
            "Go to where the same kernel, or event, came before", HIDDEN),
        Key("home", "first", "edge(-1)", "Start", "Go to the start of the recording", HIDDEN),
        Key("end", "end", "edge(1)", "End", "Go to the end of the recording", HIDDEN),
        Key("up", "arrow_up up", "move(-1)", "Lane above", "Go to the lane above", HIDDEN),
        Key("down", "arrow_down down", "move(1)", "Lane below", "Go to the lane below", HIDDEN),
        Key("range", "mark", "mark", "Range",
            "Start a range and show its totals; press again to end it, and once more, or Esc, to clear it"),
        Key("launch", "match", "follow", "Launch", "Go from a kernel to its launch on the host, and back", HIDDEN),
        Key("hide", "hide", "hide", "Hide", "Hide this lane", HIDDEN),
        Key("show_all", "all", "show_all", "Show all", "Show the hidden lanes again", HIDDEN),
        Key("pin", "keep", "pin", "Pin", "Pin this lane above the others, or unpin it", HIDDEN),
        Key("open", "enter", "open", "Open", "Open or close the lane: a line for each thread and level"),
    )),
    "passes": KeyGroup("Profile: compile", (
        Key("open", "enter mark", "choose", "Open", "Open or close this phase"),
        Key("open_all", "fold_all", "open_all", "Open all", "Open or close all"),
        Key("sort", "sort", "sort", "Sort", "Switch between the tree and a list by self time"),
    )),
    "module_memory": KeyGroup("HLO: memory", (
        Key("close", "back", "close", "Back", "Go to the peak, or back to HLO"),
    )),
    "buffers": KeyGroup("Memory", (
        Key("hlo", "enter hlo", "choose", "HLO", "Go to the instruction that makes this buffer"),
        Key("before", "arrow_left", "step(-1)", "Earlier",
            "Go to the instruction before, and list what is alive there"),
        Key("after", "arrow_right", "step(1)", "Later", "Go to the next instruction, and list what is alive there"),
        Key("change_before", "event_before", "change(-1)", "Change before",
            "Go back to where the live size changed by a hundredth of the peak", HIDDEN),
        Key("next_change", "next_event", "change(1)", "Next change",
            "Go to where the live size changes by a hundredth of the peak", HIDDEN),
        Key("all", "all", "all", "All buffers", "List all buffers, or again those that are alive at the cursor"),
    )),
    "program": KeyGroup("Program", (
        Key("ledger", "compile tab_1", "tab('ledger')", "Ledger",
            "Show what was compiled, for how long, and why", HIDDEN),
        Key("findings", "findings tab_2", "tab('findings')", "Findings",
            "Show what is worth changing, and where", HIDDEN),
        Key("lines", "lines tab_3", "tab('lines')", "Lines", "Show the lines that took the time", HIDDEN),
        Key("flame", "flame tab_4", "tab('flame')", "Flame graph",
            "Show the time by line as a flame graph", HIDDEN),
        Key("time", "time tab_5", "tab('time')", "Time", "Show where the time went, in a table and over time", HIDDEN),
        Key("output", "output tab_6", "tab('output')", "Output", "Show what the program printed", HIDDEN),
        Key("filter", "find", "filter", "Filter", "Show only functions, findings and lines with these words",
            priority=True),
        Key("capture", "capture", "capture", "Capture",
            "Switch on the profiler for a moment; of a program that has ended, run it again with it", FIRST),
        Key("cancel", "cancel", "cancel", "Cancel",
            "Interrupt the program; press again to terminate, then to kill it", FIRST),
        Key("again", "run", "again", "Run again", "Run this program again"),
        *_PAUSE,
        Key("profile", "timeline", "profile", "Timeline", "Show the timeline of the last capture window"),
        Key("hlo", "hlo", "hlo", "HLO", "Show the kernels and HLO of the last capture window"),
        Key("explain", "advice", "explain", "What to do", "What to change, the most expensive first", HIDDEN),
        Key("zoom", "full", "zoom", "Zoom", "Show one view alone on a large terminal, or several again", HIDDEN),
        Key("unfilter", "back", "unfilter", "Back", "Clear the filter, or show several views again", HIDDEN),
        *_TABS,
    )),
    "ledger": KeyGroup("Program: ledger", (
        Key("enter", "enter", "choose", "Open", "Open or close this function; show all of a compilation"),
        Key("open_all", "fold_all", "open_all", "Open all", "Open or close all functions", HIDDEN),
        *_ORDER,
    )),
    "hot_lines": KeyGroup("Program: lines", (
        Key("enter", "enter", "choose", "Source", "Show this line and the lines around it"),
    )),
    "advice": KeyGroup("Program: findings", (
        Key("enter", "enter", "choose", "Source", "Show the source line of this finding"),
    )),
    "flame": KeyGroup("Flame graph", (
        Key("zoom_in", "enter more closer", "zoom_in", "Zoom in",
            "Give this frame the whole width; open the line or kernel that has no frames inside it"),
        Key("step_out", "back wider", "step_out", "Out", "Go one step out"),
        Key("whole", "whole", "whole", "Whole", "Show everything again", HIDDEN),
        Key("up", "arrow_up up", "up", "Around", "Go to the frame around this one", HIDDEN),
        Key("down", "arrow_down down", "down", "Inside", "Go to a frame inside this one", HIDDEN),
        Key("left", "arrow_left", "sideways(-1)", "Left", "Go to the frame on the left", HIDDEN),
        Key("right", "arrow_right", "sideways(1)", "Right", "Go to the frame on the right", HIDDEN),
        Key("first", "first", "edge(-1)", "First", "Go to the first frame of the row", HIDDEN),
        Key("last", "end last", "edge(1)", "Last", "Go to the last frame of the row", HIDDEN),
    )),
    "flame_pane": KeyGroup("Flame graph, searched", (
        Key("search", "find", "search", "Search", "Mark the frames with this in their name, and show their share",
            priority=True),
        Key("next", "next", "next(1)", "Next", "Go to the next match, the largest first", HIDDEN),
        Key("previous", "previous", "next(-1)", "Previous match", "Go to the match before", HIDDEN),
        Key("copy", "copy", "copy", "Copy", "Copy the path and the figures of this frame", HIDDEN),
        Key("clear", "back", "clear", "Clear", "End the search", HIDDEN),
    )),
    "job": KeyGroup("Job", (
        Key("findings", "findings", "findings", "Findings", "Go to what is missing, and to who is late and why"),
        Key("map", "timeline tab_1", "tab('map')", "Steps", "Show processes by steps: who is late, and since when"),
        Key("ranks", "time tab_2", "tab('ranks')", "Processes", "Show where the time of each process went"),
        Key("beside", "compare compile tab_3", "tab('beside')", "Beside the others",
            "Show this process beside the median of the others, and what it compiled again alone"),
        Key("arrivals", "tab_4", "tab('arrivals')", "Arrivals",
            "Show who arrives last at the collective, from captures", HIDDEN),
        Key("zoom", "full", "zoom", "Zoom", "Show one view alone on a large terminal, or two again", HIDDEN),
        Key("filter", "find", "filter", "Filter", "Show only processes with these words", priority=True),
        Key("copy", "copy", "copy", "Copy", "Copy the job as text; on the steps, the values under the cursor"),
        *_PANES,
        Key("read", "reload", "read", "Reload", "Read the folder again", HIDDEN),
        Key("unfilter", "back", "unfilter", "Back", "Clear the filter, or show two views again", HIDDEN),
    )),
    "job_map": KeyGroup("Job: steps", (
        Key("open", "enter", "open", "Open", "Open the session of this process; Esc comes back"),
        Key("values", "next_tab", "values(1)", "Values",
            "Show the next: own work, step time, or one part of the steps"),
        Key("values_before", "tab_before", "values(-1)", "Values before", "Show the values before", HIDDEN),
        Key("zoom_in", "more closer", "zoom(1)", "Zoom in", "Show half the steps around the cursor"),
        Key("zoom_out", "wider", "zoom(-1)", "Out", "Show twice the steps around the cursor"),
        Key("whole", "whole", "whole", "Whole", "Show all steps", HIDDEN),
        Key("sort", "sort", "sort", "Sort", "Sort by process, by lost time, or by host"),
        Key("group", "group", "group", "Group", "Make the processes of a host one row, which shows its worst"),
        *_PAN,
        Key("home", "first", "edge(-1)", "Start", "Go to the first step", HIDDEN),
        Key("end", "end", "edge(1)", "End", "Go to the last step", HIDDEN),
        Key("up", "arrow_up up", "move(-1)", "Up", "Go to the row above", HIDDEN),
        Key("down", "arrow_down down", "move(1)", "Down", "Go to the row below", HIDDEN),
        Key("page_up", "page_up", "page(-1)", "Page up", "Go a page up", HIDDEN),
        Key("page_down", "page_down", "page(1)", "Page down", "Go a page down", HIDDEN),
    )),
    "job_findings": KeyGroup("Job: findings", (
        *_OF_A_PROCESS,
    )),
    "ranks": KeyGroup("Job: processes", (
        *_OF_A_PROCESS,
        *_ORDER,
    )),
    "sessions": KeyGroup("Sessions", (
        Key("open_file", "open", "open_file", "Open file", "Open a session by its path"),
        Key("rename", "edit", "rename", "Rename", "Give this session another name"),
        Key("save_as", "export", "save_as", "Save as", "Copy this session to another place"),
        Key("delete", "delete delete_key", "delete", "Delete", "Delete this session; asks first"),
        Key("prune", "prune", "prune", "Prune", "Delete old sessions; shows which, asks first"),
        Key("filter", "find", "filter", "Filter", "Show only sessions that contain these words", priority=True),
        Key("history", "history", "history", "History", "How the workload of this session went over all of them"),
        Key("copy", "copy", "copy_path", "Copy path", "Copy the path of this session", HIDDEN),
        Key("read", "reload", "read", "Reload", "Read the folder again", HIDDEN),
        Key("back", "back", "back", "Back", "Clear the filter, or go back to Home", HIDDEN),
    )),
    "session_list": KeyGroup("Lists of sessions", (
        Key("open", "enter", "choose", "Open", "Open this session"),
    )),
    "rows": KeyGroup("Lists", (
        Key("up", "arrow_up up", "move(-1)", "Up", "Go to the row above", HIDDEN),
        Key("down", "arrow_down down", "move(1)", "Down", "Go to the row below", HIDDEN),
        Key("page_up", "page_up", "page(-1)", "Page up", "Go a page up", HIDDEN),
        Key("page_down", "page_down", "page(1)", "Page down", "Go a page down", HIDDEN),
        Key("first", "first", "edge(-1)", "First", "Go to the first row", HIDDEN),
        Key("last", "end last", "edge(1)", "Last", "Go to the last row", HIDDEN),
    )),
    "table": KeyGroup("Tables", (
        Key("left", "column_left shift_left", "sideways(-1)", "Columns left",
            "Scroll the columns to the left; the first one stays", HIDDEN),
        Key("right", "column_right shift_right", "sideways(1)", "Columns right",
            "Scroll the columns to the right; the first one stays", HIDDEN),
    )),
    "tree": KeyGroup("Lists that open", (
        Key("open", "arrow_right", "spread(1)", "Open row", "Open this row", HIDDEN),
        Key("close", "arrow_left", "spread(-1)", "Close row", "Close this row, or go to its parent", HIDDEN),
        Key("back", "back", "close_row", "Back", "Close the row that was opened here", HIDDEN),
    )),
    "facts": KeyGroup("Lines that lead to the text", (
        Key("follow", "enter", "choose", "Text", "Go to the HLO text that this line is about"),
    )),
    "filter": KeyGroup("Filter line", (
        Key("clear", "back", "clear_filter", "Clear", "Show everything again"),
        Key("keep", "enter arrow_down", "keep", "Keep", "Keep the filter and go back to the list"),
    )),
    "dialog": KeyGroup("Dialogs", (
        Key("leave", "back", "leave", "Cancel", "Close without an answer"),
    )),
    "form": KeyGroup("Forms", (
        Key("next", "arrow_down", "app.focus_next", "Next", "Go to the next field", HIDDEN),
        Key("before", "arrow_up", "app.focus_previous", "Previous", "Go to the field before", HIDDEN),
    )),
    "parameters": KeyGroup("Parameters", (
        Key("reset", "reset", "reset", "Reset", "Restore the preset's values"),
    )),
    "script": KeyGroup("Profile a script", (
        Key("next", "arrow_down", "app.focus_next", "Next", "Go to the next field", HIDDEN, priority=True),
        Key("before", "arrow_up", "app.focus_previous", "Previous", "Go to the field before", HIDDEN, priority=True),
    )),
    "choose": KeyGroup("A choice", (
        Key("take", "enter", "choose", "Choose", "Choose this line", priority=True),
        Key("up", "arrow_up", "move(-1)", "Up", "Go to the line above", HIDDEN, priority=True),
        Key("down", "arrow_down", "move(1)", "Down", "Go to the line below", HIDDEN, priority=True),
    )),
    "confirm": KeyGroup("A question", (
        Key("no", "no back", "answer(False)", "No", "Close without doing it"),
        Key("yes", "yes", "answer(True)", "Yes", "Do it"),
        Key("other", "arrow_left arrow_right", "app.focus_next", "Other", "Go to the other button", HIDDEN),
    )),
    "help": KeyGroup("Help", (
        Key("close", "back quit", "dismiss", "Close", "Back to the screen"),
        Key("turn", "help next_tab tab_before", "turn", "Other page", "The tour, or the keys of the screen"),
    )),
    "explanation": KeyGroup("What to do", (
        Key("close", "back quit enter advice", "dismiss", "Close", "Go back"),
        Key("copy", "copy", "copy", "Copy", "Copy the first command that verifies a fix"),
    )),
    "trust": KeyGroup("Checks of a capture", (
        Key("close", "back verify quit", "dismiss", "Close", "Close the list of checks"),
    )),
    "compilation": KeyGroup("A compilation", (
        Key("close", "back quit", "dismiss", "Close", "Back to the ledger"),
        Key("source", "enter", "source", "Source", "The line that it was called from"),
        Key("copy", "copy", "copy", "Copy", "Copy all of it as text"),
    )),
    "source": KeyGroup("Source lines", (
        Key("close", "back quit enter", "dismiss", "Close", "Go back"),
        Key("copy", "copy", "copy", "Copy", "Copy the place, file:line"),
    )),
}
# fmt: on
