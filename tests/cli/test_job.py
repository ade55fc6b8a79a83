"""A job of several processes: started, recorded, compared, as a user does it. Of a folder as it should not be, what is
there is shown, what is missing is said, and nothing raises."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

import program_events
from cli.calling import run
from folding import written
from golden import held_cases
from jaxprof.cli.commands.script import note_own_options
from jaxprof.session import Session, load
from job_folders import job, loop, process
from query.conftest import InThisProcess

FAILS = """\
import os, sys, time, jax, jax.numpy as jnp
from pathlib import Path
from jax.experimental.multihost_utils import process_allgather
jax.distributed.initialize()
index = jax.process_index()
together = process_allgather(jnp.array([index + 1])).sum()
os.write(1, f"{index} of {jax.process_count()}: {together}\\n".encode())
jax.distributed.shutdown()
step = jax.jit(lambda x: (x @ x).sum())
x = jnp.ones((300, 300))
log, at_most = Path(__file__).with_name("run.jaxprof.d") / "process-00001.jaxprof", time.monotonic() + 40
while time.monotonic() < at_most and not (log.exists() and log.read_text().count('"capture_window"') == 2):
    for _ in range(50):
        step(x).block_until_ready()
    time.sleep(0.02)
if index == 0:
    os.execv(sys.executable, [sys.executable, "-c", OTHER])
