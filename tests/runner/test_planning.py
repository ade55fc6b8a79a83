from __future__ import annotations

from dataclasses import replace

import pytest

from jaxprof.errors import UsageError
from jaxprof.runner import PlanOptions, plan_runs, read_sweep
from jaxprof.workloads import built_in
from jaxprof.workloads.model import workload_info

SELU = workload_info(built_in("selu"), sources=False)


def test_the_baseline_comes_first_and_the_others_point_to_it() -> None:
    plans = plan_runs([SELU])
    assert [plan.spec.variant for plan in plans] == ["numpy", "jax", "jit"]
    assert plans[0].baseline is None
    assert all(plan.baseline is plans[0] for plan in plans[1:])
    assert plans[0].spec.parameters == {"n": 1_000_000}


def test_chosen_variants_bring_the_baseline_along() -> None:
    assert [plan.spec.variant for plan in plan_runs([SELU], PlanOptions(variants=["jit"]))] == ["numpy", "jit"]


def test_numpy_runs_on_the_host_once_for_all_devices() -> None:
    plans = plan_runs([SELU], PlanOptions(devices=["cpu:0", "cuda:0", "cpu:0"]))
    assert [(plan.spec.variant, plan.spec.device) for plan in plans] == [
        ("numpy", "cpu:0"),
        ("jax", "cpu:0"),
        ("jax", "cuda:0"),
        ("jit", "cpu:0"),
        ("jit", "cuda:0"),
    ]


def test_settings_and_presets() -> None:
    assert plan_runs([SELU], PlanOptions(settings={"n": "4e3"}))[0].spec.parameters == {"n": 4000}
    for choice in (
        PlanOptions(settings={"n": "many"}),
        PlanOptions(settings={"m": "4"}),
        PlanOptions(settings={"n": "0"}),
        PlanOptions(settings={"n": "nan"}),
        PlanOptions(settings={"n": "inf"}),
        PlanOptions(preset="quickly"),
        PlanOptions(variants=["jitt"]),
        PlanOptions(budget_seconds=0),
        PlanOptions(max_seconds=-1),
        PlanOptions(devices=[]),
    ):
        with pytest.raises(UsageError) as caught:
            plan_runs([SELU], choice)
        assert caught.value.hint


def test_a_setting_goes_to_the_workloads_that_know_it() -> None:
    other = replace(SELU, name="other", parameters=(), presets={"quick": {}})
    plans = plan_runs([SELU, other], PlanOptions(settings={"n": "5"}))
    assert plans[0].spec.parameters == {"n": 5}
    assert plans[-1].spec.parameters == {}


def test_sweeps() -> None:
    assert read_sweep("n=1e3..1e6:4", SELU.parameters).values == (1000, 10_000, 100_000, 1_000_000)
    assert len(read_sweep("n=1e3..1e7", SELU.parameters).values) == 9
    assert read_sweep("n=400,100,200,100", SELU.parameters).values == (100, 200, 400)
    assert read_sweep("n=1..3:9", SELU.parameters).values == (1, 2, 3)
    plans = plan_runs([SELU], PlanOptions(sweep="n=10,20", variants=["jit"]))
    assert [(plan.spec.variant, plan.spec.parameters["n"]) for plan in plans] == [
        ("numpy", 10),
        ("jit", 10),
        ("numpy", 20),
        ("jit", 20),
    ]
    assert plans[3].baseline is plans[2]


@pytest.mark.parametrize(
    "text", ["", "n", "n=", "m=1..2", "n=2..1", "n=0..5", "n=1..9:1", "n=1..9:x", "n=1..9:999", "n=a..b", "n=1,,2"]
)
def test_a_sweep_that_cannot_be_read_says_how_one_looks(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_sweep(text, SELU.parameters)
    assert caught.value.hint
