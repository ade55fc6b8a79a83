"""A job of several processes: started, recorded, compared, as a user does it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.calling import SOURCE, Caller
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


def test_a_job_finds_its_processes_by_jax_distributed_alone(tmp_path: Path) -> None:
    said = run(tmp_path, PSUM, "-n", "2")
    assert said.returncode == 0, said.stderr
    assert said.stdout.count("total 3.0 of 2") == 1, said.stdout
    names = sorted(path.name for path in (tmp_path / "train.jaxprof.d").iterdir())
    assert names == ["process-00000.jaxprof", "process-00001.jaxprof"]
    headers = [json.loads((tmp_path / "train.jaxprof.d" / name).open().readline()) for name in names]
    assert [(header["process_index"], header["process_count"]) for header in headers] == [(0, 2), (1, 2)]
    assert len({header["job"] for header in headers}) == 1


def test_a_failure_ends_the_job_with_its_exit_code_and_its_words(tmp_path: Path) -> None:
    said = run(tmp_path, FAILS, "-n", "3", "--out", "run")
    assert said.returncode == 1, said.stderr
    assert sorted(said.stdout.splitlines()) == ["0 of 3", "1 of 3", "2 of 3"]
    assert "process 1 of 3 ended with exit code 1" in said.stderr
    assert "process 0 of 3" not in said.stderr, "it was ended by us"
    answer = run(tmp_path, FAILS, "-n", "3", "--out", "run")
    assert answer.returncode == 2
    assert "run.jaxprof.d holds a job already" in answer.stderr
    report = subprocess.run(
        [sys.executable, "-m", "jaxprof", "show", "run.jaxprof.d", "--format", "json"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    data = json.loads(report.stdout)["data"]
    assert [each["status"] for each in data["processes"]] == ["crashed", "failed", "crashed"]
    assert "the disk of process 1 is gone" in data["processes"][1]["advice"]
    assert data["findings"][0]["process"] == 1


def test_the_processes_beside_each_other(call: Caller, tmp_path: Path) -> None:
    folder = job(tmp_path / "run.jaxprof.d", loop(), loop(data=0.3), loop())
    said = call("show", folder, "--hosts")
    assert said.code == 0
    assert (
        "process 1 on node1 is late: making or fetching its input takes 30% of its loop, 2% on the others"
        in " ".join(said.out.split())
    )
    data = call("show", folder, "--format", "json").data
    assert data["findings"][0]["code"] == "straggler"
    assert [each["host"] for each in data["processes"]] == ["node0", "node1", "node2"]
    assert data["processes"][1]["loop_shares"]["data"] == pytest.approx(0.3)
    rows = call("show", folder, "--format", "csv").out.splitlines()
    assert len(rows) == 4


def test_nobody_stands_out(call: Caller, tmp_path: Path) -> None:
    said = call("show", job(tmp_path / "run.jaxprof.d", loop(), loop()))
    assert "No process stands out" in said.out
    assert "A device that computes slowly is told only by captures" in " ".join(said.out.split())


def test_wrong_names(call: Caller, tmp_path: Path) -> None:
    folder = job(tmp_path / "run.jaxprof.d", loop(), loop())
    one_process = call("show", folder, "--compiles")
    assert one_process.code == 2
    assert "process-00000.jaxprof" in one_process.err
    assert call("show", tmp_path / "nothing.jaxprof.d").code == 2
    assert call("show", process(tmp_path, 0, 1, *loop(1)), "--hosts").code == 2
    refused = call("script", "-n", "2", "--out", tmp_path / "run.jaxprof", Path(__file__))
    assert refused.code == 2
    assert "a job has a session for each process" in refused.err


def test_a_process_of_a_job_without_an_id_needs_a_folder(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "2")
    program = tmp_path / "train.py"
    program.write_text("print('never')")
    said = call("script", program)
    assert said.code == 2
    assert "its launcher gives the job no id" in said.err
