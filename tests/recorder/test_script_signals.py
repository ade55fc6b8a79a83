"""Signals, and a client that dies: the program feels what it would feel without us."""

import signal
import subprocess
import sys

import pytest

from recorder.running import SOURCE, client, environment, notes_of, program_in
from terminal import Terminal

pytestmark = pytest.mark.process

SECONDS = 20.0
WAITS = "import sys, time\nprint('ready', flush=True)\nfor _ in range(600):\n    time.sleep(0.1)\n"
HANDLES = """
import os, signal, sys, time
def handler(number, frame):
    os.write(1, f"got {signal.Signals(number).name}\\n".encode())
    if number == signal.SIGHUP:
        sys.exit(7)
for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
    signal.signal(number, handler)
print("ready", flush=True)
for _ in range(600):
    time.sleep(0.1)
"""


def in_terminal(folder, *words):
    """A program under the recording, in a terminal of its own."""
    return Terminal(client(*words), folder, environment())


def test_ctrl_c_interrupts_the_program_and_not_the_recording(tmp_path):
    (tmp_path / "x.py").write_text(WAITS)
    with in_terminal(tmp_path, "x.py") as terminal:
        terminal.until("ready")
        terminal.type(b"\x03")
        assert terminal.end() == 130
    traceback = terminal.plain.partition("^C")[2].partition("jaxprof: ")[0].splitlines()
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[1].startswith(f'  File "{tmp_path}/x.py", line ')
    assert traceback[-1] == "KeyboardInterrupt"
    assert len([line for line in traceback if line.startswith("  File")]) == 1
    run = program_in(tmp_path)
    assert run.status == "cancelled"
    assert run.program.ended.exit_code == 130
    assert notes_of(run) == ["no_jax"]


def start(folder, *words):
    """Under the recording, without a terminal, once the program has said that it is ready."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(client(*words), cwd=folder, env=environment(), text=True, **pipes)
    assert process.stdout.readline() == "ready\n"
    return process


def test_signals_sent_to_us_reach_the_program_one_by_one(tmp_path):
    (tmp_path / "x.py").write_text(HANDLES)
    process = start(tmp_path, "x.py")
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
        process.send_signal(number)
        assert process.stdout.readline() == f"got {number.name}\n"
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 7, err
    assert program_in(tmp_path).closed is not None


def test_a_program_that_sigterm_ends_is_kept(tmp_path):
    (tmp_path / "x.py").write_text(WAITS)
    process = start(tmp_path, "x.py")
    process.terminate()
    process.communicate(timeout=SECONDS)
    assert process.returncode == 143
    run = program_in(tmp_path)
    assert run.status == "crashed"
    assert "SIGTERM" in run.error


def test_the_program_outlives_a_client_that_is_killed(tmp_path):
    (tmp_path / "x.py").write_text(
        "import signal, sys, time\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\nprint('ready', flush=True)\n"
        "sys.stdin.readline()\nsys.path.insert(0, 'fake')\nimport jax\nopen('done', 'w').write('well')\n"
    )
    fake = tmp_path / "fake" / "jax"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text("__version__ = '0'\n")
    process = start(tmp_path, "x.py")
    process.kill()
    process.wait()
    process.stdin.write("go on\n")
    process.stdin.close()
    assert process.stdout.read() == ""  # until the program has ended
    assert (tmp_path / "done").read_text() == "well"


@pytest.mark.parametrize(("last", "code"), [("", 1), ("; be_interrupted()", -signal.SIGINT)])
def test_source_that_is_run_while_a_program_ends_does_not_take_its_interrupt(last, code):
    """Python forgets that it was interrupted when it runs more source: what is imported at the end, for one."""
    program = (
        "import atexit\nfrom jaxprof.recorder.launch import be_interrupted\n"
        f"def end():\n    exec('1'){last}\natexit.register(end)\nraise KeyboardInterrupt\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env={"PYTHONPATH": str(SOURCE)}
    )
    assert "KeyboardInterrupt" in done.stderr
    assert done.returncode == code
