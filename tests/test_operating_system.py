"""Windows: sessions, profiles and HLO are opened, printed and exported without what only POSIX has; nothing is run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from folding import written
from hlo_sources import write_kernels
from jaxprof import operating_system
from jaxprof.errors import UsageError
from jaxprof.session import Session
from jaxprof.session.log import load
from report import sessions
from terminal import Terminal
from tui import profiles

HERE = Path(__file__).parent
HIDDEN = (sys.executable, "-X", "warn_default_encoding", str(HERE / "without_posix.py"))


def surroundings(home: Path) -> dict[str, str]:
    source = str(HERE.parent / "src")
    return {"PATH": "/usr/bin:/bin", "HOME": str(home), "JAXPROF_HOME": str(home), "PYTHONPATH": source}


class Said(NamedTuple):
    """How a command ended, and what it said."""

    returncode: int
    stdout: str
    stderr: str


def call(home: Path, *commands: Sequence[str]) -> list[Said]:
    """`jaxprof` with each of these words, in one process without POSIX."""
    given = json.dumps(list(map(list, commands)))
    done = subprocess.run(
        [*HIDDEN, "--each"], input=given, capture_output=True, text=True, env=surroundings(home), cwd=home, timeout=50
    )
    assert done.returncode == 0, done.stderr
    return [Said(*found) for found in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a kept session, one with a timeline, a profile, and the HLO of a module."""
    folder = tmp_path_factory.mktemp("windows")
    tape = profiles.captured()
    written(folder / "sessions" / "kept.jaxprof", sessions.events(), sessions.HEADER)
    written(folder / "captured.jaxprof", tape.events, tape.header)
    write_kernels(folder / "box.xplane.pb", op="add.1")
    (folder / "module.hlo").write_bytes((HERE / "hlo" / "printed.hlo").read_bytes())
    return folder


@pytest.mark.process
def test_posix_is_hidden_from_these_commands(home):
    broken = ["import fcntl", "import termios", "import os; os.killpg", "from signal import SIGHUP"]
    script = f"""import without_posix
without_posix.hide()
for line in {broken}:
    try:
        exec(line)
    except (ImportError, AttributeError):
        continue
    raise SystemExit(line)
"""
    surrounded = {**surroundings(home), "PYTHONPATH": str(HERE)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=surrounded, timeout=100)
    assert done.returncode == 0, done.stderr


@pytest.mark.process
def test_sessions_and_hlo_are_listed_printed_and_exported_in_every_form(home):
    seen = {
        "sessions": "kept",
        "show kept": "selu",
        "show kept --format json": '"data":',
        "show kept --format csv": "\n",
        "show kept --format markdown": "| ",
        "export captured.jaxprof": "traceEvents",
        "hlo module.hlo": "loop_fusion",
        "hlo module.hlo --kernels": "kernel",
        "hlo captured.jaxprof --kernels": "selu",
    }
    for done, words in zip(call(home, *(line.split() for line in seen)), seen.values(), strict=True):
        assert (done.returncode, done.stderr, words in done.stdout) == (0, "", True), done


@pytest.mark.process
def test_a_profile_is_printed_exported_and_kept_and_one_that_cannot_be_read_leaves_nothing(home):
    (home / "broken.xplane.pb").write_bytes(b"\x0a\xff\xff\x03 no planes")
    shown, exported, kept, refused = call(
        home,
        ("show", "box.xplane.pb"),
        ("export", "box.xplane.pb", "--run", "r1"),
        ("import", "box.xplane.pb", "--out", "box.jaxprof"),
        ("import", "broken.xplane.pb", "--out", "broken.jaxprof"),
    )
    assert ("add.1" in shown.stdout, "traceEvents" in exported.stdout, kept.returncode) == (True, True, 0)
    assert {run.status for run in load(home / "box.jaxprof", Session).runs.values()} == {"ok"}
    assert (refused.returncode, refused.stdout, "broken.xplane.pb" in refused.stderr) == (2, "", True)
    assert not (home / "broken.jaxprof").exists()


@pytest.mark.process
def test_running_says_that_it_needs_wsl_and_the_machine_is_listed_without_jax(home):
    words = (("run", "selu"), ("script", "x.py"), ("attach", "9999"), ("hlo", "selu"), ("devices",))
    *refused, listed = call(home, *words)
    for done in refused:
        assert (done.returncode, done.stdout, "WSL" in done.stderr) == (2, "", True)
        assert "Traceback" not in done.stderr
    assert (listed.returncode, "cpu:0" in listed.stdout) == (0, True), listed


@pytest.mark.process
def test_the_app_opens_them(home):
    words = [*HIDDEN, "open", "box.xplane.pb"]
    with Terminal(words, home, {**os.environ, **surroundings(home)}) as terminal:
        terminal.sees("[Overview]")
        terminal.sees("? Help")
        terminal.type(b"q")
        assert terminal.end() == 0
        assert "Traceback" not in terminal.plain


def test_nothing_is_refused_where_programs_can_be_run(monkeypatch):
    operating_system.refuse_to_run("measuring")
    monkeypatch.delattr(os, "fork")
    with pytest.raises(UsageError, match="measuring needs Linux or macOS") as refused:
        operating_system.refuse_to_run("measuring")
    assert "WSL" in refused.value.hint


def test_signals_are_those_that_the_system_has():
    assert operating_system.signals("SIGTERM", "SIGBREAK") == (signal.SIGTERM,)
