"""A profile read in a thread, as on Windows: its runs, its end however it comes, and no other work."""

import threading
from unittest.mock import Mock

import pytest

from hlo_sources import write_kernels
from jaxprof.engine.protocol.request import OpenTraceRequest
from jaxprof.events import Event, KernelsMeasured, RunFinished
from jaxprof.runner.engine_run import ProfileReader
from jaxprof.trace import imported


@pytest.fixture
def profile(tmp_path):
    return write_kernels(tmp_path / "box.xplane.pb")


def all_of(reader):
    """Until its last word, and not for ever."""
    found = []
    while not any(isinstance(event, RunFinished) and event.run == "r1" for event in found):
        items = reader.read(10.0)
        assert items, "no sign for ten seconds"
        found += [item for item in items if isinstance(item, Event)]
    return found


def read(path):
    reader = ProfileReader()
    assert reader.alive
    reader.send(OpenTraceRequest(run="r1", path=str(path)))
    found = all_of(reader)
    while reader.alive:
        assert reader.read(0.1) == []
    return found


def last(events):
    assert isinstance(events[-1], RunFinished)
    return events[-1]


def test_every_event_names_its_run_and_its_time(profile):
    events = read(profile)
    assert last(events).status == "ok"
    assert any(isinstance(event, KernelsMeasured) for event in events)
    assert {event.run for event in events} >= {"r1"}
    assert "" not in {event.run for event in events}
    times = [event.monotonic_seconds for event in events]
    assert times == sorted(times)
    assert times[0] > 0


def test_a_file_that_is_none_fails_with_what_mends_it(tmp_path):
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(b"")
    ended = last(read(path))
    assert (ended.status, bool(ended.error), bool(ended.advice)) == ("failed", True, True)


def test_whatever_a_reader_raises_is_the_result(profile, monkeypatch):
    monkeypatch.setattr(imported, "import_profile", Mock(side_effect=ZeroDivisionError("in the middle")))
    ended = last(read(profile))
    assert (ended.status, ended.error) == ("failed", "ZeroDivisionError: in the middle")


@pytest.mark.parametrize("end", [ProfileReader.cancel, ProfileReader.kill, ProfileReader.close])
def test_it_stops_at_the_next_piece(end, profile, monkeypatch):
    begun, asked = threading.Event(), threading.Event()

    def waits(path, run, emit, check, **options):
        begun.set()
        assert asked.wait(20)
        check()
        raise AssertionError("it went on")

    monkeypatch.setattr(imported, "import_profile", waits)
    reader = ProfileReader()
    reader.send(OpenTraceRequest(run="r1", path=str(profile)))
    assert begun.wait(20)
    end(reader)
    asked.set()
    assert last(all_of(reader)).status == "cancelled"
    assert reader.cancelled
