"""Profile: the timeline under keys and mouse, the compile, the memory, and what is said where nothing is known."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from jaxprof import events as e
from jaxprof.tui.kit.captures import TrustDialog
from jaxprof.tui.kit.memory import BufferList, LivePlot
from jaxprof.tui.profile.compile_pane import PassTree
from jaxprof.tui.profile.screen import ProfileScreen
from jaxprof.tui.profile.timeline.view import TimelineView
from tui import profiles
from tui import session_tapes as sessions
from tui.fakes import Stage, screen_text, until
from tui.session_tapes import Tape

SIZE = (100, 30)
CHAIN = """HloModule chain, is_scheduled=true

ENTRY %main (x: f32[256], y: f32[512]) -> f32[256] {
  %x = f32[256]{0} parameter(0)
  %y = f32[512]{0} parameter(1)
  %big = f32[512]{0} custom-call(%y), custom_call_target="f"
  %seen = f32[512]{0} bitcast(%big)
  %small = f32[256]{0} custom-call(%seen), custom_call_target="g"
  %loop = f32[256]{0} negate(%small)
  ROOT %out = f32[256]{0} custom-call(%loop, %x), custom_call_target="h"
}
"""


async def shown(stage: Stage, pilot: Pilot[Any], tape: Tape, view: str = "timeline", run: str = "r2") -> TimelineView:
    stage.app.set_session(tape.session(), None)
    stage.app.show_profile(run, view)
    await until(pilot, lambda: isinstance(stage.app.screen, ProfileScreen) and stage.app.screen.whole)
    seen = stage.app.screen.query_one(TimelineView)
    await until(
        pilot, lambda: seen.lanes is not None or "Reading" not in screen_text(stage.app), "the timeline is read"
    )
    await pilot.pause()
    return seen


async def test_lanes_cursor_zoom_search_and_trust() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE) as pilot:
        await shown(stage, pilot, profiles.captured())
        text = screen_text(stage.app)
        for what in ("python", "gpu:0 #1 Co", "gpu:0 #2 Me", "kernels with 12 % of the device's time name no"):
            assert what in text
        for what in ("kernels 1.40 ms 70 %", "transfers 200 µs 10 %", "launch gaps 100 µs 5.0 %", "idle 300 µs 15 %"):
            assert what in text, "the parts of the step, which add up to 2 ms"

        view = await shown(stage, pilot, profiles.captured())
        assert "idle  " in screen_text(stage.app)
        await pilot.press("m", "full_stop")
        assert view.browse.time == 200_000
        text = screen_text(stage.app)
        assert "gemm_kernel" in text
        assert "900 µs" in text
        assert "op dot.1 of jit_selu" in text
        await pilot.press("m", "full_stop")
        assert view.browse.time == 1_150_000
        await pilot.press("m", "comma")
        assert view.browse.time == 200_000
        await pilot.press("down")
        assert "before MemcpyD2H" in screen_text(stage.app)

        view = await shown(stage, pilot, profiles.captured())
        await pilot.press("m", "full_stop", "plus", "plus", "plus")
        assert view.browse is not None
        assert view.browse.window.span == pytest.approx(20e6 / 8, rel=0.01)
        assert view.browse.window.start <= view.browse.time < view.browse.window.end
        before = view.browse.window.start
        await pilot.press("right")
        assert view.browse.window.start == before + round(view.browse.window.span * 0.1)
        await pilot.press("m", "0")
        assert view.browse.window.span == pytest.approx(20e6, rel=0.01)
        await pilot.press("home", "m", "full_stop", "m", "F")
        assert view.browse.window.span < 1_200_000
        for _ in range(40):
            await pilot.press("plus")
        assert view.browse.window.span == 200, "there is an end to zooming"
        await pilot.press("end")
        assert view.browse.window.end <= 20 * profiles.MS

        await shown(stage, pilot, profiles.captured())
        await pilot.press("m", "V")
        assert isinstance(stage.app.screen, TrustDialog)
        await pilot.pause()
        text = screen_text(stage.app)
        for what in (
            "12 % of the device's time",
            "--no-command-buffers",
            "10 steps were found",
            "2.20 ms a call",
        ):
            assert what in text
        await pilot.press("escape")
        assert isinstance(stage.app.screen, ProfileScreen)


async def test_the_mouse_zooms_letters_are_searched_for_and_matches_are_walked() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE) as pilot:
        view = await shown(stage, pilot, profiles.captured())
        await pilot.press("slash", *"memcpy", "enter")
        await pilot.pause()
        assert view.browse.time == 1_700_000
        assert "match 1 of 10" in screen_text(stage.app)
        await pilot.press("n")
        assert view.browse.time == 3_700_000
        await pilot.press("N", "N")
        assert view.browse.time == 19_700_000, "it goes on at the other end"
        await pilot.press("escape")
        assert isinstance(stage.app.screen, ProfileScreen)
        await pilot.press("slash", "(")
        await pilot.pause()
        assert "not a regular expression" in screen_text(stage.app)

        await shown(stage, pilot, profiles.captured())
        await pilot.press("up", "up", "up", "up")
        await pilot.press("enter")
        closed = screen_text(stage.app)
        await pilot.press("enter")
        assert screen_text(stage.app) != closed
        await pilot.press("slash", *"ExecuteHelper", "enter")
        await pilot.pause()
        assert "ExecuteHelper" in screen_text(stage.app)

        view = await shown(stage, pilot, profiles.captured())
        for _ in range(6):
            await pilot._post_mouse_events([_scroll()], view, offset=(60, 4))
        await pilot.pause()
        assert view.browse is not None
        assert view.browse.window.span < 20e6 / 3
        start = view.browse.window.start
        await pilot.mouse_down(view, offset=(60, 4))
        await pilot.hover(view, offset=(50, 4))
        await pilot.mouse_up(view, offset=(50, 4))
        assert view.browse.window.start > start
        await pilot.click(view, offset=(40, 3))
        assert view.browse.window.start <= view.browse.time < view.browse.window.end


def _scroll() -> Any:
    from textual.events import MouseScrollUp

    return MouseScrollUp


async def test_to_the_hlo_of_a_kernel_and_back() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE) as pilot:
        view = await shown(stage, pilot, profiles.captured())
        await pilot.press("m", "full_stop", "m", "full_stop", "m", "h")
        await until(pilot, lambda: stage.app.current_mode == "hlo")
        assert stage.app.run_in_view == "r2"
        await until(pilot, lambda: "loop_fusion" in screen_text(stage.app), "its kernels")
        await pilot.press("escape")
        await until(pilot, lambda: stage.app.current_mode == "profile", "Esc leads back to where one came from")
        await pilot.press("m", "h")
        await until(pilot, lambda: stage.app.current_mode == "hlo")
        stage.app.show_profile("r2", kernel="dot.1")
        await until(pilot, lambda: stage.app.current_mode == "profile" and view.browse and view.browse.time == 200_000)


async def test_a_kernel_of_an_opened_profile_leads_to_its_program_which_shows_the_whole_timeline() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE) as pilot:
        view = await shown(stage, pilot, profiles.imported(), run="r2")
        assert view.lanes is not None
        assert "kernels with 12 %" in screen_text(stage.app)

        await shown(stage, pilot, profiles.imported(), run="r1")
        await pilot.press("m", "full_stop", "m", "h")
        await until(pilot, lambda: stage.app.current_mode == "hlo")
        assert stage.app.run_in_view == "r2"


async def test_the_tree_of_passes_opens_closes_and_sorts() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE) as pilot:
        await shown(stage, pilot, profiles.captured(), "compile")
        text = screen_text(stage.app)
        for what in ("LLVM", "30.0 ms", "60 %", "fusion", "8.00 ms", "16 %", "50.0 ms"):
            assert what in text
        tree = stage.app.screen.query_one(PassTree)
        everything = len(tree.keys)
        assert everything == 6
        await pilot.press("left")
        assert len(tree.keys) == 1
        await pilot.press("right")
        assert len(tree.keys) == everything
        await pilot.press("m", "Z")
        assert len(tree.keys) == 2
        await pilot.press("m", "Z")
        await pilot.press("s")
        assert tree.current_row is not None
        assert tree.current_row.name == "JitCompiler::Compile", "the longest self time is first"


async def test_escape_closes_the_phase_that_was_opened_and_leaves_only_then() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE) as pilot:
        await shown(stage, pilot, profiles.captured(), view="compile")
        tree = stage.app.screen.query_one(PassTree)
        tree.opened, tree.opened_at_first = set(), frozenset()
        tree.rearrange()
        tree.focus()
        closed = tree.count
        await pilot.press("enter")
        await until(pilot, lambda: tree.count > closed)
        await pilot.press("escape")
        await until(pilot, lambda: tree.count == closed)
        assert stage.app.current_mode == "profile"
        await pilot.press("escape")
        await until(pilot, lambda: stage.app.current_mode != "profile")


async def test_memory_lists_the_buffers_and_the_flame_graph_leads_to_hlo() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE) as pilot:
        await shown(stage, pilot, profiles.captured(), "memory")
        await until(pilot, lambda: stage.app.screen.query_one(BufferList).keys)
        await pilot.pause()
        text = screen_text(stage.app)
        for what in (
            "peak memory 11.4 MiB",
            "buffer assignment",
            "temporary 3.81 MiB 33 %",
            "selu.py:12",
            "+2",
            "MiB alive",
        ):
            assert what in text
        await pilot.press("down", "enter")
        await until(pilot, lambda: stage.app.current_mode == "hlo")

        await shown(stage, pilot, profiles.captured())
        await pilot.press("m", "O")
        await until(pilot, lambda: "kernels by named scope · estimate: bytes moved" in screen_text(stage.app))
        assert "self 0 B · total 7.63 MiB · 100 % of all" in screen_text(stage.app)
        await pilot.press(*["down"] * 6, "enter")
        await until(pilot, lambda: type(stage.app.screen).__name__ == "HloScreen")


async def test_the_cursor_over_the_schedule_lists_what_is_alive_there() -> None:
    tape = profiles.captured()
    tape.add(e.TextRecorded, "r2", name="hlo", text=CHAIN)
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        await shown(stage, pilot, tape, "memory")
        buffers = stage.app.screen.query_one(BufferList)

        async def listed(*names: str) -> None:
            await until(
                pilot, lambda: [row.instruction for row in buffers.left_by_filter().values()] == list(names), str(names)
            )

        await listed("y", "big", "x", "small")
        text = screen_text(stage.app)
        assert "4 buffers of 6.00 KiB alive at the highest point: small, instruction 5 of 7" in text
        assert "peak memory 11.4 MiB" in text, "the sum stays that of XLA's own assignment"
        await pilot.press("right")
        await listed("y", "x", "loop")
        assert "2.00 KiB below the highest" in screen_text(stage.app)
        await pilot.press("m", "comma", "m", "comma")
        await listed("y", "big", "x")
        await pilot.press("m", "A")
        await listed("x", "loop_fusion")
        await pilot.press("escape")
        await listed("y", "big", "x", "small")
        plot = stage.app.screen.query_one(LivePlot)
        await pilot.click(plot, offset=(plot.size.width - 2, 4))
        await listed("y", "x", "loop", "out")


async def test_a_view_without_data_says_why() -> None:
    said = {"timeline": "NumPy runs are not profiled", "compile": "NumPy compiles nothing", "memory": "NumPy's memory"}
    stage = Stage()
    async with stage.app.run_test(size=SIZE) as pilot:
        await shown(stage, pilot, profiles.captured(), run="r1")
        for view, words in said.items():
            stage.app.show_profile("r1", view)
            await until(pilot, lambda words=words: words in screen_text(stage.app), words)


async def test_runs_without_captures_or_kernels_and_damage_say_so() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE) as pilot:
        await shown(stage, pilot, profiles.captured(), run="r1")
        await pilot.press("m", "O")
        await until(pilot, lambda: "No kernels." in screen_text(stage.app))

        await shown(stage, pilot, sessions.finished(), run="r3")
        assert "No capture was recorded" in screen_text(stage.app)
        stage.app.set_session(Tape().session(), None)
        await until(pilot, lambda: "Nothing was run yet" in screen_text(stage.app))

        tape = profiles.captured()
        tape.add(e.TextRecorded, "r2", name="timeline", text='{"version": 1, "lanes": [')
        await shown(stage, pilot, tape)
        await until(pilot, lambda: "damaged" in screen_text(stage.app))


async def test_hostile_names_are_shown_and_not_obeyed() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        for view in ("timeline", "compile", "memory"):
            await shown(stage, pilot, profiles.captured(profiles.HOSTILE), view)
            if view == "timeline":
                await pilot.press("m", "full_stop", "m", "full_stop", "m", "F")
            await pilot.pause()
            await until(pilot, lambda: "[b]jit[/x]␛[31m␊" in screen_text(stage.app), "the name as symbols")
            text = screen_text(stage.app)
            assert "\x1b" not in text
            assert "\u202e" not in text
            assert all(len(line) <= 80 for line in text.split("\n"))


async def test_results_leads_to_the_views_that_a_run_has_and_escape_leads_back() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE) as pilot:
        stage.app.set_session(profiles.captured().session(), None)
        stage.app.show_results("r2")
        await until(pilot, lambda: stage.app.current_mode == "results" and stage.app.focused is not None)
        await pilot.pause()
        for key, view in (("t", "Timeline"), ("b", "Compile"), ("m", "Memory")):
            await pilot.press("m", key)
            await until(pilot, lambda view=view: f"[{view}]" in screen_text(stage.app), view)  # type: ignore[misc]
            await pilot.press("escape")
            await until(pilot, lambda: stage.app.current_mode == "results")
