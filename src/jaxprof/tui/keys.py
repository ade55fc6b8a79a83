"""Every key of the app, and what it does where: key bars, help, palette, docs and the bindings of screens are made from
this table.

A key has one meaning on every screen and in every dialog, which `tests/tui/key_meanings.py` says. Actions without a key
of their own are in the menu. Destructive actions have a capital letter, or ask first. No other file declares a key
(`tests/tui/test_keys.py`). Imports no Textual before a screen asks for its bindings, so that `jaxprof config` can check
a user's keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jaxprof.base.values import frozen

if TYPE_CHECKING:
    from textual.binding import BindingType

HIDDEN, SHOWN, FIRST, LAST_RANK = range(4)
"""Whether the key bar shows an action, and whether it is among the last that a narrow terminal drops; keys of
`LAST_RANK` are at its right end and never dropped."""


@frozen
class Key:
    name: str
    """Name in its group. Group and name with a dot between are the id of the binding, which a user's keys name."""
    keys: str
    """Textual's names of its keys, separated by spaces. `m:h` is the letter h in the menu."""
    action: str
    label: str
    help: str
    bar: int = SHOWN
    priority: bool = False
    """Whether its keys take precedence over those of the focused widget."""


@frozen
class KeyGroup:
    title: str
    keys: tuple[Key, ...]


