"""Many keys at once, as on a loaded machine: the app does not work through screens that nobody sees."""

from __future__ import annotations

import pytest
from textual import events

from jaxprof.tui.app import JaxprofApp
from jaxprof.tui.profiler import Profiler
from tui.fakes import Stage, until

FEW = 7
"""Changes of screen for the 140 that were asked for."""


async def test_of_many_changes_of_screen_at_once_only_the_last_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    gone_to = []
    switch = Profiler.switch_mode

    def counted(app: JaxprofApp, mode: str) -> object:
        gone_to.append(mode)
        return switch(app, mode)

    monkeypatch.setattr(Profiler, "switch_mode", counted)
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        gone_to.clear()
        for key in "123456" * 23 + "12":
            stage.app.post_message(events.Key(key, key))
        await until(pilot, lambda: stage.app.current_mode == "run" and gone_to[-1] == "run")
        await pilot.pause()
        assert stage.app.current_mode == "run"
        assert len(gone_to) <= FEW
        await pilot.press("escape")
        await until(pilot, lambda: stage.app.current_mode == "home", "the way back is not through screens never seen")
