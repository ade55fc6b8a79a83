"""The Program screen: its drawings, what it shows of a file and while the program goes on, and what it asks of it."""

import threading
from dataclasses import replace
from itertools import count
from pathlib import Path
from time import monotonic, time
from types import SimpleNamespace
from typing import Any, cast

import pytest

import program_events as made
from analysis.made_runs import hlo_text
from folding import fold
from jaxprof import events as e
from jaxprof.base.files import digests_of_sources
from jaxprof.findings.program_result import program_result
from jaxprof.runner.program import ProgramCommand
from jaxprof.session import Session
from jaxprof.tui import clock
from jaxprof.tui.kit.program_summary import figures, first_line, share_bar
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.profile.screen import arrays_of
from jaxprof.tui.profile.times import TimeTree
from jaxprof.tui.program.ledger import LedgerList, compile_strip
from jaxprof.tui.program.screen import ProgramScreen
from jaxprof.tui.shell import profiler
from jaxprof.tui.shell.live import Live, LiveChanged
from jaxprof.tui.shell.profiler import Profiler
from report import sessions
from tui import recorded
from tui.fakes import MIDDLE, PYTHON, SMALL, WIDE, FakeProgramScheduler, walking


@pytest.mark.parametrize("width", [1, 40, 76, 120])
def test_the_bar_fits(width):
    shares = {"compile": 1.0, "device_busy": 2.0, "not_seen": 0.5, "of_a_newer_version": 0.1}
    assert share_bar(shares, width).cell_length == share_bar({}, width).cell_length == width


def test_the_exit_code_and_the_time_do_not_touch():
    line = first_line("train.py", "ok", "exit code 0", "14 h 46 min", 80)
    assert (line.plain[-23:], line.cell_length) == ("exit code 0 14 h 46 min", 80)


async def test_what_its_captures_show_is_among_its_findings():
    """A kernel that only reorders is a tenth of the device's time; of the other one nothing is known."""
    window = [replace(each, spec=replace(each.spec, how="imported", baseline="")) if isinstance(each, e.RunPlanned)
              else each for each in sessions.jit_run("r2", "")[:-2] if getattr(each, "name", "") != "hlo"]  # fmt: skip
    captured = replace(sessions.kernels(fusion_1=1e-3, fusion_2=9e-3), kind="imported")
    lines = [made.line(88, 1.0, "device_busy", "step")]
    whole = made.program(*made.steady(50, {"device_busy": 1.0}, lines))
    recorded_here = fold(made.HEADER, [*whole[:-1], *window, hlo_text(sessions.TRANSPOSES, "r2"), captured, whole[-1]])
    async with walking(MIDDLE) as walk:
        leading = "device-bound 100 %: 90 % of it in one kernel (fusion.2), unexplained"
        await walk.show(recorded_here, "program", "1 kernel only rewrites arrays in another order", leading)
        assert walk.text.index(leading[:40]) < walk.text.index("1 kernel only")


def test_compilations_have_a_mark_as_high_as_their_seconds():
    """Ten seconds over 40 columns behind the label: 0.2 s after a second; 0.48 s after the fifth, which reaches into a
    second column; and three of a library, in one row, from the sixth second to the eighth."""

    def compiled(second, took, **more):
        return made.compiled(began_seconds=made.BEGAN + second, compile_seconds=took, **more)

    rows = [compiled(1, 0.17), compiled(5, 0.45, reason_code="shape")]
    merged = compiled(6, 0.7, reason_code="shape", count=3, library=True, monotonic_seconds=made.BEGAN + 8)
    marks, axis = compile_strip(made.result(*rows, merged), 50)
    assert marks.plain == " compiled     ▇" + " " * 15 + "██  " + "▃" * 9 + " " * 7
    assert axis.plain.index("╷0") == 10
    assert [span.style for span in marks.spans if span.style in ("$warning", "$bar")] == ["$bar", "$warning", "$bar"]
    assert compile_strip(made.result(rows[0]), 50) == compile_strip(made.result(rows[0], rows[0]), 50) == []


async def test_two_findings_of_one_text_at_two_lines_are_two_rows():
    """Functions of one name, such as two lambdas, are recompiled alike."""
    other = {"called_from": made.at(60), "defined_at": made.at(30, "")}
    same = [*made.shaped(6, "fn", compile_seconds=1.0), *made.shaped(6, "fn", compile_seconds=1.0, **other)]
    async with walking(MIDDLE) as walk:
        await walk.show(made.session(*same), "program", "train.py:88", "train.py:60")


PROGRAM = ProgramCommand(path="train.py", arguments=("--epochs", "1"), directory="/home/me")


async def started(walk):
    walk.app.start_program(PROGRAM)
    await walk.on("ProgramScreen")
    await walk.shows("running")
    return walk.stage.programs[-1]


