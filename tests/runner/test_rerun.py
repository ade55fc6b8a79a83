"""Planning a kept session's runs once more."""

import os
from dataclasses import replace

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.base.errors import UsageError
from jaxprof.base.text import REDACTED
from jaxprof.runner.planning import PlannedRun, PlanOptions, plan_runs
from jaxprof.runner.requests import plan_event, request_for
from jaxprof.runner.rerun import list_starts, plan_again
from jaxprof.tui.results.screen import code_to_confirm
from runner.stage import SELU


def kept(*planned):
    ids = {one: f"r{number}" for number, one in enumerate(planned, start=1)}
    return fold(e.Header(session="4f2a"), [plan_event(run, one, ids) for one, run in ids.items()])


def spec_of(**fields):
    return e.RunSpec(**{"workload": "train.py:step", "variant": "jit", "how": "jit", "device": "cpu:0", **fields})


def run_of(**fields):
    return fold(e.Header(session="4f2a"), [e.RunPlanned(run="r1", spec=spec_of(**fields))])


def test_runs_of_a_built_in_workload_are_planned_as_they_were():
    first = plan_runs(SELU, PlanOptions(settings={"n": "500"}))
    again = plan_again(kept(*first))
    assert [(one.spec.workload, one.spec.variant, one.spec.parameters) for one in again] == [
        (one.spec.workload, one.spec.variant, one.spec.parameters) for one in first
    ]
    assert all(one.baseline is again[0] for one in again[1:])
    assert [one.spec.target for one in again] == ["selu"] * len(again)


@pytest.mark.parametrize("wanted", ["", "r2"])
def test_mutual_baselines_are_planned_once(wanted):
    """No writer makes them; a file can have them."""
    spec = spec_of(workload="selu", target="selu")
    session = fold(
        e.Header(session="4f2a"),
        [e.RunPlanned(run=f"r{number}", spec=replace(spec, baseline=f"r{3 - number}")) for number in (1, 2)],
    )
    assert len(plan_again(session, wanted)) == 2


def test_all_that_was_asked_for_is_asked_for_again():
    wishes = {"seed": 7, "capture": False, "keep_constants": True, "compilation_cache": True, "max_seconds": 9.0}
    (again,) = plan_again(run_of(workload="selu", target="selu", **wishes))
    assert {name: getattr(again.spec, name) for name in wishes} == wishes
    request = request_for("r1", again, "gpu:0")
    assert request.spec == replace(again.spec, device="gpu:0")


def test_a_users_function_is_found_from_any_folder(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    session = kept(PlannedRun(spec=spec_of(target="train.py:step", arguments=("f32[3]",))))
    monkeypatch.chdir("/")
    (again,) = plan_again(session, "r1")
    assert (again.spec.target, again.spec.arguments) == (f"{tmp_path}/train.py:step", ("f32[3]",))


def test_a_run_is_named_by_its_id_or_its_workload():
    session = kept(*plan_runs(SELU, PlanOptions()))
    for name in ("selu", ""):
        assert len(plan_again(session, name)) == len(session.runs)
    assert len(plan_again(session, "r2")) == 2, "with its baseline"
    with pytest.raises(UsageError, match="unknown run 'sleu'"):
        plan_again(session, "sleu")


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({}, "its session does not say where"),
        ({"target": "/gone/train.py:step"}, "there is no file /gone/train.py"),
        ({"how": "program", "workload": "train.py"}, "train.py is a program"),
        ({"how": "imported"}, "read from a profile"),
        ({"how": "compile"}, "compiled and not run"),
        ({"side": "B"}, "side B of a comparison"),
    ],
)
def test_what_cannot_be_run_again_says_why(fields, what):
    with pytest.raises(UsageError) as refused:
        plan_again(run_of(**fields))
    assert what in refused.value.what
    assert refused.value.hint


def test_what_can_be_run_is_when_the_rest_cannot(tmp_path):
    session = run_of(how="program", workload="train.py")
    session.apply(e.RunPlanned(run="r2", spec=spec_of(workload="selu")))
    assert [one.spec.workload for one in plan_again(session)] == ["selu"]


@pytest.mark.parametrize(
    ("how", "argv", "again"),
    [
        ("script", ("train.py", "--size", "7"), ("train.py", "--size", "7")),
        ("cell", ("ipykernel_launcher.py", "-f", "kernel.json"), ()),  # of a notebook: nothing to its functions
    ],
)
def test_a_recorded_function_gets_the_programs_arguments(tmp_path, how, argv, again):
    (tmp_path / "train.py").write_text("")
    session = run_of(workload="train.py", variant="program", how="program", device="host")
    session.apply(e.ProgramStarted(run="r1", argv=list(argv), how=how))
    session.apply(e.RunPlanned(run="r2", spec=spec_of(target=f"{tmp_path}/train.py:step")))
    (planned,) = plan_again(session, "r2")
    assert planned.spec.argv == again
    (later,) = plan_again(kept(planned), "r1")  # the session of that run has no program, and says so itself
    assert later.spec.argv == again
    assert request_for("r1", later, "cpu:0").spec.argv == again


def test_a_secret_that_was_not_kept_is_passed_to_nobody(tmp_path):
    (tmp_path / "train.py").write_text("")
    argv = ("train.py", "--token", REDACTED)
    with pytest.raises(UsageError, match="which the session does not hold"):
        plan_again(run_of(target=f"{tmp_path}/train.py:step", argv=argv), "r1")
    (again,) = plan_again(run_of(workload="selu", target="selu", argv=argv), "r1")
    assert again.spec.target == "selu"


def test_the_baseline_of_a_run_is_said_too():
    theirs = spec_of(workload="own.py:f", variant="numpy", how="numpy", target="own.py:f")
    ours = spec_of(workload="selu", target="selu", baseline="r1")
    planned = [e.RunPlanned(run="r1", spec=theirs), e.RunPlanned(run="r2", spec=ours)]
    session = fold(e.Header(session="4f2a"), planned)
    assert list_starts(session, session.runs["r2"]) == [f"own.py:f, in {os.getcwd()}"]
    copied = fold(e.Header(session="4f2a", host="another"), planned)
    copied.content = "0" * 64  # it was read from a file
    (line,) = list_starts(copied, copied.runs["r2"])
    assert line.endswith(", not recorded on this machine (it names another)")
    assert len(list_starts(session, session.runs["r1"])) == 1


def test_what_a_dialog_cannot_show_whole_is_not_asked_for():
    short, long = (run_of(target="train.py:step", arguments=("f32[2]",) * count) for count in (1, 500))
    assert "train.py:step" in code_to_confirm(short, short.runs["r1"], None)
    with pytest.raises(UsageError, match="too long"):
        code_to_confirm(long, long.runs["r1"], None)
