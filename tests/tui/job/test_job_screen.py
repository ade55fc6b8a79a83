"""The Job screen: what is said on top, the processes, the way to a session and back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import job_folders
import program_events
from jaxprof.tui.job.heat_map import JobMap
from jaxprof.tui.job.panes import VIEWS, RankTable
from jaxprof.tui.job.screen import JobFindings, JobScreen
from jaxprof.tui.program.screen import ProgramScreen
from tui.fakes import HOSTILE, Stage, screen_text, still, until

pytestmark = pytest.mark.usefixtures("small_catalogue", "one_moment")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a job goes."""
    made = tmp_path / "train.jaxprof.d"
    made.mkdir()
    return made


def late(folder: Path, count: int = 4) -> Path:
    """A job whose process 1 makes its input for 40 % of its loop."""
    return job_folders.job(folder, *(job_folders.loop(data=0.40 if index == 1 else 0.02) for index in range(count)))


def words(stage: Stage) -> str:
    """What is on the screen, without its frames and line breaks."""
    return " ".join(re.sub("[│╭╮╰╯─]", " ", screen_text(stage.app)).split())


async def opened(stage: Stage, pilot: Pilot[Any], folder: Path) -> JobScreen:
    """The screen, once it shows the job in that folder."""
    stage.app.open_session(folder)
    await until(pilot, lambda: isinstance(stage.app.screen, JobScreen) and stage.app.screen.figures is not None)
    screen = stage.app.screen
    assert isinstance(screen, JobScreen)
    await pilot.pause()
    return screen


async def test_who_is_late_is_read_without_a_key_and_enter_opens_its_session(folder: Path) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        screen = await opened(stage, pilot, late(folder))
        text = words(stage)
        assert "4 processes on 4 hosts · slurm-1234.0 · all ok" in text
        assert "process 1 on node1 is late: making or fetching its input takes 40 % of its loop" in text
        assert "Look at its input: the shard, the disk or the network of that host." in text
        assert "2 Summary" in text
        assert screen.query_one(RankTable).current == 1
        await pilot.press("enter")
        await until(pilot, lambda: stage.app.session_path == folder / "process-00001.jaxprof")


async def test_a_job_that_is_well_accuses_nobody(folder: Path) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        await opened(stage, pilot, job_folders.job(folder, job_folders.loop(), job_folders.loop()))
        text = screen_text(stage.app)
        assert "is late:" not in text
        assert "No process stands out. Compared were 2 loops" in text


async def test_what_is_missing_comes_first(folder: Path) -> None:
    late(folder)
    (folder / "process-00002.jaxprof").unlink()
    (folder / "process-00003.jaxprof").write_text("torn")
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        screen = await opened(stage, pilot, folder)
        said = screen.query_one(JobFindings)
        assert said.claim is not None
        assert said.claim.mark == "!"
        assert "2 of 4 processes have no session here: 2, 3" in screen_text(stage.app)
        assert screen.query_one(RankTable).count == 2


async def test_enter_opens_the_session_and_escape_comes_back_to_its_row(folder: Path) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        screen = await opened(stage, pilot, late(folder))
        await pilot.press("m", "T", "home", "down", "down", "enter")
        await until(pilot, lambda: isinstance(stage.app.screen, ProgramScreen))
        assert stage.app.session_path == folder / "process-00002.jaxprof"
        await pilot.press("escape")
        await until(pilot, lambda: stage.app.screen is screen)
        assert screen.query_one(RankTable).current == 2
        await pilot.press("m", "f", "enter")
        await until(pilot, lambda: isinstance(stage.app.screen, ProgramScreen))
        await until(pilot, lambda: stage.app.session_path == folder / "process-00001.jaxprof")


