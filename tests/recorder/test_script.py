"""A program under `jaxprof script` is the program: what it prints, how it ends, and what it can see of its world.
Signals, and a client that dies: the program feels what it would feel without us."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import pytest

from jaxprof.analysis.programs.pauses import SIGNAL, UNKNOWN
from jaxprof.devices.live.process_state import is_stopped
from jaxprof.findings.derive import explanation
from jaxprof.findings.program_result import program_result
from jaxprof.session import Session, load
from pythons import stand_in
from recorder.running import (
    OUT,
    SOURCE,
    client,
    environment,
    notes_of,
    program_in,
    run_alone,
    run_recorded,
    session_in,
)
from terminal import Terminal
from waiting import SLOWER, until

ORDINARY = """
import argparse, atexit, multiprocessing, os, signal, sys, threading
print(__name__, __file__, sys.argv, sys.path, os.getcwd(), sys.flags, sys.orig_argv[1:])
print({name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "JAXPROF_P", "JAXPROF_F"))})
print("sitecustomize" in sys.modules)
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--api-key")
parser.add_argument("rest", nargs="*")
def work(number):
    return number, sorted(name for name in os.environ if "JAXPROF_P" in name)
if __name__ == "__main__":
    print(parser.parse_args())
    print(sys.stdin.isatty(), input(), sys.stdin.read().upper())
    thread = threading.Thread(target=sys.exit, args=(5,))
    thread.start()
    thread.join()
    print("still here")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    atexit.register(print, "bye")
    for how in ("fork", "spawn"):
        with multiprocessing.get_context(how).Pool(1) as pool:
            print(pool.map(work, range(3)))
    raise ValueError("ähm")
"""
OWN = """
import os, sys
def leave(code, leave=os._exit):
    if "jaxprof.cli.plain_script" in sys.modules:
        with open(f"{__file__}.imported", "w") as file:
            file.write(" ".join(sys.modules))
    leave(code)
os._exit = leave
if not any("multiprocessing" in word for word in sys.orig_argv):  # two of which start at once
    print("own", __name__, __file__)
    1 / 0
"""
"""A sitecustomize of the user's, which fails. The client is a Python, too: at its end it tells what that has imported,
and what its start prints comes before what the program prints."""


@pytest.mark.process(programs=1)
def test_a_recorded_program_is_the_same_without_its_secrets(tmp_path):
    own = tmp_path / "own" / "sitecustomize.py"
    own.parent.mkdir()
    own.write_text(OWN)
    (tmp_path / "x.py").write_text(ORDINARY)
    words = ("x.py", "--epochs", "1", "--api-key", "sesame", "a b", "--", "-c", "ü")
    given = {"stdin": "first\nsecond\n", "PYTHONPATH": f":{own.parent}", "PYTHONUNBUFFERED": "1"}
    alone = run_alone(tmp_path, *words, **given)
    recorded = run_recorded(tmp_path, *words, **given)
    assert recorded.out == "".join(alone.out.splitlines(keepends=True)[:1]) + alone.out
    assert recorded.err == "".join(alone.err.splitlines(keepends=True)[:2]) + alone.err
    assert (recorded.code, alone.code) == (1, 1)
    assert f"jaxprof: session: {OUT}\n" in recorded.notes
    run = program_in(tmp_path)
    assert (run.status, run.program.ended.exit_code, run.program.started.how) == ("failed", 1, "script")
    assert (run.program.ended.error, notes_of(run)[0]) == ("ValueError: ähm", "no_jax")
    assert run.program.ended.wall_seconds > 0
    assert "sesame" not in (tmp_path / OUT).read_text()
    (notice,) = session_in(tmp_path).notices
    assert "possible secret" in notice
    imported = (own.parent / f"{own.name}.imported").read_text().split()
    assert set(imported) & {"jax", "jaxlib", "scipy", "textual", "numpy"} == set()


CHILD = """
import multiprocessing, time
def work(seconds):
    while time.process_time() < seconds:
        pass
if __name__ == "__main__":
    pool = multiprocessing.get_context("fork").Pool(1)  # which exit handlers end
    pool.apply(work, (1.0,))
    time.sleep(0.5)
"""


@pytest.mark.process(programs=1)
def test_cpu_time_of_child_processes_is_noted(tmp_path):
    (tmp_path / "x.py").write_text(CHILD)
    recorded = run_recorded(tmp_path, "x.py")
    assert recorded.code == 0, recorded.err
    (took,) = [note.seconds for note in program_in(tmp_path).program.ended.notes if note.code == "child_processes"]
    assert took > 0.9
    assert "s of CPU time in child processes, which this session does not hold" in recorded.notes
    leading = explanation(session_in(tmp_path), OUT).leading
    assert leading is not None
    assert leading.code == "child_processes"


def test_missing_file_ends_as_in_python(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = call("script", "--plain", "--out", OUT, "nothing.py")
    assert (said.code, said.out) == (2, "")
    assert "there is no file nothing.py" in said.err
    assert not (tmp_path / OUT).exists()


@pytest.mark.process
def test_a_python_without_sitecustomize_is_reported(tmp_path):
    there = f"until [ -s {OUT} ]; do sleep 0.02; done"
    python = stand_in(tmp_path, f"{there}\nrm {OUT}\necho mine > {OUT}\necho well")
    (tmp_path / "x.py").touch()
    recorded = run_recorded(tmp_path, "x.py", options=("--python", str(python)))
    assert (recorded.code, recorded.out) == (0, "well\n"), recorded.err
    assert "-I, -E or -S" in recorded.notes
    assert f"session: s-2.jaxprof ({OUT} was replaced by another file while it was written" in recorded.notes
    session = load(tmp_path / "s-2.jaxprof", Session)
    assert session.complete is True
    assert session.notices == []
    assert notes_of(session.runs["r1"]) == ["not_recorded"]


FEELS = """
import os, signal, time
from jaxprof.recorder.samples import cpu_clock
cpu_clock.pressure_seconds = lambda: None
cpu_clock.runnable_threads = lambda: 0
cpu_clock.run_delay_seconds = lambda task: 0.0
cpu_clock.steal_seconds = lambda: 0.0
import jax
count = passes = 0
def handler(number, frame):
    global count, passes
    count, passes = count + 1, 0
    if number == signal.SIGHUP:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.write(1, f"got {count} {signal.Signals(number).name}\\n".encode())
    if number == signal.SIGUSR1:
        os.kill(os.getpid(), signal.SIGSTOP)
