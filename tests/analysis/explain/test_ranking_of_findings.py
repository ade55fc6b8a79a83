"""The order of an explanation's findings, which of them are one, and what is said of what cannot be told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jaxprof.analysis.explain import derive, sources
from jaxprof.analysis.explain.model import (
    MOST_ABSTENTIONS,
    MOST_FINDINGS,
    Abstention,
    Explanation,
    FindingCost,
    RankedFinding,
)
from jaxprof.analysis.finding import Finding
from jaxprof.events import RunSpec
from jaxprof.session import Run


def finding(code: str, run: str = "r1", *, fault: bool = False, **cost: Any) -> RankedFinding:
    return RankedFinding(
        sentence=Finding(code, "", ""),
        cost=FindingCost(**{"scope": "call", **cost}),
        verify="",
        run=run,
        fault=fault,
    )


def explained(*findings: RankedFinding, abstentions: tuple[Abstention, ...] = ()) -> Explanation:
    return derive._explained("s", "runs", derive._Collected(list(findings), list(abstentions)))


def codes(*findings: RankedFinding) -> list[str]:
    return [each.code for each in explained(*findings).findings]


def test_faults_come_first_then_seconds_that_a_change_saves_then_bytes() -> None:
    assert codes(
        finding("unknown"),
        finding("large", bytes=8),
        finding("larger", bytes=9),
        finding("some", seconds=2.0),
        finding("most", seconds=1.0, saves_seconds=3.0),
        finding("wrong", fault=True),
    ) == ["wrong", "most", "some", "larger", "large"]
    assert codes(finding("spared", seconds=9.0, saves_seconds=0.0), finding("some", seconds=1.0)) == ["some", "spared"]


def test_what_saves_only_a_part_stands_behind_what_surely_costs_as_much() -> None:
    def order(at_most: float) -> list[str]:
        return codes(finding("part", seconds=at_most, at_most=True), finding("sure", seconds=1.0))

    assert order(1.9) == ["sure", "part"]
    assert order(2.1) == ["part", "sure"]


def test_of_equal_ones_the_order_is_that_of_their_names_whatever_they_came_in() -> None:
    assert codes(finding("b", seconds=1.0), finding("a", seconds=1.0)) == ["a", "b"]


def test_a_finding_of_several_runs_is_told_of_the_one_where_it_costs_most() -> None:
    given = [finding("a", "r1", seconds=1.0), finding("a", "r2", seconds=2.0), finding("a", "r3", seconds=1.5)]
    (one,) = explained(*given, finding("a", "r1", seconds=0.5)).findings
    assert (one.run, one.also) == ("r2", ("r3", "r1"))
    (one,) = explained(finding("a", seconds=1.0), finding("a", seconds=2.0)).findings
    assert one.also == (), "twice in one run"


@pytest.mark.parametrize(
    ("code", "scope", "count"),
    [("layout-copy", "call", 1), ("run-failed", "call", 2), ("out-of-memory", "call", 2), ("slower", "call", 2),
     ("varying_shapes", "program", 2)],
)  # fmt: skip
def test_failures_slower_sides_and_lines_of_a_program_are_kept_apart(code: str, scope: str, count: int) -> None:
    found = explained(finding(code, "r1", scope=scope), finding(code, "r2", scope=scope)).findings
    assert len(found) == count


@pytest.mark.parametrize(("seconds", "told"), [(1.0, ["host-transfer"]), (None, ["copies-in-steps", "host-transfer"])])
def test_copies_are_told_once_by_their_kernels_where_these_have_a_time(seconds: float | None, told: list[str]) -> None:
    assert codes(finding("host-transfer", seconds=seconds), finding("copies-in-steps", seconds=1.0)) == told


def test_a_list_is_short_and_says_how_many_are_left_out() -> None:
    many = [finding(f"f{number}", seconds=1.0) for number in range(MOST_FINDINGS + 3)]
    assert (len(explained(*many).findings), explained(*many).left_out) == (MOST_FINDINGS, 3)
    assert explained(*many[:2]).left_out == 0
    doubts = tuple(Abstention(f"a{number}", "") for number in range(MOST_ABSTENTIONS + 2))
    assert explained(abstentions=doubts).abstentions == doubts[:MOST_ABSTENTIONS]
    twice = (Abstention("noise", "of r1"), Abstention("noise", "of r2"), Abstention("drift", "of r1"))
    assert explained(abstentions=twice).abstentions == (twice[0], twice[2])


def test_of_more_modules_than_are_read_it_is_said() -> None:
    found = derive._Collected()
    found.not_read(derive.MOST_MODULES)
    assert found.abstentions == []
    found.not_read(derive.MOST_MODULES + 2)
    assert [each.reason for each in found.abstentions] == ["the HLO of 2 more programs was not read"]


@pytest.mark.parametrize(
    ("verdict", "more", "command"),
    [
        ("inconclusive", 7, "jaxprof run --from s --launches 12"),
        ("inconclusive", None, "jaxprof run --from s --launches 15"),
        ("inconclusive", 400, "jaxprof run --from s --launches 100"),
        ("faster", None, ""),
        ("same", None, ""),
    ],
)
def test_a_comparison_without_a_verdict_is_measured_in_as_many_launches_as_decide_it(
    verdict: str, more: int | None, command: str
) -> None:
    side = Run("r2", RunSpec(workload="f", variant="jit", how="jit", device="cpu:0", side="B"))
    times = SimpleNamespace(launches=5, launches_to_decide=lambda: more, is_near=False)
    versus = SimpleNamespace(verdict=verdict, times=times, label="B", reason="", run=side)
    compared: Any = SimpleNamespace(versus=[versus])
    told = list(sources.side_abstentions(compared, "s"))
    assert [each.command for each in told] == ([command] if command else [])
    if told:
        assert told[0].reason == "whether B is faster than A: the interval holds both"
        times.is_near = True
        assert next(sources.side_abstentions(compared, "s")).reason.startswith("whether B is as fast as A: ")
