"""Profile: the overview of what was opened, the timeline under keys and mouse, the compile, the memory."""

import threading
from dataclasses import replace

import pytest
from textual.content import Content
from textual.events import MouseScrollUp

import program_events as made
from folding import written
from jaxprof import events as e
from jaxprof.analysis.kernels.memory import memory_of_run
from jaxprof.analysis.timeline.profile import device_steps, overview
from jaxprof.hlo.kernels.liveness import LiveValue
from jaxprof.session import Session
from jaxprof.trace.checks import TRUST
from jaxprof.tui.kit.host import Destination
from jaxprof.tui.kit.plots import Axis, seconds_tick
from jaxprof.tui.kit.screen_bars import ModeBar
from jaxprof.tui.kit.table_columns import lay_out, row_line
from jaxprof.tui.profile import screen
from jaxprof.tui.profile.memory import BufferList, MemoryView, size_plot
from jaxprof.tui.profile.screen import OverviewList, overview_facts
from jaxprof.tui.profile.timeline.pane import TimelineView
from jaxprof.tui.profile.times import TimeTree
from jaxprof.tui.shell.profiler import mode_for
from tui import profiles, recorded
from tui import session_tapes as sessions
from tui.fakes import MIDDLE, SMALL, walking
from tui.hlo_texts import HLO
from tui.session_tapes import HOSTILE, Tape


def text_of(session, width=100):
    facts = overview_facts(overview(session, session.runs["r1"]), width)
    return "\n".join(fact.plain if isinstance(fact, Content) else fact.content.plain for fact in facts)


@pytest.mark.parametrize("width", [78, 118])
def test_every_part_of_the_overview_is_shown(width):
    text = text_of(profiles.imported(hostile=HOSTILE).session(), width)
    for words in (
        "gpu · 1 device · 20.0 ms · 60 events", "idle and busy are of",
        "20 %", "16.0 ms", "2.00 ms", "9.00 ms", "900 µs", "dot.1", "jit_selu", " est.", "[b]jit[/x]",
    ):  # fmt: skip
        assert words in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= width + 1


def test_names_of_kernels_have_room_beside_their_figures():
    session = profiles.imported().session()
    made = overview(session, session.runs["r1"])
    rates = {"flops_per_second": 2e12, "of_peak": 0.5, "bytes_per_second": 1e12, "of_bandwidth": 0.25}
    made = replace(made, kernels=tuple((run, replace(kernel, **rates)) for run, kernel in made.kernels))
    for width, figures in ((78, set()), (118, {"most"}), (160, {"most", "FLOP/s"})):
        lines = [getattr(fact, "content", fact).plain for fact in overview_facts(made, width)]
        heading = next(number for number, line in enumerate(lines) if "per call" in line)
        assert {"most", "FLOP/s"} & set(lines[heading].split()) == figures
        assert "loop_fusion" in lines[heading + 2]


def test_the_unknown_is_a_dash():
    session = profiles.imported().session()
    run = session.runs["r1"]
    run.steps = e.StepsMeasured(run="r1", found_by="modules", steps=profiles.steps())
    text = text_of(session)
    assert "idle and busy are of" not in text
    assert next(line for line in text.splitlines() if "gpu:0" in line and "-" in line)


def test_steps_of_an_older_session_are_derived_from_its_rows():
    rows = profiles.steps(4)
    rows[-1] = replace(rows[-1], seconds=1e-6, to_next=False)
    (one,) = device_steps(e.StepsMeasured(run="", found_by="annotation", steps=rows))
    assert (one.found_by, one.count, one.complete, one.minimum_seconds) == ("annotation", 4, 3, pytest.approx(2e-3))
    assert (one.quartiles_seconds, one.idle_share) == (None, None)


