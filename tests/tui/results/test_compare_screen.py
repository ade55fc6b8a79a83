"""The Compare screen: two marked runs of a session, the verdict first, and what cannot be compared."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from textual.pilot import Pilot

from jaxprof import events as e
from jaxprof.errors import FileRefusedError
from jaxprof.tui.results import compare_screen
from jaxprof.tui.results.compare_screen import CompareScreen, unfit
from jaxprof.tui.results.screen import ResultList, ResultsScreen
from tui import session_tapes as sessions
from tui.fakes import Stage, screen_text, until
from tui.session_tapes import HLO, Tape


async def results(stage: Stage, pilot: Pilot[Any], tape: Tape) -> ResultList:
    """The list of Results with the tape's session."""
    stage.app.set_session(tape.session(), None)
    stage.app.action_go("results")
    await until(
        pilot,
        lambda: isinstance(stage.app.screen, ResultsScreen) and any(x.keys for x in stage.app.screen.query(ResultList)),
    )
    await pilot.pause()
    return stage.app.screen.query_one(ResultList)


def said(stage: Stage) -> str:
    return " ".join(str(one.message) for one in stage.app._notifications)


def two_programs() -> Tape:
    """A baseline, and two compiled runs, of which the second one has another HLO and needs more FLOPs."""
    tape = Tape()
    tape.plan("r1", "numpy", "numpy")
    tape.plan("r2", "jit", baseline="r1")
    tape.plan("r3", "jit-highest", baseline="r1")
    tape.numpy_run("r1")
    tape.jit_run("r2")
    tape.jit_run("r3", 1.3e-3)
    changed = HLO.replace("ROOT %exponential.1", "%e").replace(
        "source_line=12}", "source_line=12}\n  ROOT %twice = f32[1000000]{0} add(%e, %e)"
    )
    assert changed != HLO
    tape.add(e.TextRecorded, "r3", name="hlo", text=changed, bytes=len(changed))
    tape.close()
    return tape


async def test_two_marked_runs_are_compared_with_the_planned_baseline_first() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        listed = await results(stage, pilot, sessions.finished())
        await pilot.press("end", "space", "home", "space")
        assert listed.marked == ["r3", "r1"]
        assert "2 marked" in screen_text(stage.app)
        assert screen_text(stage.app).count("▣") == 2
        await pilot.press("c")
        await until(pilot, lambda: "jit is faster than numpy" in screen_text(stage.app))
        lines = screen_text(stage.app).splitlines()
        assert lines[1].strip() == "jit is faster than numpy"
        assert "6.9× (6.9-7.0)  3 launches  ·  4.36 ms → 634 µs a call" in lines[2]
        await pilot.press("m", "X")
        await until(pilot, lambda: "numpy is slower than jit" in screen_text(stage.app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(stage.app.screen, ResultsScreen))
        assert not any(isinstance(screen, CompareScreen) for screen in stage.app.session_screens)


async def test_exact_facts_stand_below_the_verdict() -> None:
    stage = Stage()
    tape = Tape()
    tape.plan("r1", "jit")
    tape.plan("r2", "jit-highest", baseline="r1")
    tape.jit_run("r1")
    tape.jit_run("r2")
    tape.close()
    async with stage.app.run_test(size=(120, 60), notifications=True) as pilot:
        await results(stage, pilot, two_programs())
        await pilot.press("down", "space", "space", "c")
        await until(pilot, lambda: "jit-highest is slower than jit" in screen_text(stage.app))
        text = screen_text(stage.app)
        assert "the environments are the same" in text
        assert not any(one.strip() == two.strip() == "" for one, two in pairwise(text.rstrip().splitlines()[:20]))
        facts = next(line for line in text.splitlines() if line.strip().startswith("FLOPs"))
        assert facts.split()[:4] == ["FLOPs", "0", "1.00", "M"]
        order = [text.index(words) for words in ("the environments are", "exact fact", "what changed", "phase  ")]
        assert order == sorted(order)

        await results(stage, pilot, tape)
        await pilot.press("home", "space", "space", "c")
        await until(pilot, lambda: "exact fact" in screen_text(stage.app))
        text = screen_text(stage.app)
        assert "jit-highest is the same as jit" in text or "inconclusive" in text
        facts = next(line for line in text.splitlines() if line.strip().startswith("bytes accessed"))
        assert facts.split()[-1] == "same"
        assert "changed" not in text


async def test_marks_and_runs_that_cannot_be_compared() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        listed = await results(stage, pilot, sessions.finished())
        await pilot.press("c")
        assert "no run is marked" in said(stage)
        await pilot.press("home", "space", "c")
        assert "only selu numpy cpu:0 is marked" in said(stage)
        await pilot.press("space", "space")
        assert "two runs are marked already" in said(stage)
        assert listed.marked == ["r1", "r2"]
        assert isinstance(stage.app.screen, ResultsScreen)
        await pilot.press("home", "space")
        assert listed.marked == ["r2"]
        stage.app.set_session(sessions.sweep().session(), None)
        await until(pilot, lambda: not listed.marked, "marks of the session before")

        tape = sessions.troubled()
        listed = await results(stage, pilot, tape)
        failed = next(run for run in stage.app.session.runs.values() if run.status == "failed")
        listed.move_to_key(failed.id)
        await pilot.press("space")
        assert "failed: there is nothing to compare" in said(stage)
        assert not listed.marked


def test_a_profile_a_program_and_a_run_in_progress_are_unfit() -> None:
    running = next(run for run in sessions.sampling().session().runs.values() if run.status == "running")
    assert "has not ended" in str(unfit(running))
    tape = Tape()
    tape.plan("r1", "x", "imported")
    assert "is an opened profile" in str(unfit(tape.session().runs["r1"]))
    assert unfit(sessions.finished().session().runs["r1"]) is None


async def test_a_text_that_cannot_be_read_is_told_on_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: object) -> None:
        raise FileRefusedError("the text of r1 is damaged", "Measure it again.")

    monkeypatch.setattr(compare_screen, "compare", damaged)
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        await results(stage, pilot, sessions.finished())
        await pilot.press("home", "space", "space", "c")
        await until(pilot, lambda: "the text of r1 is damaged" in screen_text(stage.app))
        await pilot.press("m", "X", "y", "escape")
        await until(pilot, lambda: isinstance(stage.app.screen, ResultsScreen))