# -- of a file ----------------------------------------------------------------------------------------------------


async def test_summary_begins_with_what_saves_most():
    async with walking(MIDDLE) as walk:
        verdict = "device-bound: 89 % (88-90 %) of the loop at train.py:85"
        screen = await walk.show(recorded.finished(), "program", "✓ exit code 0", verdict, "161 steps/s", "2 388 steps")
        result = program_result(walk.app.session, screen.run.id)
        saved = [line.split("█")[0].split("│")[1].strip() for line in walk.text.splitlines() if "█ " in line]
        assert saved[0] == "3.94 s", "of 6.0 s that it cost"
        assert "train.py:91" in walk.row("3.94 s")
        assert walk.text.splitlines()[-2].startswith(" output  step 19: loss")
        await walk.through("""
            | the host waits for a value in each iteration | → While the host waits
            down | `step` was compiled again for 32 other shapes | → Pad and mask | !→ While the host waits
            up
        """)
        rows = walk.find(LedgerList)
        for key, place, focused in (("3", "compiles", True), ("2", "summary", False), ("3", "compiles", True)):
            await walk.press(key)
            await walk.until(lambda place=place: screen.section == place, place)
            assert (walk.app.focused is rows) is focused

        await walk.through("""
            | shape of x varies: f32[1..33,128] | !f32[1,128] → f32[2,128]
            enter | f32[1,128] → f32[2,128]
            down down enter | @CompilationDialog | shape of x: f32[1,128] → f32[2,128] | f32[128,10]
            escape left left | !f32[1,128] → f32[2,128]
            enter down escape
        """)
        assert (rows.opened, walk.app.current_mode) == (set(), "program")

        orders = []
        for _ in range(4):
            orders.append((rows.order_in_words, rows.keys[0][0]))
            await walk.press("s")
        assert sorted(orders) == [
            ("by function ▾", "add"), ("by time ▾", "step"), ("by times ▾", "step"), ("first compiled ▾", "step")
        ]  # fmt: skip
        await walk.through("""
            / 'varies enter | hidden
            escape | !hidden
        """)
        assert (len(rows.keys), walk.app.current_mode) == (5, "program")

        await walk.through("6 | #profile | has no capture | KiB of arrays over time | highest")
        assert arrays_of(result)[-1] == (result.wall_seconds, result.arrays.counts[-1][2]), "the last one until the end"


async def test_lists_of_times_and_lines_are_drawn_once(tmp_path, monkeypatch):
    async with walking((100, 44)) as walk:
        await walk.show(recorded.finished(), "program")
        await walk.press("5 end", "wall time ")
        assert "100" in walk.row("wall time  ").split()
        await walk.through("""
            m L enter | train.py:91: its text was not recorded
            escape 2 m a | @ExplanationDialog | 1. | verify: jaxprof
            y
        """)
        assert walk.app.clipboard.startswith("jaxprof script --plain train.py")
        await walk.through("""
            escape r | @FormDialog | comes from the session file | before you run it | --epochs 3
            escape
        """)
        assert walk.stage.programs == []

        screen = await walk.show(recorded.finished(), "program", "step")
        drawn = []
        with monkeypatch.context() as patched:
            for listed in screen.query(RowList):
                patched.setattr(listed, "refresh", lambda *regions, listed=listed, **rest: drawn.append(listed))
            screen.show_session(frozenset({"r1"}), replaced=False)
        assert drawn == []

        await walk.press("5 m O", "▾ loop at line 85", "▾ line 91 float()", "6.00 s    29 %")
        assert "0 ns" not in walk.text, "what is all inside others has no time of its own"
        tree = walk.find(TimeTree)
        every = len(tree.keys)
        await walk.press("down down left")
        assert len(tree.keys) == every - 1, "the state in that line is out of view"
        grown = len(tree.opened)
        tree.show({"": tree.row(())}, same=True)
        assert len(tree.opened) == grown, "what is open stays open while the program runs"
        await walk.through("""
            / 'float enter | line 91 float() | !line 88 step
            enter | @SourceLines
            escape escape | line 88 step
            m L | train.py:91  float() | device
        """)
        lines = walk.screen.query_one("#lines", TimeTree)
        whole = lines.row(())
        assert sum(node.seconds for node in whole.inside) == pytest.approx(20.4), "all rows add up to the wall time"
        assert len({node.where for node in whole.inside if node.where}) == sum(
            bool(node.where) for node in whole.inside
        )

        (tmp_path / "train.py").write_text("".join(f"line_{number} = {number}\n" for number in range(1, 200)))
        monkeypatch.setattr(made, "FOLDER", str(tmp_path))
        tape = recorded.finished()
        digests = digests_of_sources([str(tmp_path / "train.py")], time())
        tape.events.append(e.SourcesRead.of(digests, run=made.RUN))
        await walk.show(tape, "program")
        await walk.through("""
            5 m L | line_91 = 91
            enter | @SourceLines | ▸ 91 line_91 = 91
            escape 2 m f down enter | ▸ 88 line_88 = 88
        """)