time.sleep(0.5)
raise SystemExit("the disk of process 1 is gone")
"""
"""Once the window of the one that captures is over, the other becomes another program, and then the first fails."""
OTHER = """
import os, sys, time
names = [name for name in os.environ if name == "JAXPROF_PROGRAM" or "recorder/inject" in os.environ[name]]
os.write(1, f"another: {names}, {'jaxprof' in sys.modules}\\n".encode())
time.sleep(60)
"""


def test_an_option_of_jaxprof_behind_the_program_is_told(capsys):
    for arguments, note in (
        ("--plain", "jaxprof: --plain goes to train.py; jaxprof's own options stand before it\n"),
        ("--out=x 1 --force", "jaxprof: --out and --force go to train.py; jaxprof's own options stand before it\n"),
        ("--epochs 3 -n plain", ""),
    ):
        note_own_options("train.py", arguments.split())
        assert capsys.readouterr().err == note


@pytest.mark.process(programs=2)
def test_failure_ends_the_job_with_its_exit_code(call, tmp_path, monkeypatch):
    """In a folder of files named as modules that we import, of which none is imported."""
    here = tmp_path / "here"
    here.mkdir()
    for name in ("click", "jaxprof", "jax", "json", "msgspec", "psutil", "sitecustomize", "typing"):
        (here / f"{name}.py").write_text("1 / 0\n")
    (tmp_path / "train.py").write_text(f"OTHER = {OTHER!r}\n{FAILS}")
    words = "script -n 2 --out ../run --capture-ranks 1 --capture-after 2s --capture-seconds 500ms ../train.py"
    said = run(*words.split(), cwd=here)
    assert said.code == 1, said.err
    # Gloo writes its lines there, too, and ends them apart.
    assert sorted(re.findall(r". of 2: .|another: .*", said.out)) == ["0 of 2: 3", "1 of 2: 3", "another: [], False"]
    assert "process 1 of 2 ended with exit code 1" in said.err
    assert "process 0 of 2" not in said.err, "it was ended by us"
    monkeypatch.chdir(tmp_path)
    assert call("script", "-n", "2", "--out", "run", "train.py").code == 2, "there is a job already"
    data = call("open", "run.jaxprof.d", "--format", "json").data
    assert [each["status"] for each in data["processes"]] == ["cancelled", "failed"]
    assert data["findings"][0]["process"] == 1
    captured = [path.name for path in Path("run.jaxprof.d").glob("*.jaxprof") if '"capture_window"' in path.read_text()]
    assert captured == ["process-00001.jaxprof"]
    (ended,) = load(Path("run.jaxprof.d/process-00000.jaxprof"), Session).runs.values()
    assert (ended.program.ended.exit_code, [note.code for note in ended.program.ended.notes]) == (143, ["not_unwound"])
    assert "SIGTERM" in ended.error


def test_job_is_refused_where_a_session_is_needed(call, state_home):
    kept = state_home / "sessions"
    written(kept / "before.jaxprof", program_events.program(), program_events.HEADER)
    os.utime(kept / "before.jaxprof", (1e9, 1e9))
    job(kept / "run.jaxprof.d", loop(), loop())
    for words in ("export run", "hlo run", "gate run --base before --fail-on compiles", "compare run before"):
        said = call(*words.split())
        assert said.code != 0, words
        assert "run.jaxprof.d is a job, and one session is needed" in said.err, words
    assert "last: before, of train.py; the job run.jaxprof.d is newer" in call("export", "last").err
    assert "train.py: before, of train.py" in call("export", "train.py").err
    assert "2 processes" in call("open", "train.py").out, "the newest of that script"


def test_a_job_whose_folder_cannot_be_made_does_not_start(call, started, tmp_path):
    (tmp_path / "taken").touch()
    said = call("script", "-n", "2", "--out", "taken/run", "train.py")
    assert (said.code, list(started)) == (2, [])
    assert said.err.startswith("jaxprof: the folder taken/run.jaxprof.d cannot be made: File exists")


def test_a_job_that_is_replaced_leaves_nothing_of_the_one_before(call, started, tmp_path):
    before = job(tmp_path / "train.jaxprof.d", loop(), loop(), loop())
    old = [before / "rollup" / name for name in ("steps/process-00001.parquet", "all/steps-1a2b.parquet")]
    kept = before / "rollup" / "notes.txt"
    for path in (*old, kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"of the job before")
    assert call("script", "-n", "2", "--force", "--out", "train.jaxprof.d", "train.py").code == 1, "and no session"
    assert started == [2]
    assert [path for path in before.rglob("*") if path.is_file()] == [kept]


@pytest.fixture
def started(tmp_path, monkeypatch):
    counts = []

    class Launch:
        def __init__(self, command, count, job, output=None):
            assert command[:2] == [sys.executable, "-P"]
            assert "--oversubscribe" not in command
            counts.append(count)

        def signal(self, number, received=False):
            """Nothing has started."""

        def wait(self, failed, report):
            return 0

    monkeypatch.setattr("jaxprof.runner.job_launch.JobLaunch", Launch)
    monkeypatch.setattr("jaxprof.runner.job_launch.processors", lambda: 2)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("pass")
    return counts


def test_too_many_processes_need_oversubscribe(call, started, monkeypatch):
    refused = call("script", "-n", "17", "train.py")
    assert refused.code == 2
    assert "--oversubscribe starts them all" in refused.err
    for count, *more in (("16",), ("500", "--oversubscribe")):
        assert call("script", "--force", "-n", count, *more, "train.py").code == 1
    monkeypatch.setattr("jaxprof.runner.job_launch.processors", lambda: 8)
    assert call("script", "--force", "-n", "32", "train.py").code == 1
    assert started == [16, 500, 32]


def in_its_place(make):
    """Something else instead of the session of process 1."""

    def spoil(path):
        path.unlink()
        make(path)

    return spoil


def a_clock_that_goes_back(path):
    header, *lines = path.read_text().splitlines()
    events = [json.loads(line) for line in lines]
    for event in events[len(events) // 2 :]:
        if isinstance(event.get("began_seconds"), float):
            event["began_seconds"] -= 500.0
    path.write_text("\n".join([header, *map(json.dumps, events), ""]))


def a_damaged_line(path):
    lines = path.read_bytes().splitlines(keepends=True)
    lines[-4] = b"\xff{ torn\n"
    path.write_bytes(b"".join(lines))


def nothing_of_ours(path):
    path.write_bytes(b"\x00 nothing of ours")
    path.with_name("notes.txt").write_text("not a session")


ANOTHER = {"job": "slurm-99.0", "jaxprof": "0.0.9"}
BAD = {
    "a_torn_file": lambda path: os.truncate(path, path.stat().st_size * 2 // 3),
    "a_header_alone": lambda path: os.truncate(path, path.read_bytes().index(b"\n") + 1),
    "a_folder_in_its_place": in_its_place(os.mkdir),
    "a_copy_under_another_number": lambda path: shutil.copy(path, path.with_name("process-00003.jaxprof")),
    "a_missing_file": os.unlink,
    "a_named_pipe": in_its_place(os.mkfifo),
    "a_clock_that_goes_back": a_clock_that_goes_back,
    "a_damaged_line": a_damaged_line,
    "a_huge_number": lambda path: process(path.parent, 999_999_999, 3, *loop()),
    "an_attempt_before": lambda path: process(path.parent, 1, 3, *loop()),
    "nothing_of_ours": nothing_of_ours,
    "most_missing": lambda path: process(path.parent, 31, 32, *loop()),
    "another_job": lambda path: process(path.parent, 3, 4, *loop(), header=ANOTHER),
}
"""What becomes of the session of process 1, or comes beside it."""


@pytest.mark.process
def test_damaged_folder_of_a_job(call, tmp_path, monkeypatch):
    monkeypatch.setattr("jaxprof.query.sql_process.SqlProcess", InThisProcess)
    cases = {}
    for name, spoil in BAD.items():
        folder = job(tmp_path / name / "run.jaxprof.d", loop(), loop(data=0.3), loop())
        spoil(folder / "process-00001.jaxprof")
        data = call("open", folder, "--format", "json").data
        seen = [f"{each['process']} {each['host']}: {each['status']}" for each in data["processes"]]
        told = "".join(f"  {line}\n" for line in (*seen, *data["notices"]))
        cases[name] = told.replace(str(folder), "FOLDER")
        assert {"node0", "node2"} <= {each["host"] for each in data["processes"]}
        asked = call("query", folder, "SELECT count(DISTINCT process) AS there FROM processes", "--format", "json")
        assert asked.data["rows"][0]["there"] >= 2, asked.err
        assert call("explain", folder).code == 0
    held_cases("job_folders.txt", cases)
