"""The client of the engine against engines that behave well and badly, on real pipes and processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.devices.inventory.placement import WorkerEnvironment
from jaxprof.runner import Interpreter, PlannedRun, Scheduler, engine_process, scheduler
from jaxprof.session import Session
from jaxprof.session.log import LogWriter, load, new_header
from runner import engines

HERE = Interpreter(sys.executable, None, "this one")


def plan(workload: str = "selu", *, baseline: PlannedRun | None = None, **more: Any) -> PlannedRun:
    given = {"variant": "jit", "how": "jit", "device": "cpu:0", "parameters": {"n": 3}, "preset": "quick", **more}
    spec = e.RunSpec(target=workload, workload=workload, **given)
    return PlannedRun(spec=spec, baseline=baseline)


class Stage:
    """A conductor with a scripted engine, and what it told."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
        engine = folder / "engine.py"
        engine.write_text(script)
        monkeypatch.setattr(engine_process, "ENGINE", engine)
        self.path = folder / "s.jaxprof"
        self.batches: list[list[e.Event]] = []
        self.scheduler = Scheduler(LogWriter(new_header(), self.path), HERE, self.batches.append)

    @property
    def told(self) -> Session:
        return fold(self.scheduler.writer.header, [event for batch in self.batches for event in batch])

    def wait_for_phase(self, run: str, phase: str) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            found = self.told.runs.get(run)
            if found is not None and found.current_phase == phase:
                return
            time.sleep(0.01)
        raise AssertionError(f"{run} did not reach {phase}")

    def in_background(self) -> threading.Thread:
        thread = threading.Thread(target=self.scheduler.run)
        thread.start()
        return thread


@pytest.mark.process
def test_a_good_run_is_written_told_and_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, engines.GOOD)
    first = plan()
    assert stage.scheduler.add([first, plan(baseline=first)]) == ["r1", "r2"]
    stage.scheduler.run()
    stage.scheduler.close()
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
    assert stage.told.runs == {name: replace(run, deserted=False) for name, run in session.runs.items()}
    chunks = stage.path.read_bytes().count(b'"type":"text_chunk"')
    assert chunks == 1  # the same text of two runs is kept once


@pytest.mark.process
def test_a_run_of_a_file_under_git_keeps_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, engines.GOOD)
    (tmp_path / "mine.py").write_text("def step(x):\n    return x\n")
    named = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for words in (["init", "-q"], ["add", "mine.py"], ["commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True, env={**os.environ, **named})
    mine = plan()
    mine = replace(mine, spec=replace(mine.spec, target=f"{tmp_path}/mine.py:step"))
    stage.scheduler.add([mine, plan(), replace(mine, stays_at=f"{tmp_path}/elsewhere.py:step")])
    stage.scheduler.run()
    stage.scheduler.close()
    under_git, built_in, checked_out = load(stage.path, Session).runs.values()
    assert under_git.revision is not None
    assert (len(under_git.revision.commit) >= 7, under_git.revision.dirty) == (True, False)
    assert built_in.revision is None
    assert checked_out.revision is None, "a side at another revision: the comparison keeps its commit"


@pytest.mark.process
def test_a_revisions_modules_leave_the_compiler_of_a_device_elsewhere_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = engines.PREAMBLE + 'say("run_finished", status="failed", error=os.environ["PYTHONPATH"])'
    stage = Stage(tmp_path, monkeypatch, script)
    placed = WorkerEnvironment(environment={"PYTHONPATH": "wheels"}, device="cpu:0")
    stage.scheduler._placement = lambda planned, interpreter: placed
    stage.scheduler.add([replace(plan(), environment={"PYTHONPATH": "tree"}), plan()])
    stage.scheduler.run()
    assert [run.error for run in stage.told.runs.values()] == [os.pathsep.join(["tree", "wheels"]), "wheels"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("signal_name", "words"),
    [("SIGKILL", "killed (SIGKILL)"), ("SIGABRT", "XLA aborted"), ("SIGSEGV", "SIGSEGV"), ("SIGUSR1", "SIGUSR1")],
)
def test_a_killed_engine_is_explained_and_the_next_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signal_name: str, words: str
) -> None:
    stage = Stage(tmp_path, monkeypatch, engines.dies_of(signal_name))
    stage.scheduler.add([plan(), plan()])
    stage.scheduler.run()
    for run in stage.told.runs.values():
        assert run.status == "crashed"
        assert words in run.error
        assert "last words" in run.advice
        assert run.samples("run") == [1e-3] * 6


@pytest.mark.process
def test_a_grandchild_that_holds_the_pipe_does_not_hold_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, monkeypatch, engines.GRANDCHILD)
    stage.scheduler.add([plan()])
    began = time.monotonic()
    stage.scheduler.run()
    assert time.monotonic() - began < 10
    assert stage.told.runs["r1"].status == "crashed"
    assert stage.told.runs["r1"].samples("run") == [1e-3] * 6


@pytest.mark.process
def test_garbage_on_the_pipe_is_logged_and_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, engines.GARBAGE)
    stage.scheduler.add([plan()])
    stage.scheduler.run()
    assert stage.told.runs["r1"].status == "ok"
    run = stage.told.runs["r1"]
    said = [line.text.partition(":")[0] for line in run.log if line.stream == "events"]
    assert said == ["not an event", "a damaged row of trust_reported was left out"]
    assert [row.code for row in run.trust["run"].rows] == ["file"]


