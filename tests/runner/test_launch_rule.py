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


def plan(side: str, **fields: Any) -> PlannedRun:
    spec = e.RunSpec(workload="selu", variant="jit", how="jit", device="cpu:0", side=side)
    return PlannedRun(spec=spec, **fields)


def session() -> Session:
    made = Session(new_header())
    for run, side in (("r1", "A"), ("r2", "B")):
        spec = e.RunSpec(
            workload="selu", variant="jit", how="jit", device="cpu:0", side=side, baseline="" if run == "r1" else "r1"
        )
        made.apply(e.RunPlanned(run=run, spec=spec))
    return made


def test_only_sides_of_a_comparison_have_a_rule() -> None:
    assert LaunchRule.of([plan("")]) is None
    assert LaunchRule.of([plan("A")]) is not None


def test_no_launch_begins_that_would_not_end_in_time() -> None:
    clock = Clock()
    rule = LaunchRule(60.0, None, clock)
    for clock.seconds in (12.0, 24.0, 36.0):
        assert not rule.ends(session(), ["r1", "r2"])
    clock.seconds = 50.0
    assert rule.ends(session(), ["r1", "r2"]), "the fourth launch took 14 s, and 10 s are left"


def test_turns_are_so_short_that_five_launches_fit() -> None:
    clock = Clock()
    rule = LaunchRule(60.0, None, clock)
    clock.seconds = 11.0
    assert not rule.is_over(turns_seconds=5.0)
    clock.seconds = 12.0
    assert rule.is_over(turns_seconds=5.0), "a fifth of the time, with the start of its processes"
    assert not rule.ends(session(), ["r1", "r2"])
    clock.seconds = 23.0
    assert not rule.is_over(turns_seconds=5.0)
    clock.seconds = 24.0
    assert rule.is_over(turns_seconds=5.0)


def test_the_turns_of_a_launch_show_something_however_long_it_took_to_start() -> None:
    clock = Clock()
    rule = LaunchRule(60.0, None, clock)
    clock.seconds = 100.0
    assert not rule.is_over(turns_seconds=0.9 * LEAST_TURNS_SECONDS)
    assert rule.is_over(turns_seconds=LEAST_TURNS_SECONDS)


def test_there_are_three_launches_before_the_time_counts() -> None:
    clock = Clock()
    rule = LaunchRule(20.0, None, clock)
    for clock.seconds in (15.0, 30.0):
        assert not rule.ends(session(), ["r1", "r2"]), "two say next to nothing"
    clock.seconds = 45.0
    assert rule.ends(session(), ["r1", "r2"])


def test_where_three_would_take_minutes_there_is_one() -> None:
    clock = Clock()
    rule = LaunchRule(60.0, None, clock)
    clock.seconds = 45.0
    assert rule.ends(session(), ["r1", "r2"]), "three would take 135 s"


def test_a_third_launch_that_would_take_too_long_does_not_begin() -> None:
    clock = Clock()
    rule = LaunchRule(60.0, None, clock)
    clock.seconds = 20.0
    assert not rule.ends(session(), ["r1", "r2"])
    clock.seconds = 90.0
    assert rule.ends(session(), ["r1", "r2"]), "the second took 70 s, and 30 s are left"


def test_without_limits_all_launches_are_measured() -> None:
    clock = Clock()
    rule = LaunchRule(None, None, clock)
    for clock.seconds in (100.0, 1e6):
        assert not rule.ends(session(), ["r1", "r2"])
        assert not rule.is_over()


def test_a_width_ends_them_after_three(monkeypatch: pytest.MonkeyPatch) -> None:
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
