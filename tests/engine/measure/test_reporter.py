"""A phase is reported with what is known of it at its end, and never as longer or surer than it was."""

from types import SimpleNamespace

import pytest

from engine.measure import heard
from jaxprof.engine.measure import control as reporting
from jaxprof.engine.measure.control import Cancelled
from jaxprof.events import PhaseEnded, PhaseStarted


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Every look at it is a second later."""
    seconds = iter(range(100))
    monkeypatch.setattr(reporting, "time", SimpleNamespace(perf_counter=lambda: float(next(seconds))))


def test_a_phase_takes_as_long_as_its_block_unless_it_knows_better():
    reporter, events = heard.reporter()
    with reporter.phase("compile") as phase:
        assert reporter.current_phase == "compile"
        assert events == [PhaseStarted(phase="compile")]
        phase.bytes, phase.zero_copy, phase.note = 7, False, "cold"
    assert events[-1] == PhaseEnded(phase="compile", seconds=1.0, bytes=7, zero_copy=False, note="cold")
    assert reporter.current_phase == ""
    with reporter.phase("run") as phase:
        phase.seconds = 0.0
    assert events[-1].seconds == 0.0
    with reporter.phase("import") as phase:
        phase.measured = False
    assert events[-1].seconds is None


def test_a_phase_that_fails_has_no_end_and_stays_the_place_where_it_happened():
    reporter, events = heard.reporter()
    with pytest.raises(ValueError, match="in it"), reporter.phase("compile"):
        raise ValueError("in it")
    assert [event.type for event in events] == ["phase_started"]
    assert reporter.current_phase == "compile"


def test_a_cancelled_run_begins_no_phase():
    reporter, events = heard.reporter()
    reporter.control.cancel()
    with pytest.raises(Cancelled), reporter.phase("compile"):
        pytest.fail("it began")
    assert events == []
