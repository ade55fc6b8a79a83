"""Profile: the timeline under keys and mouse, the compile, the memory, and what is said where nothing is known."""

from __future__ import annotations

from typing import Any

import pytest
from textual.events import MouseScrollUp
from textual.pilot import Pilot

from jaxprof import events as e
from jaxprof.session import Session
from jaxprof.tui.kit.captures import TrustDialog
from jaxprof.tui.kit.memory import BufferList, LivePlot
from jaxprof.tui.kit.screen_bars import ModeBar
from jaxprof.tui.profile.compile_pane import PassTree
from jaxprof.tui.profile.screen import ProfileScreen
from jaxprof.tui.profile.timeline.view import TimelineView
from tui import profiles, recorded
from tui import session_tapes as sessions
from tui.fakes import MIDDLE, SMALL, Stage, Walk, still, walking
from tui.session_tapes import Tape

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


async def opened(walk: Walk, tape: Tape | None = None, view: str = "timeline", run: str = "r2") -> Any:
    """A view of a run, with everything read."""
    walk.app.set_session((tape or profiles.captured()).session(), None)
    walk.app.show_profile(run, view)
    await walk.on(ProfileScreen)
    seen = walk.find(TimelineView)
    await walk.until(lambda: seen.lanes is not None or "Reading" not in walk.text, "the timeline is read")
    await walk.pause()
    return seen


async def test_the_timeline_under_keys() -> None:
    async with walking(MIDDLE) as walk:
        view = await opened(walk)
        await walk.shows("python", "gpu:0 #1 Co", "gpu:0 #2 Me", "kernels with 12 % of the device's time name no")
        await walk.shows(
            "kernels 1.40 ms 70 %", "transfers 200 µs 10 %", "launch gaps 100 µs 5.0 %", "idle 300 µs 15 %"
        )
        await walk.press("m .", "gemm_kernel", "900 µs", "op dot.1 of jit_selu")
        browse, seen = view.browse, []
        for keys in ("", "m .", "m ,"):
            await walk.press(keys)
            seen.append(browse.time)
        assert seen == [200_000, 1_150_000, 200_000]
        await walk.press("down", "before MemcpyD2H")

        await walk.press("up + + +")
        assert browse.window.span == pytest.approx(20e6 / 8, rel=0.01)
        assert browse.window.start <= browse.time < browse.window.end
        before = browse.window.start
        await walk.press("right")
        assert browse.window.start == before + round(browse.window.span * 0.1)
        await walk.press("m 0")
        assert browse.window == browse.whole
        await walk.press("home m . m F")
        assert browse.window.span < 1_200_000
        for _ in range(14):
            await walk.press("+")
        assert browse.window.span == 200, "there is an end to zooming"
        await walk.press("end")
        assert browse.window.end <= 20 * profiles.MS

        await walk.press(
            "m V", "12 % of the device's time", "--no-command-buffers", "10 steps were found", "2.20 ms a call"
        )
        assert isinstance(walk.screen, TrustDialog)
        await walk.press("escape")
        assert isinstance(walk.screen, ProfileScreen)

        view = await opened(walk)
        await walk.press("/ 'memcpy enter", "match 1 of 10")
        seen = []
        for keys in ("", "n", "N N"):
            await walk.press(keys)
            seen.append(view.browse.time)
        assert seen == [1_700_000, 3_700_000, 19_700_000], "it goes on at the other end"
        await walk.press("escape / (", "not a regular expression")
        await walk.press("escape up up up up enter")
        closed = walk.text
        await walk.press("enter")
        assert walk.text != closed
        await walk.press("/ 'ExecuteHelper enter", "ExecuteHelper")


async def test_ranges_and_hidden_lanes_are_seen_and_undone() -> None:
    async with walking((100, 30)) as walk:
        view = await opened(walk)
        browse = view.browse
        await walk.press("m . space m . m .", "range  2.00 ms", "kernels of gpu:0", "gpu:0 #1 Comp", "1.40 ms")
        assert browse.range == (200_000, 2_200_000)
        first, last = (browse.window.column_of(time, browse.width) for time in browse.range)
        gutter = view.size.width - browse.width
        grounds = [s.style.bgcolor for s in view.render_line(view.size.height - 1) for _ in s.text]
        assert grounds[gutter + first] != grounds[gutter + last + 2]
        assert set(grounds[gutter + first : gutter + last]) == {grounds[gutter + first]}
        assert all(
            not segment.text.strip() or segment.style.color != segment.style.bgcolor
            for y in range(view.size.height)
            for segment in view.render_line(y)
        )
        await walk.press("escape")
        assert browse.range is None
        before = walk.text.count("gpu:0 #")
        await walk.press("m _", "1 lanes hidden (m A)")
        assert walk.text.count("gpu:0 #") == before - 1
        await walk.press("m A m K", "•")
        assert browse.hidden == 0


