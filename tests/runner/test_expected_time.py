"""How long runs will take, and which runs the options of a user make."""

from dataclasses import replace

import pytest

from jaxprof import events as e
from jaxprof.base.errors import UsageError
from jaxprof.runner.planning import PlannedRun, PlanOptions, estimate_time, left_in_words, plan_runs, read_sweep
from jaxprof.session import Run
from runner.stage import SELU


def sides(**fields):
    given = {"workload": "matmul", "device": "cpu:0", "launches": 3, "budget_seconds": 2.0, **fields}
    return [e.RunSpec(variant="numpy", how="numpy", **given), e.RunSpec(variant="jit", how="jit", **given)]


def planned(**fields):
    return [PlannedRun(spec=spec) for spec in sides(**fields)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "about 13 s or more"),
        ({"launches": 1}, "about 8.5 s or more"),
        ({"max_seconds": 0.5}, "about 5.8 s or more"),
        ({"budget_seconds": 20.0}, "about 50 s or more"),
        ({"capture": False}, "about 12 s or more"),
        ({"side": "A"}, "time unknown"),
    ],
)
def test_expected_time_has_starts_budgets_and_side_series(options, words):
    assert estimate_time(planned(**options)) == words


def test_a_run_alone_takes_no_turns():
    alone = planned()[1:]
    assert estimate_time(alone) == "about 7.3 s or more"


def test_what_is_left_is_what_the_turns_say_once_nothing_waits():
    first, second = sides()
    runs = [Run("r1", first), Run("r2", replace(second, baseline="r1"))]
    assert left_in_words(runs, 110.0) == ""
    runs[0].started_seconds, runs[1].remaining_seconds, runs[1].progress_seconds = 100.0, 50.0, 110.0
    assert left_in_words([*runs, Run("r3", first)], 115.0) == "", "one waits that is not compared with them"
    assert left_in_words(runs, 115.0) == "≈ 45 s left"
    assert left_in_words(runs, 170.0) == ""
    runs[1].remaining_seconds = 300.0
    assert left_in_words(runs, 115.0) == "≈ 5 min left"


def test_numpy_runs_on_the_host_once_for_all_devices():
    """It is the baseline, which the others point to."""
    plans = plan_runs(SELU, PlanOptions(devices=["cpu:0", "cuda:0", "cpu:0"]))
    assert [plan.baseline for plan in plans] == [None, *[plans[0]] * 4]
    assert plans[0].spec.parameters == {"n": 1_000_000}
    planned = [f"{plan.spec.variant} {plan.spec.device}" for plan in plans]
    assert planned == ["numpy cpu:0", "jax cpu:0", "jax cuda:0", "jit cpu:0", "jit cuda:0"]


WRONG_SETTINGS = ({"n": "many"}, {"m": "4"}, {"n": "0"}, {"n": "nan"})
WRONG = ({"preset": "quickly"}, {"variants": ["jitt"]}, {"budget_seconds": 0}, {"max_seconds": -1}, {"devices": []})


@pytest.mark.parametrize("wrong", [*({"settings": settings} for settings in WRONG_SETTINGS), *WRONG])
def test_what_cannot_be_planned_is_refused_with_a_hint(wrong):
    assert plan_runs(SELU, PlanOptions(settings={"n": "4e3"}))[0].spec.parameters == {"n": 4000}
    with pytest.raises(UsageError) as caught:
        plan_runs(SELU, PlanOptions(**wrong))
    assert caught.value.hint


def test_sweeps():
    assert read_sweep("n=1e3..1e6:4", SELU.parameters) == ("n", [1000, 10_000, 100_000, 1_000_000])
    assert len(read_sweep("n=1e3..1e7", SELU.parameters)[1]) == 9
    assert read_sweep("n=400,100,200,100", SELU.parameters) == ("n", [100, 200, 400])
    assert read_sweep("n=1..3:9", SELU.parameters) == ("n", [1, 2, 3])
    plans = plan_runs(SELU, PlanOptions(sweep="n=10,20", variants=["jit"]))
    planned = [f"{plan.spec.variant} {plan.spec.parameters['n']}" for plan in plans]
    assert planned == ["numpy 10", "jit 10", "numpy 20", "jit 20"]
    assert plans[3].baseline is plans[2]


@pytest.mark.parametrize(
    "text", ["", "n", "n=", "m=1..2", "n=2..1", "n=0..5", "n=1..9:1", "n=1..9:x", "n=1..9:999", "n=a..b", "n=1,,2"]
)
def test_a_sweep_that_cannot_be_read_says_how_one_looks(text):
    with pytest.raises(UsageError) as caught:
        read_sweep(text, SELU.parameters)
    assert caught.value.hint
