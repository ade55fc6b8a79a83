"""The keys of the timeline."""

from __future__ import annotations

from tui import profiles
from tui.fakes import Stage, screen_text
from tui.profile.test_profile_screen import shown


async def test_the_keys() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(100, 30)) as pilot:
        view = await shown(stage, pilot, profiles.captured())
        await pilot.press("full_stop", "space", "full_stop", "full_stop")
        await pilot.pause()
        assert view.browse.range == (200_000, 2_200_000)
        assert "range" in screen_text(stage.app)
        assert "70 % busy" in screen_text(stage.app)
        await pilot.press("escape")
        assert view.browse.range is None
        before = len([line for line in screen_text(stage.app).splitlines() if "gpu:0 #" in line])
        await pilot.press("underscore")
        await pilot.pause()
        text = screen_text(stage.app)
        assert "1 lanes hidden (A)" in text
        assert len([line for line in text.splitlines() if "gpu:0 #" in line]) == before - 1
        await pilot.press("A", "K")
        await pilot.pause()
        assert "•" in screen_text(stage.app)
        assert view.browse.hidden == 0
