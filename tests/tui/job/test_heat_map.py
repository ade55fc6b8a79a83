"""The heat map: who stands out since when, zoom and pan, rows that scroll, groups of hosts, what is unknown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import job_folders
from jaxprof.analysis.jobs.step_grid import StepGrid, step_outliers
from jaxprof.tui.job.heat_map import MARKS, JobMap, MapBrowse, MapProcess, cell_words
from tui.fakes import SMALL, Walk, walking
from tui.job.test_job_screen import opened

pytestmark = pytest.mark.usefixtures("small_catalogue", "one_moment")


def planted(folder: Path, count: int = 4, late: int = 1) -> Path:
    """A job of 2 000 steps in 20 s, one of whose processes is late from the middle on."""
    return job_folders.job(folder, *(job_folders.late_from(10 if index == late else 99) for index in range(count)))


async def shown(walk: Walk, folder: Path) -> JobMap:
    """The map, once it has steps."""
    found: JobMap = (await opened(walk, folder)).query_one(JobMap)
    await walk.until(lambda: found.browse.grid is not None)
    await walk.pause()
    return found


def row_of(walk: Walk, name: str) -> str:
    """The cells of a row."""
    line = next(line for line in walk.text.splitlines() if f" {name} " in line and "on node" not in line)
    return line.partition(name)[2].strip("│ ")


async def test_it_shows_who_is_late_zooms_and_pans_and_has_the_exact_values(tmp_path: Path) -> None:
    async with walking(SMALL) as walk:
        found = await shown(walk, planted(tmp_path))
        late, other = row_of(walk, "1 node1"), row_of(walk, "2 node2")
        assert set(other) == {MARKS[0]}
        half = len(late) // 2
        assert set(late[:half]) == {MARKS[0]}
        assert set(late[half:]) == {MARKS[3]}, "40 % more of its step, of which the others wait for it"
        await walk.shows("<1.05", "blank: unknown")
        browse = found.browse

        async def has(steps: int) -> None:
            await walk.until(
                lambda: browse.grid is not None and int(browse.grid.steps.sum()) == steps, f"{steps} steps"
            )

        assert browse.whole is not None
        assert (browse.whole.start, browse.whole.end) == (0, 2000)
        await walk.press("+ +")
        assert browse.window is not None
        assert browse.window.span == 500
        await has(500)
        await walk.press("right")
        assert (browse.window.start, browse.cursor) == (50, 50)
        await walk.press("shift+right")
        assert browse.cursor > 50
        await walk.press("end")
        assert (browse.cursor, browse.window.end) == (1999, 2000)
        await walk.press("- m 0")
        assert browse.window == browse.whole
        await has(2000)

        await walk.pilot.resize_terminal(120, 40)
        await walk.press("home end")
        await walk.until(lambda: found.facts.startswith("process 1, steps 1\u202f900 to 1\u202f999: "))
        assert "own work 4.00 ms a step, median 200 µs of 10.0 ms" in found.facts
        assert "1.38×: estimate from 100 samples" in found.facts
        for keys, values in (("]", "step"), ("[ [", "compile")):
            await walk.press(keys)
            await walk.until(lambda of=values: browse.grid is not None and browse.grid.values_of == of, values)
            if values == "step":
                assert "step time 10.0 ms a step, median 10.0 ms, 1.00×" in found.facts
                await walk.shows("in lockstep, all processes take the same time")


async def test_what_was_not_seen_of_a_process_is_blank_and_said(tmp_path: Path) -> None:
    for index in range(3):
        job_folders.process(tmp_path, index, 3, *job_folders.late_from(99, *([8] if index == 2 else [])))
    async with walking(SMALL) as walk:
        found = await shown(walk, tmp_path)
        assert len(row_of(walk, "2 node2")) < len(row_of(walk, "1 node1")) / 2
        await walk.press("end down down")
        assert "unknown" in found.facts


async def test_rows_scroll_and_the_one_of_the_cursor_stays_in_view_and_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in range(40):
        data = 0.5 if index == 33 else 0.02
        job_folders.process(tmp_path, index, 40, *job_folders.loop(3, data=data), header={"host": "big"})
    async with walking((80, 30)) as walk:
        found = await shown(walk, tmp_path)
        assert (found.browse.order_in_use, found.browse.process) == ("lost time", 33), "the worst first"
        await walk.press("m g", "All processes are on one host")
        await walk.press("s s", " 33 big")
        assert (found.browse.order_in_use, found.browse.process) == ("process", 33), "the cursor stays on its process"
        with monkeypatch.context() as late:  # a new size is announced late
            late.setattr(JobMap, "on_resize", lambda self: None)
            await walk.pilot.resize_terminal(80, 24)
            await walk.shows(" 33 big")
        await walk.press("pageup enter")
        await walk.until(lambda: walk.app.session_path == tmp_path / f"process-{found.browse.process:05}.jaxprof")


def processes(count: int, per_host: int) -> list[MapProcess]:
    return [MapProcess(index, f"node{index // per_host}", float(index == 5), index == 5) for index in range(count)]


def test_processes_of_a_host_are_one_row_where_they_do_not_fit() -> None:
    browse = MapBrowse()
    browse.resize(6)
    browse.show(processes(16, 4))
    assert [line.name for line in browse.lines] == ["node1", "node0", "node2", "node3"]
    assert browse.process == 5, "the worst of the worst host"
    assert browse.lines[0].accused
    browse.grouped = False
    browse.arrange()
    assert len(browse.lines) == 16
    assert browse.process == 5
    browse.resize(20)
    assert [line.processes[0] for line in browse.lines] == list(range(16)), "all fit: in their own order"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([0.0], "no other process is known"),
        ([0.0, float("nan")], "own work of the other process is unknown here"),
        ([0.0, float("nan"), float("nan")], "own work of all other processes is unknown here"),
    ],
)
def test_a_process_that_nothing_is_compared_with_is_not_called_the_only_one(rows: list[float], says: str) -> None:
    values = np.array(rows).reshape(-1, 1)
    grid = StepGrid(
        tuple(range(len(rows))), np.zeros(1), np.full(1, 10), values, np.full_like(values, 0.0), np.ones_like(values),
        "time", "own",
    )  # fmt: skip
    words = cell_words(step_outliers(grid), 0, 0)
    assert words.endswith(says), words