async def test_profile_opens_at_its_overview(tmp_path):
    tape = profiles.imported()
    written(tmp_path / "profile.jaxprof", tape.events, tape.header)
    async with walking() as walk:
        walk.app.open_session(tmp_path / "profile.jaxprof")
        await walk.on("ProfileScreen")
        await walk.shows("dot.1")
        lines = walk.find(OverviewList)
        assert mode_for(profiles.captured().session()) == "results"
        assert (walk.app.current_mode, walk.app.focused) == ("profile", lines)
        await walk.press("m m", "estimated from the schedule")
        assert walk.find(MemoryView).display
        await walk.press("m T")
        while lines.target is None:
            await walk.press("down")
        await walk.press("enter")
        await walk.mode("hlo")
        assert walk.app.destination.run == "r2"
        await walk.press("escape")
        await walk.mode("profile")

        walk.app.set_session(profiles.captured().session(), None)
        walk.app.show(Destination("profile", "overview", "r2"))
        await walk.on("ProfileScreen")
        await walk.press("m T escape")  # the menu has no such letter, and stays
        assert "Overview" not in walk.text.splitlines()[1]
        assert not walk.screen.query_one("#overview-pane").display


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


async def opened(walk, tape=None, view="timeline", run="r2"):
    await walk.show(tape or profiles.captured(), "profile", view=view, run=run)
    seen = walk.find(TimelineView)
    await walk.until(lambda: seen.count or "Reading" not in walk.text, "the timeline is read")
    await walk.pause()
    return seen


async def test_timeline_under_keys_and_mouse():
    async with walking(MIDDLE) as walk:
        view, pilot = await opened(walk), walk.pilot
        browse = view.browse
        await walk.through("""
            | gpu:0 device busy | kernels with 12 % of the device's time name no | launch gaps | 100 µs 5.0 %
            m I | idle 300 µs | gpu:0 device busy
            home m . | ■ busy 900 µs
            down | gemm_kernel | 900 µs | op dot.1 of jit_selu
            down | before MemcpyD2H
            up m * | 10 matches, median 900 µs
            n | match 2 of 10
            escape m I | idle
            home m . + + +
        """)
        assert browse.window.span == pytest.approx(20e6 / 8, rel=0.01)
        before = browse.window.start
        await walk.press("right")
        assert browse.window.start == before + round(browse.window.span * 0.1)
        await walk.press("m 0 home m . m F")
        assert browse.window.span < 1_200_000

        await walk.press("m 0 home m . space m . m .", "range  2.00 ms", "kernels of gpu:0", "gpu:0 #1", "1.40 ms")
        assert browse.range == (200_000, 2_200_000)
        await walk.through("""
            space / 'memcpy enter
        """)
        assert browse.range is None
        seen = []
        for keys in ("home n", "n", "N N"):
            await walk.press(keys)
            seen.append(browse.cursor)
        assert seen == [1_700_000, 3_700_000, 19_700_000], "it goes on at the other end"
        await walk.through("""
            | match 10 of 10
            escape / ( | not a regular expression
            escape m V | @TextDialog | --no-command-buffers | 10 steps were found
        """)

        await walk.press("escape")
        browse = (await opened(walk)).browse
        for _ in range(6):
            await pilot._post_mouse_events([MouseScrollUp], view, offset=(60, 4))
        await walk.pause()
        assert browse.window.span < 20e6 / 3
        await walk.press("m 0 home + + + space")
        gutter, begin, window = view.size.width - browse.width, browse.cursor, browse.window
        await pilot.click(view, offset=(gutter + 20, 0))
        assert browse.range == tuple(sorted((begin, window.time_at(20, browse.width)))), "to the mouse"
        lines = len(browse.lines)
        await pilot.click(view, offset=(2, 4))
        assert len(browse.lines) != lines, "a click on a name opens or closes"

        await opened(walk, profiles.captured("another_kernel"))  # of a run of the same name
        await walk.press("/ 'another enter", "match 1 of 10")


async def test_timeline_of_many_lanes_follows_the_cursor(
    monkeypatch,
):
    lanes = [profiles.lane("gpu:0", f"Stream #{number}", "stream", [("k", None, 0, 100)]) for number in range(1, 26)]
    many = profiles.captured()
    many.add(e.TextRecorded, "r2", name="timeline", text=profiles.text(lanes, []))
    tape = recorded.finished()
    tape.plan("r2", "profile", "imported", workload="capture window")
    tape.add(e.TextRecorded, "r2", name="timeline", text=profiles.timeline())
    async with walking(SMALL) as walk:
        await walk.show(tape, "program", "exit code 0")
        walk.app.select(made.RUN)
        await walk.through("""
            5 | [Timeline] Time Flame Lines | gpu:0 device busy
            m L | [Lines] | train.py:91  float()
            ] | Memory
            5 | [Timeline]
        """)

        view = await opened(walk, many)
        assert "gpu:0 #25" not in walk.text
        await walk.press("pagedown " * 25, "gpu:0 #25", gone="gpu:0 #1 ")
        assert view.browse.line == 25
        await walk.press("k " * 24, "gpu:0 #1 ", gone="gpu:0 #25")
        monkeypatch.setattr(view, "show_change", lambda: pytest.fail("a cursor that stays has not moved"))
        view.move_to(view.cursor)


