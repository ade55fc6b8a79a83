"""The Run screen: what it shows while things go on, what it asks for, and how little it sends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from jaxprof import events as e
from jaxprof.runner import PlanOptions, plan_runs
from jaxprof.tui.app import JaxprofApp
from jaxprof.tui.kit.dialogs import Confirm
from jaxprof.tui.kit.run_list import RunList
from jaxprof.tui.results.run_detail import RunDetailScreen
from jaxprof.tui.run.screen import RunScreen
from tui import session_tapes as sessions
from tui.fakes import Stage, info, screen_text, until
from tui.session_tapes import Tape


class Now:
    """The monotonic clock, standing where a tape stands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tape: Tape) -> None:
        self.seconds = tape.now
        for module in ("kit.run_list", "run.current_run", "run.screen"):
            monkeypatch.setattr(f"jaxprof.tui.{module}.monotonic", lambda: self.seconds)


@pytest.fixture
def growing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that somebody writes."""
    monkeypatch.setattr(JaxprofApp, "session_grows", property(lambda app: True))


async def shown(stage: Stage, pilot: Pilot[Any], tape: Tape) -> RunScreen:
    """The Run screen with the tape's session."""
    stage.app.set_session(tape.session(), None)
    stage.app.action_go("run")
    await until(
        pilot,
        lambda: isinstance(stage.app.screen, RunScreen) and any(rows.keys for rows in stage.app.screen.query(RunList)),
    )
    await pilot.pause()
    screen = stage.app.screen
    assert isinstance(screen, RunScreen)
    return screen


@pytest.mark.usefixtures("growing")
async def test_a_long_compile_ticks_while_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = sessions.compiling()
    now = Now(monkeypatch, tape)
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await shown(stage, pilot, tape)
        assert screen_text(stage.app).count("2.5 s") == 2  # in the list, and among the phases
        now.seconds += 40.05
        await until(pilot, lambda: screen_text(stage.app).count("42.5 s") == 2)
        assert "▶ jit" in screen_text(stage.app)
        assert "1 of 3 done · 1 queued" in screen_text(stage.app)


async def test_nothing_ticks_in_a_session_that_nobody_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = sessions.compiling()
    Now(monkeypatch, tape)
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        screen = await shown(stage, pilot, tape)
        text = screen_text(stage.app)
        assert screen._clock is None
        assert "▶" not in text
        assert "stopped" in text
        assert "queued" not in text
        assert "3 of 3 done" in text, "one that was interrupted, and one that never began"
        assert "interrupted" in text
        assert "cancelled" in text
        stage.app.action_go("results")
        await until(pilot, lambda: "the session was interrupted" in screen_text(stage.app))
        assert "▶" not in screen_text(stage.app)


@pytest.mark.usefixtures("growing")
async def test_the_clock_stops_when_the_screen_is_left_and_when_the_run_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tape = sessions.compiling()
    Now(monkeypatch, tape)
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        screen = await shown(stage, pilot, tape)
        assert screen._clock is not None
        await pilot.press("2")
        await until(pilot, lambda: screen._clock is None)
        await pilot.press("2")
        await until(pilot, lambda: screen._clock is not None)
        told = len(tape.events)
        tape.add(e.PhaseEnded, "r2", phase="compile", seconds=2.5)
        tape.finish("r2")
        stage.app.session.extend(tape.events[told:])
        screen.show_session(frozenset({"r2"}), replaced=False)
        assert screen._clock is None


@pytest.mark.usefixtures("growing")
async def test_samples_are_shown_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = sessions.sampling()
    Now(monkeypatch, tape)
    stage = Stage()
    async with stage.app.run_test(size=(100, 30)) as pilot:
        screen = await shown(stage, pilot, tape)
        assert "37 samples" in screen_text(stage.app)
        assert "1 of 3 done · 1 queued · ≈ 2 s left" in screen_text(stage.app)
        stage.app.session.runs["r3"].plan = replace(stage.app.session.runs["r3"].plan, baseline="")
        stage.app.session.runs["r3"].expected_seconds = 20.0
        screen.show_session(frozenset({"r2"}), replaced=False)
        await until(pilot, lambda: "1 of 3 done · 1 queued · ≈ 25 s left" in screen_text(stage.app))
        told = len(tape.events)
        tape.samples("r2", "run", tape.noise(0.63e-3, 30), 4)
        stage.app.session.extend(tape.events[told:])
        screen.show_session(frozenset({"r2"}), replaced=False)
        await until(pilot, lambda: "67 samples" in screen_text(stage.app))
        assert "at 64" in screen_text(stage.app)


