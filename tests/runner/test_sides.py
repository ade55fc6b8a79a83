"""Sides of a comparison: what is decided of them before anything is measured, and as runs, with scripted engines on
real pipes, what their session says of them."""

import copy
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jaxprof import events as e
from jaxprof.analysis.runs.speedup import compare_times
from jaxprof.base.errors import UsageError, WorkerError
from jaxprof.engine.measure import kept_arrays
from jaxprof.engine.protocol.request import KeptLeaf
from jaxprof.events import SideSpec
from jaxprof.findings.compare.session_difference import session_difference
from jaxprof.report.runs import groups
from jaxprof.runner import sides, turns
from jaxprof.runner.interpreter import Interpreter
from jaxprof.runner.sides import SideOptions, plan_comparison, plan_sides, same_inputs, tree_note
from jaxprof.workloads import load_built_in
from jaxprof.workloads.model import workload_info
from runner.engines import PREAMBLE
from runner.stage import HERE, Stage, side

ENGINE = (
    PREAMBLE
    + """
import shutil
spec = request["spec"]
say("phase_started", phase="compile")
say("phase_ended", phase="compile", seconds=float(os.environ.get("COMPILES", 0.25)))
if os.environ.get("BROKEN") == spec["side"]:
    say("run_finished", status="failed", error="not today")
    control.readline()
    sys.exit()
say("turn_awaited", call_seconds=1e-3)
for line in control:
    turn = json.loads(line)
    if turn["request"] == "CancelRequest":
        say("run_finished", status="cancelled", error="cancelled")
        break
    if turn["request"] == "TurnsOverRequest":
        if request["keep_output"]:
            shutil.copy(os.environ.get("RESULT_OF_" + spec["side"][0], os.environ["RESULT"]), request["keep_output"])
        say("log_line", stream="stdout", text=json.dumps({"flags": os.environ.get("FLAGS"), "python": sys.executable}))
        say("run_finished", status="ok")
        break
    say("samples_taken", series="run", seconds=[float(os.environ.get("TAKES", 1e-3))] * 2, block=turn["block"])
control.readline()
"""
)


def results(folder, name, value):
    path = str(folder / f"{name}.npz")
    kept_arrays.keep(path, value)
    return path


class Sides(Stage):
    """Whose engines follow the script above."""

    def __init__(self, folder, monkeypatch):
        super().__init__(folder, monkeypatch, ENGINE)
        monkeypatch.setattr(turns, "BLOCK_SECONDS", 10.0)
        monkeypatch.setenv("RESULT", results(folder, "result", np.ones(3, np.float32)))

    def compare(self, *sides, **options):
        folder = self.folder / "results"
        folder.mkdir()
        return self.run(plan_sides(sides, SideOptions(**{"launches": 2, "folder": folder, **options})))


@pytest.fixture
def stage(tmp_path, monkeypatch):
    return Sides(tmp_path, monkeypatch)