@pytest.mark.process
def test_cancel_is_asked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, engines.OBEDIENT)
    stage.scheduler.add([plan(), plan()])
    thread = stage.in_background()
    stage.wait_for_phase("r1", "run")
    stage.scheduler.cancel_all()
    thread.join(20)
    assert [run.status for run in stage.told.runs.values()] == ["cancelled", "cancelled"]


@pytest.mark.process
@pytest.mark.parametrize("script", [engines.SLOW, engines.DEAF], ids=["terminated", "killed"])
def test_an_engine_that_does_not_listen_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setattr(engine_process, "ASK_SECONDS", 0.1)
    monkeypatch.setattr(engine_process, "TERMINATE_SECONDS", 0.2)
    stage = Stage(tmp_path, monkeypatch, script)
    stage.scheduler.add([plan()])
    thread = stage.in_background()
    stage.wait_for_phase("r1", "compile")
    stage.scheduler.cancel("r1")
    thread.join(20)
    assert not thread.is_alive()
    assert stage.told.runs["r1"].status == "cancelled"


@pytest.mark.process
def test_a_silent_engine_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxprof.runner.engine_run.SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(engine_process, "ASK_SECONDS", 0.1)
    stage = Stage(tmp_path, monkeypatch, engines.SLOW)
    stage.scheduler.add([plan()])
    thread = stage.in_background()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not (stage.told.runs["r1"].warnings):
        time.sleep(0.02)
    assert [warning.code for warning in stage.told.runs["r1"].warnings] == ["worker_silent"]
    stage.scheduler.close("interrupted")
    thread.join(20)
    session = load(stage.path, Session)
    assert session.closed is not None
    assert session.closed.reason == "interrupted"
    assert session.runs["r1"].over


@pytest.mark.process
def test_an_engine_that_is_silent_for_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, engines.STUCK)
    stage.scheduler.max_silence_seconds = 0.5
    stage.scheduler.add([plan(), plan()])
    stage.scheduler.run()
    for run in stage.told.runs.values():
        assert run.status == "timed out"
        assert run.error == "the worker sent no heartbeat for 500 ms"


@pytest.mark.process
def test_the_hard_cap_ends_an_engine_that_holds_its_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, engines.STUCK_AFTER_ITS_START)
    stage.scheduler.add([plan(max_seconds=0.5)])
    began = time.monotonic()
    stage.scheduler.run()
    assert time.monotonic() - began < 30  # start-up is given a minute
    assert stage.told.runs["r1"].status == "timed out"
    assert stage.told.runs["r1"].error == "the worker did not stop at its hard cap of 500 ms"


@pytest.mark.process
def test_an_engine_is_not_timed_out_while_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxprof.runner.engine_run.SILENT_CAP_GRACE_SECONDS", 0.0)
    monkeypatch.setattr("jaxprof.runner.engine_run.CAP_GRACE_SECONDS", 0.0)
    starting = engines.PREAMBLE + "time.sleep(1.5)\nsay('run_finished', status='ok')\ncontrol.readline()"
    stage = Stage(tmp_path, monkeypatch, starting)
    stage.scheduler.add([plan(max_seconds=0.2)])
    stage.scheduler.run()
    assert stage.told.runs["r1"].status == "ok"


JAX_HERE = replace(HERE, jax="0.10.2")


def after_preparing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, prepared: PlannedRun, *planned: PlannedRun
) -> tuple[list[engine_process.EngineProcess], Session]:
    """All children that were started, in order, and the session of runs that came after one was prepared."""
    made: list[engine_process.EngineProcess] = []

    class Noted(engine_process.EngineProcess):
        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options)
            made.append(self)

    stage = Stage(folder, monkeypatch, engines.GOOD)
    monkeypatch.setattr(scheduler, "EngineProcess", Noted)
    stage.scheduler.interpreter = JAX_HERE
    stage.scheduler.prepare(prepared)
    stage.scheduler.add(list(planned))
    stage.scheduler.run()
    stage.scheduler.close()
    return made, load(stage.path, Session)


@pytest.mark.process
def test_a_child_that_waits_takes_the_next_run_and_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, session = after_preparing(tmp_path, monkeypatch, plan(), plan(), plan("other"))
    assert [session.runs[run].pid for run in ("r1", "r2")] == [process.pid for process in made]
    assert len(made) == 2
    assert not any(process.alive for process in made)


@pytest.mark.process
@pytest.mark.parametrize(
    "other",
    [
        plan(how="numpy", variant="numpy"),
        replace(plan(), interpreter=replace(JAX_HERE, chosen="another one")),
        replace(plan(), environment={"XLA_FLAGS": "--x"}),
    ],
    ids=["without jax", "another interpreter", "another environment"],
)
def test_a_child_that_waits_for_another_kind_of_run_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: PlannedRun
) -> None:
    (waiting, used), session = after_preparing(tmp_path, monkeypatch, plan(), other)
    assert session.runs["r1"].pid == used.pid != waiting.pid
    assert session.runs["r1"].status == "ok"
    assert not waiting.alive


def test_nothing_waits_for_a_run_that_it_could_not_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, useless in enumerate((plan(how="numpy"), replace(plan(), interpreter=HERE))):
        (tmp_path / str(number)).mkdir()
        made, _ = after_preparing(tmp_path / str(number), monkeypatch, useless)
        assert made == []


@pytest.mark.process
def test_a_child_that_nothing_came_for_is_ended_with_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (waiting,), _ = after_preparing(tmp_path, monkeypatch, plan())
    assert not waiting.alive