# fmt: off
_TABS = (
    Key("next_tab", "right_square_bracket", "next_tab(1)", "Next tab", "Go to the next tab", HIDDEN),
    Key("tab_before", "left_square_bracket", "next_tab(-1)", "Previous tab", "Go to the previous tab", HIDDEN),
)
_PANES = (
    Key("next", "tab", "app.focus_next", "Next pane", "Go to the next pane", HIDDEN),
    Key("last", "shift+tab", "app.focus_previous", "Previous pane", "Go to the previous pane", HIDDEN),
)
_MATCHES = (
    Key("next", "n", "next(1)", "Next", "Go to the next match", HIDDEN),
    Key("previous", "N", "next(-1)", "Previous match", "Go to the previous match", HIDDEN),
)
_ORDER = (
    Key("sort", "s", "sort_by_next", "Sort", "Sort by the next column"),
    Key("turn", "m:S", "turn", "Reverse", "Reverse the order"),
)
_FILTER = Key("filter", "slash", "filter", "Filter", "Show only rows that contain these words", priority=True)
_EXPLAIN = Key("explain", "m:a", "explain", "What to do", "What to change, the most expensive first")
_TRUST = Key("trust", "m:V", "trust", "Checks", "List every check of this capture")
_OF_A_PROCESS = (Key("open", "enter", "choose", "Open", "Open the session of this process; Esc comes back"),)
GROUPS: dict[str, KeyGroup] = {
    "app": KeyGroup("Everywhere", (
        Key("mode.start", "1", "section('start')", "Start",
            "What runs; your code, sessions, workloads, devices", HIDDEN),
        Key("mode.summary", "2", "section('summary')", "Summary",
            "What costs most, and what to do: runs, a program or a job; press again for the next", HIDDEN),
        Key("mode.compiles", "3", "section('compiles')", "Compiles",
            "What was compiled, for how long, and why again; of a workload, the passes", HIDDEN),
        Key("mode.kernels", "4", "section('kernels')", "Kernels",
            "What XLA made of a run: kernels, and the text of each stage", HIDDEN),
        Key("mode.timeline", "5", "section('timeline')", "Timeline",
            "When things ran, when the device was idle", HIDDEN),
        Key("mode.memory", "6", "section('memory')", "Memory",
            "Does it fit, and what makes up the peak memory", HIDDEN),
        Key("help", "question_mark", "help", "Help", "What each screen answers, and all keys of this screen"),
        Key("menu", "m", "menu", "Menu", "All that can be done here, in words, each with its letter", priority=True),
        Key("export", "m:E", "export", "Export", "As a page, as Markdown, or for Perfetto",
            HIDDEN),
        Key("palette", "ctrl+p", "command_palette", "Search",
            "Every action with its key; kernels, source lines, functions and sessions"),
        Key("quit", "q", "quit", "Quit", "Quit jaxprof; asks first while a run is in progress"),
        Key("quit_always", "ctrl+q", "quit", "Quit", "Quit jaxprof", HIDDEN, priority=True),
        Key("interrupt", "ctrl+c", "interrupt", "Cancel the run",
            "Cancel the current run and what was queued with it; twice: quit", HIDDEN),
        Key("suspend", "ctrl+z", "suspend_process", "Suspend", "Leave for the shell; fg there comes back", HIDDEN),
        Key("back", "escape", "back", "Back", "Go back to the previous screen", HIDDEN),
        Key("stop_reading", "escape", "stop_reading", "Stop reading",
            "Stop reading the profile; the session in view stays", FIRST, priority=True),
    )),
    "home": KeyGroup("Start", (
        Key("filter", "slash", "filter", "Filter", "Show only rows that contain these words", FIRST, priority=True),
        Key("edit", "e", "edit", "Parameters", "Sizes, sweep, variants, time budget and launches"),
        Key("preset", "m:p", "preset", "Preset", "Switch between quick and published sizes"),
        Key("open_file", "m:o", "open_file", "Open file", "Open a session, a profile or HLO by its path"),
        Key("devices", "m:d", "devices", "Devices", "Choose the devices to run on"),
        Key("own", "plus", "own", "Add function", "Add a function of your own to measure: file.py:function"),
        Key("program", "m:x", "program", "Profile script", "Run and record a script of your own: train.py", FIRST),
        Key("compile_for", "m:B", "compile_for", "Compile for", "Estimate its kernels for a device that is not here"),
        Key("compare", "c", "compare", "Compare", "Measure two in turns, or compare two sessions", FIRST),
        Key("run", "r", "run", "Run", "Run the marked workloads, or this one", HIDDEN),
        Key("back", "escape", "back", "Back", "Clear the filter, or go back to the list", HIDDEN),
        *_PANES,
    )),
    "start": KeyGroup("Start: the list", (
        Key("choose", "enter", "choose", "Choose", "Do what the line says"),
        Key("mark", "space", "mark", "Mark", "Mark or unmark: two sessions or workloads are compared"),
        Key("rename", "e", "screen.kept('rename')", "Rename", "Give this session another name"),
        Key("delete", "m:D", "screen.kept('delete')", "Delete", "Delete this session; asks first"),
        Key("copy", "y", "copy_path", "Copy path", "Copy the path of this session", HIDDEN),
    )),
    "devices": KeyGroup("Start: devices", (
        Key("open", "enter", "choose", "Open", "Show who uses this device, its clocks and links"),
        Key("mark", "space", "screen.toggle_device", "Run on", "Mark or unmark this device to run on"),
    )),
    "results": KeyGroup("Summary: runs", (
        Key("open", "enter", "open", "Open", "Give the lower part the full room, or open the program; Esc comes back"),
        Key("cancel", "C", "cancel", "Cancel", "Cancel this run; the others go on", FIRST),
        Key("again", "r", "again", "Run again", "Run this again, together with its baseline"),
        Key("mark", "space", "mark", "Mark", "Mark or unmark this run: two are compared"),
        Key("compare", "c", "compare", "Compare", "Compare the two marked runs, or the compared sides", FIRST),
        _EXPLAIN,
        Key("sort", "s", "sort", "Sort", "Sort by the next column"),
        Key("reverse", "m:S", "reverse", "Reverse", "Reverse the order"),
        Key("copy", "y", "copy", "Copy", "Copy this row as text"),
        Key("log", "m:l", "log", "Output", "The process's output: stdout and stderr"),
        Key("unzoom", "escape", "unzoom", "Back", "Go back to the list", FIRST),
        Key("next", "n", "step(1)", "Next run", "The next run of the session", HIDDEN),
        Key("previous", "N", "step(-1)", "Previous run", "The previous run of the session", HIDDEN),
    )),
    "reader": KeyGroup("Texts over a screen", (
        Key("close", "escape q enter", "dismiss", "Close", "Go back"),
        Key("copy", "y", "copy", "Copy", "Copy the whole text"),
    )),
    "scroll": KeyGroup("Long texts", (
        Key("down", "j", "scroll(1)", "Down", "A line down", HIDDEN),
        Key("up", "k", "scroll(-1)", "Up", "A line up", HIDDEN),
    )),
    "hlo": KeyGroup("Kernels", (
        Key("capture", "w", "capture", "Capture", "Capture the program, which has no HLO yet", FIRST),
        Key("filter", "slash", "filter", "Filter",
            "Show only rows with these words; kind: scope: file: name: search one field", priority=True),
        Key("next_tab", "right_square_bracket", "next_tab(1)", "Next tab", "Go to the next tab"),
        Key("tab_before", "left_square_bracket", "next_tab(-1)", "Previous tab", "Go to the previous tab", HIDDEN),
        Key("compare", "c", "compare", "Compare", "Compare this module with another one", FIRST),
        Key("program", "m:R", "choose_program", "Choose run", "Choose the run or module to show"),
        Key("device", "m:d", "choose_device", "Device", "Choose the device to compare kernels with"),
        Key("profile", "m:t", "profile", "Timeline", "Show this kernel in the run's timeline"),
        _TRUST,
        Key("open", "m:o", "open_file", "Open file", "Open HLO (text or proto), or XLA's dumps"),
        *_PANES,
        Key("back", "escape", "back", "Back",
            "Clear the search or filter, else go from the text to the lists, else go back", HIDDEN),
        Key("tab.kernels", "m:1", "tab('kernels')", "Show Kernels", "Go to the Kernels tab"),
        Key("tab.findings", "m:f", "tab('findings')", "Show Findings", "Go to the Findings tab"),
        Key("tab.roofline", "m:4", "tab('roofline')", "Show Roofline", "Go to the Roofline tab"),
        Key("tab.jaxpr", "m:6", "tab('jaxpr')", "Show jaxpr", "Go to the jaxpr tab"),
        Key("tab.stablehlo", "m:7", "tab('stablehlo')", "Show StableHLO", "Go to the StableHLO tab"),
        Key("tab.hlo_before", "m:8", "tab('hlo_before')", "Show HLO (unoptimised)", "Go to the HLO (unoptimised) tab"),
        Key("tab.hlo", "m:9", "tab('hlo')", "Show HLO", "Go to the HLO tab"),
    )),
    "kernels": KeyGroup("Kernels: kernels", (
        Key("enter", "enter", "choose", "Text", "Go to the kernel's text; on a group, open or close it"),
        *_ORDER,
        Key("group", "m:g", "group", "Group", "Group by kind, line, scope or direction"),
        Key("open_all", "m:Z", "open_all", "Open all", "Open or close all groups"),
    )),
    "hlo_findings": KeyGroup("Kernels: findings", (
        Key("enter", "enter", "choose", "Kernel", "Go to the kernel of this finding"),
    )),
    "text": KeyGroup("Kernels: text", (
        Key("space", "space", "page(1)", "Page down", "Go a page down", HIDDEN),
        Key("scroll_left", "left h shift+left", "sideways(-1)", "Scroll left", "To the start of long lines", HIDDEN),
        Key("scroll_right", "right l shift+right", "sideways(1)", "Scroll right", "To the end of long lines", HIDDEN),
        Key("follow", "enter", "choose", "Definition", "Go to the definition of what the line calls or takes"),
        Key("copy", "y", "copy", "Copy", "Copy the line at the cursor", HIDDEN),
    )),
    "text_pane": KeyGroup("Kernels: text, searched", (
        Key("search", "slash", "search", "Search", "Search with a regular expression", priority=True),
        *_MATCHES,
        Key("back", "m:comma", "history", "Back", "Go back to what was shown before"),
    )),
    "profile": KeyGroup("Timeline and memory", (
        Key("capture", "w", "capture", "Capture", "Capture the program, which has no profile yet", FIRST),
        Key("overview", "m:T", "tab('overview')", "Overview", "Show kernels, idle time and steps"),
        Key("timeline", "m:t", "tab('timeline')", "Timeline", "Show when things ran, lane by lane"),
        Key("time", "m:W", "tab('time')", "Time", "Show where the time went, summed and over time"),
        Key("flame", "m:O", "tab('flame')", "Flame", "Show the lines under the loops that led to them"),
        Key("lines", "m:L", "tab('lines')", "Lines", "Show the lines that took the time"),
        Key("compile", "m:b", "tab('compile')", "Compile", "Show the compile's time by phase and pass"),
        Key("memory", "m:m", "tab('memory')", "Memory", "Show what makes up the peak memory"),
        _TRUST,
        Key("run", "m:R", "choose_run", "Choose run", "Choose the run to show"),
        _FILTER,
        Key("back", "escape", "back", "Back", "Clear the search, or go back"),
        *_TABS,
    )),
    "overview": KeyGroup("Timeline: overview", (
        Key("hlo", "enter", "choose", "HLO", "Go to the HLO of this kernel or program"),
    )),
    "timeline_pane": KeyGroup("Timeline, searched", (
        Key("search", "slash", "search", "Search", "Search the names with a regular expression", priority=True),
        *_MATCHES,
        Key("again", "m:*", "again", "Same again", "Search for the name under the cursor; n goes on"),
        Key("hlo", "m:h", "hlo", "HLO", "Go to the HLO of the kernel under the cursor"),
    )),
    "timeline": KeyGroup("Timeline", (
        Key("zoom_in", "plus", "browse('zoom_by', 1)", "Zoom in", "Show half as much around the cursor"),
        Key("zoom_out", "minus", "browse('zoom_by', -1)", "Out", "Show twice as much around the cursor"),
        Key("whole", "m:0", "browse('show_whole')", "Whole", "Show all of it"),
        Key("left", "left h", "browse('pan', -1)", "Earlier", "Pan to the left; at the start, move the cursor", HIDDEN),
        Key("right", "right l", "browse('pan', 1)", "Later", "Pan to the right; at the end, move the cursor", HIDDEN),
        Key("step_left", "shift+left", "browse('step', -1)", "Previous column", "Move a column to the left", HIDDEN),
        Key("step_right", "shift+right", "browse('step', 1)", "Next column", "Move a column to the right", HIDDEN),
        Key("home", "home", "browse('edge', -1)", "Start", "Go to the start", HIDDEN),
        Key("end", "end", "browse('edge', 1)", "End", "Go to the end", HIDDEN),
        Key("fit", "m:F", "browse('fit')", "Fit", "Zoom to the range, or to what the cursor is on"),
        Key("next_event", "m:.", "browse('event', 1)", "Next event", "Go to the next event of this lane"),
        Key("last_event", "m:comma", "browse('event', -1)", "Previous event", "Go to the previous event of this lane"),
        Key("longest_idle", "m:I", "browse('longest')", "Longest idle", "Go to the longest idle period, then the next"),
        Key("up", "up k", "move(-1)", "Lane above", "Go to the lane above", HIDDEN),
        Key("down", "down j", "move(1)", "Lane below", "Go to the lane below", HIDDEN),
        Key("range", "space", "browse('mark')", "Range",
            "Start a range, which ends at the cursor, and show its totals; press again, or Esc, to clear it"),
        Key("launch", "m:M", "browse('follow')", "Launch", "Go from a kernel to its launch, and back"),
        Key("open", "enter", "browse('open')", "Open", "Open or close the lane: a line for each thread and level"),
    )),
    "time_tree": KeyGroup("Nested times: passes, lines", (
        Key("source", "enter", "choose", "Open", "Show the lines around this one; open or close any other row"),
        Key("open", "space", "open", "Open row", "Open or close this row", HIDDEN),
        Key("open_all", "m:Z", "open_all", "Open all", "Open or close all"),
        Key("sort", "s", "sort", "Sort", "Switch between stages and passes as they nest"),
    )),
    "buffers": KeyGroup("Memory", (
        Key("hlo", "enter", "choose", "HLO", "Go to the instruction that makes this buffer"),
    )),
    "memory": KeyGroup("Memory: over the schedule", (
        Key("before", "left h", "step(-1)", "Earlier", "Go to the instruction before, and list what is alive there"),
        Key("after", "right l", "step(1)", "Later", "Go to the next instruction, and list what is alive there"),
        Key("change_before", "m:comma", "change(-1)", "Change before", "Back to a change of 1 % of the peak or more"),
        Key("next_change", "m:.", "change(1)", "Next change", "Go to the next change of 1 % of the peak or more"),
    )),
    "program": KeyGroup("Summary: program", (
        Key("ledger", "m:b", "tab('ledger')", "Ledger", "Show what was compiled, for how long, and why"),
        Key("findings", "m:f", "tab('findings')", "Findings", "Show what is worth changing, and where"),
        Key("output", "m:l", "tab('output')", "Output", "Show what the program printed"),
        _FILTER,
        Key("capture", "w", "capture", "Capture", "Profile it for a moment; if ended, run it again", FIRST),
        Key("cancel", "C", "cancel", "Cancel", "Interrupt it; again: terminate it, then kill it", FIRST),
        Key("again", "r", "again", "Run again", "Run this program again"),
        Key("profile", "m:t", "profile", "Timeline", "Show the timeline of the last capture"),
        Key("hlo", "m:h", "hlo", "HLO", "Show kernels and HLO of the last capture"),
        _EXPLAIN,
        Key("unfilter", "escape", "unfilter", "Back", "Clear the filter", HIDDEN),
        *_TABS,
    )),
    "ledger": KeyGroup("Compiles: ledger", (
        Key("enter", "enter", "choose", "Open", "Open or close this function; show all of a compilation"),
        Key("open_all", "m:Z", "open_all", "Open all", "Open or close all functions"),
        *_ORDER,
    )),
    "advice": KeyGroup("Summary: program: findings", (
        Key("enter", "enter", "choose", "Source", "Show the source line of this finding"),
    )),
    "job": KeyGroup("Summary: job", (
        Key("findings", "m:f", "findings", "Findings", "Go to what is missing and who is late"),
        Key("map", "m:t", "tab('map')", "Steps", "Show who is late at which steps"),
        Key("ranks", "m:T", "tab('ranks')", "Processes", "Show where the time of each process went"),
        _FILTER,
        Key("copy", "y", "copy", "Copy", "Copy the job; on the steps: the cell's values"),
        *_PANES,
        Key("read", "m:U", "read", "Reload", "Read the folder again"),
        Key("unfilter", "escape", "unfilter", "Back", "Clear the filter", HIDDEN),
    )),
    "processes": KeyGroup("Summary: job: processes", (
        *_OF_A_PROCESS,
        Key("left", "left h", "step(-1)", "Earlier", "Go to the steps before", HIDDEN),
        Key("right", "right l", "step(1)", "Later", "Go to the next steps", HIDDEN),
        Key("values", "right_square_bracket", "values(1)", "Values",
            "Show the next: own work, step time, or one part of the steps"),
        Key("values_before", "left_square_bracket", "values(-1)", "Values before", "Show the values before", HIDDEN),
        *_ORDER,
    )),
    "job_findings": KeyGroup("Summary: job: findings", (
        *_OF_A_PROCESS,
    )),
    "rows": KeyGroup("Lists", (
        Key("up", "up k", "move(-1)", "Up", "Go to the row above", HIDDEN),
        Key("down", "down j", "move(1)", "Down", "Go to the row below", HIDDEN),
        Key("page_up", "pageup", "page(-1)", "Page up", "Go a page up", HIDDEN),
        Key("page_down", "pagedown", "page(1)", "Page down", "Go a page down", HIDDEN),
        Key("first", "home", "edge(-1)", "First", "Go to the first row", HIDDEN),
        Key("last", "end", "edge(1)", "Last", "Go to the last row", HIDDEN),
    )),
    "tree": KeyGroup("Lists that open", (
        Key("open", "right l", "spread(1)", "Open row", "Open this row", HIDDEN),
        Key("close", "left h", "spread(-1)", "Close row", "Close this row, or go to its parent", HIDDEN),
        Key("back", "escape", "close_row", "Back", "Close the row that was opened here", HIDDEN),
    )),
    "facts": KeyGroup("Lines that lead to the text", (
        Key("follow", "enter", "choose", "Text", "Go to the HLO text that this line is about"),
    )),
    "filter": KeyGroup("Filter line", (
        Key("clear", "escape", "clear_filter", "Clear", "Show everything again"),
        Key("keep", "down", "keep", "Keep", "Keep the filter and go back to the list"),
        Key("choose", "enter", "choose", "Choose", "The same; on Start, also choose the row under the cursor"),
    )),
    "dialog": KeyGroup("Dialogs", (
        Key("leave", "escape", "leave", "Cancel", "Close without an answer"),
    )),
    "form": KeyGroup("Forms", (
        Key("next", "down", "app.focus_next", "Next", "Go to the next field", HIDDEN, priority=True),
        Key("before", "up", "app.focus_previous", "Previous", "Go to the field before", HIDDEN, priority=True),
    )),
    "choose": KeyGroup("A choice", (
        Key("take", "enter", "choose", "Choose", "Choose this line", priority=True),
        Key("up", "up", "move(-1)", "Up", "Go to the line above", HIDDEN, priority=True),
        Key("down", "down", "move(1)", "Down", "Go to the line below", HIDDEN, priority=True),
    )),
    "confirm": KeyGroup("A question", (
        Key("no", "n", "answer(False)", "No", "Close without doing it"),
        Key("yes", "y", "answer(True)", "Yes", "Do it"),
    )),
    "explanation": KeyGroup("What to do", (
        Key("copy", "y", "copy", "Copy", "Copy the first command that verifies a fix"),
    )),
    "compilation": KeyGroup("A compilation", (
        Key("source", "enter", "source", "Source", "The line that it was called from"),
    )),
    "source": KeyGroup("Source lines", (
        Key("copy", "y", "copy", "Copy", "Copy the source location, file:line"),
    )),
}
# fmt: on

