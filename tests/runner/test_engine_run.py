"""One worker at a run: how its end is told."""

import time

import pytest

from jaxprof import events as e
from jaxprof.base.errors import WorkerError
from jaxprof.devices.inventory.placement import OF_A_DEVICE
from jaxprof.engine.protocol.request import TurnsOverRequest
from jaxprof.runner.engine_process import EngineProcess, EngineRun
from jaxprof.runner.session_recorder import DeviceWatch, SessionRecorder
from jaxprof.session import LogWriter, new_header


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
        return WorkerError("killed by SIGTERM")


class Waiting(EngineProcess):
    """A worker that waits for a request, and sends heartbeats that name no run."""

    def __init__(self):
        self.over = False
        self.last_sign_seconds = time.monotonic() - 1
        self._cancelled_seconds = None

    def read(self, timeout_seconds):
        return self._events_in(e.encode(e.Heartbeat(monotonic_seconds=time.monotonic())))

    def kill(self):
        self.over = True


def followed(process, *requests, **limits):
    recorder = SessionRecorder(LogWriter(new_header(), None), lambda batch: None)
    recorder.emit(e.RunPlanned(run="r1", spec=e.RunSpec(workload="w", variant="v", how="jit", device="none:0")))
    engine = EngineRun("r1", process, recorder, DeviceWatch("none:0"), let_go=lambda: None, **limits)
    for request in requests:
        engine.send(request)
    return engine.follow()


def test_a_worker_whose_last_event_was_lost_is_ended():
    ended = followed(Waiting(), max_silence_seconds=0.05)
    assert (ended.status, ended.error) == ("timed out", "the worker gave no sign of the run for 50.0 ms")


def test_the_users_own_device_variables_are_kept(monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    given = {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "0", "NPROC": "1", "jax_enable_x64": True}
    ended = [e.EnvironmentRead(python="3.13.1", numpy="2.3.0", settings=given), e.RunFinished(run="r1", status="ok")]
    recorder = SessionRecorder(LogWriter(new_header(), None), lambda batch: None)
    recorder.emit(e.RunPlanned(run="r1", spec=e.RunSpec(workload="w", variant="v", how="jit", device="none:0")))
    process, placed = Gone(ended, cancelled=False), OF_A_DEVICE
    engine = EngineRun("r1", process, recorder, DeviceWatch("none:0"), let_go=lambda: None, placed=placed)
    engine.follow()
    kept = recorder.session.runs["r1"].environment.settings
    assert kept == {"JAX_PLATFORMS": "cuda", "NPROC": "1", "jax_enable_x64": True}


def test_a_slow_start_is_not_called_an_exceeded_cap(monkeypatch):
    monkeypatch.setattr("jaxprof.runner.engine_process.START_UP_SECONDS", 0.0)
    monkeypatch.setattr("jaxprof.runner.engine_process.CAP_GRACE_SECONDS", 0.0)
    ended = followed(Waiting(), max_seconds=0.05)
    assert (ended.status, ended.error[:36]) == ("timed out", "the worker was still starting after ")


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
