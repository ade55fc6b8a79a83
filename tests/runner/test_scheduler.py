"""The client of the engine against engines that behave well and badly, on real pipes and processes."""

import os
from dataclasses import asdict, replace

import pytest

from cli.calling import commit_all
from hlo_sources import write_kernels
from jaxprof.devices.inventory.placement import WorkerEnvironment
from jaxprof.runner import engine_process, scheduler
from jaxprof.runner.profiles import plan_profile
from jaxprof.session import Session, load
from jaxprof.trace import imported
from runner import engines
from runner.stage import Stage, plan

pytestmark = pytest.mark.process


def test_a_good_run_is_written_told_and_closed(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, engines.GOOD)
    first = plan()
    session = stage.run([first, plan(baseline=first)])
    run = session.runs["r1"]
    assert run.status == "ok"
    assert run.phases["compile"].seconds == 0.25
    assert run.closed.median_seconds == 1e-3
    assert {line.text for line in run.log} == {"hello from the child", "a word on stderr"}
    assert session.text("r1", "hlo") == session.text("r2", "hlo") == "x" * 200_000
    assert session.runs["r2"].plan.baseline == "r1"
    assert session.complete
    told, kept = ({run: asdict(each) for run, each in fold.runs.items()} for fold in (stage.told, session))
    assert told == kept
    assert stage.path.read_bytes().count(b'"type":"text_chunk"') == 1  # the same text of two runs is kept once


