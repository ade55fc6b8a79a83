"""The examples learn. One is a program that is worth a look: forward, backward and update; one is a job, whose late
process is named."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from cli.calling import run
from jaxprof.session.log.entry import read_entry

EXAMPLE = Path(__file__).parents[1] / "examples" / "transformer.py"
JOB = EXAMPLE.with_name("data_parallel.py")


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not part of a source distribution")
def test_the_transformer_learns():
    example = runpy.run_path(str(EXAMPLE), run_name="example")
    step, rng = example["train_step"], np.random.default_rng(0)
    params, momentum, text = example["train_step_inputs"](rng, batch=2, length=8, width=16, layers=1)
    compiled = step.lower(params, momentum, text).compile()
    lost = []
    for _ in range(4):
        params, momentum, value = compiled(params, momentum, text)
        lost.append(float(value))
    assert lost[-1] < lost[0]
    hlo = compiled.as_text()
    assert [scope for scope in ("attention", "mlp", "head", "update") if scope not in hlo] == []


@pytest.mark.process(programs=2)
@pytest.mark.skipif(not JOB.exists(), reason="the examples are not part of a source distribution")
def test_the_late_process_of_the_job_is_named(tmp_path):
    said = run("script", "-n", "2", JOB, "--slow", "1", "--steps", "160", cwd=tmp_path)
    assert said.code == 0, said.err
    (lost,) = re.findall(r"loss after 160 steps: ([\d.]+)", said.out)
    assert float(lost) < 0.8, "it learns nothing"
    folder = tmp_path / "data_parallel.jaxprof.d"
    headers = [read_entry(path).header for path in sorted(folder.glob("*.jaxprof"))]
    assert [(header.process_index, header.process_count) for header in headers] == [(0, 2), (1, 2)]
    explained = run("explain", folder, "--format", "json", cwd=tmp_path)
    (finding,) = explained.data["findings"]
    assert (finding["code"], finding["evidence"]["process"]) == ("straggler", 1)
    line = JOB.read_text().splitlines()[int(finding["evidence"]["source"].rpartition(":")[2]) - 1]
    assert line.strip() == "time.sleep(self.seconds)"
