"""One worker at a run: how its end is told. A profile read in a thread, as on Windows: its runs, its end however it
comes, and no other work."""

import threading
import time
from unittest.mock import Mock

import pytest

from hlo_sources import write_kernels
from jaxprof import events as e
from jaxprof.engine.protocol.request import OpenTraceRequest, TurnsOverRequest
from jaxprof.errors import WorkerError
from jaxprof.runner.child import Exit
from jaxprof.runner.engine_process import EngineProcess
from jaxprof.runner.engine_run import EngineRun, ProfileReader
from jaxprof.runner.session_recorder import DeviceWatch, SessionRecorder
from jaxprof.session.log import LogWriter, new_header
from jaxprof.trace import imported


class Gone(EngineProcess):
    """A worker that ended before anything could be sent to it."""

    def __init__(self, last, *, cancelled):
        self.over = False
        self.last_sign_seconds = 0.0
        self._last = last
        self._cancelled_seconds = 1.0 if cancelled else None

    def send(self, request):
        raise WorkerError("the worker is gone")

    def read(self, timeout_seconds):
        last, self._last = self._last, []
        self.over = True
        return last

    def explain(self):
        return Exit("killed by SIGTERM", "")


class Waiting(EngineProcess):
    """A worker of which nothing can be read any more but heartbeats, a second apart."""

    def __init__(self, runs):
        self.killed = self.over = False
        self.last_sign_seconds = self._now = time.monotonic()
        self._runs = iter(runs)
        self._cancelled_seconds = self._kill_reason = self._mute_seconds = None
        self._idle_heartbeats, self._requested_seconds, self._run = 0, self._now, "r1"

    def read(self, timeout_seconds):
        self._now += 1
        self.over = self.killed
        events = self._events_in(e.encode(e.Heartbeat(run=next(self._runs), monotonic_seconds=self._now)))
        return events + self._after_read()

    def kill(self):
        self.killed = True

    def _watched(self):
        return {"events": 3}


def followed(process, *requests):
    recorder = SessionRecorder(LogWriter(new_header(), None), lambda batch: None)
    recorder.emit(e.RunPlanned(run="r1", spec=e.RunSpec(workload="w", variant="v", how="jit", device="none:0")))
    engine = EngineRun("r1", process, recorder, DeviceWatch("python", "none:0"), let_go=lambda: None)
    for request in requests:
        engine.send(request)
    return engine.follow()


def test_a_worker_that_waits_after_a_last_event_that_was_lost_is_ended():
    ended = followed(Waiting(["r1", "", "", "", "", "r1", "", "", "", "", "", ""]))
    assert (ended.status, ended.error) == ("crashed", "the worker is idle, and its last report could not be read")


@pytest.mark.parametrize(
    ("last", "cancelled", "status"),
    [
        ([], True, "cancelled"),
        ([], False, "crashed"),
        ([e.RunFinished(run="r1", status="cancelled", error="cancelled")], True, "cancelled"),
        ([e.RunFinished(run="r1", status="failed", error="wrong")], False, "failed"),
    ],
)
def test_a_worker_that_has_gone_has_the_end_that_it_had(last, cancelled, status):
    ended = followed(Gone(last, cancelled=cancelled), TurnsOverRequest())
    assert ended.status == status


@pytest.fixture
def profile(tmp_path):
    return write_kernels(tmp_path / "box.xplane.pb")


def all_of(reader):
    """Until its last word, and not for ever."""
    found = []
    while not any(isinstance(event, e.RunFinished) and event.run == "r1" for event in found):
        items = reader.read(10.0)
        assert items, "no sign for ten seconds"
        found += [item for item in items if isinstance(item, e.Event)]
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
    assert isinstance(events[-1], e.RunFinished)
    return events[-1]


def test_every_event_names_its_run_and_its_time(profile):
    events = read(profile)
    assert last(events).status == "ok"
    assert any(isinstance(event, e.KernelsMeasured) for event in events)
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