async def test_nothing_is_obeyed_that_comes_from_outside():
    async with walking((200, 60)) as walk:
        await walk.show(recorded.hostile(), "program")
        assert walk.text.count("[b]jit[/x]␛[31m␊") > 2
        await walk.through("""
            m b enter down down enter | static argument [b]jit[/x]␛[31m␊
            escape 5 m L enter | its text was not recorded
        """)
        assert not {"\x1b", "\u202e"} & set(walk.text)
        await walk.press("escape 3")
        await walk.on("ProgramScreen")
        ledger = walk.find(LedgerList)
        assert ledger.opened
        await walk.show(recorded.finished(), "program")
        assert not ledger.opened, "another program begins with closed functions"


async def test_ended_program_has_nothing_to_come(monkeypatch):
    monkeypatch.setattr("jaxprof.runner.rerun.is_fetched", lambda path: path.name == "fetched.jaxprof")
    tape = recorded.finished()
    for run, name in (("r2", "timeline"), ("r3", "hlo"), ("r4", "timeline"), ("r5", "hlo")):
        tape.plan(run, "profile", "imported", workload="capture window")
        tape.add(e.TextRecorded, run, name=name, text="{}" if name == "timeline" else "HloModule a", bytes=2)
    async with walking(SMALL) as walk:
        for letter, mode, run in (("h", "hlo", "r5"), ("t", "profile", "r4")):
            await walk.show(tape, "program", "exit code 0")
            await walk.through(f"m {letter} | #{mode}")
            assert walk.app.destination.run == run

        await walk.show(made.session(), "program", "No findings.")
        await walk.press("3", "No compilation was recorded.")
        await walk.press("5", "has no capture", "No time was recorded.")
        await walk.press("m L", "No line was sampled.")
        await walk.press("6", "It fits.", "has no capture")
        assert "Nothing of this program was captured" not in walk.text, "said once, with what gets a capture"

        for path in (Path("fetched.jaxprof"), Path("kept.jaxprof")):
            walk.app.set_session(recorded.finished().session(), path)
            walk.app.switch_mode("program")
            screen = await walk.on("ProgramScreen")
            for key in "rw":
                await walk.press(key)
                if path.name == "kept.jaxprof":
                    await walk.on("FormDialog")
                    await walk.shows("This comes from the session file")
                    await walk.press("escape")
                await walk.until(lambda screen=screen: walk.screen is screen)
        assert walk.said.count("files fetched from a URL are never run") == 2
        assert not walk.stage.programs


# -- while it goes on ---------------------------------------------------------------------------------------------


async def test_a_long_compile_ticks_while_nothing_is_said(app_clock, monkeypatch):
    tape = recorded.compiling()
    app_clock.seconds = tape.now
    monkeypatch.setattr(Profiler, "session_grows", property(lambda app: True))
    monkeypatch.setattr(ProgramScreen, "TICK_SECONDS", 0.05)
    async with walking(SMALL) as walk:
        screen = await walk.show(tape, "program", "compiling `step`, backend, 0.5 s  called from train.py:88")
        await walk.shows("▶ running      1.5 s")
        app_clock.seconds += 42.04
        await walk.shows("compiling `step`, backend, 42.5 s", "▶ running     43.5 s")
        await walk.press("1")
        await walk.until(lambda: screen._clock is None)


async def test_a_program_is_followed_captured_cancelled_and_run_again():
    async with walking(SMALL) as walk:
        program = await started(walk)
        screen = walk.screen
        assert screen._clock is not None
        await walk.press("m f", "No findings so far.")
        await walk.press("m a")
        assert walk.screen is screen, "advice waits for the end"
        program.emit(e.LogLine(stream="stdout", text="epoch 1"))
        await walk.press("m l", "epoch 1")
        program.emit(e.Compiled(function="loss", trace_seconds=0.1, compile_seconds=1.2, reason_code="first"))
        await walk.press("m b", "▸ loss")
        await walk.press("w")
        await walk.until(lambda: program.captured == [2.0])
        program.emit(e.CaptureWindow(state="began", monotonic_seconds=monotonic()))
        await walk.shows("capturing a profile")
        await walk.press("w")
        assert len(program.captured) == 1
        await walk.press("C", "Interrupted, as by ctrl+c")
        await walk.press("C")
        await walk.until(lambda: program.cancelled == ["r1", "r1"])
        walk.app.clear_notifications()
        program.finish(3)
        await walk.shows("✗ exit code 3")
        await walk.until(lambda: not walk.app.live.busy and screen._clock is None)
        assert walk.app.live.exit_code == 3

        before = walk.app.session
        await walk.press("r")
        await walk.until(lambda: len(walk.stage.programs) == 2 and walk.app.session is not before)
        assert walk.stage.programs[1].program == PROGRAM
        assert program.closed == "finished"
        await walk.shows("running")
        program.emit(e.LogLine(stream="stdout", text="late word of the first"))
        await walk.until(lambda: before.runs["r1"].log[-1].text == "late word of the first")
        await walk.press("m l")
        assert "late word" not in walk.text


