"""What happens once in a process, of two runs of one session: compared over their launches."""

from __future__ import annotations

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.analysis.session_difference import PhaseDifference, session_difference
from jaxprof.session import Session


def session_of(launches: int, *, baseline: str = "r1") -> Session:
    events: list[e.Event] = []
    for run, compile_seconds in (("r1", 1.0), ("r2", 2.0)):
        spec = e.RunSpec(workload="w", variant=run, how="jit", device="cpu:0", launches=launches)
        if run == "r2" and baseline:
            spec = e.RunSpec(workload="w", variant=run, how="jit", device="cpu:0", launches=launches, baseline=baseline)
        events.append(e.RunPlanned(run=run, spec=spec))
        for launch in range(1, launches + 1):
            off = 1 + 0.01 * (launch % 2)
            events += [
                e.WorkerStarted(run=run, pid=launch, python="python", launch=launch),
                e.PhaseEnded(run=run, phase="compile", seconds=compile_seconds * off),
            ]
        events += [
            e.PhaseEnded(run=run, phase="transfer_in", seconds=0.1),
            e.SamplesTaken(run=run, series="transfer_in", seconds=[1e-3] * 5),
            e.RunFinished(run=run, status="ok"),
        ]
    return fold(e.Header(session="4f2a"), events)


def phases(session: Session) -> dict[str, PhaseDifference]:
    (pair,) = session_difference(session, session, run_before="r1", run_after="r2").runs
    return {phase.phase: phase for phase in pair.phases}


def test_cold_phases_of_several_launches_have_a_verdict() -> None:
    times = phases(session_of(4))["compile"].times
    assert times.launches == 4
    assert (times.verdict(), times.reason()) == ("slower", "")


@pytest.mark.parametrize("phase", ["compile", "transfer_in"])
def test_with_one_launch_that_is_the_reason_and_not_the_hour(phase: str) -> None:
    times = phases(session_of(1))[phase].times
    assert times.ratio == pytest.approx({"compile": 0.5, "transfer_in": 1.0}[phase])
    assert times.verdict() == "inconclusive"
    assert times.reason() == "one launch, and its sides did not take turns"


def test_runs_that_were_not_measured_together_are_said_so() -> None:
    assert phases(session_of(4, baseline=""))["compile"].times.reason() == "not measured together"
