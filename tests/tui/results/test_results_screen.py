"""Results and a run's detail: rows, sorting, sweeps, copying, and that only what changed is drawn."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from jaxprof.tui.app import JaxprofApp
from jaxprof.tui.kit.explanation import ExplanationDialog, ExplanationHead
from jaxprof.tui.results.run_detail import RunDetailScreen
from jaxprof.tui.results.screen import ResultList, ResultsScreen
from tui import session_tapes as sessions
from tui.fakes import Stage, screen_text, until
from tui.session_tapes import Tape


async def shown(stage: Stage, pilot: Pilot[Any], tape: Tape) -> ResultsScreen:
    """Results with the tape's session."""
    stage.app.set_session(tape.session(), None)
    stage.app.action_go("results")
    await until(
        pilot,
        lambda: (
            isinstance(stage.app.screen, ResultsScreen)
            and any(rows.keys for rows in stage.app.screen.query(ResultList))
        ),
    )
    await pilot.pause()
    screen = stage.app.screen
    assert isinstance(screen, ResultsScreen)
    return screen


def row_of(stage: Stage, start: str) -> str:
    return next(line for line in screen_text(stage.app).split("\n") if line.startswith(f"│ ✓ {start} "))


async def test_the_essentials_the_advice_and_copying(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    copied: list[str] = []
    monkeypatch.setattr(stage.app, "copy_to_clipboard", copied.append)
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await shown(stage, pilot, sessions.finished())
        row = row_of(stage, "jit")
        for what in ("634 µs", "± 0.99 %", "6.9× (6.9-7.0)", "21 calls"):
            assert what in row
        numpy = row_of(stage, "numpy")
        assert "baseline" in numpy
        assert numpy.count("█") > row.count("█") > 0
        assert "one scale for all, linear" in screen_text(stage.app)

        screen = await shown(stage, pilot, sessions.finished())
        screen.query_one(ResultList).move_to_key("r3")
        await pilot.pause()
        await pilot.press("y")
        assert copied[0].startswith("selu jit cpu:0 n=1 000 000: median 634 µs ± 0.99 % (95 %: 627 µs to 639 µs), 6.9×")

        screen = await shown(stage, pilot, sessions.finished())
        stage.app.action_go("home")
        await pilot.pause()
        stage.app.show_results("r2")
        await until(pilot, lambda: screen.query_one(ResultList).current == "r2")

        finding, command = await explained(stage, pilot, sessions.finished())
        assert finding.startswith("no finding above its threshold; unknown: ")
        assert command.startswith("→ jaxprof run ")
        await pilot.press("m", "a")
        await until(pilot, lambda: isinstance(stage.app.screen, ExplanationDialog))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(stage.app.screen, ResultsScreen))

        finding, command = await explained(stage, pilot, sessions.troubled())
        assert finding.split()[:4] == ["folded_constants", "[red]constants", "were", "folded[/red]"]
        assert command.startswith("→ jaxprof run --from last:")
        assert "a: what to do" not in screen_text(stage.app)


async def explained(stage: Stage, pilot: Pilot[Any], tape: Tape) -> list[str]:
    """The two lines at the head of Results."""
    await shown(stage, pilot, tape)
    await until(pilot, lambda: "a: fix" in screen_text(stage.app))
    return [line.strip() for line in screen_text(stage.app).splitlines()[1:3]]


async def test_nothing_is_said_first_while_the_session_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JaxprofApp, "session_grows", property(lambda app: True))
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        screen = await shown(stage, pilot, sessions.troubled())
        assert not screen.query_one(ExplanationHead).display
        assert screen_text(stage.app).splitlines()[1].startswith("╭─ Results")


