"""The heat map: who stands out since when, zoom and pan, rows that scroll, groups of hosts, what is unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import job_folders
from jaxprof.tui.job.heat_map import MARKS, JobMap, MapBrowse, MapProcess
from tui.fakes import Stage, screen_text, until
from tui.job.test_job_screen import opened

pytestmark = pytest.mark.usefixtures("small_catalogue", "one_moment")


def planted(folder: Path, count: int = 4, late: int = 1) -> Path:
    """A job of 2 000 steps in 20 s, one of whose processes is late from the middle on."""
    return job_folders.job(folder, *(job_folders.late_from(10 if index == late else 99) for index in range(count)))


async def shown(stage: Stage, pilot: Pilot[Any], folder: Path) -> JobMap:
    """The map, once it has steps."""
    screen = await opened(stage, pilot, folder)
    found = screen.query_one(JobMap)
    await until(pilot, lambda: found.browse.grid is not None)
    await pilot.pause()
    return found


def row_of(stage: Stage, name: str) -> str:
    """The cells of a row."""
    line = next(line for line in screen_text(stage.app).splitlines() if f" {name} " in line and "on node" not in line)
    return line.partition(name)[2].strip("│ ")


async def test_it_shows_who_is_late_zooms_and_pans(tmp_path: Path) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        await shown(stage, pilot, planted(tmp_path))
        late, other = row_of(stage, "1 node1"), row_of(stage, "2 node2")
        assert set(other) == {MARKS[0]}
        half = len(late) // 2
        assert set(late[:half]) == {MARKS[0]}
        assert set(late[half:]) == {MARKS[3]}, "40 % more of its step, of which the others wait for it"
        assert "<1.05" in screen_text(stage.app)
        assert "blank: unknown" in screen_text(stage.app)

        found = await shown(stage, pilot, planted(tmp_path))
        browse = found.browse
        assert browse.whole is not None
        assert (browse.whole.start, browse.whole.end) == (0, 2000)
        await pilot.press("plus", "plus")
        assert browse.window is not None
        assert browse.window.span == 500
        await until(pilot, lambda: found.browse.grid is not None and int(found.browse.grid.steps.sum()) == 500)
        await pilot.press("right")
        assert (browse.window.start, browse.cursor) == (50, 50)
        await pilot.press("shift+right")
        assert browse.cursor > 50
        await pilot.press("end")
        assert (browse.cursor, browse.window.end) == (1999, 2000)
        await pilot.press("minus", "m", "0")
        assert browse.window == browse.whole
        await until(pilot, lambda: found.browse.grid is not None and int(found.browse.grid.steps.sum()) == 2000)


async def test_the_cursor_has_the_exact_values(tmp_path: Path) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        found = await shown(stage, pilot, planted(tmp_path))
        await pilot.press("end")
        await pilot.pause()
        assert found.facts.startswith(
            "process 1, steps 1\u202f900 to 1\u202f999: own work 4.00 ms a step, median 200 µs of 10.0 ms"
        )
        assert "1.38×: estimate from 100 samples" in found.facts
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: found.browse.grid is not None and found.browse.grid.values_of == "step")
        assert "step time 10.0 ms a step, median 10.0 ms, 1.00×" in found.facts
        assert "in lockstep all take the same time" in screen_text(stage.app)
        await pilot.press("left_square_bracket", "left_square_bracket")
        await until(pilot, lambda: found.browse.grid is not None and found.browse.grid.values_of == "compile")


async def test_what_was_not_seen_of_a_process_is_blank_and_said(tmp_path: Path) -> None:
    folder = tmp_path
    job_folders.process(folder, 0, 3, *job_folders.late_from(99))
    job_folders.process(folder, 1, 3, *job_folders.late_from(99))
    job_folders.process(folder, 2, 3, *job_folders.late_from(99, 8))
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        found = await shown(stage, pilot, folder)
        assert len(row_of(stage, "2 node2")) < len(row_of(stage, "1 node1")) / 2
        await pilot.press("end", "down", "down")
        assert "unknown" in found.facts


async def test_rows_scroll_and_enter_opens_the_one_under_the_cursor(tmp_path: Path) -> None:
    for index in range(40):
        job_folders.process(
            tmp_path, index, 40, *job_folders.loop(3, data=0.5 if index == 33 else 0.02), header={"host": "big"}
        )
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        found = await shown(stage, pilot, tmp_path)
        assert found.browse.order_in_use == "lost time"
        assert found.browse.process == 33, "the worst first"
        await pilot.press("m", "g")
        await until(pilot, lambda: "All are on one host" in screen_text(stage.app))
        await pilot.press("s", "s")
        assert found.browse.order_in_use == "process"
        assert found.browse.process == 33, "the cursor stays on its process"
        await until(pilot, lambda: " 33 big" in screen_text(stage.app))
        await pilot.press("pageup", "enter")
        await until(pilot, lambda: stage.app.session_path is not None)
        assert stage.app.session_path == tmp_path / f"process-{found.browse.process:05}.jaxprof"


async def test_the_row_of_the_cursor_is_in_view_however_late_a_new_size_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in range(40):
        job_folders.process(tmp_path, index, 40, *job_folders.loop(3), header={"host": "big"})
    stage = Stage()
    async with stage.app.run_test(size=(80, 30), notifications=True) as pilot:
        found = await shown(stage, pilot, tmp_path)
        found.change(lambda browse: browse.go_to(33))
        await until(pilot, lambda: " 33 big" in screen_text(stage.app))
        monkeypatch.setattr(JobMap, "on_resize", lambda self: None)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: " 33 big" in screen_text(stage.app))


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
