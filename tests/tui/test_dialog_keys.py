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
from tui.fakes import walking

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


async def test_a_dialog_and_the_forms_of_home_name_their_keys() -> None:
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
                if not any(DRAWN.get(each, shown(each)) in text for each in keys_of(key))
            ] == []
            walk.app.pop_screen()
        await walk.shows("selu")
        await walk.press("tab")
        for keys in ("e", "+", "m B"):
            await walk.press(keys, "Esc cancels", "↑ ↓ next field")
            assert ("Reset" in walk.text) is (keys == "e")
            await walk.press("escape", gone="Esc cancels")