async def test_jumps_say_why_they_stay_and_escape_goes_back_to_the_whole_before_it_leaves() -> None:
    async with walking((100, 30)) as walk:
        browse = (await opened(walk)).browse
        await walk.press("m . m *", "2 of 10, median 900 µs")
        assert browse.time == 2_200_000
        await walk.press("m # m #", "This is the first event of this name.")
        assert browse.time == 200_000
        await walk.press("m } m I", "the longest of 19")
        await walk.press("+ + space right right escape")
        assert (browse.range, browse.window != browse.whole) == (None, True)
        await walk.press("escape")
        assert (browse.window, walk.app.current_mode) == (browse.whole, "profile")
        await walk.press("escape")
        await walk.until(lambda: walk.app.current_mode != "profile")


async def test_the_timeline_under_the_mouse() -> None:
    async with walking((100, 30)) as walk:
        view, pilot = await opened(walk), walk.pilot
        browse = view.browse

        async def drag(start: tuple[int, int], end: tuple[int, int]) -> None:
            await pilot.mouse_down(view, offset=start)
            await pilot.hover(view, offset=end)
            await pilot.mouse_up(view, offset=end)

        for _ in range(6):
            await pilot._post_mouse_events([MouseScrollUp], view, offset=(60, 4))
        await walk.pause()
        assert browse.window.span < 20e6 / 3
        start = browse.window.start
        await drag((60, 4), (50, 4))
        assert browse.window.start > start
        await pilot.click(view, offset=(40, 3))
        assert browse.window.start <= browse.time < browse.window.end

        await walk.press("m 0")
        gutter = view.size.width - browse.width
        ruler = next(y for y in range(view.size.height) if "▼" in view.render_line(y).text)
        await walk.press("home + + +")
        before = browse.window
        await drag((gutter + 60, 0), (gutter + 60, 0))
        assert browse.window.start > before.end, "the map"
        await drag((gutter + 10, ruler), (gutter + 40, ruler))
        window = browse.window
        assert browse.range == (window.time_at(10, browse.width), window.time_at(40, browse.width))
        await drag((gutter + 40, ruler + 2), (gutter + 60, ruler + 2))
        assert browse.window.start < window.start
        assert browse.range is not None, "a drag leaves it"


async def test_the_ways_to_hlo_and_back() -> None:
    async with walking(MIDDLE) as walk:
        app = walk.app
        app.set_session(profiles.captured().session(), None)
        app.show_results("r2")
        await walk.mode("results")
        await walk.until(lambda: app.focused is not None)
        await walk.pause()
        for key, name in (("t", "Timeline"), ("b", "Compile"), ("m", "Memory")):
            await walk.press(f"m {key}", f"[{name}]")
            await walk.press("escape")
            await walk.mode("results")

        view = await opened(walk)
        await walk.press("m . m . m h", "loop_fusion")
        await walk.mode("hlo")
        assert app.run_in_view == "r2"
        await walk.press("escape")
        await walk.mode("profile")
        await walk.press("m h")
        await walk.mode("hlo")
        app.show_profile("r2", kernel="dot.1")
        await walk.until(lambda: app.current_mode == "profile" and view.browse and view.browse.time == 200_000)

        await opened(walk)
        await walk.press(
            "m O", "kernels by named scope · estimate: bytes moved", "self 0 B · total 7.63 MiB · 100 % of all"
        )
        await walk.press("down down down down down down enter")
        await walk.mode("hlo")

        await opened(walk, profiles.imported())
        assert walk.find(TimelineView).lanes is not None, "a program of a profile shows the whole timeline"
        assert "kernels with 12 %" in walk.text
        await opened(walk, profiles.imported(), run="r1")
        await walk.press("m . m h")
        await walk.mode("hlo")
        assert app.run_in_view == "r2"


async def test_the_tree_of_passes_opens_closes_and_sorts() -> None:
    async with walking(MIDDLE) as walk:
        await opened(walk, view="compile")
        tree = walk.find(PassTree)
        seen = []
        for keys in ("", "left", "right", "m Z", "m Z"):
            await walk.press(keys)
            seen.append(len(tree.keys))
        assert seen == [6, 1, 6, 2, 6]

        tree.opened, tree.opened_at_first = set(), frozenset()
        tree.rearrange()
        closed = tree.count
        await walk.press("home enter")
        await walk.until(lambda: tree.count > closed)
        await walk.press("escape")
        await walk.until(lambda: tree.count == closed)
        assert walk.app.current_mode == "profile"
        await walk.press("escape")
        await walk.until(lambda: walk.app.current_mode != "profile")


