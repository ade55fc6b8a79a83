"""What the steps of a capture cost: of which device, from which share on, and in whose scope."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from jaxprof import events as e
from jaxprof.analysis.explain.model import RankedFinding, Scope
from jaxprof.analysis.explain.sources import capture_abstentions, step_findings


def step(device: str = "gpu:0", seconds: float = 1e-3, *, complete: bool = True, **parts: float) -> e.StepTimes:
    kernels = seconds - sum(parts.values())
    return e.StepTimes(
        device=device,
        start_seconds=0.0,
        seconds=seconds,
        complete=complete,
        parts=e.StepParts(kernels=kernels, **parts),
    )


def found(
    steps: Sequence[e.StepTimes],
    *,
    platforms: Sequence[str] = ("gpu",),
    scope: Scope = "call",
    whole_program: bool = False,
    found_by: str = "annotation",
    devices: Sequence[e.StepsDevice] = (),
    trust: Sequence[e.TrustCheck] = (),
) -> list[RankedFinding]:
    run: Any = SimpleNamespace(
        id="r1",
        steps=e.StepsMeasured(found_by=found_by, steps=list(steps), devices=list(devices)),
        captures={name: SimpleNamespace(platform=name) for name in platforms},
        trust={"run": e.TrustReported(kind="run", rows=list(trust))},
    )
    return list(step_findings(run, scope, "verify", whole_program=whole_program))


def test_the_device_that_loses_most_is_named_with_how_many_others_lose() -> None:
    steps = [step("gpu:0", launch_gaps=1e-4), step("gpu:1", launch_gaps=3e-4), step("gpu:1", launch_gaps=1e-4)]
    (finding,) = found([*steps, step("gpu:2", launch_gaps=0.9e-4)])
    assert finding.message == "gaps between kernels: 200 µs of each step on gpu:1 and 1 more device, 20 % of 2 steps"
    assert (finding.code, finding.run, finding.verify) == ("launch-gaps", "r1", "verify")
    assert (finding.cost.seconds, finding.cost.share) == (pytest.approx(2e-4), pytest.approx(0.2))
    assert finding.cost.saves_seconds is None, "how much a change would save is unknown"
    (finding,) = found([*steps, step("gpu:2", launch_gaps=1e-4)])
    assert "and 2 more devices," in finding.message
    (finding,) = found(steps[1:])
    assert "on gpu:1, 20 % of 2 steps" in finding.message


@pytest.mark.parametrize(
    ("code", "verdict", "codes"),
    [
        ("lost_kernels", "doubt", []),
        ("lost_kernels", "good", ["launch-gaps"]),
        ("clock", "bad", []),
        ("clock", "doubt", ["launch-gaps"]),
        ("python_tracer", "doubt", ["launch-gaps"]),
    ],
)
def test_kernels_that_are_lost_or_at_a_wrong_time_are_no_pause(code: str, verdict: str, codes: list[str]) -> None:
    trust = [e.TrustCheck(code=code, verdict=verdict)]
    assert [finding.code for finding in found([step(launch_gaps=2e-4)], trust=trust)] == codes


@pytest.mark.parametrize(("gaps", "codes"), [(1e-4, ["launch-gaps"]), (0.99e-4, [])])
def test_a_tenth_of_the_steps_is_worth_a_finding(gaps: float, codes: list[str]) -> None:
    assert [finding.code for finding in found([step(launch_gaps=gaps)])] == codes


def test_in_a_call_it_costs_what_one_step_loses_and_elsewhere_what_all_lose() -> None:
    steps = [step(transfers=2e-4)] * 5
    assert [finding.cost.seconds for finding in found(steps)] == [pytest.approx(2e-4)]
    for scope in ("profile", "program"):
        (finding,) = found(steps, scope=scope)  # type: ignore[arg-type]
        assert (finding.cost.seconds, finding.cost.scope) == (pytest.approx(1e-3), scope)


def test_a_step_that_was_cut_does_not_count() -> None:
    assert found([step(launch_gaps=1e-5), step(complete=False, launch_gaps=9e-4)]) == []
    assert found([step(complete=False, launch_gaps=9e-4)]) == []
    assert found([step(seconds=0.0)]) == []


def test_the_device_waits_on_purpose_unless_the_whole_program_was_captured() -> None:
    steps = [step(idle=5e-4)]
    assert found(steps) == []
    assert [finding.code for finding in found(steps, whole_program=True)] == ["device-idle"]


def test_idle_time_has_the_causes_that_the_host_shows_and_advice_for_the_longest() -> None:
    steps = [step(idle=5e-4)] * 4

    def said(*causes: e.IdleCause) -> RankedFinding:
        devices = [e.StepsDevice(device="gpu:0", idle_causes=causes)]
        (finding,) = found(steps, whole_program=True, devices=devices)
        return finding

    data = said(e.IdleCause(cause="host", seconds=1.6e-3, name="load_batch"), e.IdleCause(cause="copy", seconds=4e-4))
    assert data.message.endswith("meanwhile the host: it did other work 80 % (mostly load_batch), it copied 20 %")
    assert "next batch in a thread" in data.fix
    compiling = said(e.IdleCause(cause="compile", seconds=1.95e-3), e.IdleCause(cause="wait", seconds=5e-5))
    assert compiling.message.endswith("meanwhile the host: it traced or compiled 98 %")
    assert "what compiled again" in compiling.fix
    unknown = said()
    assert "meanwhile" not in unknown.message
    assert "jaxprof script" in unknown.fix


def test_a_device_whose_profile_is_one_step_says_nothing() -> None:
    steps = [step("gpu:0", launch_gaps=9e-4), step("gpu:1", launch_gaps=2e-4)]
    devices = [
        e.StepsDevice(device="gpu:0", found_by="whole"),
        e.StepsDevice(device="gpu:1"),
    ]
    (finding,) = found(steps, devices=devices)
    assert "on gpu:1, 20 %" in finding.message
    assert found(steps, devices=devices, found_by="whole") == []


@pytest.mark.parametrize(("platforms", "said"), [(["cpu"], 0), ([""], 0), ([], 0), (["cpu", "gpu"], 1), (["tpu"], 1)])
def test_of_a_cpu_nothing_is_said(platforms: list[str], said: int) -> None:
    assert len(found([step(launch_gaps=5e-4)], platforms=platforms)) == said


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], []),
        ([("sum", "good"), ("file", "good")], []),
        ([("no such check", "bad")], []),
        ([("sum", "doubt"), ("slowdown", "doubt")], [("slowdown", "r1: slowdown doubt (1 more doubt)")]),
        ([("file", "doubt"), ("sum", "bad"), ("dropped", "doubt")], [("sum", "r1: sum bad (2 more doubts)")]),
        ([("dropped", "bad")], [("dropped", "r1: dropped bad")]),
    ],
)
def test_of_several_doubts_the_worst_is_told_then_the_first_of_their_order(
    rows: list[tuple[str, str]], said: list[tuple[str, str]]
) -> None:
    checks = [e.TrustCheck(code=code, verdict=verdict, message=f"{code} {verdict}") for code, verdict in rows]
    run: Any = SimpleNamespace(id="r1", trust={"run": SimpleNamespace(rows=checks)})
    abstentions = list(capture_abstentions(run, "s"))
    assert [(each.code, each.reason) for each in abstentions] == said
    assert all(each.command == "jaxprof open s --run r1 --trust" for each in abstentions)
