"""How long runs will take: as the last time where they were measured here, else their budget at least, or unknown."""

from dataclasses import replace

import pytest

from jaxprof import events as e
from jaxprof.errors import UsageError
from jaxprof.runner.expected_time import (
    Basis,
    ExpectedTime,
    MeasuredGroup,
    expected_time,
    measured_groups,
    seconds_left,
)
from jaxprof.runner.planning import PlanOptions, plan_runs, read_sweep
from jaxprof.session import Run
from jaxprof.session.log import Library, LogWriter
from runner.stage import SELU

QUICK, PUBLISHED = {"n": 1000}, {"n": 3000}


def sides(parameters=QUICK, **fields):
    """matmul: NumPy and jit."""
    given = {"workload": "matmul", "device": "cpu:0", "launches": 3, "budget_seconds": 2.0, **fields}
    return [
        e.RunSpec(variant="numpy", how="numpy", parameters=parameters, **given),
        e.RunSpec(variant="jit", how="jit", parameters=parameters, **given),
    ]


def kept(folder, name, *groups, took, host="box", ok=True):
    """A session in which these groups were measured, one after the other."""
    writer = LogWriter(e.Header(session=name, host=host, wall_seconds=1.0), folder / f"{name}.jaxprof")
    now, number = 100.0, 0
    for specs in groups:
        first = f"r{number + 1}"
        for spec in specs:
            number += 1
            baseline = "" if f"r{number}" == first else first
            writer.append(e.RunPlanned(run=f"r{number}", spec=replace(spec, baseline=baseline), monotonic_seconds=now))
        now += took
        for at, spec in enumerate(specs):
            run = {"run": f"r{number - len(specs) + at + 1}", "status": "ok" if ok else "cancelled"}
            what = {"workload": spec.workload, "variant": spec.variant, "device": spec.device}
            writer.append(e.RunClosed(**run, **what, wall_seconds=took - at, monotonic_seconds=now))
    writer.close()


def test_after_one_run_it_is_what_that_took(tmp_path):
    kept(tmp_path, "one", sides(preset="quick", seed=7), took=60.0)
    known = measured_groups(Library(tmp_path).entries(), "box")
    assert expected_time(sides(), known) == ExpectedTime(60.0, Basis.LAST_TIME)
    assert expected_time(sides(), known).words == "≈ 60 s, as last time"
    assert expected_time(sides(PUBLISHED), known).basis == Basis.LEAST, "another size says nothing of this one"
    assert expected_time(sides(launches=1), known).seconds != 60.0


def test_only_whole_groups_of_this_machine_count_and_each_once(tmp_path):
    kept(tmp_path, "elsewhere", sides(), took=10.0, host="another")
    kept(tmp_path, "cancelled", sides(), took=20.0, ok=False)
    assert measured_groups(Library(tmp_path).entries(), "box") == []
    kept(tmp_path, "two", sides(), sides(PUBLISHED), took=30.0)
    found = measured_groups(Library(tmp_path).entries(), "box")
    assert [(group.specs[0].parameters, group.seconds) for group in found] == [(PUBLISHED, 30.0), (QUICK, 30.0)]


def test_what_was_never_measured_takes_at_least_its_budget():
    assert expected_time(sides(), ()).seconds > 2 * 2.0
    assert expected_time(sides(), ()).words.startswith("at least")
    assert expected_time(sides(max_seconds=0.5), ()).seconds < 2 * 2.0 + 3
    compiled = [replace(sides()[1], how="compile")]
    assert expected_time(compiled, ()) == ExpectedTime(None, Basis.UNKNOWN)
    assert expected_time(compiled, [MeasuredGroup(tuple(compiled), 4.0)]) == ExpectedTime(4.0, Basis.LAST_TIME)


def test_what_is_left_goes_down_and_what_the_turns_say_counts_when_it_is_more():
    """Of two groups: one began at 100 s and was expected to take 30 s, one waits and was expected to take 20."""
    first, second = sides()
    runs = [Run("r1", first), Run("r2", replace(second, baseline="r1")), Run("r3", first)]
    runs[0].expected_seconds, runs[2].expected_seconds = 30.0, 20.0
    for run in runs[:2]:
        run.status, run.started_seconds = "running", 100.0
    assert seconds_left(runs, 110.0) == 40.0
    runs[1].remaining_seconds, runs[1].progress_seconds = 50.0, 110.0
    assert seconds_left(runs, 115.0) == 65.0
    for run in runs[:2]:
        run.status = "ok"
    assert seconds_left(runs, 170.0) == 20.0
    runs[2].status = "cancelled"
    assert seconds_left(runs, 170.0) == 0.0


def test_numpy_runs_on_the_host_once_for_all_devices():
    """It is the baseline, which the others point to."""
    plans = plan_runs([SELU], PlanOptions(devices=["cpu:0", "cuda:0", "cpu:0"]))
    assert [plan.baseline for plan in plans] == [None, *[plans[0]] * 4]
    assert plans[0].spec.parameters == {"n": 1_000_000}
    planned = [f"{plan.spec.variant} {plan.spec.device}" for plan in plans]
    assert planned == ["numpy cpu:0", "jax cpu:0", "jax cuda:0", "jit cpu:0", "jit cuda:0"]


WRONG_SETTINGS = ({"n": "many"}, {"m": "4"}, {"n": "0"}, {"n": "nan"})
WRONG = ({"preset": "quickly"}, {"variants": ["jitt"]}, {"budget_seconds": 0}, {"max_seconds": -1}, {"devices": []})


@pytest.mark.parametrize("wrong", [*({"settings": settings} for settings in WRONG_SETTINGS), *WRONG])
def test_what_cannot_be_planned_is_refused_with_a_hint(wrong):
    assert plan_runs([SELU], PlanOptions(settings={"n": "4e3"}))[0].spec.parameters == {"n": 4000}
    with pytest.raises(UsageError) as caught:
        plan_runs([SELU], PlanOptions(**wrong))
    assert caught.value.hint


def test_a_setting_goes_to_the_workloads_that_know_it():
    other = replace(SELU, name="other", parameters=(), presets={"quick": {}})
    plans = plan_runs([SELU, other], PlanOptions(settings={"n": "5"}))
    assert plans[0].spec.parameters == {"n": 5}
    assert plans[-1].spec.parameters == {}


def test_sweeps():
    assert read_sweep("n=1e3..1e6:4", SELU.parameters).values == (1000, 10_000, 100_000, 1_000_000)
    assert len(read_sweep("n=1e3..1e7", SELU.parameters).values) == 9
    assert read_sweep("n=400,100,200,100", SELU.parameters).values == (100, 200, 400)
    assert read_sweep("n=1..3:9", SELU.parameters).values == (1, 2, 3)
    plans = plan_runs([SELU], PlanOptions(sweep="n=10,20", variants=["jit"]))
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
