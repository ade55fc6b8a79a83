"""What the steps of a capture cost: of which device, from which share on, and in whose scope."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.made_runs import planned, session
from jaxprof import events as e
from jaxprof.analysis.explain.model import RankedFinding
from jaxprof.analysis.explain.sources import capture_abstentions, step_findings

CUT = {"complete": False}
WHOLE = e.StepsDevice(device="gpu:0", found_by="whole")


def step(device: str = "gpu:0", *, complete: bool = True, **parts: float) -> e.StepTimes:
    kernels = 1e-3 - sum(parts.values())
    return e.StepTimes(
        device=device,
        start_seconds=0.0,
        seconds=1e-3,
        complete=complete,
        parts=e.StepParts(kernels=kernels, **parts),
    )


def found(
    *steps: e.StepTimes,
    platforms: tuple[str, ...] = ("gpu",),
    scope: Any = "call",
    whole_program: bool = False,
    found_by: str = "annotation",
    devices: tuple[e.StepsDevice, ...] = (),
    trust: tuple[str, ...] = (),
) -> list[RankedFinding]:
    of = session(
        planned(),
        (e.CaptureTaken(run="r1", kind=name, platform=name) for name in platforms),
        e.StepsMeasured(run="r1", found_by=found_by, steps=list(steps), devices=list(devices)),
        e.TrustReported(run="r1", kind="run", rows=[e.TrustCheck(code=trust[0], verdict=trust[1])] if trust else []),
    )
    return list(step_findings(of.runs["r1"], scope, "verify", whole_program=whole_program))


def test_the_device_that_loses_most_is_named_with_how_many_others_lose():
    steps = [step("gpu:0", launch_gaps=1e-4), step("gpu:1", launch_gaps=3e-4), step("gpu:1", launch_gaps=1e-4)]
    (finding,) = found(*steps, step("gpu:2", launch_gaps=0.9e-4))
    assert finding.message == "gaps between kernels: 200 µs of each step on gpu:1 and 1 more device, 20 % of 2 steps"
    assert (finding.code, finding.run, finding.verify) == ("launch-gaps", "r1", "verify")
    assert (finding.cost.seconds, finding.cost.share) == (pytest.approx(2e-4), pytest.approx(0.2))
    assert finding.cost.saves_seconds is None, "how much a change would save is unknown"
    (finding,) = found(*steps[1:])
    assert "on gpu:1, 20 % of 2 steps" in finding.message


@pytest.mark.parametrize(
    ("steps", "more", "codes"),
    [
        ([step(launch_gaps=1e-4)], {}, ["launch-gaps"]),  # a tenth is worth a finding
        ([step(launch_gaps=0.99e-4)], {}, []),
        ([step(launch_gaps=2e-4)], {"trust": ("lost_kernels", "doubt")}, []),  # kernels that are lost are no pause
        ([step(launch_gaps=2e-4)], {"trust": ("clock", "bad")}, []),  # nor those at a wrong time
        ([step(launch_gaps=2e-4)], {"trust": ("clock", "doubt")}, ["launch-gaps"]),
        ([step(launch_gaps=1e-5), step(launch_gaps=9e-4, **CUT)], {}, []),  # a step that was cut does not count
        ([step(idle=5e-4)], {}, []),  # on purpose, unless the whole program was captured
        ([step(idle=5e-4)], {"whole_program": True}, ["device-idle"]),
        ([step(launch_gaps=9e-4)], {"devices": (WHOLE,)}, []),  # a device whose profile is one step
        ([step(launch_gaps=9e-4), step("gpu:1", launch_gaps=2e-4)], {"devices": (WHOLE,)}, ["launch-gaps"]),
        ([step(launch_gaps=9e-4)], {"found_by": "whole"}, []),
        ([step(launch_gaps=5e-4)], {"platforms": ("cpu",)}, []),
        ([step(launch_gaps=5e-4)], {"platforms": ("cpu", "gpu")}, ["launch-gaps"]),
    ],
)
def test_what_is_a_finding(steps, more, codes):
    assert [finding.code for finding in found(*steps, **more)] == codes


@pytest.mark.parametrize(("scope", "seconds"), [("call", 2e-4), ("profile", 1e-3), ("program", 1e-3)])
def test_in_a_call_it_costs_what_one_step_loses_and_elsewhere_what_all_lose(scope, seconds):
    (finding,) = found(*[step(transfers=2e-4)] * 5, scope=scope)
    assert (finding.cost.seconds, finding.cost.scope) == (pytest.approx(seconds), scope)


@pytest.mark.parametrize(
    ("causes", "meanwhile", "fix"),
    [
        (
            [e.IdleCause(cause="host", seconds=1.6e-3, name="load_batch"), e.IdleCause(cause="copy", seconds=4e-4)],
            "it did other work 80 % (mostly load_batch), it copied 20 %",
            "next batch in a thread",
        ),
        (
            [e.IdleCause(cause="compile", seconds=1.95e-3), e.IdleCause(cause="wait", seconds=5e-5)],
            "it traced or compiled 98 %",
            "what compiled again",
        ),
        ([], "", "jaxprof script"),
    ],
)
def test_idle_time_has_its_causes_and_advice_for_the_longest(causes, meanwhile, fix):
    devices = (e.StepsDevice(device="gpu:0", idle_causes=causes),)
    (finding,) = found(*[step(idle=5e-4)] * 4, whole_program=True, devices=devices)
    assert finding.message.partition("; meanwhile the host: ")[2] == meanwhile
    assert fix in finding.fix


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ("", []),
        ("file good, sum good", []),
        ("no such check bad", []),
        ("sum doubt, slowdown doubt", [("slowdown", "r1: slowdown doubt (1 more doubt)")]),
        ("file doubt, sum bad, dropped doubt", [("sum", "r1: sum bad (2 more doubts)")]),
        ("dropped bad", [("dropped", "r1: dropped bad")]),
    ],
)
def test_of_several_doubts_the_worst_is_told_then_the_first_of_their_order(verdicts, said):
    rows = [
        e.TrustCheck(code=each.rpartition(" ")[0], verdict=each.rpartition(" ")[2], message=each)
        for each in verdicts.split(", ")
    ]
    of = session(planned(), e.TrustReported(run="r1", kind="run", rows=rows))
    abstentions = list(capture_abstentions(of.runs["r1"], "s"))
    assert [(each.code, each.reason) for each in abstentions] == said
    assert all(each.command == "jaxprof open s --run r1 --trust" for each in abstentions)