async def test_a_refresh_that_takes_long_is_not_repeated_soon(app_clock, monkeypatch):
    def said(text):
        program.emit(e.Compiled(function=text, trace_seconds=0.1, compile_seconds=1.2, reason_code="first"))
        compiled = walk.app.session.runs["r1"].program.compiled
        return walk.until(lambda: text in [each.function for each in compiled])

    async with walking(SMALL) as walk:
        program = await started(walk)
        await said("first")
        await walk.press("m b", "▸ first")
        monkeypatch.setattr(profiler, "REFRESH_MOST_SECONDS", 5.0)
        monkeypatch.setattr(clock, "thread_time", count().__next__)  # each refresh takes a second
        await said("second")
        await walk.shows("▸ second")
        await said("third")
        app_clock.seconds += 4.9
        walk.app.follow_session()
        await walk.pause()
        assert "▸ third" not in walk.text
        app_clock.seconds += 0.2
        await walk.shows("▸ third")
        await said("last")
        program.finish()
        await walk.shows("▸ last")


def test_a_program_that_starts_as_another_one_ends_is_busy():
    programs = []
    told = []
    again = threading.Event()

    def post(message):
        if isinstance(message, LiveChanged):
            told.append(message.busy)
            if told.count(True) == 2:
                again.set()

    def make(program, interpreter, listen):
        programs.append(FakeProgramScheduler(made.HEADER, program, listen))
        return programs[-1], Session(made.HEADER), None

    class Gate:
        """A lock after which, when the first program has ended, the second one starts at once."""

        def __enter__(self):
            lock.acquire()

        def __exit__(self, *_):
            lock.release()
            if len(programs) == 1 and programs[0].exit_code == 0 and not second.is_alive():
                second.start()
                assert again.wait(20)

    live = Live(cast(Any, SimpleNamespace(is_running=True, post_message=post)), PYTHON, make=make)
    lock, live._lock = live._lock, cast(Any, Gate())
    first, second = (threading.Thread(target=live._start, args=(PROGRAM, ())) for _ in range(2))
    first.start()
    while not live.busy:
        assert first.is_alive()
    for thread, busy in ((first, True), (second, False)):
        programs[-1].finish(0)
        thread.join(20)
        assert live.busy is busy
    assert told == [True, False, True, False]


@pytest.mark.usefixtures("catalogue", "shelf")
async def test_program_and_measurement_do_not_run_at_once():
    async with walking(WIDE) as walk:
        program = await started(walk)
        await walk.press("1")
        await walk.home()
        await walk.press("r", "a program is running")
        assert walk.stage.scheduler is None

        await walk.press("2")
        await walk.on("ProgramScreen")
        for name, line in (("step", 88), ("head", 60)):
            for event in made.shaped(6, name, called_from=made.at(line), compile_seconds=1.0):
                program.emit(event)
        program.finish(0)
        await walk.shows("✓ exit code 0", "`step` was compiled again", "`head` was compiled again")
        for keys in ("home", "down"):
            await walk.press(keys, "→ Pad and mask")
        await walk.until(lambda: not walk.app.live.busy)

        await walk.press("1")
        await walk.home()
        await walk.press("r")
        await walk.until(lambda: walk.stage.scheduler is not None and walk.app.session.runs.get("r1"))
        assert program.closed == "finished"
        walk.app.start_program(PROGRAM)
        await walk.shows("another run is in progress")
        cast(Any, walk.stage.scheduler).finish()
        await walk.until(lambda: not walk.app.live.busy)


@pytest.mark.parametrize(
    ("unseen", "said"),
    [(0.1, "device-bound: 90 % (88-100 %) of the loop at train.py:85"), (0.8, "what bounds it is unknown"), (None, "")],
)
def test_head_says_what_bounds_the_loop(unseen, said):
    lines = [
        made.line(88, 1 - (unseen or 0), "device_busy", "step"),
        made.line(88, unseen or 0, "host_busy", kind="unseen"),
    ]
    seen = [] if unseen is None else made.steady(10, {"device_busy": 1 - unseen, "host_busy": unseen}, lines)
    session = made.session(*seen)
    known = figures(session, program_result(session, made.RUN))
    assert [text for text, _ in known if "bound" in text] == ([said] if said else [])
