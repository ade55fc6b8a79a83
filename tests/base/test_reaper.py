"""What is left of us when we are killed: nothing."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import jaxprof
from jaxprof.base.errors import StorageError
from jaxprof.base.reaper import TemporaryFolder, _Reaper
from runner import engines
from waiting import until

CLIENT = """
import sys, time
from pathlib import Path
from jaxprof.engine.protocol.request import DevicesRequest
from jaxprof.events import PhaseStarted
from jaxprof.runner import engine_process
from jaxprof.runner.interpreter import Interpreter
engine_process.ENGINE = Path(sys.argv[1])
process = engine_process.EngineProcess(Interpreter(sys.executable, None))
process.send(DevicesRequest())
while not any(isinstance(event, PhaseStarted) for event in process.read(10)):
    pass
print(process.pid, process._scratch, flush=True)
time.sleep(600)
"""


def is_gone(pid):
    """Whether a process has ended, or is dead and nobody has collected it."""
    status = Path(f"/proc/{pid}/stat")
    try:
        os.kill(pid, 0)
        return status.exists() and ") Z " in status.read_text()
    except (ProcessLookupError, FileNotFoundError):
        return True


def started(program, *words):
    """A process, and the words that it says first."""
    client = subprocess.Popen([sys.executable, "-c", program, *map(str, words)], stdout=subprocess.PIPE, text=True)
    return client, client.stdout.readline().split()


@pytest.fixture
def groups():
    """Two processes, each in a group of its own."""
    made = [subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in range(2)]
    yield made
    for process in made:
        process.kill()
        process.wait()


@pytest.mark.process
@pytest.mark.parametrize(
    ("source", "program"),
    [(engines.STUCK, CLIENT), (engines.SLOW, CLIENT.replace("print(process", "process.freeze()\nprint(process"))],
    ids=["holds its lock", "frozen"],
)
def test_an_engine_ends_with_a_client_that_is_killed(tmp_path, source, program):
    (tmp_path / "engine.py").write_text(source)
    client, (pid, scratch) = started(program, tmp_path / "engine.py")
    with client:
        assert Path(scratch).is_dir()
        client.kill()
    until(lambda: is_gone(int(pid)))
    until(lambda: not Path(scratch).exists())


@pytest.mark.process
def test_only_what_is_registered_ends(groups, tmp_path):
    folders = [tmp_path / name for name in ("kept", "kept alone", "lost, with a $name", "lost alone")]
    for folder in folders:
        folder.mkdir()
        (folder / "file").touch()
    first, second = groups
    reaper = _Reaper()
    reaper.add(first.pid, str(folders[0]))
    dropped = reaper.add_folder(str(folders[1]))
    reaper.add(second.pid, str(folders[2]))
    reaper.add_folder(str(folders[3]))
    reaper.drop(first.pid)
    reaper.drop(dropped)
    reaper.close()
    assert (second.wait(30), reaper._process.wait(30), first.poll()) == (-signal.SIGKILL, 0, None)
    assert [folder.exists() for folder in folders] == [True, True, False, False]


@pytest.mark.process
def test_a_reaper_that_was_killed_is_replaced(groups):
    first, second = groups
    reaper = _Reaper()
    reaper.add(first.pid, "")
    reaper._process.kill()
    reaper._process.wait()
    reaper.add(second.pid, "")
    reaper.close()
    assert first.wait(30) == second.wait(30) == -signal.SIGKILL


@pytest.mark.process
def test_temporary_folder_is_removed():
    made = TemporaryFolder("test")
    (made.path / "file").touch()
    made.close()
    made.close()
    assert not made.path.exists()
    client, (folder,) = started(
        "import time\nfrom jaxprof.base.reaper import TemporaryFolder\n"
        "made = TemporaryFolder('test')\n(made.path / 'file').touch()\nprint(made.path, flush=True)\ntime.sleep(600)\n"
    )
    with client:
        assert Path(folder).is_dir()
        client.kill()
    until(lambda: not Path(folder).exists())


def test_where_no_temporary_folder_can_be_made_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(StorageError, match="no temporary folder can be made: No such file") as refused:
        TemporaryFolder("test")
    assert "TMPDIR" in refused.value.hint


def test_the_client_makes_no_folder_that_would_outlast_it():
    source = Path(jaxprof.__file__).parent
    made = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if re.search(r"mkdtemp\(|TemporaryDirectory\(", path.read_text())
    }
    in_a_child = {"engine/measure/capture.py", "engine/measure/stages.py", "recorder/capture_window.py"}
    assert made - in_a_child == {"base/reaper.py", "runner/engine_process.py", "devices/absent/wheels.py"}


def test_a_folder_whose_name_has_two_lines_is_not_left_to_it():
    reaper = _Reaper()
    reaper.add_folder("/tmp/a\nadd folder2 /tmp")
    assert reaper._process is None, "it reads lines: the second one would be another folder"
