"""Planning a kept session's runs once more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jaxprof import events as e
from jaxprof.errors import UsageError
from jaxprof.session import Session, fold
from jaxprof.worker.again import plan_again, plan_all_again
from jaxprof.worker.planning import Choice, Planned, plan_runs
from jaxprof.worker.requests import plan_event
from jaxprof.workloads import built_in
from jaxprof.workloads.model import card


def kept(*planned: Planned) -> Session:
    """The session that these runs leave behind."""
    ids = {one: f"r{number}" for number, one in enumerate(planned, start=1)}
    return fold(e.Header(session="4f2a"), [plan_event(run, one, ids) for one, run in ids.items()])


def run_of(**fields: Any) -> Session:
    given = {"run": "r1", "workload": "train.py:step", "variant": "jit", "how": "jit", "device": "cpu:0"}
    return fold(e.Header(session="4f2a"), [e.RunPlanned(**{**given, **fields})])


def test_runs_of_a_built_in_workload_are_planned_as_they_were() -> None:
    first = plan_runs([card(built_in("selu"), sources=False)], Choice(settings={"n": "500"}))
    again = plan_all_again(kept(*first))
    assert [(one.workload, one.variant, one.parameters) for one in again] == [
        (one.workload, one.variant, one.parameters) for one in first
    ]
    assert all(one.baseline is again[0] for one in again[1:])
    assert [one.target for one in again] == ["selu"] * len(again)


def test_a_users_function_is_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    given = {"variant": "jit", "how": "jit", "device": "cpu:0", "parameters": {}, "preset": "quick"}
    planned = Planned(target="train.py:step", workload="train.py:step", arguments=("f32[3]",), **given)  # type: ignore[arg-type]
    session = kept(planned)
    monkeypatch.chdir("/")
    (again,) = plan_again(session, "r1")
    assert (again.target, again.arguments) == (f"{tmp_path}/train.py:step", ("f32[3]",))


@pytest.mark.parametrize("name", ["r2", "selu", ""])
def test_a_run_is_named_by_its_id_or_its_workload(name: str) -> None:
    session = kept(*plan_runs([card(built_in("selu"), sources=False)], Choice()))
    planned = plan_all_again(session, name)
    assert len(planned) == (2 if name == "r2" else len(session.runs))  # with its baseline


def test_a_name_that_no_run_has_is_refused_with_the_near_ones() -> None:
    with pytest.raises(UsageError, match="unknown run 'sleu'"):
        plan_all_again(kept(*plan_runs([card(built_in("selu"), sources=False)], Choice())), "sleu")


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
    assert refused.value.mend


def test_the_reason_why_a_call_was_not_written_down_is_given() -> None:
    session = run_of()
    message = "jaxprof run cannot repeat this run: argument 1 is a flax.TrainState, which a session cannot hold"
    session.apply(e.WarningRaised(run="r1", code="cannot_repeat", message=message))
    with pytest.raises(UsageError, match=r"cannot be run again: argument 1 is a flax\.TrainState"):
        plan_again(session, "r1")


def test_what_can_be_run_is_when_the_rest_cannot(tmp_path: Path) -> None:
    session = run_of(how="program", workload="train.py")
    session.apply(e.RunPlanned(run="r2", workload="selu", variant="jit", how="jit", device="cpu:0"))
    assert [one.workload for one in plan_all_again(session)] == ["selu"]
