"""The Program screen as it looks: every view beside the others, the flame graph, a compile that goes on."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from jaxprof.tui.app import JaxprofApp
from tui import recorded
from tui.fakes import Stage
from tui.program.test_program_screen import shown
from tui.session_tapes import Tape


def picture(snap_compare: Any, tape: Tape, size: tuple[int, int], *keys: str) -> bool:
    """Whether the tape's program looks as it did, once some keys were pressed."""
    stage = Stage()

    async def before(pilot: Pilot[Any]) -> None:
        await shown(stage, pilot, tape)
        await pilot.press(*keys)
        await pilot.pause()

    return bool(snap_compare(stage.app, terminal_size=size, run_before=before))


def test_all_of_it_on_a_large_terminal(snap_compare: Any) -> None:
    assert picture(snap_compare, recorded.finished(), (200, 60), "right")


def test_the_flame_graph(snap_compare: Any) -> None:
    assert picture(snap_compare, recorded.finished(), (120, 40), "m", "O", "down", "down")


def test_a_long_compile(snap_compare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = recorded.compiling()
    monkeypatch.setattr("jaxprof.tui.kit.program_summary.monotonic", lambda: tape.now)
    monkeypatch.setattr(JaxprofApp, "session_grows", property(lambda app: True))
    assert picture(snap_compare, tape, (80, 24))
