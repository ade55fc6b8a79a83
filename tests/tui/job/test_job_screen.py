"""The Job screen: what is said on top, the processes, the way to a session and back, and a job that goes on."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from textual.pilot import Pilot

import job_folders
import program_events
from jaxprof.analysis.jobs.job import JobFigures, job_figures
from jaxprof.session import Session
from jaxprof.session.log import LogWriter
from jaxprof.session.log.job_folder import read_job
from jaxprof.session_names import session_path
from jaxprof.tui.job.heat_map import JobMap
from jaxprof.tui.job.panes import VIEWS, RankTable, arrivals_title
from jaxprof.tui.job.reading import JobReading
from jaxprof.tui.job.screen import JobFindings, JobScreen
from jaxprof.tui.program.screen import ProgramScreen
from tui.fakes import HOSTILE, SMALL, Stage, Walk, still, walking

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


async def opened(walk: Walk, folder: Path) -> JobScreen:
    """The screen, once it shows the job in that folder."""
    walk.app.open_session(folder)
    await walk.until(lambda: walk.app.job_folder == folder)
    screen: JobScreen = await walk.on(JobScreen)
    await walk.until(lambda: screen.figures is not None)
    await walk.pause()
    return screen


async def test_who_is_late_is_read_without_a_key_and_enter_opens_its_session(folder: Path) -> None:
    async with walking(SMALL) as walk:
        screen = await opened(walk, late(folder))
        assert [
            words
            for words in (
                "4 processes on 4 hosts · slurm-1234.0 · all ok",
                "costs most ",
                "process 1 on node1 is late: making or fetching its input takes 40 % of its loop",
                "Look at its input: the shard, the disk or the network of that host.",
            )
            if words not in walk.words
        ] == []
        rows = screen.query_one(RankTable)
        assert rows.current == 1
        for keys, row in (("enter", 1), ("m T home down down enter", 2), ("m f enter", 1)):
            await walk.press(keys)
            await walk.on(ProgramScreen)
            await walk.until(lambda row=row: walk.app.session_path == folder / f"process-0000{row}.jaxprof")
            await walk.press("escape")
            await walk.until(lambda: walk.screen is screen)
            assert row == 1 or rows.current == row, "back at its row"

        other, missing = (folder.parent / f"{name}.jaxprof.d" for name in ("other", "missing"))
        other.mkdir()
        missing.mkdir()
        await opened(walk, job_folders.job(other, job_folders.loop(), job_folders.loop()))
        await walk.shows("No process stands out. Compared: 2 loops", gone="is late:")
        late(missing)
        (missing / "process-00002.jaxprof").unlink()
        (missing / "process-00003.jaxprof").write_text("torn")
        screen = await opened(walk, missing)
        await walk.shows("2 of 4 processes have no session here: 2, 3")
        claim = screen.query_one(JobFindings).claim
        assert claim is not None
        assert (claim.mark, screen.query_one(RankTable).count) == ("!", 2), "what is missing comes first"


async def test_processes_are_sorted_and_filtered_and_views_share_the_terminal(folder: Path) -> None:
    async with walking() as walk:
        screen = await opened(walk, late(folder))
        rows = screen.query_one(RankTable)
        await walk.press("m T s s s m S")
        assert (rows.order_in_words, rows.keys[0]) == ("by lost ▴", 1)
        await walk.press("/ 'node3 enter")
        assert (rows.keys, rows.hidden) == ([3], 3)
        await walk.press("escape")
        assert rows.count == 4
        await walk.press("y")
        assert "is late" in walk.app.clipboard

        async def are(*names: str) -> None:
            await walk.until(
                lambda: tuple(n for n in VIEWS if screen.query_one(f"#{n}-box").display) == names, str(names)
            )

        await are("map", "ranks")
        await walk.press("m T m F")
        await are("ranks")
        await walk.press("escape")
        await are("map", "ranks")
        await walk.pilot.resize_terminal(80, 24)
        await are("ranks")
        await walk.press("m t")
        await are("map")
        assert screen.query_one("#map-box").size.height > 8
        await walk.pilot.resize_terminal(60, 20)
        await walk.shows("needs a terminal of 80×24")
        await walk.pilot.resize_terminal(200, 60)
        await are("map", "ranks")


async def test_one_process_beside_the_others(folder: Path) -> None:
    job_folders.process(folder, 0, 3, *job_folders.loop(data=0.4), *program_events.shaped(6))
    for index in (1, 2):
        job_folders.process(folder, index, 3, *job_folders.loop())
    async with walking() as walk:
        screen = await opened(walk, folder)
        for keys, said in (
            ("m T home c", ["Process 0 on node0 beside the median of the others", "data 40 % 2.0 %", "step 5× 0×"]),
            ("m T down c", ["Process 1 on node1 beside the median of the others", "Recompiled: nothing"]),
        ):
            await walk.press(keys)
            await walk.until(lambda said=said: all(words in walk.words for words in said), str(said))
        assert screen.query_one(JobMap).browse.process == 1, "one cursor for all views"


async def test_who_arrives_last_where_there_are_captures_and_how_to_get_them(folder: Path) -> None:
    taken = job_folders.captures(3, late=2)
    job_folders.job(folder, *([*job_folders.loop(), *each] for each in taken))
    async with walking() as walk:
        await opened(walk, folder)
        await walk.press("m 4")
        assert "all-reduce: 100 executions, the exchange itself" in walk.words
        assert "its clock: offset from the first process, ±" in walk.words
        assert re.search(r" 2 100 100 %", walk.words)
        other = folder.parent / "other.jaxprof.d"
        other.mkdir()
        walk.app.open_session(job_folders.job(other, job_folders.loop(), job_folders.loop()))
        await walk.until(lambda: "No captures of the same steps." in walk.words)


def figures(folder: Path, hlo: str) -> JobFigures:
    taken = job_folders.captures(4, exchange=4e-3, hlo=hlo)
    return job_figures(read_job(job_folders.job(folder, *([*job_folders.loop(), *each] for each in taken)), Session))


def test_the_title_of_arrivals_has_what_is_moved_where_that_is_known(tmp_path: Path) -> None:
    known = figures(tmp_path / "known", job_folders.ALL_REDUCE)
    title = arrivals_title(known.arrivals, known.collectives)
    assert title.startswith("all-reduce: 100 executions, the exchange itself ")
    assert ", 4.00 MiB at 1.7" in title
    linked = [replace(known.collectives[0], possible_bytes_per_second=450e9)]
    assert arrivals_title(known.arrivals, linked) == f"{title} of 450 GB/s"
    unknown = figures(tmp_path / "unknown", "")
    assert " at " not in arrivals_title(unknown.arrivals, unknown.collectives)
    assert unknown.collectives[0].bus_bytes_per_second is None
    assert "how many bytes that are is not known" in unknown.findings[0].message
    assert arrivals_title(None) == "Arrivals"


async def test_text_from_outside_is_shown_and_not_obeyed(folder: Path) -> None:
    for index in range(3):
        header = {"host": HOSTILE if index == 1 else f"node{index}", "job": HOSTILE}
        job_folders.process(folder, index, 3, *job_folders.loop(data=0.4 if index == 1 else 0.02), header=header)
    async with walking() as walk:
        await opened(walk, folder)
        await walk.press("m T c m 4 m t down m g s y", "[b]evil[/x]")
        assert "\x1b" not in walk.text


# -- a job that goes on -------------------------------------------------------------------------------------------


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is looked at more often than it is worth waiting for."""
    monkeypatch.setattr(JobScreen, "TICK_SECONDS", 0.05)


