"""The order of an explanation's findings, which of them are one, and what is said of what cannot be told."""

from types import SimpleNamespace

import pytest

from jaxprof.analysis.explain import derive, sources
from jaxprof.analysis.explain.model import MOST_ABSTENTIONS, MOST_FINDINGS, Abstention, FindingCost, RankedFinding
from jaxprof.analysis.finding import Finding
from jaxprof.events import RunSpec
from jaxprof.session import Run


def finding(code, run="r1", *, fault=False, **cost):
    return RankedFinding(
        sentence=Finding(code, "", own_fix=""),
        cost=FindingCost(**{"scope": "call", **cost}),
        verify="",
        run=run,
        fault=fault,
    )


def explained(*findings, abstentions=()):
    return derive._explained("s", "runs", derive._Collected(list(findings), list(abstentions)))


@pytest.mark.parametrize(
    ("findings", "order"),
    [
        # faults first, then seconds that a change saves, then bytes
        (
            [
                finding("larger", bytes=9),
                finding("large", bytes=8),
                finding("some", seconds=2.0),
                finding("most", seconds=1.0, saves_seconds=3.0),
                finding("wrong", fault=True),
            ],
            "wrong most some larger large",
        ),
        ([finding("spared", seconds=9.0, saves_seconds=0.0), finding("some", seconds=1.0)], "some spared"),
        ([finding("unknown"), finding("large", bytes=8)], "large unknown"),
        # what saves only a part stands behind what surely costs as much
        ([finding("part", seconds=1.9, at_most=True), finding("sure", seconds=1.0)], "sure part"),
        ([finding("part", seconds=2.1, at_most=True), finding("sure", seconds=1.0)], "part sure"),
        ([finding("b", seconds=1.0), finding("a", seconds=1.0)], "a b"),
        # failures, slower sides and lines of a program are kept apart
        ([finding("layout-copy", "r1"), finding("layout-copy", "r2")], "layout-copy"),
        ([finding("run-failed", "r1"), finding("run-failed", "r2")], "run-failed run-failed"),
        ([finding("out-of-memory", "r1"), finding("out-of-memory", "r2")], "out-of-memory out-of-memory"),
        ([finding("slower", "r1"), finding("slower", "r2")], "slower slower"),
        ([finding("data_waits", "r1", scope="program"), finding("data_waits", "r2", scope="program")],
         "data_waits data_waits"),
        # copies are told once, by their kernels where these have a time
        ([finding("host-transfer", seconds=1.0), finding("copies-in-steps", seconds=1.0)], "host-transfer"),
        ([finding("host-transfer"), finding("copies-in-steps", seconds=1.0)], "copies-in-steps host-transfer"),
    ],
)  # fmt: skip
def test_the_order_of_findings_and_which_of_them_are_one(findings, order):
    assert [each.code for each in explained(*findings).findings] == order.split()


def test_a_finding_of_several_runs_is_told_of_the_one_where_it_costs_most():
    costs = {"r1": 1.0, "r2": 2.0, "r3": 1.5}
    (one,) = explained(*(finding("a", run, seconds=cost) for run, cost in costs.items()), finding("a")).findings
    assert (one.run, one.also) == ("r2", ("r3", "r1"))


def test_a_list_is_short_and_says_how_many_are_left_out():
    many = [finding(f"f{number}", seconds=1.0) for number in range(MOST_FINDINGS + 3)]
    assert (len(explained(*many).findings), explained(*many).left_out) == (MOST_FINDINGS, 3)
    assert explained(*many[:2]).left_out == 0
    doubts = tuple(Abstention(f"a{number}", "") for number in range(MOST_ABSTENTIONS + 2))
    assert explained(abstentions=doubts).abstentions == doubts[:MOST_ABSTENTIONS]
    twice = (Abstention("noise", "of r1"), Abstention("noise", "of r2"), Abstention("drift", "of r1"))
    assert explained(abstentions=twice).abstentions == (twice[0], twice[2])


def test_of_more_modules_than_are_read_it_is_said():
    found = derive._Collected()
    found.not_read(derive.MOST_MODULES)
    assert found.abstentions == []
    found.not_read(derive.MOST_MODULES + 2)
    assert [each.reason for each in found.abstentions] == ["the HLO of 2 more programs was not read"]


@pytest.mark.parametrize(("more", "launches"), [(7, 12), (None, 15), (400, 100)])
def test_a_comparison_without_a_verdict_is_measured_in_as_many_launches_as_decide_it(more, launches):
    side = Run("r2", RunSpec(workload="f", variant="jit", how="jit", device="cpu:0", side="B"))
    times = SimpleNamespace(launches=5, launches_to_decide=lambda: more, is_near=False)
    of = {"times": times, "label": "B", "reason": "", "run": side}
    versus = [SimpleNamespace(verdict=verdict, **of) for verdict in ("inconclusive", "faster", "same")]
    (told,) = sources.side_abstentions(SimpleNamespace(versus=versus), "s")
    assert told.command == f"jaxprof run --from s --launches {launches}"