SHOWN_AS = {
    "slash": "/", "question_mark": "?", "full_stop": ".", "comma": ",", "plus": "+", "equals_sign": "=", "minus": "-",
    "underscore": "_", "left_square_bracket": "[", "right_square_bracket": "]", "less_than_sign": "<",
    "greater_than_sign": ">", "asterisk": "*", "number_sign": "#", "dollar_sign": "$", "left_curly_bracket": "{",
    "right_curly_bracket": "}", "escape": "Esc", "enter": "Enter", "space": "Space", "tab": "Tab",
}  # fmt: skip
"""Names of keys as people write them, by Textual's names."""

ACTIONS = {f"{group}.{key.name}": key for group, listed in GROUPS.items() for key in listed.keys}
IN_MENU = "m:"
"""Prefix of a key that is the letter of an action in the menu."""
LETTERS = frozenset("rwcCyes")
"""Keys whose actions are also in the menu, under the same letter."""
_remapped: dict[str, str] = {}


def keys_of(action: Key) -> list[str]:
    return action.keys.split()


def letter_of(action: Key) -> str:
    """Return the letter of an action in the menu; empty if it is not there, as for one that only moves the cursor."""
    listed = [key.removeprefix(IN_MENU) for key in keys_of(action) if key.startswith(IN_MENU) or key in LETTERS]
    return key_text(listed[0]) if listed else ""


