"""A comparison started on Home: from two marks to the Compare screen, and everything that comes between."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jaxprof.engine.protocol.request import KeptLeaf
from jaxprof.errors import WorkerError
from jaxprof.events import RunSpec
from jaxprof.tui.home.screen import HomeScreen
from jaxprof.tui.home.workload_dialogs import CompileForDialog
from jaxprof.tui.results.compare_screen import CompareScreen
from tui.fakes import SMALL, Walk, walking
from tui.session_tapes import Tape

pytestmark = pytest.mark.usefixtures("catalogue", "shelf")


class Inputs:
    """What the children say that the sides are called with."""

    def __init__(self) -> None:
        self.asked: list[RunSpec] = []
        self.of: dict[str, tuple[int, ...]] = {}
        self.fails = ""
        self.go = threading.Event()
        self.go.set()

    def describe(self, interpreter: object, spec: RunSpec, variables: object) -> list[KeptLeaf]:
        self.asked.append(spec)
        assert self.go.wait(20), "the test never let the inputs be made"
        if self.fails == spec.workload:
            raise WorkerError("step_inputs raised ValueError: no", "It makes the inputs.")
        return [KeptLeaf("", "float32", self.of.get(spec.workload, (8,)), "same")]


@pytest.fixture
def inputs(monkeypatch: pytest.MonkeyPatch) -> Inputs:
    made = Inputs()
    monkeypatch.setattr("jaxprof.runner.sides.describe_inputs", made.describe)
    return made


async def ready(walk: Walk) -> HomeScreen:
    screen: HomeScreen = await walk.on(HomeScreen)
    await walk.until(lambda: screen.info is not None and walk.app.devices.asked, "workloads and devices")
    await walk.pause()
    return screen


async def queued(walk: Walk) -> list[Any]:
    """The planned sides, once the screens know of them."""
    await walk.until(lambda: walk.app.live.session and len(walk.app.live.session.runs) == 2, "both sides")
    assert walk.stage.scheduler is not None
    return walk.stage.scheduler.planned


async def measured(walk: Walk, ends: Sequence[str] = ("ok", "ok")) -> None:
    """The sides end one after the other, A first."""
    assert walk.stage.scheduler is not None
    tape = Tape()
    for number in range(1, len(ends) + 1):
        tape.plan(f"r{number}", "jit", baseline="r1" if number > 1 else "")
    for number, end in enumerate(ends, 1):
        told = len(tape.events)
        if end == "ok":
            tape.jit_run(f"r{number}", 1e-3 * number)
        else:
            tape.finish(f"r{number}", end)
        walk.stage.scheduler.emit(*tape.events[told:])
    walk.stage.scheduler.finish()
    await walk.until(lambda: all(run.over for run in walk.app.live.session.runs.values()), "all are over")
    await walk.until(lambda: not walk.app.live.busy)
    await walk.pause()


@pytest.mark.process
async def test_two_marked_workloads_are_measured_as_sides_and_then_compared(inputs: Inputs) -> None:
    async with walking(SMALL) as walk:
        await ready(walk)
        await walk.press("down space home space c")
        planned = await queued(walk)
        assert [(plan.spec.side, plan.spec.workload, plan.spec.variant, plan.spec.device) for plan in planned] == [
            ("A", "selu", "jit", "cuda:0"),
            ("B", "matmul", "jit", "cuda:0"),
        ]
        assert [spec.title for spec in planned[0].comparison.sides] == ["selu", "matmul"]
        folder = Path(planned[0].keep_output).parent
        assert folder.is_dir()
        assert Path(planned[1].keep_output).parent == folder
        await walk.mode("run")
        await measured(walk)
        await walk.on(CompareScreen)
        await walk.until(lambda: "slower than A" in walk.text or "inconclusive" in walk.text)
        await walk.shows("A  selu", "B  matmul")
        await walk.press("escape")
        await walk.until(lambda: walk.screen.query("#results"), "Results lies below")
    assert not folder.parent.exists()


async def test_only_with_two_marks_and_options_that_fit_the_key_compares(inputs: Inputs) -> None:
    async with walking((160, 40)) as walk:
        screen = await ready(walk)
        for marks in range(4):
            await walk.until(lambda n=marks: ("c Compare  " in walk.text) == (n == 2), f"{marks} marks")
            assert ("2 marked · c compares" in walk.text) == (marks == 2)
            if marks != 2:
                await walk.press("c")
                assert walk.screen is screen
            await walk.press("m B")
            await walk.on(CompileForDialog)
            await walk.press("escape space")
        selu = screen.choices.of("selu")
        while screen.choices.marked:
            await walk.press("m A")
        await walk.press("home space space")

        async def refused(words: str) -> None:
            await walk.press("c")
            assert words in walk.said

        selu.left_out = {"jit"}
        await refused("selu has no compiled variant")
        selu.sweep = "n=1,2"
        await refused("selu has a sweep")
        screen.choices.toggle_device("cpu:0")
        await refused("2 devices are chosen")
        assert "Comparing" not in walk.said
        assert not inputs.asked


@pytest.mark.process
async def test_inputs_that_do_not_fit_are_told_and_nothing_is_run(inputs: Inputs) -> None:
    inputs.of["selu"] = (9,)
    async with walking() as walk:
        screen = await ready(walk)
        await walk.press("space space c")
        await walk.until(lambda: "A and B have different arguments" in walk.said)
        inputs.fails = "selu"
        await walk.press("c")
        await walk.until(lambda: "B, selu: step_inputs raised ValueError: no" in walk.said)
        assert walk.screen is screen
        assert walk.stage.scheduler is None

        inputs.fails, inputs.of = "", {}
        inputs.asked.clear()
        inputs.go.clear()
        await walk.press("c")
        await walk.until(lambda: len(inputs.asked) == 1)
        await walk.press("c")
        assert "Preparing the inputs of both sides; ctrl+c" in walk.said
        await walk.press("ctrl+c")
        assert "The comparison is cancelled" in walk.said
        inputs.go.set()
        await walk.until(lambda: len(inputs.asked) == 2, "both were made")
        screen.choices.of("matmul").settings = {"n": "5"}
        screen.choices.of("selu").arguments = ("f32[8]",)
        await walk.press("c")
        first, second = await queued(walk)
        assert len(inputs.asked) == 4
        assert [plan.spec.parameters["n"] for plan in (first, second)] == [5, 1_000_000]
        assert [plan.spec.arguments for plan in (first, second)] == [(), ("f32[8]",)]
        assert first.comparison.sides[0].title == "matmul, n=5"


@pytest.mark.parametrize("ends", [("cancelled", "ok"), ("ok", "failed")], ids=str)
async def test_a_side_that_did_not_end_well_leaves_nothing_to_compare(ends: tuple[str, ...], inputs: Inputs) -> None:
    async with walking() as walk:
        await ready(walk)
        await walk.press("space space c")
        await queued(walk)
        await walk.mode("run")
        await measured(walk, ends)
        assert walk.app.current_mode == "run"
        assert "The comparison of" not in walk.said
        await walk.press("2 c")
        await walk.until(lambda: "there is nothing to compare" in walk.said)
        assert not isinstance(walk.screen, CompareScreen)