@pytest.mark.usefixtures("soon")
async def test_processes_come_grow_and_are_started_again(tmp_path: Path) -> None:
    job_folders.process(tmp_path, 0, 3, *job_folders.late_from(99, 40))
    async with walking() as walk:
        screen = await opened(walk, tmp_path)
        rows, found = screen.query_one(RankTable), screen.query_one(JobMap)

        async def says(words: str, gone: str = "no such words") -> None:
            await walk.until(lambda: words in walk.words and gone not in walk.words, f"{words}, not {gone}")

        assert rows.count == 1
        await says("2 of 3 processes have no session here: 1, 2")
        job_folders.process(tmp_path, 1, 3, *job_folders.late_from(99, 40))
        await walk.until(lambda: rows.count == 2)
        header = replace(
            program_events.HEADER, session="c2", host="node2", process_index=2, process_count=3, job=job_folders.JOB
        )
        events = program_events.program(*job_folders.late_from(3, 40))
        writer = LogWriter(header, session_path(tmp_path, 2))
        for event in events[:-4]:
            writer.append(event)
        await says("1 running")
        await says("process 2 on node2 is late")
        await walk.until(lambda: found.browse.grid is not None and len(found.browse.grid.processes) == 3)
        for event in events[-4:]:
            writer.append(event)
        writer.close()
        await says("", "1 running")
        await says("", "have no session")
        job_folders.process(tmp_path, 2, 3, *job_folders.late_from(99, 40))
        await says("process 2 was started again", "process 2 on node2 is late")


