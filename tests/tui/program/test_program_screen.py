"""The Program screen: what it shows of a file, what it shows while the program goes on, and what it asks of it."""

from __future__ import annotations

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
from jaxprof.runner.program import ProgramCommand
from jaxprof.session import Session
from jaxprof.tui.app import JaxprofApp
from jaxprof.tui.kit.explanation import ExplanationDialog
from jaxprof.tui.kit.script_dialog import ScriptDialog
from jaxprof.tui.live import Live
from jaxprof.tui.messages import LiveChanged
from jaxprof.tui.program.ledger import CompilationDialog, LedgerList
from jaxprof.tui.program.line_profile import HotLineList, SourceLines
from jaxprof.tui.program.screen import ProgramScreen
from tui import recorded
from tui.fakes import PYTHON, FakeProgramConductor, Stage, screen_text, until
from tui.session_tapes import Tape

PROGRAM = ProgramCommand(path="train.py", arguments=("--epochs", "1"), directory="/home/me")


async def shown(stage: Stage, pilot: Pilot[Any], tape: Tape) -> ProgramScreen:
    """The Program screen with the tape's session."""
    stage.app.set_session(tape.session(), None)
    stage.app.action_go("program")
    await until(pilot, lambda: isinstance(stage.app.screen, ProgramScreen) and stage.app.screen.run is not None)
    await pilot.pause()
    screen = stage.app.screen
    assert isinstance(screen, ProgramScreen)
    return screen


async def started(stage: Stage, pilot: Pilot[Any]) -> ProgramScreen:
    """A program that was started and goes on."""
    stage.app.start_program(PROGRAM)
    await until(pilot, lambda: isinstance(stage.app.screen, ProgramScreen) and stage.app.screen.run is not None)
    screen = stage.app.screen
    assert isinstance(screen, ProgramScreen)
    await until(pilot, lambda: "running" in screen_text(stage.app))
    return screen


async def test_without_a_program_the_screen_shows_how_to_record_one_and_no_empty_list() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        stage.app.action_go("program")
        await until(pilot, lambda: "No program was recorded" in screen_text(stage.app))
        assert LedgerList.EMPTY not in screen_text(stage.app)


# -- of a file ----------------------------------------------------------------------------------------------------


async def test_the_ledger_is_grouped_sorted_and_filtered() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(100, 30)) as pilot:
        await shown(stage, pilot, recorded.finished())
        text = screen_text(stage.app)
        assert "✓ exit code 0" in text
        assert "6 compiled in 4.62 s (16 %)" in text
        assert "shape of batch varies: f32[5..32,512]" in text
        assert "f32[32,512] → f32[5,512]" not in text
        await pilot.press("enter")
        await until(pilot, lambda: "f32[32,512] → f32[5,512]" in screen_text(stage.app))
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: isinstance(stage.app.screen, CompilationDialog))
        text = screen_text(stage.app)
        assert "shape of batch: f32[32,512] → f32[5,512]" in text
        assert "trace 50.0 ms, lower 50.0 ms, compile 400 ms" in text
        assert "params['w']" in text
        await pilot.press("escape", "left", "left")
        await until(pilot, lambda: "f32[32,512] → f32[5,512]" not in screen_text(stage.app))

        screen = await shown(stage, pilot, recorded.finished())
        rows = screen.query_one(LedgerList)
        first = [str(key[0]) for key in rows.keys if isinstance(key, tuple)]
        assert first == ["train_step", "add"]
        orders = set()
        for _ in range(4):
            await pilot.press("s")
            orders.add((rows.order_in_words, *(str(key[0]) for key in rows.keys if isinstance(key, tuple))))
        assert orders == {
            ("first compiled ▾", "train_step", "add"),
            ("by function ▾", "add", "train_step"),
            ("by times ▾", "train_step", "add"),
            ("by time ▾", "train_step", "add"),
        }
        await pilot.press("s")
        await until(pilot, lambda: "by function ▾" in screen_text(stage.app))
        await pilot.press("slash", *"batch", "enter")
        await until(pilot, lambda: len(rows.keys) == 1)
        await until(pilot, lambda: "1 hidden" in screen_text(stage.app))
        await pilot.press("escape")
        await until(pilot, lambda: len(rows.keys) == 2)
        assert stage.app.current_mode == "program"
        await pilot.press("escape")
        await until(pilot, lambda: stage.app.current_mode == "home")