async def test_a_wide_terminal_has_rates_scales_and_orders() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        await shown(stage, pilot, sessions.finished())
        row = row_of(stage, "jit")
        for what in ("11.0 µs", "568 µs", "12.6 GB/s"):
            assert what in row

        await shown(stage, pilot, sessions.finished())
        assert "one scale for all, linear: 0 to " in screen_text(stage.app)
        for scale in ("logarithmic", "linear"):
            await pilot.press("m", "Y")
            await until(pilot, lambda scale=scale: f"one scale for all, {scale}: " in screen_text(stage.app))

        screen = await shown(stage, pilot, sessions.finished())
        rows = screen.query_one(ResultList)

        def order() -> list[object]:
            return [key for key in rows.keys if isinstance(key, str)]

        assert order() == ["r1", "r2", "r3"]
        await pilot.press("s")
        assert order() == ["r3", "r2", "r1"]
        assert "by median" in screen_text(stage.app)
        await pilot.press("m", "S")
        assert order() == ["r1", "r2", "r3"]
        await pilot.press("m", "S", "s")
        assert order() == ["r3", "r2", "r1"], "by speed-up; the baseline has none and comes last"


async def test_a_sweep_has_a_row_of_its_own_with_plots_and_the_crossover_in_words() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        await shown(stage, pilot, sessions.sweep())
        text = screen_text(stage.app)
        assert "selu over n from 1 k to 1 M" in text
        assert "jit cpu:0 is faster from n ≈" in text
        assert "time of a call over n, log-log" in text
        assert "speed-up over n, log-log" in text
        await pilot.press("enter")
        await until(pilot, lambda: "3.16 k" in screen_text(stage.app))
        await pilot.press("escape")
        await until(pilot, lambda: "14 runs" in screen_text(stage.app))
        assert stage.app.current_mode == "results"


async def test_failed_runs_say_why_in_their_row_and_wrong_results_are_called_wrong() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 30)) as pilot:
        screen = await shown(stage, pilot, sessions.troubled())
        text = screen_text(stage.app)
        assert "✗ jit TypeError: add got" in " ".join(text.split())
        assert "XLA aborted" in text
        assert "✗ wrong" in text
        assert "\x1b" not in text
        screen.query_one(ResultList).move_to_key("r2")
        await until(pilot, lambda: "call it outside of jaxprof" in screen_text(stage.app))


async def test_nothing_is_drawn_again_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        tape = sessions.finished()
        screen = await shown(stage, pilot, tape)
        rows = screen.query_one(ResultList)
        drawn: list[object] = []
        monkeypatch.setattr(rows, "refresh_row", drawn.append)
        for widget in screen.query("*"):
            monkeypatch.setattr(widget, "refresh", lambda *regions, **rest: drawn.append((regions, rest)))
        screen.show_session(frozenset({"r1", "r2", "r3"}), replaced=False)
        assert drawn == []
        told = len(tape.events)
        tape.turns("r3", tape.noise(0.5e-3, 20), 4, launch=3)
        stage.app.session.extend(tape.events[told:])
        screen.show_session(frozenset({"r3"}), replaced=False)
        assert drawn[0] == rows.keys.index("r3")


async def opened(stage: Stage, pilot: Pilot[Any], tape: Tape, run: str) -> RunDetailScreen:
    screen = await shown(stage, pilot, tape)
    screen.query_one(ResultList).move_to_key(run)
    await pilot.pause()
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(stage.app.screen, RunDetailScreen))
    await pilot.pause()
    detail = stage.app.screen
    assert isinstance(detail, RunDetailScreen)
    return detail


async def test_a_failed_run_in_full_has_its_traceback_and_leaves_with_its_session() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        detail = await opened(stage, pilot, sessions.troubled(), "r2")
        text = screen_text(stage.app)
        assert 'File "selu.py", line 12' in text
        assert not detail.query_one("#distribution").display
        await pilot.press("n")
        await until(pilot, lambda: "XLA aborted" in screen_text(stage.app))
        await pilot.press("N", "N")
        await until(pilot, lambda: detail.run == "r1")

        stage.app.set_session(Tape().session(), None)
        await until(pilot, lambda: isinstance(stage.app.screen, ResultsScreen))
        await until(pilot, lambda: detail not in stage.app.session_screens)
