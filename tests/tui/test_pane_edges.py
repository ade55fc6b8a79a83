"""The mouse: edges between panes are dragged, rows, titles and tabs clicked."""

from __future__ import annotations

from textual.pilot import Pilot

from jaxprof.tui.hlo.kernels import KernelTable
from jaxprof.tui.home.workloads import WorkloadList
from jaxprof.tui.kit.screen import LEAST_COLUMNS
from jaxprof.tui.kit.screen_bars import StageTabs
from tui import profiles
from tui.fakes import Stage, screen_text, until

SIZE = (120, 40)


async def drag(pilot: Pilot[None], start: tuple[int, int], end: tuple[int, int]) -> None:
    """From a place of the screen to another, as a terminal tells it: down, some moves, up."""
    await pilot.mouse_down(offset=start)
    await pilot.hover(offset=((start[0] + end[0]) // 2, (start[1] + end[1]) // 2))
    await pilot.hover(offset=end)
    await pilot.mouse_up(offset=end)
    await pilot.pause()


async def test_the_edge_between_two_panes_is_dragged_and_given_back_and_nothing_else() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        before = screen_text(stage.app)
        for start in ((0, 20), (119, 20), (60, 20), (5, 0)):
            await drag(pilot, start, (70, 25))
        assert stage.app.mouse_captured is None
        assert stage.app.screen.query_one("#home-left").region.width == before.splitlines()[10].index("││") + 1

        left, right = (stage.app.screen.query_one(name) for name in ("#home-left", "#detail-box"))
        usual = left.region.width
        assert right.region.x == usual
        for start in (usual, usual - 1):  # both borders are the edge
            await drag(pilot, (start, 20), (70, 20))
            await until(pilot, lambda: left.region.width == 70)
            assert (right.region.x, right.region.right) == (70, 120)
            await pilot.click(offset=(70, 20), times=2)
            await until(pilot, lambda: left.region.width == usual)
        await drag(pilot, (usual, 20), (119, 20))
        await until(pilot, lambda: right.region.width == LEAST_COLUMNS)
        await pilot.resize_terminal(100, 40)
        await until(pilot, lambda: left.region.width < 70, "another size of the terminal has the usual panes")


async def test_a_row_a_title_and_a_tab_are_clicked() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        rows = stage.app.screen.query_one(WorkloadList)
        await until(
            pilot, lambda: "unset CUDA_VISIBLE_DEVICES" in screen_text(stage.app), "the devices have their room"
        )
        await pilot.click(rows, offset=(5, 1))
        await until(pilot, lambda: rows.cursor == 1 or stage.app.focused is rows)
        stage.app.set_session(profiles.captured().session(), None)
        await pilot.press("4")
        await until(pilot, lambda: "loop_fusion" in screen_text(stage.app))
        table = stage.app.screen.query_one(KernelTable)
        title = str(table.draw_header(table.scrollable_content_region.width)).index("kernel")
        for wanted in (("name", False), ("name", True)):
            await pilot.click(table, offset=(title + 1, 0))
            await until(pilot, lambda wanted=wanted: (table.rows.wanted.sort, table.rows.wanted.turned) == wanted)
        line = screen_text(stage.app).splitlines()[1:4]
        at = next(text.index("Roofline") for text in line if "Roofline" in text)
        await pilot.click(StageTabs, offset=(at, 0))
        await until(pilot, lambda: "[Roofline" in screen_text(stage.app))
