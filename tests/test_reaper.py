"""What is left of us when we are killed: nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import jaxprof
from jaxprof.errors import StorageError
from jaxprof.reaper import TemporaryFolder, _Reaper
from runner import engines

CLIENT = """
import sys, time
from pathlib import Path
from jaxprof.engine.protocol.request import DevicesRequest
from jaxprof.events import PhaseStarted
from jaxprof.runner import Interpreter, engine_process
engine_process.ENGINE = Path(sys.argv[1])
process = engine_process.EngineProcess(Interpreter(sys.executable, None, "this one"))
process.send(DevicesRequest())
while not any(isinstance(event, PhaseStarted) for event in process.read(10)):
    pass
print(process.pid, process._scratch, flush=True)
time.sleep(600)
"""


def wait_until_gone(pid: int) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").exists() and ") Z " in Path(f"/proc/{pid}/stat").read_text():
            return True  # dead, and nobody has collected it
        time.sleep(0.05)
    return False


@pytest.fixture
def groups() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes, each in a group of its own."""
    made = [subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in range(2)]
    yield made
    for process in made:
        process.kill()
        process.wait()


@pytest.mark.process
def test_an_engine_that_holds_its_lock_ends_with_a_client_that_is_killed(tmp_path: Path) -> None:
    engine = tmp_path / "engine.py"
    engine.write_text(engines.STUCK)
    client = subprocess.Popen([sys.executable, "-c", CLIENT, str(engine)], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    with client, client.stdout:
        pid, scratch = client.stdout.readline().split()
        assert Path(scratch).is_dir()
        client.send_signal(signal.SIGKILL)
    assert wait_until_gone(int(pid))
    deadline = time.monotonic() + 30
    while Path(scratch).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(scratch).exists()


@pytest.mark.process
def test_a_frozen_engine_ends_with_a_client_that_is_killed(tmp_path: Path) -> None:
    engine = tmp_path / "engine.py"
    engine.write_text(engines.SLOW)
    frozen = CLIENT.replace("print(process", "process.freeze()\nprint(process")
    client = subprocess.Popen([sys.executable, "-c", frozen, str(engine)], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    with client, client.stdout:
        pid, _ = client.stdout.readline().split()
        client.send_signal(signal.SIGKILL)
    assert wait_until_gone(int(pid))


@pytest.mark.process
def test_only_what_is_registered_ends(groups: list[subprocess.Popen[bytes]], tmp_path: Path) -> None:
    kept, lost = tmp_path / "kept", tmp_path / "lost, with a $name"
    for folder in (kept, lost):
        folder.mkdir()
        (folder / "file").touch()
    first, second = groups
    reaper = _Reaper()
    reaper.add(first.pid, str(kept))
    reaper.add(second.pid, str(lost))
    reaper.drop(first.pid)
    reaper.close()
    assert second.wait(30) == -signal.SIGKILL
    assert reaper._process is not None
    assert reaper._process.wait(30) == 0
    assert first.poll() is None
    assert kept.exists()
    assert not lost.exists()


@pytest.mark.process
def test_a_reaper_that_was_killed_is_replaced(groups: list[subprocess.Popen[bytes]]) -> None:
    first, second = groups
    reaper = _Reaper()
    reaper.add(first.pid, "")
    assert reaper._process is not None
    reaper._process.kill()
    reaper._process.wait()
    reaper.add(second.pid, "")
    reaper.close()
    assert first.wait(30) == second.wait(30) == -signal.SIGKILL


@pytest.mark.process
def test_a_folder_without_a_process_goes_with_us_unless_it_was_dropped(tmp_path: Path) -> None:
    kept, lost = tmp_path / "kept", tmp_path / "lost"
    for folder in (kept, lost):
        folder.mkdir()
        (folder / "file").touch()
    reaper = _Reaper()
    name = reaper.add_folder(str(kept))
    reaper.add_folder(str(lost))
    reaper.drop(name)
    reaper.close()
    assert reaper._process is not None
    assert reaper._process.wait(30) == 0
    assert kept.exists()
    assert not lost.exists()


@pytest.mark.process
def test_a_temporary_folder_goes_at_its_close_and_with_a_process_that_is_killed(tmp_path: Path) -> None:
    with TemporaryFolder("test") as folder:
        (folder / "file").touch()
    assert not folder.exists()
    made = TemporaryFolder("test")
    made.close()
    made.close()
    program = (
        "import time\nfrom jaxprof.reaper import TemporaryFolder\n"
        "made = TemporaryFolder('test')\n(made.path / 'file').touch()\nprint(made.path, flush=True)\ntime.sleep(600)\n"
    )
    client = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    with client, client.stdout:
        folder = Path(client.stdout.readline().strip())
        assert folder.is_dir()
        client.kill()
    deadline = time.monotonic() + 30
    while folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_where_no_temporary_folder_can_be_made_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(StorageError, match="no temporary folder can be made: No such file") as refused:
        TemporaryFolder("test")
    assert "TMPDIR" in refused.value.hint


def test_the_client_makes_no_folder_that_would_outlast_it() -> None:
    source = Path(jaxprof.__file__).parent
    made = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if re.search(r"mkdtemp\(|TemporaryDirectory\(", path.read_text())
    }
    in_a_child = {"engine/measure/capture.py", "engine/measure/stages.py", "recorder/capture_window.py"}
    assert made - in_a_child == {"reaper.py", "runner/engine_process.py", "devices/targets/wheels.py"}


def test_a_folder_whose_name_has_two_lines_is_not_left_to_it() -> None:
    reaper = _Reaper()
    reaper.add_folder("/tmp/a\nadd folder2 /tmp")
    assert reaper._process is None, "it reads lines: the second one would be another folder"
