"""A job that runs is followed; what becomes of its folder meanwhile is said, and nothing is lost."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import job_folders
import program_events
from jaxprof.session import Session
from jaxprof.session.log import LogWriter
from jaxprof.session.log.job_folder import read_job
from jaxprof.session_names import session_path
from jaxprof.tui.job.heat_map import JobMap
from jaxprof.tui.job.panes import RankTable
from jaxprof.tui.job.reading import JobReading
from tui.fakes import Stage, until
from tui.job.test_job_screen import opened, words

pytestmark = pytest.mark.usefixtures("small_catalogue", "one_moment")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is looked at more often than it is worth waiting for."""
    monkeypatch.setattr("jaxprof.tui.job.screen.JobScreen.TICK_SECONDS", 0.05)


async def test_processes_come_and_grow(tmp_path: Path) -> None:
    job_folders.process(tmp_path, 0, 3, *job_folders.late_from(99, 40))
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await opened(stage, pilot, tmp_path)
        rows = screen.query_one(RankTable)
        assert rows.count == 1
        assert "2 of 3 processes have no session here: 1, 2" in words(stage)
        job_folders.process(tmp_path, 1, 3, *job_folders.late_from(99, 40))
        await until(pilot, lambda: rows.count == 2)
        header = replace(
            program_events.HEADER, session="c2", host="node2", process_index=2, process_count=3, job=job_folders.JOB
        )
        events = program_events.program(*job_folders.late_from(3, 40))
        writer = LogWriter(header, session_path(tmp_path, 2))
        for event in events[:-4]:
            writer.append(event)
        await until(pilot, lambda: "1 running" in words(stage))
        assert "process 2 on node2 is late" in words(stage)
        found = screen.query_one(JobMap)
        await until(pilot, lambda: found.browse.grid is not None and len(found.browse.grid.processes) == 3)
        for event in events[-4:]:
            writer.append(event)
        writer.close()
        await until(pilot, lambda: "1 running" not in words(stage))
        assert "have no session" not in words(stage)


async def test_a_folder_that_goes_is_said_and_what_was_read_stays(tmp_path: Path) -> None:
    folder = tmp_path / "run.jaxprof.d"
    folder.mkdir()
    job_folders.job(folder, job_folders.loop(), job_folders.loop())
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        screen = await opened(stage, pilot, folder)
        (folder / "process-00001.jaxprof").unlink()
        await until(pilot, lambda: "process-00001.jaxprof was deleted; what was read of it is shown" in words(stage))
        shutil.rmtree(folder)
        await until(pilot, lambda: "run.jaxprof.d cannot be read: No such file" in words(stage))
        assert screen.query_one(RankTable).count == 2
        folder.mkdir()
        job_folders.job(folder, job_folders.loop(), job_folders.loop())
        await until(pilot, lambda: "cannot be read" not in words(stage))


async def test_a_process_that_is_started_again_replaces_its_row(tmp_path: Path) -> None:
    job_folders.job(tmp_path, job_folders.loop(), job_folders.loop(data=0.5), job_folders.loop())
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        await opened(stage, pilot, tmp_path)
        assert "process 1 on node1 is late" in words(stage)
        job_folders.process(tmp_path, 1, 3, *job_folders.loop())
        await until(pilot, lambda: "process 1 was started again" in words(stage))
        assert "process 1 on node1 is late" not in words(stage)


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
    assert any("laid beside the others by the clock" in notice for notice in found.figures.notices)
