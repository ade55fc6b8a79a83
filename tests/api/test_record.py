"""A program that records itself: from one line at its top, in a block, and whatever becomes of it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

import jaxprof
from jaxprof import events as e
from jaxprof.analysis.programs.derive import program_result
from jaxprof.api.recording import Cell
from jaxprof.errors import StorageError, UsageError
from jaxprof.report.json import to_dict
from jaxprof.report.text import to_text
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


def run_program(folder: Path, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, "train.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "JAX_PLATFORMS": "cpu", **environment},
        capture_output=True,
        text=True,
        timeout=100,
    )


def the_program(session: jaxprof.Session) -> dict[str, int]:
    program = session.runs["r1"].program
    assert program is not None
    found: dict[str, int] = {}
    for row in program.compiled:
        found[row.function] = found.get(row.function, 0) + row.count
    return found


@pytest.mark.process
def test_one_line_at_the_top_records_to_the_end(tmp_path: Path) -> None:
    done = run_program(tmp_path, PROGRAM + "    raise SystemExit(3)")
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")
    session = jaxprof.load(tmp_path / "run.jaxprof")
    run = session.runs["r1"]
    assert (run.plan.workload, run.plan.how, run.status) == ("train.py", "program", "ok")  # the code is not told within
    assert the_program(session)["step"] == 2
    assert session.complete
    assert run.program is not None
    assert run.program.started is not None
    assert (run.program.started.how, run.program.started.argv) == ("record", ["train.py"])
    assert run.program.jax is not None
    assert run.program.ended is not None
    assert not [warning for warning in run.warnings if warning.code == "recorder_failed"], run.warnings


@pytest.mark.process
def test_what_was_until_a_kill_is_kept(tmp_path: Path) -> None:
    done = run_program(tmp_path, PROGRAM + "    import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == -signal.SIGKILL
    session = jaxprof.load(tmp_path / "run.jaxprof")
    assert the_program(session)["step"] >= 1  # the last row may still have waited for its next stage
    assert (session.runs["r1"].status, session.runs["r1"].error) == ("running", "")
    assert not session.complete


@pytest.mark.process
def test_a_function_is_measured_before_jax_cleans_up(tmp_path: Path) -> None:
    text = PROGRAM.replace('"run.jaxprof"', '"run.jaxprof", function="step"') + "    raise ValueError('not today')\n"
    done = run_program(tmp_path, text)
    assert done.returncode == 1
    assert "jaxprof" not in done.stderr
    session = jaxprof.load(tmp_path / "run.jaxprof")
    assert (session.runs["r1"].status, session.runs["r1"].error) == ("failed", "ValueError: not today")
    measured = session.runs["r2"]
    assert (measured.plan.workload, measured.status) == ("train.py:step", "ok"), measured.error
    assert measured.plan.arguments == ("f32[3]",)
    assert measured.samples("run")
    assert the_program(session)["step"] == 2  # what measuring compiles is not the program's


@pytest.mark.process
def test_the_recording_refuses_no_program_a_child_and_a_fork(tmp_path: Path) -> None:
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


@pytest.mark.process
def test_each_process_of_a_job_writes_its_own_file(tmp_path: Path) -> None:
    for index in ("0", "1"):
        done = run_program(
            tmp_path, "import jaxprof; jaxprof.record('run')", SLURM_PROCID=index, SLURM_STEP_NUM_TASKS="2"
        )
        assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.glob("*.jaxprof")) == ["run.process0.jaxprof", "run.process1.jaxprof"]
    header = jaxprof.load(tmp_path / "run.process1.jaxprof").header
    assert (header.process_index, header.process_count) == (1, 2)


JOB = """
    import sys
    import jaxprof
    recording = jaxprof.record("run.jaxprof")
    import jax
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{sys.argv[1]}", 2, int(sys.argv[2]))
    jax.jit(lambda x: x + 1)(1.0)
    print(recording.path)
