"""The examples learn. One is a program that is worth a look: forward, backward and update; one is a job."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "transformer.py"
JOB = EXAMPLE.with_name("data_parallel.py")


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not part of a source distribution")
def test_the_transformer_learns():
    example = runpy.run_path(str(EXAMPLE), run_name="example")
    step, rng = example["train_step"], np.random.default_rng(0)
    params, momentum, text = example["train_step_inputs"](rng, batch=2, length=8, width=16, layers=1)
    # That it learns is looked at, not how quickly.
    compiled = step.lower(params, momentum, text).compile({"xla_backend_optimization_level": 0})
    lost = []
    for _ in range(4):
        params, momentum, value = compiled(params, momentum, text)
        lost.append(float(value))
    assert lost[-1] < lost[0]
    hlo = compiled.as_text()
    assert [scope for scope in ("attention", "mlp", "head", "update") if scope not in hlo] == []


@pytest.mark.skipif(not JOB.exists(), reason="the examples are not part of a source distribution")
def test_the_job_learns(monkeypatch, capsys):
    """As one process of one: `bench/hosts.py` has the late ones."""
    monkeypatch.setattr("jax.distributed.initialize", lambda: None)
    monkeypatch.setattr(sys, "argv", [str(JOB), "--steps", "160"])
    runpy.run_path(str(JOB), run_name="__main__")
    (lost,) = re.findall(r"loss after 160 steps: ([\d.]+)", capsys.readouterr().out)
    assert float(lost) < 0.8, "it learns nothing"