def test_a_run_of_a_file_under_git_keeps_its_commit(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def step(x):\n    return x\n")
    commit_all(tmp_path, "one")
    mine = plan()
    mine = replace(mine, spec=replace(mine.spec, target=f"{tmp_path}/mine.py:step"))
    planned = [mine, plan(), replace(mine, stays_at=f"{tmp_path}/elsewhere.py:step")]
    under_git, built_in, checked_out = Stage(tmp_path, monkeypatch, engines.GOOD).run(planned).runs.values()
    assert len(under_git.revision.commit) >= 7
    assert under_git.revision.dirty is False
    assert built_in.revision is None
    assert checked_out.revision is None, "a side at another revision: the comparison keeps its commit"


def test_a_revision_keeps_an_absent_devices_compiler_on_path(tmp_path, monkeypatch):
    script = engines.PREAMBLE + 'say("run_finished", status="failed", error=os.environ["PYTHONPATH"])'
    stage = Stage(tmp_path, monkeypatch, script)
    placed = WorkerEnvironment(environment={"PYTHONPATH": "wheels"}, device="cpu:0")
    stage.scheduler._placement = lambda planned, interpreter: placed
    session = stage.run([replace(plan(), environment={"PYTHONPATH": "tree"}), plan()])
    assert [run.error for run in session.runs.values()] == [os.pathsep.join(["tree", "wheels"]), "wheels"]


def test_profile_is_read_without_an_engine(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, "")
    really_read = imported.import_profile

    def read(path, run, emit, check, **options):
        if path.name.startswith("broken"):
            raise ZeroDivisionError("in the middle")
        if path.name.startswith("long"):
            stage.scheduler.cancel(run)
            check()
        return really_read(path, run, emit, check, **options)

    monkeypatch.setattr(imported, "import_profile", read)
    monkeypatch.setattr(scheduler, "can_run", lambda: False)
    good = write_kernels(tmp_path / "good.xplane.pb").read_bytes()
    for name, content in {"broken": good, "long": good, "empty": b""}.items():
        (tmp_path / f"{name}.xplane.pb").write_bytes(content)
    planned = [plan_profile(tmp_path / f"{name}.xplane.pb") for name in ("good", "broken", "long", "empty")]
    session = stage.run(planned)
    ends = [(run.status, run.error) for run in session.runs.values() if run.plan.variant == "profile"]
    assert ends[:3] == [("ok", ""), ("failed", "ZeroDivisionError: in the middle"), ("cancelled", "cancelled")]
    assert ends[3][0] == "failed"
    assert "is empty" in ends[3][1]
    assert session.complete
    assert any(run.measured for run in session.runs.values())


@pytest.mark.parametrize(("signal_name", "words"), [("SIGKILL", "killed (SIGKILL)"), ("SIGABRT", "XLA aborted")])
def test_a_killed_engine_is_explained_and_the_next_run_goes_on(tmp_path, monkeypatch, signal_name, words):
    for run in Stage(tmp_path, monkeypatch, engines.dies_of(signal_name)).run([plan(), plan()]).runs.values():
        assert run.status == "crashed"
        assert words in run.error
        assert "last words" in run.hint
        assert run.samples("run") == [1e-3] * 6


def test_garbage_on_the_pipe_is_logged_and_survived(tmp_path, monkeypatch):
    run = Stage(tmp_path, monkeypatch, engines.GARBAGE).run([plan()]).runs["r1"]
    assert run.status == "ok"
    said = [line.text.partition(":")[0] for line in run.log if line.stream == "events"]
    assert said == ["not an event", "not an event"]
    assert not run.trust


def test_cancel_is_asked_first(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, engines.OBEDIENT)
    stage.run_until([plan(), plan()], lambda: stage.in_phase("r1", "run"), stage.scheduler.cancel_all)
    assert [run.status for run in stage.told.runs.values()] == ["cancelled", "cancelled"]


@pytest.mark.parametrize("script", [engines.SLOW, engines.DEAF], ids=["terminated", "killed"])
def test_an_engine_that_does_not_listen_is_ended(tmp_path, monkeypatch, script):
    monkeypatch.setattr(engine_process, "ASK_SECONDS", 0.1)
    monkeypatch.setattr(engine_process, "TERMINATE_SECONDS", 0.2)
    stage = Stage(tmp_path, monkeypatch, script)
    stage.run_until([plan()], lambda: stage.in_phase("r1", "compile"), lambda: stage.scheduler.cancel("r1"))
    assert stage.told.runs["r1"].status == "cancelled"


def test_a_silent_engine_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("jaxprof.runner.engine_process.SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(engine_process, "ASK_SECONDS", 0.1)
    stage = Stage(tmp_path, monkeypatch, engines.SLOW)
    stage.run_until(
        [plan()],
        lambda: any(run.warnings for run in stage.told.runs.values()),
        lambda: stage.scheduler.close("interrupted"),
    )
    session = load(stage.path, Session)
    (warning,) = session.runs["r1"].warnings
    assert (warning.code, warning.message) == ("worker_silent", "the worker has given no sign of the run for 0.2 s")
    assert session.closed.reason == "interrupted"
    assert session.runs["r1"].shown.error == "the session ended before this run did (interrupted)"
    shown = stage.scheduler.session.runs["r1"]
    assert (shown.status, shown.error) == ("cancelled", session.runs["r1"].error), "not that we killed its engine then"


@pytest.mark.parametrize(
    ("silence", "cap", "error"),
    [
        (0.5, None, "the worker gave no sign of the run for 500 ms"),
        (600.0, 0.5, "a single step of the run exceeded its hard cap of 500 ms"),
    ],
)
def test_an_engine_that_holds_its_lock_is_ended(tmp_path, monkeypatch, silence, cap, error):
    monkeypatch.setattr("jaxprof.runner.engine_process.CAP_GRACE_SECONDS", 0.1)
    stage = Stage(tmp_path, monkeypatch, engines.STUCK)
    stage.scheduler.max_silence_seconds = silence
    run = stage.run([plan(max_seconds=cap)]).runs["r1"]
    assert (run.status, run.error) == ("timed out", error)


def test_an_engine_is_not_timed_out_while_it_starts(tmp_path, monkeypatch):
    monkeypatch.setattr("jaxprof.runner.engine_process.CAP_GRACE_SECONDS", 0.0)
    starting = engines.PREAMBLE + "time.sleep(0.8)\n" + engines.FINISHED
    assert Stage(tmp_path, monkeypatch, starting).run([plan(max_seconds=0.1)]).runs["r1"].status == "ok"
