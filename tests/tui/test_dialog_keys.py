"""A dialog names its keys: what its frame, its buttons and its text say is what the table has for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.screen import ModalScreen
from textual.widgets import Button

from jaxprof.session.log import Library
from jaxprof.tui.key_table import GROUPS
from jaxprof.tui.keys import keys_of, shown
from jaxprof.tui.kit.dialogs import AskText, Choose, Confirm, Option, SaveAs
from jaxprof.tui.kit.script_dialog import ScriptDialog
from jaxprof.tui.program.ledger import CompilationDialog
from jaxprof.tui.program.line_profile import SourceLines
from jaxprof.tui.sessions.screen import Prune
from tui import recorded
from tui.fakes import Stage, screen_text, until

pytestmark = pytest.mark.usefixtures("catalogue", "one_moment", "shelf")
DRAWN = {"up": "↑", "down": "↓", "left": "←", "right": "→"}
LINES = [Option(f"line {number}") for number in range(9)]
DIALOGS: dict[str, Callable[[], ModalScreen[Any]]] = {
    "text": lambda: AskText("Open", "A file.", "", "Enter opens"),
    "place": lambda: SaveAs("Save as", "A copy.", "", Path("a")),
    "question": lambda: Confirm("Delete it?", "This cannot be undone.", "Delete"),
    "choice": lambda: Choose("Which?", LINES),
    "script": ScriptDialog,
    "prune": lambda: Prune(Library()),
    "compilation": lambda: CompilationDialog(recorded.finished().session().runs["r1"].program.compiled[0]),
    "source": lambda: SourceLines(recorded.at(3)),
}


def said(dialog: ModalScreen[Any], text: str) -> str:
    return " ".join([text, *(str(button.label) for button in dialog.query(Button))])


async def test_a_dialog_names_its_keys() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        for name, made in DIALOGS.items():
            dialog = made()
            stage.app.push_screen(dialog)
            await until(pilot, lambda dialog=dialog: stage.app.screen is dialog)
            await pilot.pause()
            text = said(dialog, screen_text(stage.app))
            declared = [binding for kind in type(dialog).__mro__ for binding in vars(kind).get("BINDINGS", ())]
            groups = {(getattr(binding, "id", None) or "").split(".")[0] for binding in declared} & set(GROUPS)
            assert groups
            assert [
                f"{name}: {group}.{key.name}"
                for group in groups
                for key in GROUPS[group].keys
                if not any(DRAWN.get(each, shown(each)) in text for each in keys_of(key))
            ] == []
            stage.app.pop_screen()


async def test_the_forms_of_home_name_their_keys() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "selu" in screen_text(stage.app))
        await pilot.press("tab")
        for keys in (["e"], ["plus"], ["m", "B"]):
            await pilot.press(*keys)
            await until(pilot, lambda: "Esc cancels" in screen_text(stage.app))
            text = screen_text(stage.app)
            assert "↑ ↓ next field" in text
            assert ("Reset" in text) is (keys == ["e"])
            await pilot.press("escape")
            await until(pilot, lambda: "Esc cancels" not in screen_text(stage.app))
