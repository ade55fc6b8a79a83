"""What the steps of a capture cost: of which device, from which share on, and in whose scope."""

import pytest

from analysis.made_runs import planned, session
from golden import figures_text, held_cases
from jaxprof import events as e
from jaxprof.analysis.explain.sources import capture_abstentions, step_findings

CUT = {"complete": False}
WHOLE = e.StepsDevice(device="gpu:0", found_by="whole")


def step(device="gpu:0", *, complete=True, **parts):
    parts = e.StepParts(kernels=1e-3 - sum(parts.values()), **parts)
    return e.StepTimes(device=device, start_seconds=0.0, seconds=1e-3, complete=complete, parts=parts)


def found(
    *steps,
    platforms=("gpu",),
    scope="call",
    whole_program=False,
    found_by="annotation",
    devices=(),
    trust=(),
):
    of = session(
        planned(),
        (e.CaptureTaken(run="r1", kind=name, platform=name) for name in platforms),
        e.StepsMeasured(run="r1", found_by=found_by, steps=list(steps), devices=list(devices)),
        e.TrustReported(run="r1", kind="run", rows=[e.TrustCheck(code=trust[0], verdict=trust[1])] if trust else []),
    )
    return list(step_findings(of.runs["r1"], scope, "verify", whole_program=whole_program))


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


def idle(**causes):
    """Four steps that are idle for half of their time, of which the host did this meanwhile."""
    names = {"host": "load_batch"}
    seen = [e.IdleCause(cause=cause, seconds=took, name=names.get(cause, "")) for cause, took in causes.items()]
    devices = [e.StepsDevice(device="gpu:0", idle_causes=seen)]
    return found(*[step(idle=5e-4)] * 4, whole_program=True, devices=devices)


LOSE = [step("gpu:1", launch_gaps=3e-4), step("gpu:1", launch_gaps=1e-4), step("gpu:2", launch_gaps=0.9e-4)]
CAUSES = {
    "the host": {"host": 1.6e-3, "copy": 4e-4},
    "compilations": {"compile": 1.95e-3, "wait": 5e-5},
    "unknown": {},
}
SAID = {
    "the device that loses most, with how many others lose": found(step(launch_gaps=1e-4), *LOSE),
    "it alone": found(*LOSE),
    **{f"what all steps lose in a {scope}": found(*[step(transfers=2e-4)] * 5, scope=scope)
       for scope in ("call", "profile", "program")},
    **{f"idle by {cause}": idle(**causes) for cause, causes in CAUSES.items()},
}  # fmt: skip


def test_what_is_said_of_each():
    """How much a change would save is unknown."""
    told = {case: figures_text(*findings, *(each.fix for each in findings)) for case, findings in SAID.items()}
    held_cases("findings_of_captures.txt", told)


DOUBTS = [
    "", "file good, sum good", "no such check bad", "sum doubt, slowdown doubt", "file doubt, sum bad, dropped doubt",
    "dropped bad",
]  # fmt: skip


def test_of_several_doubts_the_worst_is_told_then_the_first_of_their_order():
    told = {}
    for verdicts in DOUBTS:
        checks = [(each, *each.rsplit(" ", 1)) for each in verdicts.split(", ") if each]
        rows = [e.TrustCheck(code=code, verdict=verdict, message=words) for words, code, verdict in checks]
        of = session(planned(), e.TrustReported(run="r1", kind="run", rows=rows))
        told[verdicts] = figures_text(*capture_abstentions(of.runs["r1"], "s"))
    held_cases("doubts.txt", told)
