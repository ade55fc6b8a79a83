"""Sides of a comparison as runs: scripted engines on real pipes, and what their session says of the sides."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxprof import events as e
from jaxprof.analysis.session_difference import session_difference
from jaxprof.analysis.speedup import compared
from jaxprof.engine.measure import kept_arrays
from jaxprof.report.runs import groups
from jaxprof.runner import Interpreter, turns
from jaxprof.runner.sides import ComparedSide, SideOptions, plan_sides
from jaxprof.session import Session
from runner.engines import PREAMBLE
from runner.stage import Stage, side

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
    if turn["request"] == "cancel":
        say("run_finished", status="cancelled", error="cancelled")
        break
    if turn["request"] == "turns_over":
        if request["keep_output"]:
            shutil.copy(os.environ.get("RESULT_OF_" + spec["side"][0], os.environ["RESULT"]), request["keep_output"])
        say("log_line", stream="stdout", text=json.dumps({"flags": os.environ.get("FLAGS"), "python": sys.executable}))
        say("run_finished", status="ok")
        break
    say("samples_taken", series="run", seconds=[float(os.environ.get("TAKES", 1e-3))] * 2, block=turn["block"])
control.readline()
"""
)


def results(folder: Path, name: str, value: Any) -> str:
    path = str(folder / f"{name}.npz")
    kept_arrays.keep(path, value)
    return path


class Sides(Stage):
    """Whose engines follow the script above."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch, ENGINE)
        monkeypatch.setattr(turns, "BLOCK_SECONDS", 10.0)
        monkeypatch.setenv("RESULT", results(folder, "result", np.ones(3, np.float32)))

    def compare(self, *sides: ComparedSide, **options: Any) -> Session:
        folder = self.folder / "results"
        folder.mkdir()
        return self.run(plan_sides(sides, SideOptions(**{"launches": 2, "folder": folder, **options})))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sides:
    return Sides(tmp_path, monkeypatch)


def told(session: Session, run: str) -> Any:
    return json.loads(session.runs[run].log[0].text)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A; B with a variable, an interpreter and times of its own; and C, in three launches."""
    folder = tmp_path_factory.mktemp("three")
    python = folder / "python"
    python.symlink_to(sys.executable)
    slower = {"FLAGS": "fast", "TAKES": "2e-3", "COMPILES": "0.5"}
    b = side("B", environment=slower, interpreter=Interpreter(str(python), "0.12.0", ""))
    with pytest.MonkeyPatch.context() as patch:
        yield Sides(folder, patch).compare(side("A"), b, side("C"), launches=3)


@pytest.mark.process
def test_each_side_has_its_own_environment_and_interpreter(three):
    assert [run.plan.side for run in three.runs.values()] == ["A", "B", "C"]
    assert [told(three, run)["flags"] for run in three.runs] == [None, "fast", None]
    assert [Path(run.python).name for run in three.runs.values()][1] == "python"
    assert told(three, "r2")["python"] == three.runs["r2"].python


@pytest.mark.process
def test_all_that_are_compared_with_a_are_one_family_in_whole_launches(three):
    times = compared(three, three.runs["r1"], three.runs["r2"])
    assert (times.verdict(), times.by_width) == ("slower", False)
    assert times.family == 2, "B and C"
    assert [len(run.launches) for run in three.runs.values()] == [3, 3, 3]


@pytest.mark.process
@pytest.mark.parametrize(("run", "verdict"), [("r2", "slower"), ("r3", "same")])
def test_what_happens_once_in_a_process_is_compared_over_launches(three, run, verdict):
    (pair,) = session_difference(three, three, run_before="r1", run_after=run).runs
    assert [row.times.verdict() for row in pair.phases if row.phase == "compile"] == [verdict]


@pytest.mark.process
def test_sides_of_other_sizes_and_precisions_are_compared_on_purpose(stage):
    b = side("B", settings={"n": "4000"}, precision="highest", environment={"TAKES": "5e-4"})
    session = stage.compare(side("A"), b)
    (pair,) = session_difference(session, session, run_before="r1", run_after="r2").runs
    assert next(row.times.verdict() for row in pair.phases if row.phase == "run") == "faster"
    (group,) = groups(session)
    assert [group.label(one.run) for one in group.runs] == ["A jit", "B jit"], "one table, whatever differs"


@pytest.mark.process
def test_launches_end_once_the_interval_is_narrow_and_say_so_to_the_statistics(stage):
    session = stage.compare(side("A"), side("B"), launches=None)
    assert [len(run.launches) for run in session.runs.values()] == [5, 5], "never before five"
    assert compared(session, session.runs["r1"], session.runs["r2"]).by_width


@pytest.mark.process
def test_results_of_another_dtype_are_refused_a_verdict(stage, monkeypatch):
    monkeypatch.setenv("RESULT_OF_B", results(stage.folder, "half", np.ones(3, np.float16)))
    session = stage.compare(side("A"), side("B", environment={"TAKES": "5e-4"}))
    times = compared(session, session.runs["r1"], session.runs["r2"])
    assert times.verdict() == "inconclusive"
    assert "float32[3] and float16[3]" in times.reason()
    assert [one.code for one in session.runs["r2"].warnings] == ["unlike_results"]


@pytest.mark.process
def test_other_results_are_said_and_leave_the_verdict_alone(stage, monkeypatch):
    monkeypatch.setenv("RESULT_OF_B", results(stage.folder, "off", np.full(3, 1.03, np.float32)))
    session = stage.compare(side("A"), side("B", environment={"TAKES": "5e-4"}))
    assert compared(session, session.runs["r1"], session.runs["r2"]).verdict() == "faster"
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
    times = compared(session, session.runs["r1"], session.runs["r2"])
    assert times.verdict() == "inconclusive"
    assert "failed" in times.reason()


@pytest.mark.process
def test_another_kind_of_device_and_throttling_on_one_side_are_refused(three):
    session = copy.deepcopy(three)
    first, other = session.runs["r1"], session.runs["r2"]
    reading = e.DeviceReading(run="r2", device="cpu:0", throttle_reasons=["heat"])
    session.apply(reading)
    assert "throttled its clocks during its run only" in compared(session, first, other).reason()
    session.readings["cpu:0"].remove(reading)
    for run, kind in ((first, "H100"), (other, "H200")):
        devices = [{"id": "cpu:0", "platform": "cpu", "kind": kind}]
        run.environment = e.EnvironmentRead(python="3.11", numpy="2", devices=devices)
    assert compared(session, first, other).reason() == "another kind of device (H100, H200)"