@pytest.mark.usefixtures("growing")
async def test_a_later_launch_has_clocks_of_its_own_and_says_which_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = sessions.in_turns()
    Now(monkeypatch, tape)
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        screen = await shown(stage, pilot, tape)
        rows = [line for line in screen_text(stage.app).splitlines() if "cpu:0 " in line and "│ ▶" in line]
        assert [(row.split()[2], *row.split()[4:7]) for row in rows] == [
            ("numpy", "waiting", "25.9", "s"),
            ("jit", "compile", "1.5", "s"),
            ("jit-highest", "waiting", "1.5", "s"),
        ]
        assert "starting" not in screen_text(stage.app)
        assert "█" not in "".join(rows), "the bar is of the steady run"
        await pilot.press("up")  # from the newest run
        await pilot.pause()
        text = screen_text(stage.app)
        assert "launch 2 of 3 · running · pid 4800" in text
        assert "▶ 1.5 s" in text, "the compile of this launch, not of the first one"
        told = len(tape.events)
        tape.add(e.PhaseEnded, "r2", phase="compile", seconds=1.5)
        tape.add(e.PhaseStarted, "r2", phase="run")
        note = "launch 2 of 3, in turns with 2 more"
        tape.add(e.ProgressMade, "r2", fraction=0.5, remaining_seconds=4.0, note=note)
        stage.app.session.extend(tape.events[told:])
        screen.show_session(frozenset({"r2"}), replaced=False)
        await until(pilot, lambda: f"{note} · running · pid 4800" in screen_text(stage.app))
        assert "≈ 4 s left" in screen_text(stage.app)


async def test_errors_and_logs_are_shown_and_not_obeyed() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(100, 40)) as pilot:
        screen = await shown(stage, pilot, sessions.troubled())
        screen.query_one(RunList).move_to_key("r3")
        await until(pilot, lambda: "The log holds XLA's last words." in screen_text(stage.app))
        text = screen_text(stage.app)
        assert "check failed: ␛[31mRET_CHECK␛[0m [/b] failure" in text
        assert "\x1b" not in text
        assert "[b]jit[/x]␛[31m␊" in text


async def test_enter_opens_the_run_and_escape_comes_back() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        screen = await shown(stage, pilot, sessions.finished())
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(stage.app.screen, RunDetailScreen))
        await pilot.press("escape")
        await until(pilot, lambda: stage.app.screen is screen)
        assert len(stage.app.session_screens) == len({type(one) for one in stage.app.session_screens})


async def test_runs_are_cancelled_and_run_again() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(100, 30)) as pilot:
        stage.app.start_runs(plan_runs([info()], PlanOptions(variants=["jit"])))
        await until(pilot, lambda: isinstance(stage.app.screen, RunScreen) and len(stage.app.session.runs) == 2)
        scheduler = stage.scheduler
        assert scheduler is not None
        rows = stage.app.screen.query_one(RunList)
        await until(pilot, lambda: rows.keys)
        await pilot.press("down", "C")
        await until(pilot, lambda: scheduler.cancelled == ["r2"])
        await pilot.press("m", "Q")
        await until(pilot, lambda: isinstance(stage.app.screen, Confirm))
        await pilot.press("n")
        await until(pilot, lambda: not isinstance(stage.app.screen, Confirm))
        assert scheduler.cancelled == ["r2"]
        await pilot.press("m", "Q")
        await until(pilot, lambda: isinstance(stage.app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: scheduler.cancelled == ["r2", "all"])
        scheduler.emit(e.RunFinished(run="r2", status="cancelled", error="cancelled before it began"))
        await until(pilot, lambda: "cancelled before it began" in screen_text(stage.app))
        await pilot.press("r")
        await until(pilot, lambda: len(stage.app.session.runs) == 4)
        first, second = scheduler.planned[2:]
        assert (first.spec.variant, second.spec.variant) == ("numpy", "jit")
        assert second.baseline is first
        assert first is not scheduler.planned[0]
        scheduler.finish()


async def test_a_run_of_an_opened_session_is_run_again_only_where_its_function_is_known() -> None:
    from jaxprof.errors import UsageError
    from jaxprof.tui.run.screen import planned_again

    session = sessions.finished().session()
    first, second = planned_again(session, "r3", {})
    assert (first.spec.target, second.spec.target, second.spec.variant) == ("selu", "selu", "jit")
    assert second.baseline is first
    tape = Tape()
    tape.plan("r1", "step", workload="train.py:step")
    with pytest.raises(UsageError, match=r"train\.py:step cannot be run again: its session does not say where"):
        planned_again(tape.session(), "r1", {})


async def test_somebodys_code_in_an_opened_session_is_shown_before_it_is_run(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("def step(x):\n    return x\n")
    tape = Tape()
    tape.plan("r1", "step", workload="train.py:step", target=f"{file}:step", arguments=("f32[8,4]",))
    tape.add(e.RunFinished, "r1", status="ok")
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        await shown(stage, pilot, tape)
        await pilot.press("r")
        await until(pilot, lambda: "It runs the code of" in screen_text(stage.app))
        assert "f32[8,4]" in screen_text(stage.app)
        assert stage.scheduler is None
        await pilot.press("y")
        await until(pilot, lambda: stage.scheduler is not None and bool(stage.scheduler.planned))
        assert stage.scheduler is not None
        (planned,) = stage.scheduler.planned
        assert (planned.spec.target, planned.spec.arguments) == (f"{file}:step", ("f32[8,4]",))
