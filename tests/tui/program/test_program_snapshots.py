"""The Program screen as it looks: small, usual, large; each view, a compile that goes on, a program that failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from jaxprof.tui.app import JaxprofApp
from tui import recorded
from tui.fakes import Stage
from tui.program.test_program_screen import shown
from tui.session_tapes import Tape

SIZES = [(80, 24), (120, 40)]
RunBefore = Callable[[Pilot[Any]], Awaitable[None]]


def showing(stage: Stage, tape: Tape, *keys: str) -> RunBefore:
    """Opens the tape's program, and presses some keys there."""

    async def before(pilot: Pilot[Any]) -> None:
        await shown(stage, pilot, tape)
        for key in keys:
            await pilot.press(key)
        await pilot.pause()

    return before


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(
    ("view", "keys"),
    [
        ("ledger", ("right", "down")),
        ("findings", ("f",)),
        ("lines", ("L",)),
        ("flame", ("O", "down", "down")),
        ("time", ("T",)),
    ],
)
def test_views(snap_compare: Any, size: tuple[int, int], view: str, keys: tuple[str, ...]) -> None:
    stage = Stage()
    assert snap_compare(stage.app, terminal_size=size, run_before=showing(stage, recorded.finished(), *keys))


def test_all_of_it_on_a_large_terminal(snap_compare: Any) -> None:
    stage = Stage()
    assert snap_compare(stage.app, terminal_size=(200, 60), run_before=showing(stage, recorded.finished(), "right"))


def test_the_time_alone(snap_compare: Any) -> None:
    stage = Stage()
    assert snap_compare(stage.app, terminal_size=(120, 40), run_before=showing(stage, recorded.finished(), "T", "F"))


def test_a_long_compile(snap_compare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tape, stage = recorded.compiling(), Stage()
    monkeypatch.setattr("jaxprof.tui.kit.program_summary.monotonic", lambda: tape.now)
    monkeypatch.setattr(JaxprofApp, "session_grows", property(lambda app: True))
    assert snap_compare(stage.app, terminal_size=(80, 24), run_before=showing(stage, tape))


def test_a_program_that_failed(snap_compare: Any) -> None:
    tape, stage = recorded.finished("crashed", 139, "crashed with SIGSEGV"), Stage()
    assert snap_compare(stage.app, terminal_size=(80, 24), run_before=showing(stage, tape, "o"))


def test_a_compilation(snap_compare: Any) -> None:
    stage = Stage()
    keys = ("right", "down", "down", "enter")
    assert snap_compare(stage.app, terminal_size=(80, 24), run_before=showing(stage, recorded.finished(), *keys))
