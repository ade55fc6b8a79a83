"""What the kernels of a compiled program weigh: by a capture, by the least times on their device, or not at all."""

import pytest

from analysis.made_runs import run, session
from golden import figures_text, held
from jaxprof.analysis.ceilings import of_call
from jaxprof.analysis.explain.derive import explanation_of_modules
from jaxprof.analysis.explain.modules import weights_of_call
from jaxprof.analysis.measured import longest_kernel
from jaxprof.analysis.opener import module_of
from jaxprof.hlo.open.stages import ModuleStages
from report import sessions

TRANSPOSES = sessions.TRANSPOSES


H200 = "NVIDIA H200"


def measured(name="r1", seconds=1e-3, **more):
    """A run on a GPU: how long its calls took, if they were made."""
    how = "jit" if seconds else "compile"
    samples = [seconds] * 9 if seconds else []
    return run(name, samples=samples, how=how, device="cuda:0", **{"kind": H200, "hlo": TRANSPOSES, **more})


def share(*events):
    of = session(events)
    reached = of_call(of, of.runs["r1"])
    return reached.roofline if reached is not None else None


@pytest.mark.parametrize(
    "lacks", [{"kind": "a device that nobody knows"}, {"hlo": None}, {"hlo": "no HLO"}, {"seconds": None}]
)
def test_without_a_device_its_hlo_or_a_time_nothing_is_said_of_it(lacks):
    assert share(*measured(**lacks)) is None


def test_without_a_capture_a_kernel_costs_its_part_of_the_least_time():
    def weights(**more):
        of = session(measured(**more))
        module = module_of(of, of.runs["r1"])
        assert module is not None
        return weights_of_call(of, of.runs["r1"], module)

    timed, compiled, unknown = weights(), weights(seconds=None), weights(kind="a device that nobody knows")
    assert (timed.scope, timed.estimate, timed.seconds) == ("call", True, pytest.approx(1e-3))
    assert sum(timed.shares.values()) == pytest.approx(1.0)
    assert 0 < compiled.seconds < 1e-3, "of a program that was only compiled it is an estimate"
    assert (compiled.low, compiled.high) == (None, None)
    assert (unknown.shares, unknown.seconds) == ({}, None)


def test_the_longest_kernel_is_that_of_all_captures_together():
    first = [*measured(), sessions.kernels("r1", fusion_1=1e-3, fusion_2=2e-3)]
    longest = longest_kernel(session(first, measured("r2"), sessions.kernels("r2", fusion_1=5e-3)))
    alone = longest_kernel(session(measured(hlo=None), sessions.kernels("r1", fusion_1=1e-3)))
    held("longest_kernel.txt", figures_text(longest, alone))
    assert longest_kernel(session(measured())) is None
    assert longest_kernel(session(measured(), sessions.kernels("r1", fusion_1=0.0))) is None


def test_a_module_that_cannot_be_read_is_told_and_the_others_are_explained():
    """Also where one of these has something to say of itself."""

    def stages(label, text):
        return ModuleStages(key=label, label=label, stages={"hlo": lambda: text})

    cut = TRANSPOSES.rstrip().rstrip("}")
    explained = explanation_of_modules([stages("bad", "no HLO at all"), stages("cut", cut)], "dump")
    assert "layout-copy" in {finding.code for finding in explained.findings}
    assert {"not-read", "no-times"} < {each.code for each in explained.abstentions}