def told(session, run):
    return json.loads(session.runs[run].log[0].text)


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A; B with a variable, an interpreter and times of its own; and C, in three launches."""
    folder = tmp_path_factory.mktemp("three")
    python = folder / "python"
    python.symlink_to(sys.executable)
    slower = {"FLAGS": "fast", "TAKES": "2e-3", "COMPILES": "0.5"}
    b = side("B", environment=slower, interpreter=Interpreter(str(python), "0.12.0"))
    with pytest.MonkeyPatch.context() as patch:
        yield Sides(folder, patch).compare(side("A"), b, side("C"), launches=3)


@pytest.mark.process
def test_each_side_has_its_own_environment_and_interpreter(three):
    assert [run.plan.side for run in three.runs.values()] == ["A", "B", "C"]
    assert [told(three, run)["flags"] for run in three.runs] == [None, "fast", None]
    assert [Path(run.python).name for run in three.runs.values()][1] == "python"
    assert told(three, "r2")["python"] == three.runs["r2"].python


@pytest.mark.process
def test_all_sides_are_one_family_in_whole_launches(three):
    times = compare_times(three, three.runs["r1"], three.runs["r2"])
    assert times.verdict == "slower"
    assert times.by_width is False
    assert times.family == 2, "B and C"
    assert [len(run.launches) for run in three.runs.values()] == [3, 3, 3]


@pytest.mark.process
@pytest.mark.parametrize(("run", "verdict"), [("r2", "slower"), ("r3", "same")])
def test_phases_of_a_process_are_compared_over_launches(three, run, verdict):
    (pair,) = session_difference(three, three, run_before="r1", run_after=run).runs
    assert [row.times.verdict for row in pair.phases if row.code == "compile"] == [verdict]


@pytest.mark.process
def test_sides_may_differ_in_size_and_precision(stage):
    b = side("B", settings={"n": "4000"}, precision="highest", environment={"TAKES": "5e-4"})
    session = stage.compare(side("A"), b)
    (pair,) = session_difference(session, session, run_before="r1", run_after="r2").runs
    assert next(row.times.verdict for row in pair.phases if row.code == "run") == "faster"
    (group,) = groups(session)
    assert [group.label(one.run) for one in group.runs] == ["A jit", "B jit"], "one table, whatever differs"


@pytest.mark.process
def test_launches_end_once_the_interval_is_narrow(stage):
    session = stage.compare(side("A"), side("B"), launches=None)
    assert [len(run.launches) for run in session.runs.values()] == [5, 5], "never before five"
    assert compare_times(session, session.runs["r1"], session.runs["r2"]).by_width


@pytest.mark.process
def test_results_of_another_dtype_are_refused_a_verdict(stage, monkeypatch):
    monkeypatch.setenv("RESULT_OF_B", results(stage.folder, "half", np.ones(3, np.float16)))
    session = stage.compare(side("A"), side("B", environment={"TAKES": "5e-4"}))
    times = compare_times(session, session.runs["r1"], session.runs["r2"])
    assert times.verdict == "inconclusive"
    assert "float32[3] and float16[3]" in times.reason
    assert [one.code for one in session.runs["r2"].warnings] == ["unlike_results"]


@pytest.mark.process
def test_other_results_are_said_and_leave_the_verdict_alone(stage, monkeypatch):
    monkeypatch.setenv("RESULT_OF_B", results(stage.folder, "off", np.full(3, 1.03, np.float32)))
    session = stage.compare(side("A"), side("B", environment={"TAKES": "5e-4"}))
    assert compare_times(session, session.runs["r1"], session.runs["r2"]).verdict == "faster"
    (warning,) = session.runs["r2"].warnings
    assert warning.code == "results_differ"
    assert "differs from A's by 3.0e-02" in warning.message


@pytest.mark.process
@pytest.mark.parametrize("broken", ["A", "B"])
def test_a_side_that_fails_ends_the_comparison_and_wins_nothing(stage, monkeypatch, broken):
    monkeypatch.setenv("BROKEN", broken)
    session = stage.compare(side("A"), side("B"), launches=5)
    assert {run.plan.side: run.status for run in session.runs.values()}[broken] == "failed"
    assert max(len(run.launches) for run in session.runs.values()) == 1, "there is nothing left to compare"
    times = compare_times(session, session.runs["r1"], session.runs["r2"])
    assert times.verdict == "inconclusive"
    assert "failed" in times.reason


@pytest.mark.process
def test_other_devices_and_one_sided_throttling_are_refused(three):
    session = copy.deepcopy(three)
    first, other = session.runs["r1"], session.runs["r2"]
    session.apply(e.DeviceReading(run="r2", device="cpu:0", throttle_reasons=["heat"]))
    assert "throttled its clocks during its run only" in compare_times(session, first, other).reason
    for run, kind in ((first, "H100"), (other, "H200")):
        devices = [{"id": "cpu:0", "platform": "cpu", "kind": kind}]
        run.environment = e.EnvironmentRead(python="3.11", numpy="2", devices=devices)
    assert compare_times(session, first, other).reason == "another kind of device (H100, H200)"


@pytest.fixture
def inputs(monkeypatch):
    """What the children would say of the inputs of each side, by its label."""
    made = {}

    def describe(interpreter, spec, environment):
        assert spec.device == "cpu:0", "inputs are made on the host"
        found = made[spec.side]
        if isinstance(found, WorkerError):
            raise found
        return found

    monkeypatch.setattr(sides, "describe_inputs", describe)
    return made


def leaf(shape=(8,), digest="d"):
    return KeptLeaf(path="x", dtype="float32", shape=shape, digest=digest)


def test_only_sides_with_equal_inputs_keep_results(inputs, tmp_path):
    inputs.update(A=[leaf()], B=[leaf()])
    options = SideOptions(folder=tmp_path, device="cuda:0", margin=0.03)
    planned = plan_comparison([side("A"), side("B")], options, ["a note"])
    comparison = planned[0].comparison
    assert comparison.inputs == ["float32[8]"]
    assert comparison.same_inputs is True
    assert comparison.margin == 0.03
    assert (comparison.notes, comparison.group_seconds) == (["a note"], 60.0)
    assert [bool(plan.keep_output) for plan in planned] == [True] * 2
    assert {plan.spec.device for plan in planned} == {"cuda:0"}
    assert [plan.spec.device for plan in plan_sides([side("A", variant="numpy"), side("B")], options)] == [
        "cpu:0",
        "cuda:0",
    ]
    assert [plan.baseline for plan in planned] == [None, planned[0]]
    inputs["B"] = [leaf(digest="other numbers")]
    planned = plan_comparison([side("A"), side("B")], options)
    assert not planned[0].comparison.same_inputs
    assert [plan.keep_output for plan in planned] == [""] * 2


def test_sides_with_other_arguments_are_refused(inputs):
    inputs.update(A=[leaf()], B=[leaf((9,))])
    with pytest.raises(UsageError, match="A and B have different arguments"):
        same_inputs(plan_sides([side("A"), side("B")], SideOptions()))
    inputs["B"] = WorkerError("it ended", "why")
    with pytest.raises(UsageError, match="B, selu: it ended") as caught:
        same_inputs(plan_sides([side("A"), side("B")], SideOptions()))
    assert caught.value.hint == "why"


def test_that_environments_differ_is_noted(inputs):
    inputs.update(A=[leaf()], B=[leaf()])
    other = replace(HERE, jax="0.9.0")
    (first, *_) = plan_comparison([side("A"), side("B", interpreter=replace(HERE, jax=""))], SideOptions())
    assert first.comparison.notes == ["environments differ: A has jax 0.10.2, B has no jax"]
    (first, *_) = plan_comparison([side("A"), side("B", interpreter=other)], SideOptions())
    assert first.comparison.notes == ["environments differ: A has jax 0.10.2, B has jax 0.9.0"]


@pytest.mark.parametrize(
    ("dirty", "state"), [(True, "with uncommitted changes"), (False, "which has no uncommitted changes")]
)
def test_of_a_revision_it_is_said_what_it_stands_beside(dirty, state):
    then = SideSpec(label="A", title="a", revision="HEAD~1", commit="abc1234", repository="/r")
    now = SideSpec(label="B", title="b", commit="def5678", repository="/r", dirty=dirty)
    assert tree_note([then, now]) == f"A is HEAD~1 (abc1234), B the present tree of /r, {state}"
    assert tree_note([now, now]) == ""


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ({}, (10, 15.0, 60.0, 0.02)),
        ({"launches": 4}, (4, 6.0, None, None)),
        ({"launches": 4, "max_seconds": 7.0}, (4, 6.0, 7.0, None)),
        ({"half_width": None, "max_seconds": 7.0}, (10, 15.0, 7.0, None)),
    ],
)
def test_how_long_a_side_is_measured(options, limits):
    (planned,) = plan_sides([side("A")], SideOptions(**options))
    spec = planned.spec
    assert (spec.launches, spec.budget_seconds, spec.max_seconds, spec.until_half_width) == limits


def test_a_side_may_have_its_own_variant_and_variables():
    then = {"stays_at": "now.py", "variables": {"PYTHONPATH": "/then", "A": "1"}}
    own = [
        side("A", variant="numpy", environment={"A": "2"}, precision="high", **then),
        side("B", arguments=("f32[8]",)),
    ]
    first, second = plan_sides(own, SideOptions(arguments=("f32[4]",)))
    assert [(plan.spec.side, plan.spec.variant, plan.spec.how, plan.spec.arguments) for plan in (first, second)] == [
        ("A", "numpy", "numpy", ("f32[4]",)),
        ("B", "jit", "jit", ("f32[8]",)),
    ]
    assert first.environment == {"PYTHONPATH": "/then", "A": "2", "JAX_DEFAULT_MATMUL_PRECISION": "high"}
    assert (first.stays_at, second.environment) == ("now.py", {})
    with pytest.raises(UsageError, match="no variant"):
        plan_sides([side("A", variant="nunpy"), side("B")], SideOptions())


def test_jit_means_the_first_compiled_variant():
    info = workload_info(load_built_in("matmul"), sources=False)
    renamed = tuple(
        replace(each, name=f"compiled-{number}") if each.how == "jit" else each
        for number, each in enumerate(info.variants)
    )
    first = next(each.name for each in renamed if each.how == "jit")
    (planned, *_) = plan_sides([side("A", workload=replace(info, variants=renamed))], SideOptions())
    assert planned.spec.variant == first
    with pytest.raises(UsageError, match="has no variant jit-2") as caught:
        plan_sides([side("A", workload=replace(info, variants=renamed))], SideOptions(variant="jit-2"))
    assert first in caught.value.hint
