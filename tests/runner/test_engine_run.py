"""One worker at a run: how its end is told."""

from __future__ import annotations

import pytest

from jaxprof import events as e
from jaxprof.engine.protocol.request import TurnsOverRequest
from jaxprof.errors import WorkerError
from jaxprof.runner.device_readings import DeviceWatch
from jaxprof.runner.engine_process import EngineProcess
from jaxprof.runner.engine_run import EngineRun
from jaxprof.runner.exits import Exit
from jaxprof.runner.session_recorder import SessionRecorder
from jaxprof.session.log import LogWriter, new_header


class Gone(EngineProcess):
    """A worker that ended before anything could be sent to it."""

    def __init__(self, last: list[e.Event], *, cancelled: bool) -> None:
        self.over = False
        self.last_sign_seconds = 0.0
        self._last = last
        self._cancelled_seconds = 1.0 if cancelled else None

    def send(self, request: object) -> None:
        raise WorkerError("the worker is gone")

    def read(self, timeout_seconds: float) -> list[e.Event]:
        last, self._last = self._last, []
        self.over = True
        return last

    def explain(self) -> Exit:
        return Exit("killed by SIGTERM", "")


@pytest.mark.parametrize(
    ("last", "cancelled", "status"),
    [
        ([], True, "cancelled"),
        ([], False, "crashed"),
        ([e.RunFinished(run="r1", status="cancelled", error="cancelled")], True, "cancelled"),
        ([e.RunFinished(run="r1", status="failed", error="wrong")], False, "failed"),
    ],
)
def test_a_worker_that_has_gone_has_the_end_that_it_had(last: list[e.Event], cancelled: bool, status: str) -> None:
    recorder = SessionRecorder(LogWriter(new_header(), None), lambda batch: None)
    recorder.emit(e.RunPlanned(run="r1", spec=e.RunSpec(workload="w", variant="v", how="jit", device="none:0")))
    watch = DeviceWatch("python", "none:0")
    engine = EngineRun("r1", Gone(last, cancelled=cancelled), recorder, watch, let_go=lambda: None)
    engine.send(TurnsOverRequest())
    ended = engine.follow()
    assert isinstance(ended, e.RunFinished)
    assert ended.status == status