"""


@pytest.mark.process
def test_a_job_that_jax_numbers_later_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(textwrap.dedent(JOB))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "JAX_PLATFORMS": "cpu"}
    processes = [
        subprocess.Popen(
            [sys.executable, "train.py", port, str(index)],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    said = [process.communicate(timeout=100) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    for index, (path, _) in enumerate(said):
        session = jaxprof.load(tmp_path / path.strip())
        assert (session.header.process_index, session.header.process_count) == (0, 1)  # nobody knew
        assert (session.process_index, session.process_count) == (index, 2)
        entry = read_entry(tmp_path / path.strip())
        assert (entry.process_index, entry.process_count) == (index, 2)
        assert to_dict(session)["session"]["process_index"] == index
        assert f"process {index} of 2" in to_text(session)


def test_a_second_recording_is_refused_while_the_first_goes_on(tmp_path: Path) -> None:
    with jaxprof.record(tmp_path / "one.jaxprof") as recording:
        assert recording.active
        with pytest.raises(UsageError, match=r"already being recorded, into .*one\.jaxprof"):
            jaxprof.record(tmp_path / "two.jaxprof")
    assert not (tmp_path / "two.jaxprof").exists()
    with jaxprof.record(tmp_path / "two.jaxprof"):
        pass
    recording.stop()
    assert recording.session.complete


def test_an_existing_file_is_kept_unless_it_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "run.jaxprof"
    with jaxprof.record(path):
        pass
    before = path.read_bytes()
    with pytest.raises(StorageError, match="already exists"):
        jaxprof.record(path)
    assert path.read_bytes() == before
    with jaxprof.record(path, replace=True):
        pass
    assert path.read_bytes() != before


@pytest.mark.parametrize("wrong", [{"process_index": 4, "process_count": 4}, {"process_index": -1}])
def test_a_process_that_cannot_be_is_refused(tmp_path: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="there is no process"):
        jaxprof.record(tmp_path / "run.jaxprof", **wrong)


def test_an_exception_of_the_block_is_in_the_session_and_goes_on(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), jaxprof.record(tmp_path / "run.jaxprof") as recording:
        1 / 0  # noqa: B018
    run = recording.session.runs["r1"]
    assert (run.status, run.error) == ("failed", "ZeroDivisionError: division by zero")


def test_our_own_set_up_is_no_time_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import jax  # noqa: F401  imported before the block: nothing of it is an import

    from jaxprof.recorder.recorder import Recorder

    ready: list[float] = []
    start_ledger = Recorder._start_ledger
    monkeypatch.setattr(Recorder, "_start_ledger", lambda self: (start_ledger(self), ready.append(time.monotonic())))
    with jaxprof.record(tmp_path / "run.jaxprof") as recording:
        pass
    run = recording.session.runs["r1"]
    assert run.program is not None
    assert all(window.began_seconds >= ready[0] for window in run.program.sampled)
    result = program_result(recording.session, "r1")
    assert result.began_seconds >= ready[0]
    assert run.program.ended is not None
    assert run.program.ended.wall_seconds <= time.monotonic() - ready[0]


@pytest.mark.process
def test_a_window_joins_the_session_and_leaves_no_folder(tmp_path: Path) -> None:
    text = (
        PROGRAM.replace('"run.jaxprof"', '"run.jaxprof", capture_after_seconds=0, capture_seconds=0.6')
        + """
    def ended():
        return any(window.state == "ended" for window in recording.session.runs["r1"].program.windows)

    while not ended():
        for _ in range(1000):
            step(jnp.ones(3)).block_until_ready()
    """
    )
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = run_program(tmp_path, text, TMPDIR=str(temporary))
    assert done.returncode == 0, done.stderr
    session = jaxprof.load(tmp_path / "run.jaxprof")
    assert {"r1", "r2"} < set(session.runs)
    assert session.runs["r2"].plan.how == "imported"
    assert "jit_step" in {run.plan.workload for run in session.runs.values()}
    assert all(run.closed is not None for run in session.runs.values())
    assert not list(temporary.glob("jaxprof-*"))


def test_under_jaxprof_script_the_line_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jaxprof.recorder.launch", sys)
    with jaxprof.record(tmp_path / "run.jaxprof") as recording:
        assert not recording.active
        assert "jaxprof script is already recording this program" in recording.note
    assert not list(tmp_path.iterdir())


def test_places_in_a_cell_have_its_name() -> None:
    cell = Cell("In [2]", {"/tmp/17.py": "In [1]"}.__getitem__)
    place, known = e.SourceLocation("/tmp/17.py", 3, "f"), e.SourceLocation("In [1]", 3, "f")
    assert cell.named(e.Compiled(function="f", called_from=place)) == e.Compiled(function="f", called_from=known)
    copied = e.CopiesSeen(direction="host_to_device", file="/tmp/17.py", line=3)
    assert cell.named(e.TransfersSeen(rows=[copied])) == e.TransfersSeen(rows=[replace(copied, file="In [1]")])
