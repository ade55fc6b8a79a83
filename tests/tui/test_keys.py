"""One key map: a key means one thing on every screen, and nothing but the table declares keys."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import jaxprof.tui
from jaxprof.tui.home.screen import HomeScreen
from jaxprof.tui.key_table import FORMER, GROUPS, MEANINGS, Key
from jaxprof.tui.keys import ACTIONS, IN_MENU, as_markdown, bindings, checked, key_of, keys_of, letter_of, remap, shown
from jaxprof.tui.kit.script_dialog import ScriptDialog
from jaxprof.tui.kit.table_columns import placed
from jaxprof.tui.menu import Menu, MenuEntry, MenuList
from jaxprof.tui.profiler import PLACES
from jaxprof.tui.program.screen import nothing_recorded
from tui import recorded, session_tapes
from tui.fakes import SMALL, WIDE, walking

SOURCE = Path(jaxprof.tui.__file__).parent
DOCUMENT = Path(__file__).parents[2] / "docs" / "keys.md"
GENERATED = "<!-- made from src/jaxprof/tui/key_table.py by UPDATE_KEYS=1 pytest tests/tui/test_keys.py -->\n"
DESTRUCTIVE = {"cancel", "cancel_all", "delete", "prune"}
TEXTUALS = {"app.focus_next", "app.focus_previous", "dismiss", "command_palette", "suspend_process"}


def letters(key: Key) -> frozenset[str]:
    """All but `q`, which closes a text over the screen beside the letter that opened it."""
    held = (name.removeprefix(IN_MENU) for name in keys_of(key))
    return frozenset(name for name in held if len(name) == 1 and name.isalpha() and name not in "qhjkl")


def classes() -> list[type[Any]]:
    """The classes of the app that have bindings of their own."""
    found = []
    for module in pkgutil.walk_packages([str(SOURCE)], "jaxprof.tui."):
        defined = [one for one in vars(importlib.import_module(module.name)).values() if inspect.isclass(one)]
        found += [one for one in defined if one.__module__ == module.name and vars(one).get("BINDINGS")]
    return found


def group_of(owner: type[Any]) -> str:
    (group,) = {binding.id.split(".")[0] for binding in vars(owner)["BINDINGS"]}
    return str(group)


def test_every_key_has_one_meaning_and_is_used() -> None:
    meant = [key for keys in MEANINGS for key in keys.split()]
    assert len(meant) == len(set(meant))
    assert set(meant) == {key for action in ACTIONS.values() for key in keys_of(action)}


def test_a_question_is_answered_by_letters_that_mean_something_else_where_there_are_no_others() -> None:
    (asked,) = [name for name, group in GROUPS.items() if {"yes", "no"} <= {key.name for key in group.keys}]
    assert {key.keys.split()[0] for key in GROUPS[asked].keys if letters(key)} == {"y", "n"}


def test_what_is_called_the_same_has_the_same_letter() -> None:
    called = defaultdict(set)
    for key in ACTIONS.values():
        if letters(key):
            called[key.label].add(letters(key))
    assert {label: found for label, found in called.items() if len(found) > 1} == {}


def test_what_destroys_is_a_capital_or_no_letter() -> None:
    found = [action for name, action in ACTIONS.items() if name.partition(".")[2] in DESTRUCTIVE]
    assert len(found) > len(DESTRUCTIVE)
    assert all(key.removeprefix(IN_MENU).isupper() for action in found for key in keys_of(action))


def test_every_action_is_explained() -> None:
    for name, key in ACTIONS.items():
        assert key.label, name
        assert key.help, name
    names = [f"{group}.{key.name}" for group, listed in GROUPS.items() for key in listed.keys]
    assert len(names) == len(set(names))


def test_only_the_table_declares_keys() -> None:
    for path in SOURCE.rglob("*.py"):
        if path.name in ("keys.py", "menu.py"):  # the menu has the letters of the table
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                assert getattr(node.func, "id", "") != "Binding", f"{path}:{node.lineno}"
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.name not in ("on_key", "_on_key"), f"{path}:{node.lineno}"


def test_each_group_is_of_one_class_which_has_its_actions() -> None:
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
    assert {group for group, owners in used.items() if len(owners) > 1} == {"form"}


SYNONYMS = {"ctrl+q": "q", "shift+tab": "tab", "shift+left": "left", "shift+right": "right"} | dict(
    zip("hjkl", ("left", "down", "up", "right"), strict=True)
)
"""The same key with a modifier, or the letter of an arrow."""
OF_THE_TERMINAL = {"ctrl+c", "ctrl+z"}


def test_at_most_36_keys_and_what_has_none_is_in_the_menu() -> None:
    held = {key for action in ACTIONS.values() for key in keys_of(action) if not key.startswith(IN_MENU)}
    assert len({SYNONYMS.get(key, key) for key in held} - OF_THE_TERMINAL) <= 36
    assert [name for name, action in ACTIONS.items() if not keys_of(action)] == []


def test_a_place_has_each_letter_of_the_menu_once() -> None:
    for name, group in GROUPS.items():
        letters = [letter for key in group.keys if (letter := letter_of(key))]
        assert len(letters) == len(set(letters)), name


@pytest.mark.usefixtures("small_catalogue", "shelf")
async def test_the_menu_does_by_its_letter_and_each_of_the_six_screens_shows_what_fits_the_session() -> None:
    async with walking() as walk:
        app = walk.app
        labels = ("⏎ Choose", "+ Add function", "m Menu", "? Help", "q Quit")
        for size in (SMALL, WIDE):
            await walk.pilot.resize_terminal(*size)
            await walk.until(lambda: [one for one in labels if one not in walk.text.splitlines()[-1]] == [])
        await walk.press("m", "x  Profile script")
        await walk.press("x")
        await walk.on(ScriptDialog)
        await walk.press("escape m m")
        await walk.on(HomeScreen)  # m closes the menu that it opened
        await walk.press("m enter")
        await walk.until(lambda: not isinstance(walk.screen, Menu | HomeScreen), "Enter does what the line says")
        await walk.press("escape escape")
        for session, modes in PLACES_SHOW:
            app.set_session(session().session(), None)
            for place, mode in [*zip(PLACES, modes.split(), strict=True)][::-1]:
                await walk.press(place.key)
                await walk.until(lambda place=place: getattr(walk.screen, "place", "") == place.name, place.name)
                assert app.current_mode == mode
        for mode in ("sessions", "home"):
            await walk.press("1")
            await walk.mode(mode)
        await walk.show(recorded.finished(), "program", "train_step")
        await walk.press("m", "not now: this program has ended")  # what is dimmed says why
        await walk.shows("not now: no capture of this program was read yet", gone="not now: Show")


MENUS = (
    "home own_code workloads variants devices", "run", "results", "run_detail", "compare",
    "history measurements points",
    "hlo kernels kernel_notes text text_pane code flame flame_pane facts", "module_memory buffers",
    "profile overview timeline_pane timeline passes buffers flame flame_pane",
    "program ledger hot_lines advice flame flame_pane", "job job_map job_findings ranks", "sessions session_list",
    "rows table tree",
)  # fmt: skip
"""Groups whose actions can stand in one menu."""


@pytest.mark.usefixtures("small_catalogue", "shelf")
async def test_no_line_of_a_menu_is_cut_at_80_columns() -> None:
    async with walking(SMALL) as walk:
        await walk.press("m", "x  Profile script")
        shown_list = walk.find(MenuList)
        width = shown_list.scrollable_content_region.width
        listed = {name for names in MENUS for name in names.split()}
        opening = {name for name, group in GROUPS.items() if any(letter_of(key) for key in group.keys)}
        dialogs = {"explanation", "compilation", "source", "trust", "confirm"}
        assert opening - listed - dialogs == set()
        cut = []
        for names in MENUS:
            keys = [key for name in names.split() for key in GROUPS[name].keys if letter_of(key)]
            rows = [MenuEntry(letter_of(key), key.label, key.help, key.action, walk.screen, True) for key in keys]
            note = placed(shown_list._columns, width, rows)[-1]
            cut += [(names, row.does, note.width) for row in rows if len(row.does) > note.width]
        assert cut == []


PLACES_SHOW = [
    (recorded.finished, "home program program hlo profile profile"),
    (session_tapes.finished, "home results profile hlo profile profile"),
]


def test_the_document_lists_the_keys() -> None:
    head, mark, _ = DOCUMENT.read_text().partition(GENERATED)
    assert mark
    if os.environ.get("UPDATE_KEYS"):
        DOCUMENT.write_text(head + mark + as_markdown())
    assert DOCUMENT.read_text() == head + mark + as_markdown()


def test_keys_are_written_as_people_write_them_and_a_text_names_the_key_that_the_user_has() -> None:
    keys = ("slash", "ctrl+p", "escape", "m:f", "f", "shift+tab")
    assert [shown(key) for key in keys] == ["/", "^p", "Esc", "m f", "f", "shift+Tab"]
    assert key_of("results.compare") == "c"
    try:
        remap({"results.compare": "ctrl+k,F4"})
        assert key_of("results.compare") == "^k"
        remap({"home.program": "f8"})
        assert "F8 on Start                     runs a program from here" in nothing_recorded()
    finally:
        remap({})
    assert key_of("results.compare") == "c"


def test_a_users_key_for_a_former_screen_is_that_of_the_one_it_became() -> None:
    assert checked({"app.mode.hlo": "f12"}) == {"app.mode.kernels": "f12"}
    assert checked({"app.mode.run": "f2", "app.mode.summary": "f3"}) == {"app.mode.summary": "f3"}
    assert all(action in ACTIONS for action in FORMER.values())
    assert not set(FORMER) & set(ACTIONS)
