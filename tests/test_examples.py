"""The example learns, and one of its steps is a program that is worth a look: forward, backward and update."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "transformer.py"


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not part of a source distribution")
def test_the_transformer_learns() -> None:
    from jaxprof.hlo.analysis.kernels import kernels
    from jaxprof.hlo.read.parse import module

    example = runpy.run_path(str(EXAMPLE), run_name="example")
    step = example["train_step"]
    params, momentum, text = example["train_step_inputs"](
        np.random.default_rng(0), batch=2, length=8, width=16, layers=1
    )
    lost = []
    for _ in range(4):
        params, momentum, value = step(params, momentum, text)
        lost.append(float(value))
    assert lost[-1] < lost[0]
    compiled = step.lower(params, momentum, text).compile()
    found = kernels(module(compiled.as_text()))
    assert len(found) > 12
    for scope in ("attention", "mlp", "head", "update"):
        assert any(scope in kernel.op_name for kernel in found), scope
