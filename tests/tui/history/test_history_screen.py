"""History: measurements, the chart, the points with what changed between them, and the ways in and out."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import kept_histories as kept
from jaxprof.tui.history.screen import HistoryScreen, Measurements, Points
from jaxprof.tui.kit.session_list import SessionTable
from jaxprof.tui.results.screen import ResultsScreen
from tui.fakes import Stage, screen_text, still, until

pytestmark = pytest.mark.usefixtures("catalogue", "one_moment")


@pytest.fixture
def planted(shelf: Path) -> Path:
    """A slow-down of matmul with a new jax, a wrong result, and selu without a change."""
    slower, same = kept.medians((0.010, 12), (0.0125, 10)), kept.medians((0.004, 22), seed=3)
    for number, (matmul, selu) in enumerate(zip(slower, same, strict=True)):
        jax = "0.10.2" if number < 12 else "0.11.0"
        events = [
            *kept.run("r1", selu, workload="selu", jax=jax, parameters={"n": 1_000_000}),
            *kept.run("r2", matmul, jax=jax, passed=number != 5, compile_seconds=(0.04, 0.05, 0.045)),
        ]
        kept.keep(shelf, number, events)
    return shelf


async def opened(stage: Stage, pilot: Pilot[Any], count: int = 2) -> HistoryScreen:
    """The history of all workloads, from Sessions."""
    await pilot.press("1")
    await until(
        pilot, lambda: bool(stage.app.screen.query(SessionTable)) and stage.app.screen.query_one(SessionTable).keys
    )
    await pilot.press("m", "H")
    await until(pilot, lambda: isinstance(stage.app.screen, HistoryScreen))
    await until(pilot, lambda: bool(stage.app.screen.query(Measurements)))
    await until(pilot, lambda: stage.app.screen.query_one(Measurements).count == count, f"{count} measurements")
    screen = stage.app.screen
    assert isinstance(screen, HistoryScreen)
    return screen


async def test_a_change_is_shown_at_its_point_and_nowhere_without_one(planted: Path) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 70), notifications=True) as pilot:
        screen = await opened(stage, pilot)
        screen.query_one(Measurements).move_to(0)
        await until(pilot, lambda: "steady call, median · selu jit" in screen_text(stage.app))
        await until(pilot, lambda: "no lasting change" in screen_text(stage.app))
        assert "══" not in screen_text(stage.app)
        assert "not measured together" not in screen_text(stage.app)
        await pilot.press("down")
        await until(pilot, lambda: "══ slower: 10.1 ms → 12.4 ms (0.81×), p = 0.0025" in screen_text(stage.app))
        lines = screen_text(stage.app).splitlines()
        (at,) = [number for number, line in enumerate(lines) if "══" in line]
        assert "2026-01-09" in lines[at - 1]
        assert "jax 0.10.2 → 0.11.0" in lines[at + 1]
        assert "2026-01-10" in lines[at + 2]
        text = " ".join(screen_text(stage.app).split())
        assert "not measured together" in text
        assert "0.81× ◉" in text
        assert len([line for line in lines if "✗ 2026-01-03" in line]) == 1


async def test_enter_goes_to_a_session_and_phases_change(planted: Path) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await opened(stage, pilot)
        for words in ("trace", "lower", "compile"):
            await pilot.press("right_square_bracket")
            await until(pilot, lambda words=words: screen._found is not None and screen._found.measure == words, words)  # type: ignore[misc]
        await until(pilot, lambda: "compile · " in screen_text(stage.app))
        await pilot.press(*["left_square_bracket"] * 4)
        await until(pilot, lambda: screen._found is not None and screen._found.measure == "peak")
        await until(pilot, lambda: "No session holds a point of this" in screen_text(stage.app))
        await pilot.press("left_square_bracket", "left_square_bracket")
        await until(pilot, lambda: "the same in 22 points" in screen_text(stage.app))
        await until(pilot, lambda: screen.query_one(Points).count > 0)
        await pilot.press("enter")
        await until(pilot, lambda: screen.query_one(Points).has_focus)
        assert screen.query_one(Points).current_row is not None
        await pilot.press("up", "enter")
        await until(pilot, lambda: stage.app.session_path == planted / "session-020.jaxprof")
        await until(pilot, lambda: isinstance(stage.app.screen, ResultsScreen))
        await pilot.press("m", "H")
        await until(pilot, lambda: isinstance(stage.app.screen, HistoryScreen))
        await until(pilot, lambda: stage.app.screen.query_one(Measurements).count == 1)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(stage.app.screen, ResultsScreen))


async def test_a_workload_of_home_that_was_never_measured(shelf: Path) -> None:
    kept.keep(shelf, 0, kept.run("r1", 0.01, workload="hessian"))
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: getattr(stage.app.screen, "info", None) is not None)
        await pilot.press("m", "H")
        await until(pilot, lambda: "No kept session measured" in screen_text(stage.app))
        await pilot.press("m", "A")
        await until(pilot, lambda: "a change is looked for" in screen_text(stage.app))
        assert stage.app.screen.query_one(Measurements).count == 1
        assert "hessian jit" in screen_text(stage.app)


async def test_the_reading_is_not_on_the_drawing_thread(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jaxprof.analysis import history

    threads: list[threading.Thread] = []
    read = history.read_history

    def noted(*arguments: Any, **options: Any) -> history.LibraryHistory:
        threads.append(threading.current_thread())
        return read(*arguments, **options)

    monkeypatch.setattr(history, "read_history", noted)
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        await opened(stage, pilot)
    assert threads
    assert threading.main_thread() not in threads


def test_a_picture(snap_compare: Any, planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxprof.tui.device_monitor.PERIOD_SECONDS", 60.0)
    stage = Stage()

    async def go(pilot: Pilot[Any]) -> None:
        screen = await opened(stage, pilot)
        screen.query_one(Measurements).move_to(1)
        await until(pilot, lambda: "0.81× ◉" in screen_text(stage.app))
        await pilot.press("enter", *["up"] * 10)
        await still(pilot)

    assert snap_compare(stage.app, terminal_size=(120, 40), run_before=go)
