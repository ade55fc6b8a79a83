"""What the kernels of a compiled program weigh: by a capture, by the least times on their device, or not at all."""

from __future__ import annotations

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.analysis.ceilings import of_call
from jaxprof.analysis.explain.derive import explanation, explanation_of_modules
from jaxprof.analysis.explain.modules import weights_of_call
from jaxprof.analysis.measured import longest_kernel
from jaxprof.analysis.opener import module_of
from jaxprof.hlo.open.stages import ModuleStages
from jaxprof.session import Session
from report import sessions

TRANSPOSES = sessions.TRANSPOSES


def measured(
    run: str = "r1", seconds: float | None = 1e-3, *, kind: str = "NVIDIA H200", hlo: str = TRANSPOSES
) -> list[e.Event]:
    """A run on a GPU: how long its calls took, if they were made."""
    device = {"platform": "cuda", "kind": kind}
    how = "jit" if seconds else "compile"
    spec = e.RunSpec(workload="f", variant="jit", how=how, device="cuda:0")
    return [
        e.RunPlanned(run=run, spec=spec),
        e.EnvironmentRead(run=run, python="3", numpy="2", devices=[device]),
        *([e.TextRecorded(run=run, name="hlo", text=hlo, bytes=len(hlo))] if hlo else []),
        *([e.SamplesTaken(run=run, series="run", seconds=[seconds] * 9)] if seconds else []),
        e.RunFinished(run=run, status="ok"),
    ]


def session(*events: e.Event) -> Session:
    return fold(sessions.HEADER, events)


def share(*events: e.Event) -> float | None:
    of = session(*events)
    reached = of_call(of, of.runs["r1"])
    return reached.roofline if reached is not None else None


def test_how_near_a_call_comes_to_the_least_time_on_its_device() -> None:
    one, half = share(*measured(seconds=1e-3)), share(*measured(seconds=2e-3))
    assert one is not None
    assert 0 < half == pytest.approx(one / 2)
    moved = 4 * (1 << 20) * 4  # two kernels, each of which reads and writes 4 MiB
    assert one == pytest.approx(moved / 4.8e12 / 1e-3, rel=0.15)


def test_without_a_device_its_hlo_or_a_time_nothing_is_said_of_it() -> None:
    assert share(*measured(kind="a device that nobody knows")) is None
    assert share(*measured(hlo="")) is None
    assert share(*measured(hlo="no HLO at all")) is None
    assert share(*measured(seconds=None)) is None


def test_without_a_capture_a_kernel_costs_its_part_of_the_least_time() -> None:
    of = session(*measured(seconds=1e-3))
    module = module_of(of, of.runs["r1"])
    assert module is not None
    weights = weights_of_call(of, of.runs["r1"], module)
    assert (weights.scope, weights.estimate) == ("call", True)
    assert sum(weights.shares.values()) == pytest.approx(1.0)
    assert weights.seconds == pytest.approx(1e-3)
    of = session(*measured(seconds=None))
    weights = weights_of_call(of, of.runs["r1"], module)
    assert 0 < weights.seconds < 1e-3, "of a program that was only compiled it is an estimate"
    assert (weights.low, weights.high) == (None, None)
    of = session(*measured(kind="a device that nobody knows"))
    weights = weights_of_call(of, of.runs["r1"], module)
    assert (weights.shares, weights.seconds) == ({}, None)


def test_the_longest_kernel_is_that_of_all_captures_together() -> None:
    of = session(
        *measured("r1"),
        sessions.kernels("r1", fusion_1=1e-3, fusion_2=2e-3),
        *measured("r2"),
        sessions.kernels("r2", fusion_1=5e-3),
    )
    longest = longest_kernel(of)
    assert (longest.run, longest.name, longest.share) == ("r2", "fusion.1", pytest.approx(5 / 8))
    assert longest.kind
    assert longest.where == e.SourceLocation("/home/me/turn.py", 7)
    without_hlo = longest_kernel(session(*measured("r1", hlo=""), sessions.kernels("r1", fusion_1=1e-3)))
    assert (without_hlo.kind, without_hlo.where, without_hlo.share) == ("", None, 1.0)
    assert longest_kernel(session(*measured("r1"))) is None
    assert longest_kernel(session(*measured("r1"), sessions.kernels("r1", fusion_1=0.0))) is None


def test_a_module_that_cannot_be_read_is_told_and_the_others_are_explained() -> None:
    """Also where one of these has something to say of itself."""

    def stages(label: str, text: str) -> ModuleStages:
        return ModuleStages(key=label, label=label, stages={"hlo": lambda: text})

    cut = TRANSPOSES.rstrip().rstrip("}")
    explained = explanation_of_modules([stages("bad", "no HLO at all"), stages("cut", cut)], "dump")
    assert "layout-copy" in {finding.code for finding in explained.findings}
    assert {"not-read", "no-times"} < {each.code for each in explained.abstentions}


def test_an_explanation_reads_the_hlo_of_its_first_programs() -> None:
    runs = [event for number in range(18) for event in measured(f"r{number}")]
    (finding,) = explanation(session(*runs), "s").findings
    assert 1 + len(finding.also) == 16
