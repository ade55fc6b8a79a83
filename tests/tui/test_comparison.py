"""A comparison started on Start: from two marks to the verdict, and everything that comes between."""

import threading
from functools import partial
from pathlib import Path

import pytest

from jaxprof.base.errors import WorkerError
from jaxprof.engine.protocol.request import KeptLeaf
from jaxprof.tui.home.start_list import StartList
from jaxprof.tui.kit.dialogs import ReportDialog
from tui.fakes import SMALL, walking
from tui.session_tapes import Tape

pytestmark = pytest.mark.usefixtures("catalogue", "shelf")


class Inputs:
    """What the children say that the sides are called with."""

    def __init__(self):
        self.asked = []
        self.of_selu = (8,)
        self.go = threading.Event()
        self.go.set()

    def describe(self, interpreter, spec, variables):
        self.asked.append(spec)
        assert self.go.wait(20), "the test never let the inputs be made"
        shape = self.of_selu if spec.workload == "selu" else (8,)
        if shape is None:
            raise WorkerError("step_inputs raised ValueError: no", "It makes the inputs.")
        return [KeptLeaf("", "float32", shape, "same")]


@pytest.fixture
def inputs(monkeypatch):
    made = Inputs()
    monkeypatch.setattr("jaxprof.runner.sides.describe_inputs", made.describe)
    return made


async def ready(walk):
    screen = await walk.home()
    await walk.until(lambda: walk.app.devices.asked)
    await walk.pause()
    return screen


async def queued(walk):
    await walk.until(lambda: walk.app.live.session and len(walk.app.live.session.runs) == 2, "both sides")
    return walk.stage.scheduler.planned


async def measured(walk, second="ok"):
    """The sides end one after the other, A first, and B as it is given."""
    tape = Tape()
    tape.plan("r1", "jit")
    tape.plan("r2", "jit", baseline="r1")
    planned = len(tape.events)
    tape.jit_run("r1", 1e-3)
    if second == "ok":
        tape.jit_run("r2", 2e-3)
    else:
        tape.finish("r2", second)
    walk.stage.scheduler.emit(*tape.events[planned:])
    walk.stage.scheduler.finish()
    await walk.until(lambda: all(run.over for run in walk.app.live.session.runs.values()), "all are over")
    await walk.until(lambda: not walk.app.live.busy)
    await walk.pause()


@pytest.mark.process
async def test_two_marked_workloads_are_measured_and_compared(inputs, monkeypatch):
    left = []
    monkeypatch.setattr("atexit.register", left.append)
    async with walking(SMALL) as walk:
        await ready(walk)
        await walk.press("down space home space c")
        planned = await queued(walk)
        sides = [(plan.spec.side, plan.spec.workload, plan.spec.variant, plan.spec.device) for plan in planned]
        assert sides == [("A", "selu", "jit", "cuda:0"), ("B", "matmul", "jit", "cuda:0")]
        assert [spec.title for spec in planned[0].comparison.sides] == ["selu", "matmul"]
        (folder,) = {Path(plan.keep_output).parent for plan in planned}
        assert folder.is_dir()
        await walk.mode("results")
        await measured(walk)
        await walk.shows("B jit: 0.500× (0.497-0.504) as fast as A")
        await walk.press("c")
        await walk.on(ReportDialog)
        await walk.until(lambda: "slower than A" in walk.text or "inconclusive" in walk.text)
        await walk.shows("selu jit", "matmul jit")
        await walk.press("escape")
        await walk.until(lambda: walk.screen.query("#results"), "Results lies below")
    for close in left:
        close()
    assert not folder.exists()


async def test_key_compares_only_two_marks_with_fitting_options(inputs):
    async with walking((160, 40)) as walk:
        screen = await ready(walk)
        for marks in range(4):
            await walk.until(lambda n=marks: ("c Compare  " in walk.text) == (n in (1, 2)), f"{marks} marks")
            assert ("2 marked · c compares" in walk.text) == (marks == 2)
            if marks not in (1, 2):
                await walk.press("c")
                assert walk.screen is screen
            await walk.press("m B")
            await walk.on("FormDialog")
            await walk.press("escape space")
        walk.find(StartList).marked.clear()
        await walk.press("home space space")
        selu = partial(screen.choices.change, "selu")
        for change, words in (
            (lambda: selu(variants=("numpy", "jax")), "selu has no compiled variant"),
            (lambda: selu(sweep="n=1,2"), "selu has a sweep"),
            (lambda: screen.choices.toggle_device("cpu:0"), "2 devices are chosen"),
        ):
            change()
            await walk.press("c", words)
        assert not inputs.asked


@pytest.mark.process
async def test_inputs_that_do_not_fit_are_told_and_nothing_is_run(inputs):
    async with walking() as walk:
        screen = await ready(walk)
        await walk.press("space space")
        for shape, said in (((9,), "A and B have different arguments"), (None, "B, selu: step_inputs raised")):
            inputs.of_selu = shape
            await walk.press("c", said)
        assert walk.stage.scheduler is None

        inputs.of_selu = (8,)
        inputs.asked.clear()
        inputs.go.clear()
        await walk.press("c")
        await walk.until(lambda: len(inputs.asked) == 1)
        for key, said in (("c", "Preparing the inputs of both sides"), ("ctrl+c", "The comparison is cancelled")):
            await walk.press(key, said)
        inputs.go.set()
        await walk.until(lambda: len(inputs.asked) == 2, "both were made")
        screen.choices.change("matmul", settings={"n": "5"})
        screen.choices.change("selu", arguments=("f32[8]",))
        await walk.press("c")
        planned = await queued(walk)
        assert len(inputs.asked) == 4
        assert [plan.spec.parameters["n"] for plan in planned] == [5, 1_000_000]
        assert [plan.spec.arguments for plan in planned] == [(), ("f32[8]",)]
        assert planned[0].comparison.sides[0].title == "matmul, n=5"


async def test_a_side_that_did_not_end_well_leaves_nothing_to_compare(inputs):
    async with walking() as walk:
        await ready(walk)
        await walk.press("space space c")
        await queued(walk)
        await walk.mode("results")
        await measured(walk, "failed")
        assert walk.app.current_mode == "results"
        await walk.press("2 c", "there is nothing to compare")
        assert not isinstance(walk.screen, ReportDialog)
