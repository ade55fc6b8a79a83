"""Windows: sessions, profiles and HLO are opened, printed and exported without what only POSIX has; nothing is run."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.calling import Said
from folding import written
from hlo_sources import write_kernels
from jaxprof.base import operating_system
from jaxprof.base.errors import UsageError
from jaxprof.session import Session, load
from report import sessions
from terminal import Terminal
from tui import profiles
from waiting import SLOWER

HERE = Path(__file__).parents[1]
HIDDEN = (sys.executable, "-X", "warn_default_encoding", str(HERE / "without_posix.py"))


def surroundings(home):
    source = str(HERE.parent / "src")
    return {"PATH": os.environ["PATH"], "HOME": str(home), "JAXPROF_HOME": str(home), "PYTHONPATH": source}


def call(home, *commands):
    """`jaxprof` with each of these words, in one process without POSIX."""
    given = json.dumps(list(map(list, commands)))
    done = subprocess.run(
        [*HIDDEN, "--each"],
        input=given,
        capture_output=True,
        text=True,
        env=surroundings(home),
        cwd=home,
        timeout=50 * SLOWER,
    )
    assert done.returncode == 0, done.stderr
    return [Said(*found) for found in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
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
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=surrounded, timeout=100 * SLOWER
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.process
def test_without_posix_everything_but_running(home):
    (home / "broken.xplane.pb").write_bytes(b"\x0a\xff\xff\x03 no planes")
    seen = {
        "sessions": "kept",
        "open kept": "selu",
        "open kept --format json": '"data":',
        "open kept --format csv": "\n",
        "open kept --format markdown": "```text",
        "export captured.jaxprof": "traceEvents",
        "hlo module.hlo": "loop_fusion",
        "hlo module.hlo --kernels": "kernel",
        "hlo captured.jaxprof --kernels": "selu",
        "open box.xplane.pb": "add.1",
        "export box.xplane.pb --run r1": "traceEvents",
        "open --keep box.xplane.pb --out box.jaxprof": "",
    }
    refused = {
        "open --keep broken.xplane.pb --out broken.jaxprof": "broken.xplane.pb",
        "run selu": "WSL",
        "script x.py": "WSL",
        "open --seconds 2 9999": "WSL",
        "hlo selu": "WSL",
    }
    *said, devices = call(home, *(line.split() for line in (*seen, *refused, "devices")))
    for done, words in zip(said, seen.values(), strict=False):
        assert done.code == 0, done
        assert words in done.out, done
    for done, words in zip(said[len(seen) :], refused.values(), strict=True):
        assert done.code == 2
        assert done.out == ""
        assert words in done.err
        assert "Traceback" not in done.err
    assert devices.code == 0, "without jax"
    assert "cpu:0" in devices.out, "without jax"
    assert {run.status for run in load(home / "box.jaxprof", Session).runs.values()} == {"ok"}
    assert not (home / "broken.jaxprof").exists()


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


@pytest.mark.parametrize(
    ("membership", "files", "count"),
    [
        ("0::/job/step", {"cgroup.controllers": "", "job/step/memory.events": "oom 3\noom_kill 2"}, 2),
        ("0::/job/step", {"cgroup.controllers": "", "memory.events": "oom_kill 1"}, 1),
        ("9:memory:/job", {"memory/job/memory.oom_control": "under_oom 0\noom_kill 4"}, 4),
        ("9:cpu:/job", {"memory/job/memory.oom_control": "oom_kill 4"}, 0),
        ("0::/job", {"cgroup.controllers": "", "job/memory.events": "nonsense"}, 0),
        ("", {}, 0),
    ],
    ids=["of its group", "in a container", "version 1", "no group for memory", "unreadable", "no groups"],
)
def test_kills_for_lack_of_memory_are_counted_in_the_own_group(tmp_path, membership, files, count):
    (tmp_path / "membership").write_text(membership)
    for name, text in files.items():
        path = tmp_path / "mount" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert operating_system.oom_kill_count(tmp_path / "mount", tmp_path / "membership") == count