def bindings(group: str) -> list[BindingType]:
    from textual.binding import Binding

    return [
        Binding(
            key,
            action.action,
            action.label,
            show=action.bar > HIDDEN,
            tooltip=action.help,
            priority=action.priority,
            id=f"{group}.{action.name}",
        )
        for action in GROUPS[group].keys
        for key in keys_of(action)
    ]


def remap(keys: Mapping[str, str]) -> None:
    """Remember the user's keys by binding id, for `key_of`; the app sets them with `App.set_keymap`."""
    _remapped.clear()
    _remapped.update(keys)


def check_keys(keys: Mapping[str, str]) -> dict[str, str]:
    """Return a user's keys by binding id, as Textual names them. Raises UsageError for what is no action or key."""
    from jaxprof.base.errors import UsageError, unknown_name

    by_action: dict[str, str] = {}
    for action, keys_text in keys.items():
        if action not in ACTIONS:
            raise unknown_name("action", action, ACTIONS)
        by_action[action] = ",".join(word.strip() for word in keys_text.split(",") if word.strip())
        if not by_action[action]:
            raise UsageError(f"keys.{action} is empty", "Name a key: ctrl+k, F4, x.")
    return by_action


@frozen
class Clash:
    """A key that the user gives to two actions that work at once, so that one of them is never reached."""

    key: str
    actions: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.key} is assigned to both {self.actions[0]} and {self.actions[1]}: only one of them can work"


