"""The tour: every screen has its question, the keys are those of the table, and a page of 80×24 holds it whole."""

from __future__ import annotations

from pathlib import Path

from jaxprof.tui.help import STOPS, HelpScreen, tour
from jaxprof.tui.home.own_code import TOUR, OwnCodeList, own_programs
from jaxprof.tui.profiler import PLACES
from tui.fakes import SMALL, Stage, walking

WIDTH = 70


def test_every_screen_has_its_question_and_no_line_is_cut() -> None:
    assert [stop.place for stop in STOPS] == [place.name for place in PLACES]
    lines = str(tour(WIDTH, "kernels")).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert not [line for line in lines if "…" in line or "{" in line]
    assert [line[0] for line in lines if line[1:2].isdigit()] == list("   ▸  ")


async def test_who_has_nothing_is_offered_the_tour_with_which_the_help_begins(tmp_path: Path) -> None:
    stage = Stage()
    stage.app.folder = tmp_path
    async with walking(SMALL, stage) as walk:
        rows = walk.find(OwnCodeList)
        await walk.shows("Take the tour")
        await walk.press("end up")
        await walk.until(lambda: rows.current_row is not None and rows.current_row.title == "Take the tour")
        await walk.press("enter")
        await walk.on(HelpScreen)
        await walk.press("escape 2 ?")
        await walk.on(HelpScreen)
        await walk.shows("▸2 Summary", "1 Start", "search everything")  # the last line is in view
        await walk.press("]", "On this screen")
        await walk.press("[", "▸2 Summary")
    assert TOUR in [row.action for row in own_programs([], tmp_path)]
    (tmp_path / "train.py").write_text("import jax\n")
    assert TOUR not in [row.action for row in own_programs([], tmp_path)]
