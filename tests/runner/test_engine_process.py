"""An engine as a child: asked, cancelled, closed. A child's pipes: what has come is never lost, whenever the child
ends."""

import contextlib
import os
import select
import sys
import threading
import time

import pytest

from jaxprof.base.errors import UsageError, WorkerError
from jaxprof.devices.live.process_state import is_stopped
from jaxprof.engine.protocol.request import DevicesRequest
from jaxprof.events import LogLine, PhaseStarted
from jaxprof.runner import engine_process, engine_questions
from jaxprof.runner.child import ChildProcess, Pipes
from jaxprof.runner.engine_process import EngineProcess
from jaxprof.runner.engine_questions import ask, describe, jax_devices
from jaxprof.runner.interpreter import Interpreter
from runner import engines
from waiting import open_descriptors

pytestmark = pytest.mark.process

HERE = Interpreter(sys.executable, None)


def start(folder, monkeypatch, script):
    write_engine(folder, monkeypatch, engines.PREAMBLE + "say('phase_started', phase='run')\n" + script)
    process = EngineProcess(HERE)
    process.send(DevicesRequest())
    while not any(isinstance(event, PhaseStarted) for event in process.read(20)):
        assert not process.over
    return process


def test_freezing_waits_until_the_engine_has_stopped(tmp_path, monkeypatch):
    """On a busy machine a stop is taken only when there is a processor for the thread that takes it."""
    signals = EngineProcess._signal_all
    with contextlib.closing(start(tmp_path, monkeypatch, "while True: time.sleep(0.01)\n")) as process:

        def late(child, number):
            threading.Timer(0.02, signals, (child, number)).start()

        with monkeypatch.context() as busy:
            busy.setattr(EngineProcess, "_signal_all", late)
            process.freeze()
        assert is_stopped(process.pid)
        process.thaw()
        end = time.monotonic() + 10
        while is_stopped(process.pid) and time.monotonic() < end:
            time.sleep(0.001)
        assert not is_stopped(process.pid)


def test_closing_lets_an_engine_end_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_process, "_END_SECONDS", 600)
    ended = tmp_path / "ended"
    process = start(tmp_path, monkeypatch, f"control.read()\nopen({str(ended)!r}, 'w').close()\n")
    process.close()
    process.close()
    assert ended.exists()
    assert not process.alive


def test_closing_kills_an_engine_that_ignores_signals(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_process, "_END_SECONDS", 0.01)
    monkeypatch.setattr(engine_process, "TERMINATE_SECONDS", 0.01)
    process = start(tmp_path, monkeypatch, "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n")
    process.close()
    assert process.returncode < 0


def write_engine(folder, monkeypatch, script):
    (folder / "engine.py").write_text(script)
    monkeypatch.setattr(engine_process, "ENGINE", folder / "engine.py")


def answering(answer):
    return f"{engines.PREAMBLE}os.write(events.fileno(), {answer.encode()!r} + b'\\n')\ncontrol.readline()\n"


def test_asking_for_data(tmp_path, monkeypatch):
    write_engine(tmp_path, monkeypatch, answering('{"type":"answer","data":{"seen":"devices"}}'))
    assert ask(HERE, DevicesRequest(), {}, 20, dict) == {"seen": "devices"}
    for script, error in (
        (answering('{"type":"answer","error":"no such file","hint":"look again"}'), "no such file"),
        ("import sys; sys.exit(4)", "ended|exit"),
        (engines.SLOW, "no answer"),
    ):
        write_engine(tmp_path, monkeypatch, script)
        with pytest.raises(WorkerError, match=error):
            ask(HERE, DevicesRequest(), {}, 0.3 if error == "no answer" else 20, dict)


@pytest.mark.parametrize(
    "answer",
    [
        '{"type":"answer","data":' + "[" * 3000 + "]" * 3000 + "}",
        '{"type":"answer","data":{"devices":[{"id":"cpu:0","core_count":1' + "0" * 400 + "}]}}",
        '{"type":"answer"}',
        '{"type":"answer","data":{"devices":[{"kind":"x"}]}}',
        '{"type":"answer","error":{}}',
        '{"type":"answer","data":',
    ],
    ids=range(6),
)
def test_an_answer_that_cannot_be_read_is_an_error(answer, tmp_path, monkeypatch):
    write_engine(tmp_path, monkeypatch, answering(answer))
    with pytest.raises(WorkerError, match="answer"):
        jax_devices(HERE, timeout_seconds=20)


