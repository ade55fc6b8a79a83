"""When launches end: by width or by time, never by a verdict."""

from __future__ import annotations

from typing import Any

import pytest

from jaxprof import events as e
from jaxprof.analysis import speedup
from jaxprof.runner import PlannedRun
from jaxprof.runner.turns import LEAST_TURNS_SECONDS, LaunchRule
from jaxprof.session import Session
from jaxprof.session.log import new_header
from jaxprof.stats import compare, narrow_enough


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def spec(side: str, **more: Any) -> e.RunSpec:
    return e.RunSpec(workload="selu", variant="jit", how="jit", device="cpu:0", side=side, **more)


def session() -> Session:
    made = Session(new_header())
    made.apply(e.RunPlanned(run="r1", spec=spec("A")))
    made.apply(e.RunPlanned(run="r2", spec=spec("B", baseline="r1")))
    return made


def test_only_sides_of_a_comparison_have_a_rule():
    assert LaunchRule.of([PlannedRun(spec=spec(""))]) is None
    assert LaunchRule.of([PlannedRun(spec=spec("A"))]) is not None


@pytest.mark.parametrize(
    ("budget", "launches_end_at", "over"),
    [
        (60.0, [12.0, 24.0, 36.0, 50.0], [False, False, False, True]),  # the fourth took 14 s, and 10 s are left
        (20.0, [15.0, 30.0, 45.0], [False, False, True]),  # two say next to nothing
        (60.0, [45.0], [True]),  # three would take 135 s
        (60.0, [20.0, 90.0], [False, True]),  # the second took 70 s, and 30 s are left
        (None, [100.0, 1e6], [False, False]),
    ],
    ids=["would not end in time", "three before the time counts", "one of minutes", "a third too long", "no limit"],
)
def test_launches_end_by_time(budget, launches_end_at, over):
    clock = Clock()
    rule, found = LaunchRule(budget, None, clock), []
    for clock.seconds in launches_end_at:
        found.append(rule.ends(session(), ["r1", "r2"]))
    assert found == over
    assert budget is not None or not rule.is_over()


def test_turns_are_so_short_that_five_launches_fit():
    clock = Clock()
    rule = LaunchRule(60.0, None, clock)
    for launch in (1, 2):  # each has a fifth of the time, with the start of its processes
        clock.seconds = 12.0 * launch - 1.0
        assert not rule.is_over(turns_seconds=5.0)
        clock.seconds = 12.0 * launch
        assert rule.is_over(turns_seconds=5.0)
        assert not rule.ends(session(), ["r1", "r2"])
    clock.seconds = 100.0
    assert not rule.is_over(turns_seconds=0.9 * LEAST_TURNS_SECONDS), "they show something, however long it started"
    assert rule.is_over(turns_seconds=LEAST_TURNS_SECONDS)


def test_a_width_ends_them_after_three(monkeypatch):
    looked: list[str] = []

    def narrow(comparison: Any, wanted: float) -> bool:
        assert wanted == 0.02
        return True

    def compared(session: Session, baseline: Any, run: Any) -> Any:
        looked.append(run.plan.side)
        return compare([])

    monkeypatch.setattr(speedup, "compared", compared)
    monkeypatch.setattr("jaxprof.stats.narrow_enough", narrow)
    rule = LaunchRule(None, 0.02, Clock())
    assert [rule.ends(session(), ["r1", "r2"]) for _ in range(3)] == [False, False, True]
    assert looked == ["B"]
    monkeypatch.setattr("jaxprof.stats.narrow_enough", narrow_enough)
    assert not rule.ends(session(), ["r1", "r2"]), "nothing measured is not narrow"
