"""An empty screen says what fills it, and its key does that: HLO and Profile of a program without a capture."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.widgets import Input

import job_folders
from jaxprof import events as e
from jaxprof.analysis.timeline import TEXT_NAME
from jaxprof.session import Session
from jaxprof.tui.kit.captures import can_capture, how_to_capture, uncaptured_program, why_no_capture
from jaxprof.tui.kit.script_dialog import ScriptDialog
from tui import recorded
from tui.fakes import SMALL, walking
from tui.hlo_texts import HLO
from tui.session_tapes import Tape, finished

pytestmark = pytest.mark.usefixtures("catalogue", "shelf")


def captured() -> Session:
    """A program with a window that was read."""
    tape = recorded.finished()
    tape.plan("r2", "profile", "imported", workload="capture window")
    tape.add(e.TextRecorded, "r2", name=TEXT_NAME, text="{}", bytes=2)
    return tape.session()


async def test_a_program_without_a_capture_offers_a_rerun_with_one() -> None:
    async with walking(SMALL) as walk:
        for place in ("hlo", "profile"):
            walk.app.set_session(recorded.finished().session(), None)
            walk.app.switch_mode(place)
            await walk.shows("has no capture", "w runs it again", gone="variants")
            await walk.press("w")
            dialog = await walk.on(ScriptDialog)
            await walk.until(lambda dialog=dialog: dialog.query(Input))
            assert dialog.query_one("#capture", Input).value == "5 steps"
            await walk.press("escape")
            assert not walk.stage.programs, "nothing runs unseen"


def test_what_counts_as_missing() -> None:
    assert uncaptured_program(recorded.finished().session()) is not None
    assert uncaptured_program(captured()) is None, "a window was read"
    assert uncaptured_program(finished().session()) is None, "no program"
    assert uncaptured_program(Tape().session()) is None


def test_a_program_that_nobody_writes_any_more_is_captured_by_running_it_again() -> None:
    session = recorded.compiling().session()
    run = session.programs[-1]
    app: Any = SimpleNamespace(session=session, live=SimpleNamespace(session=None, program=None))
    assert "being recorded by another process" in how_to_capture(app, run)
    assert not can_capture(app, run)
    session.desert(deserted=True)
    assert "runs it again with a capture" in how_to_capture(app, run)
    assert can_capture(app, run)
    assert why_no_capture(run) == "This run was interrupted before it was captured."


def test_a_program_has_no_capture_because_none_was_asked_for_and_a_run_because_it_was_switched_off() -> None:
    (program,) = recorded.finished().session().programs
    assert why_no_capture(program) == "Nothing of this program was captured."
    assert "--no-capture" in why_no_capture(finished().session().runs["r2"])


async def test_without_a_run_a_screen_names_what_is_open_and_what_that_lacks(tmp_path: Path) -> None:
    hlo = tmp_path / "loss.hlo"
    hlo.write_text(HLO)
    folder = tmp_path / "train.jaxprof.d"
    folder.mkdir()
    job_folders.job(folder, job_folders.loop(), job_folders.loop())
    async with walking(SMALL) as walk:
        await walk.press("4", "No session is open.", gone="s Sort")
        await walk.press("5", "press 1 to profile your code")
        await walk.press("6", "press 1 to profile your code")
        walk.app.open_session(hlo)
        await walk.mode("hlo")
        await walk.press("5", gone="Zoom in")
        await walk.press("6", gone="Earlier")
        for key in ("5", "6", "2"):
            await walk.press(key)
            await walk.until(lambda: "loss.hlo is HLO that was not run here" in walk.words, key)
        walk.app.open_session(folder)
        await walk.mode("job")
        for key in ("5", "6"):
            await walk.press(key)
            await walk.until(lambda: "train.jaxprof.d is a job; this screen" in walk.words, key)
        await walk.show(finished(), "profile", gone="is a job")
