"""An engine as a child: asked, cancelled, closed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jaxprof.engine.protocol.request import DevicesRequest
from jaxprof.errors import WorkerError
from jaxprof.events import Event, PhaseStarted, RunFinished
from jaxprof.runner import Interpreter, engine_process
from jaxprof.runner.engine_process import EngineProcess, ask, jax_devices
from runner import engines

pytestmark = pytest.mark.process

HERE = Interpreter(sys.executable, None, "this one")


def start(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> EngineProcess:
    """An engine that has taken its request."""
    engine = folder / "engine.py"
    engine.write_text(engines.PREAMBLE + "say('phase_started', phase='run')\n" + script)
    monkeypatch.setattr(engine_process, "ENGINE", engine)
    process = EngineProcess(HERE)
    process.send(DevicesRequest())
    assert any(isinstance(event, PhaseStarted) for event in read_until(process, PhaseStarted))
    return process


def read_until(process: EngineProcess, kind: type[Event]) -> list[Event]:
    events: list[Event] = []
    while not process.over and not any(isinstance(event, kind) for event in events):
        events += process.read(20)
    return events


def test_a_cancelled_run_has_time_to_end_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "ASK_SECONDS", 600)
    process = start(
        tmp_path, monkeypatch, "control.readline()\nprint('asked')\ntime.sleep(0.3)\nsay('run_finished', status='ok')\n"
    )
    process.cancel()
    assert process.cancelled
    events = read_until(process, RunFinished)
    process.close()
    assert any(isinstance(event, RunFinished) for event in events)


def test_closing_lets_an_engine_end_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "_END_SECONDS", 600)
    ended = tmp_path / "ended"
    process = start(tmp_path, monkeypatch, f"control.read()\nopen({str(ended)!r}, 'w').close()\n")
    process.close()
    process.close()
    assert ended.exists()
    assert not process.alive


def test_closing_kills_an_engine_that_neither_the_pipe_nor_a_signal_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_process, "_END_SECONDS", 0.01)
    monkeypatch.setattr(engine_process, "TERMINATE_SECONDS", 0.01)
    process = start(tmp_path, monkeypatch, "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n")
    process.close()
    assert process.returncode is not None
    assert process.returncode < 0


def test_asking_for_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tmp_path / "engine.py"
    monkeypatch.setattr(engine_process, "ENGINE", engine)
    engine.write_text(engines.ANSWERS)
    assert ask(HERE, DevicesRequest(), {}, 20, dict) == {"seen": "devices"}
    engine.write_text(engines.COMPLAINS)
    with pytest.raises(WorkerError, match="no such file"):
        ask(HERE, DevicesRequest(), {}, 20, dict)
    engine.write_text("import sys; sys.exit(4)")
    with pytest.raises(WorkerError):
        ask(HERE, DevicesRequest(), {}, 20, dict)
    engine.write_text(engines.SLOW)
    with pytest.raises(WorkerError, match="no answer"):
        ask(HERE, DevicesRequest(), {}, 0.3, dict)


@pytest.mark.parametrize(
    "answer",
    [
        '{"type":"answer","data":' + "[" * 3000 + "]" * 3000 + "}",
        '{"type":"answer","data":{"devices":7}}',
        '{"type":"answer","data":{"devices":[{"kind":"x"}]}}',
        '{"type":"answer","data":{"devices":[{"id":"cpu:0","core_count":1' + "0" * 400 + "}]}}",
        '{"type":"answer","error":{}}',
        '{"type":"answer","data":',
        '{"type":"answer"}',
    ],
    ids=range(7),
)
def test_an_answer_that_cannot_be_read_is_an_error(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tmp_path / "engine.py"
    engine.write_text(
        f"{engines.PREAMBLE}os.write(events.fileno(), {answer.encode()!r} + b'\\n')\ncontrol.readline()\n"
    )
    monkeypatch.setattr(engine_process, "ENGINE", engine)
    with pytest.raises(WorkerError, match="answer"):
        jax_devices(HERE, timeout_seconds=20)
