"""Damaged sessions, HLO and profiles, opened in the app, on every screen that shows something of them: nothing fails,
nothing hangs.

`bench/faults.py` sends as many as wanted through the readers and the commands; what only a screen does with them is
looked for here. That nothing failed is what the fixture `no_defects` finds out.
"""

import os
import signal
from time import monotonic

import pytest

import mutated
from mutated import LONGEST_SECONDS, NAMES
from tui.fakes import walking

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="damaged files are opened where jaxprof runs"),
    pytest.mark.usefixtures("catalogue", "shelf"),
]

SCREENS = {"session": "results hlo profile program", "hlo": "hlo", "profile": "hlo profile"}
"""Those that show something of a file of this kind."""
KEYS = {
    "results": "down enter escape tab down s",
    "hlo": "down enter escape tab ] s",
    "profile": "m t down right + enter m T down enter m b down m m down m V",
    "program": "m b down enter escape m f down m L down m T down m l",
}
DAMAGED = (os.environ.get("JAXPROF_LONG") and {"session": 3, "hlo": 8}) or {}
"""How many damaged inputs one app opens, where it is not one. A profile is read in a process of its own: a second each.
"""


async def settle(walk):
    deadline = monotonic() + LONGEST_SECONDS
    await walk.pause()
    while left := [worker.name for worker in walk.app.workers if not worker.is_finished]:
        assert monotonic() < deadline, left
        await walk.pilot.pause(0.003)
    await walk.pause()


async def visit(walk, mode):
    walk.app.switch_mode(mode)
    await settle(walk)
    await walk.press(KEYS[mode])
    await settle(walk)
    assert walk.text.strip()
    assert mutated.spoken(walk.text) is None, mode
    while len(walk.app.screen_stack) > 1:
        await walk.press("escape")
        await settle(walk)


@pytest.mark.process
@pytest.mark.parametrize("kind", SCREENS)
async def test_screens(kind, tmp_path):
    async with walking() as walk:
        for number in range(DAMAGED.get(kind, 1)):
            path = tmp_path / str(number) / NAMES[kind]
            path.parent.mkdir()
            path.write_bytes(mutated.mutated(kind, number))
            walk.app.open_session(path)
            await settle(walk)
            for mode in SCREENS[kind].split():
                await visit(walk, mode)
    assert walk.app.return_code in (0, None)
