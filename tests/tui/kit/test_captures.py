"""An empty screen says what fills it, and its key does that: HLO and Profile of a program without a capture."""

from __future__ import annotations

import pytest
from textual.widgets import Input

from jaxprof import events as e
from jaxprof.analysis.timeline import TEXT_NAME
from jaxprof.session import Session
from jaxprof.tui.kit.captures import uncaptured_program
from jaxprof.tui.kit.script_dialog import ScriptDialog
from tui import recorded
from tui.fakes import Stage, screen_text, until
from tui.session_tapes import Tape, finished

pytestmark = pytest.mark.usefixtures("catalogue", "shelf")


def captured() -> Session:
    """A program with a window that was read."""
    tape = recorded.finished()
    tape.plan("r2", "profile", "imported", workload="capture window")
    tape.add(e.TextRecorded, "r2", name=TEXT_NAME, text="{}", bytes=2)
    return tape.session()


@pytest.mark.parametrize("place", ["hlo", "profile"])
async def test_a_program_without_a_capture_offers_a_rerun_with_one(place: str) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        stage.app.set_session(recorded.finished().session(), None)
        stage.app.switch_mode(place)
        await until(pilot, lambda: "ran without a capture" in screen_text(stage.app))
        assert "w runs it again" in screen_text(stage.app)
        assert "variants" not in screen_text(stage.app)
        await pilot.press("w")
        await until(pilot, lambda: isinstance(stage.app.screen, ScriptDialog) and stage.app.screen.query(Input))
        assert stage.app.screen.query_one("#capture", Input).value == "5 steps"
        assert not stage.programs, "nothing runs unseen"


def test_what_counts_as_missing() -> None:
    assert uncaptured_program(recorded.finished().session()) is not None
    assert uncaptured_program(captured()) is None, "a window was read"
    assert uncaptured_program(finished().session()) is None, "no program"
    assert uncaptured_program(Tape().session()) is None
