"""Damaged sessions, HLO and profiles, opened in the app, on every screen that shows something of them: nothing fails,
nothing hangs.

`bench/faults.py` sends as many as wanted through the readers and the commands; what only a screen does with them is
looked for here. That nothing failed is what the fixture `no_defects` finds out.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from textual.pilot import Pilot

import mutated
from jaxprof.tui.profiler import MODES
from mutated import LONGEST_SECONDS, NAMES, originals
from tui.fakes import Stage, screen_text

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="damaged files are opened where jaxprof runs"),
    pytest.mark.usefixtures("catalogue", "shelf"),
]

SCREENS = {"session": ("run", "results", "hlo", "profile", "program"), "hlo": ("hlo",), "profile": ("hlo", "profile")}
"""Those that show something of a file of this kind."""
LONG = bool(os.environ.get("JAXPROF_LONG"))
OPENED = [("session", range(LONG * 2 + 1)), ("hlo", range(LONG * 5 + 3)), ("profile", range(1))]
"""The inputs that one app opens, one after the other. A profile is read in a process of its own: a second each."""
KEYS = {
    "run": ["down", "up"],
    "results": ["down", "enter", "escape", "tab", "down", "s"],
    "hlo": ["down", "enter", "escape", "tab", "right_square_bracket", "s"],
    "profile": [
        *("m", "t", "down", "right", "plus", "enter", "m", "T", "down", "enter"),
        *("m", "b", "down", "m", "m", "down", "m", "V"),
    ],
    "program": ["m", "b", "down", "enter", "escape", "m", "f", "down", "m", "L", "down", "m", "T", "down", "m", "l"],
}
"""What is pressed on each screen."""


async def settle(pilot: Pilot[Any]) -> None:
    """Waits until no thread of the app works any more, and all is drawn."""
    deadline = monotonic() + LONGEST_SECONDS
    await pilot.pause()
    while any(not worker.is_finished for worker in pilot.app.workers):
        assert monotonic() < deadline, [worker.name for worker in pilot.app.workers if not worker.is_finished]
        await pilot.pause(0.01)
    await pilot.pause()


async def visit(stage: Stage, pilot: Pilot[Any], screens: tuple[str, ...]) -> None:
    """Goes through these screens, and presses the keys that move on them."""
    for place in MODES:
        if place.name not in screens:
            continue
        stage.app.action_go(place.name)
        await settle(pilot)
        for key in KEYS.get(place.name, []):
            await pilot.press(key)
        await settle(pilot)
        assert stage.app.is_running
        shown = screen_text(stage.app)
        assert shown.strip()
        assert mutated.spoken(shown) is None, place.name
        while len(stage.app.screen_stack) > 1:
            await pilot.press("escape")
            await settle(pilot)


@pytest.mark.process
@pytest.mark.parametrize(("kind", "numbers"), OPENED, ids=str)
async def test_screens(kind: str, numbers: range, tmp_path: Path) -> None:
    inputs = [originals(kind)[-1], *(mutated.mutated(kind, number) for number in numbers)]
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        await settle(pilot)
        for number, raw in enumerate(inputs):
            path = tmp_path / str(number) / NAMES[kind]
            path.parent.mkdir()
            path.write_bytes(raw)
            stage.app.open_session(path)
            await settle(pilot)
            if number == 0:
                assert kind == "hlo" or stage.app.session.runs, "the sound file is shown"
            await visit(stage, pilot, SCREENS[kind])
    assert stage.app.return_code in (0, None)
