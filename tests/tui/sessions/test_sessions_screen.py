"""Sessions: the table, the summary, and everything that can be done with a file."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from textual.widgets import Button, Input, Static

import job_folders
from jaxprof.session.log import LogWriter, new_header
from jaxprof.tui.job.screen import JobScreen
from jaxprof.tui.kit.dialogs import AskText, Confirm
from jaxprof.tui.kit.format import ago
from jaxprof.tui.kit.session_list import SessionTable
from jaxprof.tui.sessions.screen import Prune, SessionsScreen
from tui.fakes import HOSTILE, NOW, Stage, keep_session, screen_text, until

pytestmark = pytest.mark.usefixtures("catalogue", "one_moment")
SIZE = (120, 32)


@pytest.fixture
def kept(shelf: Path) -> list[Path]:
    """Three sessions, the newest first: one whole, one torn with a failed and a cancelled run, one that is none."""
    new = keep_session(shelf, "new", ("selu", "numpy", "ok", 4.37e-3), ("selu", "jit", "ok", 0.63e-3), age_seconds=120)
    torn = keep_session(shelf, "torn", ("matmul", "jit", "failed", None), ("matmul", "numpy", "cancelled", None),
                        complete=False, age_seconds=7200)  # fmt: skip
    wrong = shelf / "wrong.jaxprof"
    wrong.write_bytes(b"\x1f\x8bnonsense\n")
    os.utime(wrong, (NOW - 9000, NOW - 9000))
    return [new, torn, wrong]


async def listed(stage: Stage, pilot: object, count: int = 3) -> SessionTable:
    stage.app.action_go("sessions")
    await until(pilot, lambda: isinstance(stage.app.screen, SessionsScreen))  # type: ignore[arg-type]
    await until(pilot, lambda: len(stage.app.screen.query_one(SessionTable).keys) == count, f"{count} rows")  # type: ignore[arg-type]
    return stage.app.screen.query_one(SessionTable)


async def test_the_table_tells_what_a_session_is_copies_filters_and_opens(kept: list[Path], tmp_path: Path) -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        table = await listed(stage, pilot)
        assert table.keys == kept
        expected = ("Sessions · 3 · ", "complete", "interrupted", "refused", "2 ✓", "0 ✓ 1 ✗ 1 –", "630 µs")
        await until(pilot, lambda: all(words in screen_text(stage.app) for words in expected), str(expected))
        await pilot.press("down")
        await until(pilot, lambda: "out of memory: 40 GiB" in screen_text(stage.app))
        assert "interrupted: its writer" in screen_text(stage.app)
        await pilot.press("down")
        await until(pilot, lambda: "is not a jaxprof session" in screen_text(stage.app))

        await pilot.press("slash", *"matmul")
        await until(pilot, lambda: table.keys == [kept[1]])
        await pilot.press(*"zz")
        await until(pilot, lambda: "Nothing matches the filter" in screen_text(stage.app))
        assert SessionTable.EMPTY not in screen_text(stage.app)
        await pilot.press("enter", "escape")
        await until(pilot, lambda: table.keys == kept)

        await pilot.press("home")
        for words in ("Copied to", "already exists"):
            await pilot.press("m", "E")
            await pilot.pause()
            stage.app.screen.query_one(Input).value = str(tmp_path / "copy.jaxprof")
            await pilot.press("enter")
            await until(pilot, lambda words=words: words in screen_text(stage.app))
        assert (tmp_path / "copy.jaxprof").read_bytes() == kept[0].read_bytes()

        await pilot.press("end", "enter")
        await until(pilot, lambda: "gunzip" in screen_text(stage.app))
        await pilot.press("home", "enter")
        await until(pilot, lambda: stage.app.session_path == kept[0] and stage.app.current_mode == "results")


async def test_rename_keeps_the_cursor_and_refuses_a_wrong_name(kept: list[Path], shelf: Path) -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        table = await listed(stage, pilot)
        await pilot.press("down", "e")
        await pilot.pause()
        stage.app.screen.query_one(Input).value = "a/b"
        await pilot.press("enter")
        await until(pilot, lambda: "cannot be a session's name" in screen_text(stage.app))
        await pilot.press("e")
        await pilot.pause()
        stage.app.screen.query_one(Input).value = "renamed"
        await pilot.press("enter")
        await until(pilot, lambda: table.current == shelf / "renamed.jaxprof")
        assert not kept[1].exists()


async def test_deletes_after_asking_and_prunes_what_it_shows(kept: list[Path]) -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        table = await listed(stage, pilot)
        await pilot.press("m", "D")
        await until(pilot, lambda: isinstance(stage.app.screen, Confirm))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(stage.app.screen, Confirm))
        assert kept[0].exists()
        await pilot.press("m", "D")
        await until(pilot, lambda: isinstance(stage.app.screen, Confirm))
        await pilot.press("enter")
        assert kept[0].exists(), "no has the focus"
        await pilot.press("m", "D")
        await until(pilot, lambda: isinstance(stage.app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: table.keys == kept[1:])
        assert not kept[0].exists()


async def test_a_session_that_is_being_written_is_live_and_is_not_deleted(shelf: Path) -> None:
    writer = LogWriter(new_header(), shelf / "theirs.jaxprof")
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await listed(stage, pilot, 1)
        assert "● live" in screen_text(stage.app)
        await pilot.press("m", "D")
        await pilot.press("y")
        await until(pilot, lambda: "is being written now" in screen_text(stage.app))
        assert (shelf / "theirs.jaxprof").exists()
    writer.close()


async def test_prune_shows_what_would_go_and_asks(kept: list[Path]) -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        table = await listed(stage, pilot)
        await pilot.press("m", "P")
        await until(pilot, lambda: isinstance(stage.app.screen, Prune))
        dialog = stage.app.screen
        said, delete = dialog.query_one("#said", Static), dialog.query_one("#delete", Button)
        assert delete.disabled
        dialog.query_one("#keep", Input).value = "-1"
        await until(pilot, lambda: "not a number" in str(said.content))
        dialog.query_one("#keep", Input).value = "1"
        await until(pilot, lambda: "2 sessions would be deleted" in str(said.content))
        await pilot.press("enter", "enter")
        await until(pilot, lambda: table.keys == kept[:1])


@pytest.mark.process
async def test_a_path_and_a_profile_are_opened_and_a_folder_without_one_is_refused(tmp_path: Path, shelf: Path) -> None:
    elsewhere = keep_session(tmp_path, "elsewhere", ("selu", "jit", "ok", 1e-3))
    stage = Stage()
    named = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
             {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "Stream #7(Kernel)"}}]  # fmt: skip
    ran = {
        "ph": "X",
        "pid": 1,
        "tid": 2,
        "ts": 0.0,
        "dur": 4.0,
        "name": "k",
        "args": {"hlo_op": "dot", "hlo_module": "f"},
    }
    path = tmp_path / "box.trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": [*named, ran, {}]}).encode()))
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await listed(stage, pilot, 0)
        assert "No sessions yet" in screen_text(stage.app)
        await pilot.press("m", "o")
        await pilot.pause()
        stage.app.screen.query_one(Input).value = str(elsewhere)
        await pilot.press("enter")
        await until(pilot, lambda: stage.app.session_path == elsewhere)

        await listed(stage, pilot, 0)
        await pilot.press("m", "o")
        await pilot.pause()
        stage.app.screen.query_one(Input).value = str(shelf)
        await pilot.press("enter")
        await until(pilot, lambda: "jax.profiler" in screen_text(stage.app), "why a folder is refused")
        stage.app.open_session(path)
        await until(pilot, lambda: stage.app.current_mode == "profile", "the profile's overview")
        assert [run.plan.how for run in stage.app.session.runs.values()] == ["imported", "imported"]
        kept = stage.app.session_path
        assert kept is not None
        assert kept.name == "box.jaxprof"


async def test_hostile_names_in_a_session_are_shown_and_not_obeyed(shelf: Path) -> None:
    keep_session(shelf, "[b]x\u202e", (HOSTILE, HOSTILE, "failed", None))
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await listed(stage, pilot, 1)
        await until(pilot, lambda: "[b]evil[/x] ␛[31m" in screen_text(stage.app))
        await pilot.press("m", "D")
        await pilot.pause()
        text = screen_text(stage.app)
        assert "\x1b" not in text
        assert "\u202e" not in text


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (5, "just now"),
        (150, "2 min ago"),
        (7300, "2 h ago"),
        (200_000, "2 d ago"),
        (10**7, "2026-07-25"),
        (-5, "just now"),
    ],
)
def test_ago(passed: float, words: str) -> None:
    assert ago(NOW - passed, NOW) == words


@pytest.fixture
def kept_job(shelf: Path) -> Path:
    """A job of two processes, of which one failed and a third has no session here."""
    folder = shelf / "train.jaxprof.d"
    folder.mkdir()
    for index in (0, 1):
        job_folders.process(folder, index, 3, *job_folders.loop(), exit_code=index)
        os.utime(folder / f"process-{index:05}.jaxprof", (NOW - 60, NOW - 60))
    return folder


async def test_a_job_is_one_row_and_enter_opens_it(kept: list[Path], kept_job: Path) -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        table = await listed(stage, pilot, 4)
        assert table.keys[0] == kept_job
        expected = ("train.jaxprof.d", "train.py · 2 processes", "2 hosts", "1 missing", "1 ✓ 1 ✗", "2: 1 ok, 1 failed")
        await until(pilot, lambda: all(words in screen_text(stage.app) for words in expected), str(expected))
        assert "1  exit code 1" in screen_text(stage.app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(stage.app.screen, JobScreen))
        assert stage.app.job_folder == kept_job


async def test_a_job_is_deleted_and_renamed_whole(kept: list[Path], kept_job: Path) -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        table = await listed(stage, pilot, 4)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(stage.app.screen, AskText))
        stage.app.screen.query_one(Input).value = "first"
        await pilot.press("enter")
        renamed = kept_job.with_name("first.jaxprof.d")
        await until(pilot, lambda: renamed in table.keys)
        await until(pilot, lambda: table.current_row is not None and table.current_row.path == renamed)
        await pilot.press("m", "D")
        await until(pilot, lambda: isinstance(stage.app.screen, Confirm))
        words = [str(each.content) for each in stage.app.screen.query(Static)]
        assert "Delete this job?" in screen_text(stage.app)
        assert any("the sessions of 2 processes" in each for each in words)
        await pilot.press("y")
        await until(pilot, lambda: len(table.keys) == 3)
        assert not renamed.exists()
        assert all(path.exists() for path in kept)
