"""What jaxlib's profiler looks for while a capture starts and ends, and that nothing of it stays."""

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import pytest

from engine.measure.heard import only, reporter
from jaxprof.base.errors import JaxprofError
from jaxprof.engine.measure import capture
from jaxprof.engine.measure.capture import HOOK, capture_compile, capture_run, stand_in_for_tensorflow
from jaxprof.engine.measure.control import Cancelled
from jaxprof.engine.protocol.request import SCRATCH
from jaxprof.events import TrustReported


def test_the_stand_in_module_is_there_only_for_the_profiler(monkeypatch):
    monkeypatch.setattr(capture, "find_spec", lambda name: None)
    with stand_in_for_tensorflow():
        assert import_module(HOOK) is import_module("tensorflow").python.profiler.trace
    assert "tensorflow" not in {name.partition(".")[0] for name in sys.modules}


def captured(monkeypatch, call_seconds):
    """How many calls were made under the profiler, what was said, and what its profile is read with."""
    made, options = [], {}

    def take(recorder, kind, work, **given):
        work()
        options.update(given, kind=kind)

    readings = iter(range(1000))  # the clock goes on by a second whenever it is read
    monkeypatch.setattr(capture, "time", SimpleNamespace(perf_counter=lambda: float(next(readings))))
    monkeypatch.setattr(capture, "_capture", take)
    recorder, events = reporter()
    capture_run(recorder, lambda: made.append(1), call_seconds)
    return len(made), events, options


@pytest.mark.parametrize(("call_seconds", "calls"), [(0.0, 20), (0.015, 20), (0.03, 10), (0.1, 2), (0.2, 2), (20.0, 2)])
def test_calls_are_captured_for_a_third_of_a_second(monkeypatch, call_seconds, calls):
    made, events, options = captured(monkeypatch, call_seconds)
    assert made == calls
    assert options["calls"] == calls
    assert options["seconds"] == [1.0] * calls
    assert options["timed_seconds"] == call_seconds
    assert options["kind"] == "run"
    assert events == []


def test_a_call_that_is_too_long_to_repeat_is_told_as_no_data(monkeypatch):
    made, (event,), _ = captured(monkeypatch, 20.5)
    (row,) = event.rows
    assert made == 0
    assert event.kind == "run"
    assert row.code == "not_captured"
    assert "a call takes 20 s" in row.message


@pytest.mark.parametrize(("compile_seconds", "again"), [(30.0, True), (30.1, False)])
def test_a_compile_is_repeated_from_cold_unless_it_is_too_long(monkeypatch, compile_seconds, again):
    steps = []
    recorder, events = reporter()
    monkeypatch.setattr(capture, "_capture", lambda recorder, kind, work, **_: (steps.append(kind), work()))
    monkeypatch.setattr(capture, "jax", SimpleNamespace(clear_caches=lambda: steps.append("cleared")))
    capture_compile(recorder, lambda: steps.append("compiled"), compile_seconds)
    assert steps == (["cleared", "compile", "compiled"] if again else [])
    assert [event.rows[0].code for event in events] == ["not_captured"] * (not again)


def test_a_cancelled_run_makes_no_further_call_for_its_capture(monkeypatch):
    made = []
    recorder, _ = reporter()

    def call():
        made.append(1)
        if len(made) == 3:
            recorder.control.cancel()

    monkeypatch.setattr(capture, "_capture", lambda recorder, kind, work, **_: work())
    with pytest.raises(Cancelled):
        capture_run(recorder, call, 1e-3)
    assert len(made) == 3


class Profiler:
    """In the place of JAX's: writes a file, or raises where it is `broken`, and keeps how it was started."""

    def __init__(self, monkeypatch, broken="", *, writes=True):
        self.folders = []
        self.options = None
        self.running = False
        self._broken, self._writes = broken, writes
        monkeypatch.setattr(jax.profiler, "start_trace", self.start)
        monkeypatch.setattr(jax.profiler, "stop_trace", self.stop)

    def start(self, folder, *, profiler_options):
        if self._broken == "start":
            raise RuntimeError("Only one profile may be run at a time.")
        self.folders.append(Path(folder))
        self.options, self.running = profiler_options, True

    def stop(self):
        self.running = False
        if self._broken == "stop":
            raise RuntimeError("no")
        if self._writes:
            (self.folders[-1] / "host.xplane.pb").write_bytes(b"")


@pytest.mark.parametrize(
    ("broken", "writes", "why"),
    [
        ("start", True, "the profiler is in use already: Only one profile may be run at a time."),
        ("stop", True, "the profiler failed: no"),
        ("", False, "the profiler wrote no file"),
        ("", True, "the file is damaged"),
    ],
)
def test_a_failed_capture_is_no_data_and_the_run_goes_on(monkeypatch, broken, writes, why):
    profiler = Profiler(monkeypatch, broken, writes=writes)
    recorder, events = reporter()
    monkeypatch.setattr(capture, "read_profile", Mock(side_effect=JaxprofError("the file is damaged")))
    capture_run(recorder, lambda: None, 1.0, kind="attribution")
    told = only(events, TrustReported)
    assert (told.kind, [row.message for row in told.rows]) == ("attribution", [f"not captured: {why}"])
    assert not profiler.running
    assert not any(folder.exists() for folder in profiler.folders)


def test_a_capture_reads_the_profile_and_leaves_nothing(monkeypatch, tmp_path):
    """In the folder that the client gave, which removes it where this process is killed."""
    monkeypatch.setenv(SCRATCH, str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    profiler, read, under_profiler = Profiler(monkeypatch), [], []
    row = TrustReported(kind="run", rows=[])

    def derived(existed, kind, **given):
        read.append((existed, kind, given))
        return [row]

    monkeypatch.setattr(capture, "read_profile", Path.exists)
    monkeypatch.setattr(capture, "events_of", derived)
    recorder, events = reporter()
    capture_run(recorder, lambda: under_profiler.append(profiler.running), 1.0)
    assert under_profiler == [True] * 2
    assert (profiler.options.python_tracer_level, profiler.options.host_tracer_level) == (0, 2)
    ((existed, kind, given),) = read
    assert existed is True
    assert kind == "run"
    assert given["calls"] == 2
    assert given["timed_seconds"] == 1.0
    assert len(given["seconds_of_calls"]) == 2
    assert [event.type for event in events] == ["phase_started", "trust_reported", "phase_ended"]
    assert all(folder.parent == tmp_path / "scratch" for folder in profiler.folders)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_captured_calls_error_stops_the_profiler(monkeypatch):
    profiler = Profiler(monkeypatch)

    with pytest.raises(ValueError, match="of the user's"):
        capture_run(reporter()[0], Mock(side_effect=ValueError("of the user's")), 1.0)
    assert not profiler.running
    assert not profiler.folders[0].exists()
