"""History: the text of what was measured over time, for a workload or for all."""

import pytest

import kept_histories as kept
from tui.fakes import SMALL, walking

pytestmark = pytest.mark.usefixtures("catalogue", "one_moment")


async def test_the_runs_of_all_workloads_are_listed(shelf):
    for number, matmul in enumerate(kept.medians((0.010, 12), (0.0125, 10))):
        jax = "0.10.2" if number < 12 else "0.11.0"
        events = kept.run("r2", matmul, jax=jax, passed=number != 5, compile_seconds=(0.04, 0.05, 0.045))
        kept.keep(shelf, number, events)
    async with walking((120, 70)) as walk:
        await walk.home()
        walk.app.show_history()
        await walk.shows("History of all workloads", "0.11.0", "session-012")
        await walk.press("y")
        assert "matmul" in walk.app.clipboard
        await walk.press("escape")
        await walk.mode("home")


async def test_a_workload_of_home_that_was_never_measured(shelf):
    kept.keep(shelf, 0, kept.run("r1", 0.01, workload="hessian"))
    async with walking(SMALL) as walk:
        await walk.until(lambda: getattr(walk.screen, "info", None) is not None)
        await walk.press("m H", "measured workload")
