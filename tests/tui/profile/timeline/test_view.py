"""The keys of the timeline."""

from __future__ import annotations

from tui import profiles
from tui.fakes import Stage, screen_text, until
from tui.profile.test_profile_screen import shown


async def test_the_keys_the_mouse_and_jumps() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(100, 30)) as pilot:
        view = await shown(stage, pilot, profiles.captured())
        await pilot.press("m", "full_stop", "space", "m", "full_stop", "m", "full_stop")
        await pilot.pause()
        assert view.browse.range == (200_000, 2_200_000)
        text = screen_text(stage.app)
        for what in ("range  2.00 ms", "kernels of gpu:0", "gpu:0 #1 Comp", "70 %", "1.40 ms", "gemm_kernel"):
            assert what in text
        await pilot.press("escape")
        assert view.browse.range is None
        before = len([line for line in screen_text(stage.app).splitlines() if "gpu:0 #" in line])
        await pilot.press("m", "underscore")
        await pilot.pause()
        text = screen_text(stage.app)
        assert "1 lanes hidden (m A)" in text
        assert len([line for line in text.splitlines() if "gpu:0 #" in line]) == before - 1
        await pilot.press("m", "A", "m", "K")
        await pilot.pause()
        assert "•" in screen_text(stage.app)
        assert view.browse.hidden == 0

        view = await shown(stage, pilot, profiles.captured())
        await pilot.press("m", "full_stop", "space", "m", "full_stop", "m", "full_stop")
        await pilot.pause()
        first, last = (view.browse.window.column_of(time, view.browse.width) for time in view.browse.range)
        gutter = view.size.width - view.browse.width
        empty = view.render_line(view.size.height - 1)
        grounds = [segment.style.bgcolor for segment in empty for _ in segment.text]
        assert grounds[gutter + first] != grounds[gutter + last + 2]
        assert set(grounds[gutter + first : gutter + last]) == {grounds[gutter + first]}
        for y in range(view.size.height):
            for segment in view.render_line(y):
                assert not segment.text.strip() or segment.style.color != segment.style.bgcolor

        view = await shown(stage, pilot, profiles.captured())
        gutter = view.size.width - view.browse.width
        ruler = next(y for y in range(view.size.height) if "▼" in view.render_line(y).text)
        await pilot.press("plus", "plus", "plus")
        before = view.browse.window
        await pilot.mouse_down(view, offset=(gutter + 60, 0))
        await pilot.mouse_up(view, offset=(gutter + 60, 0))
        assert view.browse.window.start > before.end
        await pilot.mouse_down(view, offset=(gutter + 10, ruler))
        await pilot.hover(view, offset=(gutter + 40, ruler))
        await pilot.mouse_up(view, offset=(gutter + 40, ruler))
        window = view.browse.window
        assert view.browse.range == (window.time_at(10, view.browse.width), window.time_at(40, view.browse.width))
        await pilot.mouse_down(view, offset=(gutter + 40, ruler + 2))
        await pilot.hover(view, offset=(gutter + 60, ruler + 2))
        await pilot.mouse_up(view, offset=(gutter + 60, ruler + 2))
        assert view.browse.window.start < window.start
        assert view.browse.range is not None, "a drag leaves it"


async def test_jumps_say_why_they_stay_and_esc_goes_back_to_the_whole_before_it_leaves() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(100, 30), notifications=True) as pilot:
        view = await shown(stage, pilot, profiles.captured())
        await pilot.press("m", "full_stop", "m", "asterisk")
        assert view.browse.time == 2_200_000
        await pilot.pause()
        assert "2 of 10, median 900 µs" in screen_text(stage.app)
        await pilot.press("m", "number_sign", "m", "number_sign")
        await pilot.pause()
        assert view.browse.time == 200_000
        await until(pilot, lambda: "This is the first of them." in screen_text(stage.app))
        await pilot.press("m", "right_curly_bracket", "m", "I")
        await pilot.pause()
        assert "the longest of 19" in screen_text(stage.app)
        await pilot.press("plus", "plus", "space", "right", "right", "escape")
        assert (view.browse.range, view.browse.window != view.browse.whole) == (None, True)
        await pilot.press("escape")
        assert view.browse.window == view.browse.whole
        assert stage.app.screen.MODE == "profile"
        await pilot.press("escape")
        await pilot.pause()
        assert stage.app.screen.MODE != "profile"
