"""A run is watched: the newest is in view until the user moves, cancelling is seen at once, the view can be paused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from textual.pilot import Pilot

from jaxprof import events as e
from jaxprof.tui.home.screen import HomeScreen
from jaxprof.tui.kit.dialogs import Confirm
from jaxprof.tui.kit.run_list import RunList
from jaxprof.tui.run.screen import RunScreen, newest_run
from tui import session_tapes as sessions
from tui.fakes import FakeConductor, Stage, screen_text, until
from tui.session_tapes import Tape

pytestmark = pytest.mark.usefixtures("catalogue", "shelf")
SIZE = (80, 24)


async def started(stage: Stage, pilot: Pilot[Any]) -> FakeConductor:
    """Three queued runs of this app, on the Run screen."""
    await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen) and stage.app.screen.info)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(stage.app.screen, RunScreen) and stage.app.screen.whole)
    await until(pilot, lambda: len(stage.app.session.runs) == 3)
    assert stage.scheduler is not None
    return stage.scheduler


def begun(run: str) -> e.Event:
    return e.WorkerStarted(run=run, pid=4711, python="/venv/bin/python", launch=1)


def current(stage: Stage) -> object:
    return stage.app.screen.query_one(RunList).current


def test_the_newest_run_is_the_last_in_progress_else_the_last_that_ended() -> None:
    assert newest_run(Tape().session()) == ""
    assert newest_run(sessions.compiling().session()) == "r2"
    assert newest_run(sessions.in_turns().session()) == "r3", "those before it wait for their turn"
    assert newest_run(sessions.finished().session()) == "r3"


async def test_the_newest_run_is_in_view_until_the_user_moves() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE) as pilot:
        scheduler = await started(stage, pilot)
        scheduler.emit(begun("r1"))
        await until(pilot, lambda: current(stage) == "r1")
        scheduler.emit(begun("r2"))
        await until(pilot, lambda: current(stage) == "r2")
        await pilot.press("up")
        assert current(stage) == "r1"
        scheduler.emit(begun("r3"))
        await until(pilot, lambda: stage.app.session.runs["r3"].status == "running")
        await pilot.pause()
        assert current(stage) == "r1", "the user has moved"


async def test_cancelling_is_shown_from_the_key_to_the_end() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE) as pilot:
        scheduler = await started(stage, pilot)
        scheduler.emit(begun("r1"), e.PhaseStarted(run="r1", phase="compile"))
        await until(pilot, lambda: "compile" in screen_text(stage.app))
        assert "cancelling" not in screen_text(stage.app)
        await pilot.press("C")
        await until(pilot, lambda: "cancelling" in screen_text(stage.app))
        assert stage.app.session.runs["r1"].status == "running", "it has not ended yet"
        scheduler.emit(e.RunFinished(run="r1", status="cancelled", error="cancelled"))
        await until(pilot, lambda: "cancelling" not in screen_text(stage.app))
        await pilot.press("m", "Q")
        await until(pilot, lambda: isinstance(stage.app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: screen_text(stage.app).count("cancelling") == 2)


async def test_the_view_is_paused_and_follows_again() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE) as pilot:
        scheduler = await started(stage, pilot)
        scheduler.emit(begun("r1"))
        await until(pilot, lambda: current(stage) == "r1")
        await pilot.press("space")
        await until(pilot, lambda: "paused" in screen_text(stage.app))
        scheduler.emit(begun("r2"))
        await until(pilot, lambda: stage.app.session.runs["r2"].status == "running")
        await pilot.pause()
        assert current(stage) == "r1"
        await pilot.press("space")
        await until(pilot, lambda: current(stage) == "r2")
        assert "paused" not in screen_text(stage.app)


async def test_a_key_that_can_do_nothing_says_why_and_one_that_can_works_at_once() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        scheduler = await started(stage, pilot)
        screen = stage.app.screen
        scheduler.emit(begun("r1"), e.PhaseStarted(run="r1", phase="compile"))
        await until(pilot, lambda: "compile" in screen_text(stage.app))
        assert screen.check_action("cancel", ()), "during a compile, too"
        scheduler.emit(e.RunFinished(run="r1", status="ok"))
        await until(pilot, lambda: screen.check_action("cancel", ()) is None)
        await pilot.press("C")
        await until(pilot, lambda: "this run has ended" in screen_text(stage.app))
        assert not scheduler.cancelled
        await pilot.press("down")
        assert screen.check_action("cancel", ()), "this one waits"
        scheduler.emit(*(e.RunFinished(run=run, status="ok") for run in ("r2", "r3")))
        scheduler.finish()
        await until(pilot, lambda: screen.check_action("cancel_all", ()) is None)
        await pilot.press("m", "Q")
        await until(pilot, lambda: "nothing runs or waits here" in screen_text(stage.app))
        assert stage.app.screen is screen, "nothing is asked"


async def test_the_next_run_is_marked() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 40)) as pilot:
        scheduler = await started(stage, pilot)
        scheduler.emit(begun("r1"), e.PhaseStarted(run="r1", phase="import"))
        await until(pilot, lambda: phases(stage) == ["import", "next", "queued"])
        scheduler.emit(e.PhaseEnded(run="r1", phase="import", seconds=0.3))
        await until(pilot, lambda: phases(stage) == ["waiting", "next", "queued"])
        assert "starting" not in screen_text(stage.app)
        scheduler.emit(e.RunFinished(run="r1", status="ok"), begun("r2"))
        await pilot.press("1", "enter")
        await until(pilot, lambda: len(stage.app.session.runs) == 6)
        await until(pilot, lambda: phases(stage) == ["ok", "starting", "next", "queued", "queued", "queued"])
        scheduler.emit(*(e.RunFinished(run=run, status="ok") for run in ("r2", "r3")), begun("r4"))
        await until(pilot, lambda: phases(stage)[4:] == ["next", "queued"])


def phases(stage: Stage) -> list[str]:
    """The column of that name."""
    return re.findall(r"^│.* (?:cpu|cuda):0 +(\w+)", screen_text(stage.app), re.MULTILINE)
