"""A comparison started on Home: from two marks to the Compare screen, and everything that comes between."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from jaxprof.engine.protocol.request import KeptLeaf
from jaxprof.errors import WorkerError
from jaxprof.events import RunSpec
from jaxprof.tui.home.screen import HomeScreen
from jaxprof.tui.home.workload_dialogs import CompileForDialog
from jaxprof.tui.results.compare_screen import CompareScreen
from tui.fakes import Stage, screen_text, until
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


def said(stage: Stage) -> str:
    return " ".join(f"{one.title} {one.message}" for one in stage.app._notifications)


async def ready(stage: Stage, pilot: Pilot[Any]) -> HomeScreen:
    screen = stage.app.screen
    assert isinstance(screen, HomeScreen)
    await until(pilot, lambda: screen.info is not None and stage.app.devices.asked, "workloads and devices")
    await pilot.pause()
    return screen


async def queued(stage: Stage, pilot: Pilot[Any]) -> list[Any]:
    """The planned sides, once the screens know of them."""
    await until(pilot, lambda: stage.app.live.session and len(stage.app.live.session.runs) == 2, "both sides")
    assert stage.scheduler is not None
    return stage.scheduler.planned


async def measured(stage: Stage, pilot: Pilot[Any], ends: Sequence[str] = ("ok", "ok")) -> None:
    """The sides end one after the other, A first."""
    assert stage.scheduler is not None
    tape = Tape()
    for number in range(1, len(ends) + 1):
        tape.plan(f"r{number}", "jit", baseline="r1" if number > 1 else "")
    for number, end in enumerate(ends, 1):
        told = len(tape.events)
        if end == "ok":
            tape.jit_run(f"r{number}", 1e-3 * number)
        else:
            tape.finish(f"r{number}", end)
        stage.scheduler.emit(*tape.events[told:])
    stage.scheduler.finish()
    await until(pilot, lambda: all(run.over for run in stage.app.live.session.runs.values()), "all are over")
    await until(pilot, lambda: not stage.app.live.busy)
    await pilot.pause()


@pytest.mark.process
async def test_two_marked_workloads_are_measured_as_sides_and_then_compared(inputs: Inputs) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        await ready(stage, pilot)
        await pilot.press("down", "space", "home", "space", "c")
        planned = await queued(stage, pilot)
        assert [(plan.spec.side, plan.spec.workload, plan.spec.variant, plan.spec.device) for plan in planned] == [
            ("A", "selu", "jit", "cuda:0"),
            ("B", "matmul", "jit", "cuda:0"),
        ]
        assert [spec.title for spec in planned[0].comparison.sides] == ["selu", "matmul"]
        folder = Path(planned[0].keep_output).parent
        assert folder.is_dir()
        assert Path(planned[1].keep_output).parent == folder
        await until(pilot, lambda: stage.app.current_mode == "run")
        await measured(stage, pilot)
        await until(
            pilot, lambda: "slower than A" in screen_text(stage.app) or "inconclusive" in screen_text(stage.app)
        )
        assert isinstance(stage.app.screen, CompareScreen)
        text = screen_text(stage.app)
        assert "A  selu" in text
        assert "B  matmul" in text
        await pilot.press("escape")
        await until(pilot, lambda: stage.app.screen.query("#results"), "Results lies below")
    assert not folder.parent.exists()


async def test_only_with_two_marks_the_key_compares(inputs: Inputs) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(160, 40), notifications=True) as pilot:
        await ready(stage, pilot)
        for marks in range(4):
            await until(pilot, lambda n=marks: ("c Compare  " in screen_text(stage.app)) == (n == 2), f"{marks} marks")
            assert ("2 marked · c compares" in screen_text(stage.app)) == (marks == 2)
            if marks != 2:
                await pilot.press("c")
                assert isinstance(stage.app.screen, HomeScreen)
            await pilot.press("m", "B")
            await until(pilot, lambda: isinstance(stage.app.screen, CompileForDialog))
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen))
            await pilot.press("space")
        assert not inputs.asked


@pytest.mark.process
async def test_inputs_that_do_not_fit_are_told_and_nothing_is_run(inputs: Inputs) -> None:
    inputs.of["selu"] = (9,)
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        await ready(stage, pilot)
        await pilot.press("space", "space", "c")
        await until(pilot, lambda: "A and B are not called with the same arguments" in said(stage))
        inputs.fails = "selu"
        await pilot.press("c")
        await until(pilot, lambda: "B, selu: step_inputs raised ValueError: no" in said(stage))
        assert isinstance(stage.app.screen, HomeScreen)
        assert stage.scheduler is None


async def test_options_that_a_comparison_cannot_have_are_told_at_once(inputs: Inputs) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        choices = (await ready(stage, pilot)).choices
        await pilot.press("space", "space")
        choices.of("selu").left_out = {"jit"}
        await pilot.press("c")
        assert "selu has no compiled variant" in said(stage)
        choices.of("selu").sweep = "n=1,2"
        await pilot.press("c")
        assert "selu has a sweep" in said(stage)
        choices.toggle_device("cpu:0")
        await pilot.press("c")
        assert "2 devices are chosen" in said(stage)
        assert "Comparing" not in said(stage)
        assert not inputs.asked


async def test_each_side_has_its_own_sizes_and_arguments(inputs: Inputs) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(stage, pilot)
        screen.choices.of("matmul").settings = {"n": "5"}
        screen.choices.of("selu").arguments = ("f32[8]",)
        await pilot.press("space", "space", "c")
        first, second = await queued(stage, pilot)
        assert [plan.spec.parameters["n"] for plan in (first, second)] == [5, 1_000_000]
        assert [plan.spec.arguments for plan in (first, second)] == [(), ("f32[8]",)]
        assert first.comparison.sides[0].title == "matmul, n=5"


async def test_ctrl_c_while_the_inputs_are_made_drops_it_and_a_second_key_does_not_double_it(inputs: Inputs) -> None:
    inputs.go.clear()
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        await ready(stage, pilot)
        await pilot.press("space", "space", "c")
        await until(pilot, lambda: len(inputs.asked) == 1)
        await pilot.press("c")
        assert "The inputs of both are being made" in said(stage)
        await pilot.press("ctrl+c")
        assert "The comparison is cancelled" in said(stage)
        inputs.go.set()
        await until(pilot, lambda: len(inputs.asked) == 2, "both were made")
        await pilot.press("c")
        await queued(stage, pilot)
        assert len(inputs.asked) == 4


@pytest.mark.parametrize("ends", [("cancelled", "ok"), ("ok", "failed")], ids=str)
async def test_a_side_that_did_not_end_well_leaves_nothing_to_compare(ends: tuple[str, ...], inputs: Inputs) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        await ready(stage, pilot)
        await pilot.press("space", "space", "c")
        await queued(stage, pilot)
        await until(pilot, lambda: stage.app.current_mode == "run")
        await measured(stage, pilot, ends)
        assert stage.app.current_mode == "run"
        assert "are compared" not in said(stage)
        await pilot.press("2", "c")
        await until(pilot, lambda: "there is nothing to compare" in said(stage))
        assert not isinstance(stage.app.screen, CompareScreen)
