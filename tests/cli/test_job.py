"""A job of several processes: started, recorded, compared, as a user does it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.calling import SOURCE, Caller
from jaxprof.cli.commands.script import note_own_options
from job_folders import job, loop, process

FAILS = """\
import os, sys, time
os.write(1, f"{os.environ['RANK']} of {os.environ['WORLD_SIZE']}\\n".encode())
if os.environ["RANK"] == "1":
    raise SystemExit("the disk of process 1 is gone")
time.sleep(60)
"""
PSUM = """\
import jax, jax.numpy as jnp, numpy as np
jax.distributed.initialize()
from jax.experimental import multihost_utils
total = multihost_utils.process_allgather(jnp.float32(jax.process_index() + 1)).sum()
if jax.process_index() == 0:
    print("total", float(total), "of", jax.process_count())
"""


def run(folder: Path, source: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(source)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", "jaxprof", "script", *words, "train.py"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )


def test_hosts_of_what_is_no_job_says_what_it_is(call: Caller, tmp_path: Path, kept: Path) -> None:
    (tmp_path / "text.md").write_text("# no session")
    for word, what in ((kept, "a session"), ("last", "a session"), (tmp_path / "text.md", "a file")):
        said = call("open", word, "--hosts")
        assert (said.code, f"{word} is {what}, not the folder of a job" in said.err) == (2, True), said.err
    assert "unknown session 'none'" in call("open", "none", "--hosts").err


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        (("--plain",), "--plain goes to train.py; jaxprof's own options stand before it"),
        (("--out=x", "1", "--force"), "--out and --force go to train.py; jaxprof's own options stand before it"),
        (("--epochs", "3", "-n", "plain"), ""),
    ],
)
def test_an_option_of_jaxprof_behind_the_program_is_told(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], note: str
) -> None:
    note_own_options("train.py", arguments)
    assert capsys.readouterr().err == (f"jaxprof: {note}\n" if note else "")


@pytest.mark.process
def test_a_job_finds_its_processes_by_jax_distributed_alone(tmp_path: Path) -> None:
    said = run(tmp_path, PSUM, "-n", "2")
    assert said.returncode == 0, said.stderr
    assert said.stdout.count("total 3.0 of 2") == 1, said.stdout
    names = sorted(path.name for path in (tmp_path / "train.jaxprof.d").glob("*.jaxprof"))  # a long run is rolled up
    assert names == ["process-00000.jaxprof", "process-00001.jaxprof"]
    headers = [json.loads((tmp_path / "train.jaxprof.d" / name).open().readline()) for name in names]
    assert [(header["process_index"], header["process_count"]) for header in headers] == [(0, 2), (1, 2)]
    assert len({header["job"] for header in headers}) == 1


@pytest.mark.process
def test_a_failure_ends_the_job_with_its_exit_code_and_its_words(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run(tmp_path, FAILS, "-n", "2", "--out", "run")
    assert said.returncode == 1, said.stderr
    assert sorted(said.stdout.splitlines()) == ["0 of 2", "1 of 2"]
    assert "process 1 of 2 ended with exit code 1" in said.stderr
    assert "process 0 of 2" not in said.stderr, "it was ended by us"
    monkeypatch.chdir(tmp_path)
    again = call("script", "-n", "2", "--out", "run", "train.py")
    assert (again.code, "run.jaxprof.d holds a job already" in again.err) == (2, True)
    data = call("show", "run.jaxprof.d", "--format", "json").data
    assert [each["status"] for each in data["processes"]] == ["crashed", "failed"]
    assert "the disk of process 1 is gone" in data["processes"][1]["advice"]
    assert data["findings"][0]["process"] == 1


@pytest.mark.process
def test_a_job_that_is_replaced_leaves_nothing_of_the_one_before(tmp_path: Path) -> None:
    before = job(tmp_path / "train.jaxprof.d", loop(), loop(), loop())
    old = [before / "rollup" / name for name in ("steps/process-00001.parquet", "all/steps-1a2b.parquet")]
    kept = before / "rollup" / "notes.txt"
    for path in (*old, kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"of the job before")
    said = run(tmp_path, "print('again')", "-n", "2", "--force", "--out", "train.jaxprof.d")
    assert said.returncode == 0, said.stderr
    assert sorted(path.name for path in before.glob("*.jaxprof")) == ["process-00000.jaxprof", "process-00001.jaxprof"]
    assert not any(path.exists() for path in old)
    assert kept.exists()


def test_a_job_in_which_nobody_is_late_has_no_finding(call: Caller, tmp_path: Path) -> None:
    folder = job(tmp_path / "run.jaxprof.d", loop(), loop(), loop())
    said = call("explain", folder, "--format", "json")
    assert said.data["findings"] == []
    assert said.data["answers"][1].startswith("No process stands out. Compared: 3 loops")
    assert [answer.partition(":")[0] for answer in said.data["answers"][2:]] == ["costs most", "how sure"]
    (folder / "process-00002.jaxprof").unlink()
    unknown = call("explain", folder, "--format", "json").data["unknown"]
    assert unknown[0] == {
        "code": "job-incomplete",
        "reason": "1 of 3 processes have no session here: 2",
        "command": None,
    }


def test_a_job_that_jaxprof_started_is_started_again_to_verify(call: Caller, tmp_path: Path) -> None:
    folder = tmp_path / "run.jaxprof.d"
    for index, data in enumerate((0.02, 0.3)):
        process(folder, index, 2, *loop(data=data), header={"job": "jaxprof-box-1a2b"})
    finding = call("explain", folder, "--format", "json").data["findings"][0]
    again = tmp_path / "run-again.jaxprof.d"
    assert finding["verify"] == (
        f"jaxprof script -n 2 --out {again} train.py --epochs 3 && jaxprof compare {folder} {again}"
    )


@pytest.mark.process
@pytest.mark.parametrize(
    "words",
    [
        ["show", "--kernels"], ["export"], ["hlo"], ["gate", "--fail-on", "kernels"], ["serve"],
        ["import"], ["run", "--from"],
    ],
)  # fmt: skip
def test_what_is_about_one_process_says_so_of_a_job(call: Caller, tmp_path: Path, words: list[str]) -> None:
    folder = job(tmp_path / "run.jaxprof.d", loop(), loop())
    said = call(*words, folder)
    assert said.code == 2
    assert str(folder) in said.err
    assert "process-00000.jaxprof" in said.err or "jaxprof open" in said.err or "Name a session in it" in said.err
    assert sorted(path.name for path in folder.iterdir()) == ["process-00000.jaxprof", "process-00001.jaxprof"]


def test_a_count_of_processes_that_nobody_knows_is_null(call: Caller, tmp_path: Path) -> None:
    path = process(tmp_path, 2, 0)
    assert call("show", path, "--format", "json").data["session"]["process_count"] is None
    known = process(tmp_path, 3, 4)
    assert call("show", known, "--format", "json").data["session"]["process_count"] == 4


@pytest.mark.parametrize(("words", "code"), [([], 2), (["--oversubscribe"], 0)])
def test_more_processes_than_the_machine_bears_are_started_on_request_alone(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int
) -> None:
    """Without starting them."""
    started: list[tuple[list[str], int]] = []

    class Launch:
        def __init__(self, command: list[str], count: int, job: str, output: int | None = None) -> None:
            started.append((command, count))

        def signal(self, number: int) -> None:
            raise AssertionError(number)

        def wait(self, failed: object) -> int:
            return 0

    monkeypatch.setattr("jaxprof.runner.job_launch.JobLaunch", Launch)
    monkeypatch.setattr("jaxprof.cli.plain_script.processors", lambda: 2)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("pass")
    said = call("script", "-n", "500", *words, "train.py")
    assert said.code == code, said.err
    assert ("-n 500 starts 500 processes on 2 processors" in said.err) is (code == 2)
    assert ("--oversubscribe starts them all" in said.err) is (code == 2)
    assert [count for _, count in started] == ([500] if words else [])
    assert not any("--oversubscribe" in command for command, _ in started)
    assert call("script", "-n", "16", "train.py").code == 0
    assert call("script", "-n", "17", "train.py").code == 2
    monkeypatch.setattr("jaxprof.cli.plain_script.processors", lambda: 8)
    assert call("script", "-n", "32", "train.py").code == 0
    assert call("script", "--oversubscribe", "train.py").code == 2, "it is for -n"


BUSY = """\
import os, time, jax, jax.numpy as jnp
step = jax.jit(lambda x: (x @ x).sum())
x = jnp.ones((300, 300))
until = time.monotonic() + 6
while time.monotonic() < until:
    if os.environ["RANK"] == "1":
        time.sleep(0.02)
    step(x).block_until_ready()
"""


@pytest.mark.process
def test_the_slowest_process_and_a_named_one_capture(tmp_path: Path) -> None:
    words = "-n 3 --capture-ranks 2,slowest --capture-after 2s --capture-seconds 1"
    said = run(tmp_path, BUSY, *words.split())
    assert said.returncode == 0, said.stderr
    folder = tmp_path / "train.jaxprof.d"
    captured = [path.name for path in sorted(folder.glob("*.jaxprof")) if '"capture_window"' in path.read_text()]
    assert captured == ["process-00001.jaxprof", "process-00002.jaxprof"]
