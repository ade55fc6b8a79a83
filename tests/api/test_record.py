"""A program that records itself: from one line at its top, in a block, and whatever becomes of it."""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import jaxprof
from jaxprof.api.recording import ProgramLog
from jaxprof.base.errors import StorageError, UsageError
from jaxprof.events import LogLine, RunFinished, RunPlanned, RunSpec
from jaxprof.facts.session_tree import to_dict
from jaxprof.findings.program_result import program_result
from jaxprof.session import LogWriter, Session, load, new_header
from jaxprof.session.library import read_entry
from waiting import SLOWER, until

SOURCE = Path(__file__).parents[2] / "src"
PROGRAM = """
import multiprocessing, os
import jaxprof
recording = jaxprof.record("run.jaxprof", function="step")

def work():
    print(repr(recording.note), flush=True)

if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
    if os.fork() == 0:
        recording.stop()
        os._exit(0)
    os.wait()
    import jax, jax.numpy as jnp

    @jax.jit
    def step(x):
        return jnp.tanh(x) * 2

    for size in (3, 4):
        step(jnp.ones(size)).block_until_ready()
    raise ValueError("not today")
"""


def compiled_of(session):
    found = Counter()
    for row in session.runs["r1"].program.compiled:
        found[row.function] += row.count
    return found


@pytest.mark.process(programs=1)
def test_record_to_the_end_measures_before_cleanup(tmp_path):
    """Nothing of it is seen by the program, a child of it or a fork."""
    (tmp_path / "train.py").write_text(PROGRAM)
    variables = {"PYTHONPATH": str(SOURCE), "JAX_PLATFORMS": "cpu", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}
    command = [sys.executable, "train.py", "token=sesame"]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | variables, capture_output=True, text=True, timeout=100 * SLOWER
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "ValueError: not today")
    assert "jaxprof" not in done.stderr
    (said,) = done.stdout.splitlines()
    assert "the parent process writes" in said
    (path,) = tmp_path.glob("*.jaxprof")
    assert path.name == "run.process1.jaxprof"
    assert "sesame" not in path.read_text()
    session = jaxprof.load(path)
    assert session.complete
    assert [notice for notice in session.notices if "possible secret" in notice]
    assert (session.header.process_index, session.header.process_count) == (1, 2)
    run, measured = session.runs["r1"], session.runs["r2"]
    assert (run.plan.workload, run.plan.how) == ("train.py", "program")
    assert (run.status, run.error) == ("failed", "ValueError: not today")
    assert (run.program.started.how, run.program.started.argv[0]) == ("record", "train.py")
    assert run.program.ended is not None
    assert not [warning for warning in run.warnings if warning.code == "recorder_failed"], run.warnings
    assert (measured.plan.workload, measured.status) == ("train.py:step", "ok"), measured.error
    assert measured.plan.arguments == ("f32[3]",)
    assert measured.samples("run")
    program = tmp_path / "train.py"
    assert session.sources[str(program)] == hashlib.sha256(program.read_bytes()).hexdigest()
    assert compiled_of(session)["step"] == 2  # what measuring compiles is not the program's


def test_what_a_kill_leaves_is_all_that_came_before_it(tmp_path):
    """What is in the file: nothing of it waits in the process that is killed."""
    import jax

    path, left = tmp_path / "run.jaxprof", tmp_path / "left.jaxprof"
    with jaxprof.record(path) as recording:
        jax.jit(lambda x: x + 2)(1.0)
        until(lambda: compiled_of(recording.session))
        shutil.copy(path, left)
    run = jaxprof.load(left).runs["r1"]
    assert (run.status, run.program.ended, run.closed) == ("running", None, None)
    assert not jaxprof.load(left).complete


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


def test_event_of_a_signal_handler_follows_the_write(tmp_path, monkeypatch):
    log = ProgramLog(new_header({}), tmp_path / "x.jaxprof", replace_existing=False)
    log.emit(RunPlanned(spec=RunSpec(workload="x", variant="program", how="program", device="host")))
    write, interrupted = LogWriter._write, []

    def interrupt(writer, data):
        if not interrupted:
            interrupted.append(True)
            log.emit(LogLine(text="second", stream="stdout"))
        write(writer, data)

    monkeypatch.setattr(LogWriter, "_write", interrupt)
    log.emit(LogLine(text="first", stream="stdout"))
    log.finish(RunFinished(status="ok"), 1.0)
    read = load(tmp_path / "x.jaxprof", Session)
    assert [line.text for line in read.runs["r1"].log] == ["first", "second"]
    assert (log.changed, read.notices) == ("", [])
