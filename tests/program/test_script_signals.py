"""Signals, and a client that dies: the program feels what it would feel without us."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from program.running import client, environment, notes_of, program_in

SECONDS = 20.0
WAITS = "import sys, time\nprint('ready', flush=True)\nfor _ in range(600):\n    time.sleep(0.1)\n"
HANDLES = """
import os, signal, sys, time
def handler(number, frame):
    os.write(1, b"got " + signal.Signals(number).name.encode())
    sys.exit(7)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, handler)
print("ready", flush=True)
for _ in range(600):
    time.sleep(0.1)
"""


class Terminal:
    """A program under the recording, in a terminal of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.shown = ""
        self._main, other = pty.openpty()
        self.process = subprocess.Popen(
            client(*words),
            cwd=folder,
            env=environment(TERM="xterm"),
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
            preexec_fn=lambda: os.login_tty(other),
        )
        os.close(other)

    def type(self, keys: bytes) -> None:
        os.write(self._main, keys)

    def until(self, text: str) -> None:
        deadline = time.monotonic() + SECONDS
        while text not in self.shown:
            assert select.select([self._main], [], [], deadline - time.monotonic())[0], self.shown
            self.shown += self._read()

    def end(self) -> int:
        """Reads to the end; gives the exit code."""
        while select.select([self._main], [], [], SECONDS)[0] and (came := self._read()):
            self.shown += came
        return self.process.wait(SECONDS)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._main)

    def _read(self) -> str:
        try:
            return os.read(self._main, 65536).decode().replace("\r\n", "\n")
        except OSError:  # Linux's word for the end of a terminal
            return ""


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def test_ctrl_c_interrupts_the_program_and_not_the_recording(tmp_path: Path, terminals: list[Terminal]) -> None:
    (tmp_path / "x.py").write_text(WAITS)
    terminal = Terminal(tmp_path, "x.py")
    terminals.append(terminal)
    terminal.until("ready")
    terminal.type(b"\x03")
    assert terminal.end() == 130
    traceback = terminal.shown.partition("^C")[2].partition("jaxprof: ")[0].splitlines()
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[1].startswith(f'  File "{tmp_path}/x.py", line ')
    assert traceback[-1] == "KeyboardInterrupt"
    assert len([line for line in traceback if line.startswith("  File")]) == 1
    run = program_in(tmp_path)
    assert run.status == "cancelled"
    assert run.program is not None
    assert run.program.ended is not None
    assert run.program.ended.exit_code == 130
    assert notes_of(run) == ["no_jax"]


def test_a_program_that_takes_ctrl_c_goes_on(tmp_path: Path, terminals: list[Terminal]) -> None:
    (tmp_path / "x.py").write_text(
        "try:\n    print('ready', flush=True)\n    input()\n"
        "except KeyboardInterrupt:\n    print('caught', flush=True)\n    print('no', input())\n"
    )
    terminal = Terminal(tmp_path, "x.py")
    terminals.append(terminal)
    terminal.until("ready")
    terminal.type(b"\x03")
    terminal.until("caught")
    terminal.type(b"typed\n")
    assert terminal.end() == 0
    assert "no typed\n" in terminal.shown
    assert program_in(tmp_path).status == "ok"


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Under the recording, without a terminal, once the program has said that it is ready."""
    process = subprocess.Popen(
        client(*words), cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_sent_to_us_reaches_the_program(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(HANDLES)
    process = start(tmp_path, "x.py")
    process.send_signal(number)
    out, err = process.communicate(timeout=SECONDS)
    assert out == f"got {number.name}", err
    assert process.returncode == 7
    assert program_in(tmp_path).closed is not None


def test_a_program_that_sigterm_ends_is_kept(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(WAITS)
    process = start(tmp_path, "x.py")
    process.terminate()
    process.communicate(timeout=SECONDS)
    assert process.returncode == 143
    run = program_in(tmp_path)
    assert run.status == "crashed"
    assert "SIGTERM" in run.error


def test_the_program_outlives_a_client_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(
        "import signal, sys, time\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\nprint('ready', flush=True)\n"
        "sys.stdin.readline()\nsys.path.insert(0, 'fake')\nimport jax\nopen('done', 'w').write('well')\n"
    )
    fake = tmp_path / "fake" / "jax"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text("__version__ = '0'\n")
    process = subprocess.Popen(
        client("x.py"), cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.wait()
    process.stdin.write("go on\n")
    process.stdin.close()
    assert process.stdout.read() == ""  # until the program has ended
    assert (tmp_path / "done").read_text() == "well"
