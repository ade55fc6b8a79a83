"""The mouse: rows, titles and tabs are clicked."""

from __future__ import annotations

from jaxprof.tui.hlo.kernels import KernelTable
from jaxprof.tui.home.workloads import WorkloadList
from jaxprof.tui.kit.screen_bars import StageTabs
from tui import profiles
from tui.fakes import Stage, screen_text, until

SIZE = (120, 40)


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
