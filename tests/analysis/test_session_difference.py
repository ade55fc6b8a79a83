"""What happens once in a process, of two runs of one session: compared over their launches. Which runs of a session are
the sides of which comparison, and what each is beside A."""

from __future__ import annotations

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.analysis.ab import ab_result, ab_results, side_versus, sides_beside
from jaxprof.analysis.difference import FigureDifference, figures, pairs
from jaxprof.analysis.session_difference import PhaseDifference, session_difference
from jaxprof.session import Session
from jaxprof.stats import MARGIN
from report import sessions


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
    assert times.reason() == "one launch, not in turns"


def test_runs_that_were_not_measured_together_are_said_so() -> None:
    assert phases(session_of(4, baseline=""))["compile"].times.reason() == "not measured together"


def test_a_pair_is_made_by_the_best_key_and_says_whether_its_content_is_the_same() -> None:
    found = pairs(["a1", "b1", "c1"], ["b2", "a1", "d1"], [lambda one: one, lambda one: one[0]], lambda one: one)
    assert [(pair.status, pair.before, pair.after, pair.either) for pair in found] == [
        ("changed", "b1", "b2", "b2"),
        ("same", "a1", "a1", "a1"),
        ("new", None, "d1", "d1"),
        ("gone", "c1", None, "c1"),
    ]


def test_what_one_side_has_alone_is_its_whole_part_of_the_difference() -> None:
    found = pairs([1j, 2 + 0j], [3 + 0j], [lambda one: one.imag], lambda one: one)
    assert [pair.part("real") for pair in found] == [1.0, 0.0]
    assert [pair.part("imag") for pair in found] == [0.0, -1.0]


def test_a_figure_that_a_side_does_not_know_does_not_differ() -> None:
    found = figures({"a": 1.0, "b": 2.0}, {"b": 3.0, "c": None}, "second")
    assert [(one.code, one.differs, one.growth) for one in found] == [
        ("a", None, None),
        ("b", True, 0.5),
        ("c", None, None),
    ]
    assert FigureDifference("a", 0.0, 1.0).growth is None


def side(run: str, label: str, baseline: str = "", median: float = 1e-3, status: str = "ok") -> list[e.Event]:
    """A run in blocks, which were not taken in turns with those of others."""
    spec = e.RunSpec(workload=f"m.py:{label}", variant="jit", how="jit", device="cpu:0", side=label, baseline=baseline)
    if not label:
        spec = e.RunSpec(workload="selu", variant="jit", how="jit", device="cpu:0")
    return [
        e.RunPlanned(run=run, spec=spec),
        *[e.SamplesTaken(run=run, series="run", seconds=[median * (1 + 0.001 * at)] * 3, block=at) for at in range(8)],
        e.RunFinished(run=run, status=status),
    ]


PLANNED = e.ComparisonPlanned(
    run="r1",
    sides=[e.SideSpec(label="A", title="the old one"), e.SideSpec(label="B", title="the new one")],
    margin=0.03,
)
EVENTS = [
    *side("r1", "A"),
    PLANNED,
    *side("r3", "B", "r1", 2e-3),
    *side("r4", ""),
    *side("r5", "A"),
    *side("r6", "B", "r5", status="failed"),
]


@pytest.fixture
def session() -> Session:
    return fold(sessions.HEADER, EVENTS)


def test_a_session_may_hold_several_comparisons_each_with_its_own_sides(session: Session) -> None:
    first, second = ab_results(session)
    assert [side.run.id for side in first.sides] == ["r1", "r3"]
    assert [versus.label for versus in first.versus] == ["B"]
    assert (first.baseline.id, first.plan) == ("r1", PLANNED)
    assert first.failed == ()
    assert [side.run.id for side in second.failed] == ["r6"]
    with pytest.raises(KeyError):
        ab_result(session, "r9")


def test_a_comparison_that_nobody_planned_in_words_has_its_sides_and_the_usual_margin(session: Session) -> None:
    plan = ab_results(session)[1].plan
    assert [(each.label, each.title) for each in plan.sides] == [("A", "m.py:A"), ("B", "m.py:B")]
    assert plan.margin == MARGIN
    without = [event for event in EVENTS if event is not PLANNED]
    (first, _) = ab_results(fold(sessions.HEADER, without))
    assert [each.label for each in first.plan.sides] == ["A", "B"]


def test_why_nothing_may_be_said_of_a_side(session: Session) -> None:
    (versus,) = ab_results(session)[0].versus
    assert versus.times.ratio == pytest.approx(0.5)
    assert (versus.verdict, versus.reason) == ("inconclusive", "not measured together")
    unmeasured = [event for event in EVENTS if not (isinstance(event, e.SamplesTaken) and event.run == "r3")]
    (versus,) = ab_results(fold(sessions.HEADER, unmeasured))[0].versus
    assert (versus.verdict, versus.reason) == ("inconclusive", "a side has no samples")


def test_the_sides_beside_a_run_are_those_of_its_own_comparison(session: Session) -> None:
    def beside(run: str) -> list[str]:
        return [side.id for side in sides_beside(session, session.runs[run])]

    for run in ("r1", "r3"):
        assert beside(run) == ["r1", "r3"]
    assert beside("r5") == beside("r6") == ["r5", "r6"]
    assert beside("r4") == []


def test_two_runs_are_sides_beside_each_other_only_as_a_and_what_was_compared_with_it(session: Session) -> None:
    runs = session.runs
    versus = side_versus(session, runs["r1"], runs["r3"])
    assert (versus.run.id, versus.times.ratio) == ("r3", pytest.approx(0.5))
    for before, after in (("r3", "r1"), ("r1", "r6"), ("r1", "r4"), ("r4", "r3")):
        assert side_versus(session, runs[before], runs[after]) is None
    other = fold(sessions.HEADER, EVENTS)
    assert side_versus(session, other.runs["r1"], runs["r3"]) is None, "of two sessions"
    assert side_versus(session, runs["r1"], other.runs["r3"]) is None