async def test_the_ways_to_hlo_and_back():
    async with walking(MIDDLE) as walk:
        app = walk.app
        app.set_session(profiles.captured().session(), None)
        app.select("r2")
        app.switch_mode("results")
        await walk.mode("results")
        await walk.until(lambda: app.focused is not None)
        await walk.pause()
        await walk.through("""
            5 | [Timeline]
            escape | #results
            3 | [Compile]
            escape | #results
            6 | [Memory]
        """)
        view = await opened(walk)
        await walk.through("down m . m . m h | #hlo | loop_fusion")
        assert app.destination.run == "r2"
        await walk.through("escape | #profile")
        app.show(Destination("profile", "timeline", "r2", kernel="dot.1"))
        await walk.until(lambda: app.current_mode == "profile" and view.browse.cursor == 200_000)
        await opened(walk, profiles.imported())
        assert "kernels with 12 %" in walk.text, "a program of a profile shows the whole timeline"
        await opened(walk, profiles.imported(), run="r1")
        await walk.through("down m . m h | #hlo")
        assert app.destination.run == "r2"


async def test_passes_live_buffers_and_whether_a_program_fits(monkeypatch):
    tape = profiles.captured()
    tape.add(e.TextRecorded, "r2", name="hlo", text=CHAIN)
    async with walking() as walk:
        await opened(walk, view="compile")
        tree = walk.screen.query_one("#compile", TimeTree)
        seen = []
        for keys in ("home", "left", "down left", "right", "m Z", "m Z"):
            await walk.press(keys)
            seen.append(len(tree.keys))
        assert seen == [9, 9, 8, 9, 11, 6]
        assert [tree.row(key).name for key in tree.keys][1] == "LLVM", "the longest stage is first"
        await walk.press("s", "nested · 50.0 ms")
        assert [tree.row(key).name for key in tree.keys][-1] == "JitCompiler::Compile"

        await opened(walk, view="memory")
        await walk.through("""
            | temporaries 3.81 MiB (33 %) | selu.py:12 | +2
            down enter | #hlo
        """)
        read = threading.Event()
        monkeypatch.setattr(screen, "memory_of_run", lambda *given: read.wait(20) and memory_of_run(*given))
        walk.app.set_session(tape.session(), None)
        walk.app.show(Destination("profile", "memory", "r2"))
        await walk.mode("profile")
        buffers = walk.find(BufferList)
        await walk.until(lambda: walk.app.focused is None, "the list is hidden while the buffers are read")
        read.set()

        async def listed(names):
            await walk.until(
                lambda: [row.instruction for row in buffers.rows_left_by_filter().values()] == names.split(), names
            )

        await walk.shows("5 buffers of 7.00 KiB alive at the highest point", "peak memory 11.4 MiB")
        await walk.until(lambda: buffers.has_focus)
        walk.screen.set_focus(None)
        await walk.until(lambda: buffers.has_focus, "Textual takes the focus of a hidden list some time later")
        for keys, names in (
            ("", "y big x small out"), ("right", "y x loop out"), ("m , m ,", "y big x out"),
            ("escape", "y big x small out"),
        ):  # fmt: skip
            await walk.press(keys)
            await listed(names)

        for device, words in (("h100", "needs 2.50 MiB of 79.1 GiB on the dev"), ("cpu:0", "peak memory 2.50 MiB (")):
            tape = Tape()
            tape.plan("r1", "jit", "compile", device=device)
            tape.add(e.TextRecorded, "r1", name="hlo", text=HLO, bytes=len(HLO))
            tape.finish("r1")
            await walk.show(tape, "profile", words, view="memory")


