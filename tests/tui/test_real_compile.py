"""A compile in a real engine, held open: phase and clock advance while the engine says nothing; then cancelled."""

import re
import sys
from pathlib import Path

import pytest

from held_compile import HELD_COMPILE
from jaxprof.events import RunSpec
from jaxprof.runner.interpreter import find_interpreter
from jaxprof.runner.planning import PlannedRun
from jaxprof.tui.shell.profiler import Profiler
from tui.fakes import StillDevices, screen_text, until


@pytest.mark.process
@pytest.mark.timeout(90)
async def test_a_long_compile_is_seen_to_go_on_and_can_be_cancelled(tmp_path):
    pytest.importorskip("jax")
    file = tmp_path / "program.py"
    file.write_text(HELD_COMPILE)
    named = {"target": f"{file}:held", "workload": "held", "device": "cpu:0", "preset": "quick"}
    spec = RunSpec(variant="jit", how="jit", arguments=("f32[64]",), **named)
    app = Profiler(interpreter=find_interpreter(Path(sys.executable)), devices=StillDevices)
    async with app.run_test(size=(80, 24)) as pilot:
        app.start_runs([PlannedRun(spec=spec)])

        def seconds():
            found = re.search(r"▶ jit +compile +(\d+\.\d) s", screen_text(app))
            return float(found[1]) if found else 0.0

        await until(pilot, lambda: seconds() > 0, "the compile is going on")
        seen, told = seconds(), app.session.last_seq
        await until(pilot, lambda: seconds() >= seen + 0.5, "the clock advances")
        assert app.session.last_seq == told, "the clock ran without an event from the worker"
        await pilot.press("C")
        await until(pilot, lambda: app.session.runs["r1"].status == "cancelled", "the run is over")
        await until(pilot, lambda: app.screen._clock is None and "cancelled" in screen_text(app), "it is told")