def test_listing_devices_keeps_the_order_and_takes_no_memory(monkeypatch):
    asked = []
    answer = engine_questions._Devices(devices=[{"id": "cpu:0"}])
    monkeypatch.setattr(
        engine_questions, "ask", lambda where, request, environment, *_: asked.append(environment) or answer
    )
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    jax_devices(HERE)
    assert (asked[0]["CUDA_DEVICE_ORDER"], asked[0]["XLA_PYTHON_CLIENT_PREALLOCATE"]) == ("PCI_BUS_ID", "false")


def test_an_endless_import_differs_from_a_slow_engine(tmp_path, monkeypatch):
    write_engine(tmp_path, monkeypatch, f"{engines.PREAMBLE}control.readline()\n")
    with pytest.raises(UsageError) as of_file:
        describe(HERE, ["endless.py:step"], timeout_seconds=0.5)
    with pytest.raises(WorkerError) as of_devices:
        jax_devices(HERE, timeout_seconds=0.5)
    assert "top level" in of_file.value.hint
    assert "top level" not in of_devices.value.hint


def start_child(code, *, python=sys.executable):
    pipes = Pipes.open()
    ends = (pipes.events_write, pipes.control_read)
    command = [python, "-c", "import os, sys, time\nevents, control = map(int, sys.argv[1:])\n" + code, *map(str, ends)]
    return ChildProcess(command, pipes, os.environ, name="the child", descriptors=ends)


@pytest.fixture
def child(request):
    process = start_child(request.param)
    yield process
    process.kill()
    process.close()
    process.close()
    assert not process.alive


WHEN_ASKED = r"""
os.read(control, 1)
os.write(events, b'{"type":"phase_started","phase":"run"}\n')
print('out')
print('a traceback', file=sys.stderr)
print('no line break', end='')
"""


@pytest.mark.parametrize("child", [WHEN_ASKED], indirect=True)
def test_events_before_the_end_are_in_the_next_read(child):
    assert child.read(0) == []
    os.write(child._control, b"x")
    child._process.wait(20)
    assert not child.over
    events = child.read(0)
    assert child.over
    assert [event.phase for event in events if isinstance(event, PhaseStarted)] == ["run"]
    lines = [(event.stream, event.text) for event in events if isinstance(event, LogLine)]
    assert sorted(lines) == [("stderr", "a traceback"), ("stdout", "no line break"), ("stdout", "out")]
    assert "a traceback" in child.explain().hint


HOLDS = "if os.fork() == 0:\n    os.set_inheritable(events, True)\n    time.sleep(600)\n"


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system has no descriptor for a process's end")
@pytest.mark.parametrize("child", [HOLDS], indirect=True)
def test_a_childs_end_wakes_a_read_with_open_pipes(child):
    while not child.over:
        child.read(600)


@pytest.mark.parametrize("child", ['os.write(events, b\'{"type":"heartbeat"}\\n\')\ntime.sleep(600)'], indirect=True)
def test_a_heartbeat_is_a_sign_of_life_and_no_event(child):
    began = child.last_sign_seconds
    while not child.heartbeat_seen:
        assert child.read(20) == []
    assert child.last_sign_seconds > began


FORKS = """
if os.fork():
    os.write(events, b'{"type":"phase_started","phase":"run"}\\n')
time.sleep(120)
"""


@pytest.mark.parametrize("child", [FORKS], indirect=True)
def test_a_child_is_killed_with_its_own_children(child):
    while not child.read(20):
        assert not child.over
    child.kill()
    child._process.wait(20)
    ended, *_ = select.select([child._events], [], [], 20)
    assert ended, "a child of the child still holds the pipe"
    assert os.read(child._events, 1) == b""


def test_failed_start_closes_all_descriptors():
    before = open_descriptors()
    with pytest.raises(WorkerError, match="the child could not be started with /nowhere/python"):
        start_child("", python="/nowhere/python")
    assert open_descriptors() == before
