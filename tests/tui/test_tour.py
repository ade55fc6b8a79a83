"""The tour: every screen has its question, the keys are those of the table, and a page of 80×24 holds it whole."""

from __future__ import annotations

from pathlib import Path

from jaxprof.tui.help import STOPS, HelpScreen, tour
from jaxprof.tui.home.own_code import TOUR, OwnCodeList, own_programs
from jaxprof.tui.profiler import PLACES
from tui.fakes import Stage, screen_text, until

WIDTH = 70


def test_every_screen_has_its_question_and_no_line_is_cut() -> None:
    assert [stop.place for stop in STOPS] == [place.name for place in PLACES]
    lines = str(tour(WIDTH, "kernels")).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert not [line for line in lines if "…" in line or "{" in line]
    assert [line[0] for line in lines if line[1:2].isdigit()] == list("   ▸  ")


async def test_help_begins_with_the_tour_whole() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.press("2", "question_mark")
        await until(pilot, lambda: isinstance(stage.app.screen, HelpScreen))
        await until(pilot, lambda: "▸2 Summary" in screen_text(stage.app))
        text = screen_text(stage.app)
        assert "1 Start" in text
        assert "search everything" in text, "the last line is in view"
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: "On this screen" in screen_text(stage.app))
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: "▸2 Summary" in screen_text(stage.app))


async def test_who_has_nothing_is_offered_the_tour(tmp_path: Path) -> None:
    stage = Stage()
    stage.app.folder = tmp_path
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        rows = stage.app.screen.query_one(OwnCodeList)
        await until(pilot, lambda: "Take the tour" in screen_text(stage.app))
        await pilot.press("end", "up")
        await until(pilot, lambda: rows.current_row is not None and rows.current_row.title == "Take the tour")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(stage.app.screen, HelpScreen))
    assert TOUR in [row.action for row in own_programs([], tmp_path)]
    (tmp_path / "train.py").write_text("import jax\n")
    assert TOUR not in [row.action for row in own_programs([], tmp_path)]
