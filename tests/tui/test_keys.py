"""One key map: a key means one thing on every screen, only the table declares keys, and dialogs name them."""

import ast
import importlib
import inspect
import pkgutil
from collections import defaultdict
from pathlib import Path

import pytest
from textual import events
from textual.message_pump import MessagePump
from textual.widgets import Button, Input

import jaxprof.tui
import program_events
from jaxprof.facts.programs import ProgramRow
from jaxprof.findings.program_result import program_result
from jaxprof.tui.home.screen import HomeScreen
from jaxprof.tui.home.start_list import WAYS, own_rows
from jaxprof.tui.keys import ACTIONS, GROUPS, IN_MENU, bindings, in_words, key_of, key_text, keys_of, letter_of, remap
from jaxprof.tui.kit.dialogs import Choose, Confirm, Option, Options, script_dialog
from jaxprof.tui.kit.host import SECTIONS
from jaxprof.tui.kit.python_source import SourceLines
from jaxprof.tui.kit.table_columns import lay_out
from jaxprof.tui.program.ledger import CompilationDialog
from tui import recorded, session_tapes
from tui.fakes import SMALL, WIDE, Stage, walking
from tui.key_meanings import MEANINGS

SOURCE = Path(jaxprof.tui.__file__).parent
DESTRUCTIVE = {"cancel", "delete"}
TEXTUALS = {"app.focus_next", "app.focus_previous", "dismiss", "command_palette", "suspend_process"}


def letters(key):
    """All but `q`, which closes a text over the screen beside the letter that opened it."""
    held = (name.removeprefix(IN_MENU) for name in keys_of(key))
    return frozenset(name for name in held if len(name) == 1 and name.isalpha() and name not in "qhjkl")


def classes():
    found = []
    for module in pkgutil.walk_packages([str(SOURCE)], "jaxprof.tui."):
        defined = [one for one in vars(importlib.import_module(module.name)).values() if inspect.isclass(one)]
        found += [one for one in defined if one.__module__ == module.name and vars(one).get("BINDINGS")]
    return found


def group_of(owner):
    (group,) = {binding.id.split(".")[0] for binding in vars(owner)["BINDINGS"]}
    return str(group)


def test_no_method_is_textuals_handler_of_a_key():
    """Textual calls `key_<name>` of a widget at that key: `key_at` at an at sign, whatever it was written for."""
    defined = [
        (one.__name__, name)
        for module in pkgutil.walk_packages([str(SOURCE)], "jaxprof.tui.")
        for one in vars(importlib.import_module(module.name)).values()
        if inspect.isclass(one) and one.__module__ == module.name and issubclass(one, MessagePump)
        for name in vars(one)
        if name.startswith(("key_", "_key_"))
    ]
    assert defined == []


def test_every_key_has_one_meaning_and_every_action_words():
    meant = [key for keys in MEANINGS for key in keys.split()]
    assert len(meant) == len(set(meant))
    assert set(meant) == {key for action in ACTIONS.values() for key in keys_of(action) if not key.startswith(IN_MENU)}
    assert [name for name, key in ACTIONS.items() if not (key.label and key.help and keys_of(key))] == []
    assert len(ACTIONS) == sum(len(group.keys) for group in GROUPS.values())
    called = defaultdict(set)
    for key in ACTIONS.values():
        if letters(key):
            called[key.label].add(letters(key))
    assert {label: found for label, found in called.items() if len(found) > 1} == {}, "one label has one letter"
    for name, group in GROUPS.items():
        in_menu = [letter for key in group.keys if (letter := letter_of(key))]
        assert len(in_menu) == len(set(in_menu)), name
    (asked,) = [group.keys for group in GROUPS.values() if {"yes", "no"} <= {key.name for key in group.keys}]
    assert {key.keys.split()[0] for key in asked if letters(key)} == {"y", "n"}, "a question has no other letters"


def test_what_destroys_is_a_capital_or_no_letter():
    found = [action for name, action in ACTIONS.items() if name.partition(".")[2] in DESTRUCTIVE]
    assert len(found) > len(DESTRUCTIVE)
    assert all(key.removeprefix(IN_MENU).isupper() for action in found for key in keys_of(action))