@pytest.mark.parametrize(("file", "shown"), [("m.py", "m.py:1234"), ("generate_gemm_trace.py", "_trace.py:1234")])
def test_a_narrow_list_of_buffers_keeps_the_line_numbers(file, shown):
    buffer = LiveValue(bytes=4, kind="output", op_name="jit(f)/dot_general", file=f"/home/me/{file}", line=1234)
    for width in (76, 120):
        assert f"{shown} " in row_line(buffer, lay_out(BufferList()._columns[:-1], width, [buffer]), width).plain + " "


def test_a_size_holds_until_the_next_one():
    plot = size_plot(
        [(0.0, 1 << 30), (9.0, 2 << 30), (10.0, 2 << 30)], None, Axis("time", seconds_tick), "alive", 60, 12
    )
    level = [sum(0x2800 < ord(character) < 0x2900 for character in line) for line in plot.plain.split("\n")]
    assert max(level) > 0.8 * 60, "the size before the change, in one line"


def test_plot_without_sizes_draws_nothing():
    assert size_plot([], None, Axis("time", seconds_tick), "of arrays", 60, 12).plain == ""


async def test_view_without_data_says_why():
    worst = [{"code": "clock", "verdict": "bad", "message": f"the {name} clock jumped"} for name in ("first", "second")]
    eager = sessions.Tape()
    eager.plan("r1", "jax", "eager")
    eager.plan("r2", "jit", baseline="r1")
    eager.start("r1")
    eager.steady("r1", 1e-3)
    eager.finish("r1")
    eager.jit_run("r2", 1e-3)
    eager.close()
    async with walking(MIDDLE) as walk:
        walk.app.set_session(profiles.captured().session(), None)
        walk.app.select("r1")
        await walk.press("5", "gpu:0 #1 Co")  # from a NumPy run, that of a captured one
        assert "timeline" not in walk.app.lacking()
        await opened(walk, run="r1")
        for view, words in (
            ("compile", "NumPy compiles nothing"),
            ("memory", "NumPy's memory"),
            ("timeline", "NumPy runs have no profile"),
        ):
            walk.app.show(Destination("profile", view, "r1"))
            await walk.shows(words)
            assert str(walk.screen.query_one("#compile-pane").border_subtitle) == "", "no passes have no order"

        await opened(walk, sessions.finished(), run="r3")
        await walk.shows("No capture was recorded")
        walk.app.set_session(recorded.compiling().session(), None)
        await walk.until(lambda: walk.app.lacking() == {"kernels", "memory"}, "nothing was captured")
        drawn = walk.find(ModeBar).render().spans
        assert [span for span in drawn if "disabled" in str(span.style)], "they are dimmed"
        walk.app.set_session(Session(e.Header()), None)
        await walk.shows("Nothing was run yet")
        assert not walk.app.lacking(), "of no session, nothing is missing"
        tape = profiles.captured()
        tape.add(e.TextRecorded, "r2", name="timeline", text='{"version": 1, "lanes": [')
        await opened(walk, tape)
        await walk.shows("damaged")
        walk.app.set_session(eager.session(), None)
        walk.app.switch_mode("home")
        await walk.mode("home")
        walk.app.select("r1")
        await walk.press("6", "(memory analysis)")

        for row in worst:
            tape = profiles.captured()
            tape.add(e.TrustReported, "r2", kind="run", rows=[e.TrustCheck(**row)])
            await opened(walk, tape)
            await walk.shows(row["message"])


def test_compile_and_kernels_want_different_profiles():
    """The doubt beside it, of another profile, says that compiles do not belong into a capture."""
    tape = sessions.Tape()
    tape.plan("r1", "profile", "imported")
    assert "times of kernels are better read from one that is started after it" in screen.why_no_passes(
        tape.session().runs["r1"]
    )
    assert TRUST["compile"][1].endswith("unless the compile is what you look at.")


async def test_hostile_names_are_shown_and_not_obeyed():
    async with walking(SMALL) as walk:
        for view in ("timeline", "compile", "memory"):
            await opened(walk, profiles.captured(HOSTILE), view)
            keys = {"timeline": "m . m . m F", "compile": "m Z", "memory": "down"}
            await walk.press(keys[view], "[b]jit[/x]␛[31m␊")
            if view == "timeline":
                await walk.press("m *", " matches, median ")
            assert not {"\x1b", "\u202e"} & set(walk.text)
            assert all(len(line) <= 80 for line in walk.text.split("\n"))
