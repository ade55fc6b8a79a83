"""The Job screen: what is said on top, the processes, the heat map, the way to a session and back, jobs that go on."""

import shutil
import threading
from dataclasses import replace

import numpy as np
import pytest

import job_folders
import program_events
from jaxprof.jobs.step_grid import StepGrid
from jaxprof.session import LogWriter
from jaxprof.session.files import session_path
from jaxprof.tui.job.processes import MARKS, ProcessList, cell_words, mark_of
from jaxprof.tui.job.screen import JobFindings, JobReading, JobScreen, fitting
from tui.fakes import HOSTILE, SMALL, walking

pytestmark = pytest.mark.usefixtures("small_catalogue", "one_moment")


def made(beside, name):
    folder = beside.parent / f"{name}.jaxprof.d"
    folder.mkdir()
    return folder


@pytest.fixture
def folder(tmp_path):
    return made(tmp_path / "beside", "train")


def late(folder, count=4):
    return job_folders.job(folder, *(job_folders.loop(data=0.40 if index == 1 else 0.02) for index in range(count)))


async def opened(walk, folder):
    walk.app.open_session(folder)
    await walk.until(lambda: walk.app.job_folder == folder)
    screen = await walk.on("JobScreen")
    await walk.until(lambda: screen.figures is not None)
    await walk.pause()
    return screen


async def test_late_process_shows_without_a_key(folder):
    async with walking(SMALL) as walk:
        screen = await opened(walk, late(folder))
        await walk.shows(
            "ended well · 4 processes on 4 hosts · slurm-1234.0",
            "process 1 on node1 is late: making or fetching its input takes 40 % of its loop",
            "Look at its input: the shard, the disk or the network of that host.",
        )
        rows = screen.query_one(ProcessList)
        assert rows.current == 1
        for keys, row in (("enter", 1), ("m T home down down enter", 2), ("m f enter", 1)):
            await walk.press(keys)
            await walk.on("ProgramScreen")
            await walk.until(lambda row=row: walk.app.session_path == folder / f"process-0000{row}.jaxprof")
            await walk.press("escape")
            await walk.until(lambda: walk.screen is screen)
            assert row == 1 or rows.current == row, "back at its row"

        await opened(walk, job_folders.job(made(folder, "other"), job_folders.loop(), job_folders.loop()))
        await walk.shows("No process stands out. Compared: 2 loops", gone="is late:")
        missing = late(made(folder, "missing"))
        (missing / "process-00002.jaxprof").unlink()
        (missing / "process-00003.jaxprof").write_text("torn")
        screen = await opened(walk, missing)
        await walk.shows("2 of 4 processes have no session here: 2, 3")
        claim = screen.query_one(JobFindings).current_row
        assert (claim.mark, screen.query_one(ProcessList).count) == ("!", 2), "what is missing comes first"


async def test_a_job_that_is_being_read_is_not_said_to_have_no_process(folder, monkeypatch):
    go, read = threading.Event(), JobReading.read
    monkeypatch.setattr(JobReading, "read", lambda reading: go.wait(20) and read(reading))
    async with walking((200, 60)) as walk:
        walk.app.open_session(late(folder))
        await walk.on("JobScreen")
        await walk.press("]", "Reading the job", "Step time")
        assert "No process" not in walk.text
        go.set()
        await walk.shows("node1")


