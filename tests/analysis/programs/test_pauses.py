"""Stops that were seen from outside and from within are told once."""

from __future__ import annotations

import pytest

import program_events
from jaxprof import events as e
from jaxprof.analysis.programs.pauses import SIGNAL, SUSPENDED, UNKNOWN, pauses

RUN, BEGAN = program_events.RUN, program_events.BEGAN


def stop(at: float, seconds: float, found_by: str = "state") -> e.ProgramStopped:
    """A stop that began `at` seconds after the program."""
    return e.ProgramStopped(run=RUN, began_seconds=BEGAN + at, seconds=seconds, found_by=found_by)


def found(*seen: e.ProgramStopped) -> list[tuple[float, float, str]]:
    rows = pauses(seen, BEGAN)
    return [(round(row.began_seconds, 6), round(row.seconds, 6), row.cause) for row in rows]


@pytest.mark.parametrize("order", [1, -1])
def test_the_same_stop_twice_is_one_whose_cause_is_known(order: int) -> None:
    assert found(*[stop(4.0, 1.0), stop(4.1, 0.95, "standstill")][::order]) == [(4.0, 1.0, SIGNAL)]
    assert found(*[stop(4.1, 1.0), stop(4.0, 1.2, "standstill")][::order]) == [(4.1, 1.0, SIGNAL)]


def test_stops_one_after_the_other_are_several() -> None:
    assert found(stop(8.0, 0.5, "standstill"), stop(4.0, 1.0)) == [(4.0, 1.0, SIGNAL), (8.0, 0.5, UNKNOWN)]


def test_a_machine_that_slept_is_a_time_of_its_own() -> None:
    assert found(stop(4.0, 3600.0, "clock"), stop(5.0, 1.0)) == [(4.0, 3600.0, SUSPENDED), (5.0, 1.0, SIGNAL)]


def test_a_moment_is_not_worth_a_word() -> None:
    assert found(stop(4.0, 0.1)) == []


def test_a_way_of_finding_it_of_a_later_version_has_no_known_cause() -> None:
    assert found(stop(4.0, 1.0, "hypervisor")) == [(4.0, 1.0, UNKNOWN)]


def result(*seen: e.ProgramStopped) -> program_events.ProgramResult:
    windows = program_events.steady(3, {"device_busy": 1.0, "stopped": 0.5} if seen else {"device_busy": 1.0})
    return program_events.result(*windows, *seen)


def messages(*seen: e.ProgramStopped) -> list[str]:
    return [finding.message for finding in result(*seen).findings if finding.code == "stopped"]


def test_a_processor_that_was_given_to_others_is_no_stop() -> None:
    assert pauses([e.ProgramStopped(began_seconds=102.0, seconds=3.0, found_by="pressure")], 100.0) == ()


def test_a_stop_is_a_finding_of_its_own() -> None:
    assert messages(stop(4.0, 1.0)) == ["paused for 1.00 s by a signal, 4.00 s after it began"]
    assert messages() == []


def test_several_are_one_finding_for_each_cause() -> None:
    seen = (stop(4.0, 1.0), stop(7.0, 2.0), stop(12.0, 1.0, "standstill"), stop(20.0, 60.0, "clock"))
    by_signal, still, slept = messages(*seen)
    assert by_signal == "paused for 3.00 s by a signal, 2 times, first 4.00 s after it began"
    assert still.startswith("paused for 1.00 s, 12.0 s after it began")
    assert slept == "the machine was suspended for 60.0 s, 20.0 s after it began"
    costs = [each.seconds for each in result(*seen).findings if each.code == "stopped"]
    assert sorted(costs, key=str) == [1.0, 3.0, None]  # what the machine slept is in no other time


def test_stopped_time_is_no_work() -> None:
    ran, stood = result(), result(stop(4.0, 1.5))
    assert stood.share("stopped").seconds == 1.5
    assert stood.active_seconds == pytest.approx(ran.active_seconds)
