"""The palette finds actions by name or key, and what sessions hold; a choice goes there."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from folding import written
from jaxprof.tui.hlo.kernels import KernelTable
from jaxprof.tui.hlo.screen import HloScreen
from jaxprof.tui.kit.explanation import ExplanationDialog
from jaxprof.tui.palette import PLACEHOLDER, Found, SearchProvider, findings, match, of_session, settings
from jaxprof.tui.program.ledger import LedgerList
from jaxprof.tui.program.screen import ProgramScreen
from tui import recorded
from tui.fakes import Stage, screen_text, until
from tui.hlo_texts import program_session

SIZE = (120, 40)


@pytest.mark.parametrize(
    ("query", "better", "worse"),
    [
        ("sort", "Sort", "Resort to it"),
        ("fusion", "fusion.3", "loop_multiply_fusion"),
        ("train 88", "train.py:88", "train.py:8"),
        ("hlo", "HLO", "Text/lists"),
    ],
)
def test_the_better_match_comes_first(query: str, better: str, worse: str) -> None:
    assert match(query, better) > match(query, worse)


def test_all_words_have_to_be_there() -> None:
    assert match("train step", "train_step") > 0
    assert match("train stop", "train_step") == 0
    assert match("", "anything") == 0
    assert match("  ", "anything") == 0


async def open_and_type(stage: Stage, pilot: object, words: str) -> None:
    await pilot.press("ctrl+p")  # type: ignore[attr-defined]
    await until(pilot, lambda: PLACEHOLDER in screen_text(stage.app))  # type: ignore[arg-type]
    stage.app.screen.query_one(Input).value = words


async def test_a_kernel_is_found_and_gone_to() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        stage.app.set_session(program_session(), None)
        await open_and_type(stage, pilot, "tanh fus")
        await until(pilot, lambda: "kernel    tanh_fusion" in screen_text(stage.app))
        await pilot.press("enter", "enter")
        await until(pilot, lambda: isinstance(stage.app.screen, HloScreen) and stage.app.screen.whole)
        table = stage.app.screen.query_one(KernelTable)
        await until(pilot, lambda: table.ranked is not None and table.ranked.kernel.name == "tanh_fusion")


async def test_functions_lines_and_findings_lead_to_their_rows() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        stage.app.set_session(recorded.finished().session(), None)
        found = list(of_session(stage.app))
        functions = [one for one in found if one.kind == "function"]
        lines = [one for one in found if one.kind == "line"]
        assert {one.name for one in functions} >= {"train_step"}
        assert lines
        next(one for one in functions if one.name == "train_step").go()
        await until(pilot, lambda: isinstance(stage.app.screen, ProgramScreen) and stage.app.screen.whole)
        ledger = stage.app.screen.query_one(LedgerList)
        await until(pilot, lambda: ledger.hidden > 0 and ledger.current_row is not None)
        assert "train_step" in screen_text(stage.app)
        await pilot.press("escape")
        await until(pilot, lambda: ledger.hidden == 0, "one step back: the filter is cleared")
        lines[0].go()
        await until(pilot, lambda: stage.app.focused is not None and stage.app.focused.id == "lines")

        stage.app.set_session(recorded.finished().session(), None)
        found = list(findings(stage.app, stage.app.session))
        assert found
        found[0].go()
        await until(pilot, lambda: isinstance(stage.app.screen, ExplanationDialog))
        await until(pilot, lambda: found[0].name in screen_text(stage.app))


async def test_a_kept_session_is_found_and_opened(tmp_path: Path) -> None:
    stage = Stage()
    stage.app.library_folder = tmp_path
    tape = recorded.finished()
    written(tmp_path / "a-night-run.jaxprof", tape.events, tape.header)
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await open_and_type(stage, pilot, "night")
        await until(pilot, lambda: "session   a-night-run" in screen_text(stage.app))
        await pilot.press("enter", "enter")
        await until(pilot, lambda: stage.app.session_path == tmp_path / "a-night-run.jaxprof")


async def test_actions_and_settings_are_found_with_their_keys() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "Quit" in screen_text(stage.app))
        assert {"Theme", "Preset", "Devices"} <= {found.name for found in settings(stage.app)}

        provider = SearchProvider(stage.app.screen)
        kernels = [Found("kernel", f"fusion.{number}", "", stage.app.bell) for number in range(99)]
        provider._found = [*kernels, Found("function", "my_fusion", "", stage.app.bell)]
        texts = [hit.text async for hit in provider.search("fusion")]
        assert "function my_fusion" in texts
        assert len(texts) == 13

        await open_and_type(stage, pilot, "kept sessions")
        await until(pilot, lambda: "1         Start" in screen_text(stage.app))
        await pilot.press("enter", "enter")
        await until(pilot, lambda: stage.app.current_mode == "sessions")