@pytest.mark.usefixtures("soon")
async def test_a_folder_that_goes_is_said_and_what_was_read_stays(folder: Path) -> None:
    job_folders.job(folder, job_folders.loop(), job_folders.loop())
    async with walking(SMALL) as walk:
        screen = await opened(walk, folder)
        (folder / "process-00001.jaxprof").unlink()
        await walk.until(lambda: "process-00001.jaxprof was deleted; what was read of it is shown" in walk.words)
        shutil.rmtree(folder)
        await walk.until(lambda: "train.jaxprof.d cannot be read: No such file" in walk.words)
        assert screen.query_one(RankTable).count == 2
        folder.mkdir()
        job_folders.job(folder, job_folders.loop(), job_folders.loop())
        await walk.until(lambda: "cannot be read" not in walk.words)


def test_steps_that_the_clock_lays_beside_each_other_are_so_on_the_screen(tmp_path: Path) -> None:
    """The counter of process 1 is 100 ahead of the other's; from its sessions the grid is the one of `step_grid`."""
    rng = np.random.default_rng(3)
    took = (0.02 * (1 + 0.3 * rng.random(400))).tolist()
    for index, first in enumerate((0, 100)):
        passes = program_events.passes(first, took, began_seconds=program_events.BEGAN)
        job_folders.process(tmp_path, index, 2, *job_folders.loop(), passes, header={"host": "box"})
    expected = job_folders.step_grid(read_job(tmp_path, Session), 8, values_of="step")
    found = JobReading(tmp_path).read()
    assert found is not None
    grid = found.job_steps.grid(8, None, None, "step")
    assert (grid.first_steps == expected.first_steps).all()
    assert np.allclose(grid.seconds, expected.seconds)
    assert grid.first_steps[0] == 0
    assert any("aligned with the others by the clock" in notice for notice in found.figures.notices)


def test_a_picture(snap_compare: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxprof.tui.device_monitor.PERIOD_SECONDS", 60.0)
    stage = Stage(light=True)

    async def before(pilot: Pilot[Any]) -> None:
        late_from = (job_folders.late_from(10 if index == 1 else 99) for index in range(4))
        screen = await opened(Walk(stage, pilot), job_folders.job(folder, *late_from))
        await Walk(stage, pilot).until(lambda: screen.query_one(JobMap).browse.grid is not None)
        await still(pilot)

    assert snap_compare(stage.app, terminal_size=(120, 40), run_before=before)