def test_only_the_table_declares_keys():
    for path in SOURCE.rglob("*.py"):
        if path.name in ("keys.py", "dialogs.py"):  # the menu has the letters of the table
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                assert getattr(node.func, "id", "") != "Binding", f"{path}:{node.lineno}"
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.name not in ("on_key", "_on_key"), f"{path}:{node.lineno}"


def test_each_group_is_of_one_class_which_has_its_actions():
    used = defaultdict(list)
    for owner in classes():
        group = group_of(owner)
        assert vars(owner)["BINDINGS"] == bindings(group), owner
        used[group].append(owner)
        for key in GROUPS[group].keys:
            method = f"action_{key.action.removeprefix('screen.').split('(')[0]}"
            has = HomeScreen if key.action.startswith("screen.") else owner
            assert key.action in TEXTUALS or hasattr(has, method), (owner, method)
    assert set(used) == set(GROUPS)
    assert [group for group, owners in used.items() if len(owners) > 1] == []


SYNONYMS = {"ctrl+q": "q", "shift+tab": "tab", "shift+left": "left", "shift+right": "right"} | dict(
    zip("hjkl", ("left", "down", "up", "right"), strict=True)
)
"""The same key with a modifier, or the letter of an arrow."""
OF_THE_TERMINAL = {"ctrl+c", "ctrl+z"}


def test_at_most_36_keys_without_the_menu():
    held = {key for action in ACTIONS.values() for key in keys_of(action) if not key.startswith(IN_MENU)}
    assert len({SYNONYMS.get(key, key) for key in held} - OF_THE_TERMINAL) <= 36


@pytest.mark.usefixtures("small_catalogue", "shelf")
async def test_menu_acts_by_its_letters_on_every_screen():
    async with walking() as walk:
        app = walk.app
        labels = ("⏎ Choose", "+ Add function", "m Menu", "? Help", "q Quit")
        for size in (SMALL, WIDE):
            await walk.pilot.resize_terminal(*size)
            await walk.until(lambda: [one for one in labels if one not in walk.text.splitlines()[-1]] == [])
        await walk.through("""
            m | @Choose
            x | @FormDialog
            escape m m | @HomeScreen
            m enter
        """)
        await walk.until(lambda: not isinstance(walk.screen, Choose | HomeScreen), "Enter does what the line says")
        await walk.press("escape escape")
        for session, modes in SECTIONS_SHOW:
            app.set_session(session().session(), None)
            for section, mode in [*zip(SECTIONS, modes.split(), strict=True)][::-1]:
                await walk.press(key_of(f"app.mode.{section}"))
                await walk.until(lambda section=section: getattr(walk.screen, "section", "") == section, section)
                assert app.current_mode == mode
        await walk.show(recorded.finished(), "program", "step")
        await walk.through(  # what is dimmed says why
            "m | not now: this program has ended | not now: no capture of this program was read yet | !not now: Show"
        )


@pytest.mark.usefixtures("small_catalogue", "shelf")
async def test_keys_that_arrive_together_close_a_dialog_once():
    async with walking() as walk:
        home = await walk.home()
        await walk.press("m")
        menu = await walk.on("Choose")
        for letter in "mmm":
            menu.on_key(events.Key(letter, letter))
        menu.action_leave()
        await walk.until(lambda: walk.screen is home)
        await walk.press("?")
        await walk.on("HelpScreen")
        menu.on_key(events.Key("m", "m"))
        assert type(walk.screen).__name__ == "HelpScreen"
        await walk.press("escape")
        await walk.home()
        await walk.press("c", "mark one with Space and go to the other; marked now: none")
        await walk.show(recorded.finished(), "program", "step")
        for times, place in enumerate(("5 m t", "4"), 1):
            await walk.press(place, "has no capture")
            await walk.press("/")
            await walk.until(lambda times=times: walk.said.count("has no capture") == times, place)
            assert not isinstance(walk.app.focused, Input), "nothing is filtered that is not there"


MENUS = (
    "home start devices", "results scroll", "reader scroll",
    "hlo kernels hlo_findings text text_pane facts",
    "profile overview timeline_pane timeline time_tree buffers memory",
    "program ledger advice", "job processes job_findings",
    "rows tree app",
)  # fmt: skip
"""Groups whose actions can stand in one menu."""


