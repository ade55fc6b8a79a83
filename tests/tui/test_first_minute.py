"""From the start to the five answers, counted in keys: a screen that moves an answer farther away is seen here."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxprof import events as e
from jaxprof.tui.home.own_code import OwnCodeList
from jaxprof.tui.home.screen import HomeScreen
from jaxprof.tui.kit.dialogs import SaveAs
from tui import recorded
from tui import session_tapes as sessions
from tui.fakes import SMALL, Stage, keep_session, walking

pytestmark = pytest.mark.usefixtures("small_catalogue")

KEYS = {
    "which line is the slowest": ("enter enter", "train.py:90"),
    "why was it compiled again": ("enter enter 3", "shape of batch varies"),
    "how much faster is it": ("end enter", "6.9×"),
    "does it fit": ("end enter 6", "peak "),
    "a file to send": ("end enter 1 1 m E enter", ""),
}
"""The keys to each answer from the first frame, and what the screen then says. The first two are about a program in the
folder, the others about the example. Every run is over before the next key: waiting is no key."""


@pytest.fixture
def work(tmp_path: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one program."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "train.py").write_text("import jax\n")
    keep_session(shelf, "the example", ("selu", "jit", "ok", 1e-3))  # which the fake scheduler does not write
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("question", KEYS)
async def test_an_answer_takes_as_many_keys_as_are_written_here(question: str, work: Path) -> None:
    keys, answer = KEYS[question]
    stage = Stage()
    stage.app.folder = work
    async with walking(SMALL, stage) as walk:
        home = await walk.on(HomeScreen)
        await walk.until(lambda: home.info is not None and "train.py" in str(walk.find(OwnCodeList).keys[0]))
        for number, key in enumerate(keys.split()):
            before = walk.screen
            await walk.press(key)
            if key in ("enter", "E") and number < len(keys.split()) - 1:
                await walk.until(lambda was=before: walk.screen is not was)
            if number == 1:  # what was started runs to its end
                for program in stage.programs:
                    made = recorded.finished().events
                    program.emit(*(event for event in made if not isinstance(event, e.RunPlanned)))
                    program.finish(0)
                if stage.scheduler is not None:
                    made = sessions.finished().events
                    stage.scheduler.emit(*(x for x in made if not isinstance(x, e.RunPlanned | e.SessionClosed)))
                    stage.scheduler.finish()
                await walk.until(lambda: not walk.app.live.busy)
        if answer:
            await walk.shows(answer)
        else:
            await walk.until(lambda: any(work.glob("*.jaxprof")))
            assert not isinstance(walk.screen, SaveAs)