def clashes(keys: Mapping[str, str]) -> list[Clash]:
    """Return where a user's keys, as `checked` returns them, collide with each other or with a key of the table."""

    def keys_now(name: str) -> set[str]:
        return set(keys[name].split(",") if name in keys else keys_of(ACTIONS[name]))

    collisions = []
    order = list(keys)
    for name in keys:
        group = name.partition(".")[0]
        for other, action in ACTIONS.items():
            groups = {group, other.partition(".")[0]}
            if (
                (len(groups) > 1 and groups.isdisjoint(("app", "rows")))
                or other == name
                or (other in keys and order.index(other) < order.index(name))
            ):
                continue
            if set(keys_of(ACTIONS[name])) & set(keys_of(action)):
                continue  # by default they share a key: at any time only one of them does something
            collisions += [Clash(key_text(key), (name, other)) for key in sorted(keys_now(name) & keys_now(other))]
    return collisions


def key_of(binding_id: str) -> str:
    """Return the key of an action for a text on screen: `a`, `Esc`. Raises KeyError for an unknown id."""
    first = (_remapped.get(binding_id) or ",".join(keys_of(ACTIONS[binding_id]))).split(",")[0].strip()
    return key_text(first)


def in_words(binding_id: str) -> str:
    """Return the key of an action for a sentence: `q`, or `m, then V` for a letter of the menu."""
    return ", then ".join(key_of(binding_id).split(" "))


def key_text(key: str) -> str:
    """Return Textual's name of a key as people write it: `/` for `slash`, `^p` for `ctrl+p`."""
    if key.startswith(IN_MENU):
        return f"{key_of('app.menu')} {key_text(key.removeprefix(IN_MENU))}"
    *modifiers, last = key.split("+") if key != "+" else [key]
    last = SHOWN_AS.get(last, last.upper() if last[0] == "f" and last[1:].isdigit() else last)
    return "".join("^" if word == "ctrl" else f"{word}+" for word in modifiers) + last
