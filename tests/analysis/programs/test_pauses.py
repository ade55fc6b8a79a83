"""Stops that were seen from outside and from within are told once."""

import pytest

import program_events
from golden import figures_text, held_cases
from jaxprof import events as e
from jaxprof.analysis.programs.pauses import pauses

RUN, BEGAN = program_events.RUN, program_events.BEGAN


def stop(at, seconds, found_by="state"):
    """A stop that began `at` seconds after the program."""
    return e.ProgramStopped(run=RUN, began_seconds=BEGAN + at, seconds=seconds, found_by=found_by)


SEEN = {
    "the same stop twice is one whose cause is known": (stop(4.0, 1.0), stop(4.1, 0.95, "standstill")),
    "by the times that are surer": (stop(4.0, 1.2, "standstill"), stop(4.1, 1.0)),
    "one after the other they are several": (stop(8.0, 0.5, "standstill"), stop(4.0, 1.0)),
    "a machine that slept is a time of its own": (stop(4.0, 3600.0, "clock"), stop(5.0, 1.0)),
    "a moment is not worth a word": (stop(4.0, 0.1),),
    "of a later version": (stop(4.0, 1.0, "hypervisor"),),
    "a processor that was given to others": (stop(4.0, 3.0, "pressure"),),
}


def test_what_a_pause_is():
    assert all(pauses(seen, BEGAN) == pauses(seen[::-1], BEGAN) for seen in SEEN.values())
    held_cases("pauses.txt", {case: figures_text(*pauses(seen, BEGAN)) for case, seen in SEEN.items()})


def test_several_are_one_finding_for_each_cause():
    seen = (stop(4.0, 1.0), stop(7.0, 2.0), stop(12.0, 1.0, "standstill"), stop(20.0, 60.0, "clock"))
    ran = program_events.result(*program_events.steady(3, {"device_busy": 1.0}))
    stood = program_events.result(*program_events.steady(3, {"device_busy": 1.0, "stopped": 0.5}), *seen)
    assert stood.active_seconds == pytest.approx(ran.active_seconds), "stopped time is no work"
    by_signal, still, slept = (each for each in stood.findings if each.code == "stopped")
    assert by_signal.message == "paused for 3.00 s by a signal, 2 times, first 4.00 s after it began"
    assert (by_signal.seconds, still.seconds) == (3.0, 1.0)
    assert slept.seconds is None, "what the machine slept is in no other time"
