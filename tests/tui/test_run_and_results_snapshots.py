"""Run, Results and a run's detail, as they look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from jaxprof.tui.app import JaxprofApp
from tui import session_tapes as sessions
from tui.fakes import Stage, Walk, still
from tui.session_tapes import Tape


@pytest.mark.parametrize(
    ("made", "mode", "keys", "size"),
    [
        (sessions.sampling, "run", "", (120, 40)),
        (sessions.finished, "results", "down down", (80, 24)),
        (sessions.finished, "results", "down down", (120, 40)),
        (sessions.sweep, "results", "", (120, 40)),
        (sessions.finished, "results", "down space space c", (120, 40)),
        (sessions.finished, "results", "down down enter", (120, 40)),
    ],
    ids=["run", "results-small", "results", "sweep", "compared", "in-full"],
)
def test_pictures(
    snap_compare: Any,
    monkeypatch: pytest.MonkeyPatch,
    made: Callable[[], Tape],
    mode: str,
    keys: str,
    size: tuple[int, int],
) -> None:
    tape, stage = made(), Stage()
    monkeypatch.setattr(JaxprofApp, "session_grows", property(lambda app: mode == "run"))
    for module in ("kit.run_list", "run.current_run"):
        monkeypatch.setattr(f"jaxprof.tui.{module}.monotonic", lambda: tape.now)

    async def before(pilot: Pilot[Any]) -> None:
        walk = Walk(stage, pilot)
        await walk.show(tape, mode)
        await still(pilot)
        await walk.press(keys)
        await still(pilot)

    assert snap_compare(stage.app, terminal_size=size, run_before=before)
