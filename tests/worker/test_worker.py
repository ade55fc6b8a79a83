"""The client of the engine against engines that behave well and badly, on real pipes and processes."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from jaxprof import events as e
from jaxprof.engine.request import DevicesRequest
from jaxprof.errors import WorkerError
from jaxprof.session import Session, fold
from jaxprof.store import LogWriter, load, new_header
from jaxprof.worker import Conductor, Interpreter, Planned
from jaxprof.worker import process as process_module
from jaxprof.worker.process import ask
from worker import engines

HERE = Interpreter(sys.executable, None, "this one")


def plan(workload: str = "selu", **more: Any) -> Planned:
    return Planned(
        target=workload,
        workload=workload,
        variant="jit",
        how="jit",
        device="cpu:0",
        parameters={"n": 3},
        preset="quick",
        **more,
    )


class Stage:
    """A conductor with a scripted engine, and what it told."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
        engine = folder / "engine.py"
        engine.write_text(script)
        monkeypatch.setattr(process_module, "ENGINE", engine)
        self.path = folder / "s.jaxprof"
        self.batches: list[list[e.Event]] = []
        self.conductor = Conductor(LogWriter(new_header(), self.path), HERE, self.batches.append)

    @property
    def told(self) -> Session:
        return fold(self.conductor.writer.header, [event for batch in self.batches for event in batch])

    def wait_for_phase(self, run: str, phase: str) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            found = self.told.runs.get(run)
            if found is not None and found.current_phase == phase:
                return
            time.sleep(0.01)
        raise AssertionError(f"{run} did not reach {phase}")

    def in_background(self) -> threading.Thread:
        thread = threading.Thread(target=self.conductor.run)
        thread.start()
        return thread


def test_a_good_run_is_written_told_and_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, engines.GOOD)
    first = plan()
    assert stage.conductor.add([first, plan(baseline=first)]) == ["r1", "r2"]
    stage.conductor.run()
    stage.conductor.close()
    session = load(stage.path, Session)
    run = session.runs["r1"]
    assert run.status == "ok"
    assert run.phases["compile"].seconds == 0.25
    assert run.closed is not None
    assert run.closed.median_seconds == 1e-3
    assert {line.text for line in run.log} == {"hello from the child", "a word on stderr"}
    assert session.text("r1", "hlo") == session.text("r2", "hlo") == "x" * 200_000
    assert session.runs["r2"].plan.baseline == "r1"
    assert session.complete
    assert stage.told.runs == session.runs
    chunks = stage.path.read_bytes().count(b'"type":"text_chunk"')
    assert chunks == 1  # the same text of two runs is kept once


@pytest.mark.parametrize(
    ("signal_name", "words"),
    [("SIGKILL", "out of memory"), ("SIGABRT", "XLA aborted"), ("SIGSEGV", "SIGSEGV"), ("SIGUSR1", "SIGUSR1")],
)
def test_a_killed_engine_is_explained_and_the_next_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signal_name: str, words: str
) -> None:
    stage = Stage(tmp_path, monkeypatch, engines.dies_of(signal_name))
    stage.conductor.add([plan(), plan()])
    stage.conductor.run()
    for run in stage.told.runs.values():
        assert run.status == "crashed"
        assert words in run.error
        assert "last words" in run.advice
        assert run.samples("run") == [1e-3] * 6


def test_an_exit_in_the_middle_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, engines.EXITS)
    stage.conductor.add([plan()])
    stage.conductor.run()
    assert "exit code 3" in stage.told.runs["r1"].error


def test_a_grandchild_that_holds_the_pipe_does_not_hold_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, monkeypatch, engines.GRANDCHILD)
    stage.conductor.add([plan()])
    began = time.monotonic()
    stage.conductor.run()
    assert time.monotonic() - began < 10
    assert stage.told.runs["r1"].status == "crashed"
    assert stage.told.runs["r1"].samples("run") == [1e-3] * 6


def test_garbage_on_the_pipe_is_logged_and_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, engines.GARBAGE)
    stage.conductor.add([plan()])
    stage.conductor.run()
    assert stage.told.runs["r1"].status == "ok"
    assert any(line.stream == "events" for line in stage.told.runs["r1"].log)


def test_cancel_is_asked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, engines.OBEDIENT)
    stage.conductor.add([plan(), plan()])
    thread = stage.in_background()
    stage.wait_for_phase("r1", "run")
    stage.conductor.cancel_all()
    thread.join(20)
    assert [run.status for run in stage.told.runs.values()] == ["cancelled", "cancelled"]


@pytest.mark.parametrize("script", [engines.SLOW, engines.DEAF], ids=["terminated", "killed"])
def test_an_engine_that_does_not_listen_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setattr(process_module, "ASK_SECONDS", 0.1)
    monkeypatch.setattr(process_module, "TERMINATE_SECONDS", 0.2)
    stage = Stage(tmp_path, monkeypatch, script)
    stage.conductor.add([plan()])
    thread = stage.in_background()
    stage.wait_for_phase("r1", "compile")
    stage.conductor.cancel("r1")
    thread.join(20)
    assert not thread.is_alive()
    assert stage.told.runs["r1"].status == "cancelled"


def test_a_silent_engine_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxprof.worker.conductor.SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(process_module, "ASK_SECONDS", 0.1)
    stage = Stage(tmp_path, monkeypatch, engines.SLOW)
    stage.conductor.add([plan()])
    thread = stage.in_background()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not (stage.told.runs["r1"].warnings):
        time.sleep(0.02)
    assert [warning.code for warning in stage.told.runs["r1"].warnings] == ["worker_silent"]
    stage.conductor.close("interrupted")
    thread.join(20)
    session = load(stage.path, Session)
    assert session.closed is not None
    assert session.closed.reason == "interrupted"
    assert session.runs["r1"].over


def test_an_interpreter_that_is_not_there_fails_the_run_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, engines.GOOD)
    stage.conductor.interpreter = Interpreter("/nowhere/python", None, "--python")
    stage.conductor.add([plan()])
    stage.conductor.run()
    assert stage.told.runs["r1"].status == "failed"
    assert "/nowhere/python" in stage.told.runs["r1"].error


def test_asking_for_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tmp_path / "engine.py"
    monkeypatch.setattr(process_module, "ENGINE", engine)
    engine.write_text(engines.ANSWERS)
    assert ask(HERE, DevicesRequest(), {}, 20) == {"seen": "devices"}
    engine.write_text(engines.COMPLAINS)
    with pytest.raises(WorkerError, match="no such file"):
        ask(HERE, DevicesRequest(), {}, 20)
    engine.write_text("import sys; sys.exit(4)")
    with pytest.raises(WorkerError):
        ask(HERE, DevicesRequest(), {}, 20)
    engine.write_text(engines.SLOW)
    with pytest.raises(WorkerError, match="no answer"):
        ask(HERE, DevicesRequest(), {}, 0.3)
