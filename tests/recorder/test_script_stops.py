"""Programs that are stopped for a while by a signal, and what is said of that time."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from pathlib import Path

import pytest

from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.programs.pauses import SIGNAL, UNKNOWN
from jaxprof.analysis.programs.result import ProgramResult
from recorder.running import OUT, client, environment, run_recorded, session_in
from terminal import Terminal

pytestmark = pytest.mark.process

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


def result(folder: Path) -> ProgramResult:
    session = session_in(folder)
    (run,) = session.runs
    return program_result(session, run)


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
