"""The Program screen: what it shows of a file, what it shows while the program goes on, and what it asks of it."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any, cast

import pytest
from textual.pilot import Pilot

import program_events
from jaxprof import events as e
from jaxprof.analysis.programs.derive import program_result
from jaxprof.report.conclusion import program_cost
from jaxprof.runner.program import ProgramCommand
from jaxprof.session import Session
from jaxprof.tui.app import JaxprofApp
from jaxprof.tui.home.screen import HomeScreen
from jaxprof.tui.kit.explanation import ExplanationDialog
from jaxprof.tui.kit.script_dialog import ScriptDialog
from jaxprof.tui.live import Live
from jaxprof.tui.messages import LiveChanged
from jaxprof.tui.program.ledger import CompilationDialog, LedgerList
from jaxprof.tui.program.line_profile import HotLineList, SourceLines
from jaxprof.tui.program.screen import ProgramScreen
from tui import recorded
from tui.fakes import MIDDLE, PYTHON, SMALL, FakeProgramConductor, Stage, Walk, still, walking

PROGRAM = ProgramCommand(path="train.py", arguments=("--epochs", "1"), directory="/home/me")


async def started(walk: Walk) -> FakeProgramConductor:
    """A program that was started and goes on."""
    walk.app.start_program(PROGRAM)
    await walk.on(ProgramScreen)
    await walk.shows("running")
    return walk.stage.programs[-1]


# -- of a file ----------------------------------------------------------------------------------------------------


async def test_the_ledger_is_grouped_sorted_and_filtered_and_opens_step_by_step() -> None:
    async with walking(MIDDLE) as walk:
        walk.app.action_go("profile")
        await walk.mode("profile")
        session = recorded.finished().session()
        await walk.show(session, "program", "✓ exit code 0", "6 compilations in 4.62 s (16 %)")
        await walk.press("3", "shape of batch varies: f32[5..32,512]", gone="f32[32,512] → f32[5,512]")

        rows = walk.find(LedgerList)
        await walk.press("enter", "f32[32,512] → f32[5,512]")
        await walk.press("down down enter")
        await walk.on(CompilationDialog)
        await walk.shows("shape of batch: f32[32,512] → f32[5,512]", "params['w']")
        await walk.shows("trace 50.0 ms, lower 50.0 ms, compile 400 ms")
        await walk.press("escape left left", gone="f32[32,512] → f32[5,512]")
        await walk.press("enter down")
        assert rows.open_around is not None
        await walk.press("escape")
        assert (rows.opened, walk.app.current_mode) == (set(), "program")

        orders = []
        for _ in range(4):
            orders.append((rows.order_in_words, *(str(key[0]) for key in rows.keys if isinstance(key, tuple))))
            await walk.press("s")
        assert orders[0][1:] == ("train_step", "add")
        assert sorted(orders) == [
            ("by function ▾", "add", "train_step"),
            ("by time ▾", "train_step", "add"),
            ("by times ▾", "train_step", "add"),
            ("first compiled ▾", "train_step", "add"),
        ]
        await walk.press("s", "by function ▾")
        await walk.press("/ 'batch enter", "1 hidden")
        assert len(rows.keys) == 1
        await walk.press("escape", gone="1 hidden")
        assert (len(rows.keys), walk.app.current_mode) == (2, "program")
        await walk.press("escape")
        await walk.mode("profile")


@pytest.mark.parametrize("size", [SMALL, (120, 40), (200, 60)])
async def test_the_summary_of_a_program_begins_with_its_largest_costs_and_the_ledger_is_under_compiles(
    size: tuple[int, int],
) -> None:
    async with walking(size) as walk:
        screen = await walk.show(recorded.finished(), "program")
        result = program_result(walk.app.session, screen.run.id)
        cost, certainty = program_cost(result)
        assert screen.place == "summary"
        costs = screen.query_one("#costs").render().plain
        assert re.sub(r"[ \n]+", " ", costs) == f"costs most {cost} how sure {certainty} "
        assert walk.text.index("costs most") < walk.text.index(result.findings[0].message[:30])
        await walk.press("3")
        await walk.until(lambda: screen.place == "compiles", "the ledger")
        assert walk.app.focused is walk.find(LedgerList)
        await walk.press("2")
        await walk.until(lambda: screen.place == "summary", "what costs most")


async def test_times_lines_sources_and_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with walking((100, 44)) as walk:
        await walk.show(recorded.finished(), "program")
        await walk.press("m T end", "total ")
        assert {"28.6", "100"} <= set(walk.row("total ").split())
        await walk.press("m L enter", "train.py:90 cannot be read here")
        await walk.press("escape m a")
        await walk.on(ExplanationDialog)
        await walk.shows("1. ", "verify (from the file): jaxprof")
        await walk.press("y")
        assert walk.app.clipboard.startswith("jaxprof script --plain train.py")
        await walk.press("escape r")
        await walk.on(ScriptDialog)
        await walk.shows("Check it before you run it", "--epochs 1")
        await walk.press("escape")
        assert walk.stage.programs == []

        (tmp_path / "train.py").write_text("".join(f"line_{number} = {number}\n" for number in range(1, 200)))
        monkeypatch.setattr(recorded, "HOME", str(tmp_path))
        screen = await walk.show(recorded.finished(), "program")
        await walk.press("m L", "line_90 = 90")
        assert walk.app.focused is screen.query_one(HotLineList)
        await walk.press("enter")
        await walk.on(SourceLines)
        await walk.shows("▶  90 line_90 = 90")
        await walk.press("escape m f down enter", "▶  91 line_91 = 91")


async def test_nothing_is_obeyed_that_comes_from_outside() -> None:
    async with walking((200, 60)) as walk:
        await walk.show(recorded.hostile(), "program")
        assert walk.text.count("[b]jit[/x]␛[31m␊") > 4
        await walk.press("m b enter down down enter", "static argument [b]jit[/x]␛[31m␊")
        await walk.press("escape m L enter", "cannot be read here")
        assert not {"\x1b", "\u202e"} & set(walk.text)
        await walk.press("escape")
        ledger = walk.find(LedgerList)
        assert ledger.opened
        await walk.show(recorded.finished(), "program")
        assert not ledger.opened, "another program begins with closed functions"


async def test_profile_and_hlo_lead_to_the_last_window() -> None:
    tape = recorded.finished()
    for run in ("r2", "r3", "r4", "r5"):
        tape.plan(run, "profile", "imported", workload="capture window")
    for run, name in (("r2", "timeline"), ("r3", "hlo"), ("r4", "timeline"), ("r5", "hlo")):
        tape.add(e.TextRecorded, run, name=name, text="{}" if name == "timeline" else "HloModule a", bytes=2)
    async with walking(SMALL) as walk:
        for letter, mode, run in (("h", "hlo", "r5"), ("t", "profile", "r4")):
            await walk.show(tape, "program", "exit code 0")
            await walk.press(f"m {letter}")
            await walk.mode(mode)
            assert walk.app.run_in_view == run


# -- while it goes on ---------------------------------------------------------------------------------------------


async def test_a_long_compile_ticks_while_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = recorded.compiling()
    now = [tape.now]
    monkeypatch.setattr("jaxprof.tui.kit.program_summary.monotonic", lambda: now[0])
    monkeypatch.setattr(JaxprofApp, "session_grows", property(lambda app: True))
    monkeypatch.setattr(ProgramScreen, "TICK_SECONDS", 0.05)
    async with walking(SMALL) as walk:
        screen = await walk.show(tape, "program", "compiling `train_step`, backend, 0.5 s  called from train.py:88")
        await walk.shows("▶ running      1.5 s")
        now[0] += 42.04
        await walk.shows("compiling `train_step`, backend, 42.5 s", "▶ running     43.5 s")
        await walk.press("1")
        await walk.until(lambda: screen._clock is None)


async def test_a_program_is_followed_captured_cancelled_and_run_again() -> None:
    async with walking(SMALL) as walk:
        program = await started(walk)
        screen = walk.screen
        assert screen._clock is not None
        assert "a: what to do" not in walk.text
        await walk.press("m a")
        assert walk.screen is screen, "advice waits for the end"
        program.emit(e.LogLine(stream="stdout", text="epoch 1"))
        await walk.press("m l", "epoch 1")
        program.emit(e.Compiled(function="loss", trace_seconds=0.1, compile_seconds=1.2, reason_code="first"))
        await walk.press("m b", "▸ loss")
        await walk.press("w")
        await walk.until(lambda: program.captured == [(2.0, None)])
        program.emit(e.CaptureWindow(state="began", monotonic_seconds=monotonic()))
        await walk.shows("capturing a profile")
        await walk.press("w")
        assert len(program.captured) == 1
        await walk.press("C", "Interrupted, as by ctrl+c")
        assert program.cancelled == ["r1"]
        await walk.press("C")
        await walk.until(lambda: program.cancelled == ["r1", "r1"])
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


async def test_a_program_whose_first_events_are_shown_before_it_counts_as_busy_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = FakeProgramConductor.start

    def seen_at_once(program: FakeProgramConductor) -> str:
        run = start(program)
        deadline = monotonic() + 20
        while not stage.app.session.runs and monotonic() < deadline:
            sleep(0.01)
        sleep(0.3)  # until the app has judged whether they go on
        return run

    monkeypatch.setattr(FakeProgramConductor, "start", seen_at_once)
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await started(Walk(stage, pilot))


def test_a_program_that_starts_as_another_one_ends_is_busy() -> None:
    programs: list[FakeProgramConductor] = []
    told: list[bool] = []
    again = threading.Event()

    def post(message: object) -> None:
        if isinstance(message, LiveChanged):
            told.append(message.busy)
            if told.count(True) == 2:
                again.set()

    def make(program: ProgramCommand, interpreter: object, listen: Any) -> Any:
        programs.append(FakeProgramConductor(program_events.HEADER, program, listen))
        return programs[-1], Session(program_events.HEADER), None

    class Gate:
        """A lock after which, when the first program has ended, the second one starts at once."""

        def __enter__(self) -> None:
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()
            if len(programs) == 1 and programs[0].exit_code == 0 and not second.is_alive():
                second.start()
                assert again.wait(20)

    live = Live(cast(Any, SimpleNamespace(is_running=True, post_message=post)), PYTHON, make_program=make)
    lock, live._lock = live._lock, cast(Any, Gate())
    first, second = (threading.Thread(target=live._start_program, args=(PROGRAM,)) for _ in range(2))
    first.start()
    while not live.busy:
        assert first.is_alive()
    programs[0].finish(0)
    first.join(20)
    assert live.busy
    assert told == [True, False, True]
    programs[1].finish(0)
    second.join(20)
    assert not live.busy


@pytest.mark.usefixtures("catalogue", "shelf")
async def test_what_is_measured_and_a_program_do_not_go_on_at_once() -> None:
    async with walking(MIDDLE) as walk:
        program = await started(walk)
        for busy in (True, False):
            await walk.press("1")
            home = await walk.on(HomeScreen)
            await walk.until(lambda home=home: home.info)
            await walk.press("r")
            if busy:
                await walk.shows("a program is running")
                assert walk.stage.scheduler is None
                program.finish(0)
                await walk.until(lambda: not walk.app.live.busy)
        await walk.until(lambda: walk.stage.scheduler is not None and walk.app.session.runs.get("r1"))
        assert program.closed == "finished"
        walk.app.start_program(PROGRAM)
        await walk.shows("another run is in progress")
        cast(Any, walk.stage.scheduler).finish()
        await walk.until(lambda: not walk.app.live.busy)


@pytest.mark.parametrize(
    ("made", "size", "keys"),
    [(recorded.finished, (200, 60), "right"), (recorded.finished, (120, 40), "m O down down")],
    ids=["large", "flame"],
)
def test_pictures(snap_compare: Any, made: Any, size: tuple[int, int], keys: str) -> None:
    stage = Stage()

    async def before(pilot: Pilot[Any]) -> None:
        walk = Walk(stage, pilot)
        await walk.show(made(), "program")
        await walk.press(keys)
        await still(pilot)

    assert snap_compare(stage.app, terminal_size=size, run_before=before)
