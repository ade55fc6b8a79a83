"""History: measurements, the chart, the points with what changed between them, and the ways in and out."""

import re
import threading

import pytest

import kept_histories as kept
from jaxprof.analysis import history
from jaxprof.tui.history.screen import HistoryScreen, history_plot
from jaxprof.tui.results.screen import ResultsScreen
from tui.fakes import SMALL, Stage, Walk, still, walking

pytestmark = pytest.mark.usefixtures("catalogue", "one_moment")


@pytest.fixture
def planted(shelf):
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


async def opened(walk):
    """The history of all workloads."""
    walk.app.show_history()
    screen = await walk.on(HistoryScreen)
    await walk.until(lambda: walk.find("#measurements").count == 2)
    return screen


async def test_what_changed_is_shown_at_its_point_and_points_lead_to_their_sessions(planted, monkeypatch):
    threads = []
    read = history.read_history

    def noted(*arguments, **options):
        threads.append(threading.current_thread())
        return read(*arguments, **options)

    monkeypatch.setattr("jaxprof.tui.history.screen.read_history", noted)
    async with walking((120, 70)) as walk:
        screen = await opened(walk)
        assert threads
        assert threading.main_thread() not in threads
        walk.find("#measurements").move_to(0)
        await walk.shows("steady call, median · selu jit", "not measured together")
        await walk.press("down", "· jax 0.10.2 → 0.11.0", "1 wrong result")
        lines = walk.text.splitlines()
        (at,) = [number for number, line in enumerate(lines) if "· jax 0.10.2" in line]
        assert "session-011" in lines[at - 1]
        assert "session-012" in lines[at + 1]
        assert len([line for line in lines if re.search(r"session-005 .* wrong", line)]) == 1

        await walk.press("up")
        for keys, measure in (("]", "trace"), ("]", "lower"), ("]", "compile"), ("[ [ [ [", "peak")):
            await walk.press(keys)
            await walk.until(
                lambda name=measure: screen._history is not None and screen._history.measure == name, measure
            )
        await walk.shows("No kept session has this measure")
        await walk.press("[ [", "the same in 22 points")
        await walk.until(lambda: walk.find("#points").count > 0)
        await walk.press("enter")
        await walk.until(lambda: walk.find("#points").has_focus)
        assert walk.find("#points").current_row is not None
        await walk.press("up enter")
        await walk.until(lambda: walk.app.session_path == planted / "session-020.jaxprof")
        await walk.on(ResultsScreen)
        await walk.press("m H")
        await walk.on(HistoryScreen)
        await walk.until(lambda: walk.find("#measurements").count == 1)
        await walk.press("escape")
        await walk.on(ResultsScreen)


async def test_a_workload_of_home_that_was_never_measured(shelf):
    kept.keep(shelf, 0, kept.run("r1", 0.01, workload="hessian"))
    async with walking(SMALL) as walk:
        await walk.until(lambda: getattr(walk.screen, "info", None) is not None)
        await walk.press("m H", "No kept session measured")
        await walk.press("m A", "1 point", "hessian jit")
        assert walk.find("#measurements").count == 1


def test_points_are_numbered_and_one_point_is_no_chart(tmp_path):
    shown = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = history.read_history(kept.keep_all(folder, [0.010] * number))
        shown.append(history_plot(found, found.series[0], 60, 14).plain.split())
    assert shown[0] == ["one", "point", "so", "far"]
    assert shown[1][-2:] == ["1", "2"]


def test_a_picture(snap_compare, planted, monkeypatch):
    monkeypatch.setattr("jaxprof.tui.device_monitor.PERIOD_SECONDS", 60.0)
    stage = Stage()

    async def go(pilot):
        walk = Walk(stage, pilot)
        await opened(walk)
        walk.find("#measurements").move_to(1)
        await walk.shows("1 wrong result")
        await walk.press("enter up up up up up up up up up up")
        await still(pilot)

    assert snap_compare(stage.app, terminal_size=(120, 40), run_before=go)
