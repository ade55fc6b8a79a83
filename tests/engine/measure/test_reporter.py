"""A phase is reported with what is known of it at its end, and never as longer or surer than it was."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from jaxprof.engine.measure import control as reporting
from jaxprof.engine.measure.control import Cancelled, Reporter, RunControl
from jaxprof.events import Event, PhaseEnded, PhaseStarted, ProgressMade, WarningRaised


@pytest.fixture
def reporter(monkeypatch: pytest.MonkeyPatch) -> Reporter:
    """Every look at the clock is a second later; what is emitted is in `events`."""
    seconds = iter(range(100))
    monkeypatch.setattr(reporting, "time", SimpleNamespace(perf_counter=lambda: float(next(seconds))))
    events: list[Event] = []
    made = Reporter(events.append, RunControl())
    made.events = events  # type: ignore[attr-defined]
    return made


def ended(reporter: Reporter) -> PhaseEnded:
    return next(event for event in reversed(reporter.events) if isinstance(event, PhaseEnded))  # type: ignore[attr-defined]


def test_a_phase_takes_as_long_as_its_block_unless_it_knows_better(reporter: Reporter) -> None:
    with reporter.phase("compile") as phase:
        assert reporter.current_phase == "compile"
        assert reporter.events == [PhaseStarted(phase="compile")]  # type: ignore[attr-defined]
        phase.bytes, phase.zero_copy, phase.note = 7, False, "cold"
    assert ended(reporter) == PhaseEnded(phase="compile", seconds=1.0, bytes=7, zero_copy=False, note="cold")
    assert reporter.current_phase == ""
    with reporter.phase("run") as phase:
        phase.seconds = 0.0
    assert ended(reporter).seconds == 0.0
    with reporter.phase("import") as phase:
        phase.measured = False
    assert ended(reporter).seconds is None


def test_a_phase_that_fails_has_no_end_and_stays_the_place_where_it_happened(reporter: Reporter) -> None:
    with pytest.raises(ValueError, match="in it"), reporter.phase("compile"):
        raise ValueError("in it")
    assert [event.type for event in reporter.events] == ["phase_started"]  # type: ignore[attr-defined]
    assert reporter.current_phase == "compile"


def test_a_cancelled_run_begins_no_phase(reporter: Reporter) -> None:
    reporter.control.cancel()
    with pytest.raises(Cancelled), reporter.phase("compile"):
        pytest.fail("it began")
    assert reporter.events == []  # type: ignore[attr-defined]


def test_what_was_measured_elsewhere_and_what_is_said_meanwhile(reporter: Reporter) -> None:
    reporter.ended("trace", 0.25)
    reporter.warn("noisy", "it is noisy", "be quiet")
    reporter.progress("half of it", 0.5, 3.0)
    assert reporter.events == [  # type: ignore[attr-defined]
        PhaseEnded(phase="trace", seconds=0.25),
        WarningRaised(code="noisy", message="it is noisy", advice="be quiet"),
        ProgressMade(note="half of it", fraction=0.5, remaining_seconds=3.0),
    ]
