"""Run, Results and a run's detail, as they look at both sizes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from jaxprof.tui.app import JaxprofApp
from tui import session_tapes as sessions
from tui.fakes import Stage, still, until
from tui.session_tapes import Tape

SIZES = [(80, 24), (120, 40)]
RunBefore = Callable[[Pilot[Any]], Awaitable[None]]


def showing(stage: Stage, tape: Tape, mode: str, *keys: str) -> RunBefore:
    """Opens the tape's session in a mode, and presses some keys there."""

    async def before(pilot: Pilot[Any]) -> None:
        stage.app.set_session(tape.session(), None)
        stage.app.action_go(mode)
        await until(pilot, lambda: stage.app.current_mode == mode and stage.app.focused is not None)
        await still(pilot)
        for key in keys:
            await pilot.press(key)
        await still(pilot)

    return before


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_run_while_it_samples(snap_compare: Any, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    tape, stage = sessions.sampling(), Stage()
    monkeypatch.setattr(JaxprofApp, "session_grows", property(lambda app: True))
    for module in ("kit.run_list", "run.current_run"):
        monkeypatch.setattr(f"jaxprof.tui.{module}.monotonic", lambda: tape.now)
    assert snap_compare(stage.app, terminal_size=size, run_before=showing(stage, tape, "run"))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_run_after_trouble(snap_compare: Any, size: tuple[int, int]) -> None:
    stage = Stage()
    assert snap_compare(
        stage.app, terminal_size=size, run_before=showing(stage, sessions.troubled(), "run", "down", "down", "l")
    )


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_results(snap_compare: Any, size: tuple[int, int]) -> None:
    stage = Stage()
    assert snap_compare(
        stage.app, terminal_size=size, run_before=showing(stage, sessions.finished(), "results", "down", "down")
    )


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_two_runs_compared(snap_compare: Any, size: tuple[int, int]) -> None:
    stage = Stage()
    keys = ("down", "space", "space", "c")
    assert snap_compare(stage.app, terminal_size=size, run_before=showing(stage, sessions.finished(), "results", *keys))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_sweep(snap_compare: Any, size: tuple[int, int]) -> None:
    stage = Stage()
    assert snap_compare(stage.app, terminal_size=size, run_before=showing(stage, sessions.sweep(), "results"))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_run_in_full(snap_compare: Any, size: tuple[int, int]) -> None:
    stage = Stage()
    keys = ("down", "down", "enter")
    assert snap_compare(stage.app, terminal_size=size, run_before=showing(stage, sessions.finished(), "results", *keys))
