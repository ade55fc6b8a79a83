"""Real jax programs under `jaxprof script`, from start to end; with further interpreters where they are named. Programs
that are stopped for a while by a signal, and what is said of that time."""

import shlex
import shutil
import subprocess
import sys
import time

import pytest

from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.programs.result import SIGNAL, UNKNOWN
from pythons import EVERY, FURTHER
from recorder.running import CLIENT, OUT, client, environment, notes_of, program_in, run_alone, run_recorded, session_in
from terminal import Terminal

TRAINS = """
import os, sys, time
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def step(x):
    return jnp.sin(x) * 2

print(step(np.ones(3, "f")), step(np.ones(4, "f")), step(np.ones(5, "f")))
"""
CALLED_AT = 9
LOOPS = """
x = jnp.ones((500, 500))
for number in range(int(os.environ.get("PASSES", 400))):
    x = step(x).block_until_ready()
    time.sleep(0.002)
time.sleep(0.3)
"""
LOOPS_AT = 12
RAISES = "jax.jit(lambda x: x.nothing)(1.0)\n"


@pytest.mark.process(programs=1)
@pytest.mark.parametrize("python", FURTHER or EVERY)
def test_a_program_that_trains_and_raises_is_the_same_and_all_of_it_is_recorded(python, tmp_path):
    (tmp_path / "x.py").write_text(TRAINS + LOOPS + RAISES)
    recorded = run_recorded(tmp_path, "x.py", options=("--python", python))
    if python == sys.executable:
        alone = run_alone(tmp_path, "x.py", PASSES="3")
        assert (recorded.out, recorded.err, recorded.code) == (alone.out, alone.err, alone.code)
    run = program_in(tmp_path)
    assert notes_of(run) == []
    assert run.program.ended.error.startswith("AttributeError: ")
    assert run.program.ended.error_at.line == (TRAINS + LOOPS + RAISES).count("\n")
    rows = [row for row in run.program.compiled if row.function == "step" and row.called_from.line == CALLED_AT]
    assert [row.reason_code for row in rows] == ["first", "shape", "shape"]
    assert run.program.jax.seconds > 0
    assert run.environment.jax == run.program.jax.version
    assert run.environment.devices
    assert run.program.sampled
    check_passes(run)


def check_passes(run):
    """Each pass of the loop has its number, where Python tells of passes: from 3.12 on."""
    passes = run.program.passes
    if tuple(map(int, run.environment.python.split(".")[:2])) < (3, 12):
        assert passes == []
        assert {warning.code for warning in run.warnings} <= {"steps_not_counted"}, "if the loop was seen"
        return
    assert run.warnings == []
    passes = [event for event in passes if event.where.line == LOOPS_AT]
    assert {event.numbered_by for event in passes} == {"number"}
    assert [event.first for event in passes[1:]] == [event.first + event.count for event in passes[:-1]]
    assert passes[-1].first + passes[-1].count - 1 == 399


