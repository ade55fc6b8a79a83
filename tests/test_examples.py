"""The examples learn. One is a program that is worth a look: forward, backward and update; one is a job, whose late
process is named."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cli.calling import environment
from jaxprof.session.log.entry import read_entry

EXAMPLE = Path(__file__).parents[1] / "examples" / "transformer.py"
JOB = EXAMPLE.with_name("data_parallel.py")


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not part of a source distribution")
def test_the_transformer_learns():
    example = runpy.run_path(str(EXAMPLE), run_name="example")
    step, rng = example["train_step"], np.random.default_rng(0)
    params, momentum, text = example["train_step_inputs"](rng, batch=2, length=8, width=16, layers=1)
    lost = []
    for _ in range(4):
        params, momentum, value = step(params, momentum, text)
        lost.append(float(value))
    assert lost[-1] < lost[0]
    compiled = step.lower(params, momentum, text).compile().as_text()
    assert [scope for scope in ("attention", "mlp", "head", "update") if scope not in compiled] == []


def run(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "jaxprof", *map(str, words)]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=200)


@pytest.mark.process
@pytest.mark.skipif(not JOB.exists(), reason="the examples are not part of a source distribution")
def test_the_late_process_of_the_job_is_named(tmp_path):
    said = run(tmp_path, "script", "-n", "2", JOB, "--slow", "1", "--steps", "80")
    assert said.returncode == 0, said.stderr
    (lost,) = re.findall(r"loss after 80 steps: ([\d.]+)", said.stdout)
    assert float(lost) < 0.8, "it learns nothing"
    folder = tmp_path / "data_parallel.jaxprof.d"
    headers = [read_entry(path).header for path in sorted(folder.glob("*.jaxprof"))]
    assert [(header.process_index, header.process_count) for header in headers] == [(0, 2), (1, 2)]
    explained = run(tmp_path, "explain", folder, "--format", "json")
    (finding,) = json.loads(explained.stdout)["data"]["findings"]
    assert (finding["code"], finding["evidence"]["process"]) == ("straggler", 1)
    line = JOB.read_text().splitlines()[int(finding["evidence"]["source"].rpartition(":")[2]) - 1]
    assert line.strip() == "time.sleep(self.seconds)"


@pytest.mark.skipif(not JOB.exists(), reason="the examples are not part of a source distribution")
def test_the_documents_start_the_job_with_options_that_it_has():
    page = (EXAMPLE.parents[1] / "docs" / "jobs.md").read_text()
    assert "jaxprof script -n 4 examples/data_parallel.py --slow 2" in page
    assert "jaxprof explain data_parallel.jaxprof.d" in page
    parsed = re.findall(r'add_argument\("(--\w+)"', JOB.read_text())
    assert set(re.findall(r"--(?:slow|how|steps)\b", page)) <= set(parsed)