async def test_processes_are_sorted_and_filtered_in_two_views(folder):
    async with walking() as walk:
        screen = await opened(walk, late(folder))
        rows = screen.query_one(ProcessList)
        await walk.press("m T s s s")
        assert (rows.order_in_words, rows.keys[0]) == ("by lost ▾", 1)
        await walk.press("/ 'node3 enter")
        assert (rows.keys, rows.hidden) == ([3], 3)
        await walk.press("escape y")
        assert rows.count == 4
        assert "is late" in walk.app.clipboard
        walk.app.clear_notifications()

        await walk.press("m T", "[Processes]", "status", gone="blank: unknown")
        await walk.press("m t", "[Steps]", "blank: unknown", gone="status")
        assert rows.size.height > 8

        assert walk.app.lacking() == {"compiles", "kernels", "timeline", "memory"}
        for place in "3456":
            await walk.press(place, "is a job; this screen shows the session of one process", "then Enter on a process")

        hostile = made(folder, "hostile")
        for index in range(4):
            header = {"host": HOSTILE if index in (1, 3) else f"node{index}", "job": HOSTILE}
            job_folders.process(hostile, index, 4, *job_folders.loop(), header=header)
        screen = await opened(walk, hostile)
        await walk.press("m T home down")
        assert screen.query_one(ProcessList).current == 1
        await walk.press("m t s y", "[b]evil[/x]")
        assert "\x1b" not in walk.text


# -- a job that goes on -------------------------------------------------------------------------------------------


@pytest.fixture
def soon(monkeypatch):
    """The folder is looked at more often than it is worth waiting for."""
    monkeypatch.setattr(JobScreen, "TICK_SECONDS", 0.05)


@pytest.mark.usefixtures("soon")
async def test_processes_come_grow_and_are_started_again(tmp_path):
    job_folders.process(tmp_path, 0, 3, *job_folders.late_from(99, 40))
    async with walking() as walk:
        screen = await opened(walk, tmp_path)
        rows = screen.query_one(ProcessList)
        assert rows.count == 1
        await walk.shows("2 of 3 processes have no session here: 1, 2")
        job_folders.process(tmp_path, 1, 3, *job_folders.late_from(99, 40))
        await walk.until(lambda: rows.count == 2)
        header = replace(
            program_events.HEADER, session="c2", host="node2", process_index=2, process_count=3, job=job_folders.JOB
        )
        events = program_events.program(*job_folders.late_from(3, 40))
        writer = LogWriter(header, session_path(tmp_path, 2))
        for event in events[:-4]:
            writer.append(event)
        await walk.shows("1 running", "process 2 on node2 is late")
        await walk.until(lambda: rows.grid is not None and len(rows.grid.processes) == 3)
        for event in events[-4:]:
            writer.append(event)
        writer.close()
        await walk.shows(gone="1 running")
        await walk.shows(gone="have no session")
        job_folders.process(tmp_path, 2, 3, *job_folders.late_from(99, 40))
        await walk.shows("process 2 was started again", gone="process 2 on node2 is late")


@pytest.mark.usefixtures("soon")
async def test_a_folder_that_goes_is_said_and_what_was_read_stays(folder):
    job_folders.job(folder, job_folders.loop(), job_folders.loop())
    async with walking(SMALL) as walk:
        screen = await opened(walk, folder)
        (folder / "process-00001.jaxprof").unlink()
        await walk.shows("process-00001.jaxprof was deleted")
        shutil.rmtree(folder)
        await walk.shows("train.jaxprof.d cannot be read")
        assert screen.query_one(ProcessList).count == 2
        folder.mkdir()
        job_folders.job(folder, job_folders.loop(), job_folders.loop())
        await walk.shows(gone="cannot be read")


async def shown(walk, folder):
    found = (await opened(walk, folder)).query_one(ProcessList)
    await walk.until(lambda: found.grid is not None)
    await walk.pause()
    return found


def row_of(walk, name):
    line = next(line for line in walk.text.splitlines() if f" {name} " in line and " on node" not in line)
    return line.partition(name)[2].strip("│ ")