async def test_processes_are_sorted_and_filtered_and_views_share_the_terminal(folder: Path) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await opened(stage, pilot, late(folder))
        rows = screen.query_one(RankTable)
        await pilot.press("m", "T", "s", "s", "s", "m", "S")
        assert rows.order_in_words == "by lost ▴"
        assert rows.keys[0] == 1
        await pilot.press("slash", *"node3", "enter")
        assert rows.keys == [3]
        assert rows.hidden == 3
        await pilot.press("escape")
        assert rows.count == 4
        await pilot.press("y")
        assert "is late" in stage.app.clipboard
        shown = lambda: [name for name in VIEWS if screen.query_one(f"#{name}-box").display]  # noqa: E731
        assert shown() == ["map", "ranks"]
        await pilot.press("m", "T", "m", "F")
        assert shown() == ["ranks"]
        await pilot.press("escape")
        assert shown() == ["map", "ranks"]
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: shown() == ["ranks"])
        await pilot.press("m", "t")
        await until(pilot, lambda: shown() == ["map"])
        assert screen.query_one("#map-box").size.height > 8
        await pilot.resize_terminal(60, 20)
        await until(pilot, lambda: "needs a terminal of 80×24" in screen_text(stage.app))
        await pilot.resize_terminal(200, 60)
        await until(pilot, lambda: shown() == ["map", "ranks"])


def test_a_picture(snap_compare: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxprof.tui.device_monitor.PERIOD_SECONDS", 60.0)
    stage = Stage(light=True)

    async def before(pilot: Pilot[Any]) -> None:
        late_from = (job_folders.late_from(10 if index == 1 else 99) for index in range(4))
        screen = await opened(stage, pilot, job_folders.job(folder, *late_from))
        await until(pilot, lambda: screen.query_one(JobMap).browse.grid is not None)
        await still(pilot)

    assert snap_compare(stage.app, terminal_size=(120, 40), run_before=before)


async def test_one_process_beside_the_others(folder: Path) -> None:
    job_folders.process(folder, 0, 3, *job_folders.loop(data=0.4), *program_events.shaped(6))
    job_folders.process(folder, 1, 3, *job_folders.loop())
    job_folders.process(folder, 2, 3, *job_folders.loop())
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await opened(stage, pilot, folder)
        await pilot.press("m", "T", "home", "c")
        text = words(stage)
        assert "Process 0 on node0 beside the median of the others" in text
        assert "data 40 % 2.0 %" in text
        assert "step 5× 0×" in text
        await pilot.press("m", "T", "down", "c")
        await until(pilot, lambda: "Process 1 on node1 beside the median of the others" in words(stage))
        assert "It compiled nothing again" in words(stage)
        assert screen.query_one(JobMap).browse.process == 1, "one cursor for all views"


async def test_who_arrives_last_where_there_are_captures_and_how_to_get_them(folder: Path) -> None:
    taken = job_folders.captures(3, late=2)
    job_folders.job(folder, *([*job_folders.loop(), *each] for each in taken))
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        await opened(stage, pilot, folder)
        await pilot.press("m", "4")
        text = words(stage)
        assert "all-reduce: 100 executions, the exchange itself" in text
        assert "its clock: ahead of the first one's, ±" in text
        assert re.search(r" 2 100 100 %", text)
        other = folder.parent / "other.jaxprof.d"
        other.mkdir()
        stage.app.open_session(job_folders.job(other, job_folders.loop(), job_folders.loop()))
        await until(pilot, lambda: "No captures of the same steps." in words(stage))


async def test_text_from_outside_is_shown_and_not_obeyed(folder: Path) -> None:
    for index in range(3):
        host = HOSTILE if index == 1 else f"node{index}"
        job_folders.process(
            folder, index, 3, *job_folders.loop(data=0.4 if index == 1 else 0.02), header={"host": host, "job": HOSTILE}
        )
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        await opened(stage, pilot, folder)
        for key in ("m", "T", "c", "m", "4", "m", "t", "down", "m", "g", "s", "y"):
            await pilot.press(key)
        text = screen_text(stage.app)
        assert "\x1b" not in text
        assert "[b]evil[/x]" in text