@pytest.mark.usefixtures("small_catalogue", "shelf")
async def test_no_line_of_a_menu_is_cut_at_80_columns():
    async with walking(SMALL) as walk:
        await walk.press("m", "x  Profile script")
        shown_list = walk.find(Options)
        width = shown_list.scrollable_content_region.width
        listed = {name for names in MENUS for name in names.split()}
        opening = {name for name, group in GROUPS.items() if any(letter_of(key) for key in group.keys)}
        dialogs = {"explanation", "source", "confirm"}
        assert opening - listed - dialogs == set()
        cut = []
        for names in MENUS:
            keys = [key for name in names.split() for key in GROUPS[name].keys if letter_of(key)]
            rows = [Option(key.label, key.help, letter_of(key)) for key in keys]
            note = lay_out(shown_list._columns, width, rows)[-1]
            cut += [(names, row.note, note.width) for row in rows if len(row.note) > note.width]
        assert cut == []


SECTIONS_SHOW = [
    (recorded.finished, "home program program hlo profile profile"),
    (session_tapes.finished, "home results profile hlo profile profile"),
]


def test_keys_are_written_as_people_write_them():
    keys = ("slash", "ctrl+p", "escape", "m:f", "f", "shift+tab")
    assert [key_text(key) for key in keys] == ["/", "^p", "Esc", "m f", "f", "shift+Tab"]
    assert [in_words(name) for name in ("results.compare", "hlo.trust")] == ["c", "m, then V"]
    try:
        remap({"results.compare": "ctrl+k,F4"})
        assert key_of("results.compare") == "^k"
        remap({"home.program": "f8"})
        assert key_of("home.program") == "F8"
    finally:
        remap({})
    assert key_of("results.compare") == "c"


def compilation():
    result = program_result(recorded.finished().session(), "r1")
    return ProgramRow(result, result.compiles[0])


DRAWN = {"up": "↑", "down": "↓", "left": "←", "right": "→"}
LINES = [Option(f"line {number}") for number in range(9)]
DIALOGS = {
    "question": lambda: Confirm("Delete it?", "This cannot be undone.", "Delete"),
    "choice": lambda: Choose("Which?", LINES),
    "script": script_dialog,
    "compilation": lambda: CompilationDialog(compilation()),
    "source": lambda: SourceLines(program_events.at(3), {}),
}


@pytest.mark.usefixtures("catalogue", "one_moment", "shelf")
async def test_a_dialog_and_the_forms_of_home_name_their_keys():
    async with walking() as walk:
        for name, made in DIALOGS.items():
            dialog = made()
            walk.app.push_screen(dialog)
            await walk.until(lambda dialog=dialog: walk.screen is dialog)
            await walk.pause()
            text = " ".join([walk.text, *(str(button.label) for button in dialog.query(Button))])
            declared = [binding for kind in type(dialog).__mro__ for binding in vars(kind).get("BINDINGS", ())]
            groups = {(getattr(binding, "id", None) or "").split(".")[0] for binding in declared} & set(GROUPS)
            assert groups
            assert [
                f"{name}: {group}.{key.name}"
                for group in groups
                for key in GROUPS[group].keys
                if not any(DRAWN.get(each, key_text(each)) in text for each in keys_of(key))
            ] == []
            walk.app.pop_screen()
        await walk.shows("selu")
        await walk.press("tab")
        for keys in ("e", "+", "m B"):
            await walk.press(keys, "Esc cancels")
            assert ("Reset" in walk.text) is (keys == "e")
            await walk.press("escape", gone="Esc cancels")


async def test_tour_is_offered_without_sessions(tmp_path):
    stage = Stage()
    stage.app.folder = tmp_path
    async with walking(SMALL, stage) as walk:
        await walk.through("""
            | Keys and screens
            down down down enter | @HelpScreen
            escape 2 ? | @HelpScreen | ▸ 2 Summary | What costs most, and what to do
            end | Everywhere | Search
        """)
    (tmp_path / "train.py").write_text("import jax\n")
    assert not [row for row in own_rows([], tmp_path) if row in WAYS]
