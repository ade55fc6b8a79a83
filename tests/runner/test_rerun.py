"""Planning a kept session's runs once more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.errors import UsageError
from jaxprof.runner.planning import PlannedRun, PlanOptions, plan_runs
from jaxprof.runner.requests import plan_event, run_request
from jaxprof.runner.rerun import plan_again, plan_all_again
from jaxprof.session import Session
from jaxprof.workloads import built_in
from jaxprof.workloads.model import workload_info


def kept(*planned: PlannedRun) -> Session:
    """The session that these runs leave behind."""
    ids = {one: f"r{number}" for number, one in enumerate(planned, start=1)}
    return fold(e.Header(session="4f2a"), [plan_event(run, one, ids) for one, run in ids.items()])


def run_of(**fields: Any) -> Session:
    given = {"workload": "train.py:step", "variant": "jit", "how": "jit", "device": "cpu:0"}
    return fold(e.Header(session="4f2a"), [e.RunPlanned(run="r1", spec=e.RunSpec(**{**given, **fields}))])


def test_runs_of_a_built_in_workload_are_planned_as_they_were() -> None:
    first = plan_runs([workload_info(built_in("selu"), sources=False)], PlanOptions(settings={"n": "500"}))
    again = plan_all_again(kept(*first))
    assert [(one.spec.workload, one.spec.variant, one.spec.parameters) for one in again] == [
        (one.spec.workload, one.spec.variant, one.spec.parameters) for one in first
    ]
    assert all(one.baseline is again[0] for one in again[1:])
    assert [one.spec.target for one in again] == ["selu"] * len(again)


def test_all_that_was_asked_for_is_asked_for_again() -> None:
    wishes = {"seed": 7, "capture": False, "keep_constants": True, "compilation_cache": True, "max_seconds": 9.0}
    spec = e.RunSpec(workload="selu", variant="jit", how="jit", device="cpu:0", target="selu", **wishes)  # type: ignore[arg-type]
    (again,) = plan_all_again(kept(PlannedRun(spec=spec)))
    assert {name: getattr(again.spec, name) for name in wishes} == wishes
    request = run_request("r1", again, "gpu:0", None)
    assert request.spec == replace(again.spec, device="gpu:0")  # type: ignore[union-attr]


def test_a_users_function_is_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    given = {"variant": "jit", "how": "jit", "device": "cpu:0", "parameters": {}, "preset": "quick"}
    spec = e.RunSpec(target="train.py:step", workload="train.py:step", arguments=("f32[3]",), **given)  # type: ignore[arg-type]
    session = kept(PlannedRun(spec=spec))
    monkeypatch.chdir("/")
    (again,) = plan_again(session, "r1")
    assert (again.spec.target, again.spec.arguments) == (f"{tmp_path}/train.py:step", ("f32[3]",))


@pytest.mark.parametrize("name", ["r2", "selu", ""])
def test_a_run_is_named_by_its_id_or_its_workload(name: str) -> None:
    session = kept(*plan_runs([workload_info(built_in("selu"), sources=False)], PlanOptions()))
    planned = plan_all_again(session, name)
    assert len(planned) == (2 if name == "r2" else len(session.runs))  # with its baseline


def test_a_name_that_no_run_has_is_refused_with_the_near_ones() -> None:
    with pytest.raises(UsageError, match="unknown run 'sleu'"):
        plan_all_again(kept(*plan_runs([workload_info(built_in("selu"), sources=False)], PlanOptions())), "sleu")


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({}, "its session does not say where"),
        ({"target": "/gone/train.py:step"}, "there is no file /gone/train.py"),
        ({"how": "program", "workload": "train.py"}, "train.py is a program"),
        ({"how": "imported"}, "read from a profile"),
        ({"how": "compile"}, "compiled and not run"),
    ],
)
def test_what_cannot_be_run_again_says_why(fields: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError) as refused:
        plan_all_again(run_of(**fields))
    assert what in refused.value.what
    assert refused.value.hint


def test_the_reason_why_a_call_was_not_written_down_is_given() -> None:
    session = run_of()
    message = "jaxprof run cannot repeat this run: argument 1 is a flax.TrainState, which a session cannot hold"
    session.apply(e.WarningRaised(run="r1", code="cannot_repeat", message=message))
    with pytest.raises(UsageError, match=r"cannot be run again: argument 1 is a flax\.TrainState"):
        plan_again(session, "r1")


def test_what_can_be_run_is_when_the_rest_cannot(tmp_path: Path) -> None:
    session = run_of(how="program", workload="train.py")
    session.apply(e.RunPlanned(run="r2", spec=e.RunSpec(workload="selu", variant="jit", how="jit", device="cpu:0")))
    assert [one.spec.workload for one in plan_all_again(session)] == ["selu"]


def test_a_function_that_was_recorded_in_a_program_is_found_with_the_programs_arguments(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    plan = {"variant": "jit", "how": "jit", "device": "cpu:0", "target": f"{tmp_path}/train.py:step"}
    session = fold(
        e.Header(session="4f2a"),
        [
            e.RunPlanned(
                run="r1", spec=e.RunSpec(workload="train.py", variant="program", how="program", device="host")
            ),
            e.ProgramStarted(run="r1", argv=["train.py", "--size", "7"], how="script"),
            e.RunPlanned(run="r2", spec=e.RunSpec(workload="train.py:step", **plan)),  # type: ignore[arg-type]
        ],
    )
    (again,) = plan_again(session, "r2")
    assert again.spec.argv == ("train.py", "--size", "7")
    (later,) = plan_again(kept(again), "r1")  # the session of that run has no program, and says so itself
    assert later.spec.argv == again.spec.argv
    assert run_request("r1", later, "cpu:0", None).spec.argv == again.spec.argv  # type: ignore[union-attr]


def test_what_a_notebook_was_started_with_is_nothing_to_its_functions(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    plan = {"variant": "jit", "how": "jit", "device": "cpu:0", "target": f"{tmp_path}/train.py:step"}
    session = fold(
        e.Header(session="4f2a"),
        [
            e.RunPlanned(run="r1", spec=e.RunSpec(workload="cell", variant="program", how="program", device="host")),
            e.ProgramStarted(run="r1", argv=["ipykernel_launcher.py", "-f", "kernel.json"], how="cell"),
            e.RunPlanned(run="r2", spec=e.RunSpec(workload="train.py:step", **plan)),  # type: ignore[arg-type]
        ],
    )
    assert plan_again(session, "r2")[0].spec.argv == ()
