"""Limits on times: measured in turns with the base, undecided wherever that was not done, and refused with `--for`."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from cli.calling import commit_all
from folding import fold
from jaxprof import events as e
from jaxprof.analysis.ab import AbResult, ab_results
from jaxprof.analysis.gate import judged_times, read_limits
from jaxprof.cli import sides as cli_sides
from jaxprof.cli.output import ExitCode
from jaxprof.session.run import UNLIKE_RESULTS
from report import sessions

SIDES = {"r1": "A", "r2": "B"}


def measured(call_seconds: float, compile_seconds: float, launches: int = 3, *more: e.Event) -> AbResult:
    """A comparison of that many launches. A takes 10 ms a call, and compiles in 1 s."""
    events: list[e.Event] = []
    for run, side in SIDES.items():
        spec = e.RunSpec(workload="own.py:step", variant="jit", how="jit", device="cpu:0", side=side, launches=launches)
        events.append(e.RunPlanned(run=run, spec=replace(spec, baseline="" if side == "A" else "r1")))
    for launch in range(1, launches + 1):
        wobble = 1 + 0.002 * (launch % 3)
        for run, side in SIDES.items():
            took = compile_seconds if side == "B" else 1.0
            events.append(e.WorkerStarted(run=run, pid=1, python="python", launch=launch))
            events.append(e.PhaseEnded(run=run, phase="compile", seconds=took * (wobble if side == "B" else 1)))
        noise = Random(launch)
        for block, run in enumerate([*SIDES, *reversed(SIDES)] * 8):
            took = (call_seconds if SIDES[run] == "B" else 0.01) * (1 + noise.gauss(0, 0.004))
            events.append(e.SamplesTaken(run=run, series="run", seconds=[took], block=1000 * launch + block))
    events += [e.RunFinished(run=run, status="ok") for run in SIDES]
    (found,) = ab_results(fold(sessions.HEADER, [*events, *more]))
    return found


def states(found: AbResult, *limits: str) -> dict[str, str]:
    return {row.limit.text: row.state for row in judged_times("x", found, read_limits(limits))}


def test_a_call_and_a_compile_that_took_longer_pass_their_limits():
    limits = ("run:5%", "compile:20%", "kernels")
    for call, compiled, run, compiling in (
        (0.01, 1.0, "within", "within"), (0.015, 1.0, "passed", "within"), (0.01, 1.5, "within", "passed"),
    ):  # fmt: skip
        assert states(measured(call, compiled), *limits) == {"run:5%": run, "compile:20%": compiling}
    assert states(measured(0.015, 1.5), "run:60%", "compile:60%") == {"run:60%": "within", "compile:60%": "within"}


def test_with_one_launch_a_call_needs_more_and_a_compile_is_undecided():
    limits = ("run:5%", "compile:20%")
    assert states(measured(0.0115, 1.5, 1), *limits) == {"run:5%": "undecided", "compile:20%": "undecided"}
    assert states(measured(0.015, 1.0, 1), "run:5%") == {"run:5%": "passed"}
    warning = e.WarningRaised(run="r2", code=UNLIKE_RESULTS, message="the results are not alike: f32[2], f32[3]")
    assert states(measured(0.015, 1.0, 3, warning), "run:5%") == {"run:5%": "undecided"}


def test_the_intervals_of_several_limits_hold_together():
    found = measured(0.011, 1.0)
    (alone,) = judged_times("x", found, read_limits(["run:5%"]))
    beside, _ = judged_times("x", found, read_limits(["run:5%", "compile:20%"]))
    assert alone.growth_low is not None
    assert beside.growth_low is not None
    assert alone.growth_low > beside.growth_low
    assert alone.growth == beside.growth


def test_a_session_of_another_time_decides_no_time(call, kept):
    said = call("gate", kept, "--base", kept, "--fail-on", "compile:5%", "--format", "json")
    (row,) = said.data["limits"]
    assert (said.code, row["state"], "--base REV" in row["reason"]) == (0, "undecided", True)
    assert row["before"] > 0
    assert row["growth"] is None


@pytest.mark.process
def test_a_revision_and_what_is_there_now_are_measured_and_judged(call, tmp_path, monkeypatch):
    own = "def step(x):\n    return x\n\ndef step_inputs():\n    return (1.0,)\n"
    (tmp_path / "own.py").write_text(own)
    commit_all(tmp_path, "one")
    (tmp_path / "own.py").write_text(own.replace("return x", "return x + 1"))
    monkeypatch.chdir(tmp_path)
    given: list[Any] = []

    def measure(read: Any, folder: Any, how: Any, *words: Any, **more: Any) -> cli_sides.MeasuredSides:
        given.extend((read, how))
        return cli_sides.MeasuredSides(result=measured(0.015, 1.0), exit_code=ExitCode.OK, path=None)

    monkeypatch.setattr(cli_sides, "measure", measure)
    said = call("gate", "own.py:step", "--fail-on", "run:5%", "--launches", "2", "--format", "json")
    (row,) = said.data["limits"]
    assert (said.code, row["state"]) == (3, "passed")
    read, how = given
    assert ([side.tree.revision for side in read.sides], how["launches"]) == (["HEAD", ""], 2)
