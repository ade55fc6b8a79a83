"""Timeline, Compile and Memory, as they look."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from tui import profiles
from tui.fakes import Stage
from tui.profile.test_profile_screen import shown


@pytest.mark.parametrize("view", ["timeline", "compile", "memory"])
def test_views(snap_compare: Any, view: str) -> None:
    stage = Stage()

    async def before(pilot: Pilot[Any]) -> None:
        await shown(stage, pilot, profiles.captured(), view)
        await pilot.app.workers.wait_for_complete()
        await pilot.press(*(("full_stop", "plus", "plus") if view == "timeline" else ("down",)))
        await pilot.pause()

    assert snap_compare(stage.app, terminal_size=(120, 40), run_before=before)