async def test_it_shows_who_is_late_and_has_the_exact_values(tmp_path):
    late_from = (job_folders.late_from(10 if index == 1 else 99) for index in range(4))  # of 2 000 steps in 20 s
    async with walking(SMALL) as walk:
        found = await shown(walk, job_folders.job(tmp_path, *late_from))
        late, other = row_of(walk, "1 node1"), row_of(walk, "2 node2")
        half = len(late) // 2
        assert set(other) == set(late[:half]) == {MARKS[0]}
        assert set(late[half:]) == {MARKS[3]}, "40 % more of its step, of which the others wait for it"
        await walk.pilot.resize_terminal(120, 40)
        await walk.until(lambda: found.grid is not None)
        await walk.press("right " * (len(found.grid.steps) + 1))
        await walk.until(lambda: found.facts.startswith("process 1, steps 1\u202f900 to 1\u202f999: "))
        assert "own work 4.00 ms a step, median 200 µs of 10.0 ms" in found.facts
        assert "1.38×: estimate from 100 samples" in found.facts
        for keys, values, said in (
            ("]", "step", "step time 10.0 ms a step, median 10.0 ms, 1.00×"),
            ("[ [", "compile", ""),
        ):
            await walk.press(keys)
            await walk.until(lambda of=values: found.grid is not None and found.grid.values_of == of, values)
            assert said in found.facts


async def test_unseen_is_blank_and_the_cursor_row_is_in_view(folder):
    for index in range(3):
        job_folders.process(folder, index, 3, *job_folders.late_from(99, *([8] if index == 2 else [])))
    many = made(folder, "many")
    for index in range(20):
        data = 0.5 if index == 13 else 0.02
        job_folders.process(many, index, 20, *job_folders.loop(3, data=data), header={"host": "big"})
    async with walking(SMALL) as walk:
        found = await shown(walk, folder)
        assert len(row_of(walk, "2 node2")) < len(row_of(walk, "1 node1")) / 2
        await walk.press("down down" + " right" * len(found.grid.steps))
        assert "unknown" in found.facts

        found = await shown(walk, many)
        assert (found.order_in_words, found.current, found.cursor) == ("by lost ▾", 13, 0), "of many, the worst first"
        await walk.press("s", " 13 big")
        assert (found.order_in_words, found.current, found.cursor) == ("by process ▾", 13, 13), "on its process"
        await walk.press("pageup enter")
        await walk.until(lambda: walk.app.session_path == many / f"process-{found.current:05}.jaxprof")


def test_process_without_comparison_is_not_the_only_one():
    unknown = float("nan")
    for rows, says in (
        ([0.0], ", not compared: own work of no other process is known here"),
        ([0.0, unknown, unknown], ", not compared: own work of no other process is known here"),
    ):
        values = np.array(rows).reshape(-1, 1)
        given = np.zeros(1), np.full(1, 10), values, np.zeros_like(values), np.ones_like(values)
        grid = StepGrid(tuple(range(len(rows))), *given, "time", "own")
        assert cell_words(grid, 0, 0).endswith(says)
        assert mark_of(int(grid.levels[0, 0]), float(grid.ratio[0, 0])) == " ", "nor drawn as if it was like the others"


def test_costs_that_are_too_wide_lose_a_part_and_no_figure():
    cost = "useful 58 s (47 %), waiting 29 s (24 %), the rest 35 s (29 %) of 122 s (4 of 4 processes together)"
    whole = "useful 58 s (47 %), waiting 29 s (24 %), the rest 35 s (29 %) of 122 s"
    assert [fitting(cost, width) for width in (120, 80, 67)] == [
        cost,
        whole,
        "useful 58 s (47 %), waiting 29 s (24 %) of 122 s",
    ]
    assert fitting("unknown: no process was seen in a loop", 20) == "unknown: no process was seen in a loop"


async def test_screen_turns_to_the_stalled_process(folder):
    writers = []
    for index in range(4):
        header, events = job_folders.recording(index, 4, *job_folders.loop(), wall=None)
        writers.append(LogWriter(header, session_path(folder, index)))
        for event in events:
            writers[-1].append(event)
    try:
        async with walking(SMALL) as walk:
            screen = await opened(walk, folder)
            await walk.shows("running · 4 processes on 4 hosts", gone="standing still")
            for index, writer in enumerate(writers):
                writer.append(program_events.stands(**({} if index == 2 else {"kind": "sync"})))
            await walk.press("r")
            await walk.shows("standing still · 4 processes on 4 hosts", "process 2 of 4 stands still since step 188")
            assert screen.query_one(ProcessList).current == 2
    finally:
        for writer in writers:
            writer.close()