async def test_times_missing_sources_and_advice() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(100, 34)) as pilot:
        await shown(stage, pilot, recorded.finished())
        await pilot.press("m", "T", "end")
        await until(pilot, lambda: "total " in screen_text(stage.app))
        line = next(line for line in screen_text(stage.app).splitlines() if "total " in line)
        assert "28.6 s" in line
        assert "100 %" in line

        await shown(stage, pilot, recorded.finished())
        await pilot.press("m", "L", "enter")
        await until(pilot, lambda: "train.py:90 cannot be read here" in screen_text(stage.app))
        await pilot.press("escape")

        await shown(stage, pilot, recorded.finished())
        await pilot.press("m", "a")
        await until(pilot, lambda: isinstance(stage.app.screen, ExplanationDialog))
        await until(pilot, lambda: "1. " in screen_text(stage.app))
        assert "verify (from the file): jaxprof" in screen_text(stage.app)
        await pilot.press("y")
        await until(pilot, lambda: stage.app.clipboard.startswith("jaxprof script --plain train.py"))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(stage.app.screen, ProgramScreen))


async def test_findings_and_lines_lead_to_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "train.py"
    source.write_text("".join(f"line_{number} = {number}\n" for number in range(1, 200)))
    monkeypatch.setattr(recorded, "HOME", str(tmp_path))
    stage = Stage()
    async with stage.app.run_test(size=(100, 34)) as pilot:
        screen = await shown(stage, pilot, recorded.finished())
        await pilot.press("m", "L")
        await until(pilot, lambda: "line_90 = 90" in screen_text(stage.app))
        assert stage.app.focused is screen.query_one(HotLineList)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(stage.app.screen, SourceLines))
        await until(pilot, lambda: "▶  90 line_90 = 90" in screen_text(stage.app))
        await pilot.press("escape", "m", "f", "down", "enter")
        await until(pilot, lambda: isinstance(stage.app.screen, SourceLines))
        await until(pilot, lambda: "▶  91 line_91 = 91" in screen_text(stage.app))


async def test_nothing_is_obeyed_that_comes_from_outside() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(200, 60)) as pilot:
        await shown(stage, pilot, recorded.hostile())
        text = screen_text(stage.app)
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert text.count("[b]jit[/x]␛[31m␊") > 4
        await pilot.press("enter", "down", "down", "enter")
        await until(pilot, lambda: isinstance(stage.app.screen, CompilationDialog))
        assert "static argument [b]jit[/x]␛[31m␊" in screen_text(stage.app)
        await pilot.press("escape", "m", "L", "enter")
        await until(pilot, lambda: "cannot be read here" in screen_text(stage.app))
        assert "\x1b" not in screen_text(stage.app)


# -- while it goes on ---------------------------------------------------------------------------------------------


async def test_a_long_compile_ticks_while_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = recorded.compiling()
    now = [tape.now]
    monkeypatch.setattr("jaxprof.tui.kit.program_summary.monotonic", lambda: now[0])
    monkeypatch.setattr(JaxprofApp, "session_grows", property(lambda app: True))
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        screen = await shown(stage, pilot, tape)
        text = screen_text(stage.app)
        assert "compiling `train_step`, backend, 0.5 s  called from train.py:88" in text
        assert "▶ running      1.5 s" in text
        now[0] += 42.04
        await until(pilot, lambda: "compiling `train_step`, backend, 42.5 s" in screen_text(stage.app))
        assert "▶ running     43.5 s" in screen_text(stage.app)
        await pilot.press("1")
        await until(pilot, lambda: screen._clock is None)


async def test_a_program_is_followed_to_its_end() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        screen = await started(stage, pilot)
        program = stage.programs[0]
        assert screen._clock is not None
        program.emit(e.LogLine(stream="stdout", text="epoch 1"))
        await pilot.press("m", "l")
        await until(pilot, lambda: "epoch 1" in screen_text(stage.app))
        program.emit(e.Compiled(function="loss", trace_seconds=0.1, compile_seconds=1.2, reason_code="first"))
        await pilot.press("m", "b")
        await until(pilot, lambda: "▸ loss" in screen_text(stage.app))
        program.finish(3)
        await until(pilot, lambda: "✗ exit code 3" in screen_text(stage.app))
        await until(pilot, lambda: not stage.app.live.busy and screen._clock is None)
        assert stage.app.live.exit_code == 3


async def test_profile_and_hlo_lead_to_the_last_window() -> None:
    tape = recorded.finished()
    for run in ("r2", "r3", "r4", "r5"):
        tape.plan(run, "profile", "imported", workload="capture window")
    for run, name in (("r2", "timeline"), ("r3", "hlo"), ("r4", "timeline"), ("r5", "hlo")):
        tape.add(e.TextRecorded, run, name=name, text="{}" if name == "timeline" else "HloModule a", bytes=2)
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await shown(stage, pilot, tape)
        await pilot.press("m", "h")
        await until(pilot, lambda: stage.app.current_mode == "hlo")
        assert stage.app.run_in_view == "r5"
        stage.app.action_go("program")
        await until(pilot, lambda: "exit code 0" in screen_text(stage.app))
        await pilot.press("m", "t")
        await until(pilot, lambda: stage.app.current_mode == "profile")
        assert stage.app.run_in_view == "r4"


