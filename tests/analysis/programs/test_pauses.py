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


@pytest.mark.parametrize(
    ("seen", "pauses"),
    [
        # the same stop twice is one whose cause is known
        ((stop(4.0, 1.0), stop(4.1, 0.95, "standstill")), [(4.0, 1.0, SIGNAL)]),
        ((stop(4.0, 1.2, "standstill"), stop(4.1, 1.0)), [(4.1, 1.0, SIGNAL)]),
        # one after the other they are several
        ((stop(8.0, 0.5, "standstill"), stop(4.0, 1.0)), [(4.0, 1.0, SIGNAL), (8.0, 0.5, UNKNOWN)]),
        # a machine that slept is a time of its own
        ((stop(4.0, 3600.0, "clock"), stop(5.0, 1.0)), [(4.0, 3600.0, SUSPENDED), (5.0, 1.0, SIGNAL)]),
        ((stop(4.0, 0.1),), []),  # a moment is not worth a word
        ((stop(4.0, 1.0, "hypervisor"),), [(4.0, 1.0, UNKNOWN)]),  # of a later version
        ((stop(4.0, 3.0, "pressure"),), []),  # a processor that was given to others
    ],
)
def test_what_a_pause_is(seen, pauses):
    assert found(*seen) == found(*seen[::-1]) == pauses


def result(*seen: e.ProgramStopped) -> program_events.ProgramResult:
    windows = program_events.steady(3, {"device_busy": 1.0, "stopped": 0.5} if seen else {"device_busy": 1.0})
    return program_events.result(*windows, *seen)


def test_several_are_one_finding_for_each_cause():
    seen = (stop(4.0, 1.0), stop(7.0, 2.0), stop(12.0, 1.0, "standstill"), stop(20.0, 60.0, "clock"))
    by_signal, still, slept = (each for each in result(*seen).findings if each.code == "stopped")
    assert by_signal.message == "paused for 3.00 s by a signal, 2 times, first 4.00 s after it began"
    assert (by_signal.seconds, still.seconds) == (3.0, 1.0)
    assert slept.seconds is None, "what the machine slept is in no other time"


def test_stopped_time_is_no_work():
    ran, stood = result(), result(stop(4.0, 1.5))
    assert stood.share("stopped").seconds == 1.5
    assert stood.active_seconds == pytest.approx(ran.active_seconds)
