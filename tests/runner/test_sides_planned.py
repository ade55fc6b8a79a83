"""What is decided of the sides of a comparison before anything is measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jaxprof.engine.protocol.request import KeptLeaf
from jaxprof.errors import UsageError, WorkerError
from jaxprof.events import SideSpec
from jaxprof.runner import Interpreter, sides
from jaxprof.runner.sides import (
    SideOptions,
    SideTree,
    duration_fields,
    environments_differ,
    plan_comparison,
    plan_sides,
    same_inputs,
    tree_note,
    variables,
)
from jaxprof.workloads import built_in
from jaxprof.workloads.model import workload_info
from runner.stage import HERE, side


@pytest.fixture
def inputs(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[KeptLeaf] | WorkerError]:
    """What the children would say of the inputs of each side, by its label."""
    made: dict[str, list[KeptLeaf] | WorkerError] = {}

    def describe(interpreter: Interpreter, spec: Any, environment: Any) -> list[KeptLeaf]:
        assert spec.device == "cpu:0", "inputs are made on the host"
        found = made[spec.side]
        if isinstance(found, WorkerError):
            raise found
        return found

    monkeypatch.setattr(sides, "describe_inputs", describe)
    return made


def leaf(shape: tuple[int, ...] = (8,), digest: str = "d") -> KeptLeaf:
    return KeptLeaf(path="x", dtype="float32", shape=shape, digest=digest)


def test_sides_with_the_same_numbers_keep_their_results_and_others_say_nothing_by_them(inputs, tmp_path):
    inputs.update(A=[leaf()], B=[leaf()])
    options = SideOptions(folder=tmp_path, device="cuda:0", margin=0.03)
    planned = plan_comparison([side("A"), side("B")], options, ["a note"])
    comparison = planned[0].comparison
    assert (comparison.inputs, comparison.same_inputs, comparison.margin) == (["float32[8]"], True, 0.03)
    assert (comparison.notes, comparison.group_seconds) == (["a note"], 60.0)
    assert [bool(plan.keep_output) for plan in planned] == [True] * 2
    assert [plan.baseline for plan in planned] == [None, planned[0]]
    inputs["B"] = [leaf(digest="other numbers")]
    planned = plan_comparison([side("A"), side("B")], options)
    assert not planned[0].comparison.same_inputs
    assert [plan.keep_output for plan in planned] == [""] * 2


def test_a_side_may_be_another_variant_than_the_others():
    planned = plan_sides([side("A", variant="numpy"), side("B")], SideOptions())
    assert [(plan.spec.side, plan.spec.variant, plan.spec.how) for plan in planned] == [
        ("A", "numpy", "numpy"),
        ("B", "jit", "jit"),
    ]
    with pytest.raises(UsageError, match="no variant"):
        plan_sides([side("A", variant="nunpy"), side("B")], SideOptions())


def test_sides_that_are_not_called_with_the_same_arguments_are_refused(inputs):
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
    assert environments_differ([side("A"), side("B")]) == {}
    assert environments_differ([side("A"), side("B", interpreter=replace(HERE, jax=""))]) == {
        "A": "jax 0.10.2",
        "B": "no jax",
    }
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


def test_how_long_a_side_is_measured():
    assert duration_fields(None, 60.0, None) == {
        "launches": 10, "budget_seconds": 15.0, "max_seconds": 60.0, "until_half_width": 0.02,
    }  # fmt: skip
    assert duration_fields(4, 60.0, None) == {
        "launches": 4, "budget_seconds": 6.0, "max_seconds": None, "until_half_width": None,
    }  # fmt: skip
    assert duration_fields(4, 60.0, 7.0)["max_seconds"] == duration_fields(None, 60.0, 7.0)["max_seconds"] == 7.0
    assert duration_fields(None, 60.0, None, None)["until_half_width"] is None


def test_argument_specs_of_a_side_replace_those_of_all():
    planned = plan_sides([side("A"), side("B", arguments=("f32[8]",))], SideOptions(arguments=("f32[4]",)))
    assert [plan.spec.arguments for plan in planned] == [("f32[4]",), ("f32[8]",)]


def test_what_a_side_says_goes_before_what_its_tree_needs():
    assert variables({"PYTHONPATH": "/then", "A": "1"}, {"A": "2"}, "") == {"PYTHONPATH": "/then", "A": "2"}
    assert variables({}, {}, "high") == {"JAX_DEFAULT_MATMUL_PRECISION": "high"}
    tree = SideTree(stays_at="now.py", variables={"PYTHONPATH": "/then"})
    (first, second) = plan_sides([side("A", tree=tree), side("B")], SideOptions())
    assert (first.environment, first.stays_at) == ({"PYTHONPATH": "/then"}, "now.py")
    assert second.environment == {}


def test_jit_stands_for_the_first_compiled_variant_where_none_is_called_so():
    info = workload_info(built_in("matmul"), sources=False)
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
