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
from tui.fakes import Stage, keep_session, screen_text, until

pytestmark = pytest.mark.usefixtures("small_catalogue")
SIZE = (80, 24)

KEYS = {
    "which line is the slowest": (["enter", "enter", "2"], "train.py:90"),
    "why was it compiled again": (["enter", "enter"], "shape of batch varies"),
    "how much faster is it": (["end", "enter"], "6.9×"),
    "does it fit": (["end", "enter", "6"], "peak "),
    "a file to send": (["end", "enter", "1", "1", "m", "E", "enter"], ""),
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


async def press_all(question: str, stage: Stage, folder: Path) -> None:
    """Presses the keys to an answer, and lets what they start run to its end."""
    keys, _ = KEYS[question]
    stage.app.folder = folder
    async with stage.app.run_test(size=SIZE) as pilot:
        await until(
            pilot,
            lambda: (
                isinstance(stage.app.screen, HomeScreen)
                and stage.app.screen.info is not None
                and str(stage.app.screen.query_one(OwnCodeList).keys[0]).count("train.py")
            ),
        )
        for number, key in enumerate(keys):
            before = stage.app.screen
            await pilot.press(key)
            if key in ("enter", "5", "E") and number < len(keys) - 1:
                await until(pilot, lambda was=before: stage.app.screen is not was)
            if stage.programs and not stage.programs[0].closed and number == 1:
                program = stage.programs[0]
                program.emit(*(event for event in recorded.finished().events if not isinstance(event, e.RunPlanned)))
                program.finish(0)
            if stage.scheduler is not None and number == 1:
                measured = sessions.finished().events
                told = (event for event in measured if not isinstance(event, e.RunPlanned | e.SessionClosed))
                stage.scheduler.emit(*told)
                stage.scheduler.finish()
                await until(pilot, lambda: not stage.app.live.busy)
        if question == "a file to send":
            await until(pilot, lambda: any(folder.glob("*.jaxprof")))
            assert not isinstance(stage.app.screen, SaveAs)
        else:
            await until(pilot, lambda: KEYS[question][1] in screen_text(stage.app), KEYS[question][1])


@pytest.mark.parametrize("question", KEYS)
async def test_an_answer_takes_as_many_keys_as_are_written_here(question: str, work: Path) -> None:
    await press_all(question, Stage(), work)
