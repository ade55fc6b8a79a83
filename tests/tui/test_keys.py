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
from jaxprof.tui.menu import Menu
from jaxprof.tui.profiler import PLACES
from tui import recorded, session_tapes
from tui.fakes import Stage, screen_text, until

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


async def test_the_menu_has_what_can_be_done_and_does_it_by_its_letter() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "selu" in screen_text(stage.app))
        await pilot.press("m")
        await until(pilot, lambda: "x  Profile script" in screen_text(stage.app))
        await pilot.press("x")
        await until(pilot, lambda: isinstance(stage.app.screen, ScriptDialog))
        await pilot.press("escape", "m", "m")
        await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen), "m closes the menu that it opened")
        await pilot.press("m", "enter")
        await until(pilot, lambda: not isinstance(stage.app.screen, Menu | HomeScreen), "Enter does what the line says")


async def test_what_is_dimmed_says_why_in_the_menu() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        stage.app.set_session(recorded.finished().session(), None)
        stage.app.action_go("program")
        await until(pilot, lambda: "train_step" in screen_text(stage.app))
        await pilot.press("m")
        await until(pilot, lambda: "not now: this program has ended" in screen_text(stage.app))


def test_the_document_lists_the_keys() -> None:
    head, mark, _ = DOCUMENT.read_text().partition(GENERATED)
    assert mark
    if os.environ.get("UPDATE_KEYS"):
        DOCUMENT.write_text(head + mark + as_markdown())
    assert DOCUMENT.read_text() == head + mark + as_markdown()


@pytest.mark.parametrize(
    ("key", "people"),
    [("slash", "/"), ("ctrl+p", "^p"), ("escape", "Esc"), ("m:f", "m f"), ("f", "f"), ("shift+tab", "shift+Tab")],
)
def test_keys_are_written_as_people_write_them(key: str, people: str) -> None:
    assert shown(key) == people


def test_a_text_names_the_key_that_the_user_has() -> None:
    assert key_of("results.compare") == "c"
    try:
        remap({"results.compare": "ctrl+k,F4"})
        assert key_of("results.compare") == "^k"
    finally:
        remap({})
    assert key_of("results.compare") == "c"


@pytest.mark.parametrize("width", [80, 120])
async def test_the_key_bar_has_what_is_about_the_users_own_code(width: int) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(width, 24), notifications=True) as pilot:
        labels = ("⏎ Choose", "+ Add function", "m Menu", "? Help", "q Quit")
        await until(pilot, lambda: all(label in screen_text(stage.app).splitlines()[-1] for label in labels))


PLACES_SHOW = {
    "program": (lambda: recorded.finished().session(), ["home", "program", "program", "hlo", "profile", "profile"]),
    "runs": (lambda: session_tapes.finished().session(), ["home", "results", "profile", "hlo", "profile", "profile"]),
}


@pytest.mark.parametrize("what", PLACES_SHOW)
async def test_each_of_the_six_screens_shows_what_fits_the_session_and_is_marked(what: str) -> None:
    session, modes = PLACES_SHOW[what]
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        app = stage.app
        app.set_session(session(), None)
        for place, mode in [*zip(PLACES, modes, strict=True)][::-1]:
            await pilot.press(place.key)
            await until(pilot, lambda place=place: getattr(app.screen, "place", "") == place.name, place.name)
            assert app.current_mode == mode


async def test_the_key_of_the_start_leads_to_the_kept_sessions_and_back() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        for mode in ("sessions", "home"):
            await pilot.press("1")
            await until(pilot, lambda mode=mode: stage.app.current_mode == mode)


def test_a_users_key_for_a_former_screen_is_that_of_the_one_it_became() -> None:
    assert checked({"app.mode.hlo": "f12"}) == {"app.mode.kernels": "f12"}
    assert checked({"app.mode.run": "f2", "app.mode.summary": "f3"}) == {"app.mode.summary": "f3"}
    assert all(action in ACTIONS for action in FORMER.values())
    assert not set(FORMER) & set(ACTIONS)