async def test_run_again_starts_a_session_of_its_own() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await started(stage, pilot)
        stage.programs[0].finish(0)
        await until(pilot, lambda: "exit code 0" in screen_text(stage.app) and not stage.app.live.busy)
        before = stage.app.session
        await pilot.press("r")
        await until(pilot, lambda: len(stage.programs) == 2 and stage.app.session is not before)
        assert stage.programs[1].program == PROGRAM
        assert stage.programs[0].closed == "finished"
        await until(pilot, lambda: "running" in screen_text(stage.app))
        stage.programs[0].emit(e.LogLine(stream="stdout", text="late word of the first"))
        await until(pilot, lambda: [line.text for line in before.runs["r1"].log] == ["late word of the first"])
        await pilot.press("m", "l")
        await pilot.pause()
        assert "late word" not in screen_text(stage.app)


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
        await started(stage, pilot)


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


async def test_a_program_that_a_file_names_is_shown_before_it_is_run() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await shown(stage, pilot, recorded.finished())
        await pilot.press("r")
        await until(pilot, lambda: isinstance(stage.app.screen, ScriptDialog))
        text = screen_text(stage.app)
        assert "Check it before you run it" in text
        assert "--epochs 1" in text
        await pilot.press("escape")
        assert stage.programs == []


@pytest.mark.usefixtures("catalogue", "shelf")
async def test_what_is_measured_and_a_program_do_not_go_on_at_once() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(100, 30), notifications=True) as pilot:
        await started(stage, pilot)
        await pilot.press("1")
        await until(pilot, lambda: stage.app.current_mode == "home" and getattr(stage.app.screen, "info", None))
        await pilot.press("r")
        await until(pilot, lambda: "a program is running" in screen_text(stage.app))
        assert stage.scheduler is None
        stage.programs[0].finish(0)
        await until(pilot, lambda: not stage.app.live.busy)
        await pilot.press("1")
        await until(pilot, lambda: stage.app.current_mode == "home")
        await pilot.press("r")
        await until(pilot, lambda: stage.scheduler is not None and stage.app.session.runs.get("r1"))
        assert stage.programs[0].closed == "finished"
        assert stage.scheduler is not None
        stage.app.start_program(PROGRAM)
        await until(pilot, lambda: "another run is in progress" in screen_text(stage.app))
        stage.scheduler.finish()
        await until(pilot, lambda: not stage.app.live.busy)


# -- what to do ---------------------------------------------------------------------------------------------------


async def test_the_head_of_a_program_that_is_over_names_what_would_save_most() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        await shown(stage, pilot, recorded.finished())
        await until(pilot, lambda: "a: what to do" in screen_text(stage.app))
        first = program_result(stage.app.session, stage.app.screen.run.id).findings[0]  # type: ignore[attr-defined]
        lines = [line.strip() for line in screen_text(stage.app).splitlines()]
        assert lines[1].split()[0] == first.code
        assert " ".join(lines[1:3]).replace("a: what to do ", "").endswith("7.0 % of the wall time)")  # no word is cut
        assert lines[3].startswith("→ jaxprof script --plain train.py")


async def test_escape_in_an_open_function_closes_it_and_leaves_the_screen_only_then() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        stage.app.set_session(recorded.finished().session(), None)
        await pilot.press("5", "3")
        await until(pilot, lambda: isinstance(stage.app.screen, ProgramScreen) and stage.app.focused is not None)
        ledger = stage.app.screen.query_one(LedgerList)
        await pilot.press("enter", "down")
        assert ledger.open_around is not None
        await pilot.press("escape")
        assert ledger.opened == set()
        assert stage.app.current_mode == "program"
        await pilot.press("escape")
        await until(pilot, lambda: stage.app.current_mode == "profile", "from where it was gone to")


async def test_capture_and_cancel_reach_the_program_and_advice_waits() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        await started(stage, pilot)
        assert "a: what to do" not in screen_text(stage.app)
        await pilot.press("m", "a")
        await pilot.pause()
        assert isinstance(stage.app.screen, ProgramScreen)
        program = stage.programs[0]
        await pilot.press("w")
        await until(pilot, lambda: program.captured == [(2.0, None)])
        program.emit(e.CaptureWindow(state="began", monotonic_seconds=monotonic()))
        await until(pilot, lambda: "capturing a profile" in screen_text(stage.app))
        await pilot.press("w")
        await pilot.pause()
        assert len(program.captured) == 1
        await pilot.press("C")
        await until(pilot, lambda: program.cancelled == ["r1"])
        await until(pilot, lambda: "Interrupted, as by ctrl+c" in screen_text(stage.app))
        await pilot.press("C")
        await until(pilot, lambda: program.cancelled == ["r1", "r1"])
        program.finish(130)
        await until(pilot, lambda: "exit code 130" in screen_text(stage.app))
