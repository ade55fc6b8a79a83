"""Windows: sessions, profiles and HLO are opened, printed and exported without what only POSIX has; nothing is run."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from hlo_sources import write_kernels
from jaxprof import operating_system
from jaxprof.errors import UsageError
from jaxprof.session import Session
from jaxprof.session.log import LogWriter, load
from report import sessions
from terminal import Terminal
from tui import profiles

HERE = Path(__file__).parent
HIDDEN = (sys.executable, "-X", "warn_default_encoding", str(HERE / "without_posix.py"))


def surroundings(home: Path) -> dict[str, str]:
    source = str(HERE.parent / "src")
    return {"PATH": "/usr/bin:/bin", "HOME": str(home), "JAXPROF_HOME": str(home), "PYTHONPATH": source}


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it said."""

    returncode: int
    stdout: str
    stderr: str


def call(home: Path, *commands: Sequence[str | Path]) -> list[Said]:
    """`jaxprof` with each of these words, in one process without POSIX."""
    done = subprocess.run(
        [*HIDDEN, "--each"],
        input=json.dumps([[str(word) for word in words] for words in commands]),
        capture_output=True, text=True, env=surroundings(home), cwd=home, timeout=50,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [Said(*found) for found in json.loads(done.stdout)]


def printed(home: Path, *commands: Sequence[str | Path]) -> list[str]:
    done = call(home, *commands)
    assert [(each.returncode, each.stderr) for each in done] == [(0, "")] * len(commands), done
    return [each.stdout for each in done]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a kept session, one with a timeline, a profile, and the HLO of a module."""
    folder = tmp_path_factory.mktemp("windows")
    tape = profiles.captured()
    for header, events, name in (
        (sessions.HEADER, sessions.events(), "sessions/kept.jaxprof"),
        (tape.header, tape.events, "captured.jaxprof"),
    ):
        writer = LogWriter(header, folder / name)
        for event in events:
            writer.append(event)
        writer.close()
    write_kernels(folder / "box.xplane.pb", op="add.1")
    (folder / "module.hlo").write_bytes((HERE / "hlo" / "printed.hlo").read_bytes())
    return folder


@pytest.mark.process
@pytest.mark.parametrize(
    "broken", ["import fcntl", "import termios", "import os; os.killpg", "from signal import SIGHUP"]
)
def test_posix_is_hidden_from_these_commands(home: Path, broken: str) -> None:
    script = f"import without_posix; without_posix.hide(); {broken}"
    surrounded = {**surroundings(home), "PYTHONPATH": str(HERE)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=surrounded, timeout=100)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(("ModuleNotFoundError", "AttributeError", "ImportError"))


@pytest.mark.process
def test_sessions_and_hlo_are_listed_printed_and_exported_in_every_form(home: Path) -> None:
    listed, text, data, table, markdown, trace, hlo, kernels, kept = printed(
        home,
        ("sessions",),
        *(("show", "kept", *more) for more in ((), *(("--format", form) for form in ("json", "csv", "markdown")))),
        ("export", "captured.jaxprof"),
        ("hlo", "module.hlo"),
        ("hlo", "module.hlo", "--kernels"),
        ("hlo", "captured.jaxprof", "--kernels"),
    )
    assert "kept" in listed
    assert "selu" in text
    assert json.loads(data)["data"]["runs"]
    assert len(list(csv.reader(table.splitlines()))) > 1
    assert "| " in markdown
    assert json.loads(trace)["traceEvents"]
    assert "loop_fusion" in hlo
    assert "kernel" in kernels
    assert "selu" in kept


@pytest.mark.process
def test_a_profile_is_printed_exported_and_kept_and_one_that_cannot_be_read_leaves_nothing(home: Path) -> None:
    (home / "broken.xplane.pb").write_bytes(b"\x0a\xff\xff\x03 no planes")
    shown, exported, kept, refused = call(
        home,
        ("show", "box.xplane.pb"),
        ("export", "box.xplane.pb", "--run", "r1"),
        ("import", "box.xplane.pb", "--out", "box.jaxprof"),
        ("import", "broken.xplane.pb", "--out", "broken.jaxprof"),
    )
    assert "add.1" in shown.stdout
    assert json.loads(exported.stdout)["traceEvents"]
    assert kept.returncode == 0, kept
    assert {run.status for run in load(home / "box.jaxprof", Session).runs.values()} == {"ok"}
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "broken.xplane.pb" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (home / "broken.jaxprof").exists()


@pytest.mark.process
def test_running_says_that_it_needs_wsl_and_the_machine_is_listed_without_jax(home: Path) -> None:
    *refused, listed = call(
        home, ("run", "selu"), ("script", "x.py"), ("attach", "9999"), ("hlo", "selu"), ("devices",)
    )
    for done in refused:
        assert (done.returncode, done.stdout) == (2, "")
        assert "needs Linux or macOS" in done.stderr
        assert "WSL" in done.stderr
        assert "Traceback" not in done.stderr
    assert listed.returncode == 0, listed
    assert "cpu:0" in listed.stdout
    assert "needs Linux or macOS" in listed.stderr


@pytest.mark.process
@pytest.mark.parametrize(("file", "seen"), [("box.xplane.pb", "[Overview]"), ("module.hlo", "HLO")])
def test_the_app_opens_them(home: Path, file: str, seen: str) -> None:
    with Terminal([*HIDDEN, "open", file], home, {**os.environ, **surroundings(home)}) as terminal:
        terminal.sees(seen)
        terminal.sees("? Help")
        terminal.type(b"q")
        assert terminal.end() == 0
        assert "Traceback" not in terminal.plain


def test_nothing_is_refused_where_programs_can_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    operating_system.refuse_to_run("measuring")
    monkeypatch.delattr(os, "fork")
    with pytest.raises(UsageError, match="measuring needs Linux or macOS") as refused:
        operating_system.refuse_to_run("measuring")
    assert "WSL" in refused.value.hint


def test_signals_are_those_that_the_system_has() -> None:
    assert operating_system.signals("SIGTERM", "SIGBREAK") == (signal.SIGTERM,)