async def test_the_passes_are_sorted_by_their_own_time() -> None:
    async with walking(MIDDLE) as walk:
        await opened(walk, view="compile")
        await walk.press("s")
        assert walk.find(PassTree).current_row.name == "JitCompiler::Compile", "the longest is first"


async def test_the_cursor_over_the_schedule_lists_what_is_alive_there() -> None:
    tape = profiles.captured()
    tape.add(e.TextRecorded, "r2", name="hlo", text=CHAIN)
    async with walking() as walk:
        await opened(walk, view="memory")
        await walk.shows("temporary 3.81 MiB 33 %", "selu.py:12", "+2")
        await walk.press("down enter")
        await walk.mode("hlo")

        await opened(walk, tape, "memory")
        buffers = walk.find(BufferList)

        async def listed(names: str) -> None:
            await walk.until(
                lambda: [row.instruction for row in buffers.left_by_filter().values()] == names.split(), names
            )

        await listed("y big x small")
        await walk.shows("4 buffers of 6.00 KiB alive at the highest point: small, instruction 5 of 7")
        await walk.shows("peak memory 11.4 MiB")  # the sum stays that of XLA's own assignment
        await walk.until(lambda: buffers.has_focus)
        await walk.press("right", "2.00 KiB below the highest")
        await listed("y x loop")
        for keys, names in (("m , m ,", "y big x"), ("m A", "x loop_fusion"), ("escape", "y big x small")):
            await walk.press(keys)
            await listed(names)
        plot = walk.find(LivePlot)
        await walk.pilot.click(plot, offset=(plot.size.width - 2, 4))
        await listed("y x loop out")


async def test_what_has_no_data_says_why() -> None:
    async with walking(MIDDLE) as walk:
        await opened(walk, run="r1")
        said = {
            "timeline": "NumPy runs have no profile",
            "compile": "NumPy compiles nothing",
            "memory": "NumPy's memory",
        }
        for view, words in said.items():
            walk.app.show_profile("r1", view)
            await walk.shows(words)
        walk.app.show_profile("r1", "timeline")
        await walk.press("m O", "No kernels.")
        await opened(walk, sessions.finished(), run="r3")
        await walk.shows("No capture was recorded")
        walk.app.set_session(Tape().session(), None)
        await walk.shows("Nothing was run yet")
        tape = profiles.captured()
        tape.add(e.TextRecorded, "r2", name="timeline", text='{"version": 1, "lanes": [')
        await opened(walk, tape)
        await walk.shows("damaged")


async def test_hostile_names_are_shown_and_not_obeyed() -> None:
    async with walking(SMALL) as walk:
        for view in ("timeline", "compile", "memory"):
            await opened(walk, profiles.captured(profiles.HOSTILE), view)
            if view == "timeline":
                await walk.press("m . m . m F")
            await walk.shows("[b]jit[/x]␛[31m␊")
            assert not {"\x1b", "\u202e"} & set(walk.text)
            assert all(len(line) <= 80 for line in walk.text.split("\n"))


@pytest.mark.parametrize("view", ["timeline", "compile", "memory"])
def test_pictures(snap_compare: Any, view: str) -> None:
    stage = Stage()

    async def before(pilot: Pilot[Any]) -> None:
        walk = Walk(stage, pilot)
        await opened(walk, view=view)
        await pilot.app.workers.wait_for_complete()
        await walk.press(". + +" if view == "timeline" else "down")
        await still(pilot)

    assert snap_compare(stage.app, terminal_size=(120, 40), run_before=before)


async def test_from_a_numpy_run_the_timeline_is_that_of_a_captured_one_and_what_is_missing_is_dimmed() -> None:
    async with walking(MIDDLE) as walk:
        walk.app.set_session(profiles.captured().session(), None)
        assert walk.app.session.runs["r1"].plan.how == "numpy"
        walk.app.run_in_view = "r1"
        await walk.press("5", "gpu:0 #1 Co")
        assert "timeline" not in walk.app.lacking()

        walk.app.set_session(recorded.compiling().session(), None)
        await walk.until(lambda: walk.app.lacking() == {"kernels", "timeline", "memory"}, "nothing was captured")
        drawn = walk.find(ModeBar).render().spans
        assert [span for span in drawn if "disabled" in str(span.style)], "they are dimmed"
        walk.app.set_session(Session(e.Header()), None)
        assert not walk.app.lacking(), "of no session, nothing is missing"