@pytest.mark.process(programs=1)
def test_a_capture_window_brings_the_kernels_into_the_session(tmp_path):
    """And of the engine there is the reading of the environment alone in the program."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (tmp_path / "x.py").write_text(
        TRAINS + "until = time.monotonic() + 1.2\nwhile time.monotonic() < until:\n    step(np.ones(5))\n"
        "print([name for name in sys.modules if name.startswith('jaxprof.engine.measure.')])\n"
    )
    recorded = run_recorded(tmp_path, "x.py", options=("--capture-seconds", "500ms"), TMPDIR=str(temporary))
    assert recorded.code == 0
    assert "jaxprof.engine.measure.environment" in recorded.out
    assert "jaxprof.engine.measure.run" not in recorded.out
    windows = program_in(tmp_path).program.windows
    assert [window.state for window in windows] == ["began", "ended"]
    imported = [other for other in session_in(tmp_path).runs.values() if other.plan.how == "imported"]
    assert imported[0].plan.workload == "capture window"
    assert {other.status for other in imported} == {"ok"}
    assert "jit_step" in {other.plan.workload for other in imported}
    assert list(temporary.glob("jaxprof-window-*")) == []


@pytest.mark.process
def test_the_client_imports_little_before_the_program_has_been_started(tmp_path):
    (tmp_path / "x.py").write_text("")
    hook = (
        "import os, sys; sys.addaudithook(lambda event, _: event == 'os.posix_spawn'"
        " and (print('\\n'.join(sys.modules), flush=True), os._exit(0))); "
    )
    arguments = "sys.argv[1:] = ['script', '--plain', 'x.py']; "
    command = [sys.executable, "-c", hook + arguments + CLIENT]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    imported = set(done.stdout.splitlines())
    assert "jaxprof.early_start" in imported
    assert not imported & {
        "subprocess",
        "jax",
        "numpy",
        "textual",
        "psutil",
        "msgspec",
        "importlib.metadata",
        "jaxprof.analysis",
    }


QUIET = """
from jaxprof.recorder.samples import standstill
standstill.pressure_seconds = lambda: None
standstill.runnable_threads = lambda: 0
standstill.run_delay_seconds = lambda task: 0.0
standstill.steal_seconds = lambda: 0.0
"""
"""Hides from the recorder that other tests run beside it: on a full machine it says less, as it should."""
STOPS = """
import os, signal, subprocess, time
import jax, jax.numpy as jnp
step = jax.jit(lambda x: jnp.tanh(x @ x))
x = jnp.ones((200, 200))
end = time.monotonic() + 2.2
stopped = False
while time.monotonic() < end:
    x = step(x)
    x.block_until_ready()
    if not stopped and time.monotonic() > end - 1.7:
        stopped = True
        subprocess.Popen(["sh", "-c", f"sleep 1; kill -CONT {os.getpid()}"])
        os.kill(os.getpid(), signal.SIGSTOP)
"""
WAITS = """
import sys, threading
import jax
threading.Timer(1.2, lambda: print("still there", flush=True)).start()
print(sys.stdin.readline(), flush=True)
"""
needs_counts = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what a thread waits for")


def result(folder):
    session = session_in(folder)
    (run,) = session.runs
    return program_result(session, run)


@pytest.mark.process(programs=1)
@needs_counts
def test_a_stop_is_no_lines_time_and_a_finding(tmp_path):
    (tmp_path / "x.py").write_text(QUIET + STOPS)
    assert run_recorded(tmp_path, "x.py").code == 0
    found = result(tmp_path)
    (stop,) = found.stops
    assert stop.cause == SIGNAL
    assert stop.seconds > 0.6
    assert found.share("stopped").seconds > 0.6
    assert not [line for line in found.lines if line.call.startswith("os.kill") and line.seconds > 0.3]
    assert "stopped" in [finding.code for finding in found.findings]


@pytest.mark.process(programs=1)
@needs_counts
@pytest.mark.skipif(shutil.which("bash") is None, reason="job control needs a shell")
def test_ctrl_z_stops_it_with_us_and_fg_goes_on(tmp_path):
    """The recording process is stopped, too, so it sees nothing of that: the program's own sampler does."""
    (tmp_path / "x.py").write_text(QUIET + WAITS)
    shell = ["bash", "--norc", "--noprofile", "-i"]
    with Terminal(shell, tmp_path, environment(PS1="prompt> ")) as terminal:
        terminal.until("prompt> ")
        terminal.type(f"{shlex.join(client('x.py'))}\n".encode())
        terminal.until("still there")
        terminal.type(b"\x1a")
        terminal.until("Stopped")
        terminal.until("prompt> ", after="Stopped")  # what is typed earlier may meet the terminal between two modes
        time.sleep(1)  # how long it stands
        terminal.type(b"fg\n")
        terminal.type(b"typed\n")
        terminal.until("jaxprof: session")
        terminal.type(b"exit 5\n")
        assert terminal.end() == 5
    assert (tmp_path / OUT).exists()
    (stop,) = result(tmp_path).stops
    assert stop.cause == UNKNOWN
    assert stop.seconds > 0.9
