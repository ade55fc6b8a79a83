"""The app around its screens: where keys lead, what is told, how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from jaxprof import events as e
from jaxprof.errors import StorageError
from jaxprof.session.log import LogWriter, new_header
from jaxprof.tui.help import HelpScreen
from jaxprof.tui.home.screen import HomeScreen
from jaxprof.tui.kit.dialogs import Confirm, SaveAs
from jaxprof.tui.kit.screen import KeyBar
from jaxprof.tui.kit.screen_bars import ModeBar
from tui.fakes import HOSTILE, Stage, keep_session, screen_text, until

pytestmark = pytest.mark.usefixtures("catalogue", "shelf")
SIZE = (100, 32)


async def started(stage: Stage, pilot: object) -> None:
    """A queue that is going on."""
    await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen) and stage.app.screen.info)  # type: ignore[arg-type]
    await pilot.press("enter")  # type: ignore[attr-defined]
    await until(pilot, lambda: stage.app.live.busy and stage.app.session.runs)  # type: ignore[arg-type]


async def test_keys_lead_to_the_modes_and_escape_goes_back_step_by_step() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("z", "ctrl+t", "f9", "left", "backspace", "[", "]")
        assert stage.app.current_mode == "home"
        assert stage.app.return_code is None

        for key, mode in (("2", "run"), ("2", "results"), ("4", "hlo"), ("5", "profile"), ("1", "home")):
            await pilot.press(key)
            await until(pilot, lambda mode=mode: stage.app.current_mode == mode)
        await pilot.press("1")
        await until(pilot, lambda: stage.app.current_mode == "sessions")
        await pilot.press("escape")
        await until(pilot, lambda: stage.app.current_mode == "home")

        app = stage.app
        for key, mode in (("2", "results"), ("2", "run"), ("5", "profile"), ("2", "run"), ("4", "hlo")):
            await pilot.press(key)
            await until(pilot, lambda mode=mode: app.current_mode == mode)
        for mode in ("run", "results", "home", "home"):
            await pilot.press("escape")
            await until(pilot, lambda mode=mode: stage.app.current_mode == mode)


async def test_help_lists_every_key_of_the_screen_below() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 60), notifications=True) as pilot:
        below = stage.app.screen
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(stage.app.screen, HelpScreen))
        await pilot.press("question_mark")
        await until(pilot, lambda: "On this screen" in screen_text(stage.app))
        text = screen_text(stage.app)
        for active in below.active_bindings.values():
            if active.binding.id and active.binding.description and active.binding.id != "home.back":
                assert active.binding.tooltip.split(";")[0][:30] in text, active.binding
        await pilot.press("escape")
        await until(pilot, lambda: stage.app.screen is below)


async def test_quit_asks_while_a_run_is_going_on_and_ends_the_queue() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await started(stage, pilot)
        await pilot.press("q")
        await until(pilot, lambda: isinstance(stage.app.screen, Confirm))
        await pilot.press("n")
        await until(pilot, lambda: not isinstance(stage.app.screen, Confirm))
        assert stage.scheduler is not None
        assert stage.scheduler.closed == ""
        await pilot.press("q")
        await until(pilot, lambda: isinstance(stage.app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: stage.scheduler is not None and stage.scheduler.closed == "finished")


async def test_ctrl_c_cancels_the_run_and_a_second_one_quits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxprof.tui.app.TWICE_SECONDS", 60.0)
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await started(stage, pilot)
        scheduler = stage.scheduler
        assert scheduler is not None
        scheduler.emit(e.WorkerStarted(run="r1", pid=1, python="python"))
        await until(pilot, lambda: stage.app.session.runs["r1"].status == "running")
        await pilot.press("ctrl+c")
        await until(pilot, lambda: scheduler.cancelled == ["r1"])
        assert scheduler.closed == ""
        await pilot.press("ctrl+c")
        await until(pilot, lambda: scheduler.closed == "finished")


async def test_a_worker_that_died_is_told_and_the_app_lives() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await started(stage, pilot)
        scheduler = stage.scheduler
        assert scheduler is not None
        await pilot.press("1")
        scheduler.emit(
            e.RunClosed(
                run="r1", workload="matmul", variant=HOSTILE, device="cpu:0", status="crashed",
                error="the worker was killed by SIGKILL", advice="probably out of memory",
            )
        )  # fmt: skip
        await until(pilot, lambda: "killed by SIGKILL" in screen_text(stage.app))
        text = screen_text(stage.app)
        assert "probably out of memory" in text
        assert "\x1b" not in text
        assert stage.app.session.runs["r1"].status == "crashed"
        scheduler.finish()
        await until(pilot, lambda: not stage.app.live.busy)


async def test_a_full_disk_is_told_at_once_and_another_place_is_taken(tmp_path: Path) -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await started(stage, pilot)
        scheduler = stage.scheduler
        assert scheduler is not None
        scheduler.storage_failure = StorageError("the disk is full", "Save it somewhere else.")
        scheduler.emit(e.ProgressMade(run="r1", fraction=0.5))
        await until(pilot, lambda: isinstance(stage.app.screen, SaveAs))
        assert "the disk is full" in screen_text(stage.app)
        stage.app.screen.query_one(Input).value = str(tmp_path)
        await pilot.press("enter")
        await until(pilot, lambda: stage.app.session_path == tmp_path / "2026-11-18T11-06-40-feed.jaxprof")
        assert scheduler.moved_to == [stage.app.session_path]
        assert stage.app.live.busy, "the runs go on"


async def test_runs_that_are_started_later_join_the_same_session() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await started(stage, pilot)
        first = stage.scheduler
        await pilot.press("1")
        await until(pilot, lambda: stage.app.current_mode == "home")
        await pilot.press("down", "enter")
        await until(pilot, lambda: len(stage.app.session.runs) == 6)
        assert stage.scheduler is first
        assert first is not None
        first.finish()
        await until(pilot, lambda: not stage.app.live.busy)


async def test_a_session_is_opened_from_the_start_and_a_run_goes_to_a_new_one(shelf: Path) -> None:
    path = keep_session(shelf, "before", ("selu", "jit", "ok", 1e-3))
    stage = Stage(path)
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: stage.app.session_path == path and stage.app.current_mode == "results")
        assert list(stage.app.session.runs) == ["r1"]
        await until(pilot, lambda: "before" in screen_text(stage.app).partition("\n")[0])
        await pilot.press("1")
        await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen) and stage.app.screen.info)
        await pilot.press("enter")
        await until(pilot, lambda: len(stage.app.session.runs) == 3)
        assert stage.app.session_path != path


async def test_a_session_that_another_process_writes_is_followed(shelf: Path) -> None:
    path = shelf / "theirs.jaxprof"
    writer = LogWriter(new_header(), path)
    stage = Stage(path)
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: stage.app.session_path == path)
        assert stage.app.session_grows
        writer.append(e.RunPlanned(run="r1", spec=e.RunSpec(workload="selu", variant="jit", how="jit", device="cpu:0")))
        await until(pilot, lambda: "r1" in stage.app.session.runs, "the run that was written meanwhile")
        writer.append(e.SessionClosed())
        writer.close()
        await until(pilot, lambda: not stage.app.session_grows)


async def test_a_wrong_file_is_refused_with_what_mends_it(tmp_path: Path) -> None:
    wrong = [(b"", "is empty"), (b"\x1f\x8b\x00", "gunzip"), (b"hello\n", ".xplane.pb"), (None, "there is no file")]
    stage = Stage()
    async with stage.app.run_test(size=(120, 32), notifications=True) as pilot:
        for number, (content, says) in enumerate(wrong):
            path = tmp_path / f"{number}.jaxprof"
            if content is not None:
                path.write_bytes(content)
            stage.app.open_session(path)
            await until(pilot, lambda says=says: says in screen_text(stage.app))
            assert stage.app.current_mode == "home"


async def test_every_screen_without_a_session_says_what_fills_it_and_its_keys_do_no_harm() -> None:
    empty = {
        "run": ("Nothing has been run in this session", ["enter", "C", "m", "Q", "r", "m", "l", "escape", "down"]),
        "results": (
            "No results in this session yet",
            ["enter", "s", "m", "S", "y", "m", "F", "m", "h", "escape", "down"],
        ),
        "hlo": (
            "No session is open.",
            ["m", "i", "m", "M", "escape", "m", "E", "escape", "right_square_bracket", "escape"],
        ),
        "program": ("No program was recorded in this session", [*"mbmfmLwCr", "escape", "slash", "enter", "down", "s"]),
        "job": ("jaxprof script -n 4 train.py", ["y", "slash", "escape", "m", "f", "m", "T", "m", "U", "escape"]),
        "H": ("No session holds a point of this", ["enter", "tab", "enter", "y", "escape"]),
    }
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        for key, (words, pressed) in empty.items():
            if key == "H":
                stage.app.action_go("sessions")
                await until(pilot, lambda: stage.app.current_mode == "sessions" and stage.app.focused is not None)
                await pilot.press("m", "H")
            else:
                stage.app.action_go(key)
            await until(pilot, lambda words=words: words in screen_text(stage.app), words)
            await pilot.press(*pressed)
            assert stage.app.return_code is None
            while len(stage.app.screen_stack) > 1:
                await pilot.press("escape")
                await pilot.pause()


async def test_below_80_by_24_there_is_a_note_and_above_the_screen_again() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(70, 24), notifications=True) as pilot:
        await until(pilot, lambda: "needs a terminal of 80×24" in screen_text(stage.app))
        assert "Workloads" not in screen_text(stage.app)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "Workloads" in screen_text(stage.app))
        await pilot.resize_terminal(80, 20)
        await until(pilot, lambda: "80×20" in screen_text(stage.app))


async def test_the_line_of_keys_the_modes_and_the_least_size() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.pause()
        line = str(stage.app.screen.query_one(KeyBar).render()).rstrip()
        assert line.endswith("m Menu  ? Help  q Quit")
        assert len(line) <= 80
        await pilot.click(KeyBar, offset=(line.index("? Help"), 0))
        await until(pilot, lambda: isinstance(stage.app.screen, HelpScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen))

        await pilot.pause()
        await pilot.click(ModeBar, offset=(str(stage.app.screen.query_one(ModeBar).render()).index("Timeline"), 0))
        await until(pilot, lambda: stage.app.current_mode == "profile")