for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
    signal.signal(number, handler)
os.write(1, f"ready {os.getppid()} {os.getpid()}.\\n".encode())
for _ in range(1200):
    time.sleep(0.05)
    passes += 1
    if passes == 6:
        os.write(1, f"goes on after {count}\\n".encode())
"""
"""Hides from the recorder that other tests run beside it: on a full machine it says less of stops, as it should."""
STOPPED_SECONDS = 1.0


@pytest.mark.process(programs=1)
@pytest.mark.skipif(shutil.which("bash") is None, reason="job control needs a shell")
def test_signals_arrive_once_and_a_stop_has_no_line(tmp_path):
    """Those sent to us are passed on one by one. Ctrl+z stops us, too, so that only the program's own sampler sees it.
    Ctrl+c interrupts the program, and not the recording."""
    (tmp_path / "x.py").write_text(FEELS)
    shell = ["bash", "--norc", "--noprofile", "-i"]
    with Terminal(shell, tmp_path, environment(PS1="prompt> ")) as terminal:
        terminal.until("prompt> ")
        terminal.type(f"{shlex.join(client('x.py'))}\n".encode())
        terminal.until("ready ")
        terminal.until(".\n", after="ready ")
        us, program = map(int, re.search(r"ready (\d+) (\d+)", terminal.plain).groups())
        for count, name in enumerate(("SIGINT", "SIGINT", "SIGUSR1"), start=1):
            os.kill(us, signal.Signals[name])
            terminal.until(f"got {count} {name}")
        until(lambda: is_stopped(program))
        time.sleep(STOPPED_SECONDS)
        os.kill(program, signal.SIGCONT)
        terminal.until("goes on after 3")
        terminal.type(b"\x03")
        terminal.until("goes on after 4")  # and not after 5: it is not passed on as well
        terminal.type(b"\x1a")
        terminal.until("Stopped")
        terminal.until("prompt> ", after="Stopped")  # what is typed earlier may meet the terminal between two modes
        until(lambda: is_stopped(program))
        time.sleep(STOPPED_SECONDS)
        terminal.type(b"fg\n")
        os.kill(us, signal.SIGHUP)
        terminal.until("got 5 SIGHUP")
        terminal.until("goes on after 5")
        terminal.type(b"\x03")
        terminal.until("jaxprof: session")
        terminal.type(b"exit $?\n")
        assert terminal.end() == 130
    traceback = terminal.plain.rpartition("^C")[2].partition("jaxprof: ")[0].splitlines()
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[1].startswith(f'  File "{tmp_path}/x.py", line ')
    assert traceback[-1] == "KeyboardInterrupt"
    assert len([line for line in traceback if line.startswith("  File")]) == 1
    run = program_in(tmp_path)
    assert run.status == "cancelled"
    assert run.program.ended.exit_code == 130
    assert notes_of(run) == []
    if sys.platform == "linux":  # only Linux counts what a thread waits for
        found = program_result(session_in(tmp_path), run.id)
        long = [pause.cause for pause in found.pauses if pause.seconds > STOPPED_SECONDS / 2]  # others: a full machine
        assert long == [SIGNAL, UNKNOWN]
        assert found.states["paused"] > STOPPED_SECONDS / 2
        assert not [
            line for line in found.lines if line.call.startswith("os.kill") and line.seconds > STOPPED_SECONDS / 2
        ]
        assert "paused" in [finding.code for finding in found.findings]


ORPHAN = """
import os, signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
print("ready", flush=True)
sys.stdin.readline()
sys.path.insert(0, "fake")
import jax
os.closerange(3, 1 << 20)
with open("done", "w") as file:
    file.write("well")
"""


@pytest.mark.process(programs=1)
def test_a_program_outlives_its_killed_client(tmp_path):
    (tmp_path / "x.py").write_text(ORPHAN)
    fake = tmp_path / "fake" / "jax"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text("__version__ = '0'\n")
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(client("x.py"), cwd=tmp_path, env=environment(), text=True, **pipes)
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.wait()
    said = process.communicate("go on\n", timeout=60 * SLOWER)  # until the program has ended
    assert said == ("", "")
    assert (tmp_path / "done").read_text() == "well"


@pytest.mark.process
@pytest.mark.parametrize(("last", "code"), [("", 1), ("; be_interrupted()", -signal.SIGINT)])
def test_source_run_at_the_end_keeps_the_interrupt(last, code):
    """Python forgets that it was interrupted when it runs more source: what is imported at the end, for one."""
    program = (
        "import atexit\nfrom jaxprof.recorder.launch import be_interrupted\n"
        f"def end():\n    exec('1'){last}\natexit.register(end)\nraise KeyboardInterrupt\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60 * SLOWER,
        env={"PYTHONPATH": str(SOURCE)},
    )
    assert "KeyboardInterrupt" in done.stderr
    assert done.returncode == code
