"""What is typed quickly arrives together, over a slow line: `/` and the words after it are one search."""

from __future__ import annotations

from typing import Any

import pytest
from textual import events
from textual.app import App
from textual.widgets import Input

from jaxprof.tui.kit.script_dialog import ScriptDialog
from tui.fakes import Stage, until
from tui.test_one_step_back import HLO, HOME, PROGRAM, SESSIONS, TIMELINE, Place, shown

pytestmark = pytest.mark.usefixtures("catalogue", "one_moment", "shelf")
TYPED = "/lo/x"
"""`l`, `o` and `x` are keys on most screens."""


def typed(app: App[Any]) -> str:
    return app.focused.value if isinstance(app.focused, Input) else ""


async def test_letters_that_come_with_the_slash_are_searched_for() -> None:
    places: list[tuple[Place, list[str]]] = [
        (HOME, []), (PROGRAM, []), (PROGRAM, ["m", "O"]), (SESSIONS, []), (HLO, []), (HLO, ["m", "i"]), (TIMELINE, [])
    ]  # fmt: skip
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        app = stage.app
        for place, before in places:
            await shown(stage, pilot, place)
            await pilot.press(*before)
            await pilot.pause()
            for letter in TYPED:
                app.post_message(events.Key("slash" if letter == "/" else letter, letter))
            await until(pilot, lambda: typed(app) == TYPED[1:], f"{TYPED[1:]!r} is typed")
            assert app.current_mode == place.mode
            await pilot.press("escape")


async def test_the_letter_that_comes_with_the_key_of_the_menu_is_taken_there_and_both_can_be_typed() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        app = stage.app
        await shown(stage, pilot, HOME)
        for letter in "mx":
            app.post_message(events.Key(letter, letter))
        await until(pilot, lambda: isinstance(app.screen, ScriptDialog) and app.focused)
        await pilot.press(*"mx")
        assert typed(app) == "mx"
