"""A program that records itself: from one line at its top, in a block, and whatever becomes of it."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest

import jaxprof
from jaxprof.analysis.programs.derive import program_result
from jaxprof.errors import StorageError, UsageError
from jaxprof.report.json import to_dict
from jaxprof.session.log.entry import read_entry

SOURCE = Path(__file__).parents[2] / "src"
PROGRAM = """
    import jaxprof
    recording = jaxprof.record("run.jaxprof")
    import jax, jax.numpy as jnp

    @jax.jit
    def step(x):
        return jnp.tanh(x) * 2

    for size in (3, 4):
        step(jnp.ones(size)).block_until_ready()
"""


def run_program(folder, text, *words, **environment):
    (folder / "train.py").write_text(textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, "train.py", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "JAX_PLATFORMS": "cpu", **environment},
        capture_output=True,
        text=True,
        timeout=100,
    )


def the_program(session):
    """How often each function was compiled."""
    found = Counter()
    for row in session.runs["r1"].program.compiled:
        found[row.function] += row.count
    return found


@pytest.mark.process(programs=1)
@pytest.mark.parametrize(
    ("end", "code", "status"),
    [
        ("raise SystemExit(3)", 3, "ok"),  # the code is not told within
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, "running"),
    ],
    ids=["exit", "kill"],
)
def test_one_line_at_the_top_records_to_the_end(tmp_path, end, code, status):
    done = run_program(tmp_path, PROGRAM + f"    {end}", "token=sesame", SLURM_PROCID="1", SLURM_STEP_NUM_TASKS="2")
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
    path = tmp_path / "run.process1.jaxprof"
    assert "sesame" not in path.read_text()
    session = jaxprof.load(path)
    assert [notice for notice in session.notices if "possible secret" in notice]
    run = session.runs["r1"]
    assert (session.header.process_index, session.header.process_count) == (1, 2)
    assert (run.plan.workload, run.plan.how, run.status) == ("train.py", "program", status)
    assert (run.program.started.how, run.program.started.argv[0]) == ("record", "train.py")
    assert the_program(session)["step"] >= 1  # after a kill the last row may still have waited for its next stage
    assert (session.complete, run.program.ended is not None) == (code == 3, code == 3)
    assert not [warning for warning in run.warnings if warning.code == "recorder_failed"], run.warnings


@pytest.mark.process(programs=1)
def test_a_function_is_measured_before_jax_cleans_up(tmp_path):
    text = PROGRAM.replace('"run.jaxprof"', '"run.jaxprof", function="step"') + "    raise ValueError('not today')\n"
    done = run_program(tmp_path, text)
    assert (done.returncode, "jaxprof" in done.stderr) == (1, False)
    session = jaxprof.load(tmp_path / "run.jaxprof")
    assert (session.runs["r1"].status, session.runs["r1"].error) == ("failed", "ValueError: not today")
    measured = session.runs["r2"]
    assert (measured.plan.workload, measured.status) == ("train.py:step", "ok"), measured.error
    assert measured.plan.arguments == ("f32[3]",)
    assert measured.samples("run")
    assert the_program(session)["step"] == 2  # what measuring compiles is not the program's


@pytest.mark.process(programs=1)
def test_the_recording_refuses_no_program_a_child_and_a_fork(tmp_path):
    text = """
        import multiprocessing, os, jaxprof
        recording = jaxprof.record("run.jaxprof")
        def work():
            print(repr(recording.note), flush=True)
        if __name__ == "__main__":
            child = multiprocessing.get_context("spawn").Process(target=work)
            child.start(); child.join()
            if os.fork() == 0:
                recording.stop()
                os._exit(0)
            os.wait()
    """
    done = run_program(tmp_path, text)
    assert done.returncode == 0, done.stderr
    assert "the parent process writes" in done.stdout
    assert [path.name for path in tmp_path.glob("*.jaxprof")] == ["run.jaxprof"]
    session = jaxprof.load(tmp_path / "run.jaxprof")
    assert (session.complete, session.runs["r1"].status, session.notices) == (True, "ok", [])


def test_a_second_recording_is_refused_while_the_first_goes_on(tmp_path):
    one, two = tmp_path / "one.jaxprof", tmp_path / "two.jaxprof"
    with jaxprof.record(one) as recording:
        assert recording.active
        with pytest.raises(UsageError, match=r"already being recorded, into .*one\.jaxprof"):
            jaxprof.record(two)
        assert "being written" in str(recording.session)
        assert "interrupted" not in str(recording.session)
    assert not two.exists()
    recording.stop()
    assert recording.session.complete
    before = one.read_bytes()
    with pytest.raises(StorageError, match="already exists"):
        jaxprof.record(one)
    assert one.read_bytes() == before
    with pytest.raises(ZeroDivisionError), jaxprof.record(one, replace=True) as recording:
        1 / 0  # noqa: B018
    run = recording.session.runs["r1"]
    assert (run.status, run.error) == ("failed", "ZeroDivisionError: division by zero")


def test_a_job_that_jax_numbers_later_is_told_apart(tmp_path, monkeypatch):
    import jax

    path = tmp_path / "run.jaxprof"
    with jaxprof.record(path) as recording:
        monkeypatch.setattr(jax, "process_index", lambda: 1)
        monkeypatch.setattr(jax, "process_count", lambda: 2)
        jax.jit(lambda x: x + 1)(1.0)
    header, entry = recording.session.header, read_entry(path)
    assert (header.process_index, header.process_count) == (0, 1)  # nobody knew
    assert (entry.process_index, entry.process_count) == (1, 2)
    assert to_dict(jaxprof.load(path))["session"]["process_index"] == 1


@pytest.mark.parametrize("wrong", [{"process_index": 4, "process_count": 4}, {"process_index": -1}])
def test_a_process_that_cannot_be_is_refused(tmp_path, wrong):
    with pytest.raises(UsageError, match="there is no process"):
        jaxprof.record(tmp_path / "run.jaxprof", **wrong)


def test_our_own_set_up_is_no_time_of_the_program(tmp_path, monkeypatch):
    import jax  # noqa: F401  imported before the block: nothing of it is an import

    from jaxprof.recorder.recorder import Recorder

    ready = []
    start_ledger = Recorder._start_ledger
    monkeypatch.setattr(Recorder, "_start_ledger", lambda self: (start_ledger(self), ready.append(time.monotonic())))
    with jaxprof.record(tmp_path / "run.jaxprof") as recording:
        pass
    program = recording.session.runs["r1"].program
    assert all(window.began_seconds >= ready[0] for window in program.sampled)
    assert program_result(recording.session, "r1").began_seconds >= ready[0]
    assert program.ended.wall_seconds <= time.monotonic() - ready[0]


def test_under_jaxprof_script_the_line_does_nothing(tmp_path, monkeypatch):
    from jaxprof.recorder import launch

    with jaxprof.record(tmp_path / "run.jaxprof") as recording:
        assert recording.active, "the module alone records nothing"
    monkeypatch.setattr(launch, "begun", True)
    with jaxprof.record(tmp_path / "second.jaxprof") as recording:
        assert not recording.active
        assert "jaxprof script is already recording this program" in recording.note
    assert not (tmp_path / "second.jaxprof").exists()
