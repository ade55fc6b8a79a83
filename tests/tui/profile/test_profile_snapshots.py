"""Timeline, Compile, Memory and the list of trust, as they look at both sizes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from tui import profiles
from tui.fakes import Stage
from tui.profile.test_profile_screen import shown

SIZES = [(80, 24), (120, 40)]
RunBefore = Callable[[Pilot[Any]], Awaitable[None]]


def showing(stage: Stage, view: str, *keys: str) -> RunBefore:
    """Opens a captured run in a view, and presses some keys there."""

    async def before(pilot: Pilot[Any]) -> None:
        await shown(stage, pilot, profiles.captured(), view)
        await pilot.app.workers.wait_for_complete()
        for key in keys:
            await pilot.press(key)
        await pilot.pause()

    return before


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(
    ("view", "keys"),
    [
        ("timeline", ("full_stop", "plus", "plus")),
        ("compile", ("down",)),
        ("memory", ("down",)),
    ],
)
def test_views(snap_compare: Any, size: tuple[int, int], view: str, keys: tuple[str, ...]) -> None:
    stage = Stage()
    assert snap_compare(stage.app, terminal_size=size, run_before=showing(stage, view, *keys))


def test_trust(snap_compare: Any) -> None:
    stage = Stage()
    assert snap_compare(stage.app, terminal_size=(80, 24), run_before=showing(stage, "timeline", "u"))
